"""TensorFlow rules of convolution, channels last, with the kernel laid out as [*spatial, in, out]."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower.tensorflow.axes import channels_last, kernel_order
from graphnet.lower.tensorflow.layout import any_layout, laid, lay, tensor_of
from graphnet.lower.tensorflow.ops import TENSORFLOW
from graphnet.lower.tensorflow.ops_shape import padded
from graphnet.lower.windows import Pads, Sizes, ones, resolve_pads, resolve_transposed_pads


@TENSORFLOW.op("Conv", layout=any_layout)
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
) -> Any:
    del kernel_shape
    return convolve(X, W, B, auto_pad=auto_pad, dilations=dilations, group=group, pads=pads, strides=strides)


def convolve(
    X: Any,
    W: Any,
    B: Any,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: int = 1,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Any:
    """Convolution of any element type, for Conv and its quantised relatives."""
    rank = len(X.shape) - 2
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    size, kernel = tuple(X.shape[2:]), tuple(W.shape[2:])
    padding = resolve_pads(auto_pad, pads, size, kernel, strides, dilations)
    order = channels_last(rank + 2)
    x, w = lay(X, order), lay(W, kernel_order(rank + 2))
    if rank == 1:
        # One-dimensional convolutions are two-dimensional ones of height 1, as in tf.nn.conv1d.
        flat = ((0, *padding[0]), (0, *padding[1]))
        y = tf.squeeze(_conv2d(tf.expand_dims(x, 1), w[None], (strides[0],) * 2, flat, (1, *dilations), group), 1)
    elif rank == 2:
        y = _conv2d(x, w, strides, padding, dilations, group)
    elif rank == 3:
        y = _conv3d(x, w, strides, padding, dilations, group)
    else:
        raise UnsupportedOp(f"TensorFlow convolves over 1 to 3 spatial axes, not {rank}")
    return laid(y if B is None else tf.nn.bias_add(y, tensor_of(B)), order)


def _conv2d(x: Tensor, w: Tensor, strides: Sizes, padding: Pads, dilations: Sizes, group: int) -> Tensor:
    height, width, per_group, outer = w.shape
    square = strides[0] == strides[1] and set(dilations) == {1}
    if group == x.shape[-1] and group > 1 and per_group == 1 and square and x.dtype.is_floating:
        # Padded beforehand: with explicit padding, oneDNN's fusion with a bias ends the process.
        x = padded(x, [(0, 0), *zip(*padding, strict=True), (0, 0)])
        kernel = tf.reshape(w, (height, width, group, outer // group))
        return tf.nn.depthwise_conv2d(x, kernel, (1, *strides, 1), "VALID")
    x, explicit = _padding(x, padding)
    return tf.nn.conv2d(x, w, strides, explicit, dilations=dilations)


def _padding(x: Tensor, padding: Pads) -> tuple[Tensor, Any]:
    """TensorFlow's form, for two axes; padding that cuts is done beforehand."""
    pairs = list(zip(*padding, strict=True))
    if any(low < 0 or high < 0 for low, high in pairs):
        x, pairs = padded(x, [(0, 0), *pairs, (0, 0)]), [(0, 0), (0, 0)]
    if all(pair == (0, 0) for pair in pairs):
        return x, "VALID"
    return x, [[0, 0], *map(list, pairs), [0, 0]]


def _conv3d(x: Tensor, w: Tensor, strides: Sizes, padding: Pads, dilations: Sizes, group: int) -> Tensor:
    x = padded(x, [(0, 0), *zip(*padding, strict=True), (0, 0)])
    parts = zip(tf.split(x, group, -1), tf.split(w, group, -1), strict=True)
    ys = [tf.nn.conv3d(a, b, (1, *strides, 1), "VALID", dilations=(1, *dilations, 1)) for a, b in parts]
    return ys[0] if group == 1 else tf.concat(ys, -1)


@TENSORFLOW.op("ConvTranspose", layout=any_layout)
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
) -> Any:
    """The gradient of a convolution; its kernel is [*spatial, out, in], which is `kernel_order` of ONNX's."""
    del kernel_shape
    rank, kernel, size = len(X.shape) - 2, tuple(W.shape[2:]), tuple(X.shape[2:])
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    extra = tuple(output_padding) if output_padding else (0,) * rank
    cut = resolve_transposed_pads(auto_pad, pads, output_shape, size, kernel, strides, dilations, extra)
    order = channels_last(rank + 2)
    x, w = lay(X, order), lay(W, kernel_order(rank + 2))
    if rank == 1:
        y = tf.squeeze(
            _transposed(
                tf.expand_dims(x, 1), w[None], (1, *strides), (1, *dilations), ((0, *cut[0]), (0, *cut[1])),
                (0, *extra), group,
            ),
            1,
        )  # fmt: skip
    elif rank in (2, 3):
        y = _transposed(x, w, strides, dilations, cut, extra, group)
    else:
        raise UnsupportedOp(f"TensorFlow convolves over 1 to 3 spatial axes, not {rank}")
    return laid(y if B is None else tf.nn.bias_add(y, tensor_of(B)), order)


def _transposed(x: Tensor, w: Tensor, strides: Sizes, dilations: Sizes, cut: Pads, extra: Sizes, group: int) -> Tensor:
    """`cut` elements less at both ends of the full result, and `extra` at its end."""
    batch, *size, inner = x.shape
    rank, outer = len(size), w.shape[-2]
    axes = zip(size, strides, w.shape[:rank], dilations, strict=True)
    full = [s * (n - 1) + (k - 1) * d + 1 for n, s, k, d in axes]
    gone = [(low, high - o) for low, high, o in zip(*cut, extra, strict=True)]
    explicit = rank == 2 and all(low >= 0 and high >= 0 for low, high in gone)
    if explicit:
        full = [n - low - high for n, (low, high) in zip(full, gone, strict=True)]
    ys = []
    for part, kernel in zip(tf.split(x, group, -1), tf.split(w, group, -1), strict=True):
        shape = (batch, *full, outer)
        if rank == 2:
            pads: Any = [[0, 0], *map(list, gone), [0, 0]] if explicit and any(map(any, gone)) else "VALID"
            ys.append(tf.nn.conv2d_transpose(part, kernel, shape, strides, pads, dilations=dilations))
        else:
            ys.append(tf.nn.conv3d_transpose(part, kernel, shape, strides, "VALID", dilations=dilations))
    del inner
    y = ys[0] if group == 1 else tf.concat(ys, -1)
    return y if explicit else padded(y, [(0, 0), *((-low, -high) for low, high in gone), (0, 0)])
