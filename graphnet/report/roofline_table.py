"""Measured peaks, and how near results come to them, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from graphnet.analyze import roofline
from graphnet.evaluate.ncu import Counters
from graphnet.evaluate.records import Environment, Peaks, Result


def peaks_table(environment: Environment, peaks: Peaks) -> Table:
    """One row for each dtype (with its balance point over DRAM) and for each memory level."""
    title = f"{environment.cpu_model}, {peaks.device}, {peaks.threads} thread(s), measured {peaks.measured}"
    table = Table(title=Text(title), title_justify="left")
    for name in ("what", "peak", "balance over DRAM", "measured by"):
        table.add_column(name, justify="right" if name in ("peak", "balance over DRAM") else "left")
    for dtype, rate in peaks.flops.items():
        point = roofline.balance(peaks, dtype)
        shown = "-" if point is None else f"{point:.3g} FLOP/byte"
        unit = "GOP/s" if "int" in dtype else "GFLOP/s"
        table.add_row(Text(dtype), f"{rate / 1e9:,.1f} {unit}", shown, Text(peaks.sources.get(dtype, "")))
    for level, width in peaks.bandwidth.items():
        size = f" ({peaks.sizes[level] >> 10:,} KiB)" if level in peaks.sizes else ""
        table.add_row(Text(level + size), f"{width / 1e9:,.1f} GB/s", "", Text(peaks.sources.get(level, "")))
    return table


def results_table(results: Sequence[Result], peaks: Peaks) -> Table | None:
    """One row for each result with a latency, the least efficient last; None where there is none."""
    rows = [(result, found) for result in results if (found := roofline.of_result(result, peaks)).level]
    if not rows:
        return None
    table = Table(title="Shares of the peaks", title_justify="left")
    for name in ("graph", "compiler", "FLOP/byte", "GFLOP/s", "of peak", "of bandwidth", "roofline", "bound by", ""):
        table.add_column(name, justify="left" if name in ("graph", "compiler", "bound by", "") else "right")
    for result, found in sorted(rows, key=lambda row: -(row[1].roofline_efficiency or 0.0)):
        table.add_row(
            Text(result.graph), Text(result.compiler), _number(found.intensity, 1.0), _number(found.flop_rate, 1e9),
            _share(found.flops_utilization), _share(found.bandwidth_utilization), _share(found.roofline_efficiency),
            Text("unknown" if found.bound is None else found.dtype if found.bound == "compute" else found.level),
            Text(", ".join(found.flags), style="red"),
        )  # fmt: skip
    return table


def counters_table(launches: Sequence[Counters]) -> Table:
    """Hardware counters of each kernel in the order of launch."""
    table = Table(title="Nsight Compute, one inference", title_justify="left")
    for name in ("kernel", "us", "SM", "DRAM", "DRAM MB", "MFLOP"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    for item in launches:
        percents = ["unknown" if p is None else f"{p:.1f}%" for p in (item.sm_percent, item.dram_percent)]
        amounts = (_number(item.dram_bytes, 1e6), _number(item.flops, 1e6))
        table.add_row(Text(item.kernel), _number(item.seconds, 1e-6), *percents, *amounts)
    return table


def _number(value: float | None, unit: float) -> str:
    return "unknown" if value is None else f"{value / unit:.3g}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"
