"""OpenVINO: values, the policy of threads and precision, passes and properties."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.openvino.compiler import OpenVino, OpenVinoProgram
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors
from graphnet.ir.graph import Constant, DType, Fill, Graph, Input, Node, Normal, Uniform, Value, Weight


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


def product(size: int) -> Graph:
    """Of two matrices float32[size, size]."""
    shape = (size, size)
    return Graph(
        name="product", inputs=tuple(Input(name=name, dtype="float32", shape=shape) for name in "ab"), outputs=("y",),
        nodes=(Node(op="MatMul", name="matmul", inputs=("a", "b"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=shape)},
    )  # fmt: skip


def unary(op: str, dtype: DType = "float32", size: int = 5, domain: str = "") -> Graph:
    return Graph(
        name="unary", inputs=(Input(name="x", dtype=dtype, shape=(size,)),), outputs=("y",),
        nodes=(Node(op=op, name="n", inputs=("x",), outputs=("y",), domain=domain),),
        values={"y": Value(dtype=dtype, shape=(size,))},
    )  # fmt: skip


def compiled(graph: Graph, target: Target | None = None, seed: int = 0) -> OpenVinoProgram:
    return OpenVino().compile(graph, tensors.weights(graph, seed), target or Target())


def outputs(program: OpenVinoProgram, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    program.bind(inputs)
    program.run()
    return list(program.outputs())


def test_values_against_a_hand_calculation() -> None:
    graph, target = conv_net(), Target()
    assert OpenVino().configure(target)["threads"] == 1
    weights, program, found = tensors.weights(graph, 3), compiled(graph, seed=3), []
    for seed in (1, 2):
        inputs = tensors.inputs(graph, seed)
        found.append((outputs(program, inputs), by_hand(inputs["x"], weights)))
    for [actual], expected in found:
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_inputs_are_read_in_place_and_left_as_they_are() -> None:
    program, x = compiled(unary("Relu")), np.array([-1, 2, -3, 4, 5], np.float32)
    [first] = outputs(program, {"x": x})
    np.testing.assert_array_equal(x, [-1, 2, -3, 4, 5])
    x[:] = [6, -7, 8, -9, 10]
    program.run()
    np.testing.assert_array_equal(program.outputs()[0], [6, 0, 8, 0, 10])
    np.testing.assert_array_equal(first, [0, 2, 0, 4, 5])


def test_an_output_that_is_an_input() -> None:
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(outputs(compiled(unary("Identity")), {"x": x})[0], x)


@pytest.mark.parametrize("axis", [1, 2, -2, None])
def test_fourier_transform_along_an_axis(axis: int | None) -> None:
    """The standard's axis counts the last one, of real and imaginary parts; it is -2 where none is given."""
    shape = (1, 4, 6, 2)
    given = axis is not None
    number = Weight(dtype="int64", shape=(), fill=Constant(value=axis or 0), role="constant")
    graph = Graph(
        name="dft", inputs=(Input(name="x", dtype="float32", shape=shape),), outputs=("y",),
        weights={"axis": number} if given else {},
        nodes=(Node(op="DFT", name="dft", inputs=("x", "", "axis") if given else ("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=shape)},
    )  # fmt: skip
    inputs = tensors.inputs(graph, 0)
    program = compiled(graph)
    assert program.details["axis_as_attribute"] == "DFT"
    [y] = outputs(program, inputs)
    expected = np.fft.fft(inputs["x"][..., 0] + 1j * inputs["x"][..., 1], axis=2 if axis in (None, -2) else axis)
    np.testing.assert_allclose(y[..., 0] + 1j * y[..., 1], expected, rtol=1e-4, atol=1e-5)


def test_inputs_that_the_importer_drops_or_renames() -> None:
    """`b` decides only a dtype, `c` becomes the output `z` under that name."""
    shape = (5,)
    graph = Graph(
        name="casts", inputs=tuple(Input(name=name, dtype="float32", shape=shape) for name in "bac"),
        outputs=("y", "z"),
        nodes=(
            Node(op="CastLike", name="cast", inputs=("a", "b"), outputs=("d",)),
            Node(op="Neg", name="neg", inputs=("d",), outputs=("y",)),
            Node(op="Dropout", name="drop", inputs=("c",), outputs=("z",)),
        ),
        values={name: Value(dtype="float32", shape=shape) for name in "dyz"},
    )  # fmt: skip
    arrays = {name: np.full(5, number, np.float32) for name, number in zip("bac", (1, 2, 3), strict=True)}
    y, z = outputs(compiled(graph), arrays)
    np.testing.assert_array_equal(y, -arrays["a"])
    np.testing.assert_array_equal(z, arrays["c"])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bfloat16", np.array([1.5, -2.25, 3e38, 0, -0.125], ml_dtypes.bfloat16)),
        ("float16", np.array([1.5, -2.25, 65504, 0, -0.125], np.float16)),
        ("int4", np.array([-8, 7, 3, 0, -1], ml_dtypes.int4)),
        ("uint4", np.array([15, 7, 3, 0, 8], ml_dtypes.uint4)),
        ("float8e4m3fn", np.array([1.5, -2.25, 448, 0, -0.125], ml_dtypes.float8_e4m3fn)),
        ("bool", np.array([True, False, True, True, False])),
    ],
)
def test_formats_that_numpy_lacks_go_in_and_out(dtype: DType, values: np.ndarray) -> None:
    [result] = outputs(compiled(unary("Identity", dtype)), {"x": values})
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result.astype(np.float64), values.astype(np.float64))


