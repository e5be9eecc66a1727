"""What each compiler made of each graph in one table: speed, shares of peaks, compile time, memory, code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from graphnet.analyze import memory, roofline
from graphnet.analyze.code_quality import CodeQuality
from graphnet.analyze.stats import median_seconds
from graphnet.evaluate.records import CompileTime, Environment, Result

COLUMNS = (
    "graph", "compiler", "ms", "GFLOP/s", "of peak", "GB/s", "of bandwidth", "cold s", "warm s", "peak MiB",
    "saturation", "vector", "",
)  # fmt: skip
LIBRARY = "library"


def efficiency_table(
    results: Sequence[Result], environments: Sequence[Environment], qualities: Mapping[str, CodeQuality]
) -> Table:
    """One row per result, graph by graph; `-` where a figure is unknown, `library` where a library's code runs.

    Memory is the process's peak above what it held before the job. `qualities` by job key.
    """
    table = Table(title="Latency, shares of the machine's peaks, compile time, memory and code", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("graph", "compiler", "") else "right")
    for result in sorted(results, key=lambda result: result.graph):
        table.add_row(*map(Text, row(result, environments, qualities.get(result.job_key))))
    return table


def row(result: Result, environments: Sequence[Environment], quality: CodeQuality | None) -> tuple[str, ...]:
    """Cells in the order of COLUMNS."""
    found = roofline.of_result(result, roofline.peaks_of(result, environments))
    seconds = median_seconds(result.timing.samples_ns) if result.timing and result.verdict == "ok" else None
    moved = result.bytes / seconds if result.bytes is not None and seconds else None
    worked = result.flops / seconds if result.flops is not None and seconds else None
    peak = memory.peak(result.memory) - result.memory.baseline if result.memory else None
    verdict = "" if result.verdict == "ok" else result.verdict
    return (
        result.graph, result.compiler, _number(seconds, 1e-3), _number(worked, 1e9), _percent(found.flops_utilization),
        _number(moved, 1e9), _percent(found.bandwidth_utilization), _compile(result.compile),
        _compile(result.warm_compile), "-" if peak is None else f"{peak / 2**20:,.0f}", *_code(quality),
        ", ".join(filter(None, (verdict, *found.flags))),
    )  # fmt: skip


def _code(quality: CodeQuality | None) -> tuple[str, str]:
    """Pipeline saturation, with the share of the kernels' time that it speaks for, and share of vector instructions."""
    if quality is None:
        return "-", "-"
    if not quality.coded or (quality.saturation is None and quality.library_share):
        return LIBRARY, LIBRARY
    if quality.saturation is None:
        return "-", _percent(quality.vector_share)
    return (
        f"{quality.saturation:.2f} ({_percent(quality.saturation_time_share)} of time)", _percent(quality.vector_share),
    )  # fmt: skip


def _compile(spent: CompileTime | None) -> str:
    return "-" if spent is None else f"{spent.total_s:.2f}"


def _number(value: float | None, unit: float) -> str:
    return "-" if value is None else f"{value / unit:,.3g}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
