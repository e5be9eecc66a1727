"""A history in the terminal and as a page: what it says, and that strangers' names are only text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs
from rich.console import Console

from graphnet.analyze.history import History
from graphnet.errors import StoreError
from graphnet.report import history_page, history_table
from tests.analyze.test_history import of, record, stepped
from tests.report.test_compare_page import EVIL, Parsed


def shown(found: History) -> str:
    console = Console(width=220)
    with console.capture() as captured:
        console.print(history_table.steps(found))
    return captured.get()


def figures(found: History) -> list[dict[str, Any]]:
    (data,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', history_page.page(found))
    return list(json.loads(data))


def own_script(page: str) -> str:
    """The page without Plotly, which is not ours."""
    return page.replace(get_plotlyjs(), "")


def test_table_tells_steps() -> None:
    text = shown(of([*stepped(12.3), *stepped(8.0, graph="better")]))
    assert "12 runs, 2 series: 2 step(s), 0 possible" in text
    assert re.search(
        r"run-06 \(2026-11-07 10:00\).*net.*jax.*slower 1\.23x \[1\.\d\d, 1\.\d\d\] since run run-05", text
    )
    assert re.search(r"better.*faster 1\.25x", text)
    assert text.count("jax 1.0 -> 1.1") == 2
    assert "machine" not in text


def test_table_tells_series_of_one_graph_apart() -> None:
    text = shown(of([*stepped(12.3), *stepped(13.0, environment="other")]))
    assert "net, machine other" in text
    assert "thread(s)" not in text


def test_table_tells_possible_steps_and_short_series() -> None:
    results = [record(run, 10 * (1 + run % 3 * 0.001)) for run in range(8)] + [record(8, 15)]
    text = shown(of([*results, record(0, 1.0, graph="short")]))
    assert "9 runs, 1 series; 1 with fewer than 3 runs left out: 0 step(s), 1 possible" in text
    assert re.search(r"possible step, one run only: slower 1\.50x .* than run run-07.*no version", text)


def test_page_has_the_steps_and_a_chart_of_each_series() -> None:
    found = of([*stepped(10.0, graph="flat"), *stepped(12.3)])
    parsed = Parsed(own_script(history_page.page(found)))
    assert ["run", "graph", "compiler", "step", "what changed"] in parsed.cells
    (row,) = [cells for cells in parsed.cells if cells[0].startswith("run-06")]
    assert row[1:3] + row[4:] == ["net", "jax", "jax 1.0 -> 1.1"]
    assert [series.graph for series in found.series] == ["net", "flat"]
    measured, levels = figures(found)[0]["data"]
    assert measured["y"] == pytest.approx([point.seconds * 1e3 for point in found.series[0].points])
    assert measured["marker"]["symbol"] == ["circle"] * 6 + ["triangle-up"] + ["circle"] * 5
    assert levels["x"] == [0.5, 6.5, None, 6.5, 12.5, None]
    assert levels["y"][3] / levels["y"][0] == pytest.approx(1.23, rel=0.01)


def test_page_without_steps_says_so() -> None:
    assert "No step in any series." in history_page.page(of(stepped(10.0)))


def test_strangers_names_are_text() -> None:
    names = {"graph": EVIL, "compiler": EVIL, "environment": EVIL}
    evil = of(
        [
            record(run, ms, **names, run_id=f"{run}{EVIL}", versions={EVIL: str(ms)})
            for run, ms in enumerate([10, 10.01, 10.02, 10, 12.3, 12.31, 12.32, 12.3])
        ]
    )  # fmt: skip
    page = own_script(history_page.page(evil))
    plain = Parsed(own_script(history_page.page(of(stepped(12.3)))))
    found = Parsed(page)
    assert any(cells[1:3] == [EVIL, EVIL] for cells in found.cells)
    assert found.tags.count("script") == plain.tags.count("script") == 3
    assert "img" not in found.tags
    assert not any(name.startswith("on") for name, _ in found.attributes)
    for figure in figures(evil):
        assert "<img" not in json.dumps(figure)
        assert "&lt;img" in json.dumps(figure)


def test_page_needs_nothing_else() -> None:
    text = own_script(history_page.page(of(stepped(12.3))))
    assert not {name for name, _ in Parsed(text).attributes} & {"src", "href"}
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/page\.html"):
        history_page.write(of(stepped(12.3)), tmp_path / "file" / "page.html")
