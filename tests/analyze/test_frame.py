"""Records as tables and as score samples."""

from __future__ import annotations

import math

import pytest

from graphnet.analyze.frame import frame, samples
from graphnet.compilers import Target
from graphnet.evaluate.records import CompileTime, Memory, Result, Stage, Timing, Verdict


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
    assert samples(results, "torch", "jax") == [
        (2.0, -6, None),
        (2.0, -1, None),
        (2.0, None, 1),
        (None, None, 2),
        (None, None, 3),
        (None, None, 3),
    ]


def test_graphs_on_which_the_baseline_failed_are_left_out() -> None:
    results = [record("0", "torch", "error", stage="run", level=None), record("0", "jax", ms=2)]
    assert samples(results, "torch", "jax") == []
