"""JAX rules of linear algebra, normalisation, softmax and attention.

Statistics of float16 and bfloat16 data are taken in float32 where the operator states so (`stash_type`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.lower.jax.ops import JAX, jax_dtype
from graphnet.lower.jax.ops_nn import per_channel, spatial_axes

_EPSILON = 9.999999747378752e-06


@JAX.op("MatMul")
def matmul(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B)


@JAX.op("Gemm")
def gemm(
    A: Array,
    B: Array,
    C: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    y = jnp.matmul(A.T if transA else A, B.T if transB else B)
    # Integer matrices keep their type: the factors are floats.
    y = y if alpha == 1 else (alpha * y).astype(y.dtype)
    if C is None or beta == 0:
        return y
    return y + (C if beta == 1 else (beta * C).astype(C.dtype))


@JAX.op("Einsum")
def einsum(*Inputs: Array, equation: str) -> Array:
    return jnp.einsum(equation, *Inputs)


@JAX.op("BatchNormalization")
def batch_normalization(
    X: Array,
    scale: Array,
    B: Array,
    input_mean: Array,
    input_var: Array,
    *,
    epsilon: float = _EPSILON,
    momentum: float = 0.8999999761581421,
    training_mode: int = 0,
) -> Any:
    if not training_mode:
        return _normalised(X, scale, B, input_mean, input_var, epsilon)
    axes = tuple(i for i in range(X.ndim) if i != 1)
    mean, var = jnp.mean(X, axes, dtype=input_mean.dtype), jnp.var(X, axes, dtype=input_var.dtype)
    Y = _normalised(X, scale, B, mean, var, epsilon)
    return Y, input_mean * momentum + mean * (1 - momentum), input_var * momentum + var * (1 - momentum)


def _normalised(x: Array, scale: Array, bias: Array, mean: Array, var: Array, epsilon: float) -> Array:
    """`(x - mean) * (scale / sqrt(var + epsilon)) + bias` per channel."""
    factor = lax.rsqrt(var + epsilon) * scale
    y = (x - per_channel(mean, x.ndim)) * per_channel(factor, x.ndim) + per_channel(bias, x.ndim)
    return y.astype(x.dtype)


def _stash(x: Array, stash_type: int) -> Array:
    return x.astype(jax_dtype(stash_type)) if x.dtype.itemsize < jax_dtype(stash_type).itemsize else x


def standardise(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """`(x - mean) / sqrt(variance + epsilon)` over `axes`, the mean and the inverse deviation."""
    mean = jnp.mean(x, axes, keepdims=True)
    inverse = lax.rsqrt(jnp.var(x, axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


@JAX.op("LayerNormalization")
def layer_normalization(
    X: Array,
    Scale: Array,
    B: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = _EPSILON,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    normal, mean, inverse = standardise(_stash(X, stash_type), tuple(range(axis % X.ndim, X.ndim)), epsilon)
    Y = normal.astype(X.dtype) * Scale
    return Y if B is None else Y + B, mean, inverse


@JAX.op("RMSNormalization")
def rms_normalization(
    X: Array, scale: Array, *, axis: int = -1, epsilon: float = _EPSILON, stash_type: int = 1
) -> Array:
    x = _stash(X, stash_type)
    axes = tuple(range(axis % X.ndim, X.ndim))
    normal = x * lax.rsqrt(jnp.mean(jnp.square(x), axes, keepdims=True) + epsilon)
    return normal.astype(X.dtype) * scale


@JAX.op("GroupNormalization")
def group_normalization(
    X: Array, scale: Array, bias: Array, *, epsilon: float = _EPSILON, num_groups: int, stash_type: int = 1
) -> Array:
    batch, channels, *spatial = X.shape
    x = _stash(X, stash_type)
    groups = x.reshape(batch, num_groups, channels // num_groups, *spatial)
    normal = standardise(groups, tuple(range(2, groups.ndim)), epsilon)[0].reshape(x.shape)
    return (normal * per_channel(scale, X.ndim) + per_channel(bias, X.ndim)).astype(X.dtype)


@JAX.op("InstanceNormalization")
def instance_normalization(input: Array, scale: Array, B: Array, *, epsilon: float = _EPSILON) -> Array:
    normal = standardise(input, spatial_axes(input), epsilon)[0]
    return normal * per_channel(scale, input.ndim) + per_channel(B, input.ndim)


@JAX.op("MeanVarianceNormalization")
def mean_variance_normalization(X: Array, *, axes: tuple[int, ...] = (0, 2, 3)) -> Array:
    mean = jnp.mean(X, axes, keepdims=True)
    deviation = jnp.sqrt(jnp.mean(X * X, axes, keepdims=True) - mean * mean)
    return (X - mean) / (deviation + 1e-9)


@JAX.op("LpNormalization")
def lp_normalization(input: Array, *, axis: int = -1, p: int = 2) -> Array:
    norm = jnp.linalg.norm(input, p, axis, keepdims=True)
    return jnp.where(norm == 0, 0, input / norm)


@JAX.op("LRN")
def local_response_normalization(
    X: Array, *, alpha: float = 9.999999747378752e-05, beta: float = 0.75, bias: float = 1.0, size: int
) -> Array:
    before = (size - 1) // 2
    rest = (1,) * (X.ndim - 2)
    pads = [(0, 0), (before, size - 1 - before), *((0, 0) for _ in rest)]
    total = lax.reduce_window(X * X, np.array(0, X.dtype), lax.add, (1, size, *rest), (1,) * X.ndim, pads)
    return X / jnp.power(total * (alpha / size) + bias, beta)


@JAX.op("Softmax")
def softmax(input: Array, *, axis: int = -1) -> Array:
    return jax.nn.softmax(input, axis)


@JAX.op("LogSoftmax")
def log_softmax(input: Array, *, axis: int = -1) -> Array:
    return jax.nn.log_softmax(input, axis)


@JAX.op("Hardmax")
def hardmax(input: Array, *, axis: int = -1) -> Array:
    return jax.nn.one_hot(jnp.argmax(input, axis), input.shape[axis], axis=axis, dtype=input.dtype)


@JAX.op("Attention")
def attention(
    Q: Array,
    K: Array,
    V: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Q is [batch, heads, queries, width] or [batch, queries, heads * width]; a row without any key yields zeros."""
    merged = Q.ndim == 3
    if merged:
        Q, K, V = heads(Q, q_num_heads), heads(K, kv_num_heads), heads(V, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        K, V = jnp.concatenate((past_key, K), 2), jnp.concatenate((past_value, V), 2)
    batch, count, queries, width = Q.shape
    groups = count // K.shape[1]
    factor = width**-0.5 if scale is None else scale
    scores = jnp.einsum("bkgqd,bksd->bkgqs", Q.reshape(batch, -1, groups, queries, width) * factor, K)
    stages = [scores.reshape(batch, count, queries, -1)]
    stages.append(softcap * jnp.tanh(stages[0] / softcap) if softcap else stages[0])
    masked, blind = _masked(stages[1], attn_mask, past if is_causal else None)
    stages.append(masked)
    precision = Q.dtype if softmax_precision is None else jax_dtype(softmax_precision)
    weights = jax.nn.softmax(masked.astype(precision), -1)
    weights = (weights if blind is None else jnp.where(blind, 0, weights)).astype(Q.dtype)
    stages.append(weights)
    Y = jnp.einsum("bkgqs,bksd->bkgqd", weights.reshape(scores.shape), V).reshape(batch, count, queries, -1)
    return _merge(Y) if merged else Y, K, V, stages[qk_matmul_output_mode]


def heads(x: Array, count: int | None) -> Array:
    """[batch, length, heads * width] as [batch, heads, length, width]."""
    if count is None:
        raise UnsupportedOp("3-dimensional inputs need the numbers of heads")
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).swapaxes(1, 2)


