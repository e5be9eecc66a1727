"""Clean-up: what is folded and dropped, what must stay, and that the function stays the same."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from graphnet.errors import GraphFormatError
from graphnet.ir import tensors
from graphnet.ir.fold import clean
from graphnet.ir.graph import Constant, Dim, Graph, Input, Node, Normal, Value, Values, Weight
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


@pytest.mark.parametrize(
    "no_op",
    [
        "Identity(x)",
        "Cast <to = 1> (x)",
        "CastLike(x, other)",
        "Dropout(x)",
        "Dropout(x, ratio)",
        "Dropout(x, ratio, off)",
        "Reshape(x, same)",
        "Reshape(x, copied)",
        "Expand(x, same)",
        "Expand(x, one)",
        "Transpose <perm = [0, 1, 2]> (x)",
        "Concat <axis = 1> (x)",
        "Sum(x)",
        "Max(x)",
        "Slice(x, zero, huge, axis)",
        "Slice(x, zero, three, axis, one)",
        "Pad(x, nothing)",
        "Flatten <axis = 1> (x)",
    ],
)
def test_no_ops_go(no_op: str) -> None:
    rank = "float[2, 12]" if "Flatten" in no_op else "float[2, 3, 4]"
    text = f"""g ({rank} x, float other) => ({rank} y)
    <float ratio = {{0.5}}, bool off = {{0}}, int64[3] same = {{2, 3, 4}}, int64[3] copied = {{0, 0, -1}},
     int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] huge = {{9223372036854775807}}, int64[1] three = {{3}},
     int64[1] axis = {{1}}, int64[6] nothing = {{0, 0, 0, 0, 0, 0}}> {{
        h = Neg(x)
        k = {no_op.replace("(x", "(h")}
        y = Neg(k)
    }}"""
    x = X.reshape(2, 12) if "Flatten" in no_op else X
    done = check_clean(graph_of(text), x=x, other=np.array(0, np.float32))
    assert ops(done) == ["Neg", "Neg"]
    assert not done.weights


@pytest.mark.parametrize(
    "operator",
    [
        "Cast <to = 10> (x)",
        "Dropout(x, ratio, on)",
        "Reshape(x, other)",
        "Transpose <perm = [0, 2, 1]> (x)",
        "Slice(x, one, huge, axis)",
        "Slice(x, zero, huge, axis, two)",
        "Slice(x, minus, least, axis, minus)",
        "Expand(x, more)",
        "Mul(x, unit)",
        "Add(x, nought)",
        "Relu(x)",
    ],
)
def test_what_does_something_stays(operator: str) -> None:
    text = f"""g (float[2, 3, 4] x) => (float[a, b, c] y)
    <float ratio = {{0.5}}, bool on = {{1}}, int64[3] other = {{3, 2, 4}}, int64[1] one = {{1}}, int64[1] zero = {{0}},
     int64[1] huge = {{9223372036854775807}}, int64[1] two = {{2}}, int64[1] axis = {{1}}, int64[1] minus = {{-1}},
     int64[1] least = {{-9223372036854775808}}, int64[4] more = {{2, 1, 1, 1}}, float unit = {{1}},
     float nought = {{0}}> {{
        h = {operator}
        y = Identity(h)
    }}"""
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}')
    proto.graph.output[0].ClearField("type")
    graph = from_onnx(proto)
    assert ops(clean(graph)) == [operator.split("(")[0].split(" ")[0]]


def test_shape_arithmetic_folds() -> None:
    """tvm#20176, tvm#19971: Shape, Gather, Slice, Unsqueeze, Concat feeding a Reshape."""
    text = """g (float[2, 3, 4] x) => (float[6, 4] y) <int64 zero = {0}, int64[1] first = {0}, int64[1] one = {1},
        int64[1] two = {2}, int64[1] three = {3}> {
        s = Shape(x)
        b = Gather <axis = 0> (s, zero)
        c = Slice(s, one, two, first)
        u = Unsqueeze(b, first)
        m = Mul(u, c)
        d = Slice(s, two, three, first)
        target = Concat <axis = 0> (m, d)
        y = Reshape(x, target)
    }"""
    done = check_clean(graph_of(text), x=X)
    assert ops(done) == ["Reshape"]
    assert [w.fill for w in done.weights.values()] == [Values(data=(6, 4))]


HEADS = """
g (float[batch, 5, 768] x) => (float[p, q, r] y) <int64 zero = {0}, int64 one = {1}, int64[1] axis = {0},
    int64[1] heads = {12}, int64[1] width = {64}, int64[1] rest = {-1}> {
    s = Shape(x)
    b = Gather <axis = 0> (s, zero)
    q1 = Gather <axis = 0> (s, one)
    b1 = Unsqueeze(b, axis)
    l1 = Unsqueeze(q1, axis)
    t = Concat <axis = 0> (b1, l1, heads, width)
    four = Reshape(x, t)
    moved = Transpose <perm = [0, 2, 1, 3]> (four)
    joint = Mul(b1, heads)
    t2 = Concat <axis = 0> (joint, rest, width)
    y = Reshape(moved, t2)
}
"""


