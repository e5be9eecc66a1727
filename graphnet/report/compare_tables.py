"""Terminal tables of a comparison: what is unlike first, then times and ratios, verdicts, what is missing, means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_uppercase

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphnet.analyze.compare import Cell, Comparison, Row
from graphnet.report.floor_text import sentences
from graphnet.report.grid import UNRESOLVED

LEGEND = f"{UNRESOLVED} before a ratio: the interval holds 1, or there is none"


def comparison(found: Comparison) -> Group:
    """The tables. A set is called by a letter; a ratio is time in a set over time in A, below 1 is faster."""
    names = letters(len(found.labels))
    parts: list[RenderableType] = [
        Text(f"{name} = {label} ({count} results)")
        for name, label, count in zip(names, found.labels, found.counts, strict=True)
    ]
    if found.differences:
        rows = [(difference.what, *difference.values) for difference in found.differences]
        parts += [
            Text("\nThe sets are unlike: ratios tell of this too", style="yellow"),
            _table(["what", *names], rows),
        ]
    parts += [Text(f"\nMedian latency in ms, and ratio with its 95 % interval; {LEGEND}"), _ratios(found.rows, names)]
    parts += [Text(line) for line in sentences(found.floors)]
    parts += _lists(found.rows, names)
    means = [
        (mean.compiler or "all", str(mean.count), *(f"{ratio:.3f}" for ratio in mean.ratios)) for mean in found.means
    ]
    columns = ["compiler", "count", *(f"{name}/{names[0]}" for name in names[1:])]
    parts += [Text("\nGeometric mean of the ratios, over what is ok in all sets"), _table(columns, means, right=1)]
    return Group(*parts)


def letters(count: int) -> list[str]:
    """A, B, ... Z, S27, S28 ..."""
    return [ascii_uppercase[index] if index < len(ascii_uppercase) else f"S{index + 1}" for index in range(count)]


def ratio_text(cell: Cell) -> str:
    """`0.950 [0.930, 0.970]`, or `~1.010 [0.990, 1.030]` where it is not resolved; empty without a ratio."""
    if cell.ratio is None:
        return ""
    interval = "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
    return f"{'' if trend(cell) else UNRESOLVED}{cell.ratio:.3f}{interval}"


def time_text(cell: Cell | None) -> str:
    """Milliseconds, the verdict, or `missing`."""
    if cell is None:
        return "missing"
    return cell.outcome if cell.seconds is None else f"{cell.seconds * 1e3:.4g}"


def trend(cell: Cell) -> str:
    """`faster` or `slower` where the whole interval says so, else empty."""
    if cell.low is None or cell.high is None:
        return ""
    return "faster" if cell.high < 1 else "slower" if cell.low > 1 else ""


def _ratios(rows: Sequence[Row], names: Sequence[str]) -> Table:
    table = Table()
    table.add_column("graph")
    table.add_column("compiler")
    table.add_column(names[0], justify="right")
    for name in names[1:]:
        table.add_column(name, justify="right")
        table.add_column(f"{name}/{names[0]}", justify="right")
    styles = {"faster": "green", "slower": "red", "": ""}
    for row in rows:
        cells = [Text(row.graph), Text(row.compiler), Text(time_text(row.cells[0]))]
        for cell in row.cells[1:]:
            shown = "another graph" if row.graph_changed else ratio_text(cell) if cell else ""
            cells += [Text(time_text(cell)), Text(shown, style=styles[trend(cell)] if cell else "")]
        table.add_row(*cells)
    return table


def _lists(rows: Sequence[Row], names: Sequence[str]) -> Iterable[Text]:
    """What else a reader must not overlook, a line each."""
    changed = [row for row in rows if row.changed]
    missing = [row for row in rows if row.missing]
    for title, found in (("Verdicts that differ:", changed), ("Missing:", missing)):
        if found:
            yield Text(f"\n{title}")
        for row in found:
            yield Text(f"  {row.graph} on {row.compiler}: {_outcomes(row, names)}")


def _outcomes(row: Row, names: Sequence[str]) -> str:
    return ", ".join(
        f"{name} {cell.outcome if cell else 'missing'}" for name, cell in zip(names, row.cells, strict=True)
    )  # fmt: skip


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: int | None = None) -> Table:
    """`right`: number of the first column that is set to the right."""
    table = Table()
    for index, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if right is not None and index >= right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
