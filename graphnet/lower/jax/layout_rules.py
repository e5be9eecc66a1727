"""Channels last, primitive by primitive: what each does with operands whose axes lie in another order than ONNX's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax import lax
from jax.extend import core

Order = tuple[int, ...]
"""`order[i]` is the logical axis that lies at place `i`."""


@dataclass(frozen=True)
class Ordered:
    """An array whose axes lie in `order`."""

    array: Any
    order: Order

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return tuple(self.array.shape[place] for place in places(self.order))

    def laid(self, order: Order) -> Any:
        """The array with its axes in `order`."""
        if order == self.order:
            return self.array
        where = places(self.order)
        return lax.transpose(self.array, [where[axis] for axis in order])


@dataclass(frozen=True)
class Spread:
    """A broadcast that is only carried out once the order of its axes is known: it costs nothing in any order."""

    base: Ordered
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    """Logical axis of the result for each logical axis of `base`."""

    order: Order = ()
    """None of its own."""

    def ordered(self) -> Ordered:
        """Carried out, each new axis beside the one before it: where `base` lies so, a reshape can then merge them."""
        follows: dict[int, list[int]] = defaultdict(list)
        last = -1
        for axis in range(len(self.shape)):
            last = axis if axis in self.axes else last
            if axis != last:
                follows[last].append(axis)
        order = [*follows[-1]]
        for axis in self.base.order:
            order += [self.axes[axis], *follows[self.axes[axis]]]
        return Ordered(self.laid(tuple(order)), tuple(order))

    def laid(self, order: Order) -> Any:
        """The array with its axes in `order`."""
        where = places(order)
        targets = [where[self.axes[axis]] for axis in self.base.order]
        array = self.base.array
        if targets != sorted(targets):
            rank = sorted(range(len(targets)), key=targets.__getitem__)
            array, targets = lax.transpose(array, rank), sorted(targets)
        return lax.broadcast_in_dim(array, [self.shape[axis] for axis in order], targets)


Value = Ordered | Spread
Rule = Callable[[core.JaxprEqn, list[Value]], "list[Value] | None"]


def reordered(value: Value) -> bool:
    """Whether the axes of a value, or of what it spreads, lie in another order than ONNX's."""
    order = value.order if isinstance(value, Ordered) else value.base.order
    return order != plain(len(order))


def places(order: Order) -> Order:
    """Where each logical axis lies: the inverse permutation."""
    where = [0] * len(order)
    for place, axis in enumerate(order):
        where[axis] = place
    return tuple(where)


def plain(rank: int) -> Order:
    """ONNX's order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """[batch, *spatial, channels] of logical [batch, channels, *spatial]."""
    return (0, *range(2, rank), 1)


def kernel_order(rank: int) -> Order:
    """[*spatial, in, out] of logical [out, in, *spatial]."""
    return (*range(2, rank), 1, 0)


def bind(eqn: core.JaxprEqn, arrays: Sequence[Any], **changed: Any) -> list[Any]:
    """The results of the equation's primitive on other operands, some of its parameters changed."""
    primitive: Any = eqn.primitive
    result = primitive.bind(*arrays, **{**eqn.params, **changed})
    return list(result) if primitive.multiple_results else [result]


def rank_of(eqn: core.JaxprEqn, place: int) -> int:
    """Number of axes of an operand."""
    described: Any = eqn.invars[place].aval
    return len(described.shape)


def in_onnx_order(eqn: core.JaxprEqn) -> bool:
    """Whether a convolution is written as ONNX's, channels first."""
    return all(tuple(spec) == plain(rank_of(eqn, 0)) for spec in eqn.params["dimension_numbers"])


def convolution(eqn: core.JaxprEqn, values: list[Value]) -> Value:
    """A convolution written channels first, done channels last."""
    rank = len(values[0].shape)
    data, kernel = channels_last(rank), kernel_order(rank)
    numbers = lax.ConvDimensionNumbers(places(data), places(kernel), places(data))
    arrays = [values[0].laid(data), values[1].laid(kernel)]
    return Ordered(bind(eqn, arrays, dimension_numbers=numbers)[0], data)


