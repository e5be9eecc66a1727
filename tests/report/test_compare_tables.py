"""A comparison in the terminal: what it says, and that no name is taken for markup."""

from __future__ import annotations

import msgspec
import pytest
from rich.console import Console

from graphnet.analyze.compare import Cell, compare
from graphnet.analyze.differences import ResultsOf
from graphnet.compilers import Target
from graphnet.evaluate.records import Result, Timing
from graphnet.report import compare_tables

MARKUP = "a[/w] [red]b[/red] :heart:"


def record(graph: str, ms: float, **fields: object) -> Result:
    plain = Result(
        run_id="r", graph_id="", graph=graph, subset="vision", structure_hash=graph, compiler="jax", target=Target(),
        verdict="ok", timing=Timing(samples_ns=(round(ms * 1e6),) * 5),
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def shown(*sets: list[Result]) -> str:
    found = compare([ResultsOf(label=f"results-{i}/", results=tuple(results)) for i, results in enumerate(sets)])
    console = Console(width=200)
    with console.capture() as captured:
        console.print(compare_tables.comparison(found))
    return captured.get()


def cells(text: str, graph: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {graph} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_sets_have_letters_times_and_ratios() -> None:
    text = shown([record("net", 4)], [record("net", 3)])
    assert "A = results-0/ (1 results)" in text
    assert cells(text, "net") == ["net", "jax", "4", "3", "0.750 [0.750, 0.750]"]
    assert cells(text, "jax") == ["jax", "1", "0.750"]
    for title in ("unlike", "Verdicts", "Missing"):
        assert title not in text


def test_differences_stand_above_the_times() -> None:
    text = shown([record("net", 4)], [record("net", 3, target=Target(threads=2))])
    assert cells(text, "threads") == ["threads", "1", "2"]
    assert text.index("threads") < text.index("Median latency")


def test_changed_and_missing_are_listed() -> None:
    failed = record("net", 4, verdict="crashed", stage="run", timing=None)
    text = shown([record("net", 4), record("gone", 1)], [failed])
    assert "  net on jax: A ok, B crashed (run)" in text
    assert "  gone on jax: A ok, B missing" in text
    assert cells(text, "net") == ["net", "jax", "4", "crashed (run)", ""]
    assert cells(text, "gone") == ["gone", "jax", "1", "missing", ""]


def test_names_are_no_markup() -> None:
    assert shown([record(MARKUP, 4)], [record(MARKUP, 4)]).count(MARKUP) == 1


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.8, 0.9, "faster"), (1.1, 1.2, "slower"), (0.9, 1.1, ""), (None, None, "")],
)
def test_trend_takes_the_whole_interval(low: float | None, high: float | None, expected: str) -> None:
    assert compare_tables.trend(Cell(verdict="ok", seconds=1.0, ratio=1.0, low=low, high=high)) == expected


def test_more_sets_than_letters() -> None:
    assert compare_tables.letters(28)[24:] == ["Y", "Z", "S27", "S28"]


def test_what_is_not_resolved_has_a_sign_and_floors_are_told() -> None:
    spread = msgspec.structs.replace(
        record("net", 4), timing=Timing(samples_ns=tuple(range(3_500_000, 4_500_000, 100_000)))
    )
    text = shown([record("net", 4)], [spread])
    assert cells(text, "net")[4].startswith("~0.988 [")
    assert "~ before a ratio: the interval holds 1, or there is none" in text
    assert "Noise floor of this machine (1 thread): not measured" in text
    single = msgspec.structs.replace(record("net", 4), timing=Timing(samples_ns=(2_000_000,)))
    assert cells(shown([record("net", 4)], [single]), "net")[4] == "~0.500"
