"""Facts that public reports got wrong, each against numpy, plain PyTorch or a hand calculation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph
from graphnet.lower.torch import ops_control
from graphnet.lower.torch.graph import lower
from graphnet.lower.torch.tensors import to_numpy, to_torch

rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def run(text: str, inputs: Mapping[str, Any], weights: Mapping[str, Any] | None = None, opset: int = 23) -> Any:
    """The first output of a model in ONNX's text form; `weights` are literals."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items())
    graph = Graph.from_onnx(model, parameters=()).bind()
    arrays = [to_torch(np.array(inputs[item.name])) for item in graph.inputs]
    return to_numpy(lower(graph, graph.materialize())(*arrays)[0])


def test_reshape_with_allowzero_keeps_zeros() -> None:
    text = "g (float[0,8,2] x) => (float[0,0,4] y) { m = Reshape (x, a) y = Reshape <allowzero = 1> (m, b) }"
    assert run(text, {"x": np.zeros((0, 8, 2), np.float32)}, {"a": [4, 2, -1], "b": [0, 0, 4]}).shape == (0, 0, 4)


@pytest.mark.parametrize("flag", [True, False])
def test_if_with_constant_branches(flag: bool) -> None:
    text = """g (bool c) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] a) { a = Constant <value = float[2] {1.0, 2.0}> () },
        else_branch = e () => (float[2] b) { b = Constant <value = float[2] {3.0, 4.0}> () }> }"""
    assert run(text, {"c": np.array(flag)}).tolist() == ([1, 2] if flag else [3, 4])


LOOP = """g (float[2] x) => (float[n,2] y) { last, y = Loop (trips, , x) <
    body = b (int64 i, bool go, float[2] s) => (bool more, float[2] t, float[2] scan) {
        more = Identity (go)
        t = Add (s, s)
        scan = Identity (t)
    }> }"""


def test_a_loop_of_no_trips_scans_an_empty_tensor() -> None:
    assert run(LOOP, {"x": np.ones(2, np.float32)}, {"trips": np.array(0)}).shape == (0, 2)


def test_a_loop_of_known_trips_is_unrolled() -> None:
    assert run(LOOP, {"x": np.ones(2, np.float32)}, {"trips": np.array(3)}).tolist() == [[2, 2], [4, 4], [8, 8]]


def test_a_loop_too_long_to_unroll_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_control, "UNROLL_LIMIT", 4)
    with pytest.raises(UnsupportedOp, match="4 iterations"):
        run(LOOP, {"x": np.ones(2, np.float32)}, {"trips": np.array(5)})


def test_a_scan_runs_over_an_axis() -> None:
    text = """g (float[2,3] x, float[3] z) => (float[3] y) { y, r = Scan <num_scan_inputs = 1,
        body = b (float[3] s, float[3] v) => (float[3] t, float[3] o) { t = Add (s, v) o = Mul (s, v) }> (z, x) }"""
    x = floats(2, 3)
    np.testing.assert_allclose(run(text, {"x": x, "z": np.zeros(3, np.float32)}), x.sum(0), rtol=1e-6)


def test_float64_stays_float64() -> None:
    x = rng.standard_normal((2, 2, 2, 1, 2)) * 3
    text = "g (double[2,2,2,1,2] x) => (double[2,2,2,1,2] y) { r = Relu (x) y = Clip (r, low, high) }"
    y = run(text, {"x": x}, {"low": np.array(-1.0), "high": np.array(1.0)})
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, np.clip(np.maximum(x, 0), -1, 1))


def test_min_broadcasts() -> None:
    a, b = floats(30), floats(1)
    got = run("g (float[30] a, float[1] b) => (float[30] y) { y = Min (a, b) }", {"a": a, "b": b})
    np.testing.assert_array_equal(got, np.minimum(a, b))


