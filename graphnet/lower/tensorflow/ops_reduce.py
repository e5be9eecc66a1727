"""TensorFlow rules of reductions, running sums, arg-extrema and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower.table import Ints
from graphnet.lower.tensorflow.axes import places, without
from graphnet.lower.tensorflow.layout import along_axis, any_layout, laid, order_of, raw
from graphnet.lower.tensorflow.ops import TENSORFLOW, absolute, is_float

Reduction = Callable[..., Tensor]


def _l2(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    squares = tf.reduce_sum(tf.square(x), axis, keepdims)
    return tf.sqrt(squares if is_float(x) else tf.cast(squares, tf.float64))


def _mean(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    if is_float(x):
        return tf.reduce_mean(x, axis, keepdims)
    total = tf.reduce_sum(x, axis, keepdims)
    count = 1
    for place in axis:
        count *= x.shape[place]
    return tf.truncatediv(total, tf.cast(count, x.dtype))


def _log_sum_exp(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return tf.reduce_logsumexp(x if is_float(x) else tf.cast(x, tf.float64), axis, keepdims)


def _log_sum(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    total = tf.reduce_sum(x, axis, keepdims)
    return tf.math.log(total if is_float(x) else tf.cast(total, tf.float64))


def _maximum(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return (tf.reduce_any if x.dtype == tf.bool else tf.reduce_max)(x, axis, keepdims)


def _minimum(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return (tf.reduce_all if x.dtype == tf.bool else tf.reduce_min)(x, axis, keepdims)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axis, keepdims: tf.reduce_sum(absolute(x), axis, keepdims),
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _maximum,
    "ReduceMean": _mean,
    "ReduceMin": _minimum,
    "ReduceProd": lambda x, axis, keepdims: tf.reduce_prod(x, axis, keepdims),
    "ReduceSum": lambda x, axis, keepdims: tf.reduce_sum(x, axis, keepdims),
    "ReduceSumSquare": lambda x, axis, keepdims: tf.reduce_sum(tf.square(x), axis, keepdims),
}
"""Function of tensor, axes (a list) and `keepdims`, by operator; integers may come back wider."""


def reduced(op: str, data: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """A reduction over `axes` (ONNX's) with the operator's own dtype, in the order in which the data lies."""
    order = order_of(data)
    lying = [places(order)[axis] for axis in axes]
    result = tf.cast(REDUCTIONS[op](raw(data), lying, keepdims), data.dtype)
    return laid(result, order if keepdims else without(order, axes))


def _register(op: str) -> None:
    @TENSORFLOW.op(op, layout=any_layout)
    def reduce(data: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        rank = len(data.shape)
        if not axes and noop_with_empty_axes:
            return laid(_without_axes(op, raw(data)), order_of(data))
        return reduced(op, data, tuple(axis % rank for axis in axes or range(rank)), bool(keepdims))


def _without_axes(op: str, data: Tensor) -> Tensor:
    """A reduction over nothing still applies the element-wise part of its formula."""
    if op in ("ReduceL1", "ReduceL2"):
        return absolute(data)
    if op == "ReduceSumSquare":
        return tf.square(data)
    return tf.math.log(data) if op == "ReduceLogSum" else data


for _op in REDUCTIONS:
    _register(_op)


def _arg(function: Reduction, data: Tensor, axis: int, keepdims: int, last: int) -> Tensor:
    if last:
        found = data.shape[axis] - 1 - function(tf.reverse(data, [axis % len(data.shape)]), axis, tf.int64)
    else:
        found = function(data, axis, tf.int64)
    return tf.expand_dims(found, axis) if keepdims else found


@TENSORFLOW.op("ArgMax")
def arg_max(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(tf.argmax, data, axis, keepdims, select_last_index)


@TENSORFLOW.op("ArgMin")
def arg_min(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(tf.argmin, data, axis, keepdims, select_last_index)


@TENSORFLOW.op("CumSum")
def cum_sum(x: Tensor, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return tf.cumsum(x, axis[0], exclusive=bool(exclusive), reverse=bool(reverse))


@TENSORFLOW.op("TopK")
def top_k(X: Tensor, K: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, Tensor]:
    """Equal elements come in the order of their indices; the result is always sorted."""
    del sorted
    rank = len(X.shape)
    swap = list(range(rank))
    swap[axis % rank], swap[-1] = swap[-1], swap[axis % rank]
    last = axis % rank == rank - 1
    moved = X if last else tf.transpose(X, swap)
    if largest:
        values, indices = tf.math.top_k(moved, K[0])
    else:
        indices = tf.argsort(moved, -1, stable=True)[..., : K[0]]
        values = tf.gather(moved, indices, axis=-1, batch_dims=rank - 1)
    indices = tf.cast(indices, tf.int64)
    return (values, indices) if last else (tf.transpose(values, swap), tf.transpose(indices, swap))


@TENSORFLOW.op("Softmax", layout=along_axis)
def softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    return tf.nn.softmax(input, axis)


@TENSORFLOW.op("LogSoftmax", layout=along_axis)
def log_softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    return tf.nn.log_softmax(input, axis)


@TENSORFLOW.op("Hardmax", layout=along_axis)
def hardmax(input: Tensor, *, axis: int = -1) -> Tensor:
    return tf.one_hot(tf.argmax(input, axis), input.shape[axis], axis=axis, dtype=input.dtype)
