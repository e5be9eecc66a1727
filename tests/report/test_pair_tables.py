"""Tables of pairs: compilers beside each other, programs beside themselves."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from graphnet.evaluate.records import Result
from graphnet.report.noise_table import noise_table
from graphnet.report.pairwise_table import pairwise_table
from tests.analyze.raced import result


def cells(table: Table) -> list[list[str]]:
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def of(compiler: str, graph: str, microseconds: float, race: str = "x", verdict: str = "ok") -> Result:
    return result(
        [microseconds] * 20, race, compiler=compiler, graph=graph, graph_id=graph, structure_hash=graph, verdict=verdict
    )  # fmt: skip


def test_each_two_compilers_with_the_mean_of_their_graphs() -> None:
    results = [of("torch", "a", 100), of("jax", "a", 80), of("torch", "b", 100, "y"), of("jax", "b", 125, "y")]
    assert [row[:6] for row in cells(pairwise_table(results))] == [
        ["torch", "jax", "a", "0.800", "[0.800, 0.800]", "20"],
        ["torch", "jax", "b", "1.250", "[1.250, 1.250]", "20"],
        ["torch", "jax", "geometric mean of 2", "1.000", "", ""],
    ]


def test_three_compilers_make_three_pairs_and_failures_none() -> None:
    results = [of("torch", "a", 100), of("jax", "a", 80), of("tvm", "a", 50), of("iree", "a", 10, verdict="wrong")]
    assert [row[:4] for row in cells(pairwise_table(results))] == [
        ["torch", "jax", "a", "0.800"],
        ["torch", "tvm", "a", "0.500"],
        ["jax", "tvm", "a", "0.625"],
    ]


def test_results_of_unlike_races_are_not_called_in_turns() -> None:
    table = pairwise_table([of("torch", "a", 100), of("jax", "a", 100, "y")])
    assert cells(table)[0][5:] == ["not in turns", "may be none"]


def test_programs_beside_themselves() -> None:
    first = of("jax", "a", 100)
    rows = cells(noise_table([(first, of("jax", "a", 101)), (first, of("jax", "a", 120, "y"))]))
    assert [row[:4] for row in rows] == [
        ["jax", "a", "in turns", "1.010"],
        ["jax", "a", "one after the other", "1.200"],
    ]


def test_names_are_no_markup() -> None:
    name = "[red]a[/red]"
    pair = of("jax", name, 100), of("jax", name, 100)
    for table in (noise_table([pair]), pairwise_table([pair[0], of("tvm", name, 100)])):
        printed = io.StringIO()
        Console(file=printed, width=160, markup=True).print(table)
        assert name in printed.getvalue()
