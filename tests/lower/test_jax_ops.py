from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet.compilers import Target
from graphnet.compilers.jax.compiler import Jax
from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph
from graphnet.lower.jax.graph import lower
from graphnet.lower.jax.ops_all import JAX

OPSET = 23
TENSORS_ONLY = frozenset({"TfIdfVectorizer", "ImageDecoder", "RegexFullMatch"})
"""TfIdfVectorizer is a gap of the conformance table; the others work on strings and encoded files."""


@pytest.fixture(scope="module", autouse=True)
def _configured() -> None:
    Jax().configure(Target())


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {OPSET}]>\n{text}')


def run(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray] | None = None
) -> Sequence[np.ndarray]:
    graph = Graph.from_onnx(model)
    program = Jax().compile(graph, graph.materialize() | dict(weights or {}), Target())
    program.bind(inputs)
    program.run()
    return program.outputs()


def rand(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def check(text: str, inputs: Mapping[str, np.ndarray], rtol: float = 1e-5) -> Sequence[np.ndarray]:
    """Equal to ONNX's reference evaluator in values, shapes and dtypes."""
    model = parsed(text)
    results = run(model, inputs)
    for got, expected in zip(results, ReferenceEvaluator(model).run(None, dict(inputs)), strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
    return results


def _schemas() -> list[str]:
    names = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    kept = []
    for name in sorted(names):
        try:
            schema = onnx.defs.get_schema(name, OPSET)
        except onnx.defs.SchemaError:
            continue
        types = {kind for item in [*schema.inputs, *schema.outputs] for kind in item.types}
        sequences = any(kind.startswith(("seq", "optional")) for kind in types) and name not in (
            "Identity",
            "If",
            "Loop",
        )
        strings = types and all("string" in k for item in schema.inputs[:1] for k in item.types) and schema.inputs
        if not (schema.deprecated or sequences or strings or name in TENSORS_ONLY):
            kept.append(name)
    return kept


def test_default_domain_is_covered() -> None:
    assert [name for name in _schemas() if ("", name) not in JAX.operators] == []


def _plain(default: Any) -> Any:
    """ONNX's default as Python spells it: text for bytes, a tuple for a list."""
    if isinstance(default, bytes):
        return default.decode()
    return tuple(_plain(item) for item in default) if isinstance(default, list) else default


RULES = sorted(op for domain, op in JAX.operators if domain == "" and op not in JAX.simple)


@pytest.mark.parametrize("op", RULES)
def test_signature_is_that_of_onnx(op: str) -> None:
    rule = JAX.operators["", op]
    schema = onnx.defs.get_schema(op, OPSET)
    parameters = inspect.signature(rule).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    keywords = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "context"}
    assert len(positional) == len(schema.inputs)
    assert positional == [item.name for item in schema.inputs]
    assert set(keywords) == set(schema.attributes)
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name:
            default = onnx.helper.get_attribute_value(attribute.default_value)
            assert keywords[name] == _plain(default), f"{op}.{name}"


def test_reshape_with_minus_one_then_zero_sizes() -> None:
    (y,) = run(
        parsed(
            "g (float[0,8,2] x) => (float[0,0,4] y) <int64[3] a = {4,2,-1}, int64[3] b = {0,0,4}>"
            "{ t = Reshape(x, a)  y = Reshape<allowzero=1>(t, b) }"
        ),
        {"x": np.zeros((0, 8, 2), np.float32)},
    )
    assert y.shape == (0, 0, 4)


def test_if_whose_branches_are_single_constants() -> None:
    text = """g (bool c) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] a) { a = Constant <value = float[2] {1, 2}> () },
        else_branch = e () => (float[2] b) { b = Constant <value = float[2] {3, 4}> () } > }"""
    for condition, expected in ((True, [1, 2]), (False, [3, 4])):
        (y,) = run(parsed(text), {"c": np.array(condition)})
        np.testing.assert_array_equal(y, np.array(expected, np.float32))


LOOP = """g (float[2] x) => (float[2] y, float[{trips},2] s) <int64 m = {{{trips}}}, bool c = {{1}}> {{
    y, s = Loop (m, c, x) <body = b (int64 i, bool k, float[2] v) => (bool k2, float[2] v2, float[2] o) {{
        k2 = Identity(k)  v2 = Add(v, v)  o = Identity(v2) }}> }}"""


@pytest.mark.parametrize("trips", [0, 3])
def test_loop_with_a_known_trip_count(trips: int) -> None:
    y, s = run(parsed(LOOP.format(trips=trips)), {"x": np.array([1, 3], np.float32)})
    np.testing.assert_array_equal(y, np.array([1, 3], np.float32) * 2**trips)
    rows = [np.array([1, 3], np.float32) * 2 ** (i + 1) for i in range(trips)]
    np.testing.assert_array_equal(s, np.array(rows, np.float32).reshape(trips, 2))


def test_loop_that_ends_on_its_condition() -> None:
    text = """g (float x, int64 m) => (float y) <bool c = {1}, float limit = {100}> {
        y = Loop (m, c, x) <body = b (int64 i, bool k, float v) => (bool k2, float v2) {
            v2 = Add(v, v)  k2 = Less(v2, limit) }> }"""
    for trips, expected in ((50, 128.0), (2, 4.0), (0, 1.0)):
        (y,) = run(parsed(text), {"x": np.array(1, np.float32), "m": np.array(trips)})
        assert y == expected


def test_loop_with_stacked_outputs_of_unknown_length_is_unsupported() -> None:
    text = """g (float x, int64 m) => (float y, float[n] s) <bool c = {1}> {
        y, s = Loop (m, c, x) <body = b (int64 i, bool k, float v) => (bool k2, float v2, float o) {
            k2 = Identity(k)  v2 = Add(v, v)  o = Identity(v2) }> }"""
    with pytest.raises(UnsupportedOp, match=r"Loop.*depends on data.*\(node '"):
        run(parsed(text), {"x": np.array(1, np.float32), "m": np.array(3)})


def test_scan_backward_over_the_second_axis() -> None:
    text = """g (float[2] h, float[2,3] x) => (float[2] f, float[2,3] y) {
        f, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],
            scan_output_directions = [1],
            body = b (float[2] s, float[2] r) => (float[2] s2, float[2] o) { s2 = Add(s, r)  o = Identity(s2) }> (h, x)
        }"""
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    f, y = run(parsed(text), {"h": np.zeros(2, np.float32), "x": x})
    np.testing.assert_array_equal(y, np.array([[6, 5, 3], [15, 11, 6]], np.float32))
    np.testing.assert_array_equal(f, np.array([6, 15], np.float32))


def test_min_broadcasts() -> None:
    x, y = rand(30), rand(1, seed=1)
    (z,) = run(parsed("g (float[30] x, float[1] y) => (float[30] z) { z = Min(x, y) }"), {"x": x, "y": y})
    np.testing.assert_array_equal(z, np.minimum(x, y))


def test_reduce_sum_then_depth_to_space() -> None:
    check(
        "g (float[1,8,2,3] x) => (float[1,2,4,2] y) <int64[1] a = {3}>"
        "{ s = ReduceSum<keepdims=1>(x, a)  y = DepthToSpace<blocksize=2>(s) }",
        {"x": rand(1, 8, 2, 3)},
    )


def test_grouped_transposed_convolution_with_bias() -> None:
    x, w, b = rand(1, 4, 5, 5), rand(4, 3, 3, 3, seed=1), rand(6, seed=2)
    text = """g (float[1,4,5,5] x, float[4,3,3,3] w, float[6] b) => (float[1,6,9,9] y)
        { y = ConvTranspose<group=2, strides=[2,2], pads=[1,1,1,1]>(x, w, b) }"""
    (y,) = run(parsed(text), {"x": x, "w": w, "b": b})
    full = np.zeros((1, 6, 11, 11), np.float32)
    for channel in range(4):
        for i in range(5):
            for j in range(5):
                group = channel // 2
                full[0, 3 * group : 3 * group + 3, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += (
                    x[0, channel, i, j] * w[channel]
                )
    np.testing.assert_allclose(y, full[:, :, 1:-1, 1:-1] + b.reshape(1, -1, 1, 1), rtol=1e-5, atol=1e-5)


def test_relu_then_clip_runs_in_float64() -> None:
    x = np.random.default_rng(0).standard_normal((2, 2, 2, 1, 2))
    text = """g (double[2,2,2,1,2] x) => (double[2,2,2,1,2] y) <double l = {-1.0}, double h = {1.0}>
        { r = Relu(x)  y = Clip(r, l, h) }"""
    (y,) = run(parsed(text), {"x": x})
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, np.clip(np.maximum(x, 0), -1, 1))


def test_nan_policy() -> None:
    x = np.array([np.nan, 1, np.nan, -2], np.float32)
    text = """g (float[4] x, float n) => (float[4] r, float[4] s, float m, float[4] c)
        <int64[1] a = {0}, float h = {1.0}>
        { r = Relu(x)  s = Sign(x)  m = ReduceMax<keepdims=0>(x, a)  c = Clip(x, n, h) }"""
    r, s, m, c = run(parsed(text), {"x": x, "n": np.array(np.nan, np.float32)})
    np.testing.assert_array_equal(r, np.array([np.nan, 1, np.nan, 0], np.float32))
    np.testing.assert_array_equal(s, np.array([np.nan, 1, np.nan, -1], np.float32))
    assert np.isnan(m)
    assert np.isnan(c).all()


def test_reduce_mean_takes_axes_as_an_input() -> None:
    x = rand(2, 3, 4, 5)
    text = "g (float[2,3,4,5] x) => (float[2,3,1,1] y) <int64[2] a = {2,3}> { y = ReduceMean(x, a) }"
    (y,) = run(parsed(text), {"x": x})
    np.testing.assert_allclose(y, x.mean((2, 3), keepdims=True), rtol=1e-5)


def test_wide_grouped_convolution_over_one_axis() -> None:
    text = """g (float[1,1024,39] x, float[1024,64,128] w) => (float[1,1024,40] y)
        { y = Conv<group=16, pads=[64,64]>(x, w) }"""
    x, w = rand(1, 1024, 39), rand(1024, 64, 128, seed=1) * np.float32(0.01)
    (y,) = run(parsed(text), {"x": x, "w": w})
    assert y.shape == (1, 1024, 40)
    padded = np.pad(x[0, 64 * 3 : 64 * 4], ((0, 0), (64, 64)))
    expected = [(padded[:, t : t + 128] * w[200]).sum() for t in range(40)]
    np.testing.assert_allclose(y[0, 200], expected, rtol=1e-3, atol=1e-4)


def test_integers_stay_64_bits_wide() -> None:
    text = "g (int64[11] x) => (int64[11] y) <int64 b = {1000000000}> { y = Mul(x, b) }"
    (y,) = run(parsed(text), {"x": np.arange(11)})
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y, np.arange(11) * 10**9)


