"""The Markdown summary."""

from __future__ import annotations

import msgspec

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
        "| b | timeout (compile) | 3 |",
        "| c | 1 | - |",
    ]


def test_summary_names_threads_and_versions() -> None:
    page = summary(RESULTS)
    assert "Threads: 2. jax 1.0, torch 1.0." in page
    assert markdown_table(RESULTS) in page


def test_settings_are_never_mixed() -> None:
    single = [msgspec.structs.replace(result, target=Target(threads=1)) for result in RESULTS[1:2]]
    page = summary(RESULTS[:2] + single)
    assert "Threads: 1, 2." in page
    assert page.partition("\n## ")[2].partition("\n\n~ ")[0].splitlines() == [
        "cpu, 2 thread(s), float32, passes default, seed 0, machine unknown",
        "",
        "| graph | torch | jax |",
        "| --- | ---: | ---: |",
        "| a | 4 | 2 (2.00x) |",
        "",
        "## cpu, 1 thread(s), float32, passes default, seed 0, machine unknown",
        "",
        "| graph | jax |",
        "| --- | ---: |",
        "| a | 2 |",
    ]


def test_sizes_have_rows_and_options_have_columns() -> None:
    torch, jax = RESULTS[:2]
    large = [msgspec.structs.replace(result, dims={"batch": 8}) for result in (torch, jax)]
    tuned = msgspec.structs.replace(record("a", "jax", 1.0), target=Target(threads=2, options={"level": 3}))
    assert markdown_table([torch, jax, *large, tuned]).splitlines() == [
        "| graph | torch | jax | jax level=3 |",
        "| --- | ---: | ---: | ---: |",
        "| a | 4 | 2 (2.00x) | 1 (4.00x) |",
        "| a batch=8 | 4 | 2 (2.00x) | - |",
    ]
