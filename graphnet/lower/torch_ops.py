"""PyTorch rules, element by element: arithmetic, comparison, logic, activations, casts."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower.table import Context, Operand, OpTable
from graphnet.lower.torch_tensors import torch_dtype

TORCH = OpTable(
    "torch",
    simple={
        "Abs": torch.abs,
        "Acos": torch.acos,
        "Acosh": torch.acosh,
        "Asin": torch.asin,
        "Asinh": torch.asinh,
        "Atan": torch.atan,
        "Atanh": torch.atanh,
        "BitwiseNot": torch.bitwise_not,
        "Ceil": torch.ceil,
        "Cos": torch.cos,
        "Cosh": torch.cosh,
        "Det": torch.linalg.det,
        "Erf": torch.erf,
        "Exp": torch.exp,
        "Floor": torch.floor,
        "HardSwish": F.hardswish,
        "IsNaN": torch.isnan,
        "Log": torch.log,
        "Mish": F.mish,
        "Neg": torch.neg,
        "Not": torch.logical_not,
        "Reciprocal": torch.reciprocal,
        "Relu": F.relu,
        "Round": torch.round,
        "Sigmoid": torch.sigmoid,
        "Sign": torch.sign,
        "Sin": torch.sin,
        "Sinh": torch.sinh,
        "Softplus": F.softplus,
        "Softsign": F.softsign,
        "Sqrt": torch.sqrt,
        "Tan": torch.tan,
        "Tanh": torch.tanh,
    },
)
"""Every rule of the PyTorch lowering; complete once `torch_ops_all` is imported."""


@TORCH.op("Identity")
def identity(input: Tensor) -> Tensor:
    return input


@TORCH.op("Add")
def add(A: Operand, B: Operand) -> Any:
    return A + B


@TORCH.op("Sub")
def sub(A: Operand, B: Operand) -> Any:
    return A - B


@TORCH.op("Mul")
def mul(A: Operand, B: Operand) -> Any:
    return A * B


@TORCH.op("Div")
def div(A: Operand, B: Operand) -> Any:
    if _is_float(A, B):
        return A / B
    if not isinstance(A, Tensor):
        A = torch.full((), A, dtype=B.dtype)
    return torch.div(A, B, rounding_mode="trunc")


@TORCH.op("Mod")
def mod(A: Operand, B: Operand, *, fmod: int = 0) -> Any:
    if fmod:
        return torch.fmod(_tensor(A, B), B)
    return torch.remainder(A, B)


@TORCH.op("Pow")
def power(X: Operand, Y: Operand) -> Any:
    result = torch.pow(X, Y)
    return result.to(X.dtype) if isinstance(X, Tensor) else result


@TORCH.op("BitShift")
def bit_shift(X: Operand, Y: Operand, *, direction: str) -> Any:
    return X << Y if direction == "LEFT" else X >> Y


@TORCH.op("BitwiseAnd")
def bitwise_and(A: Operand, B: Operand) -> Any:
    return torch.bitwise_and(A, B)


@TORCH.op("BitwiseOr")
def bitwise_or(A: Operand, B: Operand) -> Any:
    return torch.bitwise_or(A, B)


@TORCH.op("BitwiseXor")
def bitwise_xor(A: Operand, B: Operand) -> Any:
    return torch.bitwise_xor(A, B)


@TORCH.op("And")
def logical_and(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_and(A, B)


@TORCH.op("Or")
def logical_or(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_or(A, B)


@TORCH.op("Xor")
def logical_xor(A: Tensor, B: Tensor) -> Tensor:
    return torch.logical_xor(A, B)


@TORCH.op("Equal")
def equal(A: Operand, B: Operand) -> Any:
    return A == B


@TORCH.op("Greater")
def greater(A: Operand, B: Operand) -> Any:
    return A > B


@TORCH.op("GreaterOrEqual")
def greater_or_equal(A: Operand, B: Operand) -> Any:
    return A >= B


@TORCH.op("Less")
def less(A: Operand, B: Operand) -> Any:
    return A < B


@TORCH.op("LessOrEqual")
def less_or_equal(A: Operand, B: Operand) -> Any:
    return A <= B


@TORCH.op("Where")
def where(condition: Tensor, X: Operand, Y: Operand) -> Tensor:
    return torch.where(condition, X, Y)


@TORCH.op("Max")
def maximum(*data_0: Operand) -> Any:
    return reduce(_maximum, data_0)


@TORCH.op("Min")
def minimum(*data_0: Operand) -> Any:
    return reduce(_minimum, data_0)


@TORCH.op("Sum")
def sum_all(*data_0: Operand) -> Any:
    return reduce(add, data_0)


@TORCH.op("Mean")
def mean_all(*data_0: Operand) -> Any:
    total = reduce(add, data_0)
    return total / len(data_0) if len(data_0) > 1 else total


def _maximum(A: Any, B: Any) -> Any:
    if isinstance(A, Tensor) and isinstance(B, Tensor):
        return torch.maximum(A, B)
    return torch.clamp(A, min=B) if isinstance(A, Tensor) else torch.clamp(B, min=A)


def _minimum(A: Any, B: Any) -> Any:
    if isinstance(A, Tensor) and isinstance(B, Tensor):
        return torch.minimum(A, B)
    return torch.clamp(A, max=B) if isinstance(A, Tensor) else torch.clamp(B, max=A)


@TORCH.op("Clip")
def clip(input: Operand, min: Operand = None, max: Operand = None) -> Any:
    if min is None and max is None:
        return input
    if (min is None or isinstance(min, Tensor)) == (max is None or isinstance(max, Tensor)) or None in (min, max):
        return torch.clamp(input, min, max)
    return _minimum(_maximum(input, min), max)


@TORCH.op("IsInf")
def is_inf(X: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative and detect_positive:
        return torch.isinf(X)
    if detect_positive:
        return torch.isposinf(X)
    return torch.isneginf(X) if detect_negative else torch.zeros(X.shape, dtype=torch.bool)


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
        return F.prelu(X, slope.reshape(-1))
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


@TORCH.op("Cast")
def cast(input: Tensor, *, saturate: int = 1, to: int) -> Tensor:
    return convert(input, torch_dtype(to), saturate=saturate)


@TORCH.op("CastLike")
def cast_like(input: Tensor, target_type: Tensor, *, saturate: int = 1) -> Tensor:
    return convert(input, target_type.dtype, saturate=saturate)


def convert(x: Tensor, dtype: torch.dtype, *, saturate: int = 1) -> Tensor:
    """A cast; float8 types without infinity saturate by default."""
    del saturate
    return x.to(dtype)


@TORCH.op("Dropout")
def dropout(
    data: Tensor,
    ratio: Operand = None,
    training_mode: Operand = None,
    *,
    seed: int | None = None,
    context: Context,
) -> tuple[Tensor, ...]:
    del ratio, training_mode, seed
    _ = context
    return data, torch.ones(data.shape, dtype=torch.bool)


def _is_float(*values: Any) -> bool:
    return any(isinstance(v, float) or (isinstance(v, Tensor) and v.is_floating_point()) for v in values)


def _tensor(value: Any, like: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full((), value, dtype=like.dtype)
