"""The command line, on small graphs: exit status, messages, files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet import cli, evaluator
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight


def mlp() -> Graph:
    """relu(x @ W) of a 4x8 input."""
    graph = Graph(
        name="mlp", graph_id="GN-2026-SY-900", domain="synthetic",
        inputs=(Input(name="x", dtype="float32", shape=(4, 8)),), outputs=("y",),
        weights={"W": Weight(dtype="float32", shape=(8, 16), fill=Normal(std=0.3))},
        nodes=(
            Node(op="MatMul", name="product", inputs=("x", "W"), outputs=("h",)),
            Node(op="Relu", name="rectified", inputs=("h",), outputs=("y",)),
        ),
        values={"h": Value(dtype="float32", shape=(4, 16)), "y": Value(dtype="float32", shape=(4, 16))},
    )  # fmt: skip
    return finalize(graph)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.json"
    mlp().save(path)
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Exit status of `graphnet ARGUMENTS`."""
    monkeypatch.setattr("sys.argv", ["graphnet", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def test_info_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path) -> None:
    assert run(monkeypatch, "info", graph_file, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["operator_distribution"] == {"matmul": 1, "relu": 1}
    assert told["flops"] == 2 * 4 * 8 * 16 + 4 * 16
    assert told["parameters"] == 128
    assert told["tier"] == "kernel"


def test_convert_to_onnx_and_back(monkeypatch: pytest.MonkeyPatch, graph_file: Path) -> None:
    model_file, again = graph_file.with_name("mlp.onnx"), graph_file.with_name("again.json.zst")
    assert run(monkeypatch, "convert", graph_file, "-o", model_file) == 0
    x = np.ones((4, 8), np.float32)
    [y] = ReferenceEvaluator(onnx.load(model_file)).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(y), np.maximum(x @ mlp().materialize(0)["W"], 0), rtol=1e-5)
    assert run(monkeypatch, "convert", model_file, "-o", again) == 0
    assert Graph.load(again).operator_distribution == {"matmul": 1, "relu": 1}


def test_verify_names_both_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    assert run(monkeypatch, "verify", graph_file) == 0
    lying = msgspec.structs.replace(mlp(), flops=5)
    lying.save(graph_file)
    capsys.readouterr()
    assert run(monkeypatch, "verify", graph_file) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "mlp.json" in said
    assert "5" in said
    assert str(mlp().flops) in said


@pytest.mark.parametrize("arguments", [["info", "absent.json"], ["score", "absent"], ["verify", "no-such-subset"]])
def test_absent_things_are_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("graphnet: ")
    assert said.count("\n") == 1
    assert arguments[1] in said


def test_unknown_compiler_lists_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    assert run(monkeypatch, "evaluate", "--compiler", "torch,tmv", "--graph", graph_file) == 2
    assert "unknown compiler 'tmv'; known: torch, inductor, jax, onnxruntime" in capsys.readouterr().err


def test_schema_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "schema") == 0
    assert "$defs" in json.loads(capsys.readouterr().out)


def test_evaluate_score_and_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    results = tmp_path / "results"
    options: list[str | Path] = [
        "--compiler",
        "torch,onnxruntime",
        "--graph",
        graph_file,
        "--budget",
        "0.2",
        "--output",
        results,
    ]
    assert run(monkeypatch, "evaluate", *options) == 0
    assert "[2/2] mlp onnxruntime ok" in capsys.readouterr().out
    with (results / "onnxruntime" / "latency.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {node for row in rows for node in row["nodes"].split()} == {"product", "rectified"}
    assert "run_peak=" in (results / "onnxruntime" / "memory_usage.log").read_text()
    assert run(monkeypatch, "evaluate", *options, "--resume") == 0
    assert "(resumed)" in capsys.readouterr().out
    assert run(monkeypatch, "score", results) == 0
    assert "onnxruntime" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "value"), [("true", True), ("3", 3), ("0.5", 0.5), ("fast", "fast")])
def test_option_values(text: str, value: object) -> None:
    assert evaluator._pairs([f"key={text}"], evaluator._value) == {"key": value}
