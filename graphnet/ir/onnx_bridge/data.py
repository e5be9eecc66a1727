"""Values of small integer tensors where they are known, symbols included: what feeds Reshape, Expand, Slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Dimension, Node, Value
from graphnet.ir.symbolic import add, at_least, exact_div, floordiv, maximum, minimum, mod, mul, sub

LIMIT = 1024
"""Elements of a tensor whose symbolic values are followed."""
Array = np.ndarray[Any, np.dtype[Any]]
_INTEGERS = ("int64", "int32")


def propagate(node: Node, types: Sequence[Value | None], data: Sequence[Array | None]) -> list[Array | None]:
    """Known elements of each output (dtype object where some are expressions), None where not known.

    Follows Shape, Size and integer arithmetic; concrete arrays are evaluated elsewhere.
    """
    rule = _RULES.get(node.op) if node.domain == "" else None
    if rule is None or not node.outputs:
        return [None] * len(node.outputs)
    try:
        result = rule(Facts(node, types, data))
        known = settle(result) if result is not None and result.size <= LIMIT else None
    except (_Open, GraphFormatError, ArithmeticError, LookupError, TypeError, ValueError):
        known = None
    return [known] + [None] * (len(node.outputs) - 1)


def settle(array: Array) -> Array:
    """An int64 (or bool) array when no element is an expression any more."""
    if array.dtype != object or any(isinstance(item, str) for item in array.reshape(-1)):
        return array
    flat = [item for item in array.reshape(-1)]
    kind = bool if flat and all(isinstance(item, bool) for item in flat) else np.int64
    return np.array(flat, kind).reshape(array.shape)


class _Open(Exception):
    """An operand is not known."""


@dataclass(frozen=True)
class Facts:
    """A node with the types and the known elements of its inputs."""

    node: Node
    types: Sequence[Value | None]
    data: Sequence[Array | None]

    def known(self, index: int) -> Array:
        """Elements of an input, expressions among them. Raises _Open."""
        found = self.data[index] if index < len(self.data) else None
        if found is None or (found.dtype != object and found.dtype.kind not in "iub"):
            raise _Open
        return found

    def concrete(self, index: int) -> Array:
        """Elements of an input that are all numbers. Raises _Open."""
        found = self.known(index)
        if found.dtype == object:
            raise _Open
        return found


Rule = Callable[[Facts], Array | None]
_RULES: dict[str, Rule] = {}


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def _objects(items: Sequence[Any], shape: tuple[int, ...] | None = None) -> Array:
    array = np.empty(len(items), object)
    array[:] = list(items)
    return array if shape is None else array.reshape(shape)


@_rule("Shape")
def _shape(call: Facts) -> Array | None:
    type_ = call.types[0]
    if type_ is None:
        return None
    start: Any = call.node.attrs.get("start", 0)
    end: Any = call.node.attrs.get("end")
    return _objects(type_.shape[start:end])


@_rule("Size")
def _size(call: Facts) -> Array | None:
    total: Dimension = 1
    for dim in call.types[0].shape if call.types[0] is not None else ():
        total = mul(total, dim)
    return _objects([total], ()) if call.types[0] is not None else None


@_rule("Identity", "Dropout")
def _identity(call: Facts) -> Array | None:
    return call.known(0)


@_rule("Cast", "CastLike")
def _cast(call: Facts) -> Array | None:
    target = (
        call.types[1].dtype if call.node.op == "CastLike" and call.types[1] is not None else call.node.attrs.get("to")
    )
    known = call.known(0)
    return known if target in (6, 7, "int32", "int64") and known.dtype == object else None


@_rule("Gather")
def _gather(call: Facts) -> Array | None:
    axis: Any = call.node.attrs.get("axis", 0)
    return np.asarray(np.take(call.known(0), call.concrete(1).astype(np.int64), axis), object)


@_rule("Concat")
def _concat(call: Facts) -> Array | None:
    axis: Any = call.node.attrs.get("axis", 0)
    return np.concatenate([call.known(i).astype(object) for i in range(len(call.data))], axis)


@_rule("Slice")
def _slice(call: Facts) -> Array | None:
    source = call.known(0)
    starts, ends = (call.concrete(i).reshape(-1).tolist() for i in (1, 2))
    axes = (
        call.concrete(3).reshape(-1).tolist()
        if len(call.data) > 3 and call.node.inputs[3]
        else list(range(len(starts)))
    )
    steps = call.concrete(4).reshape(-1).tolist() if len(call.data) > 4 and call.node.inputs[4] else [1] * len(starts)
    index = [slice(None)] * source.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        stop = None if step < 0 and end < -source.shape[axis] else end
        index[axis] = slice(start, stop, step)
    return source[tuple(index)]


@_rule("Squeeze", "Unsqueeze", "Reshape", "Flatten")
def _reshape(call: Facts) -> Array | None:
    source = call.known(0)
    if call.node.op == "Flatten":
        axis: Any = call.node.attrs.get("axis", 1)
        return source.reshape(int(np.prod(source.shape[:axis], dtype=np.int64)), -1)
    if call.node.op == "Squeeze":
        axes = tuple(call.concrete(1).reshape(-1).tolist()) if len(call.data) > 1 and call.node.inputs[1] else None
        return np.squeeze(source, axes)
    if call.node.op == "Unsqueeze":
        return np.expand_dims(source, tuple(call.concrete(1).reshape(-1).tolist()))
    target = call.concrete(1).reshape(-1).tolist()
    if not call.node.attrs.get("allowzero", 0):
        target = [source.shape[i] if size == 0 else size for i, size in enumerate(target)]
    return source.reshape(target)


@_rule("Expand")
def _expand(call: Facts) -> Array | None:
    source, target = call.known(0), tuple(call.concrete(1).reshape(-1).tolist())
    shape = np.broadcast_shapes(source.shape, target)
    return np.broadcast_to(source, shape).copy() if np.prod(shape) <= LIMIT else None


@_rule("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(call: Facts) -> Array | None:
    source = call.known(0)
    if source.ndim != 1 or not source.size:
        return None
    combine = {"ReduceProd": mul, "ReduceSum": add, "ReduceMax": maximum, "ReduceMin": minimum}[call.node.op]
    total = source[0]
    for item in source[1:]:
        total = combine(total, item)
    return _objects([total], (1,) if call.node.attrs.get("keepdims", 1) else ())


def _quotient(a: Dimension, b: Dimension) -> Dimension:
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    if not (at_least(a, 0) and at_least(b, 1)):  # Div truncates, // rounds down
        raise _Open
    return floordiv(a, b)


def _remainder(a: Dimension, b: Dimension) -> Dimension:
    if b == 0:
        raise _Open
    return mod(a, b)


def _compare(test: Callable[[Dimension, int], bool | None]) -> Callable[[Dimension, Dimension], Any]:
    def compare(a: Dimension, b: Dimension) -> bool:
        result = test(sub(a, b), 0)
        if result is None:
            raise _Open
        return result

    return compare


def _equal(difference: Dimension, zero: int) -> bool | None:
    if isinstance(difference, int):
        return difference == zero
    return False if at_least(difference, 1) or at_least(mul(difference, -1), 1) else None


def _greater(difference: Dimension, zero: int) -> bool | None:
    if at_least(difference, 1):
        return True
    return False if at_least(mul(difference, -1), zero) else None


def _greater_equal(difference: Dimension, zero: int) -> bool | None:
    if at_least(difference, zero):
        return True
    return False if at_least(mul(difference, -1), 1) else None


_ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": add,
    "Sub": sub,
    "Mul": mul,
    "Div": _quotient,
    "Mod": _remainder,
    "Max": maximum,
    "Min": minimum,
    "Equal": _compare(_equal),
    "Greater": _compare(_greater),
    "GreaterOrEqual": _compare(_greater_equal),
    "Less": lambda a, b: _ELEMENTWISE["Greater"](b, a),
    "LessOrEqual": lambda a, b: _ELEMENTWISE["GreaterOrEqual"](b, a),
}


@_rule(*_ELEMENTWISE)
def _elementwise(call: Facts) -> Array | None:
    if any(type_ is None or type_.dtype not in _INTEGERS for type_ in call.types):
        return None
    combine = _ELEMENTWISE[call.node.op]
    result = call.known(0).astype(object)
    for index in range(1, len(call.data)):
        a, b = np.broadcast_arrays(result, call.known(index).astype(object))
        flat = [combine(x, y) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)]
        result = _objects(flat, a.shape)
    return result


@_rule("Neg")
def _neg(call: Facts) -> Array | None:
    source = call.known(0)
    return _objects([mul(item, -1) for item in source.astype(object).reshape(-1)], source.shape)


@_rule("Where")
def _where(call: Facts) -> Array | None:
    condition, a, b = np.broadcast_arrays(call.concrete(0), call.known(1).astype(object), call.known(2).astype(object))
    return np.where(condition, a, b)
