from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import sqlalchemy

from graphnet.compilers import Kernel, Target
from graphnet.errors import StoreError
from graphnet.evaluate import store as module
from graphnet.evaluate.records import (
    CompileTime,
    Environment,
    Memory,
    Noise,
    OutputError,
    Result,
    Timing,
)
from graphnet.evaluate.store import Store, export_json, import_json, load_set

MACHINE = Environment(key="abc", cpu_model="cpu", cpu_count=2, memory_bytes=1 << 34, os="Linux", python="3.11.9")


def result(run_id: str, job_key: str, **fields: object) -> Result:
    plain = Result(
        run_id=run_id, job_key=job_key, graph_id="GN-2026-CV-001", graph="net", subset="vision",
        structure_hash="0" * 64,
        compiler="null", target=Target(threads=2, options={"level": "all"}), dims={"batch": 4}, verdict="wrong",
        stage="check", message="no", notes=("a", "b"), compile=CompileTime(lower_s=0.1, compile_s=2.0),
        timing=Timing(samples_ns=(1, 2, 3), cpu_ns=(1, 1, 1), inner_loops=4, buffer_seed=192),
        outputs=(OutputError(name="y", dtype="float32", level=None, max_abs=1e300),), level=None,
        kernels=(Kernel(name="k", nodes=("n",), calls=1, total_us=0.5),),
        memory=Memory(baseline=1, timeline=((0.1, 5),)),
        noise=Noise(before_ns=(1,), after_ns=(2,), cv=0.3), flops=10**18, environment="abc",
        started="2026-01-01T00:00:00+00:00", wall_s=1.5,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


@pytest.fixture
def run_id(store: Store) -> str:
    return store.begin_run({"budget_s": [10.0]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_results_come_back_equal_and_in_order(store: Store, run_id: str) -> None:
    added = [result(run_id, f"key{i}") for i in range(5)]
    for item in added:
        store.add(item)
    assert store.results(run_id) == added
    assert store.results() == added
    assert store.find(run_id, "key3") == added[3]
    assert store.find(run_id, "key9") is None


def test_database_has_columns_to_ask_by(store: Store, run_id: str, tmp_path: Path) -> None:
    store.add(result(run_id, "key"))
    with sqlite3.connect(tmp_path / "results" / "results.db") as connection:
        row = connection.execute(
            "SELECT graph_id, compiler, variant, verdict, stage, environment FROM results"
        ).fetchone()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert row == ("GN-2026-CV-001", "null", "default", "wrong", "check", "abc")


def test_one_record_per_job_and_run(store: Store, run_id: str) -> None:
    store.add(result(run_id, "key"))
    with pytest.raises(StoreError, match="UNIQUE"):
        store.add(result(run_id, "key", verdict="ok"))
    assert [item.verdict for item in store.results()] == ["wrong"]


def test_newest_record_of_each_job_over_runs(store: Store) -> None:
    first, second = store.begin_run({}), store.begin_run({})
    for item in (result(first, "a"), result(first, "b"), result(second, "a", verdict="ok", stage=None)):
        store.add(item)
    assert [(item.job_key, item.verdict) for item in store.results()] == [("b", "wrong"), ("a", "ok")]


def test_last_run(store: Store) -> None:
    assert store.last_run() is None
    store.begin_run({"n": 1})
    newest = store.begin_run({"n": 2})
    assert store.last_run() == (newest, {"n": 2})


def test_environments_are_kept_once(store: Store) -> None:
    store.add_environment(MACHINE)
    store.add_environment(MACHINE)
    assert store.environments() == [MACHINE]


def add_many(store: Store, run_id: str) -> None:
    for index in range(100):
        store.add(result(run_id, f"key{index}", message="x" * 10_000))


def test_a_full_database_keeps_what_it_has(store: Store, run_id: str) -> None:
    store.add(result(run_id, "first"))

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA max_page_count=20")

    sqlalchemy.event.listen(store._engine, "checkout", limit)
    with pytest.raises(StoreError, match=r"database or disk is full.*--resume"):
        add_many(store, run_id)
    kept = store.results()
    assert kept[0].job_key == "first"
    assert [item.job_key for item in kept[1:]] == [f"key{i}" for i in range(len(kept) - 1)]


def test_json_round_trip() -> None:
    results = [result("run", "a"), result("run", "b", verdict="ok", stage=None, level=-7)]
    data = export_json(results, [MACHINE])
    assert json.loads(data)["format"] == "graphnet-results/1"
    back = import_json(data)
    assert list(back.results) == results
    assert list(back.environments) == [MACHINE]


def test_import_into_a_store_is_exact_and_repeatable(tmp_path: Path) -> None:
    results = [result("run", "a"), result("run", "b"), result("other", "a")]
    with Store(tmp_path) as store:
        store.add_all(results, [MACHINE])
        store.add_all(results, [MACHINE])
        assert store.results("run") == results[:2]
        assert store.results("other") == results[2:]
        assert store.environments() == [MACHINE]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": "graphnet-results/9"}', b'{"format": 1}'])
def test_what_is_no_result_set_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match="not a set of results"):
        import_json(data)


def test_reader_names_a_newer_result_format() -> None:
    with pytest.raises(StoreError, match=r"format 'graphnet-result/2'.*upgrade"):
        module.decode_result(b'{"format": "graphnet-result/2"}')
    with pytest.raises(StoreError, match="damaged"):
        module.decode_result(b'{"format": "graphnet-result/1", "run_id": 5}')
    with pytest.raises(StoreError, match="damaged"):
        module.decode_result(b'{"format": "gra')


def test_reader_refuses_a_newer_store(store: Store, tmp_path: Path) -> None:
    store.close()
    with sqlite3.connect(tmp_path / "results" / "results.db") as connection:
        connection.execute("UPDATE meta SET value = '2' WHERE name = 'schema'")
    connection.close()
    with pytest.raises(StoreError, match="newer version; upgrade"):
        Store(tmp_path / "results")


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results at"):
        Store(tmp_path / "nothing", create=False)
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 20, b""])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.db").write_bytes(content)
    with pytest.raises(StoreError):
        Store(tmp_path, create=False)


