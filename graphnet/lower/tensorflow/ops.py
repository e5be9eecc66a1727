"""TensorFlow rules, element by element: arithmetic, comparison, logic, activations, casts.

NaN goes through arithmetic and every comparison with it is false except "unequal"; where ONNX leaves NaN open (Max,
Relu, ArgMax ...) TensorFlow's own operators decide. A Python number arrives as a constant of the operands' dtype.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import DType
from graphnet.ir.tensors import numpy_dtype
from graphnet.lower.table import ONNX_DTYPES, Context, Operand
from graphnet.lower.tensorflow.layout import LayoutTable, any_layout, axis_by_axis

INT4, UINT4 = tf.as_dtype("int4"), tf.as_dtype("uint4")


def _relu(x: Tensor) -> Tensor:
    return tf.nn.relu(x)


def _hard_swish(x: Tensor) -> Tensor:
    return x * tf.nn.relu6(x + 3) / 6


def _mish(x: Tensor) -> Tensor:
    return x * tf.tanh(tf.nn.softplus(x))


TENSORFLOW = LayoutTable(
    "tensorflow",
    simple={
        "Acos": tf.acos,
        "Acosh": tf.acosh,
        "And": tf.logical_and,
        "Asin": tf.asin,
        "Asinh": tf.asinh,
        "Atan": tf.atan,
        "Atanh": tf.atanh,
        "BitwiseNot": tf.bitwise.invert,
        "Ceil": tf.math.ceil,
        "Cos": tf.cos,
        "Cosh": tf.cosh,
        "Erf": tf.math.erf,
        "Exp": tf.exp,
        "Floor": tf.floor,
        "HardSwish": _hard_swish,
        "IsNaN": tf.math.is_nan,
        "Log": tf.math.log,
        "Mish": _mish,
        "Neg": tf.negative,
        "Not": tf.logical_not,
        "Or": tf.logical_or,
        "Reciprocal": tf.math.reciprocal,
        "Relu": _relu,
        "Round": tf.round,
        "Sigmoid": tf.sigmoid,
        "Sin": tf.sin,
        "Sinh": tf.sinh,
        "Softplus": tf.nn.softplus,
        "Softsign": tf.nn.softsign,
        "Sqrt": tf.sqrt,
        "Tan": tf.tan,
        "Tanh": tf.tanh,
        "Xor": tf.math.logical_xor,
    },
)
"""Every rule of the TensorFlow lowering; complete once `ops_all` is imported."""


def tensorflow_dtype(dtype: DType | int) -> tf.DType:
    """dtype of a GraphIR name or an ONNX type number. Raises UnsupportedOp."""
    name = ONNX_DTYPES.get(dtype, "undefined") if isinstance(dtype, int) else dtype
    try:
        return tf.as_dtype(numpy_dtype(name))
    except (TypeError, KeyError, ValueError):
        raise UnsupportedOp(f"dtype {name} does not exist in TensorFlow") from None


def is_float(x: Tensor) -> bool:
    """Whether the elements are floating-point numbers of any width."""
    return bool(x.dtype.is_floating)


@TENSORFLOW.op("Identity", layout=any_layout)
def identity(input: Tensor) -> Tensor:
    return input


@TENSORFLOW.op("Abs", layout=axis_by_axis)
def absolute(X: Tensor) -> Tensor:
    return X if X.dtype.is_unsigned else tf.abs(X)


@TENSORFLOW.op("Sign", layout=axis_by_axis)
def sign(input: Tensor) -> Tensor:
    return tf.cast(input > 0, input.dtype) if input.dtype.is_unsigned else tf.sign(input)


@TENSORFLOW.op("Det")
def det(X: Tensor) -> Tensor:
    return tf.linalg.det(X)


@TENSORFLOW.op("Add", layout=axis_by_axis)
def add(A: Operand, B: Operand) -> Any:
    return A + B


@TENSORFLOW.op("Sub", layout=axis_by_axis)
def sub(A: Operand, B: Operand) -> Any:
    return A - B


@TENSORFLOW.op("Mul", layout=axis_by_axis)
def mul(A: Operand, B: Operand) -> Any:
    return A * B


@TENSORFLOW.op("Div", layout=axis_by_axis)
def div(A: Operand, B: Operand) -> Any:
    return A / B if is_float(A) else tf.truncatediv(A, B)


@TENSORFLOW.op("Mod", layout=axis_by_axis)
def mod(A: Operand, B: Operand, *, fmod: int = 0) -> Any:
    return tf.truncatemod(A, B) if fmod else tf.math.floormod(A, B)


@TENSORFLOW.op("Pow", layout=any_layout)
def power(X: Operand, Y: Operand) -> Any:
    if isinstance(Y, float | int) and Y == 2:
        return axis_by_axis(tf.square)(X)
    return _power(X, Y)


@axis_by_axis
def _power(X: Tensor, Y: Tensor) -> Tensor:
    if X.dtype == Y.dtype and X.dtype not in (tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32, tf.uint64):
        return tf.pow(X, Y)
    wide = tf.float64 if is_float(Y) or is_float(X) else tf.int64
    return tf.cast(tf.pow(tf.cast(X, wide), tf.cast(Y, wide)), X.dtype)


@TENSORFLOW.op("BitShift", layout=axis_by_axis)
def bit_shift(X: Operand, Y: Operand, *, direction: str) -> Any:
    return tf.bitwise.left_shift(X, Y) if direction == "LEFT" else tf.bitwise.right_shift(X, Y)


@TENSORFLOW.op("BitwiseAnd", layout=axis_by_axis)
def bitwise_and(A: Operand, B: Operand) -> Any:
    return tf.bitwise.bitwise_and(A, B)


@TENSORFLOW.op("BitwiseOr", layout=axis_by_axis)
def bitwise_or(A: Operand, B: Operand) -> Any:
    return tf.bitwise.bitwise_or(A, B)


@TENSORFLOW.op("BitwiseXor", layout=axis_by_axis)
def bitwise_xor(A: Operand, B: Operand) -> Any:
    return tf.bitwise.bitwise_xor(A, B)


@TENSORFLOW.op("Equal", layout=axis_by_axis)
def equal(A: Operand, B: Operand) -> Any:
    return tf.equal(A, B)


@TENSORFLOW.op("Greater", layout=axis_by_axis)
def greater(A: Operand, B: Operand) -> Any:
    return tf.greater(A, B)


@TENSORFLOW.op("GreaterOrEqual", layout=axis_by_axis)
def greater_or_equal(A: Operand, B: Operand) -> Any:
    return tf.greater_equal(A, B)


@TENSORFLOW.op("Less", layout=axis_by_axis)
def less(A: Operand, B: Operand) -> Any:
    return tf.less(A, B)


@TENSORFLOW.op("LessOrEqual", layout=axis_by_axis)
def less_or_equal(A: Operand, B: Operand) -> Any:
    return tf.less_equal(A, B)


@TENSORFLOW.op("Where", layout=axis_by_axis)
def where(condition: Tensor, X: Operand, Y: Operand) -> Tensor:
    return tf.where(condition, X, Y)


@TENSORFLOW.op("Max", layout=axis_by_axis)
def maximum(*data_0: Operand) -> Any:
    return reduce(tf.maximum, data_0)


@TENSORFLOW.op("Min", layout=axis_by_axis)
def minimum(*data_0: Operand) -> Any:
    return reduce(tf.minimum, data_0)


@TENSORFLOW.op("Sum", layout=axis_by_axis)
def sum_all(*data_0: Operand) -> Any:
    return reduce(add, data_0)


@TENSORFLOW.op("Mean", layout=axis_by_axis)
def mean_all(*data_0: Operand) -> Any:
    total = reduce(add, data_0)
    return total / len(data_0) if len(data_0) > 1 else total


@TENSORFLOW.op("Clip", layout=axis_by_axis)
def clip(input: Operand, min: Operand = None, max: Operand = None) -> Any:
    result = input if min is None else tf.maximum(input, min)
    return result if max is None else tf.minimum(result, max)


@TENSORFLOW.op("IsInf", layout=axis_by_axis)
def is_inf(X: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if detect_negative and detect_positive:
        return tf.math.is_inf(X)
    if detect_positive:
        return tf.equal(X, float("inf"))
    return tf.equal(X, float("-inf")) if detect_negative else tf.zeros(X.shape, tf.bool)


@TENSORFLOW.op("Celu", layout=axis_by_axis)
def celu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return tf.maximum(X, 0) + tf.minimum(alpha * tf.math.expm1(tf.minimum(X, 0) / alpha), 0)


@TENSORFLOW.op("Elu", layout=axis_by_axis)
def elu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return tf.nn.elu(X) if alpha == 1 else tf.where(X > 0, X, alpha * tf.nn.elu(X))


@TENSORFLOW.op("Selu", layout=axis_by_axis)
def selu(X: Tensor, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
    return gamma * elu(X, alpha=alpha)


@TENSORFLOW.op("Gelu", layout=axis_by_axis)
def gelu(X: Tensor, *, approximate: str = "none") -> Tensor:
    return tf.nn.gelu(X, approximate=approximate == "tanh")


@TENSORFLOW.op("HardSigmoid", layout=axis_by_axis)
def hard_sigmoid(X: Tensor, *, alpha: float = 0.20000000298023224, beta: float = 0.5) -> Tensor:
    return tf.clip_by_value(X * alpha + beta, 0, 1)


@TENSORFLOW.op("LeakyRelu", layout=axis_by_axis)
def leaky_relu(X: Tensor, *, alpha: float = 0.009999999776482582) -> Tensor:
    return tf.nn.leaky_relu(X, alpha)


@TENSORFLOW.op("PRelu", layout=axis_by_axis)
def prelu(X: Tensor, slope: Tensor) -> Tensor:
    return tf.where(X < 0, X * slope, X)


@TENSORFLOW.op("ThresholdedRelu", layout=axis_by_axis)
def thresholded_relu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    return tf.where(alpha < X, X, tf.zeros((), X.dtype))


@TENSORFLOW.op("Shrink", layout=axis_by_axis)
def shrink(input: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    zero = tf.zeros((), input.dtype)
    threshold, shift = tf.cast(lambd, input.dtype), tf.cast(bias, input.dtype)
    shrunk = tf.where(input > threshold, input - shift, zero)
    return tf.where(input < -threshold, input + shift, shrunk)


@TENSORFLOW.op("Cast", layout=axis_by_axis)
def cast(input: Tensor, *, saturate: int = 1, to: int) -> Tensor:
    return convert(input, tensorflow_dtype(to), saturate=saturate)


@TENSORFLOW.op("CastLike", layout=any_layout)
def cast_like(input: Tensor, target_type: Tensor, *, saturate: int = 1) -> Tensor:
    return axis_by_axis(lambda x: convert(x, target_type.dtype, saturate=saturate))(input)


def convert(x: Tensor, dtype: tf.DType, *, saturate: int = 1) -> Tensor:
    """A cast; float8 saturates unless told otherwise, 4-bit integers wrap around."""
    if x.dtype == dtype:
        return x
    if dtype.name.startswith("float8") and saturate:
        limit = float(dtype.max)
        wide = x if x.dtype in (tf.float32, tf.float64) else tf.cast(x, tf.float32)
        return tf.cast(tf.clip_by_value(wide, -limit, limit), dtype)
    if dtype in (INT4, UINT4):
        return tf.cast(tf.cast(x, tf.int8 if dtype == INT4 else tf.uint8), dtype)
    return tf.cast(x, dtype)


@TENSORFLOW.op("Dropout")
def dropout(
    data: Tensor,
    ratio: Operand = None,
    training_mode: Operand = None,
    *,
    seed: int | None = None,
    context: Context,
) -> tuple[Tensor, ...]:
    del training_mode, ratio
    training, rate = context.known(2), context.known(1)
    dropped = 0.5 if rate is None else float(rate)
    if training is None or not bool(training) or dropped == 0:
        return data, tf.ones(data.shape, tf.bool)
    mask = tf.random.stateless_uniform(data.shape, (seed or 0, 0), dtype=data.dtype) >= dropped
    return tf.where(mask, data / (1 - dropped), tf.zeros((), data.dtype)), mask
