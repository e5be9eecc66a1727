"""How much slower one result is than another: paired by the rounds of a race where they took turns, with an interval.

Paired: of each common round the logarithm of the ratio of block medians is taken, which drift of the machine leaves
alone; the estimate is their median. Its interval is a percentile bootstrap over rounds, with percentiles pushed out for
few rounds (Hesterberg 2015, What Teachers Should Know About the Bootstrap) and for rounds that depend on their
neighbours: the standard error grows by sqrt((1 + r) / (1 - r)), r being the lag-1 autocorrelation of ranks
(Bayley and Hammersley 1946, The "Effective" Number of Independent Observations), as far as it is positive. Below
6 rounds no bootstrap has 95 %, and Student's t takes its place, which errs on the wide side for heavy tails (Benjamini
1983). `benchmarks/ratio_coverage.py` shows how often these intervals hold the truth, beside other methods: at least
95 % where noise favours neither program (94.7 % below 6 rounds), 89 to 95 % where neighbouring rounds correlate by
0.3. A load that hits one of the programs alone is taken for its speed.

Not paired: medians of blocks are resampled on each side (a cluster bootstrap: samples of one block are alike).

Two processes of one program differ by more than their blocks show. That spread is a random effect in the sense of
meta-analysis (DerSimonian and Laird 1986): its variance, from `Floor`, is added to that of the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from scipy import stats

from graphnet.analyze.stats import blocks_of, median_ratio, median_seconds, ratio_interval
from graphnet.evaluate.records import Environment, Floor, Result, Timing

RESAMPLES = 1000
FEWEST_ROUNDS = 6
"""Of a bootstrap: the range of 5 values holds their median in 93.75 % of all cases."""
MOST_DEPENDENCE = 0.8
"""Of the autocorrelation that is believed."""
NORMAL_95 = 1.96


class Ratio(msgspec.Struct, frozen=True):
    """Time of one result over that of another, with a 95 % interval."""

    value: float
    low: float | None
    """None where there are too few samples to tell."""
    high: float | None
    rounds: int
    """Rounds in which both took turns; 0 where they ran one after the other."""

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves out 1: there is a difference."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


class MachineFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The noise floor that some results were measured over; None where it was never measured."""

    machine: str
    """Key of the environment."""
    device: str
    threads: int
    floor: Floor | None


def time_ratio(base: Result, other: Result, floor: Floor | None = None) -> Ratio | None:
    """Time of `other` over that of `base`; None where one has no samples, or none that took any time.

    `floor` widens the interval.
    """
    logs = round_logs(base, other)
    value = _quotient(logs, base, other)
    if value is None or base.timing is None or other.timing is None:
        return None
    ends = location_interval(tuple(logs)) if logs else _unpaired_interval(base.timing, other.timing)
    if ends is None:
        return Ratio(value, None, None, len(logs))
    middle, spread = math.log(value), 0.0
    if floor:
        spread = floor.spread if logs else floor.sequential
    down, up = (math.hypot(end - middle, NORMAL_95 * spread) for end in ends)
    return Ratio(value, math.exp(middle - down), math.exp(middle + up), len(logs))


def time_quotient(base: Result, other: Result) -> float | None:
    """The value of `time_ratio` alone, which is had sooner."""
    return _quotient(round_logs(base, other), base, other)


def _quotient(logs: Sequence[float], base: Result, other: Result) -> float | None:
    if logs:
        return math.exp(float(np.median(logs)))
    if not (base.timing and other.timing and base.timing.samples_ns and other.timing.samples_ns):
        return None
    return median_ratio(_units(base.timing), _units(other.timing)) or None


def speedup(base: Result, result: Result, environments: Iterable[Environment]) -> Ratio | None:
    """Time of the baseline over that of `result`: above 1 is faster. None unless both are `ok`.

    `environments` have the floor of the machine. A result over itself is 1, and no comparison: it has no interval.
    """
    if base.verdict != "ok" or result.verdict != "ok" or base.timing is None:
        return None
    if base is result:
        return Ratio(1.0, None, None, 0)
    return time_ratio(result, base, wider_floor(result, base, environments))


def wider_floor(one: Result, other: Result, environments: Iterable[Environment]) -> Floor | None:
    """The floor to compare two results with; of results from unlike machines or settings the higher one."""
    known = list(environments)
    floors = [floor for result in (one, other) if (floor := floor_of(result, known))]
    return max(floors, key=lambda floor: floor.sequential, default=None)


