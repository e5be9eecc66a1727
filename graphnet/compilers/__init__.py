"""What a compiler is, and the registry of them: one file each, one line each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from graphnet.errors import CompilerNotFound, UsageError
from graphnet.ir.graph import Graph

Tensors = Mapping[str, np.ndarray]
FLUSH_SUBNORMALS = True
"""Subnormal numbers count as zero, for every compiler: XLA's CPU executables do so and cannot be told otherwise."""

BUILTIN = {
    "torch": "graphnet.compilers.torch_eager:TorchEager",
    "inductor": "graphnet.compilers.inductor:Inductor",
    "jax": "graphnet.compilers.jax:Jax",
    "onnxruntime": "graphnet.compilers.onnxruntime:OnnxRuntime",
    "reference": "graphnet.compilers.reference:Reference",
    "null": "graphnet.compilers.null:Null",
}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to run. The same for every compiler of a comparison."""

    device: str = "cpu"
    """`cpu`, `cuda`, `metal`."""
    spec: str = ""
    """The compiler's own target string (`--target`), passed through."""
    threads: int = 1
    precision: str = "float32"
    """Arithmetic allowed for float32 graphs: `float32` forbids TF32 and bfloat16 shortcuts."""
    options: dict[str, str | int | float | bool] = {}


def check_target(name: str, target: Target, options: Sequence[str] = ()) -> None:
    """Refuse what compiler `name` would ignore: unknown options, a target string. Raises UsageError."""
    for key in target.options:
        if key not in options:
            known = f"its options are: {', '.join(options)}" if options else "it has none"
            raise UsageError(f"{name}: unknown option '{key}'; {known}")
    if target.spec:
        raise UsageError(f"{name}: takes no target string (--target={target.spec}); choose the device by --backend")


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one operator or fused kernel over a profiled run."""

    name: str
    nodes: tuple[str, ...] = ()
    """Names of the GraphIR nodes that it covers."""
    calls: int
    total_us: float
    """Microseconds per inference, all calls together."""


class Program(Protocol):
    """A compiled graph.

    It may have an attribute `lower_s`: seconds of `compile` that went into lowering (tracing, translation), before the
    compiler proper began; absent means 0.
    """

    def bind(self, inputs: Tensors) -> None:
        """Host to device; not timed."""

    def run(self) -> None:
        """One inference; returns only when the work is done. The timed part."""

    def outputs(self) -> Sequence[np.ndarray]:
        """Device to host, in the order of `Graph.outputs`, with the graph's dtypes; not timed."""


@runtime_checkable
class Profiled(Protocol):
    """A program that can say where its time goes (a separate run, never the timed one)."""

    def kernels(self) -> Sequence[Kernel]:
        """Kernels of one inference with their times, for the inputs that are bound."""


class Compiler(Protocol):
    """Turns a static graph and its weights into a program."""

    name: str
    packages: tuple[str, ...]
    """Distributions that must be installed; their versions are stamped into records."""

    def preload(self) -> None:
        """Import the framework (in the fork server, before any job): no threads may be started."""

    def configure(self, target: Target) -> dict[str, Any]:
        """In the child, before `compile`: set threads, device and precision in this one place.

        Returns the effective settings, stamped into the record. Raises DeviceNotPresent.
        """

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> Program:
        """Raises UnsupportedOp; any other exception is recorded as verdict `error`."""


def names() -> list[str]:
    """Every known compiler, built in or from the entry-point group `graphnet.compilers`."""
    return [*BUILTIN, *(point.name for point in entry_points(group="graphnet.compilers"))]


def check_name(name: str) -> None:
    """Raises UsageError for a name that is no known compiler and no `module:Class`; imports nothing."""
    if ":" not in name and name not in names():
        raise UsageError(f"unknown compiler '{name}'; known: {', '.join(names())}")


def get(name: str) -> Compiler:
    """The compiler of that name, or `module:Class` of an importable module.

    Raises UsageError (unknown) or CompilerNotFound (package missing).
    """
    path = name if ":" in name else BUILTIN.get(name)
    if path is None:
        for point in entry_points(group="graphnet.compilers"):
            if point.name == name:
                compiler: Compiler = point.load()()
                return compiler
        raise UsageError(f"unknown compiler '{name}'; known: {', '.join(names())}")
    module, _, cls = path.partition(":")
    try:
        found: Compiler = getattr(importlib.import_module(module), cls)()
    except ModuleNotFoundError as error:
        raise CompilerNotFound(f"compiler '{name}' needs: pip install {error.name}") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise CompilerNotFound(f"compiler '{name}' cannot be imported: {error}") from error
    missing = [package for package in found.packages if not _installed(package)]
    if missing:
        raise CompilerNotFound(f"compiler '{name}' needs: pip install {' '.join(missing)}")
    return found


def versions(compiler: Compiler) -> dict[str, str]:
    """Installed version of each package of a compiler; `""` where it is missing."""
    return {package: _installed(package) for package in compiler.packages}


def _installed(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
