"""ONNX to GraphIR and back: exact tensors, types, control flow, functions, opset upgrades, round trip."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from graphnet.errors import GraphFormatError, UsageError
from graphnet.ir import fold, tensors
from graphnet.ir.graph import Constant, Dim, Graph, Normal, Uniform, Value, Values
from graphnet.ir.onnx_bridge import from_onnx, to_onnx
from tests.ir.onnx_bridge.models import model, run, shape

MLP = """
mlp (float[batch, 4] x) => (float[batch, 2] y)
<float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3, 2] v = {1,0,0,1,1,1}, int64[2] target = {0, -1}> {
    h = MatMul(x, w)
    r = Relu(h)
    flat = Reshape(r, target)
    y = MatMul(flat, v)
}
"""


def test_every_value_has_its_type() -> None:
    graph = from_onnx(model(MLP))
    graph.validate()
    assert graph.values == {
        "h": Value(dtype="float32", shape=("batch", 3)),
        "r": Value(dtype="float32", shape=("batch", 3)),
        "flat": Value(dtype="float32", shape=("batch", 3)),
        "y": Value(dtype="float32", shape=("batch", 2)),
    }
    assert {name: (w.role, w.dtype) for name, w in graph.weights.items()} == {
        "w": ("parameter", "float32"),
        "v": ("parameter", "float32"),
        "target": ("constant", "int64"),
    }
    assert graph.weights["v"].fill == Values(data=(1.0, 0.0, 0.0, 1.0, 1.0, 1.0))
    assert graph.dims == {"batch": Dim(min=1, max=4096, default=1)}
    assert graph.name == "mlp"


def test_caller_names_roles_fills_and_ranges() -> None:
    graph = from_onnx(
        model(MLP),
        parameters=["w"],
        buffers=["v"],
        fills={"w": Normal(std=0.5), "x": Uniform(low=0.0, high=2.0)},
        dims={"batch": (2, 8, 4)},
        name="other",
        domain="vision",
    )
    assert [w.role for w in graph.weights.values()] == ["parameter", "buffer", "constant"]
    assert graph.weights["w"].fill == Normal(std=0.5)
    assert graph.inputs[0].fill == Uniform(low=0.0, high=2.0)
    assert graph.dims == {"batch": Dim(min=2, max=8, default=4)}
    assert (graph.name, graph.domain) == ("other", "vision")


def test_an_input_with_a_role_is_a_weight_without_data() -> None:
    text = "g (float[n, 4] x, float[4, 3] w) => (float[n, 3] y) { y = MatMul(x, w) }"
    graph = from_onnx(model(text), parameters=["w"], fills={"w": Normal()})
    assert [item.name for item in graph.inputs] == ["x"]
    assert graph.weights["w"].fill == Normal()
    with pytest.raises(GraphFormatError, match="'w' is a weight: it needs a fill"):
        from_onnx(model(text), parameters=["w"])


def test_random_weights_keep_statistics_not_values() -> None:
    rng = np.random.default_rng(0)
    proto = model("g (float[1, 64] x) => (float[1, 64] y) { y = MatMul(x, w) }")
    array = rng.normal(0.5, 2.0, (64, 64)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(array, "w"))
    fill = from_onnx(proto, weights="random").weights["w"].fill
    assert isinstance(fill, Normal)
    assert fill.mean == pytest.approx(array.mean(), rel=1e-5)
    assert fill.std == pytest.approx(array.std(), rel=1e-5)
    exact = from_onnx(proto).materialize()["w"]
    np.testing.assert_array_equal(exact, array)


def test_unknown_treatment_of_weights_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="weights='nearly' is unknown; use exact or random"):
        from_onnx(model(MLP), weights="nearly")


def test_indices_stay_within_the_tables_they_index() -> None:
    text = """g (int64[batch, seq] ids) => (float[batch, seq, 4] y) {
        wide = Cast <to = 7> (ids)
        a = Gather <axis = 0> (table, ids)
        b = Gather <axis = 0> (small, wide)
        y = Add(a, b)
    }"""
    proto = model(text)
    for name, rows in (("table", 30), ("small", 7)):
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros((rows, 4), np.float32), name))
    graph = from_onnx(proto, dims={"batch": (1, 4, 4), "seq": (1, 9, 9)})
    assert graph.inputs[0].fill == Uniform(low=0, high=6)
    ids = tensors.inputs(graph)["ids"]
    assert (ids.min(), ids.max()) == (0, 6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint16", "bool", "int4", "float8e4m3fn"])
def test_tensors_survive_both_ways(dtype: str) -> None:
    array = np.array([[0, 1, 2], [3, 1, 0]]).astype(tensors.numpy_dtype(dtype))
    proto = numpy_helper.from_array(array, "c")
    graph_proto = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", proto.data_type, [2, 3])],
        [proto],
    )
    graph = from_onnx(helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 23)]))
    back = graph.materialize()["c"]
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    again = from_onnx(to_onnx(graph))
    assert again.weights == graph.weights


@pytest.mark.parametrize("storage", ["raw_data", "int32_data"])
def test_bfloat16_of_either_storage_is_exact(storage: str) -> None:
    """onnx#6646."""
    array = np.array([[0.25, 0.5], [1, 2]], ml_dtypes.bfloat16)
    proto = TensorProto(name="c", data_type=TensorProto.BFLOAT16, dims=[2, 2])
    if storage == "raw_data":
        proto.raw_data = array.tobytes()
    else:
        proto.int32_data.extend(array.view(np.uint16).reshape(-1).tolist())
    nodes = [helper.make_node("Identity", ["c"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [2, 2])]
    graph = from_onnx(helper.make_model(helper.make_graph(nodes, "g", [], outputs, [proto])))
    assert graph.weights["c"].fill == Values(data=(0.25, 0.5, 1.0, 2.0))


def test_nan_and_infinity_are_kept() -> None:
    proto = model("g (float[3] x) => (float[3] y) { y = Add(x, c) }")
    array = np.array([np.nan, np.inf, -np.inf], np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(array, "c"))
    graph = from_onnx(proto)
    assert graph.weights["c"].fill == Values(data=("nan", "inf", "-inf"))
    np.testing.assert_array_equal(graph.materialize()["c"], array)


@pytest.mark.parametrize(
    ("attribute", "dtype", "data"),
    [
        ("value_int = 3", "int64", (3,)),
        ("value_ints = [1, 2]", "int64", (1, 2)),
        ("value_float = 0.5", "float32", (0.5,)),
        ("value_floats = [0.5, 1.5]", "float32", (0.5, 1.5)),
        ('value_string = "a"', "string", ("a",)),
        ('value_strings = ["a", "b"]', "string", ("a", "b")),
        ("value = int32[2] {4, 5}", "int32", (4, 5)),
    ],
)
def test_constant_nodes_become_weights(attribute: str, dtype: str, data: tuple[object, ...]) -> None:
    proto = model(f"g () => (float y) {{ c = Constant <{attribute}> () y = Identity(c) }}")
    proto.graph.output[0].ClearField("type")
    graph = from_onnx(proto)
    assert (graph.weights["c"].dtype, graph.weights["c"].role) == (dtype, "constant")
    assert graph.weights["c"].fill == Values(data=data)  # type: ignore[arg-type]
    assert [node.op for node in graph.nodes] == ["Identity"]


def test_sparse_initializer_becomes_dense() -> None:
    values = numpy_helper.from_array(np.array([5.0, 7.0], np.float32), "s")
    indices = numpy_helper.from_array(np.array([1, 5], np.int64), "i")
    proto = model("g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, s) }")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    np.testing.assert_array_equal(from_onnx(proto).materialize()["s"], [[0, 5, 0], [0, 0, 7]])


def test_outputs_that_no_node_computes_get_an_identity() -> None:
    proto = model(
        "g (float[2] x) => (float[2] x, float[2] c, float[2] y, float[2] y) <float[2] c = {1, 2}> { y = Neg(x) }"
    )
    graph = from_onnx(proto)
    graph.validate()
    assert [node.op for node in graph.nodes] == ["Neg", "Identity", "Identity", "Identity"]
    x = np.array([3, 4], np.float32)
    for found, expected in zip(run(graph, x=x), [x, [1, 2], -x, -x], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_empty_dimensions_with_allowzero() -> None:
    """ort#28449."""
    text = """g (float[0, 8, 2] x) => (float[a, b, c] y) <int64[3] s = {4, 2, -1}, int64[3] t = {0, 0, 4}> {
        u = Reshape(x, s)
        y = Reshape <allowzero = 1> (u, t)
    }"""
    graph = from_onnx(model(text))
    assert (shape(graph, "u"), shape(graph, "y")) == ((4, 2, 0), (0, 0, 4))


def test_custom_domains_are_kept() -> None:
    proto = model("g (float[n, 3] x) => (float[n, 3] y) { h = Relu(x) y = Neg(h) }")
    proto.graph.node[0].domain, proto.graph.node[0].op_type = "com.example", "Fancy"
    proto.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(GraphFormatError, match=r"type of .h. is unknown: node .Fancy. is com\.example::Fancy"):
        from_onnx(proto)
    proto.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, ["n", 3]))
    graph = from_onnx(proto)
    assert (graph.nodes[0].domain, graph.nodes[0].op) == ("com.example", "Fancy")
    assert fold.clean(graph).nodes == graph.nodes
    assert [item.domain for item in to_onnx(graph).opset_import] == ["", "com.example"]


