"""ONNX Runtime: values, thread and option policy, and the map from fused kernels to GraphIR nodes."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.onnxruntime import OnnxRuntime
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors
from graphnet.ir.graph import Fill, Graph, Input, Node, Normal, Uniform, Value, Weight


def conv_net() -> Graph:
    """Conv, BatchNormalization, Relu, GlobalAveragePool on 1x8x16x16."""

    def per_channel(fill: Fill) -> Weight:
        return Weight(dtype="float32", shape=(16,), fill=fill)

    shape = (1, 16, 14, 14)
    return Graph(
        name="net", inputs=(Input(name="x", dtype="float32", shape=(1, 8, 16, 16)),), outputs=("y",),
        weights={
            "w": Weight(dtype="float32", shape=(16, 8, 3, 3), fill=Normal(std=0.1)),
            "scale": per_channel(Normal(mean=1.0, std=0.1)), "bias": per_channel(Normal()),
            "mean": per_channel(Normal()), "var": per_channel(Uniform(low=0.5, high=1.5)),
        },
        nodes=(
            Node(op="Conv", name="conv", inputs=("x", "w"), outputs=("c",)),
            Node(op="BatchNormalization", name="norm", inputs=("c", "scale", "bias", "mean", "var"), outputs=("n",)),
            Node(op="Relu", name="act", inputs=("n",), outputs=("r",)),
            Node(op="GlobalAveragePool", name="pool", inputs=("r",), outputs=("y",)),
        ),
        values={
            "c": Value(dtype="float32", shape=shape), "n": Value(dtype="float32", shape=shape),
            "r": Value(dtype="float32", shape=shape), "y": Value(dtype="float32", shape=(1, 16, 1, 1)),
        },
    )  # fmt: skip


def by_hand(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64)[0], (3, 3), axis=(1, 2))
    conv = np.einsum("cyxhw,ochw->oyx", windows, w["w"].astype(np.float64))
    norm = (conv - w["mean"][:, None, None]) / np.sqrt(w["var"][:, None, None] + 1e-5)
    norm = norm * w["scale"][:, None, None] + w["bias"][:, None, None]
    pooled: np.ndarray = np.maximum(norm, 0).mean((1, 2)).reshape(1, 16, 1, 1)
    return pooled


def test_values_against_a_hand_calculation() -> None:
    graph, target = conv_net(), Target()
    compiler = OnnxRuntime()
    assert compiler.configure(target)["threads"] == 1
    weights, inputs = tensors.weights(graph, 3), tensors.inputs(graph, 3)
    program = compiler.compile(graph, weights, target)
    program.bind(inputs)
    program.run()
    [y] = program.outputs()
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, by_hand(inputs["x"], weights), rtol=1e-4, atol=1e-5)


def test_outputs_follow_new_inputs_and_are_copies() -> None:
    graph, target = conv_net(), Target()
    weights = tensors.weights(graph, 0)
    program = OnnxRuntime().compile(graph, weights, target)
    found = []
    for seed in (1, 2):
        inputs = tensors.inputs(graph, seed)
        program.bind(inputs)
        program.run()
        found.append((program.outputs()[0], by_hand(inputs["x"], weights)))
    for actual, expected in found:
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
def test_kernels_cover_every_node_once(level: str) -> None:
    graph, target = conv_net(), Target(options={"level": level})
    program = OnnxRuntime().compile(graph, tensors.weights(graph, 0), target)
    assert isinstance(program, Profiled)
    program.bind(tensors.inputs(graph, 0))
    kernels = program.kernels()
    covered = [name for kernel in kernels for name in kernel.nodes]
    assert sorted(covered) == ["act", "conv", "norm", "pool"]
    assert all(kernel.total_us > 0 for kernel in kernels)
    if level == "all":
        assert any(set(kernel.nodes) == {"conv", "norm", "act"} for kernel in kernels)


def test_product_and_bias_as_a_gemm_between_reshapes() -> None:
    """ONNX Runtime names the Reshape after the value; the work of both nodes is the Gemm's all the same."""
    graph = Graph(
        name="g", inputs=(Input(name="x", dtype="float32", shape=(2, 4, 8)),), outputs=("z",),
        weights={
            "w": Weight(dtype="float32", shape=(8, 16), fill=Normal()),
            "b": Weight(dtype="float32", shape=(16,), fill=Normal()),
        },
        nodes=(
            Node(op="MatMul", name="product", inputs=("x", "w"), outputs=("y",)),
            Node(op="Add", name="bias", inputs=("y", "b"), outputs=("z",)),
        ),
        values={name: Value(dtype="float32", shape=(2, 4, 16)) for name in "yz"},
    )  # fmt: skip
    OnnxRuntime().configure(Target())
    program = OnnxRuntime().compile(graph, graph.materialize(0), Target())
    assert isinstance(program, Profiled)
    program.bind(tensors.inputs(graph, 0))
    covered = {kernel.name.partition(":")[0]: kernel.nodes for kernel in program.kernels() if kernel.nodes}
    assert covered == {"Gemm": ("product", "bias")}


def test_absent_device_says_so() -> None:
    with pytest.raises(DeviceNotPresent, match="CUDAExecutionProvider is not in this build"):
        OnnxRuntime().configure(Target(device="cuda"))
    with pytest.raises(DeviceNotPresent, match="'metal'"):
        OnnxRuntime().configure(Target(device="metal"))


def test_unknown_level_lists_the_known() -> None:
    with pytest.raises(UsageError, match="disable, basic, extended or all"):
        OnnxRuntime().configure(Target(options={"level": "99"}))


def test_unknown_operator_is_unsupported() -> None:
    node = Node(op="Mystery", name="n", inputs=("x",), outputs=("y",), domain="com.example")
    graph = Graph(
        name="g", inputs=(Input(name="x", dtype="float32", shape=(2,)),), outputs=("y",), nodes=(node,),
        values={"y": Value(dtype="float32", shape=(2,))},
    )  # fmt: skip
    with pytest.raises(UnsupportedOp, match=r"onnxruntime: .*Mystery"):
        OnnxRuntime().compile(graph, {}, Target())


def test_registry_knows_it() -> None:
    assert compilers.get("onnxruntime").name == "onnxruntime"


def test_scalars_and_half_bytes_are_bound_as_they_are() -> None:
    values = {"b": Value(dtype="int8", shape=(5,)), "y": Value(dtype="int4", shape=(5,))}
    nodes = (
        Node(op="Cast", name="widen", inputs=("a",), outputs=("b",), attrs={"to": 3}),
        Node(op="Cast", name="narrow", inputs=("b",), outputs=("y",), attrs={"to": 22}),
        Node(op="Einsum", name="square", inputs=("s", "s"), outputs=("z",), attrs={"equation": ",->"}),
    )
    graph = Graph(
        name="g", inputs=(Input(name="a", dtype="int4", shape=(5,)), Input(name="s", dtype="float32", shape=())),
        outputs=("y", "z"), nodes=nodes, values={**values, "z": Value(dtype="float32", shape=())},
    )  # fmt: skip
    program = OnnxRuntime().compile(graph, {}, Target())
    given = np.array([-8, -1, 0, 3, 7], tensors.numpy_dtype("int4"))
    program.bind({"a": given, "s": np.float32(3)})  # type: ignore[dict-item]
    program.run()
    y, z = program.outputs()
    assert (y.dtype, z.shape, z.dtype) == (given.dtype, (), np.dtype(np.float32))
    assert y.astype(int).tolist() == [-8, -1, 0, 3, 7]
    assert z == 9
