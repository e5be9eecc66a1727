"""The noise floor: its estimator by hand and on simulated machines whose spread is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphnet.analyze.noise import between, floor_from
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate.records import Result
from tests.analyze.raced import result

ROUNDS = 20


def test_equal_errors_leave_the_mean_square_less_the_error() -> None:
    assert between([0.03, -0.05], [0.0004, 0.0004]) == pytest.approx(math.sqrt(0.0017 - 0.0004))
    assert between([0.03, -0.05], [0.0, 0.0]) == pytest.approx(math.sqrt(0.0017))


def test_unlike_errors_solve_the_equation_of_paule_and_mandel() -> None:
    """y^2 = 9, 16 with v = 2, 0: 9 / (2 + t) + 16 / t = 2 at t = (21 + sqrt(697)) / 4."""
    assert between([3.0, 4.0], [2.0, 0.0]) ** 2 == pytest.approx((21 + math.sqrt(697)) / 4)


def test_it_is_never_negative() -> None:
    assert between([0.01, -0.01], [0.1, 0.1]) == 0.0
    assert between([0.0, 0.0], [0.0, 0.0]) == 0.0


def simulated(tau: float, sigma: float, race: str, generator: np.random.Generator) -> tuple[Result, Result]:
    """A program against itself: each process has a level of its own, tau / sqrt(2) wide, each block an error."""
    levels = generator.normal(0, tau / math.sqrt(2), 2)
    blocks = 1e4 * np.exp(levels[:, None] + generator.normal(0, sigma, (2, ROUNDS)))
    mine, other = (list(map(float, row)) for row in blocks)
    return result(mine, race=race), result(other, race=race or "apart")


def test_the_spread_of_simulated_processes_is_found() -> None:
    """Over 400 pairs the standard error of a standard deviation is tau / sqrt(800), 3.5 %."""
    generator = np.random.default_rng(0)
    pairs = [simulated(0.02, 0.01, f"race {number}", generator) for number in range(400)]
    pairs += [simulated(0.05, 0.01, "", generator) for _ in range(400)]
    floor = floor_from(pairs, "2026-12-03")
    assert floor.spread == pytest.approx(0.02, rel=0.12)
    assert floor.sequential == pytest.approx(0.05, rel=0.12)
    assert floor.median == pytest.approx(0.6745 * 0.0205, rel=0.15)
    assert floor.p95 == pytest.approx(1.96 * 0.0205, rel=0.15)
    assert floor.sequential_p95 == pytest.approx(1.96 * 0.05, rel=0.15)
    assert floor.covered < 0.5, "blocks alone do not tell of processes"
    assert (floor.pairs, floor.threads, floor.compilers, floor.measured) == (400, 1, ("jax",), "2026-12-03")


def test_processes_that_do_not_differ_have_no_floor() -> None:
    generator = np.random.default_rng(1)
    pairs = [simulated(0.0, 0.01, f"race {number}", generator) for number in range(100)]
    pairs += [simulated(0.0, 0.01, "", generator) for _ in range(100)]
    floor = floor_from(pairs)
    assert floor.spread < 0.001
    assert floor.covered >= 0.9


def test_figures_are_those_of_the_ratios() -> None:
    turns = [(result([100.0] * 8), result([100.0 * factor] * 8)) for factor in (1.0, 1.01, 1.04)]
    apart = [(result([100.0] * 8), result([factor * 100.0] * 8, race="y")) for factor in (1.1, 1.2)]
    floor = floor_from([*turns, *apart])
    assert (floor.pairs, floor.median, floor.covered) == pytest.approx((3, 0.01, 1 / 3))
    assert floor.p95 == pytest.approx(0.037), "linear between 0.01 and 0.04"
    assert floor.sequential_p95 == pytest.approx(0.195)


def test_too_little_is_refused() -> None:
    pair = result([100.0] * 8), result([101.0] * 8)
    with pytest.raises(UsageError, match="at least 2 pairs that ran one after the other, not 0"):
        floor_from([pair, pair])
    with pytest.raises(UsageError, match=r"one device and thread count, not of: cpu with 1 .*, cpu with 2 "):
        floor_from([(pair[0], result([1.0], target=Target(threads=2)))])
    with pytest.raises(UsageError, match="there is none"):
        floor_from([])
