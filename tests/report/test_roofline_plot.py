"""The roofline figure: where its lines and points are, what they say, and that it needs no network."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from graphnet.compilers import Kernel
from graphnet.errors import StoreError
from graphnet.report import roofline_plot, roofline_table
from tests.analyze.test_roofline import MACHINE, PEAKS, result


def test_roofs_meet_at_the_balance_points() -> None:
    chart = roofline_plot.figure(PEAKS)
    lines = {trace.name.partition(":")[0]: trace for trace in chart.data}
    assert set(lines) == {"float32", "float64", "L1", "L2", "DRAM"}
    assert lines["DRAM"].x[1] == pytest.approx(10.0), "100 GFLOP/s over 10 GB/s"
    assert lines["DRAM"].y[1] == pytest.approx(100.0)
    assert lines["float32"].y == pytest.approx((100.0, 100.0))
    assert lines["float64"].x[0] == pytest.approx(0.25), "where the widest memory, L1, reaches it"
    slope = lines["L2"]
    assert [y / x for x, y in zip(slope.x, slope.y, strict=True)] == pytest.approx([100.0, 100.0])
    assert (chart.layout.xaxis.type, chart.layout.yaxis.type) == ("log", "log")


def test_points_by_compiler_with_kernels_in_their_text() -> None:
    kernels = (
        Kernel(name="<conv>", calls=1, total_us=9.0, flops=500, bytes=100),
        Kernel(name="k", calls=1, total_us=1),
    )
    records = [
        result(kernels=kernels), result(compiler="other"), result(flops=None), result(flops=0), result(verdict="wrong"),
    ]  # fmt: skip
    chart = roofline_plot.figure(PEAKS, records)
    points = {trace.name: trace for trace in chart.data if trace.mode == "markers"}
    small = points.pop("kernels of c")
    assert (small.x, small.y) == ((5.0,), pytest.approx((500 / 9e-6 / 1e9,))), "the other kernel has no cost"
    assert small.visible == "legendonly"
    assert "&lt;conv&gt;<br>in net on c: 9 us, " in small.text[0]
    assert {name: (tuple(trace.x), tuple(trace.y)) for name, trace in points.items()} == {
        "c": ((20.0,), (50.0,)), "other": ((20.0,), (50.0,)),
    }  # fmt: skip
    text = points["c"].text[0]
    assert "<b>net</b> on c" in text
    assert "50% of the roofline, compute-bound, DRAM, float32" in text
    assert "&lt;conv&gt;: 9 us, " in text
    assert "k: 1 us, unknown share of its roofline" in text


def test_nothing_measured_is_an_empty_plot() -> None:
    bare = msgspec.structs.replace(PEAKS, flops={}, bandwidth={}, sizes={})
    assert len(roofline_plot.figure(bare, [result()]).data) == 1, "the point has no roof"
    assert len(roofline_plot.figure(bare).data) == 0


def test_page_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    roofline_plot.write(roofline_plot.figure(PEAKS, [result()]), tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert "Plotly.newPlot" in page
    assert '<script src="http' not in page


def test_no_place_for_the_plot_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write the plot .*gone/plot.html: .*; give another place with -o"):
        roofline_plot.write(roofline_plot.figure(PEAKS), tmp_path / "gone" / "plot.html")


def shown(table: object) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_tables() -> None:
    text = shown(roofline_table.peaks_table(MACHINE, PEAKS))
    assert "float32" in text
    assert "100.0 GFLOP/s" in text
    assert "10 FLOP/byte" in text
    assert "L2 (976 KiB)" in text
    table = roofline_table.results_table([result(), result(flops=None, graph="odd"), result(verdict="wrong")], PEAKS)
    assert table is not None
    assert table.row_count == 2
    text = shown(table)
    assert "50.0%" in text
    assert "unknown" in text
    assert roofline_table.results_table([result(verdict="wrong")], PEAKS) is None
