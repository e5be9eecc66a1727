from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import onnx
import pytest

from graphnet.compilers import Target, get
from graphnet.compilers.jax.compiler import Jax, JaxProgram, _thread_name
from graphnet.errors import DeviceNotPresent, UsageError
from graphnet.ir.graph import Graph

TEXT = """<ir_version: 10, opset_import: ["" : 23]>
g (float[1,32,64,64] x, float[32,32,3,3] w, float[64,512] m) => (float[1,32,64,512] y) {
    c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  y = MatMul(r, m) }"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_onnx(onnx.parser.parse_model(TEXT))


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 32, 64, 64), "w": (32, 32, 3, 3), "m": (64, 512)}
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def program(graph: Graph, arrays: dict[str, np.ndarray]) -> JaxProgram:
    compiler = Jax()
    compiler.configure(Target())
    made = compiler.compile(graph, graph.materialize(), Target())
    made.bind(arrays)
    made.run()
    return made


def test_registry_finds_it() -> None:
    assert isinstance(get("jax"), Jax)


def test_effective_settings() -> None:
    settings = Jax().configure(Target())
    assert settings["precision"] == "highest"
    assert settings["x64"]
    assert not settings["fast_math"]
    assert not settings["compilation_cache"]
    assert "--xla_cpu_enable_fast_math=false" in settings["xla_flags"]
    assert settings["platform"] == "cpu"


def test_lower_precision_is_the_default_of_xla() -> None:
    assert Jax().configure(Target(precision="tf32"))["precision"] == "default"
    Jax().configure(Target())


@pytest.mark.parametrize("device", ["cuda", "metal", "abacus"])
def test_absent_devices(device: str) -> None:
    if device in {d.platform for d in jax.devices()}:
        pytest.fail(f"this machine has {device}: run the test on one without")
    with pytest.raises(DeviceNotPresent, match=f"jax: .*'{device}'"):
        Jax().configure(Target(device=device))


def test_outputs_follow_the_inputs_and_are_copies(program: JaxProgram, arrays: dict[str, np.ndarray]) -> None:
    (first,) = program.outputs()
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
    made = Jax().compile(graph, graph.materialize(), Target())
    assert 0 < made.lower_s < time.perf_counter() - start


def test_kernels_cover_the_nodes_and_the_time(program: JaxProgram, graph: Graph) -> None:
    kernels = program.kernels()
    names = {node.name for node in graph.nodes}
    assert {node for kernel in kernels for node in kernel.nodes} == names
    start = time.perf_counter()
    for _ in range(5):
        program.run()
    whole = (time.perf_counter() - start) / 5 * 1e6
    assert 0.2 * whole < sum(kernel.total_us for kernel in kernels) < 5 * whole


def test_compiled_code_names_the_nodes(program: JaxProgram) -> None:
    assert 'op_name="jit(' in program.hlo()
    assert all(f"node{index}_" in program.hlo() for index in range(3))


CHILD = """
import sys, time
import numpy as np, onnx
from graphnet.compilers import Target
from graphnet.compilers.jax.compiler import Jax
from graphnet.ir.graph import Graph
target = Target(threads=1)
settings = Jax().configure(target)
assert settings["threads"] == 1, settings
graph = Graph.from_onnx(onnx.parser.parse_model(sys.stdin.read()))
program = Jax().compile(graph, graph.materialize(), target)
program.bind({i.name: np.ones(i.shape, np.float32) for i in graph.inputs})
program.run()
wall, used = time.perf_counter(), time.process_time()
while time.perf_counter() - wall < 1:
    program.run()
print((time.process_time() - used) / (time.perf_counter() - wall))
"""


SETTINGS = """
import json, sys
from graphnet.compilers import Target
from graphnet.compilers.jax.compiler import Jax
print(json.dumps(Jax().configure(Target(options=json.loads(sys.argv[1])))))
"""


@pytest.mark.parametrize(("fast", "word"), [(False, "false"), (True, "true")])
def test_numerics_flags_are_ours_and_options_come_last(fast: bool, word: str) -> None:
    options = {"fast_math": fast, "xla_flags": "--xla_cpu_enable_fast_min_max=true"}
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS, json.dumps(options)], capture_output=True, text=True, check=True,
        env={**os.environ, "XLA_FLAGS": "--xla_cpu_enable_fast_math=true --xla_backend_optimization_level=1"},
    )  # fmt: skip
    settings = json.loads(done.stdout)
    assert settings["fast_math"] is fast
    assert settings["xla_flags"].split() == [
        "--xla_backend_optimization_level=1", f"--xla_cpu_enable_fast_math={word}",
        f"--xla_cpu_enable_fast_min_max={word}", "--xla_cpu_enable_fast_min_max=true",
    ]  # fmt: skip


def test_fast_math_is_yes_or_no() -> None:
    with pytest.raises(UsageError, match="fast_math=very must be true or false"):
        Jax().configure(Target(options={"fast_math": "very"}))


def test_one_thread_uses_one_core() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], input=TEXT, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.1


def test_a_thread_that_ended_has_no_name(tmp_path: Path) -> None:
    assert _thread_name(tmp_path / "12345") == ""
