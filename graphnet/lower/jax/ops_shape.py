"""JAX rules that move data: reshape, transpose, slice, join, pad."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.lower.jax.ops import JAX, jax_dtype
from graphnet.lower.table import Context, Ints, Operand, Static


@JAX.op("Reshape")
def reshape(data: Array, shape: Ints, *, allowzero: int = 0) -> Array:
    return data.reshape([data.shape[i] if d == 0 and not allowzero else d for i, d in enumerate(shape)])


@JAX.op("Flatten")
def flatten(input: Array, *, axis: int = 1) -> Array:
    axis = axis + input.ndim if axis < 0 else axis
    return input.reshape(math.prod(input.shape[:axis]), math.prod(input.shape[axis:]))


@JAX.op("Transpose")
def transpose(data: Array, *, perm: tuple[int, ...] | None = None) -> Array:
    return jnp.transpose(data, perm)


@JAX.op("Squeeze")
def squeeze(data: Array, axes: Ints | None = None) -> Array:
    return jnp.squeeze(data, axes)


@JAX.op("Unsqueeze")
def unsqueeze(data: Array, axes: Ints) -> Array:
    return jnp.expand_dims(data, axes)


@JAX.op("Expand")
def expand(input: Array, shape: Ints) -> Array:
    return jnp.broadcast_to(input, jnp.broadcast_shapes(input.shape, shape))


@JAX.op("Tile")
def tile(input: Array, repeats: Ints) -> Array:
    return jnp.tile(input, repeats)


@JAX.op("Concat")
def concat(*inputs: Array, axis: int) -> Array:
    return jnp.concatenate(inputs, axis) if len(inputs) > 1 else inputs[0]


@JAX.op("Split")
def split(
    input: Array, split: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, context: Context
) -> tuple[Array, ...]:
    if split is None:
        parts = num_outputs or len(context.node.outputs)
        size = -(-input.shape[axis] // parts)
        ends = [min(size * (i + 1), input.shape[axis]) for i in range(parts)]
    else:
        ends = [int(end) for end in np.cumsum(split)]
    return tuple(jnp.split(input, ends[:-1], axis))


@JAX.op("Slice")
def slice_(data: Array, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Array:
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    index = [(0, size, 1) for size in data.shape]
    flips: list[int] = []
    for given, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = given % data.ndim
        size = data.shape[axis]
        # A far negative end of a backward slice means "before the first", which Python spells None.
        kept = range(size)[slice(start, None if step < 0 and end < -size else end, step)]
        if step < 0:
            flips.append(axis)
            kept = kept[::-1]
        index[axis] = (kept[0], kept[-1] + 1, kept.step) if len(kept) else (0, 0, 1)
    if index != [(0, size, 1) for size in data.shape]:
        data = lax.slice(data, *zip(*index, strict=True))
    return lax.rev(data, flips) if flips else data


@JAX.op("Pad")
def pad(
    data: Array,
    pads: Ints,
    constant_value: Operand = None,
    axes: Ints | None = None,
    *,
    mode: str = "constant",
    context: Context,
) -> Array:
    axes = tuple(a % data.ndim for a in axes) if axes is not None else tuple(range(data.ndim))
    widths = [(0, 0)] * data.ndim
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        widths[axis] = (low, high)
    if mode == "constant":
        known = context.known(2)
        value = constant_value if known is None else known.reshape(())
        filler = jnp.asarray(0 if value is None else value, data.dtype).reshape(())
        return lax.pad(data, filler, [(low, high, 0) for low, high in widths])
    for axis, (low, high) in enumerate(widths):
        data = lax.slice_in_dim(data, max(0, -low), data.shape[axis] + min(0, high), axis=axis)
    return jnp.pad(data, [(max(0, low), max(0, high)) for low, high in widths], mode=mode)


@JAX.op("DepthToSpace")
def depth_to_space(input: Array, *, blocksize: int, mode: str = "DCR") -> Array:
    n, c, h, w = input.shape
    depth, b = c // blocksize**2, blocksize
    if mode == "CRD":
        blocks = input.reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        blocks = input.reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, depth, h * b, w * b)


@JAX.op("SpaceToDepth")
def space_to_depth(input: Array, *, blocksize: int) -> Array:
    n, c, h, w = input.shape
    b = blocksize
    return input.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


@JAX.op("Constant")
def constant(
    *,
    sparse_value: Any = None,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
    context: Context,
) -> Any:
    if value is not None:
        return context.scope.literal(value)
    for floats in (value_float, value_floats):
        if floats is not None:
            return context.scope.literal(np.asarray(floats, np.float32))
    for integers in (value_int, value_ints):
        if integers is not None:
            return context.scope.literal(np.asarray(integers, np.int64))
    del sparse_value, value_string, value_strings
    raise UnsupportedOp("sparse and string constants have no tensor form")


@JAX.op("ConstantOfShape")
def constant_of_shape(input: Ints, *, value: np.ndarray | None = None) -> Array:
    return jnp.zeros(input, np.float32) if value is None else jnp.full(input, value.reshape(()), value.dtype)


@JAX.op("Shape")
def shape(data: Array, *, end: int | None = None, start: int = 0) -> Array:
    return jnp.asarray(data.shape[start:end], np.int64)


@JAX.op("Size")
def size(data: Array) -> Array:
    return jnp.asarray(data.size, np.int64)


@JAX.op("Range")
def range_(start: Static, limit: Static, delta: Static) -> Array:
    return jnp.asarray(np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype))


@JAX.op("EyeLike")
def eye_like(input: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    rows, columns = input.shape
    return jnp.eye(rows, columns, k, dtype=jax_dtype(dtype) if dtype is not None else input.dtype)


@JAX.op("Trilu")
def trilu(input: Array, k: Ints | None = None, *, upper: int = 1) -> Array:
    diagonal = k[0] if k else 0
    return jnp.triu(input, diagonal) if upper else jnp.tril(input, diagonal)


@JAX.op("OneHot")
def one_hot(indices: Array, depth: Ints, values: Array, *, axis: int = -1) -> Array:
    size = depth[0]
    rank = indices.ndim + 1
    classes = jnp.arange(size).reshape([size if i == axis % rank else 1 for i in range(rank)])
    place = jnp.expand_dims(indices.astype(np.int64), axis % rank)
    return jnp.where(jnp.where(place < 0, place + size, place) == classes, values[1], values[0])


@JAX.op("CenterCropPad")
def center_crop_pad(input_data: Array, shape: Ints, *, axes: tuple[int, ...] | None = None) -> Array:
    axes = tuple(a % input_data.ndim for a in axes) if axes is not None else tuple(range(input_data.ndim))
    widths = [(0, 0, 0)] * input_data.ndim
    for axis, target in zip(axes, shape, strict=True):
        missing = target - input_data.shape[axis]
        low = missing // 2 if missing > 0 else -(-missing // 2)
        widths[axis] = (low, missing - low, 0)
    return lax.pad(input_data, np.zeros((), input_data.dtype), widths)