def _merge(x: Array) -> Array:
    batch, count, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, count * width)


def _masked(scores: Array, mask: Array | None, past: int | None) -> tuple[Array, Array | None]:
    """Scores with the mask (and, given `past`, the causal one) applied; which rows have no key at all, if any may."""
    queries, keys = scores.shape[-2:]
    if past is not None:
        allowed = jnp.tri(queries, keys, past, dtype=bool)
        scores = jnp.where(allowed, scores, -jnp.inf)
    if mask is None:
        return scores, None
    missing = keys - mask.shape[-1]
    if missing > 0:
        fill = np.array(False if mask.dtype == bool else -np.inf, mask.dtype)
        mask = lax.pad(mask, fill, [(0, 0, 0)] * (mask.ndim - 1) + [(0, missing, 0)])
    if past is not None:
        mask = mask & allowed if mask.dtype == bool else jnp.where(allowed, mask, -jnp.inf)
    if mask.dtype == bool:
        return jnp.where(mask, scores, -jnp.inf), ~jnp.any(mask, -1, keepdims=True)
    return scores + mask, jnp.max(mask, -1, keepdims=True) == -jnp.inf


@JAX.op("RotaryEmbedding")
def rotary_embedding(
    X: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Array:
    """X is [batch, heads, length, width] or [batch, length, heads * width]."""
    merged = X.ndim == 3
    x = heads(X, num_heads) if merged else X
    width = rotary_embedding_dim or x.shape[-1]
    rotated, rest = x[..., :width], x[..., width:]
    cos = cos_cache if position_ids is None else cos_cache[position_ids]
    sin = sin_cache if position_ids is None else sin_cache[position_ids]
    cos, sin = cos[:, None, :, : width // 2], sin[:, None, :, : width // 2]
    if interleaved:
        first, second = rotated[..., 0::2], rotated[..., 1::2]
    else:
        first, second = jnp.split(rotated, 2, -1)
    halves = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        y = jnp.stack(halves, -1).reshape(rotated.shape)
        y = y if width == x.shape[-1] else jnp.concatenate((y, rest), -1)
    else:
        y = jnp.concatenate(halves if width == x.shape[-1] else (*halves, rest), -1)
    return _merge(y) if merged else y
