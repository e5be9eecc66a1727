"""Binding: legal sizes only, static shapes equal to a real run, metadata and data refreshed."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

from graphnet.errors import GraphBindError
from graphnet.ir import finalize, tensors
from graphnet.ir.fold import clean
from graphnet.ir.graph import Body, Dim, Graph, Input, Node, Uniform, Value
from graphnet.ir.onnx_bridge import from_onnx, to_onnx

TEXT = """<ir_version: 10, opset_import: ["" : 23]>
g (float[batch, seq, 8] x, int64[batch, seq] ids) => (float[p, q, r] y, float[s, t, u] masked)
<int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[1] two = {2}, int64[1] four = {4}> {
    shape = Shape(x)
    b = Gather <axis = 0> (shape, zero)
    l = Gather <axis = 0> (shape, one)
    b1 = Unsqueeze(b, axis)
    l1 = Unsqueeze(l, axis)
    double = Mul(l1, two)
    target = Concat <axis = 0> (b1, double, four)
    y = Reshape(x, target)
    steps = Range(zero, l, one)
    before = Less(ids, steps)
    mask = Cast <to = 1> (before)
    column = Unsqueeze(mask, two)
    scaled = Mul(x, w)
    masked = Mul(scaled, column)
}"""


@pytest.fixture
def dynamic() -> Graph:
    proto = parser.parse_model(TEXT)
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(8, dtype=np.float32), "w"))
    dims = {"batch": Dim(min=1, max=64, default=1), "seq": Dim(min=2, max=32, default=16)}
    graph = from_onnx(proto, dims=dims, fills={"ids": Uniform(low=0, high="seq - 1")})
    return finalize.finalize(clean(graph))


def outputs(graph: Graph, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(to_onnx(graph).SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


@pytest.mark.parametrize(("batch", "seq"), [(1, 2), (1, 32), (64, 2), (3, 5)])
def test_both_ends_of_the_range_and_between(dynamic: Graph, batch: int, seq: int) -> None:
    bound = dynamic.bind(batch=batch, seq=seq)
    bound.validate()
    assert bound.dims == {}
    assert bound.input_shapes == ((batch, seq, 8), (batch, seq))
    assert {name: bound.type_of(name).shape for name in bound.outputs} == {
        "y": (batch, 2 * seq, 4),
        "masked": (batch, seq, 8),
    }
    assert not {"Shape", "Gather", "Concat", "Range"} & {node.op for node in bound.nodes}
    inputs = tensors.inputs(bound)
    for static, symbolic in zip(outputs(bound, inputs), outputs(dynamic, inputs), strict=True):
        np.testing.assert_array_equal(static, symbolic)


def test_defaults_where_nothing_is_said(dynamic: Graph) -> None:
    assert dynamic.bind().input_shapes == ((1, 16, 8), (1, 16))
    assert dynamic.bind(batch=4).input_shapes == ((4, 16, 8), (4, 16))


def test_metadata_is_refreshed(dynamic: Graph) -> None:
    bound = dynamic.bind(batch=8, seq=4)
    finalize.check(bound)
    assert bound.operator_count == len(bound.nodes)
    assert bound.flops != dynamic.flops
    assert bound.stored_hash != dynamic.stored_hash
    assert (bound.graph_id, bound.name, bound.source) == (dynamic.graph_id, dynamic.name, dynamic.source)


def test_binding_twice_changes_nothing(dynamic: Graph) -> None:
    bound = dynamic.bind(batch=2)
    assert bound.bind() == bound


def test_data_is_that_of_the_symbolic_graph(dynamic: Graph) -> None:
    bound = dynamic.bind()
    for name, array in bound.materialize(5).items():
        if name in dynamic.weights:
            np.testing.assert_array_equal(array, dynamic.materialize(5)[name])
    for name, array in tensors.inputs(bound, 5).items():
        np.testing.assert_array_equal(array, tensors.inputs(dynamic, 5)[name])
    assert bound.inputs[1].fill == Uniform(low=0, high=15)


@pytest.mark.parametrize(
    ("sizes", "cause"),
    [
        ({"height": 3}, "g has no symbol 'height'; its symbols are: batch, seq"),
        ({"batch": 0}, r"batch=0 is not an integer in 1\.\.64"),
        ({"batch": 65}, r"batch=65 is not an integer in 1\.\.64"),
        ({"seq": 1}, r"seq=1 is not an integer in 2\.\.32"),
        ({"batch": 2.0}, r"batch=2\.0 is not an integer"),
        ({"batch": True}, r"batch=True is not an integer"),
    ],
)
def test_illegal_sizes(dynamic: Graph, sizes: dict[str, int], cause: str) -> None:
    with pytest.raises(GraphBindError, match=cause):
        dynamic.bind(**sizes)


def test_static_graphs_have_no_symbols() -> None:
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 23]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    )
    graph = from_onnx(proto)
    assert graph.bind() == graph
    with pytest.raises(GraphBindError, match="none, the graph is static"):
        graph.bind(batch=1)


def test_sizes_of_a_run_cannot_be_bound() -> None:
    text = '<ir_version: 10, opset_import: ["" : 23]> g (float[n] x) => (int64[1, k] y) { y = NonZero(x) }'
    graph = from_onnx(parser.parse_model(text), dims={"n": (1, 9, 3)})
    with pytest.raises(GraphBindError, match="'k' of g depends on the data of a run"):
        graph.bind(k=2)
    bound = graph.bind(n=5)
    bound.validate()
    assert bound.type_of("y").shape == (1, "k")
    assert list(bound.dims) == ["k"]


def test_sizes_that_do_not_fit_together() -> None:
    item = [Input(name=name, dtype="float32", shape=(size,)) for name, size in (("x", "a"), ("z", "b"))]
    graph = Graph(
        name="g",
        dims={"a": Dim(min=1, max=9, default=2), "b": Dim(min=1, max=9, default=2)},
        inputs=tuple(item),
        outputs=("y",),
        nodes=(Node(op="Add", name="sum", inputs=("x", "z"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=("a",))},
    )
    assert graph.bind(a=3, b=3).values["y"].shape == (3,)
    with pytest.raises(GraphBindError, match=r"g does not hold at a=3, b=2: node 'sum' .Add. is invalid"):
        graph.bind(a=3, b=2)
    with pytest.raises(GraphBindError, match=r"'y' is float32\[5\], the graph states float32\[1\]"):
        graph.bind(a=1, b=5)


CONTROL = """<ir_version: 10, opset_import: ["" : 23]>
g (float[time, batch, 4] x, float[batch, 4] start, bool c) => (float[batch, 4] last, float[t, b, 4] all, float[k, 4] y)
{
    last, all = Scan (start, x) <
        body = step (float[b1, 4] state, float[b2, 4] item) => (float[b3, 4] next, float[b4, 4] out) {
            next = Add(state, item)
            out = Relu(next)
        }
    >
    y = If (c) <
        then_branch = yes () => (float[b5, 4] a) { a = Neg(last) },
        else_branch = no () => (float[b6, 4] b) { s = Shape(last) b = ConstantOfShape(s) }
    >
}"""


def test_nested_graphs_are_bound_with_the_rest() -> None:
    proto = parser.parse_model(CONTROL)
    proto.graph.node[0].attribute.append(helper.make_attribute("num_scan_inputs", 1))
    graph = clean(from_onnx(proto, dims={"time": (1, 9, 2), "batch": (1, 9, 3)}))
    assert graph.type_of("all").shape == ("time", "batch", 4)
    bound = graph.bind(time=5, batch=2)
    bound.validate()
    assert [bound.type_of(name).shape for name in bound.outputs] == [(2, 4), (5, 2, 4), (2, 4)]
    body, branch = bound.nodes[0].attrs["body"], bound.nodes[1].attrs["else_branch"]
    assert isinstance(body, Body)
    assert isinstance(branch, Body)
    assert [item.shape for item in body.inputs] == [(2, 4), (2, 4)]
    assert body.values["next"].shape == (2, 4)
    assert [node.op for node in branch.nodes] == ["ConstantOfShape"]
    inputs = tensors.inputs(bound) | {"c": np.array(False)}
    for static, symbolic in zip(outputs(bound, inputs), outputs(graph, inputs), strict=True):
        np.testing.assert_array_equal(static, symbolic)
