"""TVM's search: design spaces compute the same, what is found survives a crash, and the time limit holds."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax, s_tir, te, tirx

from graphnet.compilers import Target
from graphnet.compilers.tvm import search, tune
from graphnet.compilers.tvm.compiler import Tvm
from graphnet.compilers.tvm.contract import legalizations
from graphnet.compilers.tvm.schedule import ORDERS, sampled_contraction
from graphnet.compilers.tvm.target import machine, registers
from graphnet.ir import tensors
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight

ROWS, DEPTH, COLUMNS = 48, 40, 96


def product_kernel() -> tuple[tvm.IRModule, tirx.PrimFunc]:
    """A module whose `main` multiplies by a constant, and its kernel."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((ROWS, DEPTH), "float32"))
    weights = np.random.default_rng(0).standard_normal((DEPTH, COLUMNS)).astype("float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.matmul(x, relax.const(weights)))
        builder.emit_func_output(result)
    found = machine(Target())
    with found.target:
        module = relax.transform.LegalizeOps(legalizations(registers(found.target)))(builder.get())
    [kernel] = [function for _, function in module.functions_items() if isinstance(function, tirx.PrimFunc)]
    return module, kernel


@pytest.fixture(name="quick")
def _quick(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(tune, "LEAST_SECONDS", 0.2)
    return monkeypatch


def test_every_design_space_computes_the_product() -> None:
    _, kernel = product_kernel()
    target = machine(Target()).target
    arguments = [search._argument(buffer, index) for index, buffer in enumerate(kernel.params)]
    expected = search.Built(kernel, target, arguments).outputs()
    exact = arguments[0].numpy() @ np.concatenate(list(arguments[1].numpy()), axis=1)
    assert np.abs(expected[2] - exact).max() < 1e-4
    for seed in range(3):
        schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}), seed=seed + 1)
        spaces = sampled_contraction(schedule, registers(target))
        assert len(spaces) == len(ORDERS)
        for space in spaces:
            assert search._agree(expected, search.Built(space.mod["main"], target, arguments).outputs())


def test_a_candidate_with_other_results_never_wins() -> None:
    _, kernel = product_kernel()
    task = search.Task("product", kernel, machine(Target()).target, None, 1)
    x, w, out = (
        te.placeholder([int(size) for size in buffer.shape], "float32", name)
        for buffer, name in zip(kernel.params, "xwy", strict=True)
    )
    wrong = te.create_prim_func([x, w, te.compute(out.shape, lambda *i: x[i[0], 0] * w[0, 0, 0])])
    with pytest.raises(ValueError, match="other results"):
        task._measure(wrong)
    task.best_s = 1e-12
    assert not task._measure(kernel)[1]


def test_other_results_do_not_agree() -> None:
    ours = np.array([1.0, -2.0, np.nan], "float32")
    assert search._agree([ours], [ours + np.float32(1e-4)])
    assert not search._agree([ours], [ours + np.float32(1e-3)])
    assert not search._agree([ours], [np.array([1.0, -2.0, 0.0], "float32")])


def test_dynamic_kernels_are_not_searched() -> None:
    size = tirx.Var("n", "int64")
    x = te.placeholder((size,), "float32", "x")
    dynamic = te.create_prim_func([x, te.compute((size,), lambda i: x[i] + 1.0)])
    assert not search._is_static(dynamic)
    assert search._is_static(product_kernel()[1])


def test_what_was_found_survives_crashes(quick: pytest.MonkeyPatch) -> None:
    module, kernel = product_kernel()
    [name] = [variable.name_hint for variable in module.get_global_vars() if variable.name_hint != "main"]
    found = tvm.ir.save_json(tvm.IRModule({"main": kernel}))
    quick.setattr(
        tune, "_BOOT",
        "import os, pathlib; folder = pathlib.Path({folder!r}); (folder / 'found').mkdir(exist_ok=True);"
        f"(folder / 'found' / '{name}.json').write_text({found.replace('{', '{{').replace('}', '}}')!r});"
        "print('k', file=(folder / 'tried').open('a'), flush=True); os.abort()",
    )  # fmt: skip
    result = tune.tune(module, machine(Target()).target, 1, 20.0)
    assert list(result.functions) == [name]
    assert result.functions[name].script() == kernel.script()
    assert result.details["tune_processes"] == result.details["tune_candidates"] == tune._ATTEMPTS


def test_a_search_that_hangs_ends_at_the_limit(quick: pytest.MonkeyPatch) -> None:
    quick.setattr(tune, "_BOOT", "import time; {path!r}; {folder!r}; time.sleep(60)")
    start = time.monotonic()
    result = tune.tune(product_kernel()[0], machine(Target()).target, 1, 1.0)
    assert not result.functions
    assert time.monotonic() - start < 10


def test_a_search_that_cannot_start_says_why(quick: pytest.MonkeyPatch) -> None:
    quick.setattr(tune, "_BOOT", "{path!r}; {folder!r}; raise RuntimeError('no such search')")
    result = tune.tune(product_kernel()[0], machine(Target()).target, 1, 20.0)
    assert result.details["tune_failure"] == "RuntimeError: no such search"


def product_net() -> Graph:
    return Graph(
        name="net", inputs=(Input(name="x", dtype="float32", shape=(ROWS, DEPTH)),), outputs=("y",),
        weights={"w": Weight(dtype="float32", shape=(DEPTH, COLUMNS), fill=Normal())},
        nodes=(
            Node(op="MatMul", name="product", inputs=("x", "w"), outputs=("p",)),
            Node(op="Relu", name="act", inputs=("p",), outputs=("y",)),
        ),
        values={name: Value(dtype="float32", shape=(ROWS, COLUMNS)) for name in "py"},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_search_tries_candidates_and_keeps_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    graph = product_net()
    weights, feed = tensors.weights(graph, 0), tensors.inputs(graph, 0)
    target = Target(options={"tune": 120})
    Tvm().configure(target)
    program = Tvm().compile(graph, weights, target)
    assert program.details["tune_candidates"] > 0
    program.bind(feed)
    program.run()
    exact = np.maximum(feed["x"].astype(np.float64) @ weights["w"].astype(np.float64), 0)
    assert np.abs(program.outputs()[0] - exact).max() < 1e-4