def test_a_store_by_url(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'by-url.db'}") as store:
        store.add(result(store.begin_run({}), "key"))
    with Store(tmp_path / "by-url.db", create=False) as store:
        assert len(store.results()) == 1


def test_reading_leaves_the_folder_as_it_is(store: Store, run_id: str, tmp_path: Path) -> None:
    store.add(result(run_id, "a"))
    with Store(tmp_path / "results", create=False) as reader:
        assert len(reader.results()) == 1, "beside a writer"
    store.close()
    folder = tmp_path / "results"
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
    folder.chmod(0o555)
    with Store(folder, create=False) as reader:
        assert len(reader.results()) == 1
        assert {file.name for file in folder.iterdir()} == {"results.db"}
        with pytest.raises(StoreError, match="readonly"):
            reader.begin_run({})
    folder.chmod(0o755)
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before


def test_two_writers(tmp_path: Path) -> None:
    with Store(tmp_path) as one, Store(tmp_path) as two:
        first, second = one.begin_run({}), two.begin_run({})
        for index in range(10):
            one.add(result(first, f"a{index}"))
            two.add(result(second, f"b{index}"))
        assert len(one.results()) == len(two.results()) == 20


def test_stores_made_at_once_in_one_folder(tmp_path: Path) -> None:
    """Each opens and writes from a process of its own, all started by one signal (a file)."""
    code = (
        "import sys, time, pathlib; from graphnet.evaluate.store import Store\n"
        "while not pathlib.Path(sys.argv[1], 'go').exists(): time.sleep(0.001)\n"
        "Store(sys.argv[1]).begin_run({'n': 1})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(4)]
    time.sleep(3)
    (tmp_path / "go").touch()
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 4


def test_every_field_survives(store: Store, run_id: str) -> None:
    item = result(run_id, "key", settings={"fast_math": False, "threads": 1, "mode": "x", "share": 0.5})
    store.add(item)
    (back,) = store.results()
    for field in msgspec.structs.fields(Result):
        assert getattr(back, field.name) == getattr(item, field.name), field.name


def test_a_set_is_read_from_a_folder_a_file_or_an_export(tmp_path: Path, store: Store, run_id: str) -> None:
    added = [result(run_id, f"key{i}") for i in range(2)]
    for item in added:
        store.add(item)
    store.add_environment(MACHINE)
    older = msgspec.structs.replace(added[0], message="older")
    (tmp_path / "set.json").write_bytes(export_json([older, *added], [MACHINE]))
    for place in (tmp_path / "results", tmp_path / "results" / "results.db", tmp_path / "set.json"):
        found = load_set(place)
        assert list(found.results) == added, "the newest of each job"
        assert found.environments == (MACHINE,)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.json", None, "cannot read .*absent.json: No such file"),
        ("odd.json", b"{}", "odd.json: not a set of results"),
        ("torn.json", b'{"format": "graphnet-results/1", "results": [', "torn.json: not a set of results"),
        ("absent", None, "no results at .*absent/results.db"),
        ("odd.db", b"no database" * 100, "odd.db: "),
    ],
)
def test_a_set_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match=message):
        load_set(tmp_path / name)


def test_what_is_no_database_is_not_said_to_be_intact(tmp_path: Path) -> None:
    (tmp_path / "results.db").write_bytes(b"plain text, not a database" * 100)
    with pytest.raises(StoreError, match="It is damaged, or no results store: bring back a copy"):
        Store(tmp_path, create=False)
