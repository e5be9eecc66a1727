"""The regression gate's report as Markdown: for a step summary, or a comment on a change."""

from __future__ import annotations

from graphnet.analyze.regression import Gate, Row
from graphnet.report.gate_words import HEADINGS, HOW, advice, cells, headline, means
from graphnet.report.html.text import visible

_SIGNS = ("✅", "❌", "⚠️")
_SHOWN = 200
"""Rows; a step summary holds 1 MiB, and nobody reads more."""
_PLAIN = frozenset(" -,.;()=%")
_LENGTH = 200


def gate_markdown(found: Gate) -> str:
    """Verdict, means and notes, then the table with the worst pairs first; names are inert."""
    lines = [f"## {_SIGNS[found.outcome]} Regression gate: {headline(found)}", ""]
    lines += [f"* {escaped(line)}" for line in (*means(found), *advice(found))]
    if found.rows:
        head = f"| {' | '.join(HEADINGS)} |"
        lines += ["", head, "|" + " --- |" * len(HEADINGS), *map(_line, found.rows[:_SHOWN])]
        if len(found.rows) > _SHOWN:
            lines += ["", f"and {len(found.rows) - _SHOWN} more; the JSON report has them all"]
        lines += ["", HOW]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text of strangers: every character that Markdown or HTML could read is written as `&#124;`.

    Hidden characters and line ends are made visible, and what is very long is cut.
    """
    inert = (
        letter if not letter.isascii() or letter.isalnum() or letter in _PLAIN else f"&#{ord(letter)};"
        for letter in visible(text, _LENGTH)
    )
    return "".join(inert).replace("www.", "www&#46;")  # else GitHub makes a link of it


def _line(row: Row) -> str:
    status, graph, compiler, *figures, note = cells(row)
    names = (f"<code>{escaped(name)}</code>" for name in (graph, compiler))  # no mention or link is read inside
    first = f"**{status}**" if row.failed else status
    return f"| {' | '.join([first, *names, *figures, escaped(note)])} |"
