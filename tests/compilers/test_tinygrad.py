"""tinygrad: values, dtypes, subnormals, threads, what it refuses, and the kernels that name nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from graphnet import compilers
from graphnet.compilers import Profiled, Target
from graphnet.compilers.tinygrad.compiler import Tinygrad
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors
from graphnet.ir.graph import DType, Graph, Input, Node, Normal, Value, Values, Weight

SOLO = """
import json, pathlib, sys, time
import msgspec
import numpy as np
from graphnet import compilers
from graphnet.ir import tensors
from tests.compilers.test_tinygrad import layer, twice
compiler, target = compilers.get("tinygrad"), compilers.Target(threads=2)
compiler.preload()
quiet = len(list(pathlib.Path("/proc/self/task").iterdir()))
settings = compiler.configure(target)
graph = layer(256)
program = compiler.compile(graph, tensors.weights(graph, 0), target)
program.bind(tensors.inputs(graph, 0))
start, begun = time.thread_time(), time.process_time()
for _ in range(50):
    program.run()
share = (time.thread_time() - start) / (time.process_time() - begun)
tiny = compiler.compile(twice(), {}, target)
tiny.bind({"x": np.full(64, 1e-39, np.float32)})
tiny.run()
print(json.dumps([quiet, settings["threads"], share, settings["subnormals"], float(tiny.outputs()[0].max())]))
"""


def layer(size: int = 24) -> Graph:
    """relu(x w + b) of float32[size, size]."""
    square, row = (size, size), (size,)
    value = Value(dtype="float32", shape=square)
    return Graph(
        name="layer", inputs=(Input(name="x", dtype="float32", shape=square),), outputs=("y",),
        weights={
            "w": Weight(dtype="float32", shape=square, fill=Normal()),
            "b": Weight(dtype="float32", shape=row, fill=Normal()),
        },
        nodes=(
            Node(op="MatMul", name="product", inputs=("x", "w"), outputs=("p",)),
            Node(op="Add", name="shift", inputs=("p", "b"), outputs=("s",)),
            Node(op="Relu", name="act", inputs=("s",), outputs=("y",)),
        ),
        values={"p": value, "s": value, "y": value},
    )  # fmt: skip


def twice() -> Graph:
    return Graph(
        name="twice", inputs=(Input(name="x", dtype="float32", shape=(64,)),), outputs=("y",),
        nodes=(Node(op="Add", name="sum", inputs=("x", "x"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(64,))},
    )  # fmt: skip


def single(op: str, inputs: dict[str, tuple[DType, tuple[int, ...]]], shape: tuple[int, ...], dtype: DType) -> Graph:
    """One node called `n` over run-time inputs."""
    return Graph(
        name="single", outputs=("y",), values={"y": Value(dtype=dtype, shape=shape)},
        inputs=tuple(Input(name=name, dtype=kind, shape=sizes) for name, (kind, sizes) in inputs.items()),
        nodes=(Node(op=op, name="n", inputs=tuple(inputs), outputs=("y",)),),
    )  # fmt: skip


def compiled(graph: Graph, target: Target | None = None) -> Any:
    compiler, target = Tinygrad(), target or Target()
    compiler.configure(target)
    return compiler.compile(graph, tensors.weights(graph, 0), target)


def run(program: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    program.bind(inputs)
    program.run()
    found: np.ndarray = program.outputs()[0]
    return found


@pytest.mark.parametrize("beam", [0, 1])
def test_values_follow_new_inputs_and_are_copies(beam: int) -> None:
    graph = layer()
    weights = tensors.weights(graph, 0)
    program = compiled(graph, Target(options={"beam": beam}))
    assert program.lower_s > 0
    found = []
    for seed in (1, 2):
        inputs = tensors.inputs(graph, seed)
        expected = np.maximum(inputs["x"].astype(np.float64) @ weights["w"] + weights["b"], 0)
        found.append((run(program, inputs), expected))
    for actual, expected in found:
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_integers_divide_by_what_is_bound() -> None:
    program = compiled(single("Div", {"a": ("int32", (3,)), "b": ("int32", (3,))}, (3,), "int32"))
    y = run(program, {"a": np.array([7, 9, 8], np.int32), "b": np.array([2, 3, 5], np.int32)})
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, [3, 3, 1])


def test_bfloat16_passes_through_whole() -> None:
    bfloat16 = tensors.numpy_dtype("bfloat16")
    program = compiled(single("Add", {"a": ("bfloat16", (3,)), "b": ("bfloat16", (3,))}, (3,), "bfloat16"))
    y = run(program, {"a": np.array([1, -2, 0.5], bfloat16), "b": np.array([1, 1, 256], bfloat16)})
    assert y.dtype == bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), [2, -1, 256])  # 256.5 rounds to even


def test_an_attribute_left_out_has_its_default() -> None:
    program = compiled(single("GatherElements", {"x": ("float32", (2, 2)), "i": ("int64", (1, 2))}, (1, 2), "float32"))
    y = run(program, {"x": np.array([[1, 2], [3, 4]], np.float32), "i": np.array([[1, 0]])})
    np.testing.assert_array_equal(y, [[3, 2]])


def test_literal_indices_of_two_axes_gather() -> None:
    """BERT's positions are such a literal; the front end by itself takes a flat list."""
    indices = Weight(dtype="int64", shape=(1, 2), role="constant", fill=Values(data=(2, 0)))
    graph = single("Gather", {"x": ("float32", (3, 2))}, (1, 2, 2), "float32")
    node = msgspec.structs.replace(graph.nodes[0], inputs=("x", "i"))
    graph = msgspec.structs.replace(graph, nodes=(node,), weights={"i": indices})
    y = run(compiled(graph), {"x": np.array([[1, 2], [3, 4], [5, 6]], np.float32)})
    np.testing.assert_array_equal(y, [[[5, 6], [1, 2]]])