def floor_of(result: Result, environments: Iterable[Environment]) -> Floor | None:
    """The noise floor of the machine, device and thread count that a result was measured with."""
    for environment in environments:
        if environment.key == result.environment:
            for floor in environment.floors:
                if (floor.device, floor.threads) == (result.target.device, result.target.threads):
                    return floor
    return None


def floors_of(results: Iterable[Result], environments: Iterable[Environment]) -> tuple[MachineFloor, ...]:
    """The floor of each machine, device and thread count among the results, in the order in which they appear."""
    known, found = list(environments), {}
    for result in results:
        place = result.environment, result.target.device, result.target.threads
        if place not in found:
            machine, device, threads = place
            found[place] = MachineFloor(
                machine=machine, device=device, threads=threads, floor=floor_of(result, known)
            )  # fmt: skip
    return tuple(found.values())


def block_medians(timing: Timing) -> dict[int, float]:
    """Median seconds of one inference in each round that has a block which counts; of several, the last one."""
    medians = {}
    for number, samples in blocks_of(timing):
        medians[number] = median_seconds(samples)
    return medians


def round_logs(base: Result, other: Result) -> list[float]:
    """Logarithm of the ratio of block medians in each round of the race that both were in; empty if there is none.

    Of several common races the first one counts. Rounds in which a median is 0 are left out.
    """
    mine = {timing.race: timing for timing in _timings(base)}
    for timing in _timings(other):
        if timing.race in mine:
            ours, theirs = block_medians(mine[timing.race]), block_medians(timing)
            common = sorted(ours.keys() & theirs.keys())
            logs = [math.log(theirs[n] / ours[n]) for n in common if ours[n] > 0 and theirs[n] > 0]
            if logs:
                return logs
    return []


@lru_cache(maxsize=4096)
def location_interval(logs: tuple[float, ...]) -> tuple[float, float] | None:
    """95 % interval of the median of values in the order of time; None for a single one. The seed is fixed."""
    values, count = np.asarray(logs), len(logs)
    if count < 2:
        return None
    inflation = _inflation(values)
    quantile = float(stats.t.ppf(0.975, count - 1))
    if count < FEWEST_ROUNDS:
        half = quantile * float(values.std(ddof=1)) / math.sqrt(count)
        return float(values.mean()) - half, float(values.mean()) + half
    tail = float(stats.norm.cdf(-quantile * inflation * math.sqrt(count / (count - 1))))
    low, high = np.quantile(_resampled_medians(values, 0), (tail, 1 - tail))
    return float(low), float(high)


def _inflation(values: np.ndarray) -> float:
    """By what the standard error of the median grows since neighbouring rounds are alike; never below 1."""
    ranks = stats.rankdata(values) - (len(values) + 1) / 2
    total = float((ranks**2).sum())
    if total == 0:
        return 1.0
    found = float((ranks[1:] * ranks[:-1]).sum()) / total + 1 / len(values)  # that much is expected of independent ones
    dependence = min(MOST_DEPENDENCE, max(0.0, found))
    return math.sqrt((1 + dependence) / (1 - dependence))


def _resampled_medians(values: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(np.median(values[_draws(len(values), seed)], axis=1))


@lru_cache(maxsize=256)
def _draws(count: int, seed: int) -> np.ndarray:
    """Indices of RESAMPLES resamples, the same each time so that a report repeats."""
    return np.random.default_rng((seed, count)).integers(0, count, (RESAMPLES, count), dtype=np.uint16)


def _unpaired_interval(base: Timing, other: Timing) -> tuple[float, float] | None:
    """95 % interval of the logarithm of the ratio of medians; None where there are too few samples, or zeros."""
    units = _units(base), _units(other)
    if not (base.blocks and other.blocks):
        found = ratio_interval(*units)
        return (math.log(found[0]), math.log(found[1])) if found and found[0] > 0 else None
    fewest = min(map(len, units))
    if fewest < FEWEST_ROUNDS or min(map(min, units)) <= 0:
        return None
    below, above = (_resampled_medians(np.log(np.asarray(unit)), seed) for seed, unit in enumerate(units))
    tail = float(stats.norm.cdf(float(stats.t.ppf(0.025, fewest - 1)) * math.sqrt(fewest / (fewest - 1))))
    low, high = np.quantile(above - below, (tail, 1 - tail))
    return float(low), float(high)


def _units(timing: Timing) -> Sequence[float]:
    """What may be taken as independent, in nanoseconds: medians of blocks; samples where there are no blocks."""
    return [float(np.median(samples)) for _, samples in blocks_of(timing)] or timing.samples_ns


def _timings(result: Result) -> list[Timing]:
    """Those of races."""
    every = [result.timing, *result.more_timings]
    return [timing for timing in every if timing is not None and timing.race]
