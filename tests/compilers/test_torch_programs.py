"""The compilers on PyTorch (`torch`, `inductor`, `reference`) on one small graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
import torch

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.inductor.kernels import assign
from graphnet.compilers.reference import widen, widen_array
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir.graph import Graph

TARGET = Target(threads=1)
TEXT = """<ir_version: 10, opset_import: ["" : 23]>
g (float[2,3] x, int64[2] i) => (float[2,4] y, int64[2] k, float16[2,4] h) {
    t = MatMul (x, w)
    r = Relu (t)
    y = Add (r, b)
    k = Add (i, i)
    h = Cast <to = 10> (y)
}"""
rng = np.random.default_rng(0)
W, B = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
X, IDS = rng.standard_normal((2, 3)).astype(np.float32), np.array([1, 2**40])


def small_graph() -> Graph:
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in (("w", W), ("b", B)))
    return Graph.from_onnx(model)


def run(name: str, target: Target = TARGET) -> tuple[Any, Sequence[np.ndarray]]:
    graph = small_graph()
    compiler = compilers.get(name)
    compiler.preload()
    compiler.configure(target)
    tensors = graph.materialize()
    for array in tensors.values():
        array.flags.writeable = False
    program = compiler.compile(graph, tensors, target)
    program.bind({"x": X, "i": IDS})
    program.run()
    return program, program.outputs()


def expected() -> np.ndarray:
    return np.maximum(X.astype(np.float64) @ W, 0) + B


Programs = dict[str, tuple[Any, Sequence[np.ndarray]]]


@pytest.fixture(scope="module")
def programs() -> Programs:
    """Compiled once: a C++ compiler takes its time."""
    return {name: run(name) for name in ("torch", "inductor")}


@pytest.mark.parametrize("name", ["torch", "inductor"])
def test_outputs_have_the_graphs_order_and_dtypes(programs: Programs, name: str) -> None:
    _, (y, k, h) = programs[name]
    assert [y.dtype.name, k.dtype.name, h.dtype.name] == ["float32", "int64", "float16"]
    np.testing.assert_allclose(y, expected(), rtol=1e-5)
    np.testing.assert_allclose(h, expected(), rtol=1e-2)
    assert k.tolist() == [2, 2**41]


def test_the_reference_is_float64_and_keeps_integers() -> None:
    _, (y, k, h) = run("reference")
    assert [y.dtype.name, k.dtype.name, h.dtype.name] == ["float64", "int64", "float64"]
    np.testing.assert_allclose(y, expected(), rtol=1e-15)
    np.testing.assert_array_equal(h, y)
    assert k.tolist() == [2, 2**41]


def test_running_twice_gives_fresh_outputs_and_leaves_inputs_alone() -> None:
    program, (first, *_) = run("torch")
    x = X.copy()
    program.bind({"x": x, "i": IDS})
    program.run()
    np.testing.assert_array_equal(x, X)
    second = program.outputs()[0]
    second[:] = 0
    np.testing.assert_array_equal(program.outputs()[0], first)


def test_bound_inputs_share_memory_so_that_their_alignment_counts() -> None:
    program, _ = run("torch")
    assert program.inputs[0].data_ptr() == X.ctypes.data


def test_eager_kernels_name_every_node_and_their_operators(programs: Programs) -> None:
    program, _ = programs["torch"]
    assert isinstance(program, Profiled)
    kernels = program.kernels()
    assert {name for kernel in kernels for name in kernel.nodes} == {node.name for node in small_graph().nodes}
    assert all(kernel.total_us > 0 and kernel.calls == 1 for kernel in kernels)
    assert {kernel.name for kernel in kernels} == {"matmul", "relu", "add", "to"}


def test_inductor_kernels_cover_fused_nodes(programs: Programs) -> None:
    program, _ = programs["inductor"]
    kernels = program.kernels()
    nodes = {node.op: node.name for node in small_graph().nodes}
    fused = next(kernel for kernel in kernels if nodes["Relu"] in kernel.nodes)
    assert fused.name.startswith("cpp_fused")
    product = next(kernel for kernel in kernels if kernel.name.startswith("extern_kernels"))
    assert product.nodes == (nodes["MatMul"],)
    assert all(kernel.total_us > 0 for kernel in kernels)


def test_profiled_calls_are_matched_to_kernels_in_order() -> None:
    covered = {
        "extern_kernels.addmm:1": (),
        "cpp_fused_relu_0:2": (),
        "extern_kernels.addmm:3": (),
        "torch.ops.mkldnn._convolution_pointwise.default:4": (),
    }
    events = ["aten::addmm", "graph_0_cpp_fused_relu_0", "aten::copy_", "aten::addmm", "mkldnn::_convolution_pointwise"]
    assert assign(events, covered) == [
        "extern_kernels.addmm:1",
        "cpp_fused_relu_0:2",
        "aten::copy_",
        "extern_kernels.addmm:3",
        "torch.ops.mkldnn._convolution_pointwise.default:4",
    ]
    assert assign(["aten::convolution"], {"cpp_fused_0:1": (), "extern_kernels.convolution:2": ()}) == [
        "aten::convolution"
    ]


def test_settings_are_applied_and_reported() -> None:
    settings = compilers.get("torch").configure(Target(threads=1))
    assert settings["threads"] == torch.get_num_threads() == 1
    assert settings["precision"] == torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_tf32
    frozen = compilers.get("inductor").configure(Target(options={"freezing": True}))
    assert (frozen["freezing"], frozen["fullgraph"]) == (True, True)
    assert compilers.get("inductor").configure(Target(options={"freezing": "false"}))["freezing"] is False


def test_inductors_own_settings_pass_through() -> None:
    from torch._inductor import config

    before = config.max_fusion_size
    try:
        compilers.get("inductor").configure(
            Target(options={"config.max_fusion_size": 3, "config.cpp.min_chunk_size": 99})
        )
        assert (config.max_fusion_size, config.cpp.min_chunk_size) == (3, 99)
    finally:
        config.load_config({"max_fusion_size": before, "cpp.min_chunk_size": 512})


@pytest.mark.parametrize("options", [{"freezing": "perhaps"}, {"mode": "fastest"}, {"config.no_such_thing": 1}])
def test_options_that_do_not_exist_are_usage_errors(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"inductor: option|torch._inductor.config has no 'no_such_thing'"):
        compilers.get("inductor").configure(Target(options=dict(options)))


@pytest.mark.parametrize(
    ("device", "words"),
    [("cuda", "no CUDA device.*NVIDIA GPU"), ("metal", "no Metal device.*Apple"), ("tpu", "no device 'tpu'")],
)
def test_an_absent_device_is_named(device: str, words: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.fail("this machine has the device: run the accelerator tests instead")
    with pytest.raises(DeviceNotPresent, match=words):
        compilers.get("torch").configure(Target(device=device))


@pytest.mark.parametrize("name", ["torch", "inductor", "reference"])
def test_an_operator_without_a_rule_is_unsupported(name: str) -> None:
    text = """<ir_version: 10, opset_import: ["" : 23, "com.acme" : 1]>
    g (float[2] x) => (float[2] y) { y = com.acme.Foo (x) }"""
    graph = Graph.from_onnx(onnx.parser.parse_model(text))
    compiler = compilers.get(name)
    compiler.configure(TARGET)
    with pytest.raises(UnsupportedOp, match=r"torch: no lowering for com\.acme::Foo"):
        compiler.compile(graph, {}, TARGET)


def test_widening_reaches_attributes_and_nested_graphs() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23]> g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] a) {
                k = Constant <value = float[2] {0.1, 0.2}> ()
                d = Cast <to = 10> (k)
                f = CastLike (d, x)
                a = Add (f, x)
            },
            else_branch = e () => (float[2] b) { b = Identity (x) }
        >
    }"""
    graph = Graph.from_onnx(onnx.parser.parse_model(text))
    wide = widen(graph)
    assert wide.type_of("x").dtype == wide.type_of("y").dtype == "float64"
    compiler = compilers.get("reference")
    compiler.configure(TARGET)
    program = compiler.compile(graph, {}, TARGET)
    program.bind({"c": np.array(True), "x": np.zeros(2, np.float32)})
    program.run()
    np.testing.assert_array_equal(program.outputs()[0], np.array([0.1, 0.2], np.float32).astype(np.float64))


def test_widening_reaches_a_cast_to_the_dtype_of_a_weight() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23]> g (double[1] x) => (float[1] y) { y = CastLike (x, w) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    graph = Graph.from_onnx(model)
    compiler = compilers.get("reference")
    compiler.configure(TARGET)
    program = compiler.compile(graph, graph.materialize(), TARGET)
    program.bind({"x": np.array([1 / 3])})
    program.run()
    assert program.outputs()[0].tolist() == [1 / 3]


def test_widening_leaves_integers_and_float64_alone() -> None:
    assert widen_array(np.ones(2, np.float16)).dtype == np.float64
    for dtype in (np.int8, np.float64, np.bool_):
        array = np.ones(2, dtype)
        assert widen_array(array) is array
