"""The PyTorch table and its rules of arithmetic, comparison, logic and casts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from graphnet.errors import UnsupportedOp
from graphnet.lower.table import ONNX_DTYPES, Context, Operand, OpTable, Rule
from graphnet.lower.torch.tensors import torch_dtype

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
"""Every rule of the PyTorch lowering; complete once `ops_all` is imported."""


def prearranged(arrange: Callable[[Tensor], Tensor], weight: Tensor) -> Tensor:
    """`arrange(weight)`; where `weight` is a weight of the graph a lowering works it out once, not at each run."""
    if has_torch_function((weight,)):
        result: Tensor = handle_torch_function(prearranged, (weight,), arrange, weight)
        return result
    return arrange(weight)


Branch = Callable[[], tuple[Tensor, ...]]


def branches(condition: Tensor, then: Branch, other: Branch) -> tuple[Tensor, ...]:
    """The outputs of `then` or `other`; a lowering records both and leaves the choice to the run."""
    if has_torch_function((condition,)):
        results: tuple[Tensor, ...] = handle_torch_function(branches, (condition,), condition, then, other)
        return results
    return then() if bool(condition) else other()


_SIGN = -(2**63)
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def unsigned(wide: str) -> Callable[[Rule], Rule]:
    """Decorator: compute uint16, uint32 and uint64, for which PyTorch has no arithmetic, in int64.

    `wide` says how uint64 fares: `wraps` (the low 64 bits of the result are right), `ordered` (only the order of the
    operands counts: their top bits are flipped) or `none`.
    """

    def decorate(rule: Rule) -> Rule:
        @wraps(rule)
        def wrapped(*operands: Any, **attributes: Any) -> Any:
            dtype = next((x.dtype for x in operands if isinstance(x, Tensor) and x.dtype in _UNSIGNED), None)
            if dtype is None:
                return rule(*operands, **attributes)
            if dtype == torch.uint64 and wide == "none":
                raise UnsupportedOp("PyTorch has no uint64 arithmetic")
            flip = dtype == torch.uint64 and wide == "ordered"
            result = rule(*(_signed(x, flip=flip) for x in operands), **attributes)
            if isinstance(result, tuple):
                return (_restored(result[0], dtype, flip=flip), *result[1:])
            return _restored(result, dtype, flip=flip)

        return wrapped

    return decorate


def _restored(result: Tensor, dtype: torch.dtype, *, flip: bool) -> Tensor:
    if result.dtype != torch.int64:
        return result
    result = result ^ _SIGN if flip else result
    return result.view(dtype) if dtype == torch.uint64 else result.to(dtype)


def _signed(x: Any, *, flip: bool) -> Any:
    if not isinstance(x, Tensor):
        return x - 2**63 if flip and isinstance(x, int) else x
    value = x.view(torch.int64) if x.dtype == torch.uint64 else x.to(torch.int64)
    return value ^ _SIGN if flip else value


@TORCH.op("Identity")
def identity(input: Tensor) -> Tensor:
    return input


@TORCH.op("Add")
@unsigned("wraps")
def add(A: Operand, B: Operand) -> Any:
    return A + B


@TORCH.op("Sub")
@unsigned("wraps")
def sub(A: Operand, B: Operand) -> Any:
    return A - B


@TORCH.op("Mul")
@unsigned("wraps")
def mul(A: Operand, B: Operand) -> Any:
    return A * B


@TORCH.op("Div")
@unsigned("none")
def div(A: Operand, B: Operand) -> Any:
    if _is_float(A, B):
        return A / B
    if not isinstance(A, Tensor):
        A = torch.full((), A, dtype=B.dtype)
    return torch.div(A, B, rounding_mode="trunc")


@TORCH.op("Mod")
@unsigned("none")
def mod(A: Operand, B: Operand, *, fmod: int = 0) -> Any:
    if fmod:
        return torch.fmod(_tensor(A, B), B)
    return torch.remainder(A, B)


@TORCH.op("Pow")
def power(X: Operand, Y: Operand) -> Any:
    result = torch.pow(X, Y)
    return result.to(X.dtype) if isinstance(X, Tensor) else result


@TORCH.op("BitShift")
@unsigned("none")
def bit_shift(X: Operand, Y: Operand, *, direction: str) -> Any:
    return X << Y if direction == "LEFT" else X >> Y


@TORCH.op("BitwiseAnd")
@unsigned("wraps")
def bitwise_and(A: Operand, B: Operand) -> Any:
    return torch.bitwise_and(A, B)


@TORCH.op("BitwiseOr")
@unsigned("wraps")
def bitwise_or(A: Operand, B: Operand) -> Any:
    return torch.bitwise_or(A, B)


@TORCH.op("BitwiseXor")
@unsigned("wraps")
def bitwise_xor(A: Operand, B: Operand) -> Any:
    return torch.bitwise_xor(A, B)


@TORCH.op("BitwiseNot")
@unsigned("wraps")
def bitwise_not(X: Tensor) -> Tensor:
    return torch.bitwise_not(X)


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
@unsigned("wraps")
def equal(A: Operand, B: Operand) -> Any:
    return A == B


@TORCH.op("Greater")
@unsigned("ordered")
def greater(A: Operand, B: Operand) -> Any:
    return A > B


@TORCH.op("GreaterOrEqual")
@unsigned("ordered")
def greater_or_equal(A: Operand, B: Operand) -> Any:
    return A >= B


@TORCH.op("Less")
@unsigned("ordered")
def less(A: Operand, B: Operand) -> Any:
    return A < B


@TORCH.op("LessOrEqual")
@unsigned("ordered")
def less_or_equal(A: Operand, B: Operand) -> Any:
    return A <= B


@TORCH.op("Where")
def where(condition: Tensor, X: Operand, Y: Operand) -> Tensor:
    return torch.where(condition, X, Y)


@TORCH.op("Max")
@unsigned("ordered")
def maximum(*data_0: Operand) -> Any:
    return reduce(_maximum, data_0)


@TORCH.op("Min")
@unsigned("ordered")
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


@TORCH.op("Cast")
def cast(input: Tensor, *, saturate: int = 1, to: int) -> Tensor:
    return convert(input, ONNX_DTYPES.get(to, "undefined"), saturate=saturate)


@TORCH.op("CastLike")
def cast_like(input: Tensor, target_type: Tensor, *, saturate: int = 1, context: Context) -> Tensor:
    del target_type
    return convert(input, context.type_of(context.node.inputs[1]).dtype, saturate=saturate)


def convert(x: Tensor, dtype: str, *, saturate: int = 1) -> Tensor:
    """A cast by the name of a dtype; float8 saturates unless told otherwise, 4-bit integers wrap around."""
    kind = torch_dtype(dtype)  # type: ignore[arg-type]
    if dtype == "int4":
        return (x.to(torch.int8) << 4) >> 4
    if dtype == "uint4":
        return x.to(torch.uint8) & 15
    if dtype.startswith("float8") and saturate:
        limit = torch.finfo(kind).max
        wide = x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
        return torch.clamp(wide, -limit, limit).to(kind)
    if dtype == "float8e4m3fn":
        # PyTorch saturates; the largest number that rounds to the largest float8 is 464.
        wide = x.to(torch.float32)
        return torch.where(wide.abs() > 464.0, math.nan, wide).to(kind)
    return x.to(kind)


@TORCH.op("Dropout")
def dropout(
    data: Tensor,
    ratio: Operand = None,
    training_mode: Operand = None,
    *,
    seed: int | None = None,
    context: Context,
) -> tuple[Tensor, ...]:
    del seed, training_mode, ratio
    training, rate = context.known(2), context.known(1)
    dropped = 0.5 if rate is None else float(rate)
    if training is None or not bool(training) or dropped == 0:
        return data, torch.ones(data.shape, dtype=torch.bool)
    mask = torch.rand(data.shape) >= dropped
    return torch.where(mask, data / (1 - dropped), 0.0).to(data.dtype), mask


def _is_float(*values: Any) -> bool:
    return any(isinstance(v, float) or (isinstance(v, Tensor) and v.is_floating_point()) for v in values)


def _tensor(value: Any, like: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full((), value, dtype=like.dtype)
