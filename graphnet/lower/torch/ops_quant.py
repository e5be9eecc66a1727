"""PyTorch rules of quantisation: scales, zero points and integer products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphnet.lower.table import Context
from graphnet.lower.torch.ops import TORCH, convert
from graphnet.lower.torch.ops_nn import conv
from graphnet.lower.torch.tensors import torch_dtype

_RANGES = {
    "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
    "uint4": (0, 15), "int4": (-8, 7), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip


def _aligned(parameter: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """A scale or zero point brought to a shape that broadcasts against x: per tensor, per axis or blocked."""
    if parameter.numel() == 1:
        return parameter.reshape(())
    axis = axis % x.ndim
    if block_size:
        return parameter.repeat_interleave(block_size, axis).narrow(axis, 0, x.shape[axis])
    return parameter.reshape([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])


@TORCH.op("QuantizeLinear")
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
    name = context.type_of(context.node.outputs[0]).dtype
    del output_dtype
    scale = _aligned(y_scale, x, axis, block_size)
    if precision:
        x, scale = x.to(torch_dtype(precision)), scale.to(torch_dtype(precision))
    scaled = x.to(torch.float32) / scale.to(torch.float32) if not x.is_floating_point() else x / scale
    if name not in _RANGES:
        return convert(scaled, name, saturate=saturate)
    rounded = torch.round(scaled)
    if y_zero_point is not None:
        rounded = rounded + _aligned(y_zero_point, x, axis, block_size).to(rounded.dtype)
    return torch.clamp(rounded, *_RANGES[name]).to(torch_dtype(name))


@TORCH.op("DequantizeLinear")
def dequantize_linear(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    wide = torch.float64 if x_scale.dtype == torch.float64 else torch.float32
    value = x.to(wide)
    if x_zero_point is not None:
        value = value - _aligned(x_zero_point, x, axis, block_size).to(wide)
    scaled = value * _aligned(x_scale, x, axis, block_size)
    return scaled.to(torch_dtype(output_dtype) if output_dtype else x_scale.dtype)


@TORCH.op("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, ...]:
    highest, lowest = torch.clamp(torch.amax(x), min=0.0), torch.clamp(torch.amin(x), max=0.0)
    scale = torch.where(highest == lowest, 1.0, highest - lowest).to(x.dtype) / 255
    zero_point = torch.round(torch.clamp(-lowest / scale, 0.0, 255.0))
    y = torch.clamp(torch.round(x / scale) + zero_point, 0.0, 255.0)
    return y.to(torch.uint8), scale, zero_point.to(torch.uint8)


def _centred(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    value = x.to(torch.int32)
    if zero_point is None:
        return value
    return value - _aligned(zero_point.to(torch.int32), x, axis, 0)


def _row_centred(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """As `_centred`, with zero points of the operand's own rank (one per row or column) left as they are."""
    if zero_point is not None and zero_point.ndim > 1:
        return x.to(torch.int32) - zero_point.to(torch.int32)
    return _centred(x, zero_point, axis)


@TORCH.op("MatMulInteger")
def matmul_integer(
    A: Tensor, B: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    return torch.matmul(_row_centred(A, a_zero_point, -2), _row_centred(B, b_zero_point, -1))


@TORCH.op("ConvInteger")
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
) -> Tensor:
    options: dict[str, Any] = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads}
    del kernel_shape
    return _exact_conv(_centred(x, x_zero_point, 1), _centred(w, w_zero_point, 0), None, strides=strides, **options)


def _exact_conv(x: Tensor, w: Tensor, bias: Tensor | None, **options: Any) -> Tensor:
    """Integer convolution through float64, exact below 2^53."""
    wide = None if bias is None else bias.to(torch.float64)
    total: Tensor = conv(x.to(torch.float64), w.to(torch.float64), wide, **options)
    return total.to(torch.int32)


def _requantized(total: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    limits = torch.iinfo(zero_point.dtype)
    shifted = torch.round(total.to(scale.dtype) * scale) + zero_point.to(scale.dtype)
    return torch.clamp(shifted, limits.min, limits.max).to(zero_point.dtype)


@TORCH.op("QLinearMatMul")
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
    total = torch.matmul(_row_centred(a, a_zero_point, -2), _row_centred(b, b_zero_point, -1))
    return _requantized(total, (a_scale * b_scale / y_scale).to(torch.float32), y_zero_point)


@TORCH.op("QLinearConv")
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
    options: dict[str, Any] = {"auto_pad": auto_pad, "dilations": dilations, "group": group, "pads": pads}
    del kernel_shape
    total = _exact_conv(_centred(x, x_zero_point, 1), _centred(w, w_zero_point, 0), B, strides=strides, **options)
    return _requantized(total, x_scale * _aligned(w_scale, total, 1, 0) / y_scale, y_zero_point)
