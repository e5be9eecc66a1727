"""Graphs by compilers as text cells: the one source of the Markdown and the terminal table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from graphnet.analyze.frame import latency
from graphnet.analyze.groups import Key, by_column, key, sizes
from graphnet.analyze.pairs import Ratio, speedup
from graphnet.evaluate.records import Environment, Result

BASELINE = "torch"
UNRESOLVED = "~"
LEGEND = f"{UNRESOLVED} before a speed-up: its 95 % interval holds 1, so that it may be none"


class Cell(NamedTuple):
    """Text of a cell, and whether it tells a failure."""

    text: str
    failed: bool = False


class Grid(NamedTuple):
    """Column names, and for each graph its label and one cell per column."""

    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


def grid(results: Sequence[Result], baseline: str = BASELINE, environments: Sequence[Environment] = ()) -> Grid:
    """Median milliseconds of one inference (speed-up over the baseline), or the verdict with its stage.

    `results` are of one settings group, `environments` have the noise floors that speed-ups are held against. A graph
    that was run at several sizes has a row for each, labelled by them.
    """
    base = {key(result): result for result in results if result.compiler == baseline}
    columns = {
        column: {
            key(result): _cell(result, None if result.compiler == baseline else base.get(key(result)), environments)
            for result in mine
        }
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


def speedup_text(found: Ratio) -> str:
    """`2.00x`, or `~1.01x` where it is not resolved."""
    return f"{'' if found.resolved else UNRESOLVED}{found.value:.2f}x"


def _cell(result: Result, base: Result | None, environments: Sequence[Environment]) -> Cell:
    seconds = latency(result)
    if seconds is None:
        return Cell(result.verdict + (f" ({result.stage})" if result.stage else ""), failed=True)
    found = speedup(base, result, environments) if base is not None else None
    return Cell(f"{seconds * 1e3:.3g}" + (f" ({speedup_text(found)})" if found else ""))
