"""exp, tanh, erf and the sigmoid in float32 as arithmetic that fills vectors, where TVM calls the C library.

Exact to some units in the last place; NaN and infinities as the C library has them; subnormal results are zero.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.ir.op import register_op_attr

LEVEL = 100
"""Above TVM's own rules."""
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_EXP_LOW, _EXP_HIGH = -87.33654, 88.72283
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_TANH_SMALL, _TANH_ONE = 0.625, 9.0
_ERF_OVER = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_UNDER = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
)  # fmt: skip
_ERF_ONE = 4.0
_enabled = False


def use_vector_math(enabled: bool) -> None:
    """Whether kernels that are built from now on use the functions of this module on CPUs."""
    global _enabled  # TVM's table of rules is global to the process too
    _enabled = enabled


def _dtype(expression: Any) -> str:
    """`float32`, or `float32x16` for a vector."""
    return str(expression.ty)


def _number(like: tirx.PrimExpr, value: float) -> Any:
    return tirx.const(value, _dtype(like))


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    result = _number(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + _number(x, coefficient)
    return result


def exp(x: Any) -> Any:
    """e to the power of x: the nearest power of 2, times a polynomial of what is left."""
    inside = tirx.max(tirx.min(x, _number(x, _EXP_HIGH)), _number(x, _EXP_LOW))
    power = tirx.floor(inside * _number(x, _LOG2_E) + _number(x, 0.5))
    rest = inside - power * _number(x, _LN2_HIGH) - power * _number(x, _LN2_LOW)
    value = _polynomial(rest, _EXP) * rest * rest + rest + _number(x, 1.0)
    whole = power.astype(_dtype(x).replace("float", "int"))
    half = whole >> tirx.const(1, _dtype(whole))
    value = value * _power_of_two(half, x) * _power_of_two(whole - half, x)
    value = tirx.Select(x > _number(x, _EXP_HIGH), _number(x, float("inf")), value)
    value = tirx.Select(x < _number(x, _EXP_LOW), _number(x, 0.0), value)
    return tirx.Select(tirx.isnan(x), x, value)


def _power_of_two(exponent: Any, like: Any) -> Any:
    bits = (exponent + tirx.const(127, _dtype(exponent))) << tirx.const(23, _dtype(exponent))
    return tirx.reinterpret(_dtype(like), bits)


def tanh(x: Any) -> Any:
    """Odd polynomial near zero, by exp elsewhere."""
    size = tirx.Select(x < _number(x, 0.0), -x, x)
    inside = tirx.min(size, _number(x, _TANH_ONE))
    squared = inside * inside
    small = _polynomial(squared, _TANH) * squared * inside + inside
    two = _number(x, 2.0)
    large = _number(x, 1.0) - two / (exp(two * inside) + _number(x, 1.0))
    value = tirx.Select(size < _number(x, _TANH_SMALL), small, large)
    return tirx.Select(tirx.isnan(x), x, tirx.Select(x < _number(x, 0.0), -value, value))


def erf(x: Any) -> Any:
    """A ratio of polynomials; beyond 4 it is 1 in float32."""
    inside = tirx.max(tirx.min(x, _number(x, _ERF_ONE)), _number(x, -_ERF_ONE))
    squared = inside * inside
    value = inside * _polynomial(squared, _ERF_OVER) / _polynomial(squared, _ERF_UNDER)
    return tirx.Select(tirx.isnan(x), x, value)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e to the power of -x)."""
    return _number(x, 1.0) / (_number(x, 1.0) + exp(-x))


def _register(name: str, function: Any) -> None:
    operator = tvm.ir.Op.get(f"tirx.{name}")
    theirs = operator.get_attr("llvm.FLowerIntrinsic") or operator.get_attr("default.FLowerIntrinsic")

    def rule(call: tirx.Call) -> Any:
        if _enabled and _dtype(call).startswith("float32"):
            return function(call.args[0])
        return theirs(call) if theirs is not None else call

    register_op_attr(f"tirx.{name}", "llvm.FLowerIntrinsic", rule, level=LEVEL)


for _name, _function in (("exp", exp), ("tanh", tanh), ("erf", erf), ("sigmoid", sigmoid)):
    _register(_name, _function)
