"""Whether one result is slower than another: ratio of performance, its interval, a one-sided test on stored samples."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from graphnet.analyze.pairs import block_medians, round_logs, time_ratio
from graphnet.analyze.stats import median_seconds
from graphnet.evaluate.records import Floor, Result, Timing

_HALF_WIDTHS = 2 * float(stats.norm.ppf(0.975))


class Change(NamedTuple):
    """Performance of a result over that of its baseline: 0.8 is slower, 1.25 faster."""

    ratio: float
    """Median time of the baseline over that of the current result."""
    low: float | None = None
    """Lower end of the 95 % interval, widened by the noise floor; None where there are too few samples for one."""
    high: float | None = None
    p: float | None = None
    """That the current result is not slower, not yet adjusted for the number of pairs; None like the interval."""
    rounds: int = 0
    """Pairs of blocks, where the two took turns in one race; else 0."""


def seconds(result: Result | None) -> float | None:
    """Median seconds of one inference, whatever the verdict; None without a time above 0."""
    if result is None or result.timing is None or not result.timing.samples_ns:
        return None
    found = median_seconds(result.timing.samples_ns)
    return found if found > 0 else None


def change(base: Result, current: Result, floor: Floor | None) -> Change | None:
    """How the performance of `current` compares; None where a side has no time above 0."""
    before, after = seconds(base), seconds(current)
    if before is None or after is None or base.timing is None or current.timing is None:
        return None
    few = min(len(base.timing.samples_ns), len(current.timing.samples_ns)) < 2
    time = None if few else time_ratio(base, current, floor)
    if time is None or time.low is None or time.high is None or not 0 < time.low <= time.high < math.inf:
        return Change(before / after)
    p = max(_p_of_samples(base, current, time.rounds), _p_of_interval(time.value, time.low, time.high))
    return Change(1 / time.value if time.rounds else before / after, 1 / time.high, 1 / time.low, p, time.rounds)


def _p_of_interval(value: float, low: float, high: float) -> float:
    """One-sided p of the widened interval, on a logarithmic scale: noise of the machine counts in the test too."""
    deviation = math.log(high / low) / _HALF_WIDTHS
    if deviation == 0:
        return 0.0 if value > 1 else 1.0
    return float(stats.norm.sf(math.log(value) / deviation))


def _p_of_samples(base: Result, current: Result, rounds: int) -> float:
    """Wilcoxon's signed-rank test on paired rounds, Mann-Whitney's on block medians, or on raw samples without blocks.

    Samples within a block depend on each other, medians of blocks hardly do.
    """
    if rounds:
        logs = round_logs(base, current)
        return float(stats.wilcoxon(logs, alternative="greater").pvalue) if any(logs) else 1.0
    assert base.timing is not None
    assert current.timing is not None
    before, after = _observations(base.timing, current.timing)
    return float(stats.mannwhitneyu(after, before, alternative="greater").pvalue)


def _observations(base: Timing, current: Timing) -> tuple[np.ndarray, np.ndarray]:
    if _whole_blocks(base) and _whole_blocks(current):
        return np.array(list(block_medians(base).values())), np.array(list(block_medians(current).values()))
    return np.asarray(base.samples_ns, np.float64), np.asarray(current.samples_ns, np.float64)


def _whole_blocks(timing: Timing) -> bool:
    """Whether there are blocks that count, and they cut the samples without a rest."""
    counts = [block.samples for block in timing.blocks if not block.disturbed]
    return bool(counts) and min(counts) > 0 and sum(counts) == len(timing.samples_ns)
