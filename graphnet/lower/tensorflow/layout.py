"""Channels last: values that know in which order their axes lie, and what the rules of the table do with such values.

ONNX's tensors are [batch, channels, *spatial]; TensorFlow's convolutions want [batch, *spatial, channels]. So a
convolution yields a `Laid` value; a transpose of one only renames its axes, and rules that work axis by axis keep the
order they find. Every other rule gets its operands in ONNX's order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import tensorflow as tf

from graphnet.lower.table import OpTable, Rule
from graphnet.lower.tensorflow.axes import Order, places, plain


class Laid:
    """A tensor whose axes lie in an order of its own; `shape` and `ndim` are those of the ONNX value."""

    def __init__(self, tensor: Any, order: Order) -> None:
        self.tensor, self.order = tensor, order
        self._whole: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes in ONNX's order."""
        return tuple(self.tensor.shape[place] for place in places(self.order))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.order)

    @property
    def dtype(self) -> Any:
        """TensorFlow's dtype."""
        return self.tensor.dtype

    def whole(self) -> Any:
        """The tensor in ONNX's order; made once in each function graph."""
        if self._whole is None or self._whole.graph is not tf.compat.v1.get_default_graph():
            self._whole = moved(self.tensor, places(self.order))
        return self._whole


def moved(tensor: Any, permutation: Order) -> Any:
    """`tf.transpose`, as a reshape where that does it."""
    if permutation == plain(len(permutation)):
        return tensor
    real = [axis for axis in permutation if tensor.shape[axis] != 1]
    if real == sorted(real):
        return tf.reshape(tensor, [tensor.shape[axis] for axis in permutation])
    return tf.transpose(tensor, permutation)


def order_of(value: Any) -> Order:
    """The order in which a value's axes lie."""
    return value.order if isinstance(value, Laid) else plain(len(value.shape))


def tensor_of(value: Any) -> Any:
    """The tensor of a value in ONNX's order; anything that is no `Laid` as it is."""
    return value.whole() if isinstance(value, Laid) else value


def lay(value: Any, order: Order) -> Any:
    """The tensor of a value with its axes in `order`."""
    if not isinstance(value, Laid):
        return moved(value, order)
    where = places(value.order)
    return moved(value.tensor, tuple(where[axis] for axis in order))


def raw(value: Any) -> Any:
    """The tensor of a value as it lies (see `order_of`)."""
    return value.tensor if isinstance(value, Laid) else value


def laid(tensor: Any, order: Order) -> Any:
    """A value whose axes lie in `order`: a plain tensor where that is ONNX's order."""
    return tensor if order == plain(len(order)) else Laid(tensor, order)


def common_order(values: Sequence[Any], rank: int) -> Order:
    """The order that suits operands of one rank: that of the first which does not lie in ONNX's."""
    return next((v.order for v in values if isinstance(v, Laid) and v.ndim == rank), plain(rank))


def in_onnx_order(rule: Rule) -> Rule:
    """Decorator: the rule knows nothing of layouts."""

    @wraps(rule)
    def run(*values: Any, **attributes: Any) -> Any:
        return rule(*map(tensor_of, values), **attributes)

    return run


def axis_by_axis(rule: Rule) -> Rule:
    """Decorator: the rule broadcasts its operands and works element by element, in any order of the axes.

    Python numbers become constants of the dtype of the tensors beside them.
    """

    @wraps(rule)
    def run(*values: Any, **attributes: Any) -> Any:
        dtypes = [value.dtype for value in values if _is_tensor(value) and value.dtype != tf.bool]
        numbers = dtypes[0] if dtypes else tf.bool
        values = tuple(tf.constant(v, numbers) if isinstance(v, bool | int | float) else v for v in values)
        rank = max((len(value.shape) for value in values if _is_tensor(value)), default=0)
        order = common_order(values, rank)
        if order == plain(rank):
            return rule(*map(tensor_of, values), **attributes)
        results = rule(*(_spread(value, order) for value in values), **attributes)
        if isinstance(results, tuple):
            return tuple(laid(result, order) for result in results)
        return laid(results, order)

    return run


def _spread(value: Any, order: Order) -> Any:
    """An operand of lower rank gets leading axes of one element, as broadcasting would give it."""
    if not _is_tensor(value) or not value.shape:
        return value
    rank = len(value.shape)
    if rank < len(order):
        whole = tensor_of(value)
        value = tf.reshape(whole, (1,) * (len(order) - rank) + tuple(whole.shape))
    return lay(value, order)


def along_axis(rule: Rule) -> Rule:
    """Decorator: the rule works along the axis named by its attribute `axis`, and keeps ranks."""
    default = inspect.signature(rule).parameters["axis"].default

    @wraps(rule)
    def run(*values: Any, **attributes: Any) -> Any:
        rank = next(len(value.shape) for value in values if _is_tensor(value))
        order = common_order(values, rank)
        axis = int(attributes.pop("axis", default)) % rank if rank else 0
        tensors = [lay(value, order) if _is_tensor(value) else value for value in values]
        results = rule(*tensors, axis=places(order)[axis] if rank else 0, **attributes)
        if isinstance(results, tuple):
            return tuple(laid(result, order) for result in results)
        return laid(results, order)

    return run


def any_layout(rule: Rule) -> Rule:
    """Decorator: the rule looks after layouts itself."""
    return rule


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Laid) or tf.is_tensor(value)


class LayoutTable(OpTable):
    """A table whose rules say what they know of layouts; `simple` functions work element by element."""

    def __post_init__(self) -> None:
        self.simple = {op: axis_by_axis(rule) for op, rule in self.simple.items()}
        super().__post_init__()

    def op(
        self, *names: str, domain: str = "", layout: Callable[[Rule], Rule] = in_onnx_order
    ) -> Callable[[Rule], Rule]:
        """Decorator: register a rule, wrapped by `layout`, for one or more operators; the function stays as it is."""
        register = super().op(*names, domain=domain)

        def both(rule: Rule) -> Rule:
            register(layout(rule))
            return rule

        return both


def known_array(value: Any) -> np.ndarray | None:
    """The array behind a value that tracing has worked out, else None."""
    found = tf.get_static_value(tensor_of(value))
    return None if found is None else np.asarray(found)
