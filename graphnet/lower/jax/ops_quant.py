"""JAX rules of quantisation: scales, zero points and integer products."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from graphnet.lower.jax.ops import JAX, convert, is_float, jax_dtype
from graphnet.lower.jax.ops_nn import convolve
from graphnet.lower.table import Context


def _aligned(parameter: Array, x: Array, axis: int, block_size: int = 0) -> Array:
    """A scale or zero point brought to a shape that broadcasts against x: per tensor, per axis or blocked."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = axis % x.ndim
    if block_size:
        return jnp.repeat(parameter, block_size, axis)[(slice(None),) * axis + (slice(x.shape[axis]),)]
    return parameter.reshape([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])


@JAX.op("QuantizeLinear")
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    context: Context,
) -> Array:
    dtype = jax_dtype(context.type_of(context.node.outputs[0]).dtype)
    del output_dtype
    scale = _aligned(y_scale, x, axis, block_size)
    if precision:
        x, scale = x.astype(jax_dtype(precision)), scale.astype(jax_dtype(precision))
    scaled = x / scale if is_float(x) else x.astype(np.float32) / scale.astype(np.float32)
    if not jnp.issubdtype(dtype, jnp.integer):
        return convert(scaled, dtype, saturate=saturate)
    rounded = jnp.round(scaled)
    if y_zero_point is not None:
        rounded = rounded + _aligned(y_zero_point, x, axis, block_size).astype(rounded.dtype)
    return _saturated(rounded, dtype)


def _saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    limits = jnp.iinfo(dtype)  # type: ignore[no-untyped-call]
    return convert(jnp.clip(x, int(limits.min), int(limits.max)), dtype)


@JAX.op("DequantizeLinear")
def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    wide = np.promote_types(x_scale.dtype, np.float32) if x_scale.dtype == np.float64 else np.dtype(np.float32)
    value = x.astype(wide)
    if x_zero_point is not None:
        value = value - _aligned(x_zero_point, x, axis, block_size).astype(wide)
    scaled = value * _aligned(x_scale, x, axis, block_size).astype(wide)
    return scaled.astype(jax_dtype(output_dtype) if output_dtype else x_scale.dtype)


@JAX.op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    highest, lowest = jnp.maximum(jnp.max(x), 0), jnp.minimum(jnp.min(x), 0)
    scale = jnp.where(highest == lowest, 1, highest - lowest) / 255
    zero_point = jnp.round(jnp.clip(-lowest / scale, 0, 255))
    y = jnp.clip(jnp.round(x / scale) + zero_point, 0, 255)
    return y.astype(np.uint8), scale, zero_point.astype(np.uint8)


def _centred(x: Array, zero_point: Array | None, axis: int) -> Array:
    """x minus its zero point as int32; a zero point of x's own rank (one per row or column) is left as it is."""
    value = x.astype(np.int32)
    if zero_point is None:
        return value
    point = zero_point.astype(np.int32)
    return value - (point if point.ndim > 1 else _aligned(point, x, axis))


@JAX.op("MatMulInteger")
def matmul_integer(A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    return jnp.matmul(_centred(A, a_zero_point, -2), _centred(B, b_zero_point, -1))


@JAX.op("ConvInteger")
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
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


def _requantized(total: Array, scale: Array, zero_point: Array) -> Array:
    shifted = jnp.round(total.astype(scale.dtype) * scale) + zero_point.astype(scale.dtype)
    return _saturated(shifted, zero_point.dtype)


@JAX.op("QLinearMatMul")
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    total = jnp.matmul(_centred(a, a_zero_point, -2), _centred(b, b_zero_point, -1))
    return _requantized(total, (a_scale * b_scale / y_scale).astype(np.float32), y_zero_point)


@JAX.op("QLinearConv")
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    del kernel_shape
    total = convolve(
        _centred(x, x_zero_point, 1),
        _centred(w, w_zero_point, 0),
        B,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        pads=pads,
        strides=strides,
    )
    return _requantized(total, x_scale * _aligned(w_scale, total, 1) / y_scale, y_zero_point)
