from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from graphnet.compilers import Target
from graphnet.errors import StoreError, UsageError
from graphnet.evaluate import environment
from graphnet.evaluate.plan import Job, Limits, plan
from graphnet.evaluate.prepare import Preparation
from graphnet.evaluate.records import Result
from graphnet.evaluate.runner import Progress, run
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Graph, Value
from graphnet.rewrite import passes

MakeJob = Callable[..., Job]
Processes = Callable[[], list[int]]
HERE = Path(__file__).parent
NO_FAULT = Target(options={"fault": "", "at": ""})


@pytest.fixture
def files(tmp_path: Path, make_job: MakeJob) -> list[str]:
    """Six graph files whose references are in the cache."""
    found = []
    for name in "abcdef":
        graph = make_job(name).graph
        assert isinstance(graph, Graph)
        graph.save(tmp_path / f"{name}.json")
        found.append(str(tmp_path / f"{name}.json"))
    return found


def start_parent(folder: Path, compiler: str, files: list[str], file_limit: int | None = None) -> subprocess.Popen[str]:
    def limit() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    command = [sys.executable, str(HERE / "parent.py"), str(folder), compiler, *files]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def graphs_of(results: list[Result]) -> list[str]:
    return [result.graph for result in results]


def test_sigkill_of_the_parent_then_resume(
    tmp_path: Path, files: list[str], limits: Limits, processes_left: Processes
) -> None:
    folder = tmp_path / "results"
    parent = start_parent(folder, "faulty:Slow", files)
    assert [line(parent), line(parent)] == ["a ok", "b ok"]
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not processes_left()), "the server and its child outlived the parent"
    with Store(folder) as store:
        before = store.results()
        assert graphs_of(before)[:2] == ["a", "b"]
        jobs = plan(files, ["faulty:Slow"], target=NO_FAULT, budget_s=0.02)
        told: list[Progress] = []
        results = list(run(jobs, store, limits=limits, resume=True, progress=told.append))
        assert graphs_of(results) == list("abcdef")
        assert {result.verdict for result in results} == {"ok"}
        after = store.results()
        assert graphs_of(after) == list("abcdef")
        assert len({(result.run_id, result.job_key) for result in after}) == 6
        assert after[: len(before)] == before, "earlier records are untouched"
        assert len({result.run_id for result in after}) == 1
        resumed = [p.graph for p in told if p.resumed]
        assert resumed == graphs_of(before)


def test_grandchildren_die_with_a_killed_parent(tmp_path: Path, files: list[str], processes_left: Processes) -> None:
    parent = start_parent(tmp_path / "results", "faulty:Nested", files)
    # the parent, the server, job, two sleeps and a daemon
    assert wait_until(lambda: len(processes_left()) == 6), processes_left()
    parent.kill()
    parent.communicate()
    assert wait_until(lambda: not processes_left())


def test_interrupt_leaves_a_whole_store_and_no_processes(
    tmp_path: Path, files: list[str], processes_left: Processes
) -> None:
    folder = tmp_path / "results"
    parent = start_parent(folder, "faulty:Slow", files)
    assert line(parent) == "a ok"
    parent.send_signal(signal.SIGINT)
    _, errors = parent.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert not processes_left()
    with Store(folder) as store:
        assert 1 <= len(store.results()) < 6


def test_full_disk(tmp_path: Path, files: list[str], limits: Limits) -> None:
    folder = tmp_path / "results"
    parent = start_parent(folder, "faulty:Faulty", files, file_limit=300_000)
    out, errors = parent.communicate(timeout=60)
    assert parent.returncode == 1
    assert "StoreError: cannot write to the results store" in errors
    assert "--resume" in errors
    done = [text.split()[0] for text in out.splitlines()]
    assert 1 <= len(done) < 6
    with Store(folder) as store:
        assert graphs_of(store.results()) == done
        jobs = plan(files, ["faulty:Faulty"], target=NO_FAULT, budget_s=0.02)
        assert graphs_of(list(run(jobs, store, limits=limits, resume=True))) == list("abcdef")
        assert len(store.results()) == 6


