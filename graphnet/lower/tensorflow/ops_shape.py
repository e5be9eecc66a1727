"""TensorFlow rules that move data: reshape, transpose, slice, join, pad."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower.table import Context, Ints, Operand, Static
from graphnet.lower.tensorflow.axes import channels_last, places, plain, reshaped, without
from graphnet.lower.tensorflow.layout import (
    Laid,
    along_axis,
    any_layout,
    laid,
    moved,
    order_of,
    raw,
    tensor_of,
)  # fmt: skip
from graphnet.lower.tensorflow.ops import TENSORFLOW, tensorflow_dtype


@TENSORFLOW.op("Reshape", layout=any_layout)
def reshape(data: Tensor, shape: Ints, *, allowzero: int = 0) -> Any:
    wanted = [data.shape[i] if d == 0 and not allowzero else d for i, d in enumerate(shape)]
    if -1 in wanted:
        wanted[wanted.index(-1)] = math.prod(data.shape) // max(-math.prod(wanted), 1)
    return reshape_to(data, tuple(wanted))


def reshape_to(data: Any, shape: tuple[int, ...]) -> Any:
    """A reshape to a static shape, in the order in which the data lies where that is possible."""
    if isinstance(data, Laid):
        order = reshaped(data.shape, shape, data.order)
        if order is not None:
            return laid(tf.reshape(data.tensor, [shape[axis] for axis in order]), order)
    return tf.reshape(tensor_of(data), shape)


@TENSORFLOW.op("Flatten", layout=any_layout)
def flatten(input: Tensor, *, axis: int = 1) -> Any:
    axis = axis + len(input.shape) if axis < 0 else axis
    return reshape_to(input, (math.prod(input.shape[:axis]), math.prod(input.shape[axis:])))


@TENSORFLOW.op("Transpose", layout=any_layout)
def transpose(data: Tensor, *, perm: tuple[int, ...] | None = None) -> Any:
    """Of a value that lies in an order of its own, and to channels first (a convolution may undo it): a new order."""
    rank = len(data.shape)
    perm = tuple(axis % rank for axis in perm) if perm is not None else plain(rank)[::-1]
    if isinstance(data, Laid):
        renamed = places(perm)
        return laid(data.tensor, tuple(renamed[axis] for axis in data.order))
    if rank > 2 and perm == places(channels_last(rank)):
        return Laid(data, channels_last(rank))
    return moved(data, perm)


@TENSORFLOW.op("Squeeze", layout=any_layout)
def squeeze(data: Tensor, axes: Ints | None = None) -> Any:
    rank, order = len(data.shape), order_of(data)
    gone = [a % rank for a in axes] if axes is not None else [a for a in range(rank) if data.shape[a] == 1]
    return laid(
        tf.squeeze(raw(data), [places(order)[axis] for axis in gone]) if gone else raw(data), without(order, gone)
    )


@TENSORFLOW.op("Unsqueeze", layout=any_layout)
def unsqueeze(data: Tensor, axes: Ints) -> Any:
    rank = len(data.shape) + len(axes)
    new = sorted(axis % rank for axis in axes)
    sizes = iter(data.shape)
    return reshape_to(data, tuple(1 if axis in new else next(sizes) for axis in range(rank)))


@TENSORFLOW.op("Expand")
def expand(input: Tensor, shape: Ints) -> Tensor:
    return tf.broadcast_to(input, np.broadcast_shapes(tuple(input.shape), shape))


@TENSORFLOW.op("Tile")
def tile(input: Tensor, repeats: Ints) -> Tensor:
    return tf.tile(input, repeats)


@TENSORFLOW.op("Concat", layout=along_axis)
def concat(*inputs: Tensor, axis: int) -> Tensor:
    return tf.concat(inputs, axis) if len(inputs) > 1 else inputs[0]


@TENSORFLOW.op("Split", layout=along_axis)
def split(
    input: Tensor, split: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, context: Context
) -> tuple[Tensor, ...]:
    if split is None:
        parts, whole = num_outputs or len(context.node.outputs), input.shape[axis]
        size = -(-whole // parts)
        split = tuple(max(0, min(size, whole - size * i)) for i in range(parts))
    return tuple(tf.split(input, split, axis))


@TENSORFLOW.op("Slice", layout=any_layout)
def slice_(data: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Any:
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    rank = len(data.shape)
    index = [slice(None)] * rank
    for given, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = data.shape[given % rank]
        # A far negative end of a backward slice means "before the first", which Python spells None.
        kept = range(size)[slice(start, None if step < 0 and end < -size else end, step)]
        if not len(kept):
            index[given % rank] = slice(0, 0)
        elif kept != range(size):
            stop = kept[-1] + kept.step
            index[given % rank] = slice(kept[0], None if stop < 0 else stop, kept.step)
    if index == [slice(None)] * rank:
        return data
    order = order_of(data)
    return laid(raw(data)[tuple(index[axis] for axis in order)], order)


@TENSORFLOW.op("Pad", layout=any_layout)
def pad(
    data: Tensor,
    pads: Ints,
    constant_value: Operand = None,
    axes: Ints | None = None,
    *,
    mode: str = "constant",
    context: Context,
) -> Any:
    rank = len(data.shape)
    axes = tuple(a % rank for a in axes) if axes is not None else tuple(range(rank))
    widths = [(0, 0)] * rank
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        widths[axis] = (low, high)
    known, order = context.known(2), order_of(data)
    value = constant_value if known is None else known.reshape(()).item()
    return laid(padded(raw(data), [widths[axis] for axis in order], mode, value), order)


def padded(x: Tensor, widths: list[tuple[int, int]], mode: str = "constant", value: Any = None) -> Tensor:
    """Widths (before, after) of each axis; negative ones cut."""
    if any(low < 0 or high < 0 for low, high in widths):
        x = x[tuple(slice(max(0, -low), n + min(0, high)) for n, (low, high) in zip(x.shape, widths, strict=True))]
        widths = [(max(0, low), max(0, high)) for low, high in widths]
    if all(width == (0, 0) for width in widths):
        return x
    if mode == "constant":
        filler = tf.zeros((), x.dtype) if value is None else tf.reshape(tf.convert_to_tensor(value, x.dtype), ())
        return tf.pad(x, widths, constant_values=filler)
    if mode == "reflect" and all(max(width) < n for width, n in zip(widths, x.shape, strict=True)):
        return tf.pad(x, widths, "REFLECT")
    numpy_mode: Any = mode
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = tf.gather(x, np.pad(np.arange(x.shape[axis]), width, mode=numpy_mode), axis=axis)
    return x


@TENSORFLOW.op("DepthToSpace")
def depth_to_space(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = input.shape
    depth, b = c // blocksize**2, blocksize
    if mode == "CRD":
        blocks = tf.transpose(tf.reshape(input, (n, depth, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    else:
        blocks = tf.transpose(tf.reshape(input, (n, b, b, depth, h, w)), (0, 3, 4, 1, 5, 2))
    return tf.reshape(blocks, (n, depth, h * b, w * b))


@TENSORFLOW.op("SpaceToDepth")
def space_to_depth(input: Tensor, *, blocksize: int) -> Tensor:
    (n, c, h, w), b = input.shape, blocksize
    blocks = tf.transpose(tf.reshape(input, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return tf.reshape(blocks, (n, c * b * b, h // b, w // b))


@TENSORFLOW.op("Constant")
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


@TENSORFLOW.op("ConstantOfShape")
def constant_of_shape(input: Ints, *, value: np.ndarray | None = None) -> Tensor:
    filler = np.zeros((), np.float32) if value is None else value.reshape(())
    return tf.fill(input, tf.constant(filler))


@TENSORFLOW.op("Shape", layout=any_layout)
def shape(data: Tensor, *, end: int | None = None, start: int = 0) -> Tensor:
    return tf.constant(np.array(data.shape[start:end], np.int64))


@TENSORFLOW.op("Size", layout=any_layout)
def size(data: Tensor) -> Tensor:
    return tf.constant(math.prod(data.shape), tf.int64)


@TENSORFLOW.op("Range")
def range_(start: Static, limit: Static, delta: Static) -> Tensor:
    return tf.constant(np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype))


@TENSORFLOW.op("EyeLike")
def eye_like(input: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    wanted = tensorflow_dtype(dtype) if dtype is not None else input.dtype
    return tf.cast(tf.constant(np.eye(input.shape[0], input.shape[1], k, dtype=bool)), wanted)


@TENSORFLOW.op("Trilu")
def trilu(input: Tensor, k: Ints | None = None, *, upper: int = 1) -> Tensor:
    rows, columns = input.shape[-2:]
    lower = np.tri(rows, columns, (k[0] if k else 0) - (1 if upper else 0), dtype=bool)
    return tf.where(~lower if upper else lower, input, tf.zeros((), input.dtype))


@TENSORFLOW.op("OneHot")
def one_hot(indices: Tensor, depth: Ints, values: Tensor, *, axis: int = -1) -> Tensor:
    count, rank = depth[0], len(indices.shape) + 1
    classes = np.arange(count).reshape([count if i == axis % rank else 1 for i in range(rank)])
    place = tf.expand_dims(tf.cast(indices, tf.int64), axis % rank)
    return tf.where(tf.where(place < 0, place + count, place) == classes, values[1], values[0])


@TENSORFLOW.op("CenterCropPad")
def center_crop_pad(input_data: Tensor, shape: Ints, *, axes: tuple[int, ...] | None = None) -> Tensor:
    rank = len(input_data.shape)
    axes = tuple(a % rank for a in axes) if axes is not None else tuple(range(rank))
    widths = [(0, 0)] * rank
    for axis, target in zip(axes, shape, strict=True):
        missing = target - input_data.shape[axis]
        low = missing // 2 if missing > 0 else -(-missing // 2)
        widths[axis] = (low, missing - low)
    return padded(input_data, widths)
