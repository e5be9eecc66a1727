"""TensorFlow rules of quantisation: scales, zero points and integer products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower.table import Context
from graphnet.lower.tensorflow.layout import tensor_of
from graphnet.lower.tensorflow.ops import INT4, TENSORFLOW, UINT4, convert, is_float, tensorflow_dtype
from graphnet.lower.tensorflow.ops_nn import convolve


def _aligned(parameter: Tensor, x: Tensor, axis: int, block_size: int = 0) -> Tensor:
    """A scale or zero point brought to a shape that broadcasts against x: per tensor, per axis or blocked."""
    if math.prod(parameter.shape) == 1:
        return tf.reshape(parameter, ())
    rank = len(x.shape)
    axis = axis % rank
    if block_size:
        blocks = np.arange(x.shape[axis]) // block_size
        return tf.gather(parameter, blocks, axis=axis)
    return tf.reshape(parameter, [x.shape[axis] if i == axis else 1 for i in range(rank)])


@TENSORFLOW.op("QuantizeLinear")
def quantize_linear(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    context: Context,
) -> Tensor:
    dtype = tensorflow_dtype(context.type_of(context.node.outputs[0]).dtype)
    del output_dtype
    scale = _aligned(y_scale, x, axis, block_size)
    if precision:
        x, scale = tf.cast(x, tensorflow_dtype(precision)), tf.cast(scale, tensorflow_dtype(precision))
    scaled = x / tf.cast(scale, x.dtype) if is_float(x) else tf.cast(x, tf.float32) / tf.cast(scale, tf.float32)
    if dtype.is_floating:
        return convert(scaled, dtype, saturate=saturate)
    rounded = tf.round(scaled)
    if y_zero_point is not None:
        rounded = rounded + tf.cast(_aligned(_wide(y_zero_point), x, axis, block_size), rounded.dtype)
    return _saturated(rounded, dtype)


def _wide(x: Tensor) -> Tensor:
    """4-bit integers as 32-bit ones, which every operator takes."""
    return tf.cast(x, tf.int32) if x.dtype in (INT4, UINT4) else x


def _saturated(x: Tensor, dtype: tf.DType) -> Tensor:
    limits = {INT4: (-8, 7), UINT4: (0, 15)}.get(dtype) or (dtype.min, dtype.max)
    return convert(tf.clip_by_value(x, float(limits[0]), float(limits[1])), dtype)


@TENSORFLOW.op("DequantizeLinear")
def dequantize_linear(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    wide = tf.float64 if x_scale.dtype == tf.float64 else tf.float32
    value = tf.cast(x, wide)
    if x_zero_point is not None:
        value = value - _aligned(tf.cast(x_zero_point, wide), x, axis, block_size)
    scaled = value * _aligned(tf.cast(x_scale, wide), x, axis, block_size)
    return tf.cast(scaled, tensorflow_dtype(output_dtype) if output_dtype else x_scale.dtype)


@TENSORFLOW.op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    highest, lowest = tf.maximum(tf.reduce_max(x), 0), tf.minimum(tf.reduce_min(x), 0)
    scale = tf.where(tf.equal(highest, lowest), tf.ones((), x.dtype), highest - lowest) / 255
    zero_point = tf.round(tf.clip_by_value(-lowest / scale, 0, 255))
    y = tf.clip_by_value(tf.round(x / scale) + zero_point, 0, 255)
    return tf.cast(y, tf.uint8), scale, tf.cast(zero_point, tf.uint8)


def _centred(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """x minus its zero point as int32; a zero point of x's own rank (one per row or column) is left as it is."""
    value = tf.cast(x, tf.int32)
    if zero_point is None:
        return value
    point = tf.cast(zero_point, tf.int32)
    return value - (point if len(point.shape) > 1 else _aligned(point, x, axis))


@TENSORFLOW.op("MatMulInteger")
def matmul_integer(
    A: Tensor, B: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    return tf.linalg.matmul(_centred(A, a_zero_point, -2), _centred(B, b_zero_point, -1))


@TENSORFLOW.op("ConvInteger")
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Any:
    del kernel_shape
    return convolve(
        _centred(x, x_zero_point, 1),
        _centred(w, w_zero_point, 0),
        None,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )


def _requantized(total: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    shifted = tf.round(tf.cast(total, scale.dtype) * scale) + tf.cast(zero_point, scale.dtype)
    return _saturated(shifted, zero_point.dtype)


@TENSORFLOW.op("QLinearMatMul")
def qlinear_matmul(
    a: Tensor,
    a_scale: Tensor,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
) -> Tensor:
    total = tf.linalg.matmul(_centred(a, a_zero_point, -2), _centred(b, b_zero_point, -1))
    return _requantized(total, tf.cast(a_scale * b_scale / y_scale, tf.float32), y_zero_point)


@TENSORFLOW.op("QLinearConv")
def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    del kernel_shape
    total = tensor_of(
        convolve(
            _centred(x, x_zero_point, 1),
            _centred(w, w_zero_point, 0),
            B,
            auto_pad=auto_pad,
            dilations=dilations,
            group=group,
            pads=pads,
            strides=strides,
        )
    )
    return _requantized(total, x_scale * _aligned(w_scale, total, 1) / y_scale, y_zero_point)
