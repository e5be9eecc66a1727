"""The regression gate on records whose ratios and chances are known."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy import stats

from graphnet.analyze.regression import SIGNIFICANCE, Gate, gate
from graphnet.analyze.slower import change
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate.records import Result, Timing
from graphnet.evaluate.store import ResultSet
from tests.analyze.gate_records import blocks_of, machine, of, record


def statuses(found: Gate) -> dict[str, str]:
    return {row.pair.known.graph: row.status for row in found.rows}


def test_ratio_is_baseline_median_over_current_median() -> None:
    before, after = record(ms=4), record(ms=5, seed=1)
    (row,) = gate(of(before), of(after), 0.95).rows
    assert before.timing is not None
    assert after.timing is not None
    expected = np.median(before.timing.samples_ns) / np.median(after.timing.samples_ns)
    assert row.change is not None
    assert row.change.ratio == pytest.approx(expected)
    assert row.change.low is not None
    assert row.change.high is not None
    assert row.change.low < expected < row.change.high
    assert row.status == "regressed"


@pytest.mark.parametrize(
    ("ms", "status", "outcome"), [(4.0, "passed", 0), (4.1, "passed", 0), (5.0, "regressed", 1), (3.0, "faster", 0)]
)
def test_status_and_outcome(ms: float, status: str, outcome: int) -> None:
    found = gate(of(record(ms=4)), of(record(ms=ms, seed=1)), 0.95)
    assert statuses(found) == {"a": status}
    assert found.outcome == outcome


def test_below_the_threshold_by_chance_is_no_regression() -> None:
    """Blocks from 2 to 6 ms on both sides: 3 % between their medians are nothing."""
    base = record(ms=4, timing=blocks_of(list(np.linspace(2, 6, 20))))
    current = record(ms=4, timing=blocks_of(list(np.linspace(2.12, 6.12, 20))))
    found = gate(of(base), of(current), 0.98)
    assert statuses(found) == {"a": "unstable"}
    assert found.outcome == 0
    assert "--live" in found.rows[0].note


def test_noise_floor_widens_the_interval() -> None:
    before, after = record(ms=4), record(ms=4.4, seed=1)
    loud = (machine(floor=0.1),)
    assert statuses(gate(of(before), of(after), 0.95)) == {"a": "regressed"}
    (row,) = gate(of(before, environments=loud), of(after, environments=loud), 0.95).rows
    assert row.status == "unstable", "10 % between jobs are within 1.96 times its deviation of 10 %"
    assert row.change is not None
    assert row.change.high is not None
    assert row.change.low is not None
    half = np.log(row.change.high / row.change.low) / 2
    assert half == pytest.approx(1.96 * 0.1, rel=0.05)


def test_an_unknown_noise_floor_is_said() -> None:
    bare = (machine(),)
    notes = gate(of(record(ms=4), environments=bare), of(record(ms=4), environments=bare), 0.95).notes
    assert any("noise floor" in note for note in notes)
    assert not gate(of(record(ms=4)), of(record(ms=4)), 0.95).notes


def test_p_is_mann_whitney_of_block_medians() -> None:
    before, after = record(ms=4, noise=0.05), record(ms=4.05, noise=0.05, seed=3)
    found = change(before, after, None)
    assert found is not None
    assert before.timing is not None
    assert after.timing is not None
    medians = [np.median(np.reshape(t.samples_ns, (20, 5)), axis=1) for t in (before.timing, after.timing)]
    expected = stats.mannwhitneyu(medians[1], medians[0], alternative="greater").pvalue
    assert found.p is not None
    assert found.p >= expected * (1 - 1e-9)


def test_false_discoveries_are_controlled_over_all_pairs() -> None:
    """300 pairs without any change, and 10 that are 3 % slower: with a threshold of 1 the test alone decides."""
    names = [f"g{number}" for number in range(310)]
    slow = set(names[:10])
    base = of(*(record(name, 4, noise=0.01) for name in names))
    now = of(*(record(name, 4.12 if name in slow else 4, noise=0.01, seed=1) for name in names))
    found = statuses(gate(base, now, 1.0))
    called = {name for name, status in found.items() if status == "regressed"}
    assert slow <= called
    assert len(called - slow) <= 2, f"at a rate of {SIGNIFICANCE} of the called ones; uncontrolled it would be about 15"


def test_results_of_one_race_are_compared_round_by_round() -> None:
    """The machine slows down by half over the race: 2 % are seen all the same, since both builds saw the same."""
    drift = np.linspace(4, 6, 20)
    before = record(ms=4, timing=blocks_of(list(drift), race="x"))
    after = record(ms=4, timing=blocks_of(list(drift * 1.02), race="x"))
    loud = (machine(floor=0.1),)
    (row,) = gate(of(before, environments=loud), of(after, environments=loud), 0.99).rows
    assert row.change is not None
    assert row.change.ratio == pytest.approx(1 / 1.02, rel=1e-4)
    assert row.change.rounds == 20
    alone = record(ms=4, timing=blocks_of(list(drift * 1.02), race="y"))
    assert statuses(gate(of(before, environments=loud), of(alone, environments=loud), 0.99)) == {"a": "unstable"}


def test_one_sample_is_judged_by_the_ratio_alone() -> None:
    bare = record(ms=4, timing=Timing(samples_ns=(4_000_000,)))
    for ms, status in ((4.1, "passed"), (5, "regressed"), (3, "faster")):
        (row,) = gate(of(bare), of(record(ms=ms)), 0.95).rows
        assert row.status == status
        assert "ratio alone" in row.note
        assert row.q is None


def test_blocks_that_do_not_fit_their_samples_are_left_aside() -> None:
    timing = blocks_of([4.0] * 20)
    torn = msgspec.structs.replace(timing, samples_ns=timing.samples_ns[:7])
    assert statuses(gate(of(record(ms=4, timing=torn)), of(record(ms=4)), 0.95)) == {"a": "passed"}


WRONG = record(verdict="wrong", stage="check")


@pytest.mark.parametrize(
    ("before", "after", "status", "failed"),
    [
        (record(ms=4), None, "missing", True),
        (record(), None, "missing", True),
        (None, record(ms=4), "added", False),
        (record(ms=4), record(), "newly failing", True),
        (record(ms=4), record(verdict="timeout"), "newly failing", True),
        (record(ms=4), WRONG, "newly incorrect", True),
        (record(ms=4), record(ms=4, verdict="unstable"), "unstable", False),
        (record(ms=4, verdict="unstable"), record(ms=4), "unstable", False),
        (record(ms=4, verdict="unstable"), WRONG, "newly incorrect", True),
        (record(), record(verdict="timeout"), "still failing", False),
        (WRONG, record(), "still failing", False),
        (record(), record(ms=4), "fixed", False),
        (record(ms=4), record(ms=4, structure_hash="other"), "not compared", True),
        (record(ms=4), record(ms=4, timing=Timing(samples_ns=(0, 0))), "not compared", True),
    ],
)
def test_what_verdicts_decide(before: Result | None, after: Result | None, status: str, failed: bool) -> None:
    rest = record("rest", 4)
    found = gate(of(rest, *filter(None, [before])), of(rest, *filter(None, [after])), 0.95)
    assert statuses(found) == {"a": status, "rest": "passed"}
    assert found.outcome == int(failed)


def test_level_of_correctness_is_already_in_the_verdict() -> None:
    found = gate(of(record(ms=4, level=-7)), of(record(ms=4, level=-4)), 0.95)
    assert statuses(found) == {"a": "passed"}


def test_gate_pybroker_pr_287_a_gate_that_measured_nothing_says_so() -> None:
    some = of(record(ms=4))
    for before, after in [(some, of()), (of(), some), (of(), of()), (of(record()), of(record()))]:
        assert gate(before, after, 0.95).outcome == 2
    others = gate(some, of(record("b", 4)), 0.95)
    assert others.outcome == 2, "only other graphs"
    assert statuses(others) == {"a": "missing", "b": "added"}


def test_gate_test_infra_6969_the_mean_is_of_the_intersection_and_missing_ones_fail() -> None:
    base = of(record("slow", 100), record("a", 4), record("b", 4))
    whole = gate(base, of(record("slow", 100), record("a", 4, seed=1), record("b", 4, seed=1)), 0.95)
    part = gate(base, of(record("a", 4, seed=1), record("b", 4, seed=1)), 0.95)
    assert whole.outcome == 0
    assert part.outcome == 1
    assert [mean.count for mean in part.means] == [2]
    two = [row.change.ratio for row in part.rows if row.change]
    assert part.means[0].ratio == pytest.approx(np.sqrt(two[0] * two[1]))
    assert part.means[0].ratio == pytest.approx(1, abs=0.01), "not the mean of all over the mean of two"


def test_gate_fast_mail_parser_pr_128_noise_between_jobs_is_no_regression() -> None:
    """0.3 % within a job, 26 % between jobs, as the noise floor of the machine tells."""
    between = (machine(floor=0.26),)
    base, head = record(ms=4, noise=0.003), record(ms=4 * 1.26, noise=0.003, seed=1)
    found = gate(of(base, environments=between), of(head, environments=between), 0.95)
    assert statuses(found) == {"a": "unstable"}
    assert found.outcome == 0


def test_unlike_environments_are_refused_and_named() -> None:
    after = record(ms=4, environment="m2", target=Target(threads=2), versions={"jax": "1.1"})
    found = gate(of(record(ms=4)), of(after, environments=[machine("m2", "Xeon")]), 0.95)
    assert {item.what: item.values for item in found.unlike} == {
        "CPU": ("EPYC", "Xeon"),
        "threads": ("1", "2"),
        "jax": ("1.0", "1.1"),
    }
    assert (found.outcome, found.rows) == (2, ())
    allowed = gate(
        of(record(ms=4)), of(after, environments=[machine("m2", "Xeon")]), 0.95, allow_environment_change=True
    )
    assert statuses(allowed) == {"a": "passed"}
    assert len(allowed.unlike) == 3, "it is said all the same"


def test_the_same_cpu_on_another_system_is_compared() -> None:
    after = of(record(ms=4, environment="m2"), environments=[machine("m2")])
    assert gate(of(record(ms=4)), after, 0.95).outcome == 0


def test_machines_without_facts_are_told_by_their_keys() -> None:
    found = gate(of(record(ms=4)), of(record(ms=4, environment="m2"), environments=()), 0.95)
    assert [(item.what, item.values) for item in found.unlike] == [("machine", ("m1", "m2"))]


@pytest.mark.parametrize(
    "fields",
    [
        {"dims": {"batch": 8}},
        {"passes": ("default", "fuse")},
        {"seed": 1},
        {"target": Target(options={"level": "basic"})},
        {"target": Target(precision="bfloat16")},
    ],
)
def test_unlike_settings_are_never_a_pair(fields: dict[str, object]) -> None:
    rest, other = record("rest", 4), msgspec.structs.replace(record(ms=4), **fields)
    found = gate(of(rest, record(ms=4)), of(rest, other), 0.95)
    assert sorted(row.status for row in found.rows) == ["added", "missing", "passed"]
    assert all(row.pair.conditions for row in found.rows if row.pair.known.graph == "a"), (
        "it says what tells them apart"
    )


def test_several_thread_counts_of_a_set_are_told_apart() -> None:
    def both(ms: float) -> ResultSet:
        return of(record(ms=4), record(ms=ms, target=Target(threads=2)))

    found = gate(both(2), both(3), 0.95)
    assert [(row.pair.conditions, row.status) for row in found.rows] == [
        ("2 thread(s)", "regressed"),
        ("1 thread(s)", "passed"),
    ]


def test_newest_of_duplicates_counts() -> None:
    old, new = record(ms=9, started="2026-01-01"), record(ms=4, started="2026-02-01")
    for results in ((old, new), (new, old)):
        found = gate(of(record(ms=4)), of(*results), 0.95)
        assert statuses(found) == {"a": "passed"}
        assert any("1 older result" in note for note in found.notes)


def test_a_current_set_of_several_runs_is_said() -> None:
    two = of(record(ms=4), record("b", 4, run_id="s"))
    assert any("2 runs" in note for note in gate(two, two, 0.95).notes)


def test_worst_comes_first() -> None:
    base = of(*(record(name, 4) for name in "abcd"))
    now = of(record("a", 4), record("b", 5), record("c", 8))
    assert [row.pair.known.graph for row in gate(base, now, 0.95).rows] == ["c", "b", "d", "a"]


def test_thresholds_of_single_graphs() -> None:
    base = of(record("a", 4), record("a", 4, compiler="tvm"), record("b", 4, graph_id="GN-2026-CV-001"))
    now = of(record("a", 4.4), record("a", 4.4, compiler="tvm"), record("b", 4.4, graph_id="GN-2026-CV-001"))

    def regressed(**per_graph: float) -> set[str]:
        found = gate(base, now, 0.95, per_graph=per_graph)
        return {f"{r.pair.known.graph}/{r.pair.known.compiler}" for r in found.rows if r.failed}

    assert regressed() == {"a/jax", "a/tvm", "b/jax"}
    assert regressed(a=0.8) == {"b/jax"}
    assert regressed(**{"a/tvm": 0.8}) == {"a/jax", "b/jax"}
    assert regressed(**{"GN-*-CV-*": 0.8}) == {"a/jax", "a/tvm"}
    assert regressed(**{"*": 0.8, "a/jax": 0.95}) == {"a/jax"}, "the last one that fits counts"


def test_thresholds_of_unknown_graphs_are_named() -> None:
    with pytest.raises(UsageError, match="resnet5O"):
        gate(of(record(ms=4)), of(record(ms=4)), 0.95, per_graph={"a": 0.9, "resnet5O": 0.9})


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan"), float("inf")])
def test_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(UsageError, match="threshold"):
        gate(of(), of(), threshold)


def test_bare_medians_know_graph_and_compiler_alone() -> None:
    bare = of(
        Result(
            run_id="", graph_id="", graph="a", subset="", structure_hash="", compiler="jax", target=Target(),
            verdict="ok", timing=Timing(samples_ns=(4_000_000,)),
        ),
        environments=(),
    )  # fmt: skip
    now = record(ms=8, dims={"batch": 8}, target=Target(threads=2), seed=3)
    found = gate(bare, of(now), 0.95, bare=True)
    assert statuses(found) == {"a": "regressed"}
    assert any("ratio alone" in note for note in found.notes)
    with pytest.raises(UsageError, match="several results of a on jax"):
        gate(bare, of(now, record(ms=4)), 0.95, bare=True)
