"""The code that XLA emits for a TensorFlow function: compiled again in a process that was told to dump it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from graphnet.compilers import Kernel, KernelCode, Target, xla_code
from graphnet.ir import sidecar
from graphnet.ir.graph import Graph

_CHILD = "import sys; sys.path[:] = {path!r}; from graphnet.compilers.tensorflow import code; code.compile_again()"
_SHOWN = 400


def emitted(graph: Graph, target: Target) -> list[KernelCode]:
    """Code by HLO instruction.

    TensorFlow reads XLA's flags once in a process, so that this one cannot dump any more. Raises ToolNotFound,
    RuntimeError with what the process printed.
    """
    places = (weight.fill.path for weight in graph.weights.values() if isinstance(weight.fill, sidecar.Located))
    order = {"sidecar": next(places, ""), "target": msgspec.to_builtins(target)}
    with tempfile.TemporaryDirectory(prefix="graphnet-tensorflow-") as name:
        folder = Path(name)
        (folder / "graph.json").write_bytes(msgspec.json.encode(sidecar.unlink(graph)))
        (folder / "order.json").write_text(json.dumps(order))
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={folder / 'dump'}"
        done = subprocess.run(
            [sys.executable, "-c", _CHILD.format(path=sys.path)], cwd=folder, capture_output=True, text=True,
            env=os.environ | {"XLA_FLAGS": flags}, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"compiling again for the code failed: {done.stderr.strip()[-_SHOWN:]}")
        return xla_code.emitted(folder / "dump")


def compile_again() -> None:
    """In the process of its own: compile the graph of the current folder."""
    from graphnet.compilers.tensorflow.compiler import TensorFlow
    from graphnet.ir import tensors

    order = json.loads(Path("order.json").read_bytes())
    graph = msgspec.json.decode(Path("graph.json").read_bytes(), type=Graph)
    if order["sidecar"]:
        graph = sidecar.link(graph, Path(order["sidecar"]))
    target = msgspec.convert(order["target"], Target)
    compiler = TensorFlow()
    compiler.configure(target)
    compiler.compile(graph, tensors.weights(graph, 0), target)


def library_calls(kernels: Sequence[Kernel]) -> list[KernelCode]:
    """TensorFlow without XLA runs kernels that it was built with (Eigen's and oneDNN's among them)."""
    return [KernelCode(name=name, library="TensorFlow") for name in dict.fromkeys(kernel.name for kernel in kernels)]
