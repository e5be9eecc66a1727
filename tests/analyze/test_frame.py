"""Records as tables and as score samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import pytest

from graphnet.analyze.frame import frame, samples
from graphnet.analyze.score import scores
from graphnet.compilers import Target
from graphnet.evaluate.records import CompileTime, Memory, Result, Stage, Timing, Verdict
from tests.analyze import raced


def record(
    graph: str,
    compiler: str,
    verdict: Verdict = "ok",
    *,
    ms: int = 0,
    level: int | None = -5,
    stage: Stage | None = None,
) -> Result:
    return Result(
        run_id="r", graph_id=f"GN-2026-CV-{graph}", graph=graph, subset="vision", structure_hash=graph,
        compiler=compiler, target=Target(), verdict=verdict, stage=stage, level=level, flops=2_000_000,
        timing=Timing(samples_ns=(ms * 1_000_000,) * 5) if ms else None,
        compile=CompileTime(lower_s=0.25, compile_s=0.5, first_run_s=0.25),
        memory=Memory(load_peak=5, compile_peak=9, run_peak=7),
    )  # fmt: skip


def of(results: Sequence[Result], compiler: str) -> list[Result]:
    return [result for result in results if result.compiler == compiler]


def test_frame_has_seconds_flops_and_bytes() -> None:
    table = frame([record("001", "torch", ms=4), record("002", "torch", "timeout", stage="compile", level=None)])
    assert list(table.index) == ["GN-2026-CV-001", "GN-2026-CV-002"]
    assert table["end_to_end_time"].iloc[0] == pytest.approx(0.004)
    assert table["throughput"].iloc[0] == pytest.approx(5e8)
    assert table["compile_time"].iloc[0] == pytest.approx(1.0)
    assert table["peak_memory"].iloc[0] == 9
    assert math.isnan(table["end_to_end_time"].iloc[1])
    assert list(table["verdict"]) == ["ok", "timeout"]


def test_a_wrong_result_has_no_latency() -> None:
    table = frame([record("001", "jax", "wrong", ms=1, level=None, stage="check")])
    assert math.isnan(table["end_to_end_time"].iloc[0])


def test_quotient_of_two_tables_is_the_speedup_of_each_graph() -> None:
    baseline = frame([record("001", "torch", ms=4), record("002", "torch", ms=9)])
    other = frame([record("002", "jax", ms=3), record("001", "jax", ms=8)])
    speedup = baseline["end_to_end_time"] / other["end_to_end_time"]
    assert speedup["GN-2026-CV-001"] == pytest.approx(0.5)
    assert speedup["GN-2026-CV-002"] == pytest.approx(3.0)


def test_samples_carry_error_codes() -> None:
    results = [record(str(i), "torch", ms=4) for i in range(6)]
    results += [
        record("0", "jax", ms=2, level=-6),
        record("1", "jax", "wrong", ms=2, level=-1, stage="check"),
        record("2", "jax", "wrong", ms=2, level=None, stage="check"),
        record("3", "jax", "crashed", level=None, stage="run"),
        record("4", "jax", "unsupported", level=None, stage="lower"),
        record("5", "jax", "timeout", level=None, stage="compile"),
    ]
    assert samples(of(results, "torch"), of(results, "jax")) == [
        (2.0, -6, None),
        (2.0, -1, None),
        (2.0, None, 1),
        (None, None, 2),
        (None, None, 3),
        (None, None, 3),
    ]


def test_wrong_otherwise_than_by_numbers_is_never_correct() -> None:
    results = [record("0", "torch", ms=4), record("0", "jax", "wrong", ms=1, level=None, stage="check")]
    found = samples(of(results, "torch"), of(results, "jax"))
    assert found == [(4.0, None, 1)]
    assert scores(found, 0).lam == 0


@pytest.mark.parametrize(
    "other",
    [
        {"target": Target(threads=2)},
        {"target": Target(device="cuda")},
        {"target": Target(precision="bfloat16")},
        {"passes": ("default", "custom_fusion")},
        {"seed": 1},
        {"environment": "other"},
        {"dims": {"batch": 8}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_results_under_other_settings_are_no_samples(other: dict[str, object]) -> None:
    base, result = record("0", "torch", ms=4), record("0", "jax", ms=2)
    assert samples([base, msgspec.structs.replace(base, **other)], [result]) == [(2.0, -5, None)]
    assert samples([msgspec.structs.replace(base, **other)], [result]) == []


def test_options_of_one_compiler_do_not_keep_it_from_the_baseline() -> None:
    tuned = msgspec.structs.replace(record("0", "jax", ms=2), target=Target(spec="native", options={"level": 3}))
    assert samples([record("0", "torch", ms=4)], [tuned]) == [(2.0, -5, None)]


def test_quotient_over_passes() -> None:
    fused = msgspec.structs.replace(record("001", "jax", ms=2), passes=("default", "custom_fusion"))
    speedup = frame([record("001", "jax", ms=4)])["end_to_end_time"] / frame([fused])["end_to_end_time"]
    assert speedup["GN-2026-CV-001"] == pytest.approx(2.0)


def test_graphs_on_which_the_baseline_failed_are_left_out() -> None:
    results = [record("0", "torch", "error", stage="run", level=None), record("0", "jax", ms=2)]
    assert samples(of(results, "torch"), of(results, "jax")) == []


def test_speedups_are_of_turns_in_the_same_race() -> None:
    """Medians of the whole are 3.5 and 2.5 over all rounds; in the two rounds that both have it is always 2."""
    base, other = raced.result({0: 1, 1: 8, 2: 6, 3: 1}), raced.result({1: 4, 2: 3, 5: 2, 6: 2}, level=-5)
    ((paired, level, code),) = samples([base], [other])
    assert paired == pytest.approx(2.0)
    assert (level, code) == (-5, None)
    apart = raced.result({1: 4, 2: 3, 5: 2, 6: 2}, race="y", level=-5)
    ((unpaired, *_),) = samples([base], [apart])
    assert unpaired == pytest.approx(3.5 / 2.5)