def test_symbolic_reshapes_hold_for_every_batch() -> None:
    graph = graph_of(HEADS)
    assert graph.values["y"].shape == ("12*batch", 5, 64)
    done = clean(graph)
    done.validate()
    assert ops(done) == ["Reshape", "Transpose", "Reshape"]
    targets = [done.weights[node.inputs[1]].fill for node in done.nodes if node.op == "Reshape"]
    assert targets == [Values(data=(0, 5, 12, 64)), Values(data=(-1, 5, 64))]
    for batch in (1, 2, 7):
        x = np.arange(batch * 5 * 768, dtype=np.float32).reshape(batch, 5, 768)
        np.testing.assert_array_equal(run(done, x=x)[0], run(graph, x=x)[0])


def test_two_unknown_sizes_leave_the_arithmetic_in_place() -> None:
    text = """g (float[batch, seq, 8] x, float[other, 2] z) => (float[p, q, r] y) <int64[1] two = {2}> {
        s = Shape <start = 0, end = 1> (x)
        t = Shape <start = 1, end = 2> (x)
        u = Mul(s, two)
        half = Mul(t, two)
        target = Concat <axis = 0> (u, half, two)
        y = Reshape(x, target)
    }"""
    graph = graph_of(text)
    done = clean(graph)
    done.validate()
    assert done.values["y"].shape == ("2*batch", "2*seq", 2)
    assert "Concat" in ops(done)
    assert ops(done.bind(batch=3, seq=4, other=1)) == ["Reshape"]


def test_slices_and_expands_to_the_own_size_go() -> None:
    text = """g (float[batch, seq] x) => (float[batch, seq] y) <int64[1] zero = {0}, int64[1] one = {1}> {
        s = Shape(x)
        length = Shape <start = 1> (x)
        h = Slice(x, zero, length, one)
        e = Expand(h, s)
        y = Relu(e)
    }"""
    done = check_clean(graph_of(text), x=X[0])
    assert ops(done) == ["Relu"]


def test_parameters_are_never_read() -> None:
    text = "g (float[2] x) => (float[2] y) <float[2] w = {0, 0}, float[2] b = {1, 2}> { s = Mul(w, b) y = Add(x, s) }"
    graph = graph_of(text)
    assert ops(clean(graph)) == ["Mul", "Add"]
    literal = {
        name: Weight(dtype=w.dtype, shape=w.shape, fill=w.fill, role="constant") for name, w in graph.weights.items()
    }
    assert ops(clean(_with_weights(graph, literal))) == ["Add"]
    buffers = {
        name: Weight(dtype=w.dtype, shape=w.shape, fill=w.fill, role="buffer") for name, w in graph.weights.items()
    }
    assert ops(clean(_with_weights(graph, buffers))) == ["Mul", "Add"]


def _with_weights(graph: Graph, weights: dict[str, Weight]) -> Graph:
    return Graph(
        name=graph.name,
        inputs=graph.inputs,
        outputs=graph.outputs,
        weights=weights,
        nodes=graph.nodes,
        values=graph.values,
    )


def test_only_the_exporters_zero_bias_goes() -> None:
    text = """g (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y) {
        zero = Constant <value = int64 {0}> ()
        like = CastLike(zero, x)
        s = Shape <end = 1> (w)
        bias = Expand(like, s)
        y = Conv(x, w, bias)
    }"""
    w = np.ones((3, 2, 1, 1), np.float32)
    done = check_clean(graph_of(text, w=w), x=np.ones((1, 2, 4, 4), np.float32))
    assert [(node.op, node.inputs) for node in done.nodes] == [("Conv", ("x", "w"))]
    trained = graph_of(
        "g (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y) { y = Conv(x, w, b) }", w=w, b=np.zeros(3, np.float32)
    )
    assert clean(trained).nodes[0].inputs == ("x", "w", "b"), "a parameter that happens to be zero is a parameter"


def test_nothing_is_fused() -> None:
    text = """g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y)
    <float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}> {
        h = Conv(x, w)
        n = BatchNormalization(h, s, b, m, v)
        y = Relu(n)
    }"""
    graph = graph_of(text, w=np.ones((2, 2, 1, 1), np.float32))
    assert ops(clean(graph)) == ["Conv", "BatchNormalization", "Relu"]


def test_attributes_at_their_default_go() -> None:
    text = "g (float[2, 3] x) => (float[2, 4] y) { y = Gemm <alpha = 1.0, beta = 1.0, transB = 0> (x, w) }"
    assert clean(graph_of(text, w=np.ones((3, 4), np.float32))).nodes[0].attrs == {}


