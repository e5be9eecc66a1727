"""The composite action, its steps run here by a runner of our own, and the example of a workflow."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from graphnet.evaluate.store import export_json
from tests.analyze.gate_records import machine, record
from tests.ci.local_runner import Done, RunnerError, condition, run, substituted

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
ENV = {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    machines = [machine(floor=0.001)]
    for name, ms in (("base", 4.0), ("same", 4.0), ("slow", 5.0)):
        (tmp_path / f"{name}.json").write_bytes(export_json([record(ms=ms)], machines))
    return tmp_path


def act(folder: Path, **inputs: str) -> Done:
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return run(ACTION, {"install": "false", "python": sys.executable, **named}, folder, ENV)


@pytest.mark.parametrize(
    ("current", "status", "words"),
    [
        ("same.json", 0, "Regression gate: passed"),
        ("slow.json", 1, "Regression gate: regression"),
        ("absent.json", 2, "could not measure"),
    ],
)
def test_status_summary_and_output(sets: Path, current: str, status: int, words: str) -> None:
    done = act(sets, baseline="base.json", current=current)
    assert (done.status, done.outputs, done.steps) == (status, {"outcome": str(status)}, ("Gate",))
    assert words in done.summary
    assert (sets / "graphnet-gate.xml").exists() == (status < 2)


def test_inputs_reach_the_gate(sets: Path) -> None:
    (sets / "per.json").write_text(json.dumps({"a": 0.7}))
    done = act(sets, baseline="base.json", current="slow.json", per_graph="per.json", format="json", output="g.json")
    assert done.status == 0
    assert json.loads((sets / "g.json").read_text())["rows"][0]["threshold"] == 0.7
    done = act(sets, baseline="base.json", current="slow.json", live="true")
    assert (done.status, "--live needs the baseline build" in done.log) == (2, True)
    assert act(sets, baseline="base.json", current="slow.json", threshold="0.5").status == 0


def test_inputs_are_never_read_as_shell(sets: Path) -> None:
    done = act(sets, baseline='"; touch pwned; "$(touch pwned)', current="same.json")
    assert done.status == 2
    assert not (sets / "pwned").exists()


def test_install_and_evaluate_come_first_where_they_are_asked_for(sets: Path) -> None:
    """By a stand-in for the interpreter that writes down what it is called with."""
    stand_in = sets / "python"
    stand_in.write_text('#!/bin/bash\nprintf "%s\\n" "$*" >> calls\n')
    stand_in.chmod(0o755)
    done = act(
        sets, python=str(stand_in), install="true", extras="torch,jax", baseline="base.json",
        graphs="vision\nmy graphs", compilers="torch,jax", current="new", live="true",
        baseline_compiler="jax=torch\n", budget="2",
    )  # fmt: skip
    assert (done.status, done.steps) == (0, ("Install GraphNet", "Evaluate", "Gate"))
    installed, evaluated, gated = (sets / "calls").read_text().splitlines()
    assert installed == f"-m pip install {ROOT}[torch,jax]"
    assert evaluated == (
        "-m graphnet.evaluator --compiler=torch,jax --graph=vision --graph=my graphs --output=new --budget=2"
        " --threads=1 --no-profile --no-peaks --quiet"
    )
    assert gated == (
        "-m graphnet.ci --baseline=base.json --current=new --threshold=0.95 --format=junit --output=graphnet-gate.xml"
        " --live --budget=2 --baseline-compiler=jax=torch --graph=vision --graph=my graphs"
    )


def test_a_failed_evaluation_ends_the_action(sets: Path) -> None:
    done = act(sets, baseline="base.json", graphs="no-such-folder", compilers="null")
    assert (done.status, done.steps) == (2, ("Evaluate",))
    assert "no graph at" in done.log


def test_unknown_expressions_are_refused() -> None:
    for text in ("${{ secrets.TOKEN }}", "${{ inputs.absent }}", "${{ github.token }}", "${{ 1 + 1 }}"):
        with pytest.raises(RunnerError, match="unknown expression"):
            substituted(text, {"inputs.here": "x"})
    for text in ("${{ always() }}", "inputs.absent == 'x'", "${{ inputs.here == 'x' && true }}"):
        with pytest.raises(RunnerError, match="unknown expression"):
            condition(text, {"inputs.here": "x"})
    assert substituted("a ${{ inputs.here }} b", {"inputs.here": "x"}) == "a x b"
    assert condition("${{ inputs.here == 'x' }}", {"inputs.here": "x"})
    assert not condition("inputs.here != 'x'", {"inputs.here": "x"})


def test_unknown_and_absent_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="no input 'basline'"):
        run(ACTION, {"basline": "x"}, tmp_path)
    with pytest.raises(RunnerError, match="'baseline' is required"):
        run(ACTION, {}, tmp_path)


def test_gate_fast_mail_parser_pr_128_the_example_measures_base_and_head_in_one_job() -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "gate_workflow.yml").read_text())
    (job,) = workflow["jobs"].values()
    (gate,) = [step for step in job["steps"] if step.get("id") == "gate"]
    declared = yaml.safe_load(ACTION.read_text())["inputs"]
    assert set(gate["with"]) <= set(declared)
    assert all(isinstance(value, str) for value in gate["with"].values())
    assert gate["with"]["live"] == "true", "suspects are measured again, both builds taking turns"
    scripts = "\n".join(step.get("run", "") for step in job["steps"])
    assert "env-base/bin/graphnet evaluate" in scripts
    assert "graphnet baseline base-results --output base.json" in scripts
