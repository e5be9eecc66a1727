"""`graphnet history` from the command line: places that it reads, and those that it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from graphnet.evaluate.records import Result
from graphnet.evaluate.store import Store, export_json, load_runs
from tests.analyze.test_history import stepped
from tests.test_cli import run


def stored(folder: Path, results: Sequence[Result]) -> Path:
    with Store(folder) as store:
        store.add_all([msgspec.structs.replace(result, job_key="job") for result in results])
    return folder


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_every_run_of_a_store_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place, page = stored(tmp_path / "results", stepped(12.3)), tmp_path / "pages" / "history.html"
    with Store(place, create=False) as store:
        assert store.runs() == [f"run-{index:02}" for index in range(12)]
        assert len(store.results()) == 1
    assert run(monkeypatch, "history", place, "-o", page) == 0
    text = told(capsys)
    assert "12 runs, 1 series: 1 step(s), 0 possible" in text
    assert "slower 1.23x" in text
    assert "Plotly.newPlot" in page.read_text()


def test_places_of_all_kinds_and_folders_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    results, folder = stepped(12.3), tmp_path / "all"
    stored(folder / "a", results[:4])
    stored(folder / "b.db", results[4:8])
    (folder / "c.json").write_bytes(export_json(results[6:], ()))
    (folder / "notes.txt").write_text("no results")
    assert sum(len(found.results) for found in load_runs(folder)) == 4 + 4 + 6
    for places in ([folder], [folder / "a", f"sqlite:///{folder}/b.db", folder / "c.json"]):
        assert run(monkeypatch, "history", *places) == 0
        assert "12 runs, 1 series: 1 step(s)" in told(capsys)


def test_bad_input_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with Store(tmp_path / "empty"):
        pass
    stored(tmp_path / "one", stepped(12.3)[:1])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.json").write_text("{")
    (tmp_path / "nothing").mkdir()
    cases = {
        "empty": "needs at least 3 runs", "one": "needs at least 3 runs", "other": "x.json: not a set of results",
        "nothing": "no results at", "absent": "no results at", "absent.json": "cannot read",
    }  # fmt: skip
    for name, message in cases.items():
        assert run(monkeypatch, "history", tmp_path / name) == 2, name
        text = told(capsys)
        assert message in text, name
        assert "Traceback" not in text
