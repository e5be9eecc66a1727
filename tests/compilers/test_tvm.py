"""TVM: values under each schedule, threads, target strings, passes, and which nodes a kernel covers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import tvm

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.tvm.compiler import Tvm
from graphnet.compilers.tvm.contract import Registers, packed_filters, packed_matrix, pixel_tile
from graphnet.compilers.tvm.target import parse
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors
from graphnet.ir.graph import Fill, Graph, Input, Node, Normal, Uniform, Value, Weight

SCHEDULES = ("ours", "none")


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


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_values_against_a_hand_calculation(schedule: str) -> None:
    graph, target = conv_net(), Target(options={"schedule": schedule})
    settings = Tvm().configure(target)
    assert (settings["threads"], settings["schedule"]) == (1, schedule)
    weights = tensors.weights(graph, 3)
    program = Tvm().compile(graph, weights, target)
    for seed in (1, 2):
        inputs = tensors.inputs(graph, seed)
        program.bind(inputs)
        program.run()
        [y] = program.outputs()
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, by_hand(inputs["x"], weights), rtol=1e-4, atol=1e-5)


def unary(operator: str, size: int = 4096) -> Graph:
    return Graph(
        name="unary", inputs=(Input(name="x", dtype="float32", shape=(size,)),), outputs=("y",),
        nodes=(Node(op=operator, name="n", inputs=("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(size,))},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "exact"),
    [
        ("Exp", np.exp),
        ("Tanh", np.tanh),
        ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("Erf", np.vectorize(math.erf)),
    ],
)
def test_vector_functions_are_float32_to_the_last_places(operator: str, exact: object) -> None:
    Tvm().configure(Target())
    graph = unary(operator)
    program = Tvm().compile(graph, {}, Target())
    x = np.linspace(-20, 20, 4096, dtype=np.float32)
    program.bind({"x": x})
    program.run()
    [found] = program.outputs()
    assert callable(exact)
    expected = exact(x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("operator", ["Exp", "Tanh", "Sigmoid", "Erf"])
def test_vector_functions_at_the_edges(operator: str) -> None:
    Tvm().configure(Target())
    graph = unary(operator, 8)
    program = Tvm().compile(graph, {}, Target())
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 89.0, -104.0, 5.0, -5.0], np.float32)
    program.bind({"x": x})
    program.run()
    [found] = program.outputs()
    limits = {"Exp": (np.inf, 0, 1), "Tanh": (1, -1, 0), "Sigmoid": (1, 0, 0.5), "Erf": (1, -1, 0)}[operator]
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:4], limits, rtol=1e-6)
    np.testing.assert_allclose(found[4:6], limits[:2], rtol=1e-6, atol=1e-37)


def attention() -> Graph:
    shape = (1, 2, 8, 16)
    return Graph(
        name="attention", outputs=("y",),
        inputs=tuple(Input(name=name, dtype="float32", shape=shape) for name in ("q", "k", "v")),
        nodes=(Node(op="Attention", name="attend", inputs=("q", "k", "v"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=shape)},
    )  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_attention_is_written_out_and_said_so(schedule: str) -> None:
    graph, target = attention(), Target(options={"schedule": schedule})
    Tvm().configure(target)
    program = Tvm().compile(graph, {}, target)
    assert program.details["decomposed"] == "Attention"
    inputs = tensors.inputs(graph, 0)
    program.bind(inputs)
    program.run()
    scores = np.einsum("bhqd,bhkd->bhqk", inputs["q"], inputs["k"], dtype=np.float64) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), inputs["v"])
    np.testing.assert_allclose(program.outputs()[0], expected, rtol=1e-4, atol=1e-5)
    covered = {name for kernel in program.kernels() for name in kernel.nodes}
    assert covered == {"attend"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kernels_name_the_nodes_that_they_cover(schedule: str) -> None:
    graph, target = conv_net(), Target(options={"schedule": schedule})
    Tvm().configure(target)
    program = Tvm().compile(graph, tensors.weights(graph, 0), target)
    assert isinstance(program, Profiled)
    program.bind(tensors.inputs(graph, 0))
    kernels = program.kernels()
    assert {name for kernel in kernels for name in kernel.nodes} == {"conv", "norm", "act", "pool"}
    assert all(kernel.total_us > 0 for kernel in kernels)
    assert "vfmadd" in program.source() or schedule == "none"


def test_columns_and_filters_are_packed_with_zeros_at_the_end() -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(2, 6)
    packed = packed_matrix(matrix, 4)
    assert packed.shape == (2, 2, 4)
    np.testing.assert_array_equal(packed[1], [[4, 5, 0, 0], [10, 11, 0, 0]])
    filters = np.arange(2 * 3 * 5, dtype=np.float32).reshape(6, 5, 1)
    assert packed_filters(filters, 2, 2).shape == (2, 2, 5, 1, 2)
    np.testing.assert_array_equal(packed_filters(filters, 2, 2)[1, 1, :, 0, 0], filters[5, :, 0])
    assert not packed_filters(filters, 2, 2)[1, 1, :, 0, 1].any()


@pytest.mark.parametrize(("size", "rows"), [((1, 7), 14), ((7, 7), 14), ((56, 56), 14), ((1, 1), 6), ((3, 100), 6)])
def test_a_tile_fits_the_registers(size: tuple[int, int], rows: int) -> None:
    tile = pixel_tile(*size, rows)
    assert 1 <= tile.height * tile.width <= rows
    assert tile.height <= size[0]
    assert tile.width <= size[1]
    assert Registers(32, 16).rows(32) * 2 + 2 + 2 <= 32


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("llvm", {"kind": "llvm"}),
        ("llvm -mcpu=native -num-cores=4", {"kind": "llvm", "mcpu": "native", "num-cores": 4}),
        ("cuda -model=rtx3090", {"kind": "cuda", "model": "rtx3090"}),
        ("llvm -mattr=+avx2,+fma", {"kind": "llvm", "mattr": ["+avx2", "+fma"]}),
        ('{"kind": "llvm", "mcpu": "znver4"}', {"kind": "llvm", "mcpu": "znver4"}),
    ],
)
def test_target_strings(spec: str, expected: dict[str, object]) -> None:
    assert parse(spec) == expected


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(spec="llvm mcpu=native"), "'mcpu=native' is not -KEY=VALUE"),
        (Target(spec='{"kind": '), "is not a JSON object"),
        (Target(spec="cuda -arch=sm_86"), "not for device cpu, whose kind is llvm"),
        (Target(spec="llvm -no-such-key=1"), "is refused: .*KIND one of llvm, cuda, metal"),
        (Target(options={"schedule": "fast"}), "schedule=fast is unknown; use ours or none"),
        (Target(passes=("NoSuchPass",)), "unknown pass 'NoSuchPass'; known: .*FoldConstant"),
        (Target(passes=("ToMixedPrecision",)), "ToMixedPrecision"),
        (Target(options={"tuned": 5}), "unknown option 'tuned'; its options are: schedule, tune"),
        (Target(options={"tune": 1}), "tune=1 is no number of seconds of at least 5"),
        (Target(options={"tune": 60, "schedule": "none"}), "tune is for our schedules"),
    ],
)
def test_what_cannot_be_done_is_refused(target: Target, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Tvm().configure(target)


@pytest.mark.parametrize(("device", "words"), [("cuda", "no cuda runtime.*USE_CUDA"), ("tpu", "no device 'tpu'")])
def test_absent_devices_say_so(device: str, words: str) -> None:
    with pytest.raises(DeviceNotPresent, match=words):
        Tvm().configure(Target(device=device))


def count_calls(module: tvm.IRModule) -> tvm.IRModule:
    """A library pass of a user; it is imported again by TVM's side, hence the variable."""
    os.environ["SEEN_BY_A_PASS"] = str(len(module["main"].params))
    return module


