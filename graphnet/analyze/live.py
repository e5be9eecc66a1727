"""Suspected pairs of the regression gate measured again: what of the suspicion stands when both builds take turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from graphnet.analyze.pairs import Ratio, floor_of, time_ratio
from graphnet.analyze.regression import RAN, SUSPECTS, Gate, Live, Row, outcome, worst_first
from graphnet.errors import GraphNetError
from graphnet.evaluate.records import Environment, Result

Measure = Callable[[Result, float], tuple[Result, Result]]
"""Of a current result and a budget in seconds: the baseline build and the current one, timed in turns."""
ATTEMPTS = 2
"""The second one has twice the budget."""


def settle(
    found: Gate,
    measure: Measure,
    budget_s: float,
    machines: Sequence[Environment] = (),
    told: Callable[[str], object] = lambda _: None,
) -> Gate:
    """Measure again every pair that would fail, or of which one cannot tell, because of its times.

    It fails if and only if its ratio is below the threshold and the interval excludes 1: that of paired rounds,
    widened by the noise floor of programs that take turns, where `machines` have one. An interval
    that holds both 1 and the threshold tells neither: then the pair is measured once more with twice the budget. A pair
    that cannot be measured keeps its status, and says why. What failed otherwise than by its times is not measured
    again: a wrong result does not become right by a second run that is.
    """
    if found.refused:
        return found

    def again(current: Result, budget: float) -> Live:
        told(f"measuring again: {current.graph} on {current.compiler}, {budget:g} s for each build")
        return _measured(current, measure, budget, machines)

    rows = [_settled(row, again, budget_s) if row.status in SUSPECTS else row for row in found.rows]
    return msgspec.structs.replace(found, rows=worst_first(rows))


def _settled(row: Row, again: Callable[[Result, float], Live], budget_s: float) -> Row:
    current = row.pair.current
    if current is None:
        return row
    live = Live()
    for attempt in range(ATTEMPTS):
        live = again(current, budget_s * 2**attempt)
        if live.problem or not _too_wide(live, row.threshold):
            break
    if live.problem:
        return msgspec.structs.replace(
            row, live=live, note=f"{row.note}; not measured again: {live.problem}".lstrip("; ")
        )
    if live.ratio is not None and live.high is not None and live.ratio < row.threshold and live.high < 1:
        return msgspec.structs.replace(row, status="regressed", live=live, note="confirmed, both builds taking turns")
    note = "not slower than the threshold when both builds take turns"
    if _too_wide(live, row.threshold):
        note = "even taking turns, the uncertainty is larger than the change: a larger --budget may tell"
    return msgspec.structs.replace(row, status="not confirmed", live=live, note=note)


def _too_wide(live: Live, threshold: float) -> bool:
    """Whether the interval allows for no change as well as for a regression."""
    return live.low is not None and live.high is not None and live.low < threshold and live.high >= 1


def _measured(current: Result, measure: Measure, budget_s: float, machines: Sequence[Environment]) -> Live:
    try:
        before, after = measure(current, budget_s)
    except GraphNetError as error:
        return Live(problem=str(error), budget_s=budget_s)
    for build, result in (("baseline", before), ("current", after)):
        if result.verdict not in RAN:
            return Live(problem=f"the {build} build: {outcome(result)}", budget_s=budget_s)
    time = time_ratio(before, after, floor_of(after, machines))
    if time is None or not time.rounds:
        return Live(problem="the two builds were not timed in turns", budget_s=budget_s)
    return _live(time, budget_s)


def _live(time: Ratio, budget_s: float) -> Live:
    if time.low is None or time.high is None or not 0 < time.low <= time.high < math.inf:
        return Live(problem="too few rounds for an interval", budget_s=budget_s)
    return Live(1 / time.value, 1 / time.high, 1 / time.low, time.rounds, budget_s)
