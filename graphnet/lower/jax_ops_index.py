"""JAX rules that index with data: gather, scatter, and the operators whose output size depends on data."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.lower.jax_ops import JAX
from graphnet.lower.table import Context, Static

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
    operation = {"none": place.set, "add": place.add, "mul": place.multiply, "max": place.max, "min": place.min}
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


def _needs_data(operator: str) -> UnsupportedOp:
    return UnsupportedOp(f"the output shape of {operator} depends on data, and XLA's shapes are static")


@JAX.op("NonZero")
def non_zero(X: Array, *, context: Context) -> Array:
    known = context.known(0)
    if known is None:
        raise _needs_data("NonZero")
    return jnp.asarray(np.array(np.nonzero(known), np.int64))


@JAX.op("Compress")
def compress(input: Array, condition: Array, *, axis: int | None = None, context: Context) -> Array:
    known = context.known(1)
    if known is None:
        raise _needs_data("Compress")
    data = input.reshape(-1) if axis is None else input
    return jnp.take(data, np.flatnonzero(known), axis=axis or 0)


@JAX.op("Unique")
def unique(X: Static, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, ...]:
    values, first, inverse, counts = np.unique(X, True, True, True, axis=axis)
    if not sorted:
        order = np.argsort(first)
        rank = np.argsort(order)
        values, first, inverse, counts = np.take(values, order, axis or 0), first[order], rank[inverse], counts[order]
    return tuple(jnp.asarray(item) for item in (values, first, inverse.reshape(-1), counts))