def test_reduce_sum_then_depth_to_space() -> None:
    x = floats(1, 8, 2, 3, 5)
    text = """g (float[1,8,2,3,5] x) => (float[1,2,4,6] y) {
        s = ReduceSum <keepdims = 1> (x, axes)
        q = Squeeze (s, axes)
        y = DepthToSpace <blocksize = 2> (q)
    }"""
    summed = x.sum(4).reshape(1, 2, 2, 2, 2, 3)
    expected = summed.transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
    np.testing.assert_allclose(run(text, {"x": x}, {"axes": np.array([4])}), expected, rtol=1e-5, atol=1e-6)


def test_transposed_convolution_with_groups_has_a_bias_per_output_channel() -> None:
    x, w, b = floats(1, 4, 5, 5), floats(4, 3, 3, 3), floats(6)
    text = """g (float[1,4,5,5] x) => (float[1,6,11,11] y) {
        y = ConvTranspose <group = 2, strides = [2, 2]> (x, w, b) }"""
    got = run(text, {"x": x}, {"w": w, "b": b})
    assert got.shape == (1, 6, 11, 11)
    corner = [
        (x[0, 2 * (c // 3) : 2 * (c // 3) + 2, 0, 0] * w[2 * (c // 3) :][:2, c % 3, 0, 0]).sum() + b[c]
        for c in range(6)
    ]
    np.testing.assert_allclose(got[0, :, 0, 0], corner, rtol=1e-5)


def test_indices_from_shape_are_folded_when_shapes_are_bound() -> None:
    text = """g (float[n,6] x) => (float[m,3] y) {
        s = Shape (x)
        first = Gather (s, zero)
        rows = Unsqueeze (first, axis)
        target = Concat <axis = 0> (minus, three)
        y = Reshape (x, target)
    }"""
    weights = {"zero": np.array(0), "axis": np.array([0]), "minus": np.array([-1]), "three": np.array([3])}
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in weights.items())
    graph = Graph.from_onnx(model, dims={"n": (1, 8, 4)}).bind(n=5)
    (y,) = lower(graph, graph.materialize())(torch.arange(30.0).reshape(5, 6))
    assert y.shape == (10, 3)


def test_a_bound_batch_gives_the_values_of_a_static_one() -> None:
    body = "=> (float[b,4] y) { c = Conv (x, w) p = GlobalAveragePool (c) y = Flatten (p) }"
    w, x = floats(4, 3, 3, 3), floats(1, 3, 8, 8)
    results = []
    for batch in ("b", "1"):
        header = f'<ir_version: 10, opset_import: ["" : 23]> g (float[{batch},3,8,8] x) '
        model = onnx.parser.parse_model(header + body.replace("[b,", f"[{batch},"))
        model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
        graph = Graph.from_onnx(model)
        graph = graph.bind(b=1) if batch == "b" else graph
        results.append(to_numpy(lower(graph, {"w": w})(torch.from_numpy(x))[0]))
    assert np.isfinite(results[0]).all()
    np.testing.assert_array_equal(results[0], results[1])


def test_squeeze_with_axes_as_an_attribute_is_upgraded() -> None:
    text = "g (float[1,3,1] x) => (float[3,1] y) { y = Squeeze <axes = [0]> (x) }"
    assert run(text, {"x": floats(1, 3, 1)}, opset=11).shape == (3, 1)


def test_mean_over_given_axes() -> None:
    x = floats(2, 3, 4, 5)
    text = "g (float[2,3,4,5] x) => (float[2,3,1,1] y) { y = ReduceMean (x, axes) }"
    np.testing.assert_allclose(
        run(text, {"x": x}, {"axes": np.array([2, 3])}), x.mean((2, 3), keepdims=True), rtol=1e-5
    )


def test_a_wide_grouped_one_dimensional_convolution() -> None:
    x, w = floats(1, 1024, 39), floats(1024, 64, 128)
    text = "g (float[1,1024,39] x) => (float[1,1024,40] y) { y = Conv <group = 16, pads = [64, 64]> (x, w) }"
    got = run(text, {"x": x}, {"w": w})
    assert got.shape == (1, 1024, 40)
    padded = np.pad(x[0, :64], ((0, 0), (64, 64)))
    np.testing.assert_allclose(got[0, 0, 7], (padded[:, 7:135] * w[0]).sum(), rtol=1e-3, atol=1e-3)


def test_a_cast_to_the_same_dtype_and_a_folded_one() -> None:
    text = "g (float[3] x) => (float[3] y) { c = Cast <to = 1> (x) y = Mul (c, one) }"
    x = floats(3)
    np.testing.assert_array_equal(run(text, {"x": x}, {"one": np.float32(1)}), x)


def test_integers_do_not_wrap_at_32_bits() -> None:
    text = "g () => (int64[11] y) { r = Range (a, b, c) y = Mul (r, billion) }"
    weights = {"a": np.array(0), "b": np.array(11), "c": np.array(1), "billion": np.array(10**9)}
    assert run(text, {}, weights).tolist() == [i * 10**9 for i in range(11)]


def test_not_a_number_is_handed_on() -> None:
    nan = np.float32("nan")
    relu = run("g (float[4] x) => (float[4] y) { y = Relu (x) }", {"x": np.array([nan, 1, nan, -2], np.float32)})
    np.testing.assert_array_equal(relu, [nan, 1, nan, 0])
    top = run("g (float[2] x) => (float[1] y) { y = ReduceMax (x) }", {"x": np.array([2, nan], np.float32)})
    assert np.isnan(top).all()


def test_constants_of_equal_value_and_other_shape_are_told_apart() -> None:
    text = "g (float[2] x, float[2] z) => (float[1,2] y) { h = Div (x, two) f = Mul (z, four) y = Add (h, f) }"
    x, z = floats(2), floats(2)
    got = run(text, {"x": x, "z": z}, {"two": np.float32(2), "four": np.array([[4]], np.float32)})
    assert got.shape == (1, 2)
    np.testing.assert_allclose(got[0], x / 2 + z * 4, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_wrap_and_compare_over_their_whole_range(dtype: type) -> None:
    name = np.dtype(dtype).name
    top = np.iinfo(dtype).max
    a: np.ndarray = np.array([0, 1, top, top // 2 + 1], dtype)
    b: np.ndarray = np.array([1, top, top, 1], dtype)
    for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Max", np.maximum)):
        text = f"g ({name}[4] a, {name}[4] b) => ({name}[4] y) {{ y = {op} (a, b) }}"
        np.testing.assert_array_equal(run(text, {"a": a, "b": b}), function(a, b))
    less = run(f"g ({name}[4] a, {name}[4] b) => (bool[4] y) {{ y = Less (a, b) }}", {"a": a, "b": b})
    np.testing.assert_array_equal(less, a < b)


def test_a_table_is_looked_up_by_id() -> None:
    table, ids = floats(10, 4), np.array([[3, 9], [0, 3]])
    text = "g (int64[2,2] i) => (float[2,2,4] y) { y = Gather (t, i) }"
    np.testing.assert_array_equal(run(text, {"i": ids}, {"t": table}), table[ids])


@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("queries", [1, 4])
def test_causal_attention_counts_the_cache(past: int, queries: int) -> None:
    q, k, v = floats(1, 2, queries, 8), floats(1, 2, queries, 8), floats(1, 2, queries, 8)
    pk, pv = floats(1, 2, past, 8), floats(1, 2, past, 8)
    size = f"float[1,2,{queries},8]"
    cache = f", float[1,2,{past},8] pk, float[1,2,{past},8] pv" if past else ""
    call = "(q, k, v, , pk, pv)" if past else "(q, k, v)"
    text = f"g ({size} q, {size} k, {size} v{cache}) => ({size} y) {{ y = Attention <is_causal = 1> {call} }}"
    keys, values = np.concatenate((pk, k), 2), np.concatenate((pv, v), 2)
    scores = q @ keys.transpose(0, 1, 3, 2) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((queries, past + queries)), past) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ values
    got = run(text, {"q": q, "k": k, "v": v, "pk": pk, "pv": pv})
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_equal_pytorchs(operator: str, direction: str) -> None:
    both = 2 if direction == "bidirectional" else 1
    gates, order = {"RNN": (1, [0]), "GRU": (3, [1, 0, 2]), "LSTM": (4, [0, 3, 1, 2])}[operator]
    layer: Any = getattr(torch.nn, operator)(5, 7, bidirectional=both == 2)
    x = floats(6, 2, 5)

    def weight(kind: str, d: int) -> np.ndarray:
        array: np.ndarray = getattr(layer, f"{kind}_l0{'_reverse' if d else ''}").detach().numpy()
        return np.concatenate([array.reshape(gates, 7, *array.shape[1:])[i] for i in order])

    w = np.stack([weight("weight_ih", d) for d in range(both)])
    r = np.stack([weight("weight_hh", d) for d in range(both)])
    b = np.stack([np.concatenate((weight("bias_ih", d), weight("bias_hh", d))) for d in range(both)])
    extra = ", linear_before_reset = 1" if operator == "GRU" else ""
    text = f"""g (float[6,2,5] x) => (float[6,{both},2,7] y) {{
        y = {operator} <hidden_size = 7, direction = "{direction}"{extra}> (x, w, r, b) }}"""
    given = torch.from_numpy(x).flip(0) if direction == "reverse" else torch.from_numpy(x)
    with torch.no_grad():
        expected = layer(given)[0]
    expected = expected.flip(0) if direction == "reverse" else expected
    expected = expected.reshape(6, 2, both, 7).transpose(1, 2).numpy()
    np.testing.assert_allclose(run(text, {"x": x}, {"w": w, "r": r, "b": b}), expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(5, 9),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    low=st.integers(0, 2),
    high=st.integers(0, 2),
)
def test_any_padding_of_a_convolution(size: int, kernel: int, stride: int, dilation: int, low: int, high: int) -> None:
    x, w = floats(1, 2, size), floats(3, 2, kernel)
    text = f"""g (float[1,2,{size}] x) => (float[1,3,n] y) {{
        y = Conv <strides = [{stride}], dilations = [{dilation}], pads = [{low}, {high}]> (x, w) }}"""
    padded = np.pad(x, ((0, 0), (0, 0), (low, high)))
    starts = range(0, padded.shape[2] - dilation * (kernel - 1), stride)
    expected = np.array(
        [(padded[0, :, s : s + dilation * (kernel - 1) + 1 : dilation] * w).sum((1, 2)) for s in starts]
    ).T
    np.testing.assert_allclose(run(text, {"x": x}, {"w": w})[0], expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(start=st.integers(-9, 9), end=st.integers(-9, 9), step=st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices_are_numpys(start: int, end: int, step: int) -> None:
    x = np.arange(6, dtype=np.float32)
    weights = {"s": np.array([start]), "e": np.array([end]), "a": np.array([0]), "t": np.array([step])}
    got = run("g (float[6] x) => (float[n] y) { y = Slice (x, s, e, a, t) }", {"x": x}, weights)
    stop = None if step < 0 and end < -6 else end
    np.testing.assert_array_equal(got, x[start:stop:step])


def test_bilinear_resize_is_pytorchs_own() -> None:
    x = floats(1, 2, 5, 6)
    text = """g (float[1,2,5,6] x) => (float[1,2,10,9] y) {
        y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , , sizes) }"""
    got = run(text, {"x": x}, {"sizes": np.array([1, 2, 10, 9])})
    expected = F.interpolate(torch.from_numpy(x), (10, 9), mode="bilinear", align_corners=False).numpy()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, -2.25, 3e38], ml_dtypes.bfloat16),
        np.array([0.5, 448, -0.0], ml_dtypes.float8_e4m3fn),
        np.array([1, -8, 7], ml_dtypes.int4),
        np.array([True, False]),
        np.array(7, np.uint64),
    ],
)
def test_arrays_come_back_from_tensors_bit_for_bit(array: np.ndarray) -> None:
    back = to_numpy(to_torch(array), array.dtype)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    np.testing.assert_array_equal(back.astype(np.float64), array.astype(np.float64))
