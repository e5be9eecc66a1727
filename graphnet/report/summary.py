"""The summary of a results folder as Markdown: graphs by compilers."""

from __future__ import annotations

from collections.abc import Sequence

from graphnet.analyze.frame import frame
from graphnet.evaluate.records import Result

BASELINE = "torch"


def markdown_table(results: Sequence[Result], baseline: str = BASELINE) -> str:
    """Median milliseconds of one inference (speed-up over the baseline), or the verdict; one row per graph."""
    names = list(dict.fromkeys(result.compiler for result in results))
    lines = ["| graph | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for _, rows in frame(results).groupby(level=0, sort=False):
        by_name = rows.set_index("compiler")
        times, verdicts = by_name["end_to_end_time"].to_dict(), by_name["verdict"].to_dict()
        base = times.get(baseline)
        cells = [_cell(verdicts.get(name), times.get(name), None if name == baseline else base) for name in names]
        lines.append(f"| {rows['graph'].iloc[0]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def stack(results: Sequence[Result]) -> str:
    """Packages and versions that the results come from: `jax 0.10.2, torch 2.13.0`."""
    versions: dict[str, str] = {}
    for result in results:
        versions |= result.versions
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def summary(results: Sequence[Result]) -> str:
    """The page `summary.md`."""
    threads = ", ".join(str(count) for count in sorted({result.target.threads for result in results}))
    return (
        "# Results\n\nMedian time of one inference in milliseconds (speed-up over "
        f"{BASELINE}), or the verdict. Threads: {threads}. {stack(results)}.\n\n{markdown_table(results)}\n"
    )


def _cell(verdict: str | None, seconds: float | None, base: float | None) -> str:
    if verdict is None:
        return ""
    if verdict != "ok" or seconds is None:
        return verdict
    ratio = f" ({base / seconds:.2f}x)" if base is not None and base == base else ""
    return f"{seconds * 1e3:.3g}{ratio}"
