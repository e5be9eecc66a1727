"""The fusion of the example: what it fuses, what it leaves, and that its numbers are those of the original."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet import evaluate_compiler
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Values, Weight
from graphnet.rewrite import passes

FILE = Path(__file__).parents[2] / "examples" / "custom_fusion.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(passes, "_PASSES", dict(passes._PASSES))
    spec = importlib.util.spec_from_file_location("custom_fusion", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rms_norm(exponent: float = 2.0, axis: int = -1) -> Graph:
    """w (x / sqrt(mean(x^2) + eps)) on 2x3x8."""

    def constant(dtype: str, *data: float) -> Weight:
        return Weight(dtype=dtype, shape=(len(data),), fill=Values(data=data), role="constant")  # type: ignore[arg-type]

    shapes = {
        "p": (2, 3, 8),
        "m": (2, 3, 1),
        "a": (2, 3, 1),
        "s": (2, 3, 1),
        "r": (2, 3, 1),
        "n": (2, 3, 8),
        "y": (2, 3, 8),
    }
    if axis == 1:
        shapes |= dict.fromkeys("masr", (2, 1, 8))
    return Graph(
        name="rms", inputs=(Input(name="x", dtype="float32", shape=(2, 3, 8)),), outputs=("y",),
        weights={
            "w": Weight(dtype="float32", shape=(8,), fill=Normal(mean=1.0, std=0.1), stream=0),
            "two": constant("float32", exponent), "axes": constant("int64", axis), "eps": constant("float32", 2.0**-10),
        },
        nodes=(
            Node(op="Pow", name="pow", inputs=("x", "two"), outputs=("p",)),
            Node(op="ReduceMean", name="mean", inputs=("p", "axes"), outputs=("m",)),
            Node(op="Add", name="add", inputs=("m", "eps"), outputs=("a",)),
            Node(op="Sqrt", name="sqrt", inputs=("a",), outputs=("s",)),
            Node(op="Reciprocal", name="inverse", inputs=("s",), outputs=("r",)),
            Node(op="Mul", name="normed", inputs=("x", "r"), outputs=("n",)),
            Node(op="Mul", name="scaled", inputs=("w", "n"), outputs=("y",)),
        ),
        values={name: Value(dtype="float32", shape=shape) for name, shape in shapes.items()},
    )  # fmt: skip


def test_the_chain_becomes_one_node_with_the_same_values(example: ModuleType) -> None:
    graph = rms_norm()
    fused = example.fuse_rms_norm(graph)
    fused.validate()
    assert [(node.op, node.inputs, node.attrs["epsilon"]) for node in fused.nodes] == [
        ("RMSNormalization", ("x", "w"), 2.0**-10)
    ]
    x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
    weights = graph.materialize(0)
    expected = weights["w"] * x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 2.0**-10)
    [found] = ReferenceEvaluator(fused.to_onnx(fused.materialize(0))).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


@pytest.mark.parametrize("graph", [rms_norm(exponent=3.0), rms_norm(axis=1)])
def test_what_only_looks_like_it_stays(example: ModuleType, graph: Graph) -> None:
    assert example.fuse_rms_norm(graph) == graph


def test_a_chain_that_others_look_into_stays(example: ModuleType) -> None:
    graph = msgspec.structs.replace(rms_norm(), outputs=("y", "r"))
    assert example.fuse_rms_norm(graph) == graph


@pytest.mark.usefixtures("own_cache")
def test_the_broken_one_is_refused_by_name_of_node(example: ModuleType) -> None:
    graph = rms_norm()
    good = evaluate_compiler("onnxruntime", [graph], passes=["default", "custom_fusion"], budget=0.02)
    bad = evaluate_compiler("onnxruntime", [graph], passes=["default", "broken_fusion"], budget=0.02)
    assert list(good["verdict"]) in (["ok"], ["unstable"])
    assert list(bad["verdict"]) == ["error"]
    assert (
        bad["message"]
        .iloc[0]
        .startswith(
            "pass 'broken_fusion' changes the results: value 'y' of node 'scaled.fused' (RMSNormalization) differs by"
        )
    )


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path))
