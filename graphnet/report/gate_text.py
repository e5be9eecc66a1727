"""The regression gate's report for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphnet.analyze.regression import Gate
from graphnet.report.gate_words import HEADINGS, HOW, advice, cells, headline, means

_STYLES = {"unstable": "yellow", "not confirmed": "yellow", "faster": "green", "fixed": "green"}
_NUMBERS = ("baseline ms", "current ms", "ratio", "threshold", "q", "taking turns")


def gate_report(found: Gate) -> Group:
    """The verdict, a table with the worst pairs first, means and notes."""
    parts: list[RenderableType] = [Text(headline(found), style=("green", "red", "yellow")[found.outcome])]
    if found.rows:
        turns = any(row.live for row in found.rows)
        shown = [index for index, name in enumerate(HEADINGS) if turns or name != "taking turns"]
        table = Table()
        for index in shown:
            table.add_column(HEADINGS[index], justify="right" if HEADINGS[index] in _NUMBERS else "left")
        for row in found.rows:
            style = "red" if row.failed else _STYLES.get(row.status, "")
            texts = cells(row)
            table.add_row(*(Text(texts[index], style=style if index == 0 else "") for index in shown))
        parts += [table, Text(HOW)]
    return Group(*parts, *map(Text, [*means(found), *advice(found)]))
