"""Shape rules for symbolic sizes: what ONNX's own inference leaves open when a dimension is an expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Dimension, Shape
from graphnet.ir.onnx_bridge.nodes import PartialShape
from graphnet.ir.symbolic import add, ceildiv, exact_div, floordiv, maximum, minimum, mul, product, sub


@dataclass(frozen=True)
class Call:
    """One node as a rule sees it: shapes and known integers of its inputs (None where absent or unknown)."""

    shapes: Sequence[Shape | None]
    data: Sequence[np.ndarray | None]
    attrs: Mapping[str, Any]
    outputs: int

    def shape(self, index: int) -> Shape:
        """Shape of an input that the operator requires."""
        found = self.shapes[index] if index < len(self.shapes) else None
        if found is None:
            raise Unknown
        return found

    def ints(self, index: int) -> list[Dimension] | None:
        """Known integers of an input; None where it is left out. Raises Unknown when it is there but not known."""
        if index >= len(self.shapes) or self.shapes[index] is None:
            return None
        found = self.data[index]
        if found is None:
            raise Unknown
        return [item if isinstance(item, str) else int(item) for item in found.reshape(-1)]


class Unknown(Exception):
    """A rule cannot tell: the data it needs is not known."""


Rule = Callable[[Call], Sequence[PartialShape]]
_RULES: dict[str, Rule] = {}


def partial_shapes(op: str, call: Call) -> Sequence[PartialShape]:
    """Shapes of the outputs as far as the rule for `op` can tell; nothing where it cannot."""
    rule = _RULES.get(op)
    if rule is None:
        if op not in _BROADCASTING:
            return ()
        rule = _broadcast_rule
    try:
        return rule(call)
    except (Unknown, GraphFormatError, ArithmeticError, LookupError, TypeError, ValueError):
        return ()


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """ONNX's multidirectional broadcasting; sizes that are neither equal nor 1 give `max(a, b)`."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_broadcast_dimension(column) for column in zip(*padded, strict=True))


def _broadcast_dimension(column: Sequence[Dimension]) -> Dimension:
    result: Dimension = 1
    for dim in column:
        if dim == 1 or dim == result:
            continue
        if result == 1 or (isinstance(dim, int) and isinstance(result, str)):
            result = dim
        elif not (isinstance(result, int) and isinstance(dim, str)):
            result = maximum(result, dim)
    return result


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


_BROADCASTING = frozenset({
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
})  # fmt: skip


def _broadcast_rule(call: Call) -> Sequence[PartialShape]:
    return [broadcast([shape for shape in call.shapes if shape is not None])]


@_rule("MatMul")
def _matmul(call: Call) -> Sequence[PartialShape]:
    a, b = call.shape(0), call.shape(1)
    batch = broadcast([a[:-2], b[:-2]])
    return [batch + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())]


@_rule("Reshape")
def _reshape(call: Call) -> Sequence[PartialShape]:
    data = call.shape(0)
    target = call.ints(1)
    if target is None:
        raise Unknown
    copied = [data[i] if dim == 0 and not call.attrs.get("allowzero") else dim for i, dim in enumerate(target)]
    if -1 not in copied:
        return [tuple(copied)]
    rest = product(tuple(dim for dim in copied if dim != -1))
    size = exact_div(product(data), rest) if rest != 0 else None
    if size is None and rest != 0:
        size = floordiv(product(data), rest)
    return [tuple(size if dim == -1 else dim for dim in copied)]


@_rule("Flatten")
def _flatten(call: Call) -> Sequence[PartialShape]:
    shape, axis = call.shape(0), call.attrs.get("axis", 1)
    return [(product(shape[:axis]), product(shape[axis:]))]


@_rule("Expand")
def _expand(call: Call) -> Sequence[PartialShape]:
    target = call.ints(1)
    if target is None:
        raise Unknown
    return [broadcast([call.shape(0), tuple(target)])]


