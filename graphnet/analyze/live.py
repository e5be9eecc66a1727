"""Suspected pairs of the regression gate measured again: what of the suspicion stands when both builds take turns.

Two processes of the very same build differ (where weights lie, how the heap grew), for some graphs by more than a
regression. So a pair is measured again in several races with new processes each, and it is these races that are the
observations: their log ratios are tested by Student's t.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import msgspec
from scipy import special

from graphnet.analyze.pairs import time_ratio
from graphnet.analyze.regression import RAN, SUSPECTS, Gate, Live, Row, outcome, worst_first
from graphnet.errors import GraphNetError
from graphnet.evaluate.records import Result

Measure = Callable[[Result, float], tuple[Result, Result]]
"""Of a current result and a budget in seconds: the baseline build and the current one, timed in turns."""
FALSE_ALARMS = 0.01
"""Most of the chance, over all pairs that are measured again, that one fails although none is slower."""
FEWEST_TO_CLEAR = 2
FEWEST_TO_FAIL = 4
"""Fewer races may all have fallen on the same side of a program that has two speeds."""
MOST_RACES = 10
LOOKS = MOST_RACES - FEWEST_TO_FAIL + 1
"""How often a pair can fail: after each race from the 4th on."""
LEAST_DEVIATION = 1e-6
"""Of log ratios: races that agree to the last digit are few and lucky, not free of error."""
CONFIRMED = "confirmed: {races} races of new processes"
CLEARED = "not slower than the threshold when both builds take turns"
STILL_WIDE = "cannot tell after {races} races: the uncertainty is larger than the change; a larger --budget may tell"


def settle(
    found: Gate,
    measure: Measure,
    budget_s: float,
    told: Callable[[str], object] = lambda _: None,
) -> Gate:
    """Measure again every pair that would fail, or that may be slower than the threshold, because of its times.

    Races go on until a pair is clear of suspicion, or fails, or 10 were run. It is clear when the 95 % interval of the
    mean log ratio lies above the threshold. It fails when, after at least 4 races, the mean is below the threshold and
    p that it is not slower at all is at most 1 % divided by the number of suspects and by 7, the number of times that
    one looks (Bonferroni). Which pairs are suspects was decided on other samples, so that nothing is tested on what
    made it suspect. A pair that cannot be measured keeps its status, and says why. What failed otherwise than by its
    times is not measured again: a wrong result does not become right by a second run that is.
    """
    suspects = sum(map(_suspected, found.rows))
    if found.refused or not suspects:
        return found

    def again(row: Row) -> Row:
        return _settled(row, measure, budget_s, FALSE_ALARMS / (suspects * LOOKS), told)

    rows = [again(row) if _suspected(row) else row for row in found.rows]
    return msgspec.structs.replace(found, rows=worst_first(rows))


def verdict(logs: Sequence[float], threshold: float, level: float) -> bool | None:
    """Whether log ratios of performance, one from each race, tell of a regression; None while they do not tell.

    `level` is the p that is needed for one.
    """
    mean, error = statistics.fmean(logs), _error(logs)
    degrees = len(logs) - 1
    below = mean < math.log(threshold)
    if len(logs) >= FEWEST_TO_FAIL and below and special.stdtr(degrees, mean / error) <= level:
        return True
    if mean - special.stdtrit(degrees, 0.975) * error > math.log(threshold):
        return False
    return None


def _suspected(row: Row) -> bool:
    if row.pair.current is None:
        return False
    uncertain = row.status == "passed" and row.change is not None and (row.change.low or 1) < row.threshold
    return row.status in SUSPECTS or uncertain


def _settled(row: Row, measure: Measure, budget_s: float, level: float, told: Callable[[str], object]) -> Row:
    assert row.pair.current is not None
    name = f"{row.pair.current.graph} on {row.pair.current.compiler}"
    logs: list[float] = []
    rounds, slower = 0, None
    while len(logs) < MOST_RACES and slower is None:
        told(f"measuring again: {name}, race {len(logs) + 1}")
        try:
            log, count = _race(row.pair.current, measure, budget_s)
        except GraphNetError as error:
            note = f"{row.note}; not measured again: {error}".lstrip("; ")
            return msgspec.structs.replace(row, live=Live(problem=str(error), budget_s=budget_s), note=note)
        logs.append(log)
        rounds += count
        if len(logs) >= FEWEST_TO_CLEAR:
            slower = verdict(logs, row.threshold, level)
    live = _live(logs, rounds, budget_s)
    if slower:
        note = CONFIRMED.format(races=len(logs))
        return msgspec.structs.replace(row, status="regressed", live=live, note=note)
    if slower is None:
        note = STILL_WIDE.format(races=len(logs))
        return msgspec.structs.replace(row, status="unstable", live=live, note=note)
    status = row.status if row.status == "passed" else "not confirmed"
    return msgspec.structs.replace(row, status=status, live=live, note=CLEARED)


def _race(current: Result, measure: Measure, budget_s: float) -> tuple[float, int]:
    """Logarithm of performance over that of the baseline build, and the number of rounds. Raises GraphNetError."""
    before, after = measure(current, budget_s)
    for build, result in (("baseline", before), ("current", after)):
        if result.verdict not in RAN:
            raise GraphNetError(f"the {build} build: {outcome(result)}")
    time = time_ratio(before, after)
    if time is None or not time.rounds:
        raise GraphNetError("the two builds were not timed in turns")
    return -math.log(time.value), time.rounds


def _error(logs: Sequence[float]) -> float:
    return max(LEAST_DEVIATION, statistics.stdev(logs)) / math.sqrt(len(logs))


def _live(logs: Sequence[float], rounds: int, budget_s: float) -> Live:
    mean, half = statistics.fmean(logs), float(special.stdtrit(len(logs) - 1, 0.975)) * _error(logs)
    low, high = math.exp(mean - half), math.exp(mean + half)
    return Live(math.exp(mean), low, high, len(logs), rounds, budget_s)
