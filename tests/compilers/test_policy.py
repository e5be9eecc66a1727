"""The same threads, precision and subnormals for all: seen in what the process's threads do, and in the numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

NAMES = ("torch", "inductor", "jax", "onnxruntime", "openvino", "tvm", "iree", "tensorflow", "tinygrad")
ONE_THREADED = ("tinygrad",)
"""Run their kernels on the calling thread whatever is asked for, and have to say so in the record."""
TRIES = 3
"""Others may keep a thread waiting for its processor; a library that uses too many threads or too few always does."""
FLOAT32_ERROR = 1e-5
"""Of a sum of 1024 products in float32, over the largest element; TF32 gives 3e-4, bfloat16 3e-3."""
PROGRAM = """
import json, sys, time
import numpy as np
from graphnet import compilers
from graphnet.ir.graph import Graph, Input, Node, Value

size = 1024
graph = Graph(
    name="product", outputs=("y",),
    inputs=tuple(Input(name=name, dtype="float32", shape=(size, size)) for name in "ab"),
    nodes=(Node(op="MatMul", name="product", inputs=("a", "b"), outputs=("y",)),),
    values={"y": Value(dtype="float32", shape=(size, size))},
)
compiler, target = compilers.get(sys.argv[1]), compilers.Target(threads=int(sys.argv[2]))
compiler.preload()
settings = compiler.configure(target)
program = compiler.compile(graph, {}, target)
draw = np.random.default_rng(0)
inputs = {name: draw.standard_normal((size, size)).astype(np.float32) for name in "ab"}
program.bind(inputs)
program.run()
exact = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
error = float(np.abs(program.outputs()[0] - exact).max() / np.abs(exact).max())
print(json.dumps({"error": error, "threads": settings["threads"]}), flush=True)
end = time.monotonic() + 3
while time.monotonic() < end:
    program.run()
"""
SUBNORMALS = """
import json, sys
import numpy as np
from graphnet import compilers
from graphnet.ir.graph import Graph, Input, Node, Value

size, side = 1 << 20, 128
long, square = Value(dtype="float32", shape=(size,)), Value(dtype="float32", shape=(side, side))
graph = Graph(
    name="tiny", outputs=("scaled", "sum", "product", "back"),
    inputs=(
        Input(name="x", dtype="float32", shape=(size,)), Input(name="s", dtype="float32", shape=(size,)),
        Input(name="a", dtype="float32", shape=(side, side)),
    ),
    nodes=(
        Node(op="Mul", name="scale", inputs=("x", "s"), outputs=("scaled",)),
        Node(op="Add", name="add", inputs=("x", "x"), outputs=("sum",)),
        Node(op="MatMul", name="multiply", inputs=("a", "a"), outputs=("product",)),
        Node(op="Div", name="divide", inputs=("product", "a"), outputs=("back",)),
    ),
    values={"scaled": long, "sum": long, "product": square, "back": square},
)
compiler, target = compilers.get(sys.argv[1]), compilers.Target(threads=int(sys.argv[2]))
compiler.preload()
settings = compiler.configure(target)
program = compiler.compile(graph, {}, target)
shares = {}
for case, (x, s, a) in json.loads(sys.argv[3]).items():
    filled = {"x": ((size,), x), "s": ((size,), s), "a": ((side, side), a)}
    program.bind({name: np.full(shape, value, np.float32) for name, (shape, value) in filled.items()})
    program.run()
    # by the bits: this thread may take what is subnormal for zero
    shares[case] = [float((array.view(np.uint32) << 1 != 0).mean()) for array in program.outputs()]
