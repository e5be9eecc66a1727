"""Blocks of samples, and the ratio of two results' times with its interval. A stand-in until the real one is merged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import stats

from graphnet.analyze.stats import median_ratio, median_seconds, ratio_interval
from graphnet.evaluate.records import Environment, Floor, Result, Timing


class Ratio(NamedTuple):
    """Time of one result over that of another, with its 95 % interval."""

    value: float
    low: float
    high: float
    rounds: int
    """Pairs of blocks that it is from; 0 when the two did not take turns."""


def block_medians(timing: Timing) -> dict[int, float]:
    """Median seconds of the counting block of each round."""
    found, start = {}, 0
    for block in timing.blocks:
        if not block.disturbed:
            found[block.round] = median_seconds(timing.samples_ns[start : start + block.samples])
            start += block.samples
    return found


def time_ratio(base: Result, other: Result, floor: Floor | None = None) -> Ratio | None:
    """Time of `other` over that of `base`; None without samples."""
    if not (base.timing and other.timing):
        return None
    logs = _paired_logs(base, other)
    if len(logs) >= 2:
        half = float(stats.sem(logs)) * float(stats.t.ppf(0.975, len(logs) - 1))
        half = math.hypot(half, 1.96 * floor.spread) if floor else half
        middle = float(np.mean(logs))
        return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))
    value = median_ratio(base.timing.samples_ns, other.timing.samples_ns)
    interval = ratio_interval(base.timing.samples_ns, other.timing.samples_ns)
    if not value or interval is None:
        return None
    extra = 1.96 * floor.sequential if floor else 0.0
    low, high = (math.hypot(math.log(value / end), extra) for end in interval)
    return Ratio(value, value * math.exp(-low), value * math.exp(high), 0)


def floor_of(result: Result, environments: Iterable[Environment]) -> Floor | None:
    """The noise floor of the machine, device and threads of a result."""
    for environment in environments:
        for floor in environment.floors:
            if (environment.key, floor.device, floor.threads) == (
                result.environment, result.target.device, result.target.threads,
            ):  # fmt: skip
                return floor
    return None


def _paired_logs(base: Result, other: Result) -> list[float]:
    for one in (base.timing, *base.more_timings):
        for two in (other.timing, *other.more_timings):
            if one and two and one.race and one.race == two.race:
                first, second = block_medians(one), block_medians(two)
                return [math.log(second[number] / first[number]) for number in first if number in second]
    return []
