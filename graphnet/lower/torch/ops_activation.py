"""PyTorch rules of activation functions with attributes."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower.torch.ops import TORCH, prearranged


@TORCH.op("Celu")
def celu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.celu(X, alpha)


@TORCH.op("Elu")
def elu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.elu(X, alpha)


@TORCH.op("Selu")
def selu(X: Tensor, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
    if math.isclose(alpha, 1.6732631921768188) and math.isclose(gamma, 1.0507010221481323):
        return F.selu(X)
    return F.elu(X, alpha) * gamma


@TORCH.op("Gelu")
def gelu(X: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(X, approximate=approximate)


@TORCH.op("HardSigmoid")
def hard_sigmoid(X: Tensor, *, alpha: float = 0.20000000298023224, beta: float = 0.5) -> Tensor:
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return F.hardsigmoid(X)
    return torch.clamp(X * alpha + beta, 0.0, 1.0)


@TORCH.op("LeakyRelu")
def leaky_relu(X: Tensor, *, alpha: float = 0.009999999776482582) -> Tensor:
    return F.leaky_relu(X, alpha)


@TORCH.op("PRelu")
def prelu(X: Tensor, slope: Tensor) -> Tensor:
    if slope.numel() == 1 or (X.ndim > 1 and slope.numel() == X.shape[1] == slope.shape[1 - X.ndim :][0]):
        return F.prelu(X, prearranged(torch.flatten, slope))
    return torch.where(X < 0, X * slope, X)


@TORCH.op("ThresholdedRelu")
def thresholded_relu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.threshold(X, alpha, 0.0)


@TORCH.op("Shrink")
def shrink(input: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    if bias == lambd and input.is_floating_point():
        return F.softshrink(input, lambd)
    shrunk = torch.where(input > lambd, input - bias, 0.0)
    return torch.where(input < -lambd, input + bias, shrunk).to(input.dtype)
