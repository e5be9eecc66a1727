"""IREE: values, dtypes, threads, flags, mended operators, and the map from dispatches to GraphIR nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphnet import compilers
from graphnet.api import evaluate
from graphnet.compilers import Profiled, Target
from graphnet.compilers.iree import code
from graphnet.compilers.iree.compiler import Iree
from graphnet.compilers.iree.importer import import_graph
from graphnet.compilers.iree.profile import PROFILED_RUNS, kernels
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors
from graphnet.ir.graph import Attr, DType, Graph, Input, Node, Normal, Value, Values, Weight

GCN = Path(__file__).parents[2] / "benchmark" / "graph" / "gcn.json"
ROWS = """
{"type":"dispatch_summary","mode":"aggregate","total_host_dispatches":15,"host_aggregate_groups":2}
{"type":"host_dispatch_group","key":"main$async_dispatch_0_slow_memcpy","count":5,"valid":5,"total_ns":310510}
{"type":"host_dispatch_group","key":"main$async_dispatch_1_conv_64x56x56_f32","count":10,"valid":10,"total_ns":900000}
"""
"""Lines of `iree-profile dispatch --format=jsonl`, fields that are not read left out."""
WORKERS = """
import json, pathlib, sys, time
import numpy as np
from graphnet import compilers
from tests.compilers.test_iree import layer, ticks
from graphnet.ir import tensors
compiler, target, graph = compilers.get("iree"), compilers.Target(threads=int(sys.argv[1])), layer(1024)
settings = compiler.configure(target)
program = compiler.compile(graph, tensors.weights(graph, 0), target)
program.bind(tensors.inputs(graph, 0))
program.run()
before, end = ticks(), time.monotonic() + 3
while time.monotonic() < end:
    program.run()
spent = {name: total - before.get(thread, (name, 0))[1] for thread, (name, total) in ticks().items()}
print(json.dumps([settings["threads"], settings["driver"], spent]))
"""


def ticks() -> dict[int, tuple[str, int]]:
    """Name and CPU time, in clock ticks, of each thread of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        fields = rest.split()
        found[int(task.name)] = (name, int(fields[11]) + int(fields[12]))
    return found


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


def single(op: str, inputs: dict[str, np.ndarray], shape: tuple[int, ...], dtype: DType, **attrs: Attr) -> Graph:
    """One node called `n` over run-time inputs."""
    return Graph(
        name="single", outputs=("y",),
        inputs=tuple(Input(name=n, dtype=array.dtype.name, shape=array.shape) for n, array in inputs.items()),  # type: ignore[arg-type]
        nodes=(Node(op=op, name="n", inputs=tuple(inputs), outputs=("y",), attrs=attrs),),
        values={"y": Value(dtype=dtype, shape=shape)},
    )  # fmt: skip


def run(graph: Graph, inputs: dict[str, np.ndarray], target: Target | None = None) -> tuple[Any, np.ndarray]:
    compiler, target = Iree(), target or Target()
    compiler.configure(target)
    program = compiler.compile(graph, tensors.weights(graph, 0), target)
    program.bind(inputs)
    program.run()
    return program, program.outputs()[0]


def test_values_follow_new_inputs_and_are_copies() -> None:
    graph = layer()
    weights = tensors.weights(graph, 0)
    program, _ = run(graph, tensors.inputs(graph, 9))
    assert program.lower_s > 0
    found = []
    for seed in (1, 2):
        inputs = tensors.inputs(graph, seed)
        program.bind(inputs)
        program.run()
        expected = np.maximum(inputs["x"].astype(np.float64) @ weights["w"] + weights["b"], 0)
        found.append((program.outputs()[0], expected))
    for actual, expected in found:
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_float64_is_computed_as_float64() -> None:
    x = np.array([1.0, 1e-12, -3.0])
    _, y = run(single("Add", {"a": x, "b": np.ones(3)}, (3,), "float64"), {"a": x, "b": np.ones(3)})
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [2.0, 1.0 + 1e-12, -2.0])