told = {**settings, **getattr(program, "details", {})}["subnormals"]
print(json.dumps({"subnormals": told, "shares": shares}))
"""
TINY = {"operands": (1e-39, 1.5, 1.0), "results": (2e-38, 0.1, 1e-21)}
"""Values of x, s and a. Operands: x is subnormal. Results: x s is, and so is each element of a a, a sum of 128."""
NONZERO = {
    "kept": {"operands": [1.0, 1.0, 1.0, 1.0], "results": [1.0, 1.0, 1.0, 1.0]},
    "flushed": {"operands": [0.0, 0.0, 1.0, 1.0], "results": [0.0, 1.0, 0.0, 0.0]},
}
"""Share of elements that are not zero, of each output: x s, x + x, a a, (a a) / a."""


class Seen(NamedTuple):
    """What a process told of itself, and what its threads did while it ran inferences."""

    error: float
    threads: int
    running: Counter[int]
    """How often so many of its threads were running, or waiting for a processor, at once."""
    cpu_s: list[float]
    """CPU time of each thread over those inferences, largest first."""


def settled(name: str, threads: int, holds: Callable[[Seen], bool]) -> Seen:
    """The first of a few measurements for which `holds`, else the last."""
    for index in range(TRIES):
        seen = measured(name, threads, index)
        if holds(seen):
            break
    return seen


@cache
def measured(name: str, threads: int, index: int = 0) -> Seen:
    """In a process of its own, as jobs are: thread pools cannot be resized. Another `index` measures again."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, name, str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = iter(process.stdout.readline, "")
        line = next((line for line in lines if line.startswith('{"error"')), "")
        assert line, process.stderr.read()[-2000:]
        before, running = _cpu_seconds(process.pid), Counter[int]()
        after = before
        while process.poll() is None:
            after = _cpu_seconds(process.pid) or after
            running[_runnable(process.pid)] += 1
            time.sleep(0.003)
    told = json.loads(line)
    used = sorted((after[task] - before.get(task, 0.0) for task in after), reverse=True)
    return Seen(told["error"], told["threads"], running, used)


def _runnable(pid: int) -> int:
    return sum(_read(pid, task, "stat").rpartition(")")[2].split()[:1] == ["R"] for task in _tasks(pid))


def _cpu_seconds(pid: int) -> dict[str, float]:
    found = {task: _read(pid, task, "schedstat").split()[:1] for task in _tasks(pid)}
    return {task: int(first[0]) * 1e-9 for task, first in found.items() if first}


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def _read(pid: int, task: str, name: str) -> str:
    try:
        with open(f"/proc/{pid}/task/{task}/{name}") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alone(seen: Seen) -> bool:
    return sum(seen.cpu_s[1:]) < 0.1 * seen.cpu_s[0] and _share(seen, at_least=2) < 0.05


def two_at_once(seen: Seen) -> bool:
    """Which threads they are is the library's affair: the caller may take turns with a pool, and overlap at its edges.

    A third thread that had work of its own would be there most of the time.
    """
    return _share(seen, at_least=2) > 0.2 and _share(seen, at_least=3) < 0.25


@pytest.mark.parametrize("name", NAMES)
def test_one_thread_is_one(name: str) -> None:
    seen = settled(name, 1, alone)
    assert seen.threads == 1
    assert alone(seen), seen


@pytest.mark.parametrize("name", ONE_THREADED)
def test_one_thread_is_reported_where_there_are_never_more(name: str) -> None:
    seen = settled(name, 2, alone)
    assert seen.threads == 1
    assert alone(seen), seen


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_THREADED])
def test_two_threads_are_two_at_once(name: str) -> None:
    seen = settled(name, 2, two_at_once)
    assert seen.threads == 2
    assert two_at_once(seen), seen


def _share(seen: Seen, at_least: int) -> float:
    return sum(times for count, times in seen.running.items() if count >= at_least) / seen.running.total()


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_float32(name: str) -> None:
    assert measured(name, 1).error < FLOAT32_ERROR


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_subnormals_are_what_is_declared_and_flushed_by_all(name: str, threads: int) -> None:
    """ngraph#1857. Of every element, whichever thread computes it: the processor's mode belongs to the thread.

    The fourth output tells of what is between two operators: the quotient is normal, only its dividend is not.
    """
    command = [sys.executable, "-W", "ignore", "-c", SUBNORMALS, name, str(threads), json.dumps(TINY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["subnormals"] == "flushed"
    assert seen["shares"] == NONZERO[seen["subnormals"]]
