"""TensorFlow rules of linear algebra, normalisation and attention.

Statistics of float16 and bfloat16 data are taken in float32 where the operator states so (`stash_type`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower.tensorflow.axes import channels_last, places, plain
from graphnet.lower.tensorflow.layout import Laid, any_layout, laid, lay, order_of, raw, tensor_of
from graphnet.lower.tensorflow.ops import TENSORFLOW, tensorflow_dtype

_EPSILON = 9.999999747378752e-06
_FUSED = (tf.float32,)
"""Types whose statistics FusedBatchNorm keeps as they are."""


@TENSORFLOW.op("MatMul", layout=any_layout)
def matmul(A: Tensor, B: Tensor) -> Tensor:
    """Operands that only have their last two axes exchanged are multiplied as they lie."""
    ranks = len(A.shape), len(B.shape)
    if min(ranks) == 1:
        a, b = tensor_of(A), tensor_of(B)
        product = tf.linalg.matmul(a[None] if ranks[0] == 1 else a, b[:, None] if ranks[1] == 1 else b)
        return tf.squeeze(product, [-2 + side for side in (0, 1) if ranks[side] == 1])
    if ranks[0] > 2 and ranks[1] == 2:
        a, b = tensor_of(A), B.tensor if isinstance(B, Laid) else B
        rows = tf.reshape(a, (-1, a.shape[-1])) if 0 not in a.shape else tf.reshape(a, (0, a.shape[-1]))
        return tf.reshape(tf.linalg.matmul(rows, b, transpose_b=isinstance(B, Laid)), (*a.shape[:-1], B.shape[-1]))
    (a, swapped_a), (b, swapped_b) = _as_it_lies(A), _as_it_lies(B)
    return tf.linalg.matmul(a, b, transpose_a=swapped_a, transpose_b=swapped_b)


def _as_it_lies(x: Any) -> tuple[Tensor, bool]:
    rank = len(x.shape)
    if isinstance(x, Laid) and x.order == (*range(rank - 2), rank - 1, rank - 2):
        return x.tensor, True
    return tensor_of(x), False


@TENSORFLOW.op("Gemm")
def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    y = tf.linalg.matmul(A, B, transpose_a=bool(transA), transpose_b=bool(transB))
    # Integer matrices keep their type: the factors are floats.
    y = y if alpha == 1 else _scaled(y, alpha)
    if C is None or beta == 0:
        return y
    return y + (C if beta == 1 else _scaled(C, beta))


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor if x.dtype.is_floating else tf.cast(tf.cast(x, tf.float64) * factor, x.dtype)


@TENSORFLOW.op("Einsum")
def einsum(*Inputs: Tensor, equation: str) -> Tensor:
    return tf.einsum(equation.replace(" ", ""), *Inputs)


def _per_channel(vector: Tensor, rank: int) -> Tensor:
    """A vector over channels, shaped to broadcast against [batch, channel, spatial...] of this rank."""
    return tf.reshape(vector, (-1, *(1,) * (rank - 2)))


@TENSORFLOW.op("BatchNormalization", layout=any_layout)
def batch_normalization(
    X: Tensor,
    scale: Tensor,
    B: Tensor,
    input_mean: Tensor,
    input_var: Tensor,
    *,
    epsilon: float = _EPSILON,
    momentum: float = 0.8999999761581421,
    training_mode: int = 0,
) -> Any:
    order = channels_last(len(X.shape)) if len(X.shape) > 1 else plain(len(X.shape))
    x = lay(X, order)
    scale, B, input_mean, input_var = map(tensor_of, (scale, B, input_mean, input_var))
    if not training_mode:
        return laid(_normalised(x, scale, B, input_mean, input_var, epsilon), order)
    mean, var = tf.nn.moments(x, tuple(range(len(x.shape) - 1)))
    mean, var = tf.cast(mean, input_mean.dtype), tf.cast(var, input_var.dtype)
    kept = [old * momentum + new * (1 - momentum) for old, new in ((input_mean, mean), (input_var, var))]
    return (laid(_normalised(x, scale, B, mean, var, epsilon), order), *kept)


def _normalised(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
    """`(x - mean) * (scale / sqrt(var + epsilon)) + bias` over the last axis."""
    if len(x.shape) == 4 and x.dtype in _FUSED and {p.dtype for p in (scale, bias, mean, var)} == {x.dtype}:
        # Not tf.compat.v1.nn.fused_batch_norm, which raises small epsilons to what cuDNN once needed.
        return tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=bias, mean=mean, variance=var, epsilon=epsilon, is_training=False
        ).y
    parameters = (tf.cast(p, tf.float32 if p.dtype.size < 4 else p.dtype) for p in (mean, var, bias, scale))
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    return tf.cast(tf.nn.batch_normalization(wide, *parameters, epsilon), x.dtype)


def _stash(x: Tensor, stash_type: int) -> Tensor:
    wide = tensorflow_dtype(stash_type)
    return tf.cast(x, wide) if x.dtype.size < wide.size else x


def standardise(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """`(x - mean) / sqrt(variance + epsilon)` over `axes`, the mean and the inverse deviation."""
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    return (x - mean) * inverse, mean, inverse


@TENSORFLOW.op("LayerNormalization")
def layer_normalization(
    X: Tensor,
    Scale: Tensor,
    B: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = _EPSILON,
    stash_type: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    rank = len(X.shape)
    normal, mean, inverse = standardise(_stash(X, stash_type), tuple(range(axis % rank, rank)), epsilon)
    Y = tf.cast(normal, X.dtype) * Scale
    return Y if B is None else Y + B, mean, inverse


@TENSORFLOW.op("RMSNormalization")
def rms_normalization(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = _EPSILON, stash_type: int = 1
) -> Tensor:
    x, rank = _stash(X, stash_type), len(X.shape)
    axes = tuple(range(axis % rank, rank))
    normal = x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axes, keepdims=True) + epsilon)
    return tf.cast(normal, X.dtype) * scale


@TENSORFLOW.op("GroupNormalization", layout=any_layout)
def group_normalization(
    X: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = _EPSILON, num_groups: int, stash_type: int = 1
) -> Any:
    order = channels_last(len(X.shape))
    x = _stash(lay(X, order), stash_type)
    *front, channels = x.shape
    groups = tf.reshape(x, (*front, num_groups, channels // num_groups))
    axes = (*range(1, len(front)), len(front) + 1)
    normal = tf.reshape(standardise(groups, axes, epsilon)[0], x.shape)
    factor, shift = tf.cast(tensor_of(scale), x.dtype), tf.cast(tensor_of(bias), x.dtype)
    return laid(tf.cast(normal * factor + shift, X.dtype), order)


@TENSORFLOW.op("InstanceNormalization", layout=any_layout)
def instance_normalization(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float = _EPSILON) -> Any:
    order = channels_last(len(input.shape))
    x = lay(input, order)
    normal = standardise(x, tuple(range(1, len(order) - 1)), epsilon)[0]
    return laid(normal * tensor_of(scale) + tensor_of(B), order)


@TENSORFLOW.op("MeanVarianceNormalization", layout=any_layout)
def mean_variance_normalization(X: Tensor, *, axes: tuple[int, ...] = (0, 2, 3)) -> Any:
    x, order = raw(X), order_of(X)
    lying = [places(order)[axis % len(order)] for axis in axes]
    mean = tf.reduce_mean(x, lying, True)
    deviation = tf.sqrt(tf.reduce_mean(x * x, lying, True) - mean * mean)
    return laid((x - mean) / (deviation + 1e-9), order)


@TENSORFLOW.op("LpNormalization")
def lp_normalization(input: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    norm = tf.norm(input, p, axis, keepdims=True)
    return tf.math.divide_no_nan(input, norm)


@TENSORFLOW.op("LRN")
def local_response_normalization(
    X: Tensor, *, alpha: float = 9.999999747378752e-05, beta: float = 0.75, bias: float = 1.0, size: int
) -> Tensor:
    before, channels = (size - 1) // 2, X.shape[1]
    squares = tf.pad(X * X, [(0, 0), (before, size - 1 - before), *((0, 0),) * (len(X.shape) - 2)])
    total = tf.add_n([squares[:, i : i + channels] for i in range(size)])
    return X / tf.pow(total * (alpha / size) + bias, beta)


@TENSORFLOW.op("Attention")
def attention(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Q is [batch, heads, queries, width] or [batch, queries, heads * width]; a row without any key yields zeros."""
    merged = len(Q.shape) == 3
    if merged:
        Q, K, V = heads(Q, q_num_heads), heads(K, kv_num_heads), heads(V, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        K, V = tf.concat((past_key, K), 2), tf.concat((past_value, V), 2)
    batch, count, queries, width = Q.shape
    shared, keys = K.shape[1], K.shape[2]
    factor = width**-0.5 if scale is None else scale
    # Heads that share a key are rows of one product.
    rows = tf.reshape(Q * factor, (batch, shared, count // shared * queries, width))
    stages = [tf.reshape(tf.linalg.matmul(rows, K, transpose_b=True), (batch, count, queries, keys))]
    stages.append(softcap * tf.tanh(stages[0] / softcap) if softcap else stages[0])
    masked, blind = _masked(stages[1], attn_mask, past if is_causal else None)
    stages.append(masked)
    precision = Q.dtype if softmax_precision is None else tensorflow_dtype(softmax_precision)
    weights = tf.nn.softmax(tf.cast(masked, precision))
    weights = tf.cast(weights if blind is None else tf.where(blind, tf.zeros((), precision), weights), Q.dtype)
    stages.append(weights)
    Y = tf.linalg.matmul(tf.reshape(weights, (batch, shared, -1, keys)), V)
    Y = tf.reshape(Y, (batch, count, queries, V.shape[-1]))
    return _merge(Y) if merged else Y, K, V, stages[qk_matmul_output_mode]


def heads(x: Tensor, count: int | None) -> Tensor:
    """[batch, length, heads * width] as [batch, heads, length, width]."""
    if count is None:
        raise UnsupportedOp("3-dimensional inputs need the numbers of heads")
    batch, length, width = x.shape
    return tf.transpose(tf.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def _merge(x: Tensor) -> Tensor:
    batch, count, length, width = x.shape
    return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (batch, length, count * width))


def _masked(scores: Tensor, mask: Tensor | None, past: int | None) -> tuple[Tensor, Tensor | None]:
    """Scores with the mask (and, given `past`, the causal one) applied; which rows have no key at all, if any may."""
    queries, keys = scores.shape[-2:]
    never = tf.constant(-math.inf, scores.dtype)
    allowed: Any = None if past is None else np.tri(queries, keys, past, dtype=bool)
    if allowed is not None:
        scores = tf.where(allowed, scores, never)
    if mask is None:
        return scores, None
    boolean, missing = mask.dtype == tf.bool, keys - mask.shape[-1]
    if missing > 0:
        fill = tf.constant(False if boolean else -math.inf, mask.dtype)
        mask = tf.pad(mask, [(0, 0)] * (len(mask.shape) - 1) + [(0, missing)], constant_values=fill)
    if allowed is not None:
        mask = mask & allowed if boolean else tf.where(allowed, mask, tf.constant(-math.inf, mask.dtype))
    if boolean:
        return tf.where(mask, scores, never), ~tf.reduce_any(mask, -1, True)
    return scores + mask, tf.reduce_max(mask, -1, True) == tf.constant(-math.inf, mask.dtype)


@TENSORFLOW.op("RotaryEmbedding")
def rotary_embedding(
    X: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    """X is [batch, heads, length, width] or [batch, length, heads * width]."""
    merged = len(X.shape) == 3
    x = heads(X, num_heads) if merged else X
    width = rotary_embedding_dim or x.shape[-1]
    rotated, rest = x[..., :width], x[..., width:]
    cos, sin = (c if position_ids is None else tf.gather(c, position_ids) for c in (cos_cache, sin_cache))
    cos, sin = cos[:, None, :, : width // 2], sin[:, None, :, : width // 2]
    if interleaved:
        first, second = rotated[..., 0::2], rotated[..., 1::2]
    else:
        first, second = tf.split(rotated, 2, -1)
    halves = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        y = tf.reshape(tf.stack(halves, -1), rotated.shape)
        y = y if width == x.shape[-1] else tf.concat((y, rest), -1)
    else:
        y = tf.concat(halves if width == x.shape[-1] else (*halves, rest), -1)
    return _merge(y) if merged else y
