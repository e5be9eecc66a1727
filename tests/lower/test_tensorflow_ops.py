from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet.compilers import Target
from graphnet.compilers.tensorflow.compiler import TensorFlow
from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph
from graphnet.lower.tensorflow.ops_all import TENSORFLOW

BENCHMARK = Path(__file__).parents[2] / "benchmark"
GRAPPLER = Target(options={"jit": False})


@pytest.fixture(scope="module", autouse=True)
def _configured() -> None:
    TensorFlow().configure(Target())


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}')


def run(text: str, inputs: Mapping[str, np.ndarray], target: Target | None = None) -> Sequence[np.ndarray]:
    graph = Graph.from_onnx(parsed(text))
    program = TensorFlow().compile(graph, graph.materialize(), target or Target())
    program.bind(inputs)
    program.run()
    return program.outputs()


def check(text: str, inputs: Mapping[str, np.ndarray], target: Target | None = None) -> Sequence[np.ndarray]:
    """Equal to ONNX's reference evaluator in values, shapes and dtypes."""
    results = run(text, inputs, target)
    expected: Any = ReferenceEvaluator(parsed(text)).run(None, dict(inputs))
    for got, wanted in zip(results, expected, strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    return results


def rand(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_the_core_set_is_covered() -> None:
    def operators(graph: Any) -> set[str]:
        found = {node["op"] for node in graph["nodes"] if not node.get("domain")}
        bodies = [value for node in graph["nodes"] for value in node.get("attrs", {}).values()]
        return found.union(*(operators(body) for body in bodies if isinstance(body, dict) and "nodes" in body))

    used = set().union(*(operators(json.loads(path.read_text())) for path in BENCHMARK.glob("*/*.json")))
    assert len(used) > 60
    assert {op for op in used if ("", op) not in TENSORFLOW.operators} == set()


@pytest.mark.parametrize("target", [Target(), GRAPPLER], ids=["xla", "grappler"])
@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ("1,4,9,8", "6,4,3,3", "strides=[2,1], pads=[0,1,2,1]"),
        ("1,4,9,8", "6,2,3,2", "group=2, dilations=[2,1]"),
        ("2,4,9,9", "8,1,3,3", "group=4, strides=[2,2], pads=[1,0,1,2]"),
        ("2,4,9,9", "4,1,3,3", "group=4, strides=[2,1]"),
        ("2,4,9,9", "4,1,3,3", 'group=4, auto_pad="SAME_UPPER"'),
        ("2,4,11", "6,4,3", "strides=[2], pads=[2,1], dilations=[2]"),
        ("2,4,11", "4,1,5", "group=4, pads=[2,2]"),
        ("1,4,5,6,7", "2,4,2,3,2", "strides=[1,2,1], pads=[1,0,0,0,1,1]"),
        ("1,4,5,6,7", "4,2,2,3,2", "group=2"),
    ],
)
def test_convolutions(x: str, w: str, attributes: str, target: Target) -> None:
    shapes = [tuple(map(int, item.split(","))) for item in (x, w)]
    text = f"g (float[{x}] x, float[{w}] w, float[{shapes[1][0]}] b) => (y) {{ y = Conv<{attributes}>(x, w, b) }}"
    check(text, {"x": rand(*shapes[0]), "w": rand(*shapes[1], seed=1), "b": rand(shapes[1][0], seed=2)}, target)


@pytest.mark.parametrize("target", [Target(), GRAPPLER], ids=["xla", "grappler"])
@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ("1,4,5,4", "4,6,3,3", "strides=[2,1], pads=[0,1,2,1]"),
        ("2,4,7", "4,3,4", "strides=[2], pads=[1,1]"),
        ("1,2,3,4,3", "2,3,2,3,2", "strides=[1,2,2], pads=[0,1,0,1,0,0]"),
    ],
)
def test_transposed_convolutions(x: str, w: str, attributes: str, target: Target) -> None:
    shapes = [tuple(map(int, item.split(","))) for item in (x, w)]
    text = f"g (float[{x}] x, float[{w}] w) => (y) {{ y = ConvTranspose<{attributes}>(x, w) }}"
    check(text, {"x": rand(*shapes[0]), "w": rand(*shapes[1], seed=1)}, target)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ("1,2,7,8", "kernel_shape=[3,2], strides=[2,2], pads=[1,0,1,1]"),
        ("1,2,7,8", "kernel_shape=[3,3], strides=[2,2], ceil_mode=1"),
        ("1,2,7,8", "kernel_shape=[2,2], dilations=[2,3]"),
        ("1,2,9", "kernel_shape=[4], strides=[3]"),
        ("1,2,4,5,6", "kernel_shape=[2,2,3]"),
    ],
)
def test_pools(op: str, shape: str, attributes: str) -> None:
    x = rand(*map(int, shape.split(",")))
    check(f"g (float[{shape}] x) => (y) {{ y = {op}<{attributes}>(x) }}", {"x": x})


