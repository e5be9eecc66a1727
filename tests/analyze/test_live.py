"""Suspects of the gate measured again: the rule, on measurements whose ratio is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphnet.analyze.live import FALSE_ALARMS, LOOKS, MOST_RACES, settle, verdict
from graphnet.analyze.regression import Gate, gate
from graphnet.errors import UsageError
from graphnet.evaluate.records import Result
from tests.analyze.gate_records import blocks_of, of, record

Measured = Callable[[Result, float], tuple[Result, Result]]
SLOW = (of(record(ms=4)), of(record(ms=5, seed=1)))


def turns(ratio: float, noise: float = 0.002, drift: float = 1.0, seed: int = 0) -> tuple[Result, Result]:
    """Two builds of which the current one has `ratio` of the performance; over the race all times grow by `drift`."""
    generator = np.random.default_rng(seed)
    machine = 4 * np.linspace(1, drift, 20)
    before, after = (machine * factor * np.exp(generator.normal(0, noise, 20)) for factor in (1, 1 / ratio))
    return (
        record(ms=4, timing=blocks_of(list(before), race="again")),
        record(ms=4, timing=blocks_of(list(after), race="again")),
    )


def status(found: Gate) -> str:
    (row,) = found.rows
    return row.status


def test_confirmed_when_it_is_slower_in_turns_too() -> None:
    found = settle(gate(*SLOW, 0.95), lambda result, budget: turns(0.8), 10)
    (row,) = found.rows
    assert (row.status, found.outcome) == ("regressed", 1)
    assert row.live is not None
    assert row.live.ratio == pytest.approx(0.8, rel=0.01)
    assert (row.live.races, row.live.rounds, row.live.budget_s) == (4, 80, 10)


def test_gate_php_judy_87_drift_between_two_runs_does_not_fail_in_turns() -> None:
    """A..A B..B: the machine slowed down between the runs. A B A B: it still slows down, by half, and both see it."""
    sequential = np.linspace(4, 6, 40)
    before = record(ms=4, timing=blocks_of(list(sequential[:20])))
    after = record(ms=4, timing=blocks_of(list(sequential[20:])))
    suspected = gate(of(before), of(after), 0.95)
    assert (status(suspected), suspected.outcome) == ("regressed", 1)
    found = settle(suspected, lambda result, budget: turns(1.0, drift=1.5), 10)
    assert (status(found), found.outcome) == ("not confirmed", 0)


def test_what_cannot_be_told_is_measured_too() -> None:
    wide = [list(np.linspace(2, 6, 20) + shift) for shift in (0, 0.12)]
    suspected = gate(of(record(ms=4, timing=blocks_of(wide[0]))), of(record(ms=4, timing=blocks_of(wide[1]))), 0.98)
    assert status(suspected) == "unstable"
    assert status(settle(suspected, lambda result, budget: turns(0.9), 10)) == "regressed"
    assert status(settle(suspected, lambda result, budget: turns(1.0), 10)) == "not confirmed"


def test_slower_but_within_the_threshold_is_not_confirmed() -> None:
    found = settle(gate(*SLOW, 0.95), lambda result, budget: turns(0.97), 10)
    assert (status(found), found.outcome) == ("not confirmed", 0)


def races(*ratios: float) -> tuple[Measured, list[float]]:
    """Races of known ratios, one after the other, and the budgets that they were given."""
    budgets: list[float] = []

    def measure(result: Result, budget: float) -> tuple[Result, Result]:
        budgets.append(budget)
        return turns(ratios[(len(budgets) - 1) % len(ratios)])

    return measure, budgets


def test_races_go_on_until_they_tell() -> None:
    measure, budgets = races(0.88, 0.92, 0.89, 0.91)
    found = settle(gate(*SLOW, 0.95), measure, 3)
    assert (status(found), found.rows[0].note) == ("regressed", "confirmed: 4 races of new processes")
    assert budgets == [3, 3, 3, 3]
    measure, budgets = races(1.01, 0.99)
    assert status(settle(gate(*SLOW, 0.8), measure, 3)) == "not confirmed"
    assert len(budgets) == 2


def test_processes_that_differ_by_more_than_the_change_are_no_failure() -> None:
    measure, budgets = races(0.7, 1.1, 0.8, 1.0)
    found = settle(gate(*SLOW, 0.95), measure, 3)
    (row,) = found.rows
    assert (row.status, found.outcome, len(budgets)) == ("unstable", 0, 10)
    assert "budget" in row.note
    assert row.live is not None
    assert row.live.low is not None
    assert row.live.high is not None
    assert row.live.low < 0.95 < 1 < row.live.high


def test_three_races_on_the_slow_side_of_a_program_with_two_speeds_do_not_fail_it() -> None:
    measure, budgets = races(0.8, 0.8, 0.8, 1.0, 1.0, 1.2, 1.2, 1.0)
    assert status(settle(gate(*SLOW, 0.95), measure, 3)) == "unstable"
    assert len(budgets) > 3


def test_what_passed_but_may_be_slower_is_measured_too() -> None:
    wide = [list(np.linspace(2, 6, 20) + shift) for shift in (0, 0.12)]
    before, after = (of(record(ms=4, timing=blocks_of(side))) for side in wide)
    passed = gate(before, after, 0.9)
    assert status(passed) == "passed"
    assert status(settle(passed, lambda result, budget: turns(0.8), 10)) == "regressed"
    cleared = settle(passed, lambda result, budget: turns(1.0), 10)
    assert status(cleared) == "passed"
    assert cleared.rows[0].live is not None
    clear = gate(of(record(ms=4)), of(record(ms=4, seed=1)), 0.5)
    assert status(settle(clear, never, 10)) == "passed"


@pytest.mark.parametrize("deviation", [0.01, 0.05, 0.2])
def test_false_alarms_when_nothing_is_slower(deviation: float) -> None:
    """A pair alone is to fail in 1 % of all cases at most, though one looks after each race."""
    generator = np.random.default_rng(1)
    failed = 0
    for _ in range(1000):
        logs = generator.normal(0, deviation, MOST_RACES)
        found = (verdict(list(logs[:count]), 0.95, FALSE_ALARMS / LOOKS) for count in range(2, MOST_RACES + 1))
        failed += next((told for told in found if told is not None), False)
    assert failed <= 20, "of a chance of 1 % that is too many once in 670 times"


def never(result: Result, budget: float) -> tuple[Result, Result]:
    raise AssertionError("measured")


def crashed(result: Result, budget: float) -> tuple[Result, Result]:
    return record(ms=4), record(message="killed")


def absent(result: Result, budget: float) -> tuple[Result, Result]:
    raise UsageError("no file of graph a")


def apart(result: Result, budget: float) -> tuple[Result, Result]:
    return record(ms=4), record(ms=4)


@pytest.mark.parametrize(
    ("measure", "why"), [(crashed, "the current build: crashed"), (absent, "no file"), (apart, "not timed in turns")]
)
def test_what_cannot_be_measured_again_stays_what_it_was(measure: Measured, why: str) -> None:
    found = settle(gate(*SLOW, 0.95), measure, 10)
    assert (status(found), found.outcome) == ("regressed", 1)
    assert why in found.rows[0].note


def test_what_failed_otherwise_is_not_measured_again() -> None:
    base = of(record("a", 4), record("b", 4), record("c", 4), record("d", 4))
    now = of(record("a", verdict="wrong"), record("b"), record("d", 4))
    found = settle(gate(base, now, 0.95), never, 10)
    assert [row.status for row in found.rows] == ["newly incorrect", "newly failing", "missing", "passed"]