def broadcast(eqn: core.JaxprEqn, values: list[Value]) -> Value:
    """`broadcast_in_dim`, put off."""
    shape, axes = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    base = values[0]
    if isinstance(base, Spread):
        return Spread(base.base, tuple(shape), tuple(axes[axis] for axis in base.axes))
    return Spread(base, tuple(shape), tuple(axes))


def common_order(values: Sequence[Value], rank: int) -> Order:
    """The order that most suits operands of one shape: that of the first which is not in ONNX's."""
    orders = [value.order for value in values if isinstance(value, Ordered) and len(value.order) == rank]
    return next((order for order in orders if order != plain(rank)), plain(rank))


def _elementwise(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    rank = max(len(value.shape) for value in values)
    order = common_order(values, rank)
    arrays = [value.laid(order if len(value.shape) == rank else plain(len(value.shape))) for value in values]
    return [Ordered(array, order) for array in bind(eqn, arrays)]


def transpose(eqn: core.JaxprEqn, values: list[Value]) -> Value | None:
    """A transpose to channels first only renames the axes: a convolution is likely to undo it. None for any other."""
    order = channels_last(rank_of(eqn, 0))
    if len(order) < 4 or tuple(eqn.params["permutation"]) != places(order):
        return None
    return Ordered(values[0].laid(plain(len(order))), order)


def _transpose(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    (value,) = values
    assert isinstance(value, Ordered)
    renamed = places(tuple(eqn.params["permutation"]))
    return [Ordered(value.array, tuple(renamed[axis] for axis in value.order))]


def _reduce(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    (value,) = values
    assert isinstance(value, Ordered)
    axes, where = eqn.params["axes"], places(value.order)
    kept = [axis for axis in plain(len(value.order)) if axis not in axes]
    order = tuple(kept.index(axis) for axis in value.order if axis in kept)
    lying = tuple(sorted(where[axis] for axis in axes))
    return [Ordered(array, order) for array in bind(eqn, [value.array], axes=lying)]


def _axis_list(*names: str) -> Rule:
    """A primitive whose parameters `names` list something for each axis of its first operand."""

    def rule(eqn: core.JaxprEqn, values: list[Value]) -> list[Value] | None:
        first, *rest = values
        if not isinstance(first, Ordered):
            return None
        given = {name: eqn.params[name] for name in names if eqn.params[name] is not None}
        changed = {name: tuple(values[axis] for axis in first.order) for name, values in given.items()}
        arrays = [first.array, *(value.laid(plain(len(value.shape))) for value in rest)]
        return [Ordered(array, first.order) for array in bind(eqn, arrays, **changed)]

    return rule


def _axis_number(name: str) -> Rule:
    """A primitive that works along one axis and keeps the rank."""

    def rule(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
        order = common_order(values, len(values[0].shape))
        arrays = [value.laid(order) for value in values]
        results = bind(eqn, arrays, **{name: places(order)[eqn.params[name]]})
        return [Ordered(array, order) for array in results]

    return rule


def _rev(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    (value,) = values
    assert isinstance(value, Ordered)
    where = places(value.order)
    dimensions = tuple(sorted(where[axis] for axis in eqn.params["dimensions"]))
    return [Ordered(array, value.order) for array in bind(eqn, [value.array], dimensions=dimensions)]


def _squeeze(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    (value,) = values
    assert isinstance(value, Ordered)
    gone, where = eqn.params["dimensions"], places(value.order)
    kept = [axis for axis in plain(len(value.order)) if axis not in gone]
    order = tuple(kept.index(axis) for axis in value.order if axis in kept)
    return [Ordered(lax.squeeze(value.array, [where[axis] for axis in gone]), order)]


def _reshape(eqn: core.JaxprEqn, values: list[Value]) -> list[Value] | None:
    """A reshape that merges and splits axes which lie side by side, in order; None for any other."""
    (value,) = values
    assert isinstance(value, Ordered)
    groups = axis_groups(value.shape, eqn.params["new_sizes"])
    if groups is None or eqn.params["dimensions"] is not None:
        return None
    group_of = {axis: group for group in groups for axis in group[0]}
    order: list[int] = []
    queue = [axis for axis in value.order if value.shape[axis] != 1]
    while queue:
        old, new = group_of[queue[0]]
        real = [axis for axis in old if value.shape[axis] != 1]
        if queue[: len(real)] != real:
            return None
        order.extend(new)
        del queue[: len(real)]
    order.extend(axis for old, new in groups if all(value.shape[a] == 1 for a in old) for axis in new)
    return [Ordered(value.array.reshape([eqn.params["new_sizes"][axis] for axis in order]), tuple(order))]


def axis_groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """The finest runs of old axes and new axes of equal product, in order; None where there are no elements."""
    if 0 in old:
        return None
    groups: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second = i, j
        left = right = 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new) and (left != 1 or new[j] == 1 or first == i):
            right, j = new[j], j + 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        groups.append((tuple(range(first, i)), tuple(range(second, j))))
    return groups


def _dot(eqn: core.JaxprEqn, values: list[Value]) -> list[Value] | None:
    if not all(isinstance(value, Ordered) for value in values):
        return None
    (contract, batch) = eqn.params["dimension_numbers"]
    where = [places(value.order) for value in values]
    numbers = tuple(
        tuple(tuple(where[side][axis] for axis in axes[side]) for side in (0, 1)) for axes in (contract, batch)
    )
    arrays = [value.laid(value.order) for value in values]
    (result,) = bind(eqn, arrays, dimension_numbers=numbers)
    logical = [("b", n) for n in range(len(batch[0]))]
    actual = list(logical)
    for side, value in enumerate(values):
        used = {*contract[side], *batch[side]}
        logical += [(str(side), axis) for axis in plain(len(value.shape)) if axis not in used]
        actual += [(str(side), axis) for axis in value.order if axis not in used]
    return [Ordered(result, tuple(logical.index(item) for item in actual))]


def _gather(eqn: core.JaxprEqn, values: list[Value]) -> list[Value] | None:
    """A gather that takes whole slices along one axis by a vector of indices; None for any other."""
    data, indices = values
    numbers, axes = eqn.params["dimension_numbers"], eqn.params["dimension_numbers"].start_index_map
    if not isinstance(data, Ordered) or len(axes) != 1 or len(indices.shape) != 2:
        return None
    rest = tuple(axis for axis in plain(len(data.order)) if axis not in axes)
    whole = all(eqn.params["slice_sizes"][axis] == data.shape[axis] for axis in rest)
    if (
        not whole
        or numbers.offset_dims != rest
        or numbers.collapsed_slice_dims != axes
        or numbers.operand_batching_dims
    ):
        return None
    place = places(data.order)[axes[0]]
    moved = lax.GatherDimensionNumbers(
        offset_dims=tuple(axis for axis in plain(len(data.order)) if axis != place),
        collapsed_slice_dims=(place,),
        start_index_map=(place,),
    )
    sizes = tuple(eqn.params["slice_sizes"][axis] for axis in data.order)
    arrays = [data.array, indices.laid(plain(2))]
    return [Ordered(array, data.order) for array in bind(eqn, arrays, dimension_numbers=moved, slice_sizes=sizes)]


ELEMENTWISE = (
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "clamp",
    "convert_element_type", "copy", "cos", "cosh", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1",
    "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul",
    "ne", "neg", "nextafter", "not", "or", "pow", "reduce_precision", "rem", "round", "rsqrt", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square",
    "stop_gradient", "sub", "tan", "tanh", "xor",
)  # fmt: skip
_WINDOW = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"), _reduce),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), _axis_number("axis")),
    **dict.fromkeys(("reduce_window_max", "reduce_window_min", "reduce_window_sum"), _axis_list(*_WINDOW)),
    "concatenate": _axis_number("dimension"),
    "dot_general": _dot,
    "gather": _gather,
    "pad": _axis_list("padding_config"),
    "reshape": _reshape,
    "rev": _rev,
    "slice": _axis_list("start_indices", "limit_indices", "strides"),
    "split": _axis_number("axis"),
    "squeeze": _squeeze,
    "transpose": _transpose,
}
"""What each primitive does with operands in another order; None from a rule: they are put in ONNX's order."""