def test_integer_products_and_their_factored_form() -> None:
    x, y, z, p, q, r = np.random.default_rng(0).integers(-9, 9, (6, 2, 2), np.int32)
    names = dict(zip("xyzpqr", (x, y, z, p, q, r), strict=True))
    head = "g (" + ", ".join(f"int32[2,2] {n}" for n in names) + ") => (int32[2] o) <int64[1] a = {1}>"
    first = f"""{head} {{ b = MatMul(x,y) c = MatMul(x,z) d = MatMul(p,q) e = MatMul(p,r)
        f = Add(b,c) h = Add(f,d) i = Add(h,e) o = ReduceSum<keepdims=0>(i,a) }}"""
    second = f"""{head} {{ b = Add(y,z) c = MatMul(x,b) d = Add(q,r) e = MatMul(p,d) f = Add(c,e)
        o = ReduceSum<keepdims=0>(f,a) }}"""
    expected = (x @ (y + z) + p @ (q + r)).sum(1, dtype=np.int32)
    for text in (first, second):
        (o,) = run(parsed(text), names)
        assert o.dtype == np.int32
        np.testing.assert_array_equal(o, expected)


def test_float32_graphs_stay_float32() -> None:
    text = """g (float[2,3,8,8] x, float[3,3,3,3] w) => (float[2,3] y) <int64[2] a = {2,3}, float k = {0.5}> {
        c = Conv<pads=[1,1,1,1]>(x, w)  g0 = Gelu(c)  s = Softmax<axis=1>(g0)  p = AveragePool<kernel_shape=[2,2]>(s)
        m = Mul(p, k)  h = HardSigmoid(m)  e = Elu(h)  y = ReduceMean<keepdims=0>(e, a) }"""
    graph = Graph.from_onnx(parsed(text))
    lowered = lower(graph, graph.materialize())
    jaxpr = jax.make_jaxpr(lowered.function)(lowered.params, *lowered.inputs)
    assert "f64" not in str(jaxpr)