def test_positions_of_the_largest() -> None:
    """By hand: of equal elements the first counts, and positions are those of the flattened tensor."""
    text = "g (float[1,2,1,4] x) => (v, i) { v, i = MaxPool<kernel_shape=[1,2], strides=[1,2]>(x) }"
    values, indices = run(text, {"x": np.array([[[[1, 1, 2, 3]], [[5, 4, 0, 0]]]], np.float32)})
    np.testing.assert_array_equal(values, [[[[1, 3]], [[5, 0]]]])
    np.testing.assert_array_equal(indices, [[[[0, 3]], [[4, 6]]]])
    assert indices.dtype == np.int64


@pytest.mark.parametrize(
    ("a", "b"),
    [("2,3,4", "4,5"), ("4", "4,5"), ("2,3,4", "4"), ("4", "4"), ("3,4", "2,4,5"), ("2,1,3,4", "5,4,2")],
)
def test_products(a: str, b: str) -> None:
    shapes = [tuple(map(int, item.split(","))) for item in (a, b)]
    text = f"g (float[{a}] a, float[{b}] b) => (y) {{ y = MatMul(a, b) }}"
    check(text, {"a": rand(*shapes[0]), "b": rand(*shapes[1], seed=1)})


def test_transposed_operands_are_multiplied_as_they_lie() -> None:
    text = """g (float[2,4,3] a, float[2,5,4] b) => (y) {
        c = Transpose<perm=[0,2,1]>(a)  d = Transpose<perm=[0,2,1]>(b)  y = MatMul(c, d) }"""
    check(text, {"a": rand(2, 4, 3), "b": rand(2, 5, 4, seed=1)})


def test_integer_arithmetic_truncates_as_onnx_says() -> None:
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    text = "g (int32[4] a, int32[4] b) => (d, m, f) { d = Div(a, b)  m = Mod(a, b)  f = Mod<fmod=1>(a, b) }"
    d, m, f = run(text, {"a": a, "b": b})
    np.testing.assert_array_equal(d, [3, -3, -3, 3])
    np.testing.assert_array_equal(m, [1, 1, -1, -1])
    np.testing.assert_array_equal(f, [1, -1, 1, -1])


def test_small_epsilons_are_kept() -> None:
    """tf.compat.v1.nn.fused_batch_norm would raise 1e-12 to 1.001e-5: 1 / sqrt(1e-12) is 1e6."""
    text = """g (float[1,2,1,1] x, float[2] s, float[2] z) => (y) {
        y = BatchNormalization<epsilon=0.000000000001>(x, s, z, z, z) }"""
    (y,) = run(
        text, {"x": np.ones((1, 2, 1, 1), np.float32), "s": np.ones(2, np.float32), "z": np.zeros(2, np.float32)}
    )
    np.testing.assert_allclose(y, np.full((1, 2, 1, 1), 1e6), rtol=1e-3)


