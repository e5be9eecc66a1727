"""PyTorch rules of normalisation and attention layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower.table import Context
from graphnet.lower.torch.ops import TORCH
from graphnet.lower.torch.tensors import torch_dtype

_EPSILON = 9.999999747378752e-06


@TORCH.op("BatchNormalization")
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
    context: Context,
) -> Any:
    if not training_mode:
        return F.batch_norm(X, input_mean, input_var, scale, B, False, 0.0, epsilon)
    dims = tuple(i for i in range(X.ndim) if i != 1)
    mean, variance = torch.mean(X, dims), torch.var(X, dims, correction=0)
    running = (
        (input_mean * momentum + mean * (1 - momentum), input_var * momentum + variance * (1 - momentum))
        if context.wants(1) or context.wants(2)
        else ()
    )
    return (F.batch_norm(X, None, None, scale, B, True, 0.0, epsilon), *running)


@TORCH.op("LayerNormalization")
def layer_normalization(
    X: Tensor,
    Scale: Tensor,
    B: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = _EPSILON,
    stash_type: int = 1,
    context: Context,
) -> Any:
    shape = tuple(X.shape[axis:])
    direct = Scale.shape == shape and (B is None or B.shape == shape)
    Y = F.layer_norm(X, shape, Scale, B, epsilon) if direct else F.layer_norm(X, shape, eps=epsilon) * Scale
    if not direct and B is not None:
        Y = Y + B
    if not context.wants(1) and not context.wants(2):
        return Y
    dims = tuple(range(axis % X.ndim, X.ndim))
    stashed = X.to(torch_dtype(stash_type))
    mean = torch.mean(stashed, dims, keepdim=True)
    inverse = torch.rsqrt(torch.var(stashed, dims, correction=0, keepdim=True) + epsilon)
    return Y, mean, inverse


@TORCH.op("RMSNormalization")
def rms_normalization(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = _EPSILON, stash_type: int = 1
) -> Tensor:
    del stash_type
    shape = tuple(X.shape[axis:])
    if scale.shape == shape:
        return F.rms_norm(X, shape, scale, epsilon)
    return F.rms_norm(X, shape, None, epsilon) * scale


@TORCH.op("GroupNormalization")
def group_normalization(
    X: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = _EPSILON, num_groups: int, stash_type: int = 1
) -> Tensor:
    del stash_type
    return F.group_norm(X, num_groups, scale, bias, epsilon)


@TORCH.op("InstanceNormalization")
def instance_normalization(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float = _EPSILON) -> Tensor:
    return F.instance_norm(input, weight=scale, bias=B, eps=epsilon)


@TORCH.op("MeanVarianceNormalization")
def mean_variance_normalization(X: Tensor, *, axes: tuple[int, ...] = (0, 2, 3)) -> Tensor:
    mean = torch.mean(X, axes, keepdim=True)
    deviation = torch.sqrt(torch.mean(X * X, axes, keepdim=True) - mean * mean)
    return (X - mean) / (deviation + 1e-9)


@TORCH.op("LpNormalization")
def lp_normalization(input: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    norm = torch.linalg.vector_norm(input, p, axis, keepdim=True)
    return torch.where(norm == 0, 0.0, input / norm).to(input.dtype)


@TORCH.op("LRN")
def local_response_normalization(
    X: Tensor, *, alpha: float = 9.999999747378752e-05, beta: float = 0.75, bias: float = 1.0, size: int
) -> Tensor:
    if size % 2:
        return F.local_response_norm(X, size, alpha, beta, bias)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = F.pad(X * X, [0, 0] * (X.ndim - 2) + [before, after])
    total = squares.unfold(1, size, 1).sum(-1)
    return X / (total * (alpha / size) + bias) ** beta


@TORCH.op("Attention")
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
    context: Context,
) -> Any:
    merged = Q.ndim == 3
    if merged:
        assert q_num_heads is not None
        assert kv_num_heads is not None
        Q, K, V = _heads(Q, q_num_heads), _heads(K, kv_num_heads), _heads(V, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        K, V = torch.cat((past_key, K), 2), torch.cat((past_value, V), 2)
    causal = bool(is_causal) and Q.shape[2] + past > 1 and not (past and Q.shape[2] == 1)
    bias = None if attn_mask is None else _full_length(attn_mask, K.shape[2])
    product = None
    if softcap or context.wants(3) or softmax_precision is not None:
        bias = _with_causal(bias, Q.shape[2], K.shape[2], past) if causal else bias
        options = _Explicit(scale, softcap, softmax_precision, qk_matmul_output_mode)
        Y, product = _explicit(Q, K, V, bias, options)
    else:
        if causal and (bias is not None or past):
            bias, causal = _with_causal(bias, Q.shape[2], K.shape[2], past), False
        grouped: dict[str, Any] = {"enable_gqa": True} if Q.shape[1] != K.shape[1] else {}
        Y = F.scaled_dot_product_attention(Q, K, V, bias, 0.0, causal, scale=scale, **grouped)
    if merged:
        Y = Y.transpose(1, 2).flatten(2)
    return (Y, K, V, product) if len(context.node.outputs) > 1 else Y


def _heads(x: Tensor, count: int) -> Tensor:
    batch, length, width = x.shape
    return x.view(batch, length, count, width // count).transpose(1, 2)


def _with_causal(bias: Tensor | None, queries: int, keys: int, past: int) -> Tensor:
    """The mask, with keys after the query's own position (which is `past` + its index) masked out as well."""
    allowed = torch.tensor(np.tril(np.ones((queries, keys), bool), past))
    if bias is None:
        return allowed
    return bias & allowed if bias.dtype == torch.bool else torch.where(allowed, bias, float("-inf"))


