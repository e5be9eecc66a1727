"""Outputs against the float64 reference: the smallest tolerance level at which all elements are close.

An element x is close to its reference r at level t when |x - r| <= atol(t) + rtol(t) |r|. NaN is close to NaN only,
an infinity to the same infinity only. Integers, bool and strings must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphnet.evaluate.records import OutputError
from graphnet.ir.graph import Value
from graphnet.ir.tensors import numpy_dtype

LEVELS = range(-10, 1)
_EXPONENTS: dict[str, tuple[float, float]] = {
    "float16": (1.0, 3 / 5),
    "bfloat16": (1.0, 1.796 / 5),
    "float32": (1.0, 5.886 / 5),
    "complex64": (1.0, 5.886 / 5),
    "float64": (7 / 5, 7 / 5),
    "complex128": (7 / 5, 7 / 5),
    # not in the published table: judged as the next wider format that is
    "float8e4m3fn": (1.0, 1.796 / 5), "float8e4m3fnuz": (1.0, 1.796 / 5), "float8e5m2": (1.0, 1.796 / 5),
    "float8e5m2fnuz": (1.0, 1.796 / 5), "float4e2m1": (1.0, 1.796 / 5),
}  # fmt: skip
"""atol(t) = 10^(a t) and rtol(t) = 10^(r t), by dtype (arXiv 2510.24035)."""


def tolerances(dtype: str, level: int) -> tuple[float, float]:
    """atol and rtol of a dtype at level t; zeros for exact dtypes."""
    exponents = _EXPONENTS.get(dtype)
    if exponents is None:
        return 0.0, 0.0
    return 10.0 ** (exponents[0] * level), 10.0 ** (exponents[1] * level)


def compare(name: str, declared: Value, actual: np.ndarray, reference: np.ndarray) -> tuple[OutputError, str]:
    """The error of one output, and what is wrong with it beyond numbers (`""` if nothing).

    `declared` is the type in the bound graph; a symbol in its shape (a size that the run determines) takes the size
    that the reference has.
    """
    found = np.asarray(actual)
    problem = _type_problem(name, declared, found, reference)
    if problem:
        return OutputError(name=name, dtype=declared.dtype, level=None), problem
    if declared.dtype not in _EXPONENTS:
        return _compare_exact(name, declared.dtype, found, reference)
    return _compare_float(name, declared.dtype, _wide(found), _wide(reference))


def worst(errors: Sequence[OutputError]) -> int | None:
    """The level of a whole result: the largest over its outputs, None if any has none (or there is no output)."""
    levels = [error.level for error in errors]
    return max(level for level in levels if level is not None) if levels and None not in levels else None


def _type_problem(name: str, declared: Value, actual: np.ndarray, reference: np.ndarray) -> str:
    if declared.dtype != "string" and actual.dtype != numpy_dtype(declared.dtype):
        return f"output '{name}' has dtype {actual.dtype}, the graph declares {declared.dtype}"
    expected = tuple(
        size if isinstance(size, int) else found for size, found in zip(declared.shape, reference.shape, strict=False)
    )
    if len(declared.shape) != reference.ndim or expected != reference.shape:
        return f"reference of '{name}' has shape {reference.shape}, the graph declares {declared.shape}"
    if actual.shape != expected:
        return f"output '{name}' has shape {actual.shape}, expected {expected}"
    return ""


def _compare_exact(name: str, dtype: str, actual: np.ndarray, reference: np.ndarray) -> tuple[OutputError, str]:
    if dtype == "string":
        unequal = actual.astype(str) != reference.astype(str)
    else:
        unequal = actual.astype(reference.dtype, copy=False) != reference
    count = int(np.count_nonzero(unequal))
    if not count:
        return OutputError(name=name, dtype=dtype, level=LEVELS[0], max_abs=0.0, max_rel=0.0), ""
    problem = f"output '{name}': {count} of {actual.size} elements differ, and {dtype} must be exact"
    if dtype == "string":
        return OutputError(name=name, dtype=dtype, level=None), problem
    expected = reference[unequal].astype(np.float64)
    largest, relative = _largest(np.abs(actual[unequal].astype(np.float64) - expected), np.abs(expected))
    return OutputError(name=name, dtype=dtype, level=None, max_abs=largest, max_rel=relative), problem


def _compare_float(name: str, dtype: str, actual: np.ndarray, reference: np.ndarray) -> tuple[OutputError, str]:
    expected = _overflown(dtype, actual, reference)
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return OutputError(name=name, dtype=dtype, level=None), (
            f"output '{name}': not NaN or infinite where the reference is ({int(np.count_nonzero(~finite))} elements)"
        )
    found, expected = actual[finite], expected[finite]
    wrong = int(np.count_nonzero(~np.isfinite(found)))
    if wrong:
        problem = f"output '{name}': {wrong} of {actual.size} elements are NaN or infinite, the reference is finite"
        return OutputError(name=name, dtype=dtype, level=None), problem
    with np.errstate(over="ignore"):
        difference, scale = np.abs(found - expected), np.abs(expected)
    largest, relative = _largest(difference, scale)
    level = smallest_level(dtype, difference, scale)
    return OutputError(name=name, dtype=dtype, level=level, max_abs=largest, max_rel=relative), ""


def _overflown(dtype: str, actual: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The reference, infinite where its value rounds to infinity in `dtype` and `actual` is infinite too."""
    if actual.dtype.kind == "c" or not np.isinf(actual).any():
        return reference
    with np.errstate(over="ignore"):
        rounded = reference.astype(numpy_dtype(dtype)).astype(np.float64)
    return np.where(np.isinf(actual), rounded, reference)


def _largest(difference: np.ndarray, scale: np.ndarray) -> tuple[float, float]:
    """Largest absolute error, and largest relative error over elements whose reference is not 0."""
    if not difference.size:
        return 0.0, 0.0
    relative = np.zeros_like(difference)
    with np.errstate(over="ignore"):
        np.divide(difference, scale, out=relative, where=scale > 0)
    most = np.finfo(np.float64).max
    return float(min(difference.max(), most)), float(min(relative.max(), most))


def smallest_level(dtype: str, difference: np.ndarray, scale: np.ndarray) -> int | None:
    """Smallest t with difference <= atol(t) + rtol(t) scale everywhere: both grow with t, so by bisection."""
    low, high = LEVELS[0], LEVELS[-1]
    if not _close(dtype, high, difference, scale):
        return None
    while low < high:
        middle = (low + high) // 2
        if _close(dtype, middle, difference, scale):
            high = middle
        else:
            low = middle + 1
    return low


def _close(dtype: str, level: int, difference: np.ndarray, scale: np.ndarray) -> bool:
    absolute, relative = tolerances(dtype, level)
    return bool((difference <= absolute + relative * scale).all())


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