def test_weights_are_arguments_and_shapes_are_literals() -> None:
    text = """g (float[2,6] x) => (float[3,4] y) <float[2,6] w = {1,2,3,4,5,6,7,8,9,10,11,12}, int64[2] s = {3,4}>
        { t = Add(x, w)  y = Reshape(t, s) }"""
    graph = Graph.from_onnx(parsed(text))
    lowered = lower(graph, graph.materialize())
    assert set(lowered.params) == {"w"}
    closed = jax.make_jaxpr(lowered.function)(lowered.params, *lowered.inputs)
    assert not closed.consts
    assert len(closed.jaxpr.invars) == 2


def test_an_operator_without_a_rule_is_named_with_its_node() -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [
                onnx.helper.make_node(
                    "TfIdfVectorizer",
                    ["x"],
                    ["y"],
                    name="n3",
                    max_gram_length=1,
                    min_gram_length=1,
                    max_skip_count=0,
                    mode="TF",
                    ngram_counts=[0],
                    ngram_indexes=[0],
                    pool_int64s=[1],
                )
            ],
            "g",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [4])],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=10,
    )
    with pytest.raises(UnsupportedOp, match=r"jax: no lowering for ai\.onnx::TfIdfVectorizer \(node 'n3'\)"):
        run(model, {"x": np.zeros(4, np.int64)})


