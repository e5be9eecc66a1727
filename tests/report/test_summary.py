"""The Markdown summary."""

from __future__ import annotations

from graphnet.compilers import Target
from graphnet.evaluate.records import Result, Stage, Timing, Verdict
from graphnet.report.summary import markdown_table, summary


def record(graph: str, compiler: str, ms: float = 0, verdict: Verdict = "ok", stage: Stage | None = None) -> Result:
    return Result(
        run_id="r", graph_id=graph, graph=graph, subset="vision", structure_hash=graph, compiler=compiler,
        target=Target(threads=2), verdict=verdict, stage=stage, versions={compiler: "1.0"},
        timing=Timing(samples_ns=(round(ms * 1e6),) * 5) if ms else None,
    )  # fmt: skip


RESULTS = [
    record("a", "torch", 4.0),
    record("a", "jax", 2.0),
    record("b", "torch", verdict="timeout", stage="compile"),
    record("b", "jax", 3.0),
    record("c", "torch", 1.0),
]


def test_cells_are_times_ratios_and_verdicts() -> None:
    assert markdown_table(RESULTS).splitlines() == [
        "| graph | torch | jax |",
        "| --- | ---: | ---: |",
        "| a | 4 | 2 (2.00x) |",
        "| b | timeout | 3 |",
        "| c | 1 |  |",
    ]


def test_summary_names_threads_and_versions() -> None:
    page = summary(RESULTS)
    assert "Threads: 2. jax 1.0, torch 1.0." in page
    assert markdown_table(RESULTS) in page
