"""Steps: those that were put in are found, noise and outliers are none; the fit against all possible ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.false_steps import false_steps, found_steps
from graphnet.analyze import steps
from graphnet.analyze.steps import PENALTY, SHORTEST, SHORTEST_BETWEEN, fit


def series(*levels: tuple[float, int], noise: float = 0.01, seed: int = 0) -> list[float]:
    """Seconds: so many points at each level, with normal noise."""
    draw = np.random.default_rng(seed)
    return [value * math.exp(noise * draw.normal()) for value, count in levels for _ in range(count)]


def borders(seconds: Sequence[float], errors: float = 0.0, floor: float = 0.0) -> list[int]:
    return [step.index for step in fit(seconds, [errors] * len(seconds), floor).steps]


def test_known_steps_are_found_where_they_are() -> None:
    found = fit(series((1.0, 12), (1.23, 10), (0.9, 8)), [0.0] * 30)
    assert [step.index for step in found.steps] == [12, 22]
    assert found.steps[0].ratio == pytest.approx(1.23, rel=0.01)
    assert found.steps[1].ratio == pytest.approx(0.9 / 1.23, rel=0.01)
    assert all(step.low < step.ratio < step.high for step in found.steps)
    assert [(level.start, level.end) for level in found.levels] == [(0, 12), (12, 22), (22, 30)]
    assert [level.seconds for level in found.levels] == pytest.approx([1.0, 1.23, 0.9], rel=0.01)
    assert found.noise == pytest.approx(0.01, rel=0.5)
    assert found.possible is None


def test_two_runs_are_a_step_and_one_is_a_possible_one() -> None:
    assert borders(series((1.0, 10), (1.3, 2))) == [10]
    found = fit(series((1.0, 10), (1.3, 1)), [0.0] * 11)
    assert found.steps == ()
    assert found.possible is not None
    assert found.possible.index == 10
    assert found.possible.ratio == pytest.approx(1.3, rel=0.02)


def test_what_passes_soon_is_no_step() -> None:
    assert borders(series((1.0, 10), (1.3, 2), (1.0, 10))) == []
    assert borders(series((1.0, 10), (1.3, 4), (1.0, 10))) == [10, 14]


def test_noise_is_not_below_intervals_or_the_floor() -> None:
    seconds = series((1.0, 10), (1.05, 2))
    assert borders(seconds) == [10]
    assert borders(seconds, errors=0.03) == []
    assert borders(seconds, floor=0.03) == []
    assert fit(seconds, [0.03] * 12, 0.04).noise == pytest.approx(0.05)


def test_a_step_of_two_doubtful_runs_is_none() -> None:
    seconds, errors = series((1.0, 10), (1.15, 2)), [0.001] * 10 + [0.2] * 2
    assert borders(seconds) == [10]
    found = fit(seconds, errors)
    assert found.steps == ()
    assert [(level.start, level.end) for level in found.levels] == [(0, 12)]


def test_equal_times_have_the_least_noise() -> None:
    found = fit([1.0] * 6, [0.0] * 6)
    assert (found.noise, found.steps, found.possible) == (steps.LEAST_NOISE, (), None)
    assert fit([2.0], [0.0]).levels[0].seconds == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no points"):
        fit([], [])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(6, 40), st.floats(0.01, 100), st.data())
def test_a_single_outlier_is_no_step(seed: int, count: int, factor: float, data: st.DataObject) -> None:
    """Whatever its size: what it adds is at most what the noise of its neighbours lets it save."""
    plain = series((1.0, count), seed=seed)
    place = data.draw(st.integers(0, count - 1))
    disturbed = [value * factor if index == place else value for index, value in enumerate(plain)]
    assert borders(disturbed, floor=0.02) == []


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(4, 40), st.floats(1e-6, 1e6))
def test_a_factor_changes_nothing(seed: int, count: int, factor: float) -> None:
    seconds = series((1.0, count // 2), (1.2, count - count // 2), seed=seed)
    plain, scaled = fit(seconds, [0.0] * count), fit([value * factor for value in seconds], [0.0] * count)
    assert [step.index for step in plain.steps] == [step.index for step in scaled.steps]
    assert [step.ratio for step in plain.steps] == pytest.approx([step.ratio for step in scaled.steps])
    assert (plain.possible is None) == (scaled.possible is None)
    levels = [level.seconds * factor for level in plain.levels]
    assert levels == pytest.approx([level.seconds for level in scaled.levels])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-30, 30), min_size=4, max_size=11))
def test_fit_is_the_best_of_all(points: list[float]) -> None:
    """The partition costs no more than any other that is allowed, each tried."""
    count = len(points)

    def cost(cuts: Sequence[int]) -> float:
        levels = [points[start:end] for start, end in itertools.pairwise(cuts)]
        return sum(float(np.abs(np.subtract(level, np.median(level))).sum()) + PENALTY for level in levels)

    def allowed(cuts: Sequence[int]) -> bool:
        first, *between, last = [end - start for start, end in itertools.pairwise(cuts)] * (2 if len(cuts) == 2 else 1)
        return min(first, last) >= SHORTEST and min(between, default=SHORTEST_BETWEEN) >= SHORTEST_BETWEEN

    every = [
        (0, *inner, count) for size in range(count) for inner in itertools.combinations(range(1, count), size)
    ]  # fmt: skip
    best = min(cost(cuts) for cuts in every if allowed(cuts))
    found = steps._partition(np.asarray(points))
    assert allowed(found)
    assert cost(found) == pytest.approx(best)


@pytest.mark.parametrize("count", [4, 6, 10, 30])
def test_pure_noise_has_at_most_the_stated_share_of_steps(count: int) -> None:
    """At most 1 %: of 1,500 series that is 15, and 28 are beyond it by chance once in a thousand times."""
    assert max(false_steps("normal", count, 1500, seed=7)) <= 28 / 1500


def test_intervals_hold_the_true_ratio() -> None:
    found, covered = found_steps(30, 5, 300, seed=3)
    assert found > 0.95
    assert covered > 0.9
