"""TensorFlow rules that index with data: gather, scatter, and the operators whose output size depends on data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower.table import Context
from graphnet.lower.tensorflow.ops import TENSORFLOW


def wrapped(indices: Tensor, size: int, context: Context, place: int = 1) -> Tensor:
    """Indices in 0..size-1; ONNX counts negative ones from the end."""
    known = context.known(place)
    if known is not None:
        return tf.constant(np.where(known < 0, known + size, known))
    if context.nonnegative(place):
        return indices
    return tf.where(indices < 0, indices + tf.cast(size, indices.dtype), indices)


@TENSORFLOW.op("Gather")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0, context: Context) -> Tensor:
    return tf.gather(data, wrapped(indices, data.shape[axis], context), axis=axis)


@TENSORFLOW.op("GatherElements")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0, context: Context) -> Tensor:
    return tf.gather_nd(data, element_index(wrapped(indices, data.shape[axis], context), axis))


def element_index(indices: Tensor, axis: int) -> Tensor:
    """[*indices, rank]: full index of each element of `indices`, which replaces the coordinate along `axis`."""
    rank = len(indices.shape)
    grid = [
        tf.constant(np.broadcast_to(np.arange(n).reshape([-1 if i == d else 1 for i in range(rank)]), indices.shape))
        for d, n in enumerate(indices.shape)
    ]
    grid = [tf.cast(part, indices.dtype) for part in grid]
    grid[axis % rank] = indices
    return tf.stack(grid, -1)


def _wrapped_nd(indices: Tensor, shape: tuple[int, ...], context: Context) -> Tensor:
    """Each row of `indices` is a place in a tensor of `shape`."""
    if context.nonnegative(1):
        return indices
    return tf.where(indices < 0, indices + tf.constant(shape[: indices.shape[-1]], indices.dtype), indices)


@TENSORFLOW.op("GatherND")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0, context: Context) -> Tensor:
    return tf.gather_nd(data, _wrapped_nd(indices, tuple(data.shape[batch_dims:]), context), batch_dims)


SCATTERS: dict[str, Callable[..., Tensor]] = {
    "none": tf.tensor_scatter_nd_update,
    "add": tf.tensor_scatter_nd_add,
    "max": tf.tensor_scatter_nd_max,
    "min": tf.tensor_scatter_nd_min,
}


def scatter(data: Tensor, index: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """`updates` put at the places in `index` ([..., rank]), or combined with what is there."""
    if reduction != "mul":
        return SCATTERS[reduction](data, index, updates)
    sizes = tuple(data.shape)[: index.shape[-1]]
    strides = tf.constant([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], index.dtype)
    rows = tf.reshape(updates, (math.prod(index.shape[:-1]), *data.shape[len(sizes) :]))
    flat = tf.reshape(tf.reduce_sum(index * strides, -1), (-1,))
    factors = tf.math.unsorted_segment_prod(rows, flat, math.prod(sizes))
    return data * tf.reshape(factors, data.shape)


@TENSORFLOW.op("ScatterElements")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none", context: Context
) -> Tensor:
    return scatter(data, element_index(wrapped(indices, data.shape[axis], context), axis), updates, reduction)


@TENSORFLOW.op("ScatterND")
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none", context: Context) -> Tensor:
    return scatter(data, _wrapped_nd(indices, tuple(data.shape), context), updates, reduction)


@TENSORFLOW.op("ReverseSequence")
def reverse_sequence(input: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    return tf.reverse_sequence(input, sequence_lens, seq_axis=time_axis, batch_axis=batch_axis)


def _first_places(condition: Tensor, count: int) -> Tensor:
    """Flat positions of the first `count` true elements, in order."""
    flat = tf.cast(tf.reshape(condition, (-1,)), tf.int32)
    return tf.cast(tf.math.top_k(flat, count).indices, tf.int64)


@TENSORFLOW.op("NonZero")
def non_zero(X: Tensor, *, context: Context) -> Tensor:
    found = _first_places(tf.cast(X, tf.bool), context.stated_size(0, 1))
    sizes = [math.prod(X.shape[i + 1 :]) for i in range(len(X.shape))]
    return tf.stack([found // step % n for step, n in zip(sizes, X.shape, strict=True)])


@TENSORFLOW.op("Compress")
def compress(input: Tensor, condition: Tensor, *, axis: int | None = None, context: Context) -> Tensor:
    data = tf.reshape(input, (-1,)) if axis is None else input
    dim = 0 if axis is None else axis % len(input.shape)
    known = context.known(1)
    kept = np.flatnonzero(known) if known is not None else _first_places(condition, context.stated_size(0, dim))
    return tf.gather(data, kept, axis=dim)


@TENSORFLOW.op("NonMaxSuppression")
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Tensor | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    *,
    center_point_box: int = 0,
    context: Context,
) -> Tensor:
    """boxes [batch, n, 4], scores [batch, classes, n] to rows (batch, class, box), best first within each class."""
    size = context.stated_size(0, 0)
    batch, classes, count = scores.shape
    order = tf.argsort(scores, -1, "DESCENDING", stable=True)
    ranked = tf.gather(scores, order, axis=2, batch_dims=2)
    alive = tf.ones(scores.shape, tf.bool) if score_threshold is None else ranked > tf.reshape(score_threshold, ())
    overlap = tf.broadcast_to(_overlaps(boxes, center_point_box)[:, None], (batch, classes, count, count))
    rows = tf.gather(overlap, order, axis=2, batch_dims=2)
    pairs = tf.gather(rows, tf.broadcast_to(order[:, :, None], rows.shape), axis=3, batch_dims=3)
    limit = tf.zeros((), boxes.dtype) if iou_threshold is None else tf.reshape(iou_threshold, ())
    places = tf.range(count)

    def suppress(i: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        beaten = tf.gather(kept, [i], axis=2) & (places > i) & (tf.gather(pairs, i, axis=2) > limit)
        return i + 1, kept & ~beaten

    kept = tf.while_loop(lambda i, _: i < count, suppress, (tf.constant(0), alive), maximum_iterations=count)[1]
    most = tf.zeros((), tf.int64) if max_output_boxes_per_class is None else tf.reshape(max_output_boxes_per_class, ())
    kept = kept & (tf.cumsum(tf.cast(kept, tf.int64), -1) <= most)
    found = _first_places(kept, size)
    boxes_of = tf.gather(tf.reshape(tf.cast(order, tf.int64), (-1,)), found)
    return tf.stack((found // (classes * count), found // count % classes, boxes_of), 1)


def _overlaps(boxes: Tensor, center_point_box: int) -> Tensor:
    """Intersection over union of every two boxes: [batch, n, n]."""
    if center_point_box:
        centre, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = centre - half, centre + half
    else:
        first, second = boxes[..., :2], boxes[..., 2:]
        low, high = tf.minimum(first, second), tf.maximum(first, second)
    sides = tf.minimum(high[:, :, None], high[:, None]) - tf.maximum(low[:, :, None], low[:, None])
    common = tf.reduce_prod(tf.maximum(sides, 0), -1)
    area = tf.reduce_prod(high - low, -1)
    return tf.math.divide_no_nan(common, area[:, :, None] + area[:, None] - common)
