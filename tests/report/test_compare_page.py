"""The page of a comparison: what a browser's parser reads of it, and that strangers' names are only text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from graphnet.analyze.compare import compare
from graphnet.analyze.differences import ResultsOf
from graphnet.errors import StoreError
from graphnet.report import compare_page
from tests.report.test_compare_tables import record

EVIL = """</td><script>alert(1)</script><img src=x onerror="alert('2')">{{ 7*7 }}&amp;"""


class Parsed(HTMLParser):
    """Tags, attributes, and the text of each table cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[list[str]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self._in_cell = True
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1][-1] += data


def page(*sets: ResultsOf) -> Parsed:
    return Parsed(compare_page.page(compare(sets)))


def of(label: str, *results: object) -> ResultsOf:
    return ResultsOf(label=label, results=results)  # type: ignore[arg-type]


def test_cells_are_those_of_the_comparison() -> None:
    found = page(of("old/", record("net", 4), record("gone", 1)), of("new/", record("net", 3)))
    assert ["graph", "compiler", "A", "B", "B/A"] in found.cells
    assert ["net", "jax", "4", "3", "0.750 [0.750, 0.750]"] in found.cells
    assert ["gone", "jax", "1", "missing", ""] in found.cells
    assert ["jax", "1", "0.750"] in found.cells
    assert ("data-value", "0.75") in found.attributes


def test_strangers_names_are_text() -> None:
    evil = record(EVIL, 4, compiler=EVIL, versions={EVIL: EVIL}, environment=EVIL)
    other = record(EVIL, 4, compiler=EVIL, versions={EVIL: "2"}, environment="m", verdict=EVIL, stage=EVIL)
    found, plain = page(of(EVIL, evil), of("new/", other)), page(of("a", record("a", 4)), of("b", record("a", 4)))
    assert [EVIL, EVIL, "4", f"{EVIL} ({EVIL})", ""] in found.cells
    assert [EVIL, EVIL, "2"] in found.cells
    assert found.tags.count("script") == plain.tags.count("script") == 1
    assert "img" not in found.tags
    assert not any(name.startswith("on") for name, _ in found.attributes)


def test_page_needs_nothing_else() -> None:
    text = compare_page.page(compare([of("a", record("a", 4)), of("b", record("a", 4))]))
    found = Parsed(text)
    assert not {name for name, _ in found.attributes} & {"src", "href"}
    assert "http://" not in text
    assert "https://" not in text
    assert any("default-src 'none'" in (value or "") for _, value in found.attributes)


def test_words_can_be_another_language() -> None:
    words = {**compare_page.ENGLISH, "graph": "计算图", "absent": "缺失", "language": "zh"}
    found = Parsed(compare_page.page(compare([of("a", record("a", 4)), of("b", record("b", 4))]), words))
    assert ["计算图", "compiler", "A", "B", "B/A"] in found.cells
    assert ["a", "jax", "4", "缺失", ""] in found.cells


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/page\.html"):
        compare_page.write(compare([of("a", record("a", 4)), of("b", record("a", 4))]), tmp_path / "file" / "page.html")


def test_page_tells_the_noise_floor() -> None:
    text = compare_page.page(compare([of("a", record("a", 4)), of("b", record("a", 4))]))
    assert '<p class="note floor">Noise floor of this machine (1 thread): not measured; `graphnet noise`' in text
    assert "~1.000 [1.000, 1.000]" in text