def test_symbolic_shapes_must_be_bound() -> None:
    graph = Graph.from_onnx(parsed("g (float[n] x) => (float[n] y) { y = Relu(x) }"))
    with pytest.raises(UnsupportedOp, match="bind the graph first"):
        lower(graph, {})


def test_data_decides_a_size_that_the_graph_does_not_state() -> None:
    model = parsed("g (float[4] x) => (int64[1,n] y) { y = NonZero(x) }")
    with pytest.raises(UnsupportedOp, match="depends on data"):
        run(model, {"x": rand(4)})


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_shared_keys(kv_heads: int, causal: int) -> None:
    q, k, v = rand(2, 4, 5, 8), rand(2, kv_heads, 7, 8, seed=1), rand(2, kv_heads, 7, 6, seed=2)
    text = f"""g (float[2,4,5,8] q, float[2,{kv_heads},7,8] k, float[2,{kv_heads},7,6] v) => (float[2,4,5,6] y)
        {{ y = Attention<is_causal={causal}>(q, k, v) }}"""
    (y,) = run(parsed(text), {"q": q, "k": k, "v": v})
    for head in range(4):
        group = head * kv_heads // 4
        scores = q[:, head] @ k[:, group].swapaxes(1, 2) / np.sqrt(8)
        if causal:
            scores = np.where(np.tri(5, 7, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = weights / weights.sum(-1, keepdims=True) @ v[:, group]
        np.testing.assert_allclose(y[:, head], expected, rtol=1e-4, atol=1e-5)


def test_a_query_without_keys_yields_zeros() -> None:
    text = """g (float[1,1,2,4] q, float[1,1,3,4] k, float[1,1,3,4] v, bool[2,3] m) => (float[1,1,2,4] y)
        { y = Attention(q, k, v, m) }"""
    mask = np.array([[True, True, False], [False, False, False]])
    (y,) = run(parsed(text), {"q": rand(1, 1, 2, 4), "k": rand(1, 1, 3, 4), "v": rand(1, 1, 3, 4), "m": mask})
    np.testing.assert_array_equal(y[0, 0, 1], np.zeros(4, np.float32))
    assert np.isfinite(y).all()


def test_resize_by_a_whole_factor_needs_no_gather() -> None:
    text = """g (float[1,2,3,3] x) => (float[1,2,6,6] y) <float[4] s = {1.0,1.0,2.0,2.0}>
        { y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , s) }"""
    graph = Graph.from_onnx(parsed(text))
    lowered = lower(graph, graph.materialize())
    assert "gather" not in str(jax.make_jaxpr(lowered.function)(lowered.params, *lowered.inputs))
    x = rand(1, 2, 3, 3)
    (y,) = run(parsed(text), {"x": x})
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_random_numbers_keep_to_their_distribution() -> None:
    text = """g () => (float[10000] n, float[10000] u)
        { n = RandomNormal<shape=[10000], mean=2.0, scale=3.0>()
          u = RandomUniform<shape=[10000], low=-1.0, high=3.0>() }"""
    n, u = run(parsed(text), {})
    assert n.dtype == u.dtype == np.float32
    assert abs(n.mean() - 2) < 0.15
    assert abs(n.std() - 3) < 0.15
    assert -1 <= u.min() < -0.99
    assert 2.99 < u.max() < 3