def test_squeeze_axes_attribute_is_upgraded() -> None:
    """tvm#19965."""
    proto = model("g (float[1, 3] x) => (float[3] y) { y = Squeeze <axes = [0]> (x) }", opset=11, ir_version=6)
    graph = from_onnx(proto)
    assert shape(graph, "y") == (3,)
    (node,) = graph.nodes
    assert len(node.inputs) == 2
    assert graph.weights[node.inputs[1]].fill == Values(data=(0,))


def test_reduce_axes_come_from_the_input() -> None:
    """openvino#25169."""
    graph = from_onnx(
        model("g (float[2, 3, 4, 5] x) => (float[a, b, c, d] y) <int64[2] axes = {2, 3}> { y = ReduceMean(x, axes) }")
    )
    assert shape(graph, "y") == (2, 3, 1, 1)


def test_conversion_keeps_large_weights() -> None:
    array = np.arange(4096, dtype=np.float32).reshape(1, 64, 64)
    proto = model("g (float[64, 64] x) => (float[64, 64] y) { s = Squeeze <axes = [0]> (w) y = MatMul(x, s) }", 11, 6)
    proto.graph.initializer.append(numpy_helper.from_array(array, "w"))
    np.testing.assert_array_equal(from_onnx(proto).materialize()["w"], array)
    assert proto.opset_import[0].version == 11, "the caller's model is left alone"