def test_slices_backwards_and_beyond() -> None:
    x = rand(5, 6)
    text = """g (float[5,6] x) => (a, b, c) <int64[2] s = {-1, 100}, int64[2] e = {-100, -100}, int64[2] p = {-2, -1},
        int64[1] one = {1}, int64[1] four = {4}, int64[1] zero = {0}> {
        a = Slice(x, s, e, , p)  b = Slice(x, one, four, one)  c = Slice(x, four, one, zero) }"""
    a, b, c = run(text.replace("e, , p", "e, axes, p").replace("> {", ", int64[2] axes = {0, 1}> {"), {"x": x})
    np.testing.assert_array_equal(a, x[::-2, ::-1])
    np.testing.assert_array_equal(b, x[:, 1:4])
    assert c.shape == (0, 6)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pads_wider_than_the_input(mode: str) -> None:
    x = rand(2, 3)
    text = f"""g (float[2,3] x) => (y) <int64[4] p = {{1, 4, 0, 5}}> {{ y = Pad<mode="{mode}">(x, p) }}"""
    padding: Any = mode
    np.testing.assert_array_equal(run(text, {"x": x})[0], np.pad(x, [(1, 0), (4, 5)], mode=padding))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(direction: str) -> None:
    """Against the formulas of the standard, written out."""
    d = 2 if direction == "bidirectional" else 1
    x, w, r, b = rand(4, 2, 3), rand(d, 20, 3, seed=1), rand(d, 20, 5, seed=2), rand(d, 40, seed=3)
    text = f"""g (float[4,2,3] x, float[{d},20,3] w, float[{d},20,5] r, float[{d},40] b) => (y, h, c) {{
        y, h, c = LSTM<hidden_size=5, direction="{direction}">(x, w, r, b) }}"""
    y, h, c = run(text, {"x": x, "w": w, "r": r, "b": b})

    def sigmoid(v: np.ndarray) -> Any:
        return 1 / (1 + np.exp(-v))

    for k in range(d):
        backward = direction == "reverse" or k == 1
        hidden, cell = np.zeros((2, 5)), np.zeros((2, 5))
        for t in reversed(range(4)) if backward else range(4):
            i, o, f, g = np.split(x[t] @ w[k].T + hidden @ r[k].T + b[k, :20] + b[k, 20:], 4, 1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
            np.testing.assert_allclose(y[t, k], hidden, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(h[k], hidden, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(c[k], cell, rtol=1e-4, atol=1e-5)


def test_float8_saturates_and_bfloat16_rounds() -> None:
    text = """g (float[3] x) => (float8e4m3fn[3] s, bfloat16[3] b) { s = Cast<to=17>(x)  b = Cast<to=16>(x) }"""
    s, b = run(text, {"x": np.array([1e4, -1e4, 1 + 2**-9], np.float32)})
    assert s.dtype == ml_dtypes.float8_e4m3fn
    assert b.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(s.astype(np.float32), [448, -448, 1])
    assert float(b[2]) == 1


def test_what_data_decides_is_refused() -> None:
    text = "g (float[3] x, bool[3] c) => (float[n] y) { y = Compress<axis=0>(x, c) }"
    with pytest.raises(UnsupportedOp, match=r"tensorflow: ai\.onnx::Compress: the output shape of Compress depends"):
        run(text, {"x": rand(3), "c": np.ones(3, bool)})


@pytest.mark.parametrize(
    "node",
    [
        "ConvTranspose<strides=[2,2],output_shape=[10,8]>(x, w)",
        'ConvTranspose<strides=[2,2],output_shape=[10,8],auto_pad="SAME_LOWER">(x, w)',
        "ConvTranspose<strides=[2,2],group=2,output_padding=[1,1],pads=[1,0,0,1]>(x, w)",
    ],
)
def test_transposed_convolutions_agree_with_onnx_runtime(node: str) -> None:
    """ONNX's own evaluator has other values for some of these."""
    model = parsed(f"g (float[1,4,5,4] x, float[4,3,3,3] w) => (float[1,C,H,W] y) {{ y = {node} }}")
    draw = np.random.default_rng(0)
    inputs = {
        "x": draw.standard_normal((1, 4, 5, 4)).astype(np.float32),
        "w": draw.standard_normal((4, 3, 3, 3)).astype(np.float32),
    }
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [expected] = session.run(None, inputs)
    graph = Graph.from_onnx(model)
    program = TensorFlow().compile(graph, {}, Target())
    program.bind(inputs)
    program.run()
    np.testing.assert_allclose(program.outputs()[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("jit", [True, False])
def test_negative_pads_cut(jit: bool) -> None:
    text = "g (float[4,6] x) => (float[5,4] y) <int64[4] p = {1, -2, 0, 0}> { y = Pad(x, p) }"
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    [found] = run(text, {"x": x}, Target(options={"jit": jit}))
    np.testing.assert_array_equal(found, np.pad(x[:, 2:], ((1, 0), (0, 0))))
