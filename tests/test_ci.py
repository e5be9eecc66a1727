"""`python -m graphnet.ci` and `graphnet baseline`: exit status, messages, files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from graphnet import ci, cli
from graphnet.analyze import regression
from graphnet.analyze.baseline import compact
from graphnet.compilers import Kernel
from graphnet.evaluate import runner
from graphnet.evaluate.plan import Job
from graphnet.evaluate.records import Block, Memory, OutputError, Result
from graphnet.evaluate.store import ResultSet, Store, export_json, load_set
from tests.analyze.gate_records import machine, of, record
from tests.analyze.test_live import turns
from tests.evaluate.test_live import graph, result

MACHINES = [machine(floor=0.001)]


@pytest.fixture(autouse=True)
def _no_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def status(monkeypatch: pytest.MonkeyPatch, main: object, *arguments: str | Path) -> int:
    assert callable(main)
    monkeypatch.setattr("sys.argv", ["graphnet", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def put(path: Path, *results: Result) -> Path:
    path.write_bytes(export_json(results, MACHINES))
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return put(tmp_path / "base.json", record(ms=4), record("b", 4))


def judge(monkeypatch: pytest.MonkeyPatch, base: Path, current: Path, *more: str | Path) -> int:
    return status(monkeypatch, ci.main, f"--baseline={base}", f"--current={current}", *more)


def test_exit_status_by_outcome(monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path) -> None:
    same = put(tmp_path / "same.json", record(ms=4), record("b", 4))
    slow = put(tmp_path / "slow.json", record(ms=4), record("b", 5))
    assert judge(monkeypatch, base, same) == 0
    assert judge(monkeypatch, base, slow) == 1
    assert judge(monkeypatch, base, slow, "--threshold=0.7") == 0


def test_gate_pybroker_pr_287_status_2_when_nothing_was_measured(
    monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(monkeypatch, base, put(tmp_path / "empty.json")) == 2
    assert judge(monkeypatch, base, put(tmp_path / "other.json", record("c", 4))) == 2
    assert "could not measure" in capsys.readouterr().out
    assert judge(monkeypatch, base, tmp_path / "absent.json") == 2
    assert judge(monkeypatch, base, tmp_path / "absent") == 2
    (tmp_path / "bad.json").write_text("{")
    assert judge(monkeypatch, tmp_path / "bad.json", base) == 2
    assert judge(monkeypatch, base, put(tmp_path / "unlike.json", record(ms=4, versions={"jax": "2"}))) == 2
    assert judge(monkeypatch, base, base, "--threshold=1.5") == 2
    assert judge(monkeypatch, base, base, "--threshold=none") == 2
    assert judge(monkeypatch, base, base, "--budget=0") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_of_our_own_is_no_regression(
    monkeypatch: pytest.MonkeyPatch, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(regression, "gate", broken)
    assert judge(monkeypatch, base, base) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_as_a_module(base: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphnet.ci", f"--baseline={base}", f"--current={base}", "--format=json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["outcome"] == 0


def test_report_in_a_file(monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path) -> None:
    for form in ("text", "markdown", "junit", "json"):
        assert judge(monkeypatch, base, base, f"--format={form}", "-o", tmp_path / "out" / form) == 0
    assert ElementTree.parse(tmp_path / "out" / "junit").getroot().get("tests") == "2"
    assert (tmp_path / "out" / "markdown").read_text().startswith("## ✅ Regression gate")
    assert json.loads((tmp_path / "out" / "json").read_text())["compared"] == 2
    assert (tmp_path / "out" / "text").read_text().startswith("passed: 2 passed; 2 compared")
    assert judge(monkeypatch, base, base, "-o", tmp_path / "base.json" / "x") == 2


def test_step_summary_is_added_to(monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path) -> None:
    place = tmp_path / "summary.md"
    place.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(place))
    judge(monkeypatch, base, base)
    judge(monkeypatch, base, tmp_path / "absent.json")
    lines = place.read_text().splitlines()
    assert lines[0] == "before"
    assert any(line.startswith("## ✅ Regression gate") for line in lines)
    assert any("could not measure" in line for line in lines), "an error is told there too"


def test_thresholds_of_a_file(
    monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = put(tmp_path / "slow.json", record(ms=4), record("b", 5))
    (tmp_path / "per.json").write_text('{"b": 0.7}')
    (tmp_path / "per.toml").write_text('"b/jax" = 0.7\n')
    (tmp_path / "unknown.toml").write_text("resnet = 0.7\n")
    for name in ("per.json", "per.toml"):
        assert judge(monkeypatch, base, slow, "--per-graph", tmp_path / name) == 0
    assert judge(monkeypatch, base, slow, "--per-graph", tmp_path / "unknown.toml") == 2
    assert "resnet" in capsys.readouterr().err
    for text in ("[]", '{"b": "x"}', '{"b": 2}', "{", "\xff"):
        (tmp_path / "bad.json").write_text(text, encoding="latin-1")
        assert judge(monkeypatch, base, slow, "--per-graph", tmp_path / "bad.json") == 2
    assert judge(monkeypatch, base, slow, "--per-graph", tmp_path / "none.json") == 2


def test_bare_medians(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], base: Path
) -> None:
    bare = tmp_path / "medians.json"
    bare.write_text(json.dumps({"format": "graphnet-medians/1", "medians": {"a": {"jax": 0.004}, "b": {"jax": 0.003}}}))
    assert judge(monkeypatch, bare, base) == 1
    told = capsys.readouterr().out
    assert "bare medians" in told
    assert "0.750" in told
    for medians in ({"a": {"jax": -1}}, {"a": {"jax": 0}}, {"a": 3}, {"a": {"jax": 1e300}}):
        bare.write_text(json.dumps({"format": "graphnet-medians/1", "medians": medians}))
        assert judge(monkeypatch, bare, base) == 2


def test_live_without_a_baseline_build_is_status_2(
    monkeypatch: pytest.MonkeyPatch, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(monkeypatch, base, base, "--live") == 2
    assert "--baseline-python" in capsys.readouterr().err
    assert judge(monkeypatch, base, base, "--baseline-compiler=torch") == 2
    assert "for --live" in capsys.readouterr().err


@pytest.mark.parametrize(("ratio", "expected"), [(1.0, 0), (0.8, 1)])
def test_live_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ratio: float, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = graph("g")
    found.save(tmp_path / "g.json")
    asked: list[Job] = []

    def run(jobs: list[Job], **_: object) -> list[Result]:
        asked.extend(jobs)
        return list(turns(ratio))

    monkeypatch.setattr(runner, "run", run)
    base, slow = (
        put(tmp_path / f"{ms}.json", result(found, environment="m1", timing=record(ms=ms).timing)) for ms in (4, 5)
    )
    options = ("--live", "--baseline-compiler=onnxruntime:basic", f"--graph={tmp_path / 'g.json'}", "--budget=3")
    assert judge(monkeypatch, base, slow, *options) == expected
    assert {(job.compiler, job.budget_s) for job in asked[::2]} == {("onnxruntime:basic", 3.0)}
    assert {(job.compiler, job.budget_s) for job in asked[1::2]} == {("onnxruntime", 3.0)}
    assert "measuring again: g on onnxruntime" in capsys.readouterr().out


def full(job_key: str = "", dims: dict[str, int] | None = None) -> Result:
    timing = record(ms=4).timing
    assert timing is not None
    disturbed = Block(round=0, samples=2, disturbed="steal", steal_ns=5)
    return record(
        ms=4, notes=("n",), kernels=(Kernel(name="k", calls=1, total_us=1.0),), memory=Memory(timeline=((0.0, 1),)),
        outputs=(OutputError(name="y", dtype="float32", level=-5),), level=-5, settings={"threads": 1},
        timing=msgspec.structs.replace(
            timing, blocks=(disturbed, *timing.blocks), disturbed_ns=(9, 9), warmup_ns=(7,), cpu_ns=(6,)
        ),
        job_key=job_key, dims=dims or {},
    )  # fmt: skip


def test_baseline_is_compact_and_judged_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Store(tmp_path / "results") as store:
        store.add_all([full(job_key="2"), full(job_key="1", dims={"batch": 2})], MACHINES)
    output = tmp_path / "new" / "v1.json"
    assert status(monkeypatch, cli.main, "baseline", tmp_path / "results", "-o", output) == 0
    first = output.read_bytes()
    assert status(monkeypatch, cli.main, "baseline", tmp_path / "results", "-o", output) == 0
    assert output.read_bytes() == first, "equal results, equal bytes"
    found = load_set(output)
    assert [item.key for item in found.environments] == ["m1"]
    assert found.environments[0].floors == MACHINES[0].floors
    for kept in found.results:
        whole = full()
        assert kept.timing is not None
        assert whole.timing is not None
        assert kept.timing.samples_ns == whole.timing.samples_ns
        assert [block.samples for block in kept.timing.blocks] == [5] * 20
        assert (kept.kernels, kept.memory, kept.notes, kept.outputs, kept.timing.warmup_ns) == ((), None, (), (), ())
        assert (kept.versions, kept.level, kept.settings) == ({"jax": "1.0"}, -5, {"threads": 1})
    assert judge(monkeypatch, output, tmp_path / "results") == 0
    assert judge(monkeypatch, output, output) == 0


def test_baseline_judges_as_the_results_themselves(tmp_path: Path) -> None:
    whole, now = of(full(), record("b", 4)), of(record(ms=5), record("b", 4))
    ratios = [
        [(row.status, row.change, row.q) for row in regression.gate(set_, now, 0.95).rows]
        for set_ in (whole, compact(whole))
    ]
    assert ratios[0] == ratios[1]


def test_baseline_of_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path / "empty").close()
    for where in ("empty", "absent"):
        assert status(monkeypatch, cli.main, "baseline", tmp_path / where, "-o", tmp_path / "b.json") == 2
        assert "no results" in capsys.readouterr().err
    assert not (tmp_path / "b.json").exists()
    put(tmp_path / "some.json", record(ms=4))
    assert status(monkeypatch, cli.main, "baseline", tmp_path / "some.json", "-o", tmp_path / "b.txt") == 2
    assert "ends in .json" in capsys.readouterr().err


def test_compact_drops_machines_that_no_result_is_from() -> None:
    found = compact(ResultSet(environments=(machine(), machine("m9")), results=(record(ms=4),)))
    assert [item.key for item in found.environments] == ["m1"]
