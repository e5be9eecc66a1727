"""Histories: what makes a series, the order of runs, what changed at a step, and what cannot be one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from graphnet.analyze.history import History, changed_versions, history
from graphnet.compilers import Target
from graphnet.errors import StoreError, UsageError
from graphnet.evaluate.records import Environment, Floor, Result, Timing

SAMPLES = 40


def record(run: int, ms: float, **fields: object) -> Result:
    """A result of run number `run`, a day each, whose samples have 0.1 % of noise about `ms`."""
    draw = np.random.default_rng(run)
    plain = Result(
        run_id=f"run-{run:02}", graph_id="", graph="net", subset="vision", structure_hash="abc", compiler="jax",
        target=Target(), verdict="ok", environment="machine", versions={"jax": "1.0"},
        timing=Timing(samples_ns=tuple(int(ms * 1e6 * np.exp(0.001 * draw.normal())) for _ in range(SAMPLES))),
        started=f"2026-11-{run + 1:02}T10:00:00+00:00",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def stepped(after: float, **fields: object) -> list[Result]:
    """Twelve runs, 10 ms and then, from the seventh on, `after` ms with another version."""
    return [record(run, 10.0 * (1 + run % 3 * 0.001), **fields) for run in range(6)] + [
        record(run, after * (1 + run % 3 * 0.001), **{"versions": {"jax": "1.1"}, **fields}) for run in range(6, 12)
    ]


def of(results: Sequence[Result], *environments: Environment, **selected: Sequence[str]) -> History:
    return history(results, {item.key: item for item in environments}, **selected)


def test_a_step_says_where_how_much_and_what_changed() -> None:
    found = of(stepped(12.3))
    (series,), (change,) = found.series, found.changes
    assert (found.runs, found.short, len(series.points)) == (12, 0, 12)
    assert (change.before.run, change.after.run) == ("run-05", "run-06")
    assert change.step.ratio == pytest.approx(1.23, rel=0.003)
    assert change.versions == ("jax 1.0 -> 1.1",)
    assert not change.possible


def test_points_have_medians_with_their_intervals() -> None:
    """An interval that covers the median of 40 samples in 95 % of cases: the 14th and the 27th of them in order."""
    results = stepped(12.3)
    point = of(results).series[0].points[3]
    assert results[3].timing
    ordered = np.sort(results[3].timing.samples_ns) * 1e-9
    assert (point.seconds, point.low, point.high) == pytest.approx((np.median(ordered), ordered[13], ordered[26]))


def test_runs_are_in_the_order_of_time_whatever_that_of_reading() -> None:
    results = stepped(12.3)
    assert of(results[::-1]) == of(results)
    zoned = [
        msgspec.structs.replace(r, started=r.started.replace("T10:00:00+00:00", "T12:00:00+02:00")) for r in results
    ]
    assert of(zoned).series[0].points == of(results).series[0].points


def test_unlike_machines_settings_and_graphs_are_never_one_series() -> None:
    other: list[dict[str, object]] = [
        {"environment": "another"}, {"target": Target(threads=2)}, {"target": Target(options={"o": 1})},
        {"structure_hash": "def"}, {"dims": {"batch": 8}}, {"seed": 1}, {"passes": ("none",)}, {"compiler": "torch"},
    ]  # fmt: skip
    for fields in other:
        slow = [record(run, 12.3, **fields) for run in range(6, 12)]
        found = of(stepped(10.0)[:6] + slow)
        assert len(found.series) == 2, fields
        assert found.changes == ()


def test_the_newest_run_is_first_and_in_it_the_slowest() -> None:
    late = [record(run, 10 * (1 + run % 3 * 0.001) * (0.5 if run >= 9 else 1), graph="late") for run in range(12)]
    found = of([*stepped(11.0), *stepped(15.0, graph="worse"), *stepped(8.0, graph="better"), *late])
    told = [(change.series.graph, change.after.run) for change in found.changes]
    assert told == [("late", "run-09"), ("worse", "run-06"), ("net", "run-06"), ("better", "run-06")]


def test_a_last_run_alone_is_a_possible_step() -> None:
    results = [record(run, 10 * (1 + run % 3 * 0.001)) for run in range(8)] + [record(8, 15)]
    (change,) = of(results).changes
    assert change.possible
    assert (change.before.run, change.after.run) == ("run-07", "run-08")


def test_the_floor_of_the_machine_counts() -> None:
    floor = Floor(
        threads=1, pairs=9, spread=0.0, sequential=0.1 * 2**0.5, median=0.0, p95=0.0, sequential_p95=0.0, covered=1.0
    )  # fmt: skip
    machine = Environment(
        key="machine", cpu_model="c", cpu_count=1, memory_bytes=1, os="o", python="p",
        floors=(floor,),
    )  # fmt: skip
    assert len(of(stepped(11.0)).changes) == 1
    found = of(stepped(11.0), machine)
    assert found.changes == ()
    assert found.series[0].fit.noise == pytest.approx(0.1, rel=1e-3)


def test_the_same_run_of_two_places_counts_once_and_failures_not_at_all() -> None:
    results = stepped(12.3)
    failed = [record(run, 99.0, verdict=verdict) for run, verdict in ((20, "wrong"), (21, "unstable"))]
    empty = record(22, 1.0, timing=Timing(samples_ns=()))
    instant = record(23, 1.0, timing=Timing(samples_ns=(0, 0, 0)))
    assert of([*results, *results, *failed, empty, instant]) == of(results)


def test_selection_and_short_series() -> None:
    short = [record(run, 5.0, graph="short", graph_id="GN-1") for run in range(2)]
    found = of([*stepped(12.3), *short])
    assert ([series.graph for series in found.series], found.short) == (["net"], 1)
    with pytest.raises(UsageError, match=r"at least 3 runs .* in 2 run\(s\), no series has more than 2"):
        of([*stepped(12.3), *short], graphs=["GN-1"])
    with pytest.raises(UsageError, match=r"--compiler.* in 0 run"):
        of(stepped(12.3), compilers=["torch"])


def test_one_run_or_none_is_no_history() -> None:
    for results in ([], [record(0, 1.0)]):
        with pytest.raises(UsageError, match="at least 3 runs"):
            of(results)


@pytest.mark.parametrize("time", ["", "yesterday"])
def test_a_result_without_a_time_is_named(time: str) -> None:
    with pytest.raises(StoreError, match=r"net on jax in run 'run-01'.*no time"):
        of([record(0, 1.0), record(1, 1.0, started=time)])


def test_changed_versions() -> None:
    assert changed_versions({"a": "1", "b": "1", "c": "2"}, {"a": "1", "b": "2", "d": "3"}) == (
        "b 1 -> 2", "c 2 -> none", "d none -> 3",
    )  # fmt: skip