@_rule("ConstantOfShape")
def _constant_of_shape(call: Call) -> Sequence[PartialShape]:
    return [tuple(call.ints(0) or ())]


@_rule("Tile")
def _tile(call: Call) -> Sequence[PartialShape]:
    repeats = call.ints(1)
    if repeats is None:
        raise Unknown
    return [tuple(mul(dim, times) for dim, times in zip(call.shape(0), repeats, strict=True))]


@_rule("Range")
def _range(call: Call) -> Sequence[PartialShape]:
    start, limit, delta = (items[0] for i in range(3) if (items := call.ints(i)))
    return [(maximum(ceildiv(sub(limit, start), delta), 0),)]


@_rule("Concat")
def _concat(call: Call) -> Sequence[PartialShape]:
    shapes = [shape for shape in call.shapes if shape is not None]
    axis = call.attrs["axis"] % len(shapes[0])
    total: Dimension = 0
    for shape in shapes:
        total = add(total, shape[axis])
    columns = zip(*shapes, strict=True)
    merged = tuple(next((dim for dim in column if isinstance(dim, int)), column[0]) for column in columns)
    return [(*merged[:axis], total, *merged[axis + 1 :])]


@_rule("Split")
def _split(call: Call) -> Sequence[PartialShape]:
    shape = call.shape(0)
    axis = call.attrs.get("axis", 0) % len(shape)
    sizes = call.ints(1)
    if sizes is None:
        each = ceildiv(shape[axis], call.outputs)
        last = sub(shape[axis], mul(each, call.outputs - 1))
        sizes = [each] * (call.outputs - 1) + [last]
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


@_rule("Slice")
def _slice(call: Call) -> Sequence[PartialShape]:
    shape = list(call.shape(0))
    starts, ends, axes, steps = (call.ints(i) for i in range(1, 5))
    if starts is None or ends is None:
        raise Unknown
    result: list[Dimension | None] = list(shape)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axes[i] if axes is not None else i
        if not isinstance(axis, int):
            raise Unknown
        result[axis] = slice_size(shape[axis], start, end, steps[i] if steps is not None else 1)
    return [tuple(result)]


def slice_size(size: Dimension, start: Dimension, end: Dimension, step: Dimension) -> Dimension | None:
    """Elements that ONNX's Slice takes of an axis; None where the signs are not known."""
    if not isinstance(step, int) or step == 0:
        return None
    first, last = _position(size, start), _position(size, end)
    if first is None or last is None:
        return None
    if step > 0:
        first, last = minimum(first, size), minimum(last, size)
        return maximum(ceildiv(sub(last, first), step), 0)
    if not isinstance(end, int) or not isinstance(start, int) or end > -(1 << 31):
        return None
    return maximum(ceildiv(sub(minimum(first, sub(size, 1)), -1), -step), 0)


def _position(size: Dimension, index: Dimension) -> Dimension | None:
    if isinstance(index, int):
        if index >= 0:
            return index
        return 0 if index <= -(1 << 31) else maximum(add(size, index), 0)
    return index if not index.startswith("-") else maximum(add(size, index), 0)


@_rule("Pad")
def _pad(call: Call) -> Sequence[PartialShape]:
    shape = call.shape(0)
    pads, axes = call.ints(1), call.ints(3)
    if pads is None:
        raise Unknown
    chosen = [int(axis) % len(shape) for axis in axes] if axes is not None else list(range(len(shape)))
    result = list(shape)
    for i, axis in enumerate(chosen):
        result[axis] = add(add(shape[axis], pads[i]), pads[i + len(chosen)])
    return [tuple(result)]