def test_parameters_stay_outside_the_module_and_literals_inside() -> None:
    graph = layer()
    shifted = Weight(dtype="float32", shape=(24,), fill=Values(data=(1.0,) * 24), role="constant")
    graph = Graph(
        name="g", inputs=graph.inputs, outputs=graph.outputs, nodes=graph.nodes, values=graph.values,
        weights={**graph.weights, "b": shifted},
    )  # fmt: skip
    imported = import_graph(graph, tensors.weights(graph, 0))
    assert list(imported.parameters.values()) == ["w"]
    assert len(imported.module) < 24 * 24 * 4


@pytest.mark.parametrize(("reduction", "best"), [("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_with_a_reduction(reduction: str, best: np.ufunc, axis: int) -> None:
    generator = np.random.default_rng(0)
    data = generator.standard_normal((5, 4)).astype(np.float32)
    updates = generator.standard_normal((3, 4)).astype(np.float32)
    indices = generator.integers(0, (5, 4)[axis], (3, 4))
    inputs: dict[str, np.ndarray] = {"data": data, "indices": indices, "updates": updates}
    graph = single("ScatterElements", inputs, (5, 4), "float32", axis=axis, reduction=reduction)
    program, y = run(graph, inputs)
    expected = data.copy()
    for place in np.ndindex(3, 4):
        target = (indices[place], place[1]) if axis == 0 else (place[0], indices[place])
        expected[target] = best(expected[target], updates[place])
    np.testing.assert_array_equal(y, expected)
    assert program.details["rewritten"] == f"ScatterElements ({reduction})"


def test_a_row_s_index_scatters_the_row() -> None:
    rows = np.array([[4], [0], [4]])
    data, updates = np.zeros((5, 2), np.float32), np.array([[1, 9], [2, 8], [7, 3]], np.float32)
    graph = Graph(
        name="rows", outputs=("y",),
        inputs=(
            Input(name="data", dtype="float32", shape=(5, 2)), Input(name="rows", dtype="int64", shape=(3, 1)),
            Input(name="updates", dtype="float32", shape=(3, 2)),
        ),
        weights={"sizes": Weight(dtype="int64", shape=(2,), fill=Values(data=(3, 2)), role="constant")},
        nodes=(
            Node(op="Expand", name="spread", inputs=("rows", "sizes"), outputs=("i",)),
            Node(
                op="ScatterElements", name="n", inputs=("data", "i", "updates"), outputs=("y",),
                attrs={"reduction": "max"},
            ),
        ),
        values={"i": Value(dtype="int64", shape=(3, 2)), "y": Value(dtype="float32", shape=(5, 2))},
    )  # fmt: skip
    _, y = run(graph, {"data": data, "rows": rows, "updates": updates})
    np.testing.assert_array_equal(y, [[2, 8], [0, 0], [0, 0], [0, 0], [7, 9]])


def test_attention_is_decomposed_and_says_so() -> None:
    generator = np.random.default_rng(1)
    inputs = {name: generator.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
    program, y = run(single("Attention", inputs, (1, 2, 3, 4), "float32"), inputs)
    assert program.details["decomposed"] == "Attention"
    scores = inputs["q"].astype(np.float64) @ inputs["k"].transpose(0, 1, 3, 2) / 2
    share = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(y, share / share.sum(-1, keepdims=True) @ inputs["v"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_threads_work_as_are_asked_for(threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORKERS, str(threads)], capture_output=True, text=True, check=True
    )
    stated, driver, spent = json.loads(done.stdout.splitlines()[-1])
    workers = {name: ticks for name, ticks in spent.items() if name.startswith("iree-worker")}
    assert stated == threads
    if threads == 1:
        assert driver == "local-sync"
        assert not workers
        assert max(spent.values()) >= 0.9 * sum(spent.values())
    else:
        assert driver == "local-task"
        assert sorted(workers) == ["iree-worker-0", "iree-worker-1"]
        assert min(workers.values()) >= 0.2 * sum(spent.values())


def test_a_kernel_that_wants_much_of_the_stack_runs_on_the_pool_s_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gcn's scatter has 126,720 bytes on the stack: IREE allows 32,768, and its threads hold 131,072 by default."""
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path))
    [result] = evaluate([GCN], ["iree"], target=Target(threads=2), budget=0.05, profile=False)
    assert result.verdict in ("ok", "unstable"), result.message
    assert result.settings["driver"] == "local-task"


def test_kernels_name_the_nodes_that_they_hold() -> None:
    graph = layer()
    program, _ = run(graph, tensors.inputs(graph, 0))
    assert isinstance(program, Profiled)
    found = program.kernels()
    assert {name for kernel in found for name in kernel.nodes} == {"product", "shift", "act"}
    assert all(kernel.total_us > 0 and kernel.calls == 1 for kernel in found)


def test_rows_of_the_profiler_are_times_of_one_inference() -> None:
    rows = [json.loads(line) for line in ROWS.strip().splitlines()]
    first, second = kernels(rows, {"main$async_dispatch_1_conv_64x56x56_f32": ("conv", "act")})
    assert PROFILED_RUNS == 5
    assert (first.name, first.nodes, first.calls) == ("main$async_dispatch_0_slow_memcpy", (), 1)
    assert first.total_us == pytest.approx(62.102)
    assert (second.nodes, second.calls) == (("conv", "act"), 2)
    assert second.total_us == pytest.approx(180.0)


def test_dispatches_of_one_executable_are_those_of_its_table(tmp_path: Path) -> None:
    names = ["main$async_dispatch_0_slow_memcpy", "main$async_dispatch_1_softmax"]
    bodies = "".join(f"\t.type\t{name},@function\n{name}:\n\tcallq\texpf\n\tretq\n" for name in names)
    table = "iree_hal_executable_library_query_v0_funcs:\n" + "".join(f"\t.quad\t{name}\n" for name in names)
    helper = "\t.type\texpf,@function\nexpf:\n\tretq\n"
    (tmp_path / "module_main_linked.s").write_text(f"{bodies}{helper}\t.size\texpf, 1\n{table}\t.size\tx, 16\n")
    (tmp_path / "module_main_linked.optimized.ll").write_text("define internal float @expf(float %x) {\n}\n")
    found = code.emitted(tmp_path)
    assert [kernel.name for kernel in found] == names
    assert found[0].assembly == f"{names[0]}:\n\tcallq\texpf\n\tretq\n\nexpf:\n\tretq\n"
    assert found[0].ir == "define internal float @expf(float %x) {\n}\n"


def test_the_user_s_target_and_flags_go_through() -> None:
    target = Target(
        spec="--iree-llvmcpu-target-cpu=x86-64", options={"opt_level": "O1", "flags": "--iree-opt-const-eval=false"}
    )
    flags = Iree().configure(target)["flags"].split()
    assert "--iree-llvmcpu-target-cpu=host" not in flags
    assert flags[-3:] == ["--iree-opt-level=O1", target.spec, "--iree-opt-const-eval=false"]


def test_unknown_level_lists_the_known() -> None:
    with pytest.raises(UsageError, match="use O0, O1, O2, O3"):
        Iree().configure(Target(options={"opt_level": "O9"}))


def test_absent_device_names_the_drivers_that_are_here() -> None:
    with pytest.raises(DeviceNotPresent, match=r"driver 'metal' cannot be opened .*local-sync, local-task.*macOS"):
        Iree().configure(Target(device="metal"))
    with pytest.raises(DeviceNotPresent, match="no device 'tpu'"):
        Iree().configure(Target(device="tpu"))


def test_an_operator_without_lowering_is_named_with_its_node() -> None:
    x = np.ones((1, 1, 4, 4), np.float32)
    graph = single("LpPool", {"x": x}, (1, 1, 4, 4), "float32", kernel_shape=(2, 2), auto_pad="SAME_UPPER")
    with pytest.raises(UnsupportedOp, match=r"iree: no lowering for ai.onnx::LpPool \(node 'n'\)"):
        run(graph, {"x": x})


def test_registry_knows_it() -> None:
    assert compilers.get("iree").name == "iree"
