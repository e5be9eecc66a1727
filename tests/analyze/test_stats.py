"""Summaries of samples against numpy and a coverage check of the interval."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet.analyze.stats import geometric_mean, median_interval, summarize
from graphnet.evaluate.records import Block, Timing


def test_summary_is_in_seconds() -> None:
    got = summarize(Timing(samples_ns=(1_000_000_000, 3_000_000_000, 2_000_000_000)))
    assert (got.median, got.min, got.mean, got.count) == (2.0, 1.0, 2.0, 3)
    assert got.low <= got.median <= got.high


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarize(Timing(samples_ns=()))


def test_interval_of_equal_samples_is_a_point() -> None:
    assert median_interval(np.full(10, 0.5)) == (0.5, 0.5)


def test_interval_repeats_and_covers_the_true_median() -> None:
    rng = np.random.default_rng(1)
    draws = [rng.lognormal(0.0, 0.2, 60) for _ in range(60)]
    intervals = [median_interval(draw) for draw in draws]
    assert intervals == [median_interval(draw) for draw in draws]
    assert sum(low <= 1.0 <= high for low, high in intervals) >= 52


def test_interval_of_blocks_covers_the_true_median_where_that_of_samples_does_not() -> None:
    """50 blocks of 4 samples that share most of their noise."""
    rng = np.random.default_rng(1)
    blocks = tuple(Block(round=number, samples=4) for number in range(50))
    held = held_by_samples = 0
    for _ in range(100):
        logs = np.repeat(rng.normal(0, 0.2, 50), 4) + rng.normal(0, 0.02, 200)
        samples = tuple(int(sample) for sample in 1e6 * np.exp(logs))
        summary = summarize(Timing(samples_ns=samples, blocks=blocks))
        held += summary.low <= 1e-3 <= summary.high
        low, high = median_interval(np.asarray(samples) * 1e-9)
        held_by_samples += low <= 1e-3 <= high
        assert summary.low <= summary.median <= summary.high
    assert held >= 90
    assert held_by_samples < 80


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 0.5, 8.0]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="no values"):
        geometric_mean([])