@_rule("Resize")
def _resize(call: Call) -> Sequence[PartialShape]:
    shape = call.shape(0)
    axes = [axis % len(shape) for axis in call.attrs.get("axes", range(len(shape)))]
    result: list[Dimension | None] = list(shape)
    sizes = call.ints(3)
    if sizes is not None:
        if call.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            raise Unknown
        for axis, size in zip(axes, sizes, strict=True):
            result[axis] = size
        return [tuple(result)]
    scales = call.data[2]
    if scales is None or scales.dtype == object:
        raise Unknown
    for axis, scale in zip(axes, scales.reshape(-1).tolist(), strict=True):
        numerator, denominator = float(scale).as_integer_ratio()
        result[axis] = floordiv(mul(shape[axis], numerator), denominator) if denominator <= 1 << 10 else None
    return [tuple(result)]


@_rule("Conv", "MaxPool", "AveragePool", "LpPool", "ConvInteger", "QLinearConv")
def _window(call: Call) -> Sequence[PartialShape]:
    data = call.shape(0)
    kernel = call.attrs.get("kernel_shape")
    weight = call.shapes[3] if len(call.shapes) > 7 else call.shapes[1] if len(call.shapes) > 1 else None
    kernel = kernel or (weight or ())[2:]
    spatial = data[2:]
    n = len(spatial)
    strides = call.attrs.get("strides") or (1,) * n
    dilations = call.attrs.get("dilations") or (1,) * n
    pads = call.attrs.get("pads") or (0,) * (2 * n)
    mode = call.attrs.get("auto_pad", "NOTSET")
    result: list[Dimension] = []
    for i, size in enumerate(spatial):
        reach = (int(kernel[i]) - 1) * dilations[i] + 1
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            result.append(ceildiv(size, strides[i]))
            continue
        padded = add(size, pads[i] + pads[i + n]) if mode == "NOTSET" else size
        divide = ceildiv if call.attrs.get("ceil_mode") else floordiv
        result.append(add(divide(sub(padded, reach), strides[i]), 1))
    channels = weight[0] if weight is not None else data[1]
    return [(data[0], channels, *result)] * call.outputs


@_rule("ConvTranspose")
def _conv_transpose(call: Call) -> Sequence[PartialShape]:
    data, weight = call.shape(0), call.shape(1)
    n = len(data) - 2
    if call.attrs.get("output_shape") or call.attrs.get("auto_pad", "NOTSET") != "NOTSET":
        raise Unknown
    strides = call.attrs.get("strides") or (1,) * n
    dilations = call.attrs.get("dilations") or (1,) * n
    pads = call.attrs.get("pads") or (0,) * (2 * n)
    extra = call.attrs.get("output_padding") or (0,) * n
    spatial = [
        add(
            mul(sub(size, 1), strides[i]),
            (int(weight[i + 2]) - 1) * dilations[i] + 1 + extra[i] - pads[i] - pads[i + n],
        )
        for i, size in enumerate(data[2:])
    ]
    return [(data[0], mul(weight[1], call.attrs.get("group", 1)), *spatial)]


@_rule("DepthToSpace")
def _depth_to_space(call: Call) -> Sequence[PartialShape]:
    n, c, h, w = call.shape(0)
    block = call.attrs["blocksize"]
    return [(n, floordiv(c, block * block), mul(h, block), mul(w, block))]


@_rule("SpaceToDepth")
def _space_to_depth(call: Call) -> Sequence[PartialShape]:
    n, c, h, w = call.shape(0)
    block = call.attrs["blocksize"]
    return [(n, mul(c, block * block), floordiv(h, block), floordiv(w, block))]


@_rule("OneHot")
def _one_hot(call: Call) -> Sequence[PartialShape]:
    indices, depth = call.shape(0), call.ints(1)
    if depth is None:
        raise Unknown
    axis = call.attrs.get("axis", -1) % (len(indices) + 1)
    return [(*indices[:axis], depth[0], *indices[axis:])]


@_rule("TopK")
def _top_k(call: Call) -> Sequence[PartialShape]:
    shape, k = call.shape(0), call.ints(1)
    if k is None:
        raise Unknown
    axis = call.attrs.get("axis", -1) % len(shape)
    return [(*shape[:axis], k[0], *shape[axis + 1 :])] * 2
