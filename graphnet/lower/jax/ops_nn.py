"""JAX rules of convolution and pooling, channels second as in ONNX (`layout` brings them last afterwards)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.lower.jax.ops import JAX
from graphnet.lower.table import Context, Ints
from graphnet.lower.windows import AxisPads, Pads, Sizes, ones, pool, resolve_pads, resolve_transposed_pads, unpooled


def _by_axis(pads: Pads) -> AxisPads:
    """JAX's form: (before, after) of each axis."""
    return tuple(zip(*pads, strict=True))


def spatial_axes(x: Array) -> Sizes:
    """All axes but batch and channel."""
    return tuple(range(2, x.ndim))


def per_channel(x: Array, rank: int) -> Array:
    """A vector over channels, shaped to broadcast against [batch, channel, spatial...] of this rank."""
    return x.reshape(-1, *(1,) * (rank - 2))


@JAX.op("Conv")
def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    kernel_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    del kernel_shape
    return convolve(X, W, B, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)


def convolve(
    X: Array,
    W: Array,
    B: Array | None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    """Convolution of any element type, for Conv and its quantised relatives."""
    rank = X.ndim - 2
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    padding = _by_axis(resolve_pads(auto_pad, pads, X.shape[2:], W.shape[2:], strides, dilations))
    Y = lax.conv_general_dilated(X, W, strides, padding, rhs_dilation=dilations, feature_group_count=group)
    return Y if B is None else Y + per_channel(B, X.ndim)


@JAX.op("ConvTranspose")
def conv_transpose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    kernel_shape: Sizes | None = None,
    output_padding: Sizes | None = None,
    output_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    """A convolution over the input dilated by the strides, with the kernel flipped and its channels exchanged."""
    del kernel_shape
    rank, kernel, size = X.ndim - 2, W.shape[2:], X.shape[2:]
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    extra = tuple(output_padding) if output_padding else (0,) * rank
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    cut = resolve_transposed_pads(auto_pad, pads, output_shape, size, kernel, strides, dilations, extra)
    axes = zip(spans, *cut, extra, strict=True)
    padding = [(span - 1 - low, span - 1 - high + o) for span, low, high, o in axes]
    inner, outer = W.shape[:2]
    kernels = jnp.flip(W, tuple(range(2, W.ndim))).reshape(group, inner // group, outer, *kernel)
    kernels = jnp.swapaxes(kernels, 1, 2).reshape(group * outer, inner // group, *kernel)
    Y = lax.conv_general_dilated(
        X, kernels, (1,) * rank, padding, lhs_dilation=strides, rhs_dilation=dilations, feature_group_count=group
    )
    return Y if B is None else Y + per_channel(B, X.ndim)


class Window:
    """A pooling window over the spatial axes of `X`, its attributes resolved."""

    def __init__(
        self, X: Array, kernel_shape: Sizes, auto_pad: str, ceil_mode: int,
        dilations: Sizes | None, pads: Sizes | None, strides: Sizes | None,
    ) -> None:  # fmt: skip
        self.pool = pool(
            X.shape[2:], kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
            dilations=dilations, pads=pads, strides=strides,
        )  # fmt: skip

    def reduce(self, x: Any, initial: Any, operation: Callable[..., Any]) -> Any:
        """`lax.reduce_window` of one array or a tuple of them."""
        return lax.reduce_window(
            x,
            initial,
            operation,
            (1, 1, *self.pool.kernel),
            (1, 1, *self.pool.strides),
            ((0, 0), (0, 0), *self.pool.padding),
            window_dilation=(1, 1, *self.pool.dilations),
        )

    def sum(self, x: Array) -> Array:
        """Sum under each window; padding counts as zero."""
        total: Array = self.reduce(x, np.zeros((), x.dtype), lax.add)
        return total

    def max(self, x: Array) -> Array:
        """Largest element under each window."""
        largest: Array = self.reduce(x, lowest(x), lax.max)
        return largest

    def mean(self, x: Array, *, include_pad: bool) -> Array:
        """Mean under each window; stated padding counts as elements only where asked, that of ceil mode never."""
        counts = self.pool.counts(include_pad=include_pad)
        same = counts.size == 0 or bool((counts == counts.flat[0]).all())
        if same:
            return self.sum(x) / (float(counts.flat[0]) if counts.size else 1.0)
        return self.sum(x) / counts.astype(x.dtype)


def lowest(x: Array) -> np.ndarray:
    """The identity of max: minus infinity, or the smallest integer."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    if floating:
        return np.asarray(-np.inf, x.dtype)
    return np.asarray(jnp.iinfo(x.dtype).min, x.dtype)  # type: ignore[no-untyped-call]


@JAX.op("MaxPool")
def max_pool(
    X: Array,
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
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    if not context.wants(1):
        return window.max(X)
    plane = np.arange(math.prod(X.shape[2:])).reshape(X.shape[2:], order="F" if storage_order else "C")
    offsets = np.arange(math.prod(X.shape[:2])).reshape(*X.shape[:2], *(1,) * plane.ndim) * plane.size
    none = np.asarray(np.iinfo(np.int64).max)
    return window.reduce((X, jnp.asarray(offsets + plane)), (lowest(X), none), _first_largest)


def _first_largest(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    keep = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(keep, a[0], b[0]), jnp.where(keep, a[1], b[1])


@JAX.op("AveragePool")
def average_pool(
    X: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sizes | None = None,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    return window.mean(X, include_pad=bool(count_include_pad))


@JAX.op("LpPool")
def lp_pool(
    X: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes | None = None,
    kernel_shape: Sizes,
    p: int = 2,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    return window.sum(jnp.abs(X) ** p) ** (1.0 / p)


@JAX.op("GlobalAveragePool")
def global_average_pool(X: Array) -> Array:
    return jnp.mean(X, spatial_axes(X), keepdims=True)


@JAX.op("GlobalMaxPool")
def global_max_pool(X: Array) -> Array:
    return jnp.max(X, spatial_axes(X), keepdims=True)


@JAX.op("GlobalLpPool")
def global_lp_pool(X: Array, *, p: int = 2) -> Array:
    return jnp.sum(jnp.abs(X) ** p, spatial_axes(X), keepdims=True) ** (1.0 / p)


@JAX.op("MaxUnpool")
def max_unpool(
    X: Array,
    I: Array,  # noqa: E741 - ONNX's own name
    output_shape: Ints | None = None,
    *,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Array:
    shape = (*X.shape[:2], *unpooled(X.shape[2:], kernel_shape, pads, strides))
    whole = jnp.zeros(math.prod(shape), X.dtype).at[I.reshape(-1)].set(X.reshape(-1)).reshape(shape)
    if output_shape is None or tuple(output_shape) == shape:
        return whole
    return jnp.pad(whole, [(0, wanted - n) for n, wanted in zip(shape, output_shape, strict=True)])
