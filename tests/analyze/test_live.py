"""Suspects of the gate measured again: the rule, on measurements whose ratio is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphnet.analyze.live import settle
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
    assert (row.live.rounds, row.live.budget_s) == (20, 10)


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


def test_a_wide_interval_is_measured_once_more_with_twice_the_budget() -> None:
    budgets: list[float] = []

    def measure(result: Result, budget: float) -> tuple[Result, Result]:
        budgets.append(budget)
        return turns(0.9, noise=0.5 if budget < 20 else 0.002)

    assert status(settle(gate(*SLOW, 0.95), measure, 10)) == "regressed"
    assert budgets == [10, 20]


def test_an_interval_that_stays_wide_is_no_failure() -> None:
    found = settle(gate(*SLOW, 0.95), lambda result, budget: turns(0.9, noise=0.9), 10)
    assert status(found) == "not confirmed"
    assert "budget" in found.rows[0].note
    assert found.rows[0].live is not None
    assert found.rows[0].live.budget_s == 20


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
    def never(result: Result, budget: float) -> tuple[Result, Result]:
        raise AssertionError("measured")

    base = of(record("a", 4), record("b", 4), record("c", 4), record("d", 4))
    now = of(record("a", verdict="wrong"), record("b"), record("d", 4))
    found = settle(gate(base, now, 0.95), never, 10)
    assert [row.status for row in found.rows] == ["newly incorrect", "newly failing", "missing", "passed"]
