"""PyTorch rules of neural-network layers: convolution, pooling, normalisation, softmax, attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower.table import Context, Ints
from graphnet.lower.torch.ops import TORCH
from graphnet.lower.windows import Sizes, ones, resolve_pads, resolve_transposed_pads, unpooled, with_ceil

_CONV: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONV_TRANSPOSE: dict[int, Callable[..., Tensor]] = {
    1: F.conv_transpose1d,
    2: F.conv_transpose2d,
    3: F.conv_transpose3d,
}
_MAX_POOL: dict[int, Callable[..., Any]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVG_POOL: dict[int, Callable[..., Tensor]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def pad_spatial(x: Tensor, before: Sizes, after: Sizes, value: float = 0.0) -> Tensor:
    """Explicit padding of the trailing axes, nothing where there is none."""
    if not any(before) and not any(after):
        return x
    pads = [p for low, high in zip(reversed(before), reversed(after), strict=True) for p in (low, high)]
    return F.pad(x, pads, value=value)


@TORCH.op("Conv")
def conv(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    kernel_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    rank = X.ndim - 2
    if rank not in _CONV:
        raise UnsupportedOp(f"convolution over {rank} spatial axes does not exist in PyTorch")
    del kernel_shape
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    before, after = resolve_pads(auto_pad, pads, X.shape[2:], W.shape[2:], strides, dilations)
    if before != after:
        X, before = pad_spatial(X, before, after), (0,) * rank
    return _CONV[rank](X, W, B, strides, before, dilations, group)


@TORCH.op("ConvTranspose")
def conv_transpose(
    X: Tensor,
    W: Tensor,
    B: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    kernel_shape: Sizes | None = None,
    output_padding: Sizes | None = None,
    output_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    rank = X.ndim - 2
    if rank not in _CONV_TRANSPOSE:
        raise UnsupportedOp(f"transposed convolution over {rank} spatial axes does not exist in PyTorch")
    del kernel_shape
    kernel, size = tuple(W.shape[2:]), tuple(X.shape[2:])
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    extra = tuple(output_padding) if output_padding else (0,) * rank
    before, after = resolve_transposed_pads(auto_pad, pads, output_shape, size, kernel, strides, dilations, extra)
    if before == after and min(before) >= 0:
        return _CONV_TRANSPOSE[rank](X, W, B, strides, before, extra, group, dilations)
    whole = _CONV_TRANSPOSE[rank](X, W, B, strides, 0, extra, group, dilations)
    return F.pad(whole, [-p for b, a in zip(reversed(before), reversed(after), strict=True) for p in (b, a)])


@TORCH.op("MaxPool")
def max_pool(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes | None = None,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    storage_order: int = 0,
    strides: Sizes | None = None,
    context: Context,
) -> Any:
    rank = len(kernel_shape)
    if rank not in _MAX_POOL:
        raise UnsupportedOp(f"max pooling over {rank} spatial axes does not exist in PyTorch")
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    size = tuple(X.shape[2:])
    before, after = resolve_pads(auto_pad, pads, size, kernel_shape, strides, dilations)
    wants_indices = context.wants(1)
    data, shift = X, before
    if before != after or any(2 * p > k for p, k in zip(before, kernel_shape, strict=True)):
        lowest = float("-inf") if X.is_floating_point() else torch.iinfo(X.dtype).min
        data, before = pad_spatial(X, before, after, lowest), (0,) * rank
    pooled = _MAX_POOL[rank](
        data, kernel_shape, strides, before, dilations, bool(ceil_mode), return_indices=wants_indices
    )
    if not wants_indices:
        return pooled
    values, indices = pooled
    offset = shift if data is not X else (0,) * rank
    return values, _onnx_indices(indices, tuple(data.shape[2:]), size, offset, tuple(X.shape[:2]), storage_order)


def _onnx_indices(indices: Tensor, padded: Sizes, size: Sizes, shift: Sizes, outer: Sizes, column_major: int) -> Tensor:
    """PyTorch counts within one padded plane; ONNX over the whole unpadded tensor."""
    if padded != size or column_major:
        coordinates = []
        for extent, low in zip(reversed(padded), reversed(shift), strict=True):
            coordinates.append(indices % extent - low)
            indices = indices // extent
        order = zip(reversed(coordinates), size, strict=True)
        indices = torch.zeros(indices.shape, dtype=torch.int64)
        for coordinate, extent in reversed(list(order)) if column_major else order:
            indices = indices * extent + coordinate
    planes = torch.arange(outer[0] * outer[1]).reshape(outer + (1,) * len(size))
    return indices + planes * math.prod(size)


def windows(x: Tensor, kernel: Sizes, strides: Sizes, dilations: Sizes) -> Tensor:
    """Sliding windows over the trailing axes: [N, C, out..., kernel...]."""
    first = x.ndim - len(kernel)
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        x = x.unfold(first + axis, (k - 1) * d + 1, s)
        x = x[..., ::d] if d > 1 else x
    return x


@TORCH.op("AveragePool")
def average_pool(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sizes | None = None,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    rank = len(kernel_shape)
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    before, after = resolve_pads(auto_pad, pads, X.shape[2:], kernel_shape, strides, dilations)
    direct = before == after and set(dilations) == {1} and rank in _AVG_POOL
    if direct and all(2 * p <= k for p, k in zip(before, kernel_shape, strict=True)):
        return _AVG_POOL[rank](X, kernel_shape, strides, before, bool(ceil_mode), bool(count_include_pad))
    total = _window_sum(X, before, after, kernel_shape, strides, dilations, ceil_mode)
    counted = torch.ones((1, 1, *X.shape[2:]), dtype=X.dtype)
    if count_include_pad:
        counted, before, after = pad_spatial(counted, before, after, 1.0), (0,) * rank, (0,) * rank
    return total / _window_sum(counted, before, after, kernel_shape, strides, dilations, ceil_mode)


def _window_sum(
    x: Tensor, before: Sizes, after: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, ceil_mode: int
) -> Tensor:
    if ceil_mode:
        before, after = with_ceil((before, after), x.shape[2:], kernel, strides, dilations)
    dims = tuple(range(-len(kernel), 0))
    return windows(pad_spatial(x, before, after), kernel, strides, dilations).sum(dims)


@TORCH.op("LpPool")
def lp_pool(
    X: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes | None = None,
    kernel_shape: Sizes,
    p: int = 2,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    rank = len(kernel_shape)
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    before, after = resolve_pads(auto_pad, pads, X.shape[2:], kernel_shape, strides, dilations)
    powers = torch.abs(X) ** p
    total = _window_sum(powers, before, after, kernel_shape, strides, dilations, ceil_mode)
    return total ** (1.0 / p)


def _spatial(x: Tensor) -> Sizes:
    return tuple(range(2, x.ndim))


@TORCH.op("GlobalAveragePool")
def global_average_pool(X: Tensor) -> Tensor:
    return torch.mean(X, _spatial(X), keepdim=True)


@TORCH.op("GlobalMaxPool")
def global_max_pool(X: Tensor) -> Tensor:
    return torch.amax(X, _spatial(X), keepdim=True)


@TORCH.op("GlobalLpPool")
def global_lp_pool(X: Tensor, *, p: int = 2) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(X, p, _spatial(X), keepdim=True)
    return norm


@TORCH.op("MaxUnpool")
def max_unpool(
    X: Tensor,
    I: Tensor,  # noqa: E741 - ONNX's own name
    output_shape: Ints | None = None,
    *,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    shape = (*X.shape[:2], *unpooled(X.shape[2:], kernel_shape, pads, strides))
    flat = torch.zeros(math.prod(shape), dtype=X.dtype).scatter(0, I.reshape(-1), X.reshape(-1)).reshape(shape)
    if output_shape is None or output_shape == shape:
        return flat
    return F.pad(flat, [p for n, t in zip(reversed(shape), reversed(output_shape), strict=True) for p in (0, t - n)])


@TORCH.op("Softmax")
def softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    return F.softmax(input, axis)


@TORCH.op("LogSoftmax")
def log_softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    return F.log_softmax(input, axis)


@TORCH.op("Hardmax")
def hardmax(input: Tensor, *, axis: int = -1) -> Tensor:
    first = torch.argmax(input, axis, keepdim=True)
    return torch.zeros_like(input).scatter(axis, first, 1.0)
