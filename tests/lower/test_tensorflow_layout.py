from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet.compilers import Target
from graphnet.compilers.tensorflow.compiler import TensorFlow
from graphnet.ir.graph import Constant, Graph
from graphnet.ir.onnx_bridge import from_onnx
from graphnet.lower.tensorflow.axes import channels_last, kernel_order, places, plain, reshaped, without
from graphnet.lower.tensorflow.graph import lower, node_of

HEAD = '<ir_version: 10, opset_import: ["" : 23]>\n'
FILL = Constant(value=0.5)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def _configured() -> None:
    TensorFlow().configure(Target())


def transposes(text: str, inputs: Mapping[str, np.ndarray]) -> int:
    """How many transposes the lowered function has; its results equal those of ONNX's reference evaluator."""
    model = onnx.parser.parse_model(HEAD + text)
    graph = from_onnx(model, parameters=("w",), fills={"w": FILL})
    lowered = lower(graph, {"w": inputs["w"]} | {n: w for n, w in graph.materialize().items() if n != "w"}, jit=False)
    results = lowered.concrete(*(inputs[item.name] for item in graph.inputs))
    for got, expected in zip(results, ReferenceEvaluator(model).run(None, dict(inputs)), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-4)
    return [operation.type for operation in lowered.concrete.graph.get_operations()].count("Transpose")


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


FEED = {"x": rand(1, 4, 6, 5), "w": rand(4, 4, 3, 3), "b": rand(4), "s": rand(4, 1, 1)}
HEADER = "g (float[1,4,6,5] x, float[4,4,3,3] w, float[4] b, float[4,1,1] s) => (float[1,4,6,5] y)"
ENDS = 2
"""Transposes of x and of the result."""


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv<pads=[1,1,1,1]>(x, w, b)  r = Relu(a)  y = Conv<pads=[1,1,1,1]>(r, w)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  c = Mul(a, s)  d = PRelu(c, s)  y = Add(d, a)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  v = Mul(b, b)  n = BatchNormalization(a, b, b, b, v)  y = Sigmoid(n)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(a)"
        "  y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(p)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  c = Concat<axis=1>(a, a)  d, e = Split<axis=1, num_outputs=2>(c)"
        "  y = Add(d, e)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  y = GroupNormalization<num_groups=2>(a, b, b)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  y = InstanceNormalization(a, b, b)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  t = Transpose<perm=[0,2,3,1]>(a)  u = Mul(t, b)"
        "  y = Transpose<perm=[0,3,1,2]>(u)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  k = Constant<value_ints=[1,4,30]>()  t = Reshape(a, k)"
        "  n = Constant<value_ints=[0,0,6,5]>()  y = Reshape(t, n)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  q = Softmax<axis=1>(a)  m = GlobalAveragePool(q)  y = Mul(q, m)",
        "a = Conv<pads=[1,1,1,1]>(x, w)  one = Constant<value_ints=[2,3]>()  m = ReduceMax(a, one)  y = Sub(a, m)",
    ],
)  # fmt: skip
def test_only_the_ends_of_a_convolutional_net_are_transposed(body: str) -> None:
    assert transposes(f"{HEADER} {{ {body} }}", FEED) == ENDS


def test_other_rules_get_onnx_order() -> None:
    text = "g (float[1,4,6,5] x, float[4,4,3,3] w) => (float[1,4,6,6] y) {"
    text += " a = Conv<pads=[1,1,1,1]>(x, w)  t = Transpose<perm=[0,1,3,2]>(a)  y = MatMul(a, t) }"
    assert transposes(text, FEED) > ENDS


def test_weights_are_laid_out_when_loaded() -> None:
    text = HEAD + "g (float[1,4,6,5] x, float[4,4,3,3] w, float[7,5] m) => (float[1,4,6,7] y) {"
    text += " a = Conv<pads=[1,1,1,1]>(x, w)  t = Transpose<perm=[1,0]>(m)  y = MatMul(a, t) }"
    graph = from_onnx(onnx.parser.parse_model(text), parameters=("w", "m"), fills={"w": FILL, "m": FILL})
    weights = {"w": FEED["w"], "m": rand(7, 5)}
    lowered = lower(graph, weights, jit=False)
    assert {tuple(v.shape) for v in lowered.concrete.variables} == {(3, 3, 4, 4), (5, 7)}
    results: Any = ReferenceEvaluator(onnx.parser.parse_model(text)).run(None, {"x": FEED["x"], **weights})
    np.testing.assert_allclose(lowered.concrete(FEED["x"])[0].numpy(), results[0], rtol=1e-4, atol=1e-4)


def test_small_weights_are_no_literals() -> None:
    text = HEAD + "g (float[4] x, float[4] w) => (float[4] y) { a = Sqrt(w)  y = Add(x, a) }"
    graph = from_onnx(onnx.parser.parse_model(text), parameters=("w",), fills={"w": FILL})
    lowered = lower(graph, {"w": np.ones(4, np.float32)}, jit=False)
    assert [tuple(v.shape) for v in lowered.concrete.variables] == [(4,)]


def test_operations_bear_the_names_of_nodes() -> None:
    text = HEAD + "g (float[4] x) => (float[4] y) { a = Exp(x)  y = Neg(a) }"
    graph = Graph.from_onnx(onnx.parser.parse_model(text))
    lowered = lower(graph, {}, jit=False)
    found = {op.type: node_of(lowered.nodes, op.name) for op in lowered.concrete.graph.get_operations()}
    assert found["Exp"] == graph.nodes[0].name
    assert found["Neg"] == graph.nodes[1].name
    assert found["Placeholder"] == ""


def test_orders() -> None:
    assert channels_last(4) == (0, 2, 3, 1)
    assert kernel_order(4) == (2, 3, 1, 0)
    assert without((0, 2, 3, 1), [2, 3]) == (0, 1)
    assert without((0, 2, 3, 1), [0]) == (1, 2, 0)


def test_a_reshape_in_another_order_moves_nothing() -> None:
    """Against numpy: where an order is given, the elements in memory are those of the reshaped ONNX tensor."""
    shapes = [(1, 6, 4), (2, 3, 4), (6, 4), (2, 12), (3, 2, 2, 2), (1, 2, 3, 4), (24,)]
    given = 0
    for old, new in itertools.product(shapes, shapes):
        for order in itertools.permutations(range(len(old))):
            found = reshaped(old, new, order)
            if found is None:
                continue
            given += found != plain(len(new))
            array: Any = np.arange(math.prod(old)).reshape(old)
            lying = array.transpose(order).reshape([new[axis] for axis in found])
            np.testing.assert_array_equal(lying.transpose(places(found)), array.reshape(new))
    assert given > 50
    assert reshaped((0, 2), (2, 0), (1, 0)) is None
