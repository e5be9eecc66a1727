"""PyTorch rules of losses and random numbers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower.table import Context
from graphnet.lower.torch.ops import TORCH
from graphnet.lower.torch.tensors import torch_dtype

_NOT_IGNORED = -100
"""PyTorch's own default of `ignore_index`."""


@TORCH.op("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    return _nll(input, target, weight, ignore_index, reduction)


@TORCH.op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    context: Context,
) -> Any:
    if context.wants(1):
        logarithms = F.log_softmax(scores, 1)
        return _nll(logarithms, labels, weights, ignore_index, reduction), logarithms
    ignored = _NOT_IGNORED if ignore_index is None else ignore_index
    return F.cross_entropy(scores, labels.to(torch.int64), weights, ignore_index=ignored, reduction=reduction)


def _nll(scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, reduction: str) -> Tensor:
    ignored = _NOT_IGNORED if ignore_index is None else ignore_index
    return F.nll_loss(scores, target.to(torch.int64), weight, ignore_index=ignored, reduction=reduction)


@TORCH.op("RandomNormal")
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: tuple[int, ...]
) -> Tensor:
    del seed
    return torch.randn(shape, dtype=torch_dtype(dtype)) * scale + mean


@TORCH.op("RandomNormalLike")
def random_normal_like(
    input: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    del seed
    return torch.randn(input.shape, dtype=input.dtype if dtype is None else torch_dtype(dtype)) * scale + mean


@TORCH.op("RandomUniform")
def random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: tuple[int, ...]
) -> Tensor:
    del seed
    return torch.rand(shape, dtype=torch_dtype(dtype)) * (high - low) + low


@TORCH.op("RandomUniformLike")
def random_uniform_like(
    input: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    del seed
    kind = input.dtype if dtype is None else torch_dtype(dtype)
    return torch.rand(input.shape, dtype=kind) * (high - low) + low


@TORCH.op("Bernoulli")
def bernoulli(input: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    del seed
    return torch.bernoulli(input).to(input.dtype if dtype is None else torch_dtype(dtype))


@TORCH.op("Multinomial")
def multinomial(input: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    del seed
    return torch.multinomial(torch.exp(input), sample_size, replacement=True).to(torch_dtype(dtype))
