"""JAX rules, element by element: arithmetic, comparison, logic, activations, casts.

NaN policy of the whole table: NaN goes through arithmetic, Relu, Max, Min, Clip (its bounds too), Sign, MaxPool and
the reductions ReduceMax and ReduceMin, as in XLA's own operators; every comparison with NaN is false except for
"unequal"; TopK, ArgMax and ArgMin rank NaN above all numbers or take its first place, as XLA does. ONNX leaves these
open, so a graph whose result hangs on them is not judged by it.

Python numbers are weakly typed in JAX: beside an array they take its dtype, so float32 graphs stay float32 although
64-bit types are enabled.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import DType
from graphnet.ir.tensors import numpy_dtype
from graphnet.lower.table import ONNX_DTYPES, Context, Operand, OpTable

JAX = OpTable(
    "jax",
    simple={
        "Abs": jnp.abs,
        "Acos": jnp.arccos,
        "Acosh": jnp.arccosh,
        "And": jnp.logical_and,
        "Asin": jnp.arcsin,
        "Asinh": jnp.arcsinh,
        "Atan": jnp.arctan,
        "Atanh": jnp.arctanh,
        "BitwiseNot": jnp.bitwise_not,
        "Ceil": jnp.ceil,
        "Cos": jnp.cos,
        "Cosh": jnp.cosh,
        "Det": jnp.linalg.det,
        "Erf": lax.erf,
        "Exp": jnp.exp,
        "Floor": jnp.floor,
        "HardSwish": jax.nn.hard_swish,
        "IsNaN": jnp.isnan,
        "Log": jnp.log,
        "Mish": jax.nn.mish,
        "Neg": jnp.negative,
        "Not": jnp.logical_not,
        "Or": jnp.logical_or,
        "Reciprocal": jnp.reciprocal,
        "Relu": jax.nn.relu,
        "Round": jnp.round,
        "Sigmoid": jax.nn.sigmoid,
        "Sign": jnp.sign,
        "Sin": jnp.sin,
        "Sinh": jnp.sinh,
        "Softplus": jax.nn.softplus,
        "Softsign": jax.nn.soft_sign,
        "Sqrt": jnp.sqrt,
        "Tan": jnp.tan,
        "Tanh": jnp.tanh,
        "Xor": jnp.logical_xor,
    },
)
"""Every rule of the JAX lowering; complete once `ops_all` is imported."""


def jax_dtype(dtype: DType | int) -> np.dtype[Any]:
    """dtype of a GraphIR name or an ONNX type number. Raises UnsupportedOp."""
    name = ONNX_DTYPES.get(dtype, "undefined") if isinstance(dtype, int) else dtype
    if name in ("string", "undefined"):
        raise UnsupportedOp(f"dtype {name} does not exist in JAX")
    return numpy_dtype(name)


def is_float(x: Array) -> bool:
    """Whether the elements are floating-point numbers of any width."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


@JAX.op("Identity")
def identity(input: Array) -> Array:
    return input


@JAX.op("Add")
def add(A: Operand, B: Operand) -> Any:
    return A + B


@JAX.op("Sub")
def sub(A: Operand, B: Operand) -> Any:
    return A - B


@JAX.op("Mul")
def mul(A: Operand, B: Operand) -> Any:
    return A * B


@JAX.op("Div")
def div(A: Operand, B: Operand) -> Any:
    dtype = jnp.result_type(A, B)
    if jnp.issubdtype(dtype, jnp.inexact):
        return A / B
    A, B = jnp.broadcast_arrays(jnp.asarray(A, dtype), jnp.asarray(B, dtype))
    return lax.div(A, B)


@JAX.op("Mod")
def mod(A: Operand, B: Operand, *, fmod: int = 0) -> Any:
    return jnp.fmod(A, B) if fmod else jnp.remainder(A, B)


@JAX.op("Pow")
def power(X: Operand, Y: Operand) -> Any:
    if isinstance(Y, float) and Y.is_integer() and is_float(X):
        Y = int(Y)
    return jnp.power(X, Y).astype(jnp.result_type(X) if isinstance(X, Array) else Y.dtype)


@JAX.op("BitShift")
def bit_shift(X: Operand, Y: Operand, *, direction: str) -> Any:
    return X << Y if direction == "LEFT" else X >> Y


@JAX.op("BitwiseAnd")
def bitwise_and(A: Operand, B: Operand) -> Any:
    return A & B


@JAX.op("BitwiseOr")
def bitwise_or(A: Operand, B: Operand) -> Any:
    return A | B


@JAX.op("BitwiseXor")
def bitwise_xor(A: Operand, B: Operand) -> Any:
    return A ^ B


@JAX.op("Equal")
def equal(A: Operand, B: Operand) -> Any:
    return A == B


@JAX.op("Greater")
def greater(A: Operand, B: Operand) -> Any:
    return A > B


