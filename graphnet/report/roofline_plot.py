"""The roofline of a machine as a Plotly figure: roofs by memory level and dtype, graphs as points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from graphnet.analyze import roofline
from graphnet.analyze.roofline import Roofline
from graphnet.compilers import Kernel
from graphnet.errors import StoreError
from graphnet.evaluate.records import Peaks, Result
from graphnet.ir.fileio import write_atomic

SHOWN_KERNELS = 5
"""In the text of a graph's point."""
KERNEL_POINTS = 200
"""Of each compiler: those that take longest over all its graphs."""
_MARGIN = 4.0
"""Factor by which the axes reach beyond the outermost point or balance point."""


def figure(peaks: Peaks, results: Sequence[Result] = (), *, title: str = "") -> go.Figure:
    """FLOP/s over FLOP per byte, both on log scales. For each compiler a trace with a point for each graph, whose hover
    text has shares of peaks and the kernels that take longest, and one of kernels, which a click in the legend shows.

    Left out are results of another machine's peaks than `peaks` (the caller's choice), failures, and graphs of unknown
    cost or without arithmetic, which have no place on a log scale.
    """
    points = [(result, found) for result in results if _has_place(found := roofline.of_result(result, peaks))]
    low, high = _range(peaks, [found for _, found in points])
    chart = go.Figure()
    for trace in _roofs(peaks, low, high):
        chart.add_trace(trace)
    for compiler in dict.fromkeys(result.compiler for result, _ in points):
        chart.add_trace(_points(compiler, [item for item in points if item[0].compiler == compiler], peaks))
    for compiler in dict.fromkeys(result.compiler for result, _ in points):
        kernels = _kernels([result for result in results if result.compiler == compiler], peaks)
        if kernels:
            chart.add_trace(_kernel_points(compiler, kernels))
    chart.update_layout(
        title=title or f"Roofline: {peaks.device}, {peaks.threads} thread(s)",
        template="plotly_white",
        hovermode="closest",
    )
    chart.update_xaxes(type="log", title="arithmetic intensity (FLOP / byte)")
    chart.update_yaxes(type="log", title="performance (GFLOP/s)")
    return chart


def write(chart: go.Figure, path: Path) -> None:
    """One HTML page that needs no network. Raises StoreError."""
    try:
        write_atomic(path, chart.to_html(include_plotlyjs=True, full_html=True).encode())
    except OSError as error:
        raise StoreError(
            f"cannot write the plot {path}: {error.strerror or error}; give another place with -o"
        ) from error


def _has_place(found: Roofline) -> bool:
    return bool(found.intensity and found.flop_rate)


def _range(peaks: Peaks, points: Sequence[Roofline]) -> tuple[float, float]:
    """Ends of the intensity axis: all points and balance points are inside."""
    balances = [rate / width for rate in peaks.flops.values() for width in peaks.bandwidth.values()]
    found = [point.intensity for point in points if point.intensity] + balances or [1.0]
    return min(found) / _MARGIN, max(found) * _MARGIN


def _roofs(peaks: Peaks, low: float, high: float) -> list[go.Scatter]:
    """For each dtype its ceiling, for each memory level its slope up to the highest ceiling."""
    traces = []
    top = max(peaks.flops.values(), default=0.0)
    for level, width in peaks.bandwidth.items():
        if top and top / width > low:
            traces.append(_line(level, [low, top / width], [low * width, top], f"{width / 1e9:.3g} GB/s", "dash"))
    widest = max(peaks.bandwidth.values(), default=0.0)
    for dtype, rate in peaks.flops.items():
        start = rate / widest if widest else low
        traces.append(_line(dtype, [start, high], [rate, rate], f"{rate / 1e9:.4g} GFLOP/s", "solid"))
    return traces


def _line(name: str, x: list[float], y: list[float], figure: str, dash: str) -> go.Scatter:
    return go.Scatter(
        x=x, y=[value / 1e9 for value in y], mode="lines", name=f"{name}: {figure}", line={"dash": dash, "width": 1.5},
        hovertemplate=f"{name}: {figure}<extra></extra>",
    )  # fmt: skip


def _points(compiler: str, points: Sequence[tuple[Result, Roofline]], peaks: Peaks) -> go.Scatter:
    return go.Scatter(
        x=[found.intensity for _, found in points], y=[(found.flop_rate or 0.0) / 1e9 for _, found in points],
        mode="markers", name=_text(compiler), marker={"size": 9}, text=[_hover(*item, peaks) for item in points],
        hovertemplate="%{text}<br>%{x:.3g} FLOP/byte, %{y:.4g} GFLOP/s<extra></extra>",
    )  # fmt: skip


def _kernels(results: Sequence[Result], peaks: Peaks) -> list[tuple[str, Kernel, Roofline]]:
    """The kernels that take longest, each with the name of its graph."""
    found = [
        (result.graph, kernel, own)
        for result in results
        for kernel, own in roofline.of_kernels(result, peaks)
        if _has_place(own)
    ]
    return sorted(found, key=lambda item: -item[1].total_us)[:KERNEL_POINTS]


def _kernel_points(compiler: str, kernels: Sequence[tuple[str, Kernel, Roofline]]) -> go.Scatter:
    texts = [
        f"{_text(kernel.name)[:60]}<br>in {_text(graph)} on {_text(compiler)}: {kernel.total_us:.4g} us,"
        f" {_percent(own.roofline_efficiency)} of its roofline"
        for graph, kernel, own in kernels
    ]
    return go.Scatter(
        x=[own.intensity for _, _, own in kernels], y=[(own.flop_rate or 0.0) / 1e9 for _, _, own in kernels],
        mode="markers", name=f"kernels of {_text(compiler)}", visible="legendonly",
        marker={"size": 5, "symbol": "circle-open"}, text=texts,
        hovertemplate="%{text}<br>%{x:.3g} FLOP/byte, %{y:.4g} GFLOP/s<extra></extra>",
    )  # fmt: skip


def _hover(result: Result, found: Roofline, peaks: Peaks) -> str:
    shares = f"{_percent(found.roofline_efficiency)} of the roofline, {found.bound}-bound, {found.level}, {found.dtype}"
    lines = [f"<b>{_text(result.graph)}</b> on {_text(result.compiler)}", " ".join((shares, *found.flags))]
    kernels = sorted(roofline.of_kernels(result, peaks), key=lambda item: -item[0].total_us)
    for kernel, own in kernels[:SHOWN_KERNELS]:
        efficiency = _percent(own.roofline_efficiency)
        lines.append(f"{_text(kernel.name)[:60]}: {kernel.total_us:.4g} us, {efficiency} of its roofline")
    return "<br>".join(lines)


def _percent(share: float | None) -> str:
    return "unknown share" if share is None else f"{share:.0%}"


def _text(name: str) -> str:
    """Names of others are no HTML."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
