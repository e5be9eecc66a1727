from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.evaluate import correctness
from graphnet.evaluate.records import OutputError
from graphnet.ir.graph import DType, Shape, Value


def compare(
    actual: np.ndarray, reference: np.ndarray, dtype: DType = "float32", shape: Shape | None = None
) -> tuple[OutputError, str]:
    declared = Value(dtype=dtype, shape=reference.shape if shape is None else shape)
    return correctness.compare("y", declared, actual, reference)


@pytest.mark.parametrize(
    ("dtype", "level", "atol", "rtol"),
    [
        ("float16", -5, 1e-5, 1e-3),
        ("bfloat16", -5, 1e-5, 10**-1.796),
        ("float32", -5, 1e-5, 10**-5.886),
        ("float32", -3, 1e-3, 10 ** (-3 * 5.886 / 5)),
        ("complex64", -5, 1e-5, 10**-5.886),
        ("float64", -5, 1e-7, 1e-7),
        ("complex128", -5, 1e-7, 1e-7),
        ("float32", 0, 1.0, 1.0),
        ("int32", -5, 0.0, 0.0),
        ("bool", 0, 0.0, 0.0),
    ],
)
def test_tolerances_of_the_table(dtype: str, level: int, atol: float, rtol: float) -> None:
    assert correctness.tolerances(dtype, level) == pytest.approx((atol, rtol), rel=1e-12)


@pytest.mark.parametrize(
    ("error", "level"), [(0.0, -10), (5e-11, -10), (5e-7, -6), (5e-6, -5), (5e-4, -3), (0.5, 0), (1.5, None)]
)
def test_level_of_an_absolute_error_at_reference_zero(error: float, level: int | None) -> None:
    found, problem = compare(np.array([error], np.float32), np.array([0.0]))
    assert found.level == level
    assert problem == ""
    assert found.max_abs == pytest.approx(error, rel=1e-6)
    assert found.max_rel == 0.0, "not defined where the reference is 0"


def test_relative_part_by_hand() -> None:
    # at t = -5: 1e-5 + 1.3e-6 * 1000 = 1.31e-3 allows an error of 1e-3; at t = -6: 1e-6 + 8.65e-8 * 1000 does not
    found, _ = compare(np.array([1000.001], np.float64), np.array([1000.0]), "float64")
    assert found.level == math.ceil(math.log10(0.001 / 1001) * 5 / 7)
    found, _ = compare(np.array([1000.001], np.float32), np.array([1000.0]))
    assert found.level == -5
    assert found.max_rel == pytest.approx(1e-6, rel=0.05)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-2, 2)), min_size=1, max_size=20))
def test_level_is_the_smallest_that_holds(pairs: list[tuple[float, float]]) -> None:
    reference = np.array([value for value, _ in pairs])
    actual = np.array([value + error for value, error in pairs])
    found, _ = compare(actual, reference, "float64")

    def close(level: int) -> bool:
        tolerance = 10.0 ** (1.4 * level)
        return all(abs(x - r) <= tolerance + tolerance * abs(r) for x, r in zip(actual, reference, strict=True))

    holding = [level for level in range(-10, 1) if close(level)]
    assert found.level == (min(holding) if holding else None)


def test_one_bad_element_decides() -> None:
    actual = np.zeros((100, 100), np.float32)
    actual[50, 50] = 0.05
    assert compare(actual, np.zeros((100, 100)))[0].level == -1


@pytest.mark.parametrize(
    ("actual", "reference", "good"),
    [
        ([np.nan, 1], [np.nan, 1], True),
        ([np.nan, 1], [0, 1], False),
        ([0, 1], [np.nan, 1], False),
        ([np.inf, -np.inf], [np.inf, -np.inf], True),
        ([np.inf, 1], [-np.inf, 1], False),
        ([np.inf, 1], [5, 1], False),
        ([3e38, 1], [np.inf, 1], False),
        ([np.inf, 1], [1e39, 1], True),
        ([np.inf, 1], [-1e39, 1], False),
    ],
)
def test_nan_and_infinity(actual: list[float], reference: list[float], good: bool) -> None:
    found, problem = compare(np.array(actual, np.float32), np.array(reference, np.float64))
    assert found.level == (-10 if good else None)
    assert (problem == "") == good


