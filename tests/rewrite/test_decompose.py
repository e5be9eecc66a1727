"""Composite operators written out: names, bodies within bodies, nodes that are named, defaults of attributes."""

from __future__ import annotations

import numpy as np

from graphnet.compilers import Target, get
from graphnet.ir import tensors
from graphnet.ir.graph import Constant, Graph, Input, Node, Uniform, Value, Weight
from graphnet.rewrite.decompose import decompose, decomposed, origin


def normalised() -> Graph:
    """LayerNormalization of float32[2, 6] with its mean as a second output, then one without."""
    wide, row = Value(dtype="float32", shape=(2, 6)), (6,)
    return Graph(
        name="norms", inputs=(Input(name="x", dtype="float32", shape=(2, 6)),), outputs=("y", "mean"),
        weights={"scale": Weight(dtype="float32", shape=row, fill=Constant(value=2.0))},
        nodes=(
            Node(op="LayerNormalization", name="first", inputs=("x", "scale"), outputs=("a", "mean")),
            Node(op="LayerNormalization", name="second", inputs=("a", "scale"), outputs=("y",)),
        ),
        values={"a": wide, "y": wide, "mean": Value(dtype="float32", shape=(2, 1))},
    )  # fmt: skip


def loss() -> Graph:
    """SoftmaxCrossEntropyLoss of float32[3, 5], whose body is a NegativeLogLikelihoodLoss."""
    return Graph(
        name="loss", outputs=("y",), values={"y": Value(dtype="float32", shape=())},
        inputs=(
            Input(name="x", dtype="float32", shape=(3, 5)),
            Input(name="t", dtype="int64", shape=(3,), fill=Uniform(low=0, high=4)),
        ),
        nodes=(Node(op="SoftmaxCrossEntropyLoss", name="sce", inputs=("x", "t"), outputs=("y",)),),
    )  # fmt: skip


def outputs(graph: Graph) -> list[np.ndarray]:
    compiler, target = get("reference"), Target()
    compiler.configure(target)
    program = compiler.compile(graph, tensors.weights(graph, 0), target)
    program.bind(tensors.inputs(graph, 0))
    program.run()
    return list(program.outputs())


def assert_same(written: Graph, graph: Graph) -> None:
    for found, expected in zip(outputs(written), outputs(graph), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_named_node_is_written_out_and_its_like_stays() -> None:
    graph = normalised()
    written = decompose(graph, (), named=("first",))
    assert {node.name for node in written.nodes if node.op == "LayerNormalization"} == {"second"}
    assert {origin(node.name) for node in written.nodes} == {"first", "second"}
    assert decomposed(graph, (), ("first",)) == "LayerNormalization"
    assert decomposed(graph, ("Gelu",)) == ""
    assert_same(written, graph)


def test_a_body_that_has_another_composite_is_written_out_whole() -> None:
    graph = loss()
    losses = {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}
    outer = decompose(graph, {"SoftmaxCrossEntropyLoss"})
    assert "NegativeLogLikelihoodLoss" in {node.op for node in outer.nodes}
    written = decompose(graph, losses)
    assert not losses & {node.op for node in written.nodes}
    assert {origin(node.name) for node in written.nodes} == {"sce"}
    assert_same(written, graph)


def test_attributes_that_are_left_out_have_their_defaults() -> None:
    """The function body of HannWindow refers to `output_datatype` and `periodic`."""
    size = Weight(dtype="int64", shape=(), fill=Constant(value=8), role="constant")
    graph = Graph(
        name="window", outputs=("y",), weights={"size": size}, values={"y": Value(dtype="float32", shape=(8,))},
        nodes=(Node(op="HannWindow", name="hann", inputs=("size",), outputs=("y",)),),
    )  # fmt: skip
    written = decompose(graph, ("HannWindow",))
    assert "HannWindow" not in {node.op for node in written.nodes}
    np.testing.assert_allclose(outputs(written)[0], 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(8) / 8), atol=1e-6)
