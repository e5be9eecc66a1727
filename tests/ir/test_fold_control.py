"""Clean-up of control flow: known conditions, nested graphs."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from graphnet.ir.fold import clean
from graphnet.ir.graph import Graph
from graphnet.ir.onnx_bridge import from_onnx, to_onnx


def graph_of(text: str, **weights: np.ndarray) -> Graph:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}')
    for name, array in weights.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return from_onnx(proto)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def run(graph: Graph, **inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(to_onnx(graph).SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def check_clean(graph: Graph, **inputs: np.ndarray) -> Graph:
    """Clean; the result is valid, idempotent, and computes the same."""
    done = clean(graph)
    done.validate()
    assert clean(done) == done
    assert done.outputs == graph.outputs
    for found, expected in zip(run(done, **inputs), run(graph, **inputs), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    return done


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


IF = """
g (float[2] x) => (float[2] y) <bool c = {COND}> {
    z = If (c) <
        then_branch = t () => (float[2] a) { k = Constant <value = float[2] {5, 6}> () a = Add(x, k) },
        else_branch = e () => (float[2] b) { b = Constant <value = float[2] {3, 4}> () }
    >
    y = Neg(z)
}
"""


@pytest.mark.parametrize(("condition", "operators"), [("1", ["Add", "Neg"]), ("0", ["Neg"])])
def test_if_with_known_condition_becomes_its_branch(condition: str, operators: list[str]) -> None:
    done = check_clean(graph_of(IF.replace("COND", condition)), x=X[0, 0, :2])
    assert ops(done) == operators


def test_if_with_known_condition_that_makes_an_output() -> None:
    text = IF.replace("COND", "0").replace("y = Neg(z)", "").replace("z = If", "y = If")
    done = check_clean(graph_of(text), x=X[0, 0, :2])
    assert ops(done) == ["Identity"]


def test_nested_graphs_are_cleaned_with_the_names_around_them() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) {
        h = Identity(x)
        y = If (c) <
            then_branch = t () => (float[2] a) { u = Identity(h) a = Neg(u) },
            else_branch = e () => (float[2] b) { v = Neg(h) b = Identity(v) }
        >
    }"""
    done = check_clean(graph_of(text), x=X[0, 0, :2], c=np.array(False))
    (node,) = done.nodes
    branches = [body.nodes for body in node.attrs.values()]  # type: ignore[union-attr]
    assert [[(n.op, n.inputs) for n in nodes] for nodes in branches] == [[("Neg", ("x",))], [("Neg", ("x",))]]


def test_a_body_with_names_of_its_sibling() -> None:
    """Bodies of different nodes may use the same names; inlining both keeps names unique."""
    branch = """then_branch = t () => (float[2] a) { k = Relu(x) a = Neg(k) },
        else_branch = e () => (float[2] b) { b = Neg(x) }"""
    text = f"""g (float[2] x) => (float[2] y) <bool c = {{1}}> {{
        p = If (c) < {branch} >
        q = If (c) < {branch} >
        y = Add(p, q)
    }}"""
    done = check_clean(graph_of(text), x=X[0, 0, :2])
    assert sorted(ops(done)) == ["Add", "Neg", "Neg", "Relu", "Relu"]