def test_dead_nodes_and_unused_weights_go() -> None:
    text = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] unused = {3, 4}> {
        dead = Mul(x, unused)
        worse = Relu(dead)
        y = Mul(x, w)
    }"""
    done = clean(graph_of(text))
    assert (ops(done), list(done.weights), list(done.values)) == (["Mul"], ["w"], ["y"])


def test_random_weights_keep_their_data() -> None:
    text = """g (float[2] x) => (float[2] y) { dead = Mul(x, unused) y = Mul(x, w) }"""
    graph = graph_of(text, unused=np.ones(2, np.float32), w=np.ones(2, np.float32))
    graph = _with_weights(graph, {name: Weight(dtype="float32", shape=(2,), fill=Normal()) for name in graph.weights})
    np.testing.assert_array_equal(clean(graph).materialize(3)["w"], graph.materialize(3)["w"])


def test_an_output_keeps_its_name() -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z, float[2] k) <float[2] c = {1, 2}> {
        h = Neg(x)
        y = Identity(h)
        z = Identity(x)
        k = Identity(c)
    }"""
    done = check_clean(graph_of(text), x=X[0, 0, :2])
    assert [(node.op, node.outputs) for node in done.nodes] == [
        ("Neg", ("y",)),
        ("Identity", ("z",)),
        ("Identity", ("k",)),
    ]


def test_a_value_that_is_output_and_input() -> None:
    text = "g (float[2] x) => (float[2] h, float[2] y) { h = Neg(x) i = Identity(h) y = Relu(i) }"
    done = check_clean(graph_of(text), x=X[0, 0, :2])
    assert [(node.op, node.inputs) for node in done.nodes] == [("Neg", ("x",)), ("Relu", ("h",))]


def test_large_results_are_not_folded() -> None:
    text = """g () => (float[300, 300] y) <float one = {1}, int64[2] size = {300, 300}> {
        c = Identity(one)
        e = Expand(c, size)
        y = Exp(e)
    }"""
    graph = graph_of(text)
    literal = {
        name: Weight(dtype=w.dtype, shape=w.shape, fill=w.fill, role="constant") for name, w in graph.weights.items()
    }
    done = clean(_with_weights(graph, literal))
    assert ops(done) == ["Exp"]
    assert [w.fill for w in done.weights.values()] == [Constant(value=1.0)]


def test_random_operators_are_not_constants() -> None:
    text = "g () => (float[2] y) { r = RandomNormal <shape = [2]> () y = Neg(r) }"
    assert ops(clean(graph_of(text))) == ["RandomNormal", "Neg"]


def test_an_invalid_graph_names_the_node() -> None:
    node = Node(op="Add", name="n1", inputs=("x", "nothing"), outputs=("y",))
    item = Input(name="x", dtype="float32", shape=(2,))
    graph = Graph(
        name="g", inputs=(item,), outputs=("y",), nodes=(node,), values={"y": Value(dtype="float32", shape=(2,))}
    )
    with pytest.raises(GraphFormatError, match="'nothing' is not defined before node 'n1'"):
        clean(graph)


def chain(count: int) -> Graph:
    """Blocks of Shape, Gather, Concat, Reshape, Add: `count` nodes."""
    nodes: list[Node] = []
    values: dict[str, Value] = {}
    last = "x"
    hidden = Value(dtype="float32", shape=("batch", 16))
    vector = Value(dtype="int64", shape=(1,))
    for i in range(count // 4):
        steps = [
            ("Shape", (last,), f"s{i}", {"start": 0, "end": 1}, vector),
            ("Concat", (f"s{i}", "rest"), f"t{i}", {"axis": 0}, Value(dtype="int64", shape=(2,))),
            ("Reshape", (last, f"t{i}"), f"r{i}", {}, hidden),
            ("Relu", (f"r{i}",), f"v{i}", {}, hidden),
        ]
        for op, inputs, output, attrs, value in steps:
            nodes.append(Node(op=op, name=f"{op}{i}", inputs=inputs, outputs=(output,), attrs=attrs))  # type: ignore[arg-type]
            values[output] = value
        last = f"v{i}"
    return Graph(
        name="chain",
        dims={"batch": Dim(min=1, max=8, default=2)},
        inputs=(Input(name="x", dtype="float32", shape=("batch", 16)),),
        outputs=(last,),
        weights={"rest": Weight(dtype="int64", shape=(1,), fill=Values(data=(-1,)), role="constant")},
        nodes=tuple(nodes),
        values=values,
    )


def test_time_is_linear() -> None:
    def seconds(graph: Graph) -> float:
        start = time.process_time()
        assert set(ops(clean(graph))) == {"Relu"}
        return time.process_time() - start

    seconds(chain(400))
    small, large = seconds(chain(2_000)), seconds(chain(20_000))
    assert large < 20 * small + 1.0


def test_cleaned_files_load_again(tmp_path: Path) -> None:
    graph = clean(graph_of(HEADS))
    graph.save(tmp_path / "g.json")
    assert Graph.load(tmp_path / "g.json") == graph
    proto = to_onnx(graph)
    onnx.checker.check_model(proto, full_check=True)
    assert tensors.inputs(graph)["x"].shape == (1, 5, 768)
