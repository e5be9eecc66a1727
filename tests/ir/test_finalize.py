"""Derived metadata is filled from the graph, and a file that disagrees with its graph is refused with both values."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from onnx import numpy_helper, parser

from graphnet.errors import GraphFormatError
from graphnet.ir.finalize import check, finalize
from graphnet.ir.graph import Attr, FloatAttr, Graph, Node, TensorAttr, Value, Values
from graphnet.ir.onnx_bridge import from_onnx


@pytest.fixture
def plain() -> Graph:
    text = """<ir_version: 10, opset_import: ["" : 23]>
    g (float[batch, 3, 8, 8] x) => (float[batch, 6] y) <int64[2] target = {0, -1}, int64[2] axes = {2, 3}> {
        c = Conv <pads = [1, 1, 1, 1]> (x, w)
        r = Relu(c)
        m = ReduceMean(r, axes)
        y = Reshape(m, target)
    }"""
    proto = parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((6, 3, 3, 3), np.float32), "w"))
    return from_onnx(proto, dims={"batch": (1, 64, 2)})


def test_every_field_is_filled(plain: Graph) -> None:
    done = finalize(plain)
    elements = 2 * 6 * 8 * 8
    assert done.input_shapes == (("batch", 3, 8, 8),)
    assert done.operator_count == 4
    assert done.operator_distribution == {"conv2d": 1, "reduce_mean": 1, "relu": 1, "reshape": 1}
    assert done.parameters == 6 * 27
    assert done.flops == elements * 54 + elements + elements + 12
    assert done.bytes == 4 * (2 * 192 + 162 + elements) + 8 * elements + (4 * elements + 16 + 48)
    assert done.arithmetic_intensity == pytest.approx(done.flops / done.bytes)
    assert done.tier == "kernel"
    assert done.stored_hash == plain.structure_hash()
    assert finalize(done) == done
    check(done)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("input_shapes", ((1, 3, 8, 8),), "input_shapes"),
        ("operator_count", 5, "operator_count"),
        ("input_shapes", (), "input_shapes"),
        ("operator_distribution", {"conv2d": 2}, "operator_distribution"),
        ("operator_distribution", {}, "operator_distribution"),
        ("parameters", 163, "parameters"),
        ("flops", 1, "flops"),
        ("bytes", 1, "bytes"),
        ("unknown_cost", {"Foo": 1}, "unknown_cost"),
        ("arithmetic_intensity", 1.0, "arithmetic_intensity"),
        ("compute_intensity", 0.123, "compute_intensity"),
        ("tier", "block", "tier"),
        ("stored_hash", "0" * 64, "structure_hash"),
    ],
)
def test_a_field_that_disagrees_names_both_values(plain: Graph, field: str, value: Any, name: str) -> None:
    done = finalize(plain)
    wrong = msgspec.structs.replace(done, **{field: value})
    with pytest.raises(GraphFormatError) as caught:
        check(wrong)
    assert caught.value.where == f"$.{name}"
    assert repr(value) in caught.value.cause
    assert repr(getattr(done, field)) in caught.value.cause


def test_missing_metadata_is_not_compared(plain: Graph) -> None:
    check(plain)


def with_node(graph: Graph, index: int, **changes: Any) -> Graph:
    nodes = list(graph.nodes)
    nodes[index] = msgspec.structs.replace(nodes[index], **changes)
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


def with_attribute(graph: Graph, name: str, value: Attr) -> Graph:
    return with_node(graph, 0, attrs={**graph.nodes[0].attrs, name: value})


TENSOR = TensorAttr(dtype="int64", shape=(1,), fill=Values(data=(1,)))


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("padz", (1, 1), "Conv has no attribute 'padz'; known: auto_pad"),
        ("group", 1.0, "'group' of Conv must be INT"),
        ("group", "one", "'group' of Conv must be INT"),
        ("group", TENSOR, "'group' of Conv must be INT"),
        ("strides", 2, "'strides' of Conv must be INTS"),
        ("strides", (1.5, 1.5), "'strides' of Conv must be INTS"),
        ("auto_pad", 1, "'auto_pad' of Conv must be STRING"),
    ],
)
def test_attributes_are_checked(plain: Graph, name: str, value: Attr, cause: str) -> None:
    with pytest.raises(GraphFormatError, match=cause) as caught:
        check(with_attribute(plain, name, value))
    assert caught.value.where == f"$.nodes[0].attrs.{name}"


def test_a_float_attribute_may_be_spelled_as_an_integer_or_not_finite(plain: Graph) -> None:
    node = Node(op="LeakyRelu", name="leaky", inputs=("c",), outputs=("r",), attrs={"alpha": 0})
    for alpha in (0, 0.5, FloatAttr(value="inf")):
        check(with_node(plain, 1, op=node.op, attrs={"alpha": alpha}))


@pytest.mark.parametrize(
    ("changes", "where", "cause"),
    [
        ({"op": "Rellu"}, "$.nodes[1].op", "ONNX has no operator 'Rellu' at opset 23"),
        ({"op": "Upsample"}, "$.nodes[1].op", "ONNX has no operator 'Upsample' at opset 23"),
        ({"inputs": ()}, "$.nodes[1].inputs", "Relu has 0 inputs; 1 to 1 are legal"),
        ({"inputs": ("c", "c")}, "$.nodes[1].inputs", "Relu has 2 inputs; 1 to 1 are legal"),
        ({"inputs": ("",)}, "$.nodes[1].inputs[0]", "Relu needs 'X'"),
        ({"inputs": ("target",)}, "$.nodes[1].outputs[0]", "'r' is float32, but Relu has int64 for the same type"),
        ({"inputs": ("nowhere",)}, "$.nodes[1].inputs[0]", "'nowhere' is not defined"),
        ({"op": "Softmax", "inputs": ("target",)}, "$.nodes[1].inputs[0]", "Softmax does not take int64 'target'"),
        ({"op": "Add", "inputs": ("c", "target")}, "$.nodes[1].inputs[1]", "'target' is int64, but Add has float32"),
        ({"op": "Softmax", "outputs": ("r", "s")}, "$.nodes[1].outputs", "Softmax has 2 outputs; 1 to 1 are legal"),
    ],
)
def test_operators_are_checked(plain: Graph, changes: dict[str, Any], where: str, cause: str) -> None:
    with pytest.raises(GraphFormatError, match=cause) as caught:
        check(with_node(plain, 1, **changes))
    assert caught.value.where == where


def test_a_required_attribute_is_missed(plain: Graph) -> None:
    with pytest.raises(GraphFormatError, match="Cast needs the attribute 'to'"):
        check(with_node(plain, 1, op="Cast"))


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("c", Value(dtype="float32", shape=("batch", 6, 8, 9)), "stated as .*8, 9.*but inference gives .*8, 8"),
        ("c", Value(dtype="float32", shape=("batch", 6, 8)), "'c' is stated as"),
        ("c", Value(dtype="float32", shape=(2, 6, 8, 8)), "'c' is stated as"),
        ("m", Value(dtype="float32", shape=("batch", 6, 1, 2)), "'m' is stated as"),
    ],
)
def test_shapes_are_inferred_anew(plain: Graph, name: str, value: Value, cause: str) -> None:
    wrong = msgspec.structs.replace(plain, values={**plain.values, name: value})
    with pytest.raises(GraphFormatError, match=cause) as caught:
        check(wrong)
    assert caught.value.where == f"$.values.{name}"


def test_another_spelling_of_a_dimension_is_fine(plain: Graph) -> None:
    value = Value(dtype="float32", shape=("batch + 0", 6, 8, 8))
    check(msgspec.structs.replace(plain, values={**plain.values, "c": value}))


def test_nested_graphs_are_checked() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23]> g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                    else_branch = e () => (float[2] b) { b = Neg(x) }>
    }"""
    graph = from_onnx(parser.parse_model(text))
    check(graph)
    body: Any = graph.nodes[0].attrs["then_branch"]
    wrong = msgspec.structs.replace(body, nodes=(msgspec.structs.replace(body.nodes[0], op="Rellu"),))
    broken = with_node(graph, 0, attrs={**graph.nodes[0].attrs, "then_branch": wrong})
    with pytest.raises(GraphFormatError, match="no operator 'Rellu'") as caught:
        check(broken)
    assert caught.value.where == "$.nodes[0].attrs.then_branch.nodes[0].op"
    stated = msgspec.structs.replace(body, values={"a": Value(dtype="float32", shape=(3,))})
    broken = with_node(graph, 0, attrs={**graph.nodes[0].attrs, "then_branch": stated})
    with pytest.raises(GraphFormatError, match="'a' is stated as"):
        check(broken)