def test_bad_files_are_records_too(tmp_path: Path, limits: Limits) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"format": "graphnet/1", "nodes": [')
    jobs = plan([str(bad), str(tmp_path / "absent.json")], ["faulty:Faulty", "faulty:Slow"])
    results = list(run(jobs, limits=limits))
    assert graphs_of(results) == ["bad", "bad", "absent", "absent"]
    assert {(result.verdict, result.stage) for result in results} == {("error", "load")}
    assert str(bad) in results[0].message
    assert len({result.job_key for result in results}) == 4


def test_a_job_listed_twice_is_run_once(make_job: MakeJob, limits: Limits) -> None:
    told: list[Progress] = []
    first, second = run([make_job("a"), make_job("a")], limits=limits, progress=told.append)
    assert first is second
    assert [p.result is None for p in told] == [True, False, True, False]
    assert told[1].remaining_s is not None
    assert told[-1].remaining_s == 0


def test_failing_pass_is_a_record(make_job: MakeJob, limits: Limits) -> None:
    job = msgspec.structs.replace(make_job("a"), passes=("default", "no_such_pass"))
    (result,) = run([job], limits=limits)
    assert (result.verdict, result.stage) == ("error", "load")
    assert "no_such_pass" in result.message


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes `square` (y = x x, which is wrong) and `swap` (y = 2 x with the operands swapped)."""
    monkeypatch.setattr(passes, "_PASSES", dict(passes._PASSES))

    def with_inputs(graph: Graph, *inputs: str) -> Graph:
        nodes = tuple(msgspec.structs.replace(node, inputs=inputs) for node in graph.nodes)
        return msgspec.structs.replace(graph, nodes=nodes)

    passes.register_pass("square", lambda graph: with_inputs(graph, "x", "x"))
    passes.register_pass("swap", lambda graph: with_inputs(graph, "two", "x"))


@pytest.mark.usefixtures("registered")
def test_a_pass_that_changes_results_is_refused_before_anything_is_timed(make_job: MakeJob, limits: Limits) -> None:
    job = msgspec.structs.replace(make_job("a"), passes=("default", "swap", "square"))
    first, second, third = run(
        [job, msgspec.structs.replace(job, compiler="faulty:Slow"), make_job("a")], limits=limits
    )
    for result in (first, second):
        assert (result.verdict, result.stage, result.timing) == ("error", "load", None)
        assert result.message.startswith("pass 'square' changes the results: value 'y' of node 'mul' (Mul) differs by")
    assert third.verdict == "ok"


@pytest.mark.usefixtures("registered")
def test_a_pass_that_keeps_results_is_timed(make_job: MakeJob, limits: Limits) -> None:
    (result,) = run([msgspec.structs.replace(make_job("a"), passes=("swap",))], limits=limits)
    assert (result.verdict, result.passes) == ("ok", ("swap",))


@pytest.mark.usefixtures("registered")
def test_a_pass_that_cannot_be_checked_is_not_trusted(
    make_job: MakeJob, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphnet.evaluate.oracle.COMPILER", "faulty:CannotLoad")
    (result,) = run([msgspec.structs.replace(make_job("a"), passes=("swap",))], limits=limits)
    assert result.verdict == "error"
    assert result.message.startswith("passes swap cannot be checked: ")


def test_a_variant_is_run_by_its_compiler_and_keeps_its_name(make_job: MakeJob, limits: Limits) -> None:
    (job,) = plan([make_job("a").graph], ["onnxruntime:basic"], budget_s=0.02)
    (result,) = run([job], limits=limits)
    assert (result.compiler, result.target.options) == ("onnxruntime:basic", {"level": "basic"})
    assert result.settings["optimization_level"] == "basic"
    assert result.settings["providers"] == "CPUExecutionProvider", "told by the program, after the compilation"


def test_symbolic_sizes_that_are_illegal_are_an_error_of_load(make_job: MakeJob, limits: Limits) -> None:
    (result,) = run([msgspec.structs.replace(make_job("a"), dims={"batch": 2})], limits=limits)
    assert (result.verdict, result.stage) == ("error", "load")
    assert "batch" in result.message
    assert result.dims == {"batch": 2}


@pytest.mark.parametrize("compiler", ["faulty:Faulty", "faulty:CannotLoad"])
@pytest.mark.parametrize(("dims", "sizes"), [({}, {"batch": 4}), ({"batch": 7}, {"batch": 7})])
def test_sizes_are_in_every_record(
    symbolic: Graph, make_job: MakeJob, limits: Limits, compiler: str, dims: dict[str, int], sizes: dict[str, int]
) -> None:
    job = msgspec.structs.replace(make_job("a", "device", "load", compiler), graph=symbolic, dims=dims)
    (result,) = run([job], limits=limits)
    assert result.stage == "load"
    assert result.dims == sizes, "a job that fails early pairs with the baseline's"


def test_flops_are_counted_not_read(symbolic: Graph, make_job: MakeJob, limits: Limits) -> None:
    job = msgspec.structs.replace(make_job("a"), graph=msgspec.structs.replace(symbolic, flops=10**15, bytes=1))
    results = run([job, msgspec.structs.replace(job, dims={"batch": 8})], limits=limits)
    assert [(result.flops, result.bytes) for result in results] == [(32, 260), (64, 516)], "one per element"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where children of `faulty.py` leave lines."""
    monkeypatch.setenv("FAULTY_LOG", str(tmp_path / "log"))
    monkeypatch.setattr("graphnet.evaluate.oracle.COMPILER", "faulty:CpuOracle")
    return tmp_path / "log"


def jobs_without_reference(graph: Graph, threads: int) -> list[Job]:
    target = Target(device="cuda", threads=threads, options={"fault": "", "at": ""})
    return plan([graph], ["faulty:Faulty", "faulty:Slow"], target=target, budget_s=0.02)


def test_reference_is_made_on_the_cpu_and_once(symbolic: Graph, limits: Limits, log: Path) -> None:
    results = list(run(jobs_without_reference(symbolic, 2), limits=limits))
    assert [(result.verdict, result.message) for result in results] == [("ok", "")] * 2
    assert log.read_text().splitlines() == ["configure"]


def test_failed_reference_is_not_tried_again(symbolic: Graph, limits: Limits, log: Path) -> None:
    results = list(run(jobs_without_reference(symbolic, 1), limits=limits))
    for result in results:
        assert (result.verdict, result.stage) == ("error", "check")
        assert "no reference outputs: error in load" in result.message
    assert log.read_text().splitlines() == ["configure"]


@pytest.mark.parametrize("cache", ["file/cache", "relative"])
def test_cache_that_cannot_be_used_or_is_relative(
    symbolic: Graph, limits: Limits, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHNET_CACHE", cache)
    results = list(run(jobs_without_reference(symbolic, 2), limits=limits))
    assert [result.verdict for result in results] == ["ok", "ok"]
    assert log.read_text().splitlines() == ["configure"], "kept for this run at least"


def test_import_that_hangs_is_not_tried_again(make_job: MakeJob, log: Path) -> None:
    jobs = [make_job(name, compiler="faulty:HangsInPreload") for name in "ab"]
    results = list(run(jobs, limits=Limits(preload_s=2.0)))
    assert [(result.verdict, result.stage) for result in results] == [("crashed", "load")] * 2
    assert "took more than 2 s" in results[1].message
    assert log.read_text().splitlines() == ["preload"]


def test_resume_with_another_budget_is_refused(tmp_path: Path, make_job: MakeJob, limits: Limits) -> None:
    with Store(tmp_path) as store:
        list(run([make_job("a")], store, limits=limits))
        job = msgspec.structs.replace(make_job("b"), budget_s=5.0)
        with pytest.raises(UsageError, match=r"budget_s \[0.02\], not \[5.0\]"):
            list(run([job], store, limits=limits, resume=True))


def test_resume_with_another_framework_is_refused(
    tmp_path: Path, make_job: MakeJob, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path) as store:
        list(run([make_job("a")], store, limits=limits))
        monkeypatch.setattr(environment, "packages", lambda: {"torch": "99.1"})
        with pytest.raises(UsageError, match=r"packages \{.*\}, not \{'torch': '99.1'\}"):
            list(run([make_job("b")], store, limits=limits, resume=True))


def test_a_graph_that_lies_about_a_type_is_no_job(make_job: MakeJob) -> None:
    job = make_job("a")
    assert isinstance(job.graph, Graph)
    values = {name: Value(dtype="int64", shape=value.shape) for name, value in job.graph.values.items()}
    (result,) = run([msgspec.structs.replace(job, graph=msgspec.structs.replace(job.graph, values=values))])
    assert (result.verdict, result.stage) == ("error", "load")
    assert "int64" in result.message


def test_unnamed_nodes_are_named_for_the_compiler(make_job: MakeJob) -> None:
    job = make_job("a")
    assert isinstance(job.graph, Graph)
    nodes = tuple(msgspec.structs.replace(node, name="") for node in job.graph.nodes)
    unnamed = msgspec.structs.replace(job.graph, nodes=nodes)
    found = Preparation().prepare(msgspec.structs.replace(job, graph=unnamed, passes=("default", "onnxruntime.basic")))
    (named,) = found.states
    assert [node.name for node in named.nodes] == [f"{node.op}_{i}" for i, node in enumerate(nodes)]


def test_without_resume_a_new_run_begins(tmp_path: Path, make_job: MakeJob, limits: Limits) -> None:
    with Store(tmp_path) as store:
        (first,) = run([make_job("a")], store, limits=limits)
        (second,) = run([make_job("a")], store, limits=limits)
        assert first.job_key == second.job_key
        assert first.run_id != second.run_id
        assert store.results() == [second], "the newest record of a job"
        assert store.results(first.run_id) == [first]


def test_closing_the_iterator_kills_the_server(make_job: MakeJob, limits: Limits, processes_left: Processes) -> None:
    results = run([make_job("a"), make_job("b")], limits=limits)
    next(results)
    assert processes_left()
    results.close()  # type: ignore[attr-defined]
    assert not processes_left()


def test_store_error_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        Store(tmp_path / "file" / "sub")
