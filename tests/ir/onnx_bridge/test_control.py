"""If, Loop, Scan and function bodies at import."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

from graphnet.ir import fold
from graphnet.ir.graph import Body, Value
from graphnet.ir.onnx_bridge import from_onnx, to_onnx
from tests.ir.onnx_bridge.models import model, run, shape


def test_if_of_single_constants() -> None:
    """ort#3900: each branch is nothing but a constant."""
    text = """g (bool c) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] a) { a = Constant <value = float[2] {1, 2}> () },
            else_branch = e () => (float[2] b) { b = Constant <value = float[2] {3, 4}> () }
        >
    }"""
    graph = from_onnx(model(text))
    graph.validate()
    assert shape(graph, "y") == (2,)
    for condition, expected in ((True, [1, 2]), (False, [3, 4])):
        np.testing.assert_array_equal(run(graph, c=np.array(condition))[0], expected)


LOOP = """
g (float[2] x) => (float[2] last, float[t, 2] all) <int64 trips = {TRIPS}, bool go = {1}> {
    last, all = Loop (trips, go, x) <
        body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2, float[2] out) {
            c2 = Identity(c)
            s2 = Add(s, s)
            out = Identity(s2)
        }
    >
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_loop_with_known_trips(trips: int) -> None:
    """ort#1272: zero trips give a scan output whose leading dimension is 0."""
    graph = from_onnx(model(LOOP.replace("TRIPS", str(trips))))
    graph.validate()
    assert shape(graph, "all") == (trips, 2)
    body = graph.nodes[0].attrs["body"]
    assert isinstance(body, Body)
    assert body.values["s2"] == Value(dtype="float32", shape=(2,))
    x = np.array([1, 2], np.float32)
    last, every = run(fold.clean(graph), x=x)
    np.testing.assert_array_equal(last, x * 2**trips)
    assert every.shape == (trips, 2)


def test_loop_state_of_growing_size_is_data_dependent() -> None:
    text = """g (float[1] x, int64 trips) => (float[n] y) {
        y = Loop (trips, , x) <
            body = b (int64 i, bool c, float[m] s) => (bool c2, float[k] s2) {
                c2 = Identity(c)
                s2 = Concat <axis = 0> (s, s)
            }
        >
    }"""
    graph = from_onnx(model(text))
    graph.validate()
    (size,) = shape(graph, "y")
    assert isinstance(size, str)
    assert graph.dims[size].data_dependent
    assert shape(from_onnx(to_onnx(graph)), "y") == (size,)


def test_scan_lengths() -> None:
    text = """g (float[2] s, float[time, 2] x) => (float[2] last, float[t, 2] all) {
        last, all = Scan (s, x) <
            body = b (float[2] state, float[2] item) => (float[2] next, float[2] out) {
                next = Add(state, item)
                out = Identity(next)
            }
        >
    }"""
    proto = model(text)
    proto.graph.node[0].attribute.append(helper.make_attribute("num_scan_inputs", 1))
    graph = from_onnx(proto)
    graph.validate()
    assert shape(graph, "all") == ("time", 2)


def test_functions_are_inlined() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23, "local" : 1]>
    g (float[n] x) => (float[n] y) { y = local.twice(x) }
    <domain: "local", opset_import: ["" : 23]>
    twice (a) => (b) { b = Add(a, a) }
    """
    graph = from_onnx(parser.parse_model(text))
    assert [(node.domain, node.op) for node in graph.nodes] == [("", "Add")]


def test_round_trip_keeps_loops() -> None:
    graph = from_onnx(model(LOOP.replace("TRIPS", "3")))
    again = from_onnx(to_onnx(graph), name=graph.name)
    assert again.values == graph.values
    assert again.structure_hash() == graph.structure_hash()
