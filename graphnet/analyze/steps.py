"""Steps in a series of run times: where the level changed and stayed changed, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

PENALTY = 10.0
"""What each level of a fit costs: absolute deviations, in units of the noise.

A series of nothing but normal noise then shows a step in at most 1 % of cases, whatever its length (in 0.2 % from 20
points on); its last run alone is told as a possible step as rarely (`python -m benchmarks.false_steps`).
"""
SHORTEST = 2
"""Runs of the first and of the last level at least: with absolute deviations, one outlier then saves no penalty."""
SHORTEST_BETWEEN = 4
"""Of a level between two steps: where the old level is back after two runs, those were disturbed."""
LEAST_NOISE = 1e-3
"""Of a logarithm: no process repeats another's time better than to 0.1 %, even where all samples are equal."""
NORMAL_95 = 1.959964
"""Standard errors from the middle of a 95 % interval to its ends."""
_MAD_TO_DEVIATION = 1.482602
_MEDIAN_DEVIATION = 1.253314
"""Standard error of a median over that of a mean, of normal noise."""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a series in which nothing but noise happens."""

    start: int
    end: int
    """Indices of its first point and of the one after its last."""
    seconds: float
    """Median."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A change of level between the points `index - 1` and `index`."""

    index: int
    ratio: float
    """Time after over time before: above 1 is slower."""
    low: float
    """Lower end of the 95 % interval of the ratio."""
    high: float


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A series as levels with steps between them."""

    noise: float
    """Standard deviation of the logarithm of a single point."""
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    possible: Step | None = None
    """The last point, where it lies so far off that another one like it would make a step."""


def fit(seconds: Sequence[float], errors: Sequence[float], floor: float = 0.0) -> Fit:
    """Piecewise constant fit of the logarithms of a series in the order of time, by optimal partitioning.

    `seconds` are positive medians, `errors` the standard errors of their logarithms, both of shape [n]; `floor` is the
    standard deviation of a logarithm that the machine adds from one process to the next. Minimised is the sum of
    absolute deviations from each level's median over the noise, plus PENALTY for each level (Jackson et al. 2005;
    asv's detector has the same loss). From 4 points on there can be a step. Raises ValueError without points.
    """
    if not len(seconds):
        raise ValueError("no points to fit")
    logs, own = np.log(np.asarray(seconds, np.float64)), np.asarray(errors, np.float64)
    noise = _noise(logs, own, floor)
    spreads = np.maximum(noise, own)
    cuts = _partition(logs / noise)
    while doubtful := [step for step in _steps(logs, spreads, cuts) if step.low <= 1 <= step.high]:
        cuts.remove(min(doubtful, key=lambda step: abs(np.log(step.ratio))).index)
    levels = tuple(
        Level(start=start, end=end, seconds=float(np.exp(np.median(logs[start:end])))) for start, end in pairwise(cuts)
    )
    return Fit(
        noise=noise, levels=levels, steps=tuple(_steps(logs, spreads, cuts)), possible=_possible(logs, spreads, cuts)
    )


def _noise(logs: np.ndarray, errors: np.ndarray, floor: float) -> float:
    """Of the scatter from point to point, which steps hardly touch; never below what each point has by itself."""
    known = float(np.hypot(np.median(errors), floor))
    if len(logs) < 2:
        return max(known, LEAST_NOISE)
    scatter = _MAD_TO_DEVIATION * float(np.median(np.abs(np.diff(logs)))) / 2**0.5
    return max(scatter, known, LEAST_NOISE)


def _partition(points: np.ndarray) -> list[int]:
    """Borders of the levels, 0 and n among them, of least deviations and penalties together."""
    count = len(points)
    deviations = np.zeros((count, count + 1))  # of the points before e from point m: a level's median is one of these
    np.cumsum(np.abs(points[:, None] - points[None, :]), axis=1, out=deviations[:, 1:])
    least, before = np.full(count + 1, np.inf), np.zeros(count + 1, int)
    least[0] = 0.0
    for end in range(min(SHORTEST, count), count + 1):
        shortest = SHORTEST if end == count else SHORTEST_BETWEEN
        starts = max(end - shortest, 0) + 1  # 0 is always among them: the first level
        own = (deviations[:, end, None] - deviations[:, :starts]).min(axis=0)
        totals = least[:starts] + own + PENALTY
        before[end] = int(np.argmin(totals))
        least[end] = totals[before[end]]
    cuts = [count]
    while cuts[-1]:
        cuts.append(int(before[cuts[-1]]))
    return cuts[::-1]


def _steps(logs: np.ndarray, spreads: np.ndarray, cuts: Sequence[int]) -> list[Step]:
    return [
        _step(logs, spreads, (start, middle, end)) for start, middle, end in zip(cuts, cuts[1:], cuts[2:], strict=False)
    ]


def _step(logs: np.ndarray, spreads: np.ndarray, borders: tuple[int, int, int]) -> Step:
    start, middle, end = borders
    change = float(np.median(logs[middle:end]) - np.median(logs[start:middle]))
    reach = NORMAL_95 * float(np.hypot(_error(spreads[start:middle]), _error(spreads[middle:end])))
    return Step(
        index=middle, ratio=float(np.exp(change)), low=float(np.exp(change - reach)), high=float(np.exp(change + reach))
    )


def _error(spreads: np.ndarray) -> float:
    """Standard error of the median of points; a median of one or two is their mean."""
    factor = _MEDIAN_DEVIATION if len(spreads) > 2 else 1.0
    return factor * float(np.sqrt(np.mean(spreads**2) / len(spreads)))


def _possible(logs: np.ndarray, spreads: np.ndarray, cuts: Sequence[int]) -> Step | None:
    start, end = cuts[-2:]
    last = end - 1
    if last - start < SHORTEST:
        return None
    step = _step(logs, spreads, (start, last, end))
    return step if abs(np.log(step.ratio)) > PENALTY * spreads[last] else None
