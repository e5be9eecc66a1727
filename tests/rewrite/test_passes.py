"""Pass registry, and the horizontal matmul fusion checked on numbers."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet.errors import UsageError
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight
from graphnet.rewrite import passes
from graphnet.rewrite.fuse_matmul import fuse_parallel_matmuls
from graphnet.rewrite.passes import apply_passes, known_passes, register_pass


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_PASSES", dict(passes._PASSES))


def projections() -> Graph:
    """x @ A, x @ B' and (x @ C) reduced to one output; B is used through a Transpose that comes late."""
    weights = {
        name: Weight(dtype="float32", shape=shape, fill=Normal(std=0.5))
        for name, shape in {"A": (4, 3), "B": (5, 4), "C": (4, 2)}.items()
    }
    nodes = (
        Node(op="MatMul", name="ma", inputs=("x", "A"), outputs=("a",)),
        Node(op="Relu", name="ra", inputs=("a",), outputs=("ar",)),
        Node(op="Transpose", name="tb", inputs=("B",), outputs=("Bt",), attrs={"perm": (1, 0)}),
        Node(op="MatMul", name="mb", inputs=("x", "Bt"), outputs=("b",)),
        Node(op="MatMul", name="mc", inputs=("x", "C"), outputs=("c",)),
        Node(op="Concat", name="cat", inputs=("ar", "b", "c"), outputs=("y",), attrs={"axis": 2}),
    )
    shapes = {"a": (2, 7, 3), "ar": (2, 7, 3), "Bt": (4, 5), "b": (2, 7, 5), "c": (2, 7, 2), "y": (2, 7, 10)}
    return Graph(
        name="projections", inputs=(Input(name="x", dtype="float32", shape=(2, 7, 4)),), outputs=("y",),
        weights=weights, nodes=nodes, values={k: Value(dtype="float32", shape=v) for k, v in shapes.items()},
    )  # fmt: skip


def outputs(graph: Graph) -> list[np.ndarray]:
    x = np.random.default_rng(0).standard_normal((2, 7, 4)).astype(np.float32)
    found = ReferenceEvaluator(graph.to_onnx(graph.materialize(3))).run(None, {"x": x})
    return [np.asarray(array) for array in found]


def test_parallel_matmuls_become_one_and_compute_the_same() -> None:
    graph = projections()
    fused = apply_passes(graph, ["default", "fuse_parallel_matmuls"])
    assert sorted(node.op for node in fused.nodes) == ["Concat", "Concat", "MatMul", "Relu", "Split", "Transpose"]
    np.testing.assert_allclose(outputs(fused)[0], outputs(graph)[0], rtol=1e-6, atol=1e-6)
    assert fused.operator_count == 6


def test_unnamed_nodes_are_fused_too() -> None:
    graph = projections()
    unnamed = msgspec.structs.replace(graph, nodes=tuple(msgspec.structs.replace(n, name="") for n in graph.nodes))
    fused = fuse_parallel_matmuls(unnamed)
    fused.validate()
    np.testing.assert_allclose(outputs(fused)[0], outputs(graph)[0], rtol=1e-6, atol=1e-6)


def test_matmuls_of_different_inputs_stay() -> None:
    graph = projections()
    nodes = [node for node in graph.nodes if node.name in ("ma", "ra")]
    small = msgspec.structs.replace(graph, nodes=tuple(nodes), outputs=("ar",), weights={"A": graph.weights["A"]},
        values={k: v for k, v in graph.values.items() if k in ("a", "ar")})  # fmt: skip
    assert apply_passes(small, ["fuse_parallel_matmuls"]).nodes == small.nodes


def test_registered_passes_run_in_order() -> None:
    seen: list[str] = []

    @register_pass("first")
    def first(graph: Graph) -> Graph:
        seen.append("first")
        return graph

    def second(graph: Graph) -> Graph:
        seen.append("second")
        return graph

    register_pass("second", second)
    apply_passes(projections(), ["second", "default", "first"])
    assert seen == ["second", "first"]
    assert {"first", "second", "default"} <= set(known_passes())


def test_unknown_pass_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown pass 'nope'; known: default, .*custom_fusion"):
        apply_passes(projections(), ["default", "nope"])


def test_default_cannot_be_replaced() -> None:
    with pytest.raises(UsageError, match="own optimisations"):
        register_pass("default", lambda graph: graph)


def test_a_pass_that_changes_the_interface_is_refused() -> None:
    register_pass("half", lambda graph: msgspec.structs.replace(graph, outputs=("y", "ar")))
    with pytest.raises(UsageError, match="'half' changed the inputs or outputs"):
        apply_passes(projections(), ["half"])
