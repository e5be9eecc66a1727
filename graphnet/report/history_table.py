"""Terminal table of a history: its steps, the newest run first, in a run what became slowest first."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphnet.analyze.history import LEAST_RUNS, Change, History, Point


def steps(found: History) -> Group:
    """The table, after a line of what was looked at."""
    parts: list[RenderableType] = [Text(told(found))]
    if found.changes:
        table = Table()
        for name in ("run", "graph", "compiler", "step", "what changed"):
            table.add_column(name)
        for change in found.changes:
            style = "" if change.possible else "red" if change.step.ratio > 1 else "green"
            table.add_row(
                Text(run_text(change.after)), Text(graph_text(change, found)), Text(change.series.compiler),
                Text(step_text(change), style=style), Text(", ".join(change.versions) or "no version"),
            )  # fmt: skip
        parts.append(table)
    return Group(*parts)


def told(found: History) -> str:
    """What was looked at, and how many steps were seen."""
    sure = sum(not change.possible for change in found.changes)
    short = f"; {found.short} with fewer than {LEAST_RUNS} runs left out" if found.short else ""
    return f"{found.runs} runs, {len(found.series)} series{short}: {sure} step(s), {len(found.changes) - sure} possible"


def step_text(change: Change) -> str:
    """`slower 1.23x [1.20, 1.26] since run ...`; a speed-up is given as one, with its own interval."""
    step, slower = change.step, change.step.ratio > 1
    ratio, low, high = (step.ratio, step.low, step.high) if slower else (1 / step.ratio, 1 / step.high, 1 / step.low)
    figures = f"{'slower' if slower else 'faster'} {ratio:.2f}x [{low:.2f}, {high:.2f}]"
    if change.possible:
        return f"possible step, one run only: {figures} than run {change.before.run}"
    return f"{figures} since run {change.before.run}"


def run_text(point: Point) -> str:
    """The run with its time, to the minute."""
    return f"{point.run} ({point.started:%Y-%m-%d %H:%M})"


def graph_text(change: Change, found: History) -> str:
    """The graph, with what tells the series from others of the same graph and compiler: threads, machine, sizes ..."""
    mine = change.series
    alike = [
        item.conditions.split(", ")
        for item in found.series
        if (item.graph, item.compiler) == (mine.graph, mine.compiler)
    ]
    shared = set.intersection(*map(set, alike))
    return ", ".join((mine.graph, *(part for part in mine.conditions.split(", ") if part not in shared)))
