"""Caches of compiled code: a second process takes from the folder what the first one left, and compiles nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from graphnet import compilers
from graphnet.compilers import cache_policy
from graphnet.compilers.tinygrad.compiler import find_clang

PROGRAM = """
import json, os, sys
from pathlib import Path
import numpy as np
from graphnet import compilers
from graphnet.compilers import Target
from graphnet.ir.graph import Graph, Input, Node, Value
graph = Graph(
    name="bent", inputs=(Input(name="x", dtype="float32", shape=(64, 64)),), outputs=("y",),
    nodes=(
        Node(op="Tanh", name="bend", inputs=("x",), outputs=("t",)),
        Node(op="Add", name="twice", inputs=("t", "x"), outputs=("y",)),
    ),
    values={name: Value(dtype="float32", shape=(64, 64)) for name in ("t", "y")},
)
compiler, target = compilers.get(sys.argv[1]), Target()
if sys.argv[2]:
    compiler.use_cache(Path(sys.argv[2]))
compiler.configure(target)
program = compiler.compile(graph, {}, target)
x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64)
program.bind({"x": x})
program.run()
assert np.allclose(program.outputs()[0], np.tanh(x) + x, atol=1e-5)
counters = {}
if sys.argv[1] == "inductor":
    from torch._dynamo.utils import counters as counted
    counters = {name: counted["inductor"][f"fxgraph_cache_{name}"] for name in ("hit", "miss")}
print(json.dumps(counters))
"""
POLICIES = {
    "inductor": "on by default", "tinygrad": "on by default", "jax": "off by default", "tensorflow": "off by default",
    "openvino": "off by default", "torch": "none", "onnxruntime": "none", "tvm": "none", "iree": "none",
}  # fmt: skip
WRITTEN = {"inductor": ".so", "jax": "-cache", "tensorflow": ".pb", "openvino": ".blob"}
"""How names of files with compiled code end."""
TENSORFLOW = pytest.param("tensorflow", marks=pytest.mark.slow)


class Seen(NamedTuple):
    """Code files with their time of change, and what the process printed."""

    files: dict[str, int]
    counters: dict[str, int]


def compiled(name: str, folder: Path | None, home: Path, **environment: str) -> Seen:
    """Compile and run in a process of its own whose home folder is `home`."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{PROGRAM}", name,
         str(folder or "")],
        capture_output=True, text=True, check=True,
        env=os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(home)} | environment,
    )  # fmt: skip
    files = (folder or home).rglob("*")
    ending = WRITTEN.get(name, "")
    code = {str(path): path.stat().st_mtime_ns for path in files if path.name.endswith(ending) and path.is_file()}
    return Seen(code, json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name: str) -> None:
    assert cache_policy(compilers.get(name)) == POLICIES[name]


@pytest.mark.parametrize("name", ["inductor", "jax", TENSORFLOW, "openvino"])
def test_second_process_writes_no_code(name: str, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    first, second = compiled(name, folder, home), compiled(name, folder, home)
    assert first.files
    assert second.files == first.files
    if name == "inductor":
        assert (first.counters, second.counters) == ({"hit": 0, "miss": 1}, {"hit": 1, "miss": 0})


@pytest.mark.parametrize("name", ["jax", TENSORFLOW, "openvino"])
def test_cold_pays_for_no_cache_that_is_off_by_default(name: str, home: Path) -> None:
    assert compiled(name, None, home).files == {}


def test_tinygrad_calls_clang_in_the_first_process_only(tmp_path: Path, home: Path) -> None:
    folder, log, wrapper = tmp_path / "cache", tmp_path / "log", tmp_path / "clang-logged"
    folder.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho call >> {log}\nexec {shutil.which(find_clang())} "$@"\n')
    wrapper.chmod(0o755)
    compiled("tinygrad", folder, home, CC=str(wrapper))
    calls = log.read_text().count("call")
    assert calls > 0
    compiled("tinygrad", folder, home, CC=str(wrapper))
    assert log.read_text().count("call") == calls
    compiled("tinygrad", None, home, CC=str(wrapper))
    assert log.read_text().count("call") == 2 * calls, "without our folder nothing is kept"