def test_grouped_attention_is_decomposed_and_says_so() -> None:
    generator = np.random.default_rng(1)
    shapes = {"q": (1, 4, 3, 8), "k": (1, 2, 3, 8), "v": (1, 2, 3, 8)}
    inputs = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    graph = single("Attention", {name: ("float32", shape) for name, shape in shapes.items()}, (1, 4, 3, 8), "float32")
    program = compiled(graph)
    assert program.details["decomposed"] == "Attention"
    key, value = (np.repeat(inputs[name].astype(np.float64), 2, axis=1) for name in "kv")
    scores = inputs["q"] @ key.transpose(0, 1, 3, 2) / np.sqrt(8)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(run(program, inputs), share / share.sum(-1, keepdims=True) @ value, rtol=1e-4, atol=1e-5)


def test_one_thread_works_and_says_so_and_subnormals_are_zero() -> None:
    """In a process of its own: the settings are those of the process, the mode of the processor that of the thread."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SOLO], capture_output=True, text=True, check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    quiet, threads, share, flushed, largest = json.loads(done.stdout.splitlines()[-1])
    assert quiet == 1, "importing the framework must start no threads"
    assert threads == 1
    assert share > 0.95
    assert flushed == "flushed"
    assert largest == 0.0


def test_kernels_name_the_nodes_whose_weights_they_read() -> None:
    graph = layer()
    program = compiled(graph)
    program.bind(tensors.inputs(graph, 0))
    assert isinstance(program, Profiled)
    found = program.kernels()
    assert {name for kernel in found for name in kernel.nodes} == {"product", "shift"}
    assert all(kernel.total_us > 0 and kernel.calls == 1 for kernel in found)


def test_an_operator_without_lowering_is_named_with_its_node() -> None:
    graph = single("Det", {"x": ("float32", (2, 2))}, (), "float32")
    with pytest.raises(UnsupportedOp, match=r"tinygrad: no lowering for ai.onnx::Det \(node 'n'\)"):
        compiled(graph)


def test_a_shape_that_a_run_determines_is_refused() -> None:
    graph = single("Reshape", {"x": ("float32", (2, 3)), "shape": ("int64", (2,))}, (3, 2), "float32")
    with pytest.raises(UnsupportedOp, match=r"Reshape \(node 'n'\) needs its input 'shape' as a literal"):
        compiled(graph)


def test_dtypes_that_it_lacks_are_unsupported() -> None:
    graph = single("Identity", {"x": ("float8e5m2", (2,))}, (2,), "float8e5m2")
    with pytest.raises(UnsupportedOp, match="tinygrad: its ONNX front end cannot read the model"):
        compiled(graph)


def test_without_clang_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(DeviceNotPresent, match="apt-get install clang"):
        Tinygrad().configure(Target())


def test_the_newest_numbered_clang_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("clang-9", "clang-19", "clang-format-20"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/nowhere")
    monkeypatch.delenv("CC", raising=False)
    from graphnet.compilers.tinygrad.compiler import find_clang

    assert find_clang() == "clang-19"


def test_unknown_device_and_wrong_beam() -> None:
    with pytest.raises(DeviceNotPresent, match="no device 'tpu'"):
        Tinygrad().configure(Target(device="tpu"))
    with pytest.raises(DeviceNotPresent, match=r"device 'cuda' cannot be opened .*libcuda.so"):
        Tinygrad().configure(Target(device="cuda"))
    with pytest.raises(UsageError, match="beam=-1 must be a whole number"):
        Tinygrad().configure(Target(options={"beam": -1}))


def test_registry_knows_it() -> None:
    assert compilers.get("tinygrad").name == "tinygrad"
    assert compilers.variants("tinygrad") == {"beam": {"beam": 2}}
