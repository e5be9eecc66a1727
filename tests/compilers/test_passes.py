"""Passes of compilers: what a list of names comes to for each."""

from __future__ import annotations

import pytest

from graphnet.compilers import passes
from graphnet.compilers.passes import register_pass, resolve
from graphnet.errors import UsageError
from graphnet.ir.graph import Graph
from graphnet.rewrite import passes as rewrites


@pytest.fixture(autouse=True)
def _registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_REGISTERED", {})
    monkeypatch.setattr(rewrites, "_PASSES", dict(rewrites._PASSES))


def a_library_pass(module: object) -> object:
    return module


def test_a_variant_is_a_pass_of_its_compiler() -> None:
    asked = ("default", "inductor.freezing", "onnxruntime.basic")
    assert resolve("inductor", asked) == ({"freezing": True}, ())
    assert resolve("onnxruntime", asked) == ({"level": "basic"}, ())
    assert resolve("jax", asked) == ({}, ())


def test_library_passes_keep_their_order_around_default() -> None:
    asked = ("tvm.First", "custom_fusion", "default", "tvm.Second", "openvino.Other")
    assert resolve("tvm", asked) == ({}, ("First", "default", "Second"))
    assert resolve("openvino", asked) == ({}, ("default", "Other"))


def test_registered_settings_and_functions() -> None:
    register_pass("fast_min", compiler="jax", options={"xla_flags": "--xla_cpu_enable_fast_min_max=true"})
    assert register_pass("mine", a_library_pass, compiler="tvm") is a_library_pass
    register_pass("theirs", "their.module:function", compiler="tvm")
    assert resolve("jax", ["fast_min"]) == ({"xla_flags": "--xla_cpu_enable_fast_min_max=true"}, ())
    assert resolve("tvm", ["mine", "theirs"]) == ({}, (f"{__name__}:a_library_pass", "their.module:function"))
    assert {"fast_min", "mine", "theirs", "inductor.freezing"} <= set(passes.known())


def test_it_decorates_graph_and_library_passes() -> None:
    @register_pass("nothing")
    def nothing(graph: Graph) -> Graph:
        return graph

    assert rewrites.apply_passes(Graph(name="g"), []) == Graph(name="g")
    assert "nothing" in rewrites.known_passes()
    assert passes.find("nothing") is None
    assert register_pass("decorated", compiler="tvm")(a_library_pass) is a_library_pass
    assert resolve("tvm", ["decorated"]) == ({}, (f"{__name__}:a_library_pass",))


def test_a_function_that_the_child_cannot_find_is_refused() -> None:
    with pytest.raises(UsageError, match="at the top of a module that can be imported"):
        register_pass("local", lambda module: module, compiler="tvm")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "default"}, "stands for the compiler's own optimisations"),
        ({"name": "x", "options": {"a": 1}}, "are for a pass of a compiler"),
        ({"name": "x", "compiler": "nosuch", "options": {}}, "unknown compiler 'nosuch'"),
        ({"name": "x", "compiler": "jax", "options": {}, "function": "a:b"}, "not both"),
    ],
)
def test_bad_registrations(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        register_pass(**arguments)  # type: ignore[call-overload]