def test_newer_opsets_come_down_where_nothing_changed() -> None:
    graph = from_onnx(model("g (float[n] x) => (float[n] y) { r = Relu(x) y = Cast <to = 1> (r) }", opset=25))
    assert [node.op for node in graph.nodes] == ["Relu", "Cast"]
    with pytest.raises(GraphFormatError, match="opset 25 could not be converted to 23"):
        from_onnx(model("g (float[n] x) => (float[n] y) { y = Swish(x) }", opset=25))


def test_old_scan_is_refused() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Relu(x) }", opset=8, ir_version=3)
    proto.graph.node[0].op_type = "Scan"
    with pytest.raises(GraphFormatError, match="Scan of opset 8"):
        from_onnx(proto)


def test_add_of_an_empty_tensor() -> None:
    """onnx#6294: data propagation through this crashed a C++ checker."""
    graph = from_onnx(model("g () => (int64[a] y) <int64[0] e = {}, int64[1] one = {1}> { y = Add(e, one) }"))
    assert shape(fold.clean(graph), "y") == (0,)


def test_double_stays_double() -> None:
    """ort#10936."""
    text = """g (double[2, 2, 2, 1, 2] x) => (double[2, 2, 2, 1, 2] y) <double low = {-1}, double high = {1}> {
        r = Relu(x)
        y = Clip(r, low, high)
    }"""
    graph = from_onnx(model(text))
    assert {value.dtype for value in graph.values.values()} == {"float64"}


def test_unnamed_sizes_get_symbols() -> None:
    graph = from_onnx(model("g (float[?, 3] x, float[?, 3] z) => (float[?, 3] y) { y = Concat <axis = 0> (x, z) }"))
    assert [item.shape for item in graph.inputs] == [("x_dim0", 3), ("z_dim0", 3)]
    assert shape(graph, "y") == ("x_dim0 + z_dim0", 3)


def test_sizes_only_a_run_determines_are_declared() -> None:
    graph = from_onnx(model("g (float[n] x) => (int64[1, k] y) { y = NonZero(x) }"))
    assert shape(graph, "y") == (1, "k")
    assert graph.dims["k"].data_dependent
    assert not graph.dims["n"].data_dependent


