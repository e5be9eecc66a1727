"""Graphs by compilers as text cells: the one source of the Markdown and the terminal table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from graphnet.analyze.frame import latency
from graphnet.analyze.groups import Key, by_column, key, sizes
from graphnet.evaluate.records import Result

BASELINE = "torch"


class Cell(NamedTuple):
    """Text of a cell, and whether it tells a failure."""

    text: str
    failed: bool = False


class Grid(NamedTuple):
    """Column names, and for each graph its label and one cell per column."""

    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


def grid(results: Sequence[Result], baseline: str = BASELINE) -> Grid:
    """Median milliseconds of one inference (speed-up over the baseline), or the verdict with its stage.

    `results` are of one settings group. A graph that was run at several sizes has a row for each, labelled by them.
    """
    base = {key(result): latency(result) for result in results if result.compiler == baseline}
    columns = {
        column: {key(result): _cell(result, None if result.compiler == baseline else base.get(key(result)))
                 for result in mine}
        for column, mine in by_column(results).items()
    }  # fmt: skip
    names = labels(results)
    return Grid(
        list(columns),
        [(label, [cells.get(row, Cell("-")) for cells in columns.values()]) for row, label in names.items()],
    )


def labels(results: Sequence[Result]) -> dict[Key, str]:
    """The name of each row of results that may be compared; with its sizes where a graph was run at several."""
    first = {key(result): result for result in reversed(results)}
    names = Counter(result.graph for result in first.values())
    return {
        row: f"{first[row].graph} {sizes(first[row])}".rstrip() if names[first[row].graph] > 1 else first[row].graph
        for row in dict.fromkeys(map(key, results))
    }


def _cell(result: Result, base: float | None) -> Cell:
    seconds = latency(result)
    if seconds is None:
        return Cell(result.verdict + (f" ({result.stage})" if result.stage else ""), failed=True)
    return Cell(f"{seconds * 1e3:.3g}" + (f" ({base / seconds:.2f}x)" if base is not None else ""))
