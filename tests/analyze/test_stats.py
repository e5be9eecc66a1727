"""Summaries of samples against numpy and a coverage check of the interval."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet.analyze.stats import geometric_mean, median_interval, summarize


def test_summary_is_in_seconds() -> None:
    got = summarize([1_000_000_000, 3_000_000_000, 2_000_000_000])
    assert (got.median, got.min, got.mean, got.count) == (2.0, 1.0, 2.0, 3)
    assert got.low <= got.median <= got.high


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarize([])


def test_interval_of_equal_samples_is_a_point() -> None:
    assert median_interval(np.full(10, 0.5)) == (0.5, 0.5)


def test_interval_repeats_and_covers_the_true_median() -> None:
    rng = np.random.default_rng(1)
    draws = [rng.lognormal(0.0, 0.2, 60) for _ in range(60)]
    intervals = [median_interval(draw) for draw in draws]
    assert intervals == [median_interval(draw) for draw in draws]
    assert sum(low <= 1.0 <= high for low, high in intervals) >= 52


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 0.5, 8.0]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no values"):
        geometric_mean([])
