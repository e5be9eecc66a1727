"""Jobs of the gate's second measurement: one race, two builds, the right graph."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate.live import Builds, Live, builds
from graphnet.evaluate.plan import Job
from graphnet.evaluate.records import Result
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph, Input, Node, Value


def graph(name: str, operator: str = "Relu", **fields: str) -> Graph:
    plain = Graph(
        name=name, inputs=(Input(name="x", dtype="float32", shape=(4,)),), outputs=("y",),
        nodes=(Node(op=operator, name="n", inputs=("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(4,))},
    )  # fmt: skip
    return finalize(msgspec.structs.replace(plain, **fields))


def result(of: Graph, compiler: str = "onnxruntime", **fields: object) -> Result:
    plain = Result(
        run_id="r", graph_id=of.graph_id, graph=of.name, subset="other", structure_hash=of.structure_hash(),
        compiler=compiler, target=Target(threads=2), verdict="ok", dims={"batch": 8}, seed=3, passes=("default",),
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def jobs(made: Builds, of: Result) -> tuple[Job, Job]:
    return Live(made).jobs(of, "g.json", 5.0)


def test_both_jobs_are_of_one_race_and_of_the_settings_of_the_result() -> None:
    before, after = jobs(Builds(baseline_python="/base/python"), result(graph("g")))
    assert before.race == after.race != ""
    assert (before.python, after.python) == ("/base/python", "")
    assert (before.copy, after.copy) == (0, 1)
    for job in (before, after):
        assert (job.compiler, job.dims, job.seed, job.budget_s) == ("onnxruntime", {"batch": 8}, 3, 5.0)
        assert (job.target.threads, job.profile, job.graph) == (2, False, "g.json")


def test_races_of_two_measurements_have_unlike_names() -> None:
    live = Live(Builds(baseline_python="/base/python"))
    names = {live.jobs(result(graph("g")), "g.json", 5.0)[0].race for _ in range(3)}
    assert len(names) == 3


def test_a_variant_stands_for_the_baseline_build() -> None:
    before, after = jobs(Builds(baseline_compilers={"": "onnxruntime:basic"}), result(graph("g")))
    assert (before.compiler, before.target.options) == ("onnxruntime:basic", {"level": "basic"})
    assert (after.compiler, after.target.options) == ("onnxruntime", {})
    own = result(graph("g"), "onnxruntime:basic", target=Target(options={"level": "basic", "x": 1}))
    before, after = jobs(Builds(baseline_compilers={"": "onnxruntime:extended"}), own)
    assert before.target.options == {"level": "extended", "x": 1}
    assert after.target.options == {"level": "basic", "x": 1}
    other, _ = jobs(Builds(baseline_compilers={"onnxruntime:basic": "torch"}), own)
    assert (other.compiler, other.target.options) == ("torch", {})


def test_a_compiler_without_a_baseline_build_is_named() -> None:
    with pytest.raises(UsageError, match="no baseline build of onnxruntime"):
        jobs(Builds(baseline_compilers={"jax": "torch"}), result(graph("g")))


def test_builds_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--live needs the baseline build"):
        builds("", "", [])
    with pytest.raises(UsageError, match="no interpreter"):
        builds(str(tmp_path / "python"), "", [])
    with pytest.raises(UsageError, match="no variant"):
        builds("", "", ["onnxruntime:bsic"])
    with pytest.raises(UsageError, match="two for"):
        builds("", "", ["torch", "jax"])
    with pytest.raises(UsageError, match="unknown compiler"):
        builds("", "", ["onnxruntime="])
    made = builds(sys.executable, "", ["onnxruntime=onnxruntime:basic"])
    assert made.baseline_compilers == {"onnxruntime": "onnxruntime:basic"}


def test_the_graph_is_found_by_name_and_structure(tmp_path: Path) -> None:
    right = graph("g")
    graph("g", "Abs").save(tmp_path / "g.json")
    (tmp_path / "bad.json").write_text("{")
    live = Live(Builds(baseline_python="p"), [str(tmp_path)])
    with pytest.raises(UsageError, match=r"another structure.*--graph"):
        live.graph(result(right))
    right.save(tmp_path / "renamed.json")
    assert Live(Builds(baseline_python="p"), [str(tmp_path)]).graph(result(right)) == str(tmp_path / "renamed.json")


def test_results_come_in_the_order_of_the_builds(tmp_path: Path) -> None:
    found = graph("g")
    found.save(tmp_path / "g.json")

    def run(asked: Sequence[Job]) -> list[Result]:
        return [result(found, message=job.python or "ours") for job in asked]

    live = Live(Builds(baseline_python="/base/python"), [str(tmp_path)], run=run)
    before, after = live(result(found), 5.0)
    assert (before.message, after.message) == ("/base/python", "ours")
    with pytest.raises(UsageError, match="1 results of 2 jobs"):
        Live(Builds(baseline_python="p"), [str(tmp_path)], run=lambda asked: [result(found)])(result(found), 5.0)