def _full_length(mask: Tensor, keys: int) -> Tensor:
    """A mask may cover fewer keys than there are; the rest is masked out."""
    missing = keys - mask.shape[-1]
    if missing <= 0:
        return mask
    return F.pad(mask, (0, missing), value=False if mask.dtype == torch.bool else float("-inf"))


@dataclass(frozen=True)
class _Explicit:
    scale: float | None
    softcap: float
    precision: int | None
    mode: int


def _explicit(Q: Tensor, K: Tensor, V: Tensor, bias: Tensor | None, options: _Explicit) -> tuple[Tensor, Tensor]:
    """Attention step by step, for what the fused operator does not offer; also the product that `mode` names.

    Order of the specification: scale, soft cap, bias, softmax; a query without any key to attend to yields zero.
    """
    groups = Q.shape[1] // K.shape[1]
    if groups > 1:
        K, V = K.repeat_interleave(groups, 1), V.repeat_interleave(groups, 1)
    root = math.sqrt(options.scale if options.scale is not None else 1 / math.sqrt(Q.shape[-1]))
    scores = torch.matmul(Q * root, (K * root).transpose(-1, -2))
    products = [scores]
    if options.softcap:
        scores = options.softcap * torch.tanh(scores / options.softcap)
    products.append(scores)
    blind = None
    if bias is not None:
        bias = torch.where(bias, 0.0, float("-inf")).to(Q.dtype) if bias.dtype == torch.bool else bias
        scores = scores + bias
        blind = bias.amax(-1, keepdim=True) == float("-inf")
    products.append(scores)
    precision = scores.dtype if options.precision is None else torch_dtype(options.precision)
    weights = F.softmax(scores.to(precision), -1)
    weights = weights if blind is None else torch.where(blind, 0.0, weights)
    products.append(weights.to(Q.dtype))
    return torch.matmul(products[3], V), products[options.mode]


@TORCH.op("RotaryEmbedding")
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
    merged = X.ndim == 3
    if merged:
        assert num_heads is not None
        X = _heads(X, num_heads)
    width = rotary_embedding_dim or X.shape[-1]
    rotated, rest = (X, None) if width == X.shape[-1] else X.split((width, X.shape[-1] - width), -1)
    cos = cos_cache if position_ids is None else cos_cache[position_ids]
    sin = sin_cache if position_ids is None else sin_cache[position_ids]
    cos, sin = cos[..., : width // 2].unsqueeze(1), sin[..., : width // 2].unsqueeze(1)
    if interleaved:
        first, second = rotated[..., 0::2], rotated[..., 1::2]
    else:
        first, second = rotated.chunk(2, -1)
    halves = first * cos - second * sin, first * sin + second * cos
    Y = torch.stack(halves, -1).flatten(-2) if interleaved else torch.cat(halves, -1)
    Y = Y if rest is None else torch.cat((Y, rest), -1)
    return Y.transpose(1, 2).flatten(2) if merged else Y