def test_passes_of_the_library_and_of_users_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN_BY_A_PASS", "")
    graph = conv_net()
    target = Target(passes=("FoldConstant", "tests.compilers.test_tvm:count_calls", "default", "DeadCodeElimination"))
    Tvm().configure(target)
    weights, inputs = tensors.weights(graph, 3), tensors.inputs(graph, 1)
    program = Tvm().compile(graph, weights, target)
    assert os.environ["SEEN_BY_A_PASS"] == "1", "the module's one input"
    program.bind(inputs)
    program.run()
    np.testing.assert_allclose(program.outputs()[0], by_hand(inputs["x"], weights), rtol=1e-4, atol=1e-5)


def test_an_unknown_operator_names_its_node() -> None:
    node = Node(op="Mystery", name="n3", inputs=("x",), outputs=("y",), domain="com.example")
    graph = Graph(
        name="g", inputs=(Input(name="x", dtype="float32", shape=(2,)),), outputs=("y",), nodes=(node,),
        values={"y": Value(dtype="float32", shape=(2,))},
    )  # fmt: skip
    with pytest.raises(UnsupportedOp, match=r"tvm: the importer has no com.example::Mystery \(node 'n3'\)"):
        Tvm().compile(graph, {}, Target())


def test_importing_starts_no_thread() -> None:
    program = "import json, os; from graphnet import compilers; compilers.get('tvm').preload();" \
              "print(json.dumps(len(os.listdir('/proc/self/task'))))"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == 1


def test_the_registry_knows_it() -> None:
    assert compilers.get("tvm").name == "tvm"
