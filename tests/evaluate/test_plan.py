from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate.plan import Job, graph_digest, graph_passes, job_key, plan, sidecar_of
from graphnet.ir.graph import Constant, File, Graph, Weight

MakeGraph = Callable[[str], Graph]
replace = msgspec.structs.replace


def test_jobs_go_graph_by_graph(make_graph: MakeGraph) -> None:
    graphs = [make_graph("a"), make_graph("b")]
    jobs = plan(graphs, ["torch", "jax", "torch"], target=Target(threads=2), seed=3, budget_s=1)
    assert [(job.graph, job.compiler) for job in jobs] == [(g, c) for g in graphs for c in ("torch", "jax")]
    assert {(job.target.threads, job.seed, job.budget_s) for job in jobs} == {(2, 3, 1)}


def test_options_of_one_compiler(make_graph: MakeGraph) -> None:
    target = Target(options={"inductor.freezing": True, "level": "basic", "onnxruntime.level": "all"})
    jobs = plan([make_graph("a")], ["torch", "inductor", "onnxruntime"], target=target)
    assert [job.target.options for job in jobs] == [
        {"level": "basic"}, {"freezing": True, "level": "basic"}, {"level": "all"},
    ]  # fmt: skip


def test_a_variant_stands_for_options_that_can_be_overridden(make_graph: MakeGraph) -> None:
    target = Target(options={"inductor.mode": "reduce-overhead", "inductor:freezing.mode": "max-autotune"})
    jobs = plan([make_graph("a")], ["inductor", "inductor:freezing", "inductor:max-autotune", "jax"], target=target)
    assert [job.target.options for job in jobs] == [
        {"mode": "reduce-overhead"}, {"freezing": True, "mode": "max-autotune"}, {"mode": "reduce-overhead"}, {},
    ]  # fmt: skip
    assert len({job_key(job, "a", "") for job in jobs}) == 4


def test_an_option_with_a_dot_is_for_all(make_graph: MakeGraph) -> None:
    target = Target(options={"config.max_fusion_size": 8, "inductor.config.cpp.simdlen": 256})
    (job,) = plan([make_graph("a")], ["inductor"], target=target)
    assert job.target.options == {"config.max_fusion_size": 8, "config.cpp.simdlen": 256}


def test_passes_of_a_compiler_go_to_its_jobs(make_graph: MakeGraph) -> None:
    asked = ["tvm.FoldConstant", "default", "custom_fusion", "inductor.freezing"]
    jobs = plan([make_graph("a")], ["tvm", "inductor", "torch"], passes=asked)
    assert [(job.target.options, job.target.passes) for job in jobs] == [
        ({}, ("FoldConstant", "default")), ({"freezing": True}, ()), ({}, ()),
    ]  # fmt: skip
    assert {job.passes for job in jobs} == {tuple(asked)}
    assert graph_passes(asked) == ("custom_fusion",)


def test_paths_stay_paths(tmp_path: Path) -> None:
    (job,) = plan([tmp_path / "x.json"], ["null"])
    assert job.graph == os.fspath(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"compilers": []}, "no compiler"),
        ({"compilers": ["null"], "budget_s": 0}, "budget 0"),
        ({"compilers": ["null"], "budget_s": float("nan")}, "budget nan"),
        ({"compilers": ["null"], "tolerance": 1}, "tolerance level 1"),
        ({"compilers": ["null:fast"]}, "'null' has no variant 'fast'"),
        (
            {"compilers": ["null"], "passes": ["default", "nosuch"]},
            "unknown pass 'nosuch'; known: default, .*custom_fusion.*, inductor.freezing",
        ),
        (
            {"compilers": ["null", "jax"], "passes": ["tvm.FoldConstant"]},
            "pass 'tvm.FoldConstant' is of compiler 'tvm', which is not among null, jax",
        ),
        (
            {"compilers": ["null"], "target": Target(options={"jax.foo": 1})},
            "option 'jax.foo' is for compiler 'jax', which is not among null",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan([], **arguments)  # type: ignore[arg-type]


def test_digest_is_of_what_is_computed(make_graph: MakeGraph) -> None:
    graph = make_graph("a")
    assert len(graph_digest(graph)) == 32
    assert graph_digest(replace(graph, name="b", flops=1, stored_hash="x", framework="y")) == graph_digest(graph)
    three = Weight(dtype="float32", shape=(), fill=Constant(value=3.0))
    assert graph_digest(replace(graph, weights={"two": three})) != graph_digest(graph)
    assert graph_digest(replace(graph, outputs=("x",))) != graph_digest(graph)


def test_digest_depends_on_the_sidecar(make_graph: MakeGraph, tmp_path: Path) -> None:
    weight = Weight(dtype="float32", shape=(1,), fill=File())
    graph = replace(make_graph("a"), weights={"two": weight})
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(graph))
    save_file({"two": np.array([2.0], np.float32)}, tmp_path / "a.safetensors")
    first = Graph.load(tmp_path / "a.json")
    assert sidecar_of(first) == str((tmp_path / "a.safetensors").resolve())
    digest = graph_digest(first)
    assert digest == graph_digest(Graph.load(tmp_path / "a.json"))
    save_file({"two": np.array([5.0], np.float32)}, tmp_path / "a.safetensors")
    os.utime(tmp_path / "a.safetensors", ns=(1, 1))
    assert digest != graph_digest(Graph.load(tmp_path / "a.json"))


def test_key_is_the_same_after_a_restart(make_graph: MakeGraph) -> None:
    job = Job(graph=make_graph("a"), compiler="null", dims={"a": 1, "b": 2})
    # a literal: a change of it makes every stored run unresumable
    assert job_key(job, "name", "digest") == "5c22e21266c5e4ee7837d3feef86d231"
    assert job_key(replace(job, dims={"b": 2, "a": 1}), "name", "digest") == job_key(job, "name", "digest")
    for other in (
        replace(job, compiler="torch"),
        replace(job, seed=1),
        replace(job, dims={"a": 1}),
        replace(job, passes=("default", "x")),
        replace(job, target=Target(threads=2)),
        replace(job, target=Target(options={"a": 1})),
    ):
        assert job_key(other, "name", "digest") != job_key(job, "name", "digest")
    assert job_key(job, "other", "digest") != job_key(job, "name", "digest")
    assert job_key(job, "name", "other") != job_key(job, "name", "digest")
    assert job_key(replace(job, budget_s=1.0), "name", "digest") == job_key(job, "name", "digest")