@JAX.op("GreaterOrEqual")
def greater_or_equal(A: Operand, B: Operand) -> Any:
    return A >= B


@JAX.op("Less")
def less(A: Operand, B: Operand) -> Any:
    return A < B


@JAX.op("LessOrEqual")
def less_or_equal(A: Operand, B: Operand) -> Any:
    return A <= B


@JAX.op("Where")
def where(condition: Array, X: Operand, Y: Operand) -> Array:
    return jnp.where(condition, X, Y)


@JAX.op("Max")
def maximum(*data_0: Operand) -> Any:
    return reduce(jnp.maximum, data_0)


@JAX.op("Min")
def minimum(*data_0: Operand) -> Any:
    return reduce(jnp.minimum, data_0)


@JAX.op("Sum")
def sum_all(*data_0: Operand) -> Any:
    return reduce(add, data_0)


@JAX.op("Mean")
def mean_all(*data_0: Operand) -> Any:
    total = reduce(add, data_0)
    return total / len(data_0) if len(data_0) > 1 else total


@JAX.op("Clip")
def clip(input: Operand, min: Operand = None, max: Operand = None) -> Any:
    result = input if min is None else jnp.maximum(input, min)
    return result if max is None else jnp.minimum(result, max)


@JAX.op("IsInf")
def is_inf(X: Array, *, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    if detect_negative and detect_positive:
        return jnp.isinf(X)
    if detect_positive:
        return jnp.isposinf(X)
    return jnp.isneginf(X) if detect_negative else jnp.zeros(X.shape, bool)


@JAX.op("Celu")
def celu(X: Array, *, alpha: float = 1.0) -> Array:
    return jax.nn.celu(X, alpha)


@JAX.op("Elu")
def elu(X: Array, *, alpha: float = 1.0) -> Array:
    return jax.nn.elu(X, alpha)


@JAX.op("Selu")
def selu(X: Array, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Array:
    return gamma * jax.nn.elu(X, alpha)


@JAX.op("Gelu")
def gelu(X: Array, *, approximate: str = "none") -> Array:
    return jax.nn.gelu(X, approximate=approximate == "tanh")


@JAX.op("HardSigmoid")
def hard_sigmoid(X: Array, *, alpha: float = 0.20000000298023224, beta: float = 0.5) -> Array:
    return jnp.clip(X * alpha + beta, 0, 1)


@JAX.op("LeakyRelu")
def leaky_relu(X: Array, *, alpha: float = 0.009999999776482582) -> Array:
    return jax.nn.leaky_relu(X, alpha)


@JAX.op("PRelu")
def prelu(X: Array, slope: Array) -> Array:
    return jnp.where(X < 0, X * slope, X)


@JAX.op("ThresholdedRelu")
def thresholded_relu(X: Array, *, alpha: float = 1.0) -> Array:
    return jnp.where(alpha < X, X, 0)


@JAX.op("Shrink")
def shrink(input: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    shrunk = jnp.where(input > lambd, input - bias, 0)
    return jnp.where(input < -lambd, input + bias, shrunk).astype(input.dtype)


@JAX.op("Cast")
def cast(input: Array, *, saturate: int = 1, to: int) -> Array:
    return convert(input, jax_dtype(to), saturate=saturate)


@JAX.op("CastLike")
def cast_like(input: Array, target_type: Array, *, saturate: int = 1) -> Array:
    return convert(input, target_type.dtype, saturate=saturate)


def convert(x: Array, dtype: np.dtype[Any], *, saturate: int = 1) -> Array:
    """A cast; float8 saturates unless told otherwise, 4-bit integers wrap around."""
    if x.dtype == dtype:
        return x
    if dtype.name.startswith("float8") and saturate:
        limit = float(jnp.finfo(dtype).max)  # type: ignore[no-untyped-call]
        wide = x if x.dtype in (np.dtype("float32"), np.dtype("float64")) else x.astype(np.float32)
        return jnp.clip(wide, -limit, limit).astype(dtype)
    if dtype.name in ("int4", "uint4"):
        return x.astype(np.int8 if dtype.name == "int4" else np.uint8).astype(dtype)
    return x.astype(dtype)


@JAX.op("Dropout")
def dropout(
    data: Array,
    ratio: Operand = None,
    training_mode: Operand = None,
    *,
    seed: int | None = None,
    context: Context,
) -> tuple[Array, ...]:
    del training_mode, ratio
    training, rate = context.known(2), context.known(1)
    dropped = 0.5 if rate is None else float(rate)
    if training is None or not bool(training) or dropped == 0:
        return data, jnp.ones(data.shape, bool)
    mask = jax.random.bernoulli(jax.random.key(seed or 0), 1 - dropped, data.shape)
    return jnp.where(mask, data / (1 - dropped), 0), mask