def test_float32_is_float32() -> None:
    """A product over 512 terms: bfloat16 has errors above 1e-3, float32 about 1e-6."""
    graph, target = product(512), Target()
    program, inputs = compiled(graph, target), tensors.inputs(graph, 0)
    exact = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    assert np.abs(outputs(program, inputs)[0] - exact).max() / np.abs(exact).max() < 1e-5
    assert program.details["precision"] == "f32"


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_that_work(threads: int) -> None:
    """By the processor time of each thread."""
    graph = product(700)
    program = compiled(graph, Target(threads=threads))
    assert program.details["threads"] == threads
    assert program.details["streams"] == 1
    program.bind(tensors.inputs(graph, 0))
    program.run()
    before = busy()
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        program.run()
    spent = {task: ticks - before.get(task, 0) for task, ticks in busy().items()}
    assert sum(ticks > 0.05 * sum(spent.values()) for ticks in spent.values()) == min(threads, os.cpu_count() or 1)


def busy() -> dict[str, int]:
    """User and system ticks of each thread of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = int(fields[11]) + int(fields[12])
    return found


def test_import_starts_no_thread_and_no_telemetry() -> None:
    code = (
        "import json, os, sys; from graphnet import compilers; compilers.get('openvino').preload();"
        "print(json.dumps([len(os.listdir('/proc/self/task')), any('telemetry' in name for name in sys.modules),"
        " 'openvino.tools.ovc' in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert json.loads(done.stdout) == [1, False, False]


def test_kernels_cover_every_node_once() -> None:
    graph = conv_net()
    program = compiled(graph)
    assert isinstance(program, Profiled)
    program.bind(tensors.inputs(graph, 0))
    kernels = program.kernels()
    assert sorted(name for kernel in kernels for name in kernel.nodes) == ["act", "conv", "norm", "pool"]
    assert any(set(kernel.nodes) == {"conv", "norm", "act"} for kernel in kernels)
    assert all(kernel.calls == 1 for kernel in kernels)
    assert sum(kernel.total_us for kernel in kernels) > 0


def test_absent_devices_say_so() -> None:
    with pytest.raises(DeviceNotPresent, match=r"no device 'cuda' \(it knows cpu, intel-gpu\)"):
        OpenVino().configure(Target(device="cuda"))


@pytest.mark.skipif(Path("/dev/dri").exists(), reason="a GPU may be here")
def test_an_absent_gpu_says_what_it_takes() -> None:
    with pytest.raises(DeviceNotPresent, match=r"'intel-gpu' is not on.*\(OpenVINO sees CPU\).*OpenCL driver"):
        OpenVino().configure(Target(device="intel-gpu"))


def test_properties_pass_through() -> None:
    target = Target(options={"config.ENABLE_CPU_PINNING": False})
    OpenVino().configure(target)
    assert compiled(unary("Relu"), target).details["pinned"] is False
    assert compiled(unary("Relu")).details["pinned"] is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config.ENABLE_PINNING": True}, r"has no property 'ENABLE_PINNING'; known: .*ENABLE_CPU_PINNING"),
        ({"config.INFERENCE_PRECISION_HINT": "bf16"}, "leave out config.INFERENCE_PRECISION_HINT"),
        ({"config.NUM_STREAMS": "many"}, "option config.NUM_STREAMS=many: "),
        ({"precision": "bf16"}, "unknown option 'precision'; its options are: config.NAME"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        OpenVino().configure(Target(options=options))


def drop_relu(model: Any) -> None:
    """A pass of our own, which changes what the model computes so that it is seen to run."""
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Relu":
            node.output(0).replace(node.input_value(0))


def test_library_passes_run_before_the_pipeline() -> None:
    x = np.array([-1, 2, -3, 4, 5], np.float32)
    target = Target(passes=("ConstantFolding", f"{__name__}:drop_relu", "apply_moc_transformations", "default"))
    OpenVino().configure(target)
    np.testing.assert_array_equal(outputs(compiled(unary("Relu"), target), {"x": x})[0], x)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        (("Fuse",), r"unknown pass 'Fuse'; known: ConstantFolding, .*apply_moc_transformations"),
        (("default", "ConstantFolding"), "pass 'ConstantFolding' cannot follow 'default'"),
        (("ConvertFP32ToFP16",), "stores float32 as float16, which precision float32 forbids"),
        (("no.such.module:change",), "pass 'no.such.module:change' is no function that can be imported"),
    ],
)
def test_wrong_passes_are_refused(passes: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        OpenVino().configure(Target(passes=passes))


def test_what_is_not_supported_is_named() -> None:
    with pytest.raises(UnsupportedOp, match=r"^openvino: no lowering for com.example::Mystery \(node 'n'\)$"):
        compiled(unary("Mystery", domain="com.example"))
    dropout = Graph(
        name="drop", inputs=(Input(name="x", dtype="float32", shape=(5,)),), outputs=("y",),
        weights={
            "ratio": Weight(dtype="float32", shape=(), fill=Uniform(low=0.5, high=0.5), role="constant"),
            "train": Weight(dtype="bool", shape=(), fill=Uniform(low=1, high=1), role="constant"),
        },
        nodes=(Node(op="Dropout", name="d", inputs=("x", "ratio", "train"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(5,))},
    )  # fmt: skip
    with pytest.raises(UnsupportedOp, match=r"no lowering for ai.onnx::Dropout \(node 'd'\): .*training_mode"):
        OpenVino().compile(dropout, {"ratio": np.array(0.5, np.float32), "train": np.array(True)}, Target())


def test_large_models_go_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphnet.compilers.openvino.compiler._INLINE_LIMIT", 100)
    graph = conv_net()
    inputs, weights = tensors.inputs(graph, 1), tensors.weights(graph, 0)
    [y] = outputs(compiled(graph), inputs)
    np.testing.assert_allclose(y, by_hand(inputs["x"], weights), rtol=1e-4, atol=1e-5)


def test_registry_knows_it() -> None:
    assert compilers.get("openvino").name == "openvino"


def test_a_causal_attention_with_a_cache_is_written_out() -> None:
    """Two queries after one cached key: the first sees the cache and itself, the second all three keys."""
    shape = (1, 1, 2, 4)
    past = (1, 1, 1, 4)
    graph = Graph(
        name="decode",
        inputs=tuple(
            Input(name=name, dtype="float32", shape=past if name.startswith("past") else shape)
            for name in ("q", "k", "v", "past_k", "past_v")
        ),
        outputs=("y", "all_k", "all_v"),
        nodes=(
            Node(
                op="Attention", name="attention", inputs=("q", "k", "v", "", "past_k", "past_v"),
                outputs=("y", "all_k", "all_v"), attrs={"is_causal": 1},
            ),
        ),
        values={
            "y": Value(dtype="float32", shape=shape), "all_k": Value(dtype="float32", shape=(1, 1, 3, 4)),
            "all_v": Value(dtype="float32", shape=(1, 1, 3, 4)),
        },
    )  # fmt: skip
    program, inputs = compiled(graph), tensors.inputs(graph, 0)
    assert program.details["decomposed"] == "Attention"
    [y, all_k, all_v] = outputs(program, inputs)
    keys, values = (np.concatenate([inputs[f"past_{name}"], inputs[name]], 2) for name in "kv")
    scores = np.einsum("bhqd,bhkd->bhqk", inputs["q"], keys) / 2
    scores[..., 0, 2] = -np.inf
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(y, weights @ values, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(all_k, keys)
    np.testing.assert_array_equal(all_v, values)
    assert {name for kernel in program.kernels() for name in kernel.nodes} <= {"attention"}
