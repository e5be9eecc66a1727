"""TensorFlow rules of pooling, channels last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower.table import Context, Ints
from graphnet.lower.tensorflow.axes import channels_last
from graphnet.lower.tensorflow.layout import any_layout, laid, lay
from graphnet.lower.tensorflow.ops import TENSORFLOW
from graphnet.lower.tensorflow.ops_reduce import reduced
from graphnet.lower.tensorflow.ops_shape import padded
from graphnet.lower.windows import Sizes, pool, unpooled

_POOLED = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


class Window:
    """A pooling window over the spatial axes of `X`, its attributes resolved."""

    def __init__(
        self, X: Any, kernel_shape: Sizes, auto_pad: str, ceil_mode: int,
        dilations: Sizes | None, pads: Sizes | None, strides: Sizes | None,
    ) -> None:  # fmt: skip
        self.pool = pool(
            tuple(X.shape[2:]), kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
            dilations=dilations, pads=pads, strides=strides,
        )  # fmt: skip
        self.order = channels_last(len(kernel_shape) + 2)
        self.x = lay(X, self.order)

    def _padded(self, value: Any) -> Tensor:
        return padded(self.x, [(0, 0), *self.pool.padding, (0, 0)], value=value)

    def _native(self) -> bool:
        """Whether TensorFlow has an operator for it."""
        return len(self.pool.kernel) <= 3 and set(self.pool.dilations) == {1} and self.x.dtype in _POOLED

    def max(self) -> Any:
        """Largest element under each window."""
        x = self._padded(lowest(self.x.dtype))
        if not self._native():
            return laid(self._slices(x, tf.maximum), self.order)
        return laid(self._pool(x, tf.nn.max_pool2d, tf.nn.max_pool3d), self.order)

    def sum(self, x: Tensor) -> Tensor:
        """Sum under each window of a tensor that is padded already."""
        if not self._native():
            return self._slices(x, tf.add)
        return self._pool(x, tf.nn.avg_pool2d, tf.nn.avg_pool3d) * math.prod(self.pool.kernel)

    def mean(self, *, include_pad: bool) -> Any:
        """Mean under each window; stated padding counts as elements only where asked, that of ceil mode never."""
        counts, x = self.pool.counts(include_pad=include_pad), self._padded(None)
        if self._native() and bool((counts == math.prod(self.pool.kernel)).all()):
            return laid(self._pool(x, tf.nn.avg_pool2d, tf.nn.avg_pool3d), self.order)
        return laid(self.sum(x) / tf.constant(counts[..., None], x.dtype), self.order)

    def norm(self, p: int) -> Any:
        """The p-norm of each window."""
        return laid(self.sum(tf.abs(self._padded(None)) ** p) ** (1.0 / p), self.order)

    def _pool(self, x: Tensor, flat: Callable[..., Tensor], deep: Callable[..., Tensor]) -> Tensor:
        if len(self.pool.kernel) == 1:
            return tf.squeeze(flat(tf.expand_dims(x, 1), (1, *self.pool.kernel), (1, *self.pool.strides), "VALID"), 1)
        return (flat if len(self.pool.kernel) == 2 else deep)(x, self.pool.kernel, self.pool.strides, "VALID")

    def taps(self, x: Any) -> list[Any]:
        """What each element of the kernel meets at every position of the window, in row-major order."""
        spans = [(k - 1) * d + 1 for k, d in zip(self.pool.kernel, self.pool.dilations, strict=True)]
        counts = [(n - span) // s + 1 for n, span, s in zip(x.shape[1:-1], spans, self.pool.strides, strict=True)]
        axes = list(zip(counts, self.pool.strides, self.pool.dilations, strict=True))
        return [
            x[
                (
                    slice(None),
                    *(slice(t * d, t * d + (c - 1) * s + 1, s) for t, (c, s, d) in zip(tap, axes, strict=True)),
                )
            ]
            for tap in itertools.product(*map(range, self.pool.kernel))
        ]

    def _slices(self, x: Tensor, operation: Callable[..., Tensor]) -> Tensor:
        first, *rest = self.taps(x)
        for tap in rest:
            first = operation(first, tap)
        return first

    def argmax(self, column_major: bool) -> tuple[Any, Any]:
        """Largest elements and their positions in the flattened ONNX tensor; the first of equals."""
        batch, *_, channels = self.x.shape
        plane = np.arange(math.prod(self.pool.size)).reshape(self.pool.size, order="F" if column_major else "C")
        image = np.arange(batch * channels).reshape(batch, channels) * plane.size
        places = image.reshape(batch, *(1,) * plane.ndim, channels) + plane[..., None]
        widths = [(0, 0), *self.pool.padding, (0, 0)]
        values = self.taps(self._padded(lowest(self.x.dtype)))
        indices = [tf.constant(tap, tf.int64) for tap in self.taps(np.pad(places, widths))]
        best, where = values[0], indices[0]
        for value, index in zip(values[1:], indices[1:], strict=True):
            where = tf.where(value > best, index, where)
            best = tf.maximum(best, value)
        return laid(best, self.order), laid(where, self.order)


def lowest(dtype: tf.DType) -> Any:
    """The identity of max: minus infinity, or the smallest integer."""
    return float("-inf") if dtype.is_floating else dtype.min


@TENSORFLOW.op("MaxPool", layout=any_layout)
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
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    return window.argmax(bool(storage_order)) if context.wants(1) else window.max()


@TENSORFLOW.op("AveragePool", layout=any_layout)
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
) -> Any:
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    return window.mean(include_pad=bool(count_include_pad))


@TENSORFLOW.op("LpPool", layout=any_layout)
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
) -> Any:
    window = Window(X, kernel_shape, auto_pad, ceil_mode, dilations, pads, strides)
    return window.norm(p)


def _spatial(x: Any) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


@TENSORFLOW.op("GlobalAveragePool", layout=any_layout)
def global_average_pool(X: Tensor) -> Any:
    return reduced("ReduceMean", X, _spatial(X), True)


@TENSORFLOW.op("GlobalMaxPool", layout=any_layout)
def global_max_pool(X: Tensor) -> Any:
    return reduced("ReduceMax", X, _spatial(X), True)


@TENSORFLOW.op("GlobalLpPool")
def global_lp_pool(X: Tensor, *, p: int = 2) -> Tensor:
    return tf.reduce_sum(tf.abs(X) ** p, _spatial(X), True) ** (1.0 / p)


@TENSORFLOW.op("MaxUnpool")
def max_unpool(
    X: Tensor,
    I: Tensor,  # noqa: E741 - ONNX's own name
    output_shape: Ints | None = None,
    *,
    kernel_shape: Sizes,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    shape = (*X.shape[:2], *unpooled(tuple(X.shape[2:]), kernel_shape, pads, strides))
    flat = tf.scatter_nd(tf.reshape(I, (-1, 1)), tf.reshape(X, (-1,)), tf.constant([math.prod(shape)], tf.int64))
    whole = tf.reshape(flat, shape)
    if output_shape is None or tuple(output_shape) == shape:
        return whole
    return padded(whole, [(0, wanted - n) for n, wanted in zip(shape, output_shape, strict=True)])
