"""The Python interface: sizes of each graph, and what is told when a run or its files fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet import api
from graphnet.errors import GraphNetError, StoreError, UsageError
from graphnet.evaluate import runner
from graphnet.evaluate.plan import Job
from graphnet.evaluate.records import Result
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Dim, Graph, Input, Node, Value


def relu(name: str, *symbols: str) -> Graph:
    """y = relu(x) over the symbols."""
    shape: tuple[int | str, ...] = (*symbols, 4)
    return Graph(
        name=name, inputs=(Input(name="x", dtype="float32", shape=shape),), outputs=("y",),
        dims={symbol: Dim(min=1, max=64, default=1) for symbol in symbols},
        nodes=(Node(op="Relu", name="n", inputs=("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=shape)},
    )  # fmt: skip


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that the runner was given; each is done at once."""
    given: list[Job] = []

    def run(jobs: list[Job], store: Store | None = None, **_: object) -> Iterator[Result]:
        given.extend(jobs)
        run_id = store.begin_run({}) if store else "r"
        for number, job in enumerate(jobs):
            result = Result(
                run_id=run_id, job_key=str(number), graph_id="g", graph="g", subset="other", structure_hash="",
                compiler=job.compiler, target=job.target, verdict="timeout", stage="run",
            )  # fmt: skip
            if store:
                store.add(result)
            yield result

    monkeypatch.setattr(runner, "run", run)
    return given


def test_each_graph_takes_the_sizes_that_it_has(jobs: list[Job], tmp_path: Path) -> None:
    relu("file", "sequence").save(tmp_path / "file.json")
    graphs: list[Graph | Path] = [relu("both", "batch", "sequence"), relu("static"), tmp_path / "file.json"]
    api.evaluate(graphs, ["torch", "jax"], dims={"batch": 8, "sequence": 16})
    assert [job.dims for job in jobs[::2]] == [{"batch": 8, "sequence": 16}, {}, {"sequence": 16}]
    assert [job.dims for job in jobs[1::2]] == [job.dims for job in jobs[::2]]


def test_a_symbol_that_no_graph_has_is_refused(jobs: list[Job]) -> None:
    with pytest.raises(UsageError, match=r"no given graph has a dimension 'bacth'; theirs are: batch .*graphnet info"):
        api.evaluate([relu("a", "batch"), relu("b")], ["torch"], dims={"bacth": 8})
    assert jobs == []


def test_a_graph_that_cannot_be_read_is_left_to_its_job(jobs: list[Job], tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    api.evaluate([tmp_path / "bad.json"], ["torch"], dims={"batch": 8})
    assert [job.dims for job in jobs] == [{"batch": 8}]


def test_a_file_that_cannot_be_written_is_named(jobs: list[Job], tmp_path: Path) -> None:
    (tmp_path / "summary.md").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*summary\.md: Is a directory\. All records are kept"):
        api.evaluate([relu("a")], ["torch"], output=tmp_path)
    assert len(jobs) == len(api.load_results(tmp_path)) == 1


def test_what_stopped_the_run_is_told_even_when_files_fail_too(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary.md").mkdir()
    add = Store.add

    def full(store: Store, result: Result) -> None:
        if result.job_key == "1":
            raise StoreError("disk full, go on with --resume")
        add(store, result)

    monkeypatch.setattr(Store, "add", full)
    with pytest.raises(GraphNetError, match="disk full, go on with --resume"):
        api.evaluate([relu("a")], ["torch", "jax"], output=tmp_path)
    assert len(jobs) == 2


def test_files_of_a_stopped_run_are_written(jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_store: Store, _result: Result) -> None:
        raise KeyboardInterrupt

    api.evaluate([relu("a")], ["torch"], output=tmp_path)
    (tmp_path / "summary.md").unlink()
    monkeypatch.setattr(Store, "add", stop)
    with pytest.raises(KeyboardInterrupt):
        api.evaluate([relu("a")], ["torch"], output=tmp_path)
    assert "timeout (run)" in (tmp_path / "summary.md").read_text()