def test_symbolic_image_sizes_match_real_ones() -> None:
    text = """g (float[batch, 3, height, width] x) => (float[a, b, c, d] y) <int64[1] half = {2}> {
        a1 = Conv <strides = [2, 2], pads = [3, 3, 3, 3]> (x, w)
        a2 = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (a1)
        a3 = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (a2)
        a4 = ConvTranspose <strides = [2, 2], kernel_shape = [2, 2]> (a3, v)
        a5 = DepthToSpace <blocksize = 2> (a4)
        a6, a7 = Split <axis = 1, num_outputs = 2> (a5)
        y = Concat <axis = 2> (a6, a7)
    }"""
    proto = model(text)
    rng = np.random.default_rng(1)
    proto.graph.initializer.append(numpy_helper.from_array(rng.normal(size=(8, 3, 7, 7)).astype(np.float32), "w"))
    proto.graph.initializer.append(numpy_helper.from_array(rng.normal(size=(8, 16, 2, 2)).astype(np.float32), "v"))
    graph = from_onnx(proto, dims={"batch": (1, 4), "height": (32, 256), "width": (32, 256)})
    assert not any(dim.data_dependent for dim in graph.dims.values())
    evaluator = ReferenceEvaluator(to_onnx(graph))
    names = ["a1", "a2", "a3", "a4", "a5", "y"]
    for batch, height, width in ((1, 32, 33), (2, 37, 64), (3, 50, 41)):
        found: Any = evaluator.run(names, {"x": np.zeros((batch, 3, height, width), np.float32)})
        bound = graph.bind(batch=batch, height=height, width=width)
        assert [shape(bound, name) for name in names] == [array.shape for array in found]


def round_trip(graph: Graph) -> None:
    again = from_onnx(to_onnx(graph), name=graph.name)
    assert again.values == graph.values
    assert again.structure_hash() == graph.structure_hash()


def test_round_trip_keeps_structure_and_types() -> None:
    graph = from_onnx(model(MLP))
    round_trip(graph)
    round_trip(fold.clean(graph))


def test_export_names_types_and_tensors() -> None:
    graph = from_onnx(model(MLP), parameters=["w", "v"], fills={"w": Normal(), "v": Constant(value=2.0)})
    proto = to_onnx(graph, {**graph.materialize(7), "v": np.full((3, 2), 5, np.float32)})
    onnx.checker.check_model(proto, full_check=True)
    assert [info.name for info in proto.graph.value_info] == ["h", "r", "flat"]
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    np.testing.assert_array_equal(arrays["w"], graph.materialize(7)["w"])
    np.testing.assert_array_equal(arrays["v"], np.full((3, 2), 5))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("g (float[2] x) => (float[2] y) { y = Relu(z) }", "'z' is used but not defined before"),
        ("g (float[2] x) => (float[2] y) { y = Relu(x) y = Neg(x) }", "'y' is defined twice"),
        ("g (float[2] x) => (float[2] y) { y = NoSuch(x) }", "ONNX has no operator 'NoSuch' at opset 23"),
        ("g (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }", "node 'Add' .Add. is invalid"),
        ("g (float[2] x) => (float[2] y) { y = Softmax <axis = 5> (x) }", "node 'Softmax' .Softmax. is invalid"),
        ("g (float[2] x) => (float[2] z) { y = Relu(x) }", "'z' is used but not defined before"),
        ("g (seq(float[2]) x) => (float[2] y) { y = Relu(x) }", "'x' is a sequence: only tensors are supported"),
        ("g (optional(float[2]) x) => (float[2] y) { y = Relu(x) }", "'x' is a optional: only tensors"),
        ("g (int64[2] x) => (int64[2] y) { y = Softmax(x) }", "node 'Softmax' .Softmax. is invalid"),
    ],
)
def test_bad_models_name_the_cause(text: str, cause: str) -> None:
    with pytest.raises(GraphFormatError, match=cause):
        from_onnx(model(text))


def test_bad_inputs_name_the_cause() -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3
    with pytest.raises(GraphFormatError, match="negative dimension -3"):
        from_onnx(proto)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(GraphFormatError, match="input 'x' has no shape"):
        from_onnx(proto)
    proto.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(GraphFormatError, match="element type 99 is not supported"):
        from_onnx(proto)


def test_bad_tensors_name_the_cause() -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Add(x, c) }")
    tensor = TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[2], raw_data=b"123")
    proto.graph.initializer.append(tensor)
    with pytest.raises(GraphFormatError, match=r"tensor .c. of .2."):
        from_onnx(proto)
    proto.graph.initializer[0].dims[0] = -1
    with pytest.raises(GraphFormatError, match="negative dimension"):
        from_onnx(proto)
