"""Rules that hold for every built-in compiler alike."""

from __future__ import annotations

import time
from typing import Any

import pytest

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.ir.graph import Graph, Input, Node, Value

TIMED = ("torch", "inductor", "jax", "onnxruntime", "openvino", "tvm", "iree", "tensorflow", "tinygrad")
ALL = (*TIMED, "reference", "null")
TAKE_TARGETS = ("tvm", "iree")


@pytest.mark.parametrize("name", TIMED)
def test_lowering_is_told_apart_from_compiling(name: str) -> None:
    graph = Graph(
        name="twice", inputs=(Input(name="x", dtype="float32", shape=(64,)),), outputs=("y",),
        nodes=(Node(op="Add", name="sum", inputs=("x", "x"), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(64,))},
    )  # fmt: skip
    compiler = compilers.get(name)
    compiler.configure(Target())
    start = time.perf_counter()
    program: Any = compiler.compile(graph, {}, Target())
    assert 0 < program.lower_s < time.perf_counter() - start


@pytest.mark.parametrize("name", ALL)
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: unknown option 'freezng'; it"):
        compilers.get(name).configure(Target(options={"freezng": True}))


@pytest.mark.parametrize("name", [name for name in ALL if name not in TAKE_TARGETS])
def test_a_target_string_is_not_ignored(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: takes no target string"):
        compilers.get(name).configure(Target(spec="llvm -mcpu=skylake"))
