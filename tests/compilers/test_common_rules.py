"""Rules that hold for every built-in compiler alike."""

from __future__ import annotations

import json
import subprocess
import sys
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
SUBNORMAL = """
import json, sys
import numpy as np
from graphnet import compilers
from graphnet.ir.graph import Graph, Input, Node, Value
graph = Graph(
    name="twice", inputs=(Input(name="x", dtype="float32", shape=(64,)),), outputs=("y",),
    nodes=(Node(op="Add", name="sum", inputs=("x", "x"), outputs=("y",)),),
    values={"y": Value(dtype="float32", shape=(64,))},
)
compiler, target = compilers.get(sys.argv[1]), compilers.Target()
settings = compiler.configure(target)
program = compiler.compile(graph, {}, target)
program.bind({"x": np.full(64, 1e-39, np.float32)})
program.run()
print(json.dumps([settings["flush_subnormals"], float(np.abs(program.outputs()[0]).max())]))
"""


@pytest.mark.parametrize("name", TIMED)
def test_subnormals_count_as_zero(name: str) -> None:
    """ngraph#1857: one policy for all. In a process of its own, since the processor's mode belongs to the thread."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SUBNORMAL, name], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [True, 0.0]


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
