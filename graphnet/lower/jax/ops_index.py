"""JAX rules that index with data: gather, scatter, and the operators whose output size depends on data."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.lower.jax.ops import JAX
from graphnet.lower.table import Context

IN_RANGE = "promise_in_bounds"
"""ONNX forbids indices outside the tensor, so XLA need not clamp or mask them."""


def wrapped(indices: Array, size: int, known: np.ndarray | None) -> Array:
    """Indices in 0..size-1; ONNX counts negative ones from the end."""
    if known is not None:
        return indices if (known >= 0).all() else jnp.asarray(np.where(known < 0, known + size, known))
    return jnp.where(indices < 0, indices + size, indices)


@JAX.op("Gather")
def gather(data: Array, indices: Array, *, axis: int = 0, context: Context) -> Array:
    known = context.known(1)
    if known is not None and known.ndim == 0:
        return lax.index_in_dim(data, int(known) % data.shape[axis], axis, keepdims=False)
    axis = axis % data.ndim
    places = wrapped(indices, data.shape[axis], known)
    return data.at[(slice(None),) * axis + (places,)].get(mode=IN_RANGE, wrap_negative_indices=False)


@JAX.op("GatherElements")
def gather_elements(data: Array, indices: Array, *, axis: int = 0, context: Context) -> Array:
    index = _element_index(data, wrapped(indices, data.shape[axis], context.known(1)), axis)
    return data.at[index].get(mode=IN_RANGE, wrap_negative_indices=False)


def _element_index(data: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """Full index of each element of `indices`, which replaces the coordinate along `axis`."""
    grid = [
        jnp.arange(n, dtype=indices.dtype).reshape([n if i == dim else 1 for i in range(data.ndim)])
        for dim, n in enumerate(indices.shape)
    ]
    grid[axis % data.ndim] = indices
    return tuple(grid)


@JAX.op("GatherND")
def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    batch = [
        jnp.arange(n).reshape([n if i == dim else 1 for i in range(indices.ndim - 1)])
        for dim, n in enumerate(data.shape[:batch_dims])
    ]
    parts = [indices[..., i] for i in range(indices.shape[-1])]
    return data.at[(*batch, *parts)].get(mode=IN_RANGE)


def _scatter(data: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    place = data.at[index]
    operation: dict[str, Any] = {
        "none": place.set,
        "add": place.add,
        "mul": place.multiply,
        "max": place.max,
        "min": place.min,
    }
    result: Array = operation[reduction](updates, mode=IN_RANGE)
    return result


@JAX.op("ScatterElements")
def scatter_elements(
    data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none", context: Context
) -> Array:
    index = _element_index(data, wrapped(indices, data.shape[axis], context.known(1)), axis)
    return _scatter(data, index, updates, reduction)


@JAX.op("ScatterND")
def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    return _scatter(data, tuple(indices[..., i] for i in range(indices.shape[-1])), updates, reduction)


@JAX.op("ReverseSequence")
def reverse_sequence(input: Array, sequence_lens: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Array:
    time = jnp.arange(input.shape[time_axis])[:, None]
    source = jnp.where(time < sequence_lens, sequence_lens - 1 - time, time)
    view = [1] * input.ndim
    view[time_axis], view[batch_axis] = input.shape[time_axis], input.shape[batch_axis]
    source = (source if time_axis < batch_axis else source.T).reshape(view)
    return jnp.take_along_axis(input, source, time_axis)


@JAX.op("NonZero")
def non_zero(X: Array, *, context: Context) -> Array:
    found = jnp.nonzero(X, size=context.stated_size(0, 1))
    return jnp.stack(found).astype(np.int64)


@JAX.op("Compress")
def compress(input: Array, condition: Array, *, axis: int | None = None, context: Context) -> Array:
    data = input.reshape(-1) if axis is None else input
    dim = 0 if axis is None else axis % input.ndim
    known = context.known(1)
    if known is not None:
        return jnp.take(data, np.flatnonzero(known), dim)
    (kept,) = jnp.nonzero(condition, size=context.stated_size(0, dim))
    return jnp.take(data, kept, dim, mode="clip")


@JAX.op("Unique")
def unique(X: Array, *, axis: int | None = None, sorted: int = 1, context: Context) -> tuple[Array, ...]:
    size = context.stated_size(0, 0 if axis is None else axis % X.ndim)
    values, first, inverse, counts = jnp.unique(X, True, True, True, axis, size=size)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = jnp.argsort(first)
        values, first, counts = jnp.take(values, order, axis or 0), first[order], counts[order]
        inverse = jnp.argsort(order)[inverse]
    return (values, *(item.astype(np.int64) for item in (first, inverse, counts)))


@JAX.op("NonMaxSuppression")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
    context: Context,
) -> Array:
    """boxes [batch, n, 4], scores [batch, classes, n] to rows (batch, class, box), best first within each class."""
    size = context.stated_size(0, 0)
    count = scores.shape[-1]
    order = jnp.argsort(scores, -1, descending=True, stable=True)
    ranked = jnp.take_along_axis(scores, order, -1)
    alive = jnp.ones(scores.shape, bool) if score_threshold is None else ranked > score_threshold.reshape(())
    overlap = _overlaps(boxes, center_point_box)[:, None]
    pairs = jnp.take_along_axis(jnp.take_along_axis(overlap, order[..., :, None], 2), order[..., None, :], 3)
    limit = 0 if iou_threshold is None else iou_threshold.reshape(())

    def suppress(i: Array, kept: Array) -> Array:
        later = jnp.arange(count) > i
        return kept & ~(kept[..., i, None] & later & (pairs[..., i, :] > limit))

    kept = lax.fori_loop(0, count, suppress, alive)
    most = 0 if max_output_boxes_per_class is None else max_output_boxes_per_class.reshape(())
    kept = kept & (jnp.cumsum(kept, -1) <= most)
    rows = jnp.nonzero(kept, size=size)
    return jnp.stack((rows[0], rows[1], order[rows]), 1).astype(np.int64)


def _overlaps(boxes: Array, center_point_box: int) -> Array:
    """Intersection over union of every two boxes: [batch, n, n]."""
    if center_point_box:
        centre, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = centre - half, centre + half
    else:
        first, second = boxes[..., :2], boxes[..., 2:]
        low, high = jnp.minimum(first, second), jnp.maximum(first, second)
    sides = jnp.minimum(high[:, :, None], high[:, None]) - jnp.maximum(low[:, :, None], low[:, None])
    common = jnp.prod(jnp.maximum(sides, 0), -1)
    area = jnp.prod(high - low, -1)
    union = area[:, :, None] + area[:, None] - common
    return jnp.where(union > 0, common / union, 0)