def test_float16_overflow_rounds_to_infinity_by_the_standard() -> None:
    assert compare(np.array([np.inf], np.float16), np.array([65536.0]), "float16")[0].level == -10
    assert compare(np.array([np.inf], np.float16), np.array([65000.0]), "float16")[0].level is None


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "bool"])
def test_exact_dtypes(dtype: DType) -> None:
    reference = np.array([1, 0, 1]).astype(dtype)
    assert compare(reference.copy(), reference, dtype)[0].level == -10
    other = np.array([1, 1, 1]).astype(dtype)
    found, problem = compare(other, reference, dtype)
    assert (found.level, found.max_abs) == (None, 1.0)
    assert problem == f"output 'y': 1 of 3 elements differ, and {dtype} must be exact"


def test_large_integers_do_not_wrap() -> None:
    reference = np.array([10_000_000_000], np.int64)
    assert compare(reference + 1, reference, "int64")[0].level is None


def test_complex() -> None:
    reference = np.array([1 + 1j, 2j])
    assert compare(reference.astype(np.complex64), reference, "complex64")[0].level == -10
    found, _ = compare((reference + 0.003j).astype(np.complex64), reference, "complex64")
    assert found.level == -2
    assert found.max_abs == pytest.approx(0.003, rel=1e-3)
    broken = np.array([complex(np.nan, 0), 2j], np.complex64)
    assert compare(broken, reference, "complex64")[0].level is None


def test_bfloat16_and_int4() -> None:
    reference = np.array([1.0, 1 / 3])
    found, _ = compare(reference.astype(ml_dtypes.bfloat16), reference, "bfloat16")
    # 1/3 is off by 6.5e-4; at t = -7, 10^(-7 * 0.3592) / 3 = 1.0e-3 is allowed, at t = -8 4.5e-4
    assert found.level == -7
    four = np.array([-8, 7]).astype(ml_dtypes.int4)
    assert compare(four, np.array([-8, 7], np.int8), "int4")[0].level == -10


def test_strings() -> None:
    reference = np.array(["a", "b"])
    assert compare(np.array(["a", "b"], object), reference, "string")[0].level == -10
    assert compare(np.array(["a", "c"], object), reference, "string")[0].level is None


def test_declared_type_is_checked() -> None:
    reference = np.zeros((2, 3))
    found, problem = compare(np.zeros((2, 3)), reference)
    assert found.level is None
    assert problem == "output 'y' has dtype float64, the graph declares float32"
    assert "has shape (3, 2), expected (2, 3)" in compare(np.zeros((3, 2), np.float32), reference)[1]
    assert "has shape (6,), expected" in compare(np.zeros(6, np.float32), reference)[1]


def test_size_that_the_run_determines() -> None:
    reference = np.array([[0, 2, 3]])
    assert compare(reference.copy(), reference, "int64", (1, "found"))[0].level == -10
    assert "expected (1, 3)" in compare(reference[:, :2].copy(), reference, "int64", (1, "found"))[1]


def test_empty_and_scalar_outputs() -> None:
    assert compare(np.zeros((0, 4), np.float32), np.zeros((0, 4)))[0].level == -10
    assert compare(np.array(2.0, np.float32), np.array(2.0))[0].level == -10


def test_worst_level() -> None:
    def at(level: int | None) -> OutputError:
        return OutputError(name="y", dtype="float32", level=level)

    assert correctness.worst([at(-7), at(-3)]) == -3
    assert correctness.worst([at(-7), at(None)]) is None
    assert correctness.worst([]) is None
