from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from graphnet.compilers import Target, get
from graphnet.compilers.tensorflow.compiler import TensorFlow, TensorFlowProgram
from graphnet.compilers.tensorflow.profile import covered, operations
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir.graph import Graph, Node

TEXT = """<ir_version: 10, opset_import: ["" : 23]>
g (float[1,32,64,64] x, float[32,32,3,3] w, float[64,512] m) => (float[1,32,64,512] y) {
    c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  y = MatMul(r, m) }"""
VARIANTS = {"xla": Target(), "grappler": Target(options={"jit": False})}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_onnx(onnx.parser.parse_model(TEXT))


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 32, 64, 64), "w": (32, 32, 3, 3), "m": (64, 512)}
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module", params=VARIANTS)
def program(request: pytest.FixtureRequest, graph: Graph, arrays: dict[str, np.ndarray]) -> TensorFlowProgram:
    compiler, target = TensorFlow(), VARIANTS[request.param]
    compiler.configure(target)
    made = compiler.compile(graph, graph.materialize(), target)
    made.bind(arrays)
    made.run()
    return made


def test_registry_finds_it() -> None:
    assert isinstance(get("tensorflow"), TensorFlow)


def test_effective_settings() -> None:
    settings = TensorFlow().configure(Target())
    assert settings["precision"] == "float32"
    assert settings["jit"]
    assert not settings["fast_math"]
    assert not settings["auto_mixed_precision"]
    assert "--xla_cpu_enable_fast_math=false" in settings["xla_flags"]
    assert (settings["threads"], settings["inter_op_threads"]) == (1, 1)
    assert settings["device"] == "/CPU:0"


def test_lower_precision_only_where_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_SET_ONEDNN_FPMATH_MODE", "BF16")
    settings = TensorFlow().configure(Target(precision="tf32"))
    assert (settings["precision"], settings["onednn_fpmath"]) == ("tf32", "BF16")
    settings = TensorFlow().configure(Target())
    assert (settings["precision"], settings["onednn_fpmath"]) == ("float32", "STRICT")


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="tensorflow: option jit=maybe must be true or false"):
        TensorFlow().configure(Target(options={"jit": "maybe"}))


@pytest.mark.parametrize("device", ["cuda", "abacus"])
def test_absent_devices(device: str) -> None:
    with pytest.raises(DeviceNotPresent, match=f"tensorflow: .*'{device}'"):
        TensorFlow().configure(Target(device=device))


def test_outputs_are_right_follow_the_inputs_and_are_copies(
    program: TensorFlowProgram, arrays: dict[str, np.ndarray]
) -> None:
    (first,) = program.outputs()
    results: Any = ReferenceEvaluator(onnx.parser.parse_model(TEXT)).run(None, dict(arrays))
    expected = results[0]
    assert first.dtype == expected.dtype
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-2)
    program.bind({**arrays, "m": arrays["m"] * 2})
    program.run()
    (second,) = program.outputs()
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5, atol=1e-4)
    second[...] = np.nan
    assert np.isfinite(program.outputs()[0]).all()
    program.bind(arrays)
    program.run()
    np.testing.assert_array_equal(program.outputs()[0], first)


def test_tracing_is_a_part_of_compiling(graph: Graph) -> None:
    start = time.perf_counter()
    made = TensorFlow().compile(graph, graph.materialize(), Target())
    assert 0 < made.lower_s < time.perf_counter() - start


def test_kernels_cover_the_nodes_and_the_time(program: TensorFlowProgram, graph: Graph) -> None:
    kernels = program.kernels()
    names = {node.name for node in graph.nodes}
    assert {node for kernel in kernels for node in kernel.nodes} == names
    start = time.perf_counter()
    for _ in range(5):
        program.run()
    whole = (time.perf_counter() - start) / 5 * 1e6
    assert 0.2 * whole < sum(kernel.total_us for kernel in kernels) < 5 * whole


def test_compiled_code_names_the_nodes(graph: Graph) -> None:
    code = TensorFlow().compile(graph, graph.materialize(), Target()).hlo()
    assert all(f"node{index}_" in code for index in range(3))


def test_a_fused_operation_does_the_work_of_what_was_not_seen_upstream() -> None:
    def node(name: str, *inputs: str) -> Node:
        return Node(op="Relu", name=name, inputs=inputs, outputs=(f"{name}_out",))

    nodes = (node("a", "x"), node("b", "a_out"), node("c", "b_out"), node("d", "c_out", "a_out"), node("e", "d_out"))
    found = covered(Graph(name="g", nodes=nodes), {"c", "e"})
    assert found == {"c": ("a", "b", "c"), "e": ("d", "e")}
    events = [(float(i), f"{name}/Relu:Relu", 2000.0) for i, name in enumerate("ccccce")]
    kernels = operations(events, found, lambda name: name.partition("/")[0])
    assert [(k.name, k.nodes, k.calls, k.total_us) for k in kernels] == [
        ("c/Relu:Relu", ("a", "b", "c"), 1, 2.0),
        ("e/Relu:Relu", ("d", "e"), 1, 0.4),
    ]


def test_an_unknown_operator_is_named() -> None:
    graph = Graph(name="g", outputs=("y",), nodes=(Node(op="Foo", name="n3", outputs=("y",)),))
    with pytest.raises(UnsupportedOp, match=r"tensorflow: no lowering for ai\.onnx::Foo \(node 'n3'\)"):
        TensorFlow().compile(graph, {}, Target())


CHILD = """
import json, sys, time
import numpy as np, onnx
from graphnet.compilers import Target
from graphnet.compilers.tensorflow.compiler import TensorFlow
from graphnet.ir.graph import Graph
target = Target(threads=1, options={"jit": sys.argv[1] == "xla"})
TensorFlow().configure(target)
graph = Graph.from_onnx(onnx.parser.parse_model(sys.stdin.read()))
program = TensorFlow().compile(graph, graph.materialize(), target)
program.bind({i.name: np.ones(i.shape, np.float32) for i in graph.inputs})
program.run()
wall, used = time.perf_counter(), time.process_time()
while time.perf_counter() - wall < 1:
    program.run()
print(json.dumps((time.process_time() - used) / (time.perf_counter() - wall)))
"""


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_thread_uses_one_core(variant: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, variant], input=TEXT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) < 1.1
