"""The example package, installed into a folder of its own, is a compiler like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a process that finds the installed example."""
    place = tmp_path_factory.mktemp("plugin")
    source = place / "source"
    subprocess.run(["cp", "-r", ROOT / "examples" / "compiler_plugin", source], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", place / "site", source],
        check=True,
    )  # fmt: skip
    return {**os.environ, "PYTHONPATH": str(place / "site"), "GRAPHNET_CACHE": str(place / "cache")}


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graphnet", *map(str, arguments)], env=environment, capture_output=True, text=True
    )


def test_it_is_listed_with_version_device_and_variant(environment: dict[str, str]) -> None:
    done = run(environment, "compilers", "numpy")
    assert done.returncode == 0, done.stderr
    [row] = [line for line in done.stdout.splitlines() if "numpy" in line]
    assert "onnx " in row
    assert "cpu" in row
    assert ":verbose" in row


def test_it_evaluates_a_graph(environment: dict[str, str], tmp_path: Path) -> None:
    graph = ROOT / "benchmark" / "matmul" / "batched_1024x16x16x16.json"
    done = run(
        environment,
        "evaluate",
        "--no-peaks",
        "--compiler",
        "numpy,numpy:verbose",
        "--graph",
        graph,
        "--budget",
        0.1,
        "-q",
        "-o",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "numpy" / "latency.csv").is_file()
    assert (tmp_path / "numpy-verbose" / "latency.csv").is_file()
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == 2
    assert all("numpy ok" in line or "verbose ok" in line or "unstable" in line for line in lines), lines


def test_its_own_refusals_are_records(environment: dict[str, str], tmp_path: Path) -> None:
    graph = ROOT / "benchmark" / "matmul" / "batched_1024x16x16x16.json"
    done = run(
        environment,
        "evaluate",
        "--no-peaks",
        "--compiler",
        "numpy",
        "--threads",
        2,
        "--graph",
        graph,
        "-q",
        "-o",
        tmp_path,
    )
    assert "error in load: numpy: runs on 1 thread, not 2" in done.stdout
