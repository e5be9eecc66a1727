"""Real children that go wrong: each yields its verdict and stage, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from graphnet.compilers import Target
from graphnet.evaluate import procfs, supervise
from graphnet.evaluate.plan import Job, Limits
from graphnet.evaluate.protocol import Channel, Exited, Report, Work
from graphnet.evaluate.records import Result
from graphnet.evaluate.runner import run
from graphnet.evaluate.server import Server
from graphnet.evaluate.store import decode_result

Evaluate = Callable[..., Result]
EvaluateAll = Callable[..., list[Result]]
MakeJob = Callable[..., Job]
Processes = Callable[[], list[int]]
STAGES = ["load", "compile", "run", "check"]


def short(stage: str) -> Limits:
    """Half a second for one stage, and as much as a busy machine may need for the others."""
    seconds = {f"{name}_s": 0.5 if name == stage else 20.0 for name in STAGES}
    return Limits(**seconds)  # type: ignore[arg-type]


def test_a_sound_compiler_is_ok(evaluate: Evaluate, processes_left: Processes) -> None:
    result = evaluate()
    assert (result.verdict, result.stage, result.message) == ("ok", None, "")
    assert result.level is not None
    assert result.level <= -6
    assert result.outputs[0].max_abs == 0.0
    assert result.timing is not None
    assert len(result.timing.samples_ns) >= 5
    assert len(result.timing.cpu_ns) == len(result.timing.samples_ns)
    assert result.timing.buffer_seed > 0
    assert result.compile is not None
    assert result.compile.total_s > 0
    assert result.memory is not None
    assert 0 < result.memory.baseline <= result.memory.run_peak
    assert [kernel.nodes for kernel in result.kernels] == [("mul",)]
    assert result.versions["numpy"]
    assert result.settings["threads"] == 1
    assert (result.settings["list"], result.settings["nan"]) == ("[1]", "nan"), "only scalars are kept as they are"
    assert decode_result(msgspec.json.encode(result)) == result
    assert result.flops == 32
    assert result.noise is not None
    assert len(result.noise.before_ns) == len(result.noise.after_ns) == 10
    assert processes_left() == []


def test_segfault_at_each_stage(evaluate_all: EvaluateAll) -> None:
    for stage, result in zip(STAGES, evaluate_all([("segfault", stage) for stage in STAGES]), strict=True):
        assert (result.verdict, result.stage) == ("crashed", stage)
        assert "SIGSEGV" in result.message


@pytest.mark.parametrize("stage", STAGES)
def test_hang(evaluate: Evaluate, stage: str) -> None:
    result = evaluate("hang", stage, short(stage))
    assert (result.verdict, result.stage) == ("timeout", stage)
    assert result.message == f"{stage} took more than 0.5 s"
    assert (result.timing is not None) == (stage == "check"), "what was measured before is kept"


FAILURES = [
    ("abort", "crashed", "compile", "SIGABRT"),
    ("exit", "crashed", "compile", "status 3"),
    ("exit0", "crashed", "compile", "without a result"),
    ("sysexit", "error", "compile", "SystemExit: 3"),
    ("interrupt", "error", "compile", "KeyboardInterrupt"),
    ("raise", "error", "compile", "ValueError: no such luck"),
    ("surrogate", "error", "compile", "ValueError: half a character ?"),
    ("unsupported", "unsupported", "lower", "no lowering for ai.onnx::Mul (node 'mul')"),
    ("device", "unsupported", "compile", "no such device"),
    ("bad_alloc", "out_of_memory", "compile", "std::bad_alloc"),
    ("memory_error", "out_of_memory", "compile", "MemoryError"),
]


def test_failures_while_compiling(evaluate_all: EvaluateAll) -> None:
    results = evaluate_all([(fault, "compile") for fault, *_ in FAILURES])
    for (fault, verdict, stage, words), result in zip(FAILURES, results, strict=True):
        assert (fault, result.verdict, result.stage) == (fault, verdict, stage)
        assert words in result.message


def test_loop_that_ignores_signals_is_ended(evaluate: Evaluate) -> None:
    assert evaluate("spin", "run", short("run")).verdict == "timeout"


@pytest.mark.parametrize("fault", ["allocate", "allocate_in_child"])
def test_allocation_without_end(evaluate: Evaluate, fault: str) -> None:
    limits = Limits(load_s=30, compile_s=30, memory_bytes=600 << 20)
    result = evaluate(fault, "compile", limits)
    assert (result.verdict, result.stage) == ("out_of_memory", "compile")
    assert "passed the limit 0.59 GiB" in result.message
    assert result.memory is not None
    assert result.memory.compile_peak > 600 << 20


def test_garbage_on_stdout_and_stderr_disturbs_nothing(evaluate: Evaluate) -> None:
    assert evaluate("garbage", "run").verdict == "ok"


def test_last_words_are_in_the_message(evaluate: Evaluate) -> None:
    result = evaluate("last_words", "compile")
    assert result.message == "ended with status 3 and without a result; it printed: \N{SNOWMAN} adieu"


def test_garbage_on_the_report_channel(evaluate: Evaluate) -> None:
    result = evaluate("descriptors", "run")
    assert result.verdict == "crashed"
    assert any("report channel" in note for note in result.notes)


def test_processes_left_behind_are_killed(evaluate: Evaluate, processes_left: Processes) -> None:
    result = evaluate("processes", "run")
    assert result.verdict == "ok"
    assert any("3 processes that the job left behind" in note for note in result.notes)
    assert processes_left() == []


def test_thread_left_behind(evaluate: Evaluate) -> None:
    assert evaluate("thread", "run").verdict == "ok"


def test_long_message_is_cut(evaluate: Evaluate) -> None:
    assert len(evaluate("long_message", "compile").message) == 2000


WRONG = [
    ("wrong", "asked is t = -3"),
    ("nan", "1 of 32 elements are NaN or infinite"),
    ("dtype", "dtype float64, the graph declares float32"),
    ("shape", "shape (8, 4), expected (4, 8)"),
    ("count", "has 2 outputs, the graph 1"),
    ("stale", "not close to the reference even at t = 0"),
    ("mutate", "the timed runs changed input 'x'"),
]


def test_wrong_results(evaluate_all: EvaluateAll) -> None:
    for (fault, words), result in zip(WRONG, evaluate_all([(fault, "") for fault, _ in WRONG]), strict=True):
        assert (fault, result.verdict, result.stage) == (fault, "wrong", "check")
        assert words in result.message
        assert result.timing is not None
        assert (result.level is None) == (fault != "wrong"), "a level is for errors of numbers alone"


def test_late_work_is_noted(evaluate: Evaluate) -> None:
    result = evaluate("lazy")
    assert any("is work put off" in note for note in result.notes)


def test_jitter_is_unstable_and_keeps_its_samples(evaluate: Evaluate) -> None:
    result = evaluate("jitter")
    assert (result.verdict, result.stage) == ("unstable", "run")
    assert result.timing is not None
    assert result.level is not None
    assert "95 % interval of the median" in result.message
    assert len(result.timing.samples_ns) == sum(block.samples for block in result.timing.blocks if not block.disturbed)


def test_clock_that_disagrees_with_the_parents_is_noted(evaluate: Evaluate) -> None:
    result = evaluate("clock", "compile")
    assert any("child's clock says" in note for note in result.notes)


def test_failed_profiling_is_a_note(evaluate_all: EvaluateAll) -> None:
    faults = [(fault, "profile") for fault in ("segfault", "raise", "hang", "kernel_nan", "kernel_calls")]
    for result in evaluate_all(faults, Limits(run_s=3.0)):
        assert result.verdict == "ok"
        assert result.kernels == ()
        assert len([note for note in result.notes if "unstable" not in note and "taken again" not in note]) == 1


def test_killed_server_is_replaced_and_its_orphans_die(
    make_job: MakeJob, limits: Limits, processes_left: Processes
) -> None:
    jobs = [make_job("a"), make_job("b", "kill_server", "compile"), make_job("c")]
    results = list(run(jobs, limits=limits))
    assert [result.verdict for result in results] == ["ok", "crashed", "ok"]
    assert "fork server of 'faulty:Faulty' ended with signal 9" in results[1].message
    assert processes_left() == []


def test_server_whose_job_cannot_be_killed_is_replaced(
    make_job: MakeJob, processes_left: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "_KILL_WAIT_S", 0.5)
    monkeypatch.setattr(Server, "kill_job", lambda _: None)
    results = list(run([make_job("a", "hang", "compile"), make_job("b")], limits=Limits(compile_s=2, load_s=10)))
    assert [(result.graph, result.verdict) for result in results] == [("a", "timeout"), ("b", "ok")]
    assert processes_left() == []


def test_late_messages_of_another_job_are_dropped(tmp_path: Path) -> None:
    ours, theirs = map(Channel, socket.socketpair())
    with subprocess.Popen(["sleep", "1000"]) as process:
        server = Server("null", process, ours, tmp_path / "server", "GRAPHNET_TEST=none")
        for _ in range(2):
            server.submit(Work(graph=b"", target=Target(), budget_s=1.0, tolerance=0))
        numbers = [message.job for message in theirs.receive() or [] if isinstance(message, Work)]
        for number in numbers:
            theirs.send(Report(job=number, message=f"of job {number}"))
            theirs.send(Exited(job=number, status=number))
        heard = [server.hear(5.0), server.hear(5.0), server.hear(0.0)]
        server.close()
        theirs.socket.close()
    assert numbers == [1, 2]
    assert heard == [Report(job=2, message="of job 2"), Exited(job=2, status=2), None]


def test_jobs_do_not_see_each_other(make_job: MakeJob, limits: Limits) -> None:
    results = list(run([make_job("a"), make_job("b")], limits=limits))
    assert [result.settings["state"] for result in results] == ["clean", "clean"]
    folders = [Path(str(result.settings["cwd"])) for result in results]
    assert folders[0] != folders[1]
    assert not folders[0].exists()
    assert not folders[0].parent.exists()


@pytest.mark.parametrize(
    ("compiler", "verdict", "words"),
    [
        ("faulty:CannotLoad", "error", "the framework does not load"),
        ("faulty:DiesInPreload", "crashed", "about to die"),
        ("faulty:Garrulous", "ok", ""),
        ("faulty:Absent", "error", "cannot be imported"),
        ("nowhere", "error", "unknown compiler 'nowhere'"),
    ],
)
def test_compilers_that_do_not_load(evaluate: Evaluate, compiler: str, verdict: str, words: str) -> None:
    result = evaluate(compiler=compiler)
    assert result.verdict == verdict
    assert words in result.message


def test_without_reference_there_is_no_verdict_ok(
    make_job: MakeJob, limits: Limits, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job("g")
    shutil.rmtree(own_cache)
    monkeypatch.setattr("graphnet.evaluate.oracle.COMPILER", "faulty:CannotLoad")
    (result,) = run([job], limits=limits)
    assert (result.verdict, result.stage) == ("error", "check")
    assert "no reference outputs" in result.message
    assert "does not load" in result.message
    assert result.timing is not None


def test_descendants_are_found() -> None:
    begin = time.monotonic()
    assert os.getpid() in procfs.descendants(os.getppid())
    assert time.monotonic() - begin < 1
