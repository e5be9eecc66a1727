"""Runs the steps of a composite GitHub action here: `python tests/ci/local_runner.py action.yml baseline=b.json ...`.

As much of GitHub's runner as our action uses; an expression that it does not know is refused, never left empty.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_COMPARISON = re.compile(r"(\S+)\s*(==|!=)\s*'((?:[^']|'')*)'")
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}


class RunnerError(Exception):
    """The action cannot be run as it is written."""


class Done(NamedTuple):
    """What a run left."""

    status: int
    """Of the first step that failed, else 0."""
    steps: tuple[str, ...]
    """Names of the steps that ran."""
    outputs: dict[str, str]
    summary: str
    log: str


def run(action: Path, inputs: Mapping[str, str], folder: Path, env: Mapping[str, str] | None = None) -> Done:
    """Run a composite action with `folder` as its working folder. Raises RunnerError."""
    spec = yaml.safe_load(action.read_text())
    if spec["runs"]["using"] != "composite":
        raise RunnerError(f"{action} is no composite action")
    values = {f"inputs.{name}": value for name, value in _inputs(spec.get("inputs", {}), inputs).items()}
    values["github.action_path"] = str(action.resolve().parent)
    status, names, log = 0, [], ""
    with tempfile.TemporaryDirectory() as temporary:
        summary = Path(temporary) / "summary"
        summary.touch()
        for number, step in enumerate(spec["runs"]["steps"]):
            _check_step(step)
            if status or not condition(step.get("if", "true"), values):
                continue
            names.append(step["name"])
            output = Path(temporary) / f"output-{number}"
            output.touch()
            files = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
            status, told = _step(step, values, folder, {**os.environ, **(env or {}), **files}, Path(temporary))
            log += told
            for line in output.read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step['id']}.outputs.{name}"] = value
        found = {name: substituted(item["value"], values, missing="") for name, item in spec.get("outputs", {}).items()}
        return Done(status, tuple(names), found, summary.read_text(), log)


def _inputs(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    for name in given:
        if name not in declared:
            raise RunnerError(f"the action has no input '{name}'")
    for name, item in declared.items():
        if item.get("required") and name not in given:
            raise RunnerError(f"input '{name}' is required")
    return {name: given.get(name, str(item.get("default", ""))) for name, item in declared.items()}


def _check_step(step: Mapping[str, Any]) -> None:
    unknown = set(step) - {"name", "id", "if", "shell", "env", "run"}
    if unknown or step.get("shell") not in SHELLS or "run" not in step:
        raise RunnerError(f"step '{step.get('name')}': not a step with `run` and a known shell: {sorted(unknown)}")


def _step(
    step: Mapping[str, Any], values: Mapping[str, str], folder: Path, env: dict[str, str], temporary: Path
) -> tuple[int, str]:  # fmt: skip
    script = temporary / "script.sh"
    script.write_text(substituted(step["run"], values))
    env |= {name: substituted(str(text), values) for name, text in step.get("env", {}).items()}
    done = subprocess.run(
        [*SHELLS[step["shell"]], str(script)], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def substituted(text: str, values: Mapping[str, str], missing: str | None = None) -> str:
    """`text` with the values of its expressions; those of steps that did not run are `missing`. Raises RunnerError."""

    def value(found: re.Match[str]) -> str:
        name = found[1].strip()
        if name in values:
            return values[name]
        if missing is not None and name.startswith("steps."):
            return missing
        raise RunnerError(f"unknown expression '{name}'")

    return _EXPRESSION.sub(value, text)


def condition(text: str, values: Mapping[str, str]) -> bool:
    """Whether a step runs: `true`, or a value that is compared with a text. Raises RunnerError."""
    whole = _EXPRESSION.fullmatch(text.strip())
    inner = (whole[1] if whole else text).strip()
    if inner == "true":
        return True
    found = _COMPARISON.fullmatch(inner)
    if found is None or found[1] not in values:
        raise RunnerError(f"unknown expression '{inner}'")
    return (values[found[1]] == found[3].replace("''", "'")) == (found[2] == "==")


if __name__ == "__main__":
    done = run(Path(sys.argv[1]), dict(text.split("=", 1) for text in sys.argv[2:]), Path.cwd())
    print(done.log, done.summary, done.outputs, sep="\n")
    sys.exit(done.status)
