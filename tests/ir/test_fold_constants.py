"""Constants in the clean-up: equal ones become one, and only equal ones; arithmetic on them is exact."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import onnxruntime
import pytest
from onnx import parser

from graphnet.ir import fileio
from graphnet.ir.fold import clean
from graphnet.ir.graph import Constant, Dim, File, Fill, Graph, Input, Node, Normal, Value, Values, Weight
from graphnet.ir.onnx_bridge import from_onnx, to_onnx


def graph_of(text: str) -> Graph:
    return from_onnx(parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}'))


def run(graph: Graph, **inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(to_onnx(graph).SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def test_identical_constants_are_told_apart_by_value_dtype_and_shape() -> None:
    """onnxsim#265: x/2 + y*4; and constants that only look alike."""
    text = """g (float[2] x, float[2] y) => (float[2] z, float[2] t, int64[1] i) {
        two = Constant <value = float {2}> ()
        four = Constant <value = float {4}> ()
        again = Constant <value = float {2}> ()
        row = Constant <value = float[1] {2}> ()
        whole = Constant <value = int64[1] {2}> ()
        a = Div(x, two)
        b = Mul(y, four)
        z = Add(a, b)
        c = Mul(x, again)
        t = Mul(c, row)
        n = Shape(x)
        i = Mul(n, whole)
    }"""
    x, y = np.array([1, 3], np.float32), np.array([5, 7], np.float32)
    graph = graph_of(text)
    done = clean(graph)
    np.testing.assert_array_equal(run(done, x=x, y=y)[0], x / 2 + y * 4)
    floats = {(w.shape, w.fill) for w in done.weights.values() if w.dtype == "float32"}
    assert floats == {((), Values(data=(2.0,))), ((), Values(data=(4.0,))), ((1,), Values(data=(2.0,)))}
    assert len([w for w in done.weights.values() if w.dtype == "float32"]) == 3


def test_constant_float_arithmetic_folds_exactly() -> None:
    """pytorch#175966: arange(0, 11) * 1e9 in int64 does not wrap."""
    text = """g () => (int64[11] y) <int64 start = {0}, int64 stop = {11}, int64 step = {1}, int64 big = {1000000000}> {
        r = Range(start, stop, step)
        m = Mul(r, big)
        y = Identity(m)
    }"""
    done = clean(graph_of(text))
    np.testing.assert_array_equal(run(done)[0], np.arange(11) * 10**9)


def _quotients(first: Fill, second: Fill) -> Graph:
    """x / p and x / n, concatenated; the batch is symbolic, so that binding rewrites the graph."""
    return Graph(
        name="quotients", dims={"batch": Dim(min=1, max=4, default=2)}, outputs=("y",),
        inputs=(Input(name="x", dtype="float32", shape=("batch", 3)),),
        weights={
            "p": Weight(dtype="float32", shape=(3,), fill=first, role="constant"),
            "n": Weight(dtype="float32", shape=(3,), fill=second, role="constant"),
        },
        nodes=(
            Node(op="Div", name="dp", inputs=("x", "p"), outputs=("a",)),
            Node(op="Div", name="dn", inputs=("x", "n"), outputs=("b",)),
            Node(op="Concat", name="cat", inputs=("a", "b"), outputs=("y",), attrs={"axis": 1}),
        ),
        values={
            "a": Value(dtype="float32", shape=("batch", 3)), "b": Value(dtype="float32", shape=("batch", 3)),
            "y": Value(dtype="float32", shape=("batch", 6)),
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Constant(value=0.0), Constant(value=-0.0)),
        (Values(data=(0.0, 1.0, 2.0)), Values(data=(-0.0, 1.0, 2.0))),
        (Normal(std=1.0), Normal(std=1.0)),
    ],
    ids=["zero", "zeros", "random"],
)
def test_constants_that_only_look_alike_stay_apart(first: Fill, second: Fill) -> None:
    graph = _quotients(first, second)
    bound = graph.bind()
    for name in ("p", "n"):
        before, after = graph.materialize(5)[name], bound.materialize(5)[name]
        np.testing.assert_array_equal(before, after)
        np.testing.assert_array_equal(np.signbit(before), np.signbit(after))


def test_constants_of_a_sidecar_stay_apart(tmp_path: Path) -> None:
    graph = _quotients(File(), File())
    tensors = {"p": np.array([1, 2, 3], np.float32), "n": np.array([7, 8, 9], np.float32)}
    path = tmp_path / "quotients.json"
    fileio.save(graph, path, tensors)
    bound = Graph.load(path).bind()
    assert [node.inputs for node in bound.nodes[:2]] == [("x", "p"), ("x", "n")]
    for name, array in bound.materialize(0).items():
        np.testing.assert_array_equal(array, tensors[name])


def test_equal_constants_become_one() -> None:
    graph = _quotients(Constant(value=2.0), Constant(value=2.0))
    assert list(clean(graph).weights) == ["p"]
    other = msgspec.structs.replace(graph.weights["n"], fill=Constant(value=3.0))
    assert list(clean(msgspec.structs.replace(graph, weights={**graph.weights, "n": other})).weights) == ["p", "n"]
