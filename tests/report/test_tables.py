"""Terminal tables: what they say, and that no data is taken for markup."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from rich.console import Console, RenderableType

from graphnet.compilers import Kernel, Target
from graphnet.errors import UsageError
from graphnet.evaluate.probe import Probe
from graphnet.evaluate.records import CompileTime, Result, Timing
from graphnet.ir.graph import Graph, Input
from graphnet.report import tables
from tests.analyze.raced import result

MARKUP = "a[/w] [red]b[/red] :heart:"


def shown(table: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def record(compiler: str, ms: float, threads: int = 1, graph: str = "a") -> Result:
    return Result(
        run_id="r", graph_id=graph, graph=graph, subset="vision", structure_hash=graph, compiler=compiler,
        target=Target(threads=threads), verdict="ok", level=-6, timing=Timing(samples_ns=(round(ms * 1e6),) * 5),
    )  # fmt: skip


RESULTS = [record("torch", 4.0), record("jax", 2.0), record("torch", 3.0, threads=2), record("jax", 1.0, threads=2)]


def test_card_shows_shapes_and_paths_as_they_are() -> None:
    graph = Graph(name=MARKUP, inputs=(Input(name="x", dtype="float32", shape=("batch", 3, 224, 224)),))
    card = shown(tables.graph_card(graph, Path("a[/w].json")))
    assert "x: float32[batch, 3, 224, 224]" in card
    assert "a[/w].json" in card
    assert MARKUP in card
    assert MARKUP in shown(tables.graph_table([graph]))


def test_names_of_graphs_and_compilers_are_no_markup() -> None:
    results = [record(MARKUP, 2.0, graph=MARKUP)]
    assert shown(tables.summary_table(results)).count(MARKUP) == 2
    assert MARKUP in shown(tables.verdict_table(results))
    assert MARKUP in shown(tables.score_table(results, MARKUP, 0.1, 0.1))


def test_summary_compares_like_with_like() -> None:
    table = shown(tables.summary_table(RESULTS))
    assert "2 (2.00x)" in table
    assert "1 (3.00x)" in table
    assert "2 thread(s)" in table
    assert "thread(s)" not in shown(tables.summary_table(RESULTS[:2]))


def test_scores_compare_like_with_like() -> None:
    lines = [line for line in shown(tables.score_table(RESULTS, "torch", 0.1, 0.1)).splitlines() if "jax" in line]
    cells = [[cell.strip() for cell in line.split("│")[2:6]] for line in lines]
    assert cells == [["1", "0", "100.0%", "2.000"], ["1", "0", "100.0%", "3.000"]]


def test_graphs_without_a_baseline_are_counted() -> None:
    failed = msgspec.structs.replace(RESULTS[0], verdict="crashed", stage="run")
    [line] = [x for x in shown(tables.score_table([failed, RESULTS[1]], "torch", 0.1, 0.1)).splitlines() if "jax" in x]
    assert [cell.strip() for cell in line.split("│")[2:4]] == ["0", "1"]


def test_a_baseline_that_was_not_run_is_refused() -> None:
    with pytest.raises(UsageError, match="no results of the baseline 'foo'; there are some of: jax, torch"):
        tables.score_table(RESULTS, "foo", 0.1, 0.1)


def test_failures_name_their_stage() -> None:
    failed = msgspec.structs.replace(RESULTS[1], verdict="timeout", stage="compile")
    assert "timeout (compile)" in shown(tables.summary_table([RESULTS[0], failed]))


def test_coverage_is_of_end_to_end_time() -> None:
    kernels = (Kernel(name="a", nodes=("n",), calls=1, total_us=1500.0), Kernel(name="b", calls=2, total_us=300.0))
    results = [msgspec.structs.replace(record("jax", 2.0), kernels=kernels), record("torch", 4.0)]
    table = tables.coverage_table(results)
    assert table is not None
    assert [part.strip() for part in shown(table).splitlines()[4].strip("│").split("│")] == [
        "jax", "1", "90%", "90%", "90%", "75%",
    ]  # fmt: skip
    assert tables.coverage_table([record("torch", 4.0)]) is None


def test_verdicts_show_cold_and_warm_compilation_over_the_same_graphs() -> None:
    def compiled(graph: str, cold: float, warm: float | None) -> Result:
        return msgspec.structs.replace(
            record("jax", 2.0, graph=graph), compile=CompileTime(compile_s=cold), settings={"compile_cache": "none"},
            warm_compile=None if warm is None else CompileTime(compile_s=warm),
        )  # fmt: skip

    def cells(*results: Result) -> list[str]:
        (line,) = [line for line in shown(tables.verdict_table(results)).splitlines() if "jax" in line]
        return [cell.strip() for cell in line.strip("│").split("│")][3:]

    assert cells(compiled("a", 4, None), compiled("b", 1, None)) == ["2.00"]
    assert cells(compiled("a", 4, 2), compiled("b", 1, None)) == ["4.00", "2.00", "none"], "b was not compiled warm"
    assert cells(compiled("a", 4, 2), compiled("b", 1, 0.5)) == ["2.00", "1.00", "none"]


def test_compilers_show_devices_and_what_is_absent() -> None:
    table = shown(
        tables.compiler_table(
            [
                Probe(compiler="jax", variants=("fast-math",), versions={"jax": "1.2"},
                      devices={"cpu": "", "cuda": "jax: device 'cuda' is not on this machine"}),
                Probe(compiler="tvm", problem="compiler 'tvm' needs: pip install apache-tvm"),
            ]
        )
    )  # fmt: skip
    assert "jax 1.2" in table
    assert ":fast-math" in table
    assert "jax on cuda: jax: device 'cuda' is not on this machine" in table
    assert "tvm: compiler 'tvm' needs: pip install apache-tvm" in table


def test_scores_count_what_is_resolved_and_tell_the_floor() -> None:
    drift = [1000.0, 1500.0, 800.0, 2000.0, 900.0, 1200.0, 3000.0, 1100.0]
    results = [result(drift, compiler="torch"), result([us / 2 for us in drift])]
    other = [msgspec.structs.replace(one, structure_hash="b", graph_id="GN-b") for one in results]
    other[1] = msgspec.structs.replace(other[1], timing=result(drift[::-1], race="y").timing)
    text = shown(tables.score_table([*results, *other], "torch", 0.1, 0.1))
    (line,) = [line for line in text.splitlines() if "jax" in line]
    assert [cell.strip() for cell in line.split("│")[5:7]] == ["1.414", "1/2"], "sqrt(2 * 1)"
    (line,) = [line for line in text.splitlines() if "│ torch" in line]
    assert line.split("│")[6].strip() == "-"
    assert "Noise floor of this machine (1 thread): not measured" in text
    assert "Noise floor of this machine (1 thread): not measured" in shown(tables.summary_table(results))
