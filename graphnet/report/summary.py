"""The summary of a results folder as Markdown: graphs by compilers."""

from __future__ import annotations

from collections.abc import Sequence

from graphnet.analyze.groups import by_settings
from graphnet.evaluate.records import Environment, Result
from graphnet.report.floor_text import floor_lines
from graphnet.report.grid import BASELINE, LEGEND, grid


def markdown_table(
    results: Sequence[Result], baseline: str = BASELINE, environments: Sequence[Environment] = ()
) -> str:  # fmt: skip
    """Median milliseconds of one inference (speed-up over the baseline), or the verdict; one row per graph.

    A table for each group of settings; where there are several, each has its settings as its title.
    """
    groups = by_settings(results)
    tables = []
    for settings, mine in groups.items():
        columns, rows = grid(mine, baseline, environments)
        lines = [f"## {settings}", ""] if len(groups) > 1 else []
        lines += ["| graph | " + " | ".join(map(_escape, columns)) + " |", "| --- |" + " ---: |" * len(columns)]
        lines += [
            "| " + " | ".join(map(_escape, (label, *(cell.text for cell in cells)))) + " |" for label, cells in rows
        ]
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def stack(results: Sequence[Result]) -> str:
    """Packages and versions that the results come from: `jax 0.10.2, torch 2.13.0`."""
    versions: dict[str, str] = {}
    for result in results:
        versions |= result.versions
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def summary(results: Sequence[Result], environments: Sequence[Environment] = ()) -> str:
    """The page `summary.md`; `environments` have the noise floors of the machines."""
    threads = ", ".join(str(count) for count in sorted({result.target.threads for result in results}))
    return (
        "# Results\n\nMedian time of one inference in milliseconds (speed-up over "
        f"{BASELINE}), or the verdict. Threads: {threads}. {stack(results)}.\n\n"
        f"{markdown_table(results, environments=environments)}\n\n{LEGEND}.\n\n"
        + "".join(f"{line}.\n" for line in floor_lines(results, environments))
    )


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
