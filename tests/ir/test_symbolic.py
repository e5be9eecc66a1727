"""Arithmetic on dimensions against integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.errors import GraphFormatError
from graphnet.ir import dims, symbolic
from graphnet.ir.graph import Dimension

SIZES = {"a": 3, "b": 5, "h": 224}
DIMENSIONS = st.recursive(
    st.sampled_from(["a", "b", "h"]) | st.integers(-9, 9),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner).map(lambda t: f"({t[1]}){t[0]}({t[2]})"),
    max_leaves=4,
)
ROUNDED: list[tuple[Callable[[Dimension, Dimension], Dimension], Callable[[int, int], int]]] = [
    (symbolic.add, lambda x, y: x + y),
    (symbolic.sub, lambda x, y: x - y),
    (symbolic.mul, lambda x, y: x * y),
    (symbolic.maximum, max),
    (symbolic.minimum, min),
]


@given(left=DIMENSIONS, right=DIMENSIONS, which=st.sampled_from(ROUNDED))
def test_like_integers(
    left: Dimension,
    right: Dimension,
    which: tuple[Callable[[Dimension, Dimension], Dimension], Callable[[int, int], int]],
) -> None:
    ours, integers = which
    x, y = dims.evaluate(left, SIZES), dims.evaluate(right, SIZES)
    assert dims.evaluate(ours(left, right), SIZES) == integers(x, y)


@given(left=DIMENSIONS, right=st.integers(1, 9) | st.sampled_from(["a", "a*2", "a+b"]))
def test_division_rounds_as_python_does(left: Dimension, right: Dimension) -> None:
    x, y = dims.evaluate(left, SIZES), dims.evaluate(right, SIZES)
    assert dims.evaluate(symbolic.floordiv(left, right), SIZES) == x // y
    assert dims.evaluate(symbolic.ceildiv(left, right), SIZES) == -(-x // y)
    assert dims.evaluate(symbolic.mod(left, right), SIZES) == x % y


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (symbolic.floordiv("a*12*64", "a*12"), 64),
        (symbolic.floordiv("a*64+b*64", "a+b"), 64),
        (symbolic.floordiv("a*b*64+b*b*64", "a*8+b*8"), "8*b"),
        (symbolic.add(symbolic.floordiv("h-1", 2), 1), symbolic.floordiv("h+1", 2)),
        (symbolic.maximum("a", 1), "a"),
        (symbolic.maximum("a", 0), "a"),
        (symbolic.minimum("a+3", "a"), "a"),
        (symbolic.mul("a", 0), 0),
        (symbolic.product(("a", 2, 3)), "6*a"),
        (symbolic.product(()), 1),
    ],
)
def test_one_spelling(found: Dimension, expected: Dimension) -> None:
    assert found == expected


def test_exact_division_only_where_exact() -> None:
    assert symbolic.exact_div("a*6", 3) == "2*a"
    assert symbolic.exact_div("a*6", 4) is None
    assert symbolic.exact_div("a+1", "b") is None
    assert symbolic.exact_div("a", 0) is None


def test_division_by_zero_is_an_error() -> None:
    with pytest.raises(GraphFormatError, match="divided by zero"):
        symbolic.floordiv("a", 0)


def test_signs_and_bounds() -> None:
    assert symbolic.at_least("a*b-1", 0)
    assert symbolic.at_least("(a+1)//2", 1)
    assert symbolic.at_least("max(a-9, 0)", 0)
    assert not symbolic.at_least("a-2", 0)
    assert not symbolic.at_least("a-b", 0)
    assert [symbolic.sign(dim) for dim in ("a", "-a", "a-1", -4, 0)] == [1, -1, None, -1, 0]


def test_ranges_decide_min_and_max() -> None:
    ranges = {"seq": (2, 128)}
    assert symbolic.resolve("min(512, seq)", ranges) == "seq"
    assert symbolic.resolve("min(64, seq)*2", ranges) == "2*min(64, seq)"
    assert symbolic.resolve("max(seq, 128)", ranges) == 128
    assert symbolic.resolve("max(0, seq - 2)+1", ranges) == "seq - 1"
    assert symbolic.resolve("min(seq, 200)//2", ranges) == "seq//2"
    assert symbolic.resolve(7, ranges) == 7
