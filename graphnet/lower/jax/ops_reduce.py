"""JAX rules of reductions, running sums, arg-extrema and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from graphnet.lower.jax.ops import JAX, is_float
from graphnet.lower.table import Ints

Reduction = Callable[..., Array]


def _l2(x: Array, axis: Any, keepdims: bool) -> Array:
    return jnp.sqrt(jnp.sum(jnp.square(x), axis, keepdims=keepdims))


def _mean(x: Array, axis: Any, keepdims: bool) -> Array:
    if is_float(x):
        return jnp.mean(x, axis, keepdims=keepdims)
    total = jnp.sum(x, axis, keepdims=keepdims)
    return lax.div(total, jnp.full_like(total, x.size // max(total.size, 1)))


def _log_sum_exp(x: Array, axis: Any, keepdims: bool) -> Array:
    return jax.nn.logsumexp(x if is_float(x) else x.astype(jnp.float64), axis, keepdims=keepdims)


def _log_sum(x: Array, axis: Any, keepdims: bool) -> Array:
    return jnp.log(jnp.sum(x, axis, keepdims=keepdims))


def _extremum(function: Reduction, empty: float) -> Reduction:
    def reduce(x: Array, axis: Any, keepdims: bool) -> Array:
        if x.dtype == bool:
            return function(x, axis, keepdims=keepdims, initial=empty > 0)
        start = empty if is_float(x) else _limit(x, largest=empty > 0)
        return function(x, axis, keepdims=keepdims, initial=start if x.size == 0 else None)

    return reduce


def _limit(x: Array, *, largest: bool) -> int:
    limits = jnp.iinfo(x.dtype)  # type: ignore[no-untyped-call]
    return int(limits.max if largest else limits.min)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axis, keepdims: jnp.sum(jnp.abs(x), axis, keepdims=keepdims),
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extremum(jnp.max, float("-inf")),
    "ReduceMean": _mean,
    "ReduceMin": _extremum(jnp.min, float("inf")),
    "ReduceProd": lambda x, axis, keepdims: jnp.prod(x, axis, keepdims=keepdims),
    "ReduceSum": lambda x, axis, keepdims: jnp.sum(x, axis, keepdims=keepdims),
    "ReduceSumSquare": lambda x, axis, keepdims: jnp.sum(jnp.square(x), axis, keepdims=keepdims),
}
"""Function of array, axes (a tuple) and `keepdims`, by operator; integers may come back wider."""


def reduced(op: str, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A reduction over `axes` with the operator's own dtype."""
    return REDUCTIONS[op](data, axes, keepdims).astype(data.dtype)


def reduced_axes(axes: tuple[int, ...] | None, rank: int, noop_with_empty_axes: int) -> tuple[int, ...]:
    """The axes that are reduced, counted from the front: all where none are named, unless that means none."""
    if axes:
        return tuple(axis % rank for axis in axes)
    return () if noop_with_empty_axes else tuple(range(rank))


def _register(op: str) -> None:
    @JAX.op(op)
    def reduce(data: Array, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        if not axes and noop_with_empty_axes:
            return _without_axes(op, data)
        return reduced(op, data, reduced_axes(axes, data.ndim, 0), bool(keepdims))


def _without_axes(op: str, data: Array) -> Array:
    """A reduction over nothing still applies the element-wise part of its formula."""
    if op in ("ReduceL1", "ReduceL2"):
        return jnp.abs(data)
    if op == "ReduceSumSquare":
        return jnp.square(data)
    return jnp.log(data) if op == "ReduceLogSum" else data


for _op in REDUCTIONS:
    _register(_op)


def _arg(function: Reduction, data: Array, axis: int, keepdims: int, last: int) -> Array:
    if not last:
        return function(data, axis, keepdims=bool(keepdims)).astype(jnp.int64)
    found = data.shape[axis] - 1 - function(jnp.flip(data, axis), axis, keepdims=bool(keepdims))
    return found.astype(jnp.int64)


@JAX.op("ArgMax")
def arg_max(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    return _arg(jnp.argmax, data, axis, keepdims, select_last_index)


@JAX.op("ArgMin")
def arg_min(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    return _arg(jnp.argmin, data, axis, keepdims, select_last_index)


@JAX.op("CumSum")
def cum_sum(x: Array, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Array:
    along = axis[0] % x.ndim
    total = lax.cumsum(x, along, reverse=bool(reverse))
    return total - x if exclusive and not is_float(x) else _shifted(total, along, reverse) if exclusive else total


def _shifted(x: Array, axis: int, reverse: int) -> Array:
    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, jnp.zeros((), x.dtype), pads)


@JAX.op("TopK")
def top_k(X: Array, K: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """Equal elements come in the order of their indices; the result is always sorted."""
    del sorted
    moved = jnp.moveaxis(X, axis, -1)
    if largest:
        values, indices = lax.top_k(moved, K[0])
    else:
        order = jnp.argsort(moved, -1, stable=True)[..., : K[0]]
        values, indices = jnp.take_along_axis(moved, order, -1), order
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(indices.astype(jnp.int64), -1, axis)
