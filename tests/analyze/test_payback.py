"""Runs until compile time is earned back."""

from __future__ import annotations

import pytest

from graphnet.analyze.payback import payback_runs


@pytest.mark.parametrize(
    ("compile_s", "latency_s", "expected"),
    [
        (10.5, 0.5, 19),  # 10 s more, 0.5 s saved a run: not yet even after 19 runs minus one half
        (1.25, 0.75, 1),  # 0.25 s saved by the first run
        (0.5, 0.5, 0),  # cheaper in both
        (1.0, 0.5, 0),  # as cheap
        (0.5, 1.0, None),  # as fast
        (0.5, 2.0, None),  # slower
    ],
)
def test_against_a_baseline_of_one_second_each(compile_s: float, latency_s: float, expected: int | None) -> None:
    assert payback_runs(compile_s, latency_s, 1.0, 1.0) == expected


def test_is_the_first_run_that_is_not_behind() -> None:
    runs = payback_runs(7.3, 0.11, 0.2, 0.17)
    assert runs is not None
    assert 7.3 + runs * 0.11 <= 0.2 + runs * 0.17
    assert 7.3 + (runs - 1) * 0.11 > 0.2 + (runs - 1) * 0.17
