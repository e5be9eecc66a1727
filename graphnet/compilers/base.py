"""What a compiler is: its target, the program that it makes, and the kernels that a program can report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
import numpy as np

from graphnet.errors import UsageError
from graphnet.ir.graph import Graph

Tensors = Mapping[str, np.ndarray]
Option = str | int | float | bool
DEFAULT_PASS = "default"
"""Stands for the compiler's own pipeline in a list of passes."""
FLUSH_SUBNORMALS = True
"""Subnormal numbers count as zero on the CPU, as inputs, results and between, for every compiler.

XLA (JAX, TensorFlow) and IREE do so and have no switch; all others have one or follow the processor's mode. IEEE 754
would keep them, but then the same activations would cost some compilers many times what they cost XLA.
"""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to run. The same for every compiler of a comparison."""

    device: str = "cpu"
    """`cpu`, `cuda`, `metal`."""
    spec: str = ""
    """The compiler's own target string (`--target`), passed through."""
    threads: int = 1
    precision: str = "float32"
    """Arithmetic allowed for float32 graphs: `float32` forbids TF32 and bfloat16 shortcuts."""
    options: dict[str, Option] = {}
    passes: tuple[str, ...] = ()
    """The library's own passes, in order; `default` marks the place of the compiler's own pipeline."""


def subnormals(target: Target, flushed: bool) -> str:
    """What every compiler reports as its setting `subnormals`: `flushed` to zero or `kept`; a GPU has its own ways."""
    if target.device != "cpu":
        return "the device's own way"
    return "flushed" if flushed else "kept"


def check_target(
    name: str,
    target: Target,
    options: Sequence[str] = (),
    *,
    passes: Collection[str] = (),
    takes_spec: bool = False,
) -> None:
    """Refuse what compiler `name` would ignore: unknown options or library passes, a target string.

    `options` ending in `.` are prefixes (`config.`). A pass `module:function` is taken as it is where there are
    `passes` at all. Raises UsageError, listing what is known.
    """
    prefixes = tuple(option for option in options if option.endswith("."))
    for key in target.options:
        if key not in options and not (prefixes and key.startswith(prefixes)):
            known = ", ".join(f"{option}NAME" if option in prefixes else option for option in options)
            raise UsageError(
                f"{name}: unknown option '{key}'; {f'its options are: {known}' if known else 'it has none'}"
            )
    for key in target.passes:
        if key != DEFAULT_PASS and key not in passes and not (passes and ":" in key):
            known = f"known: {', '.join(sorted(passes))}" if passes else "it has none of its own"
            raise UsageError(f"{name}: unknown pass '{key}'; {known}")
    if target.spec and not takes_spec:
        raise UsageError(f"{name}: takes no target string (--target={target.spec}); choose the device by --backend")


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one operator or fused kernel over a profiled run."""

    name: str
    nodes: tuple[str, ...] = ()
    """Names of the GraphIR nodes that it covers."""
    calls: int
    total_us: float
    """Microseconds per inference, all calls together."""
    flops: int | None = None
    """FLOPs of the nodes that it covers; None where unknown, or where another kernel has a part of them."""
    bytes: int | None = None
    """Bytes that cross its border: what its nodes read from others and what others read from them."""


class KernelCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a compiler emitted for one kernel, or the library that it calls instead."""

    name: str
    """That of the `Kernel` in the profile, so that the code has a time."""
    assembly: str = ""
    """The kernel's functions with the local ones that they call: labels and instructions (AT&T syntax on x86)."""
    ir: str = ""
    """Their LLVM IR after optimisation, where the compiler is LLVM's."""
    library: str = ""
    """`oneDNN`, `Eigen`, `ynnpack` ... when the kernel is a call into a library; else there is `assembly`."""


class Program(Protocol):
    """A compiled graph.

    It may have an attribute `lower_s`: seconds of `compile` that went into lowering (tracing, translation), before the
    compiler proper began; absent means 0. And an attribute `details`: settings that are known only now, stamped into
    the record beside those of `configure` (operators that were decomposed, the precision that the library chose).
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


@runtime_checkable
class Coded(Protocol):
    """A program that can show the code that runs; to get it may take another compilation, never the timed one."""

    def code(self) -> Sequence[KernelCode]:
        """One for each emitted kernel and each library call of the program."""


@runtime_checkable
class Accounting(Protocol):
    """A program whose library keeps account of its memory."""

    def memory(self) -> Mapping[str, int]:
        """Bytes by the library's own names in snake case, told after the timed runs; nothing where it cannot tell."""


@runtime_checkable
class Caching(Protocol):
    """A compiler that can keep compiled code on the disk from one process to the next."""

    cache_by_default: bool
    """Whether it does so for a user who sets nothing: then a cold compilation pays for writing the cache."""

    def use_cache(self, folder: Path) -> None:
        """In the child, before `configure`: keep compiled code in `folder` from now on, and use what is there."""


CachePolicy = Literal["on by default", "off by default", "none"]


def cache_policy(compiler: object) -> CachePolicy:
    """Whether a compiler keeps compiled code from one process to the next."""
    if not isinstance(compiler, Caching):
        return "none"
    return "on by default" if compiler.cache_by_default else "off by default"


class Compiler(Protocol):
    """Turns a static graph and its weights into a program."""

    name: str
    packages: tuple[str, ...]
    """Distributions that must be installed; their versions are stamped into records."""
    devices: tuple[str, ...]
    """Devices that it has code for, `cpu` first; whether one is here, `configure` says."""

    def preload(self) -> None:
        """Import the framework (in the fork server, before any job): no threads may be started."""

    def configure(self, target: Target) -> dict[str, Any]:
        """In the child, before `compile`: set threads, device and precision in this one place.

        Returns the effective settings, stamped into the record. Raises DeviceNotPresent.
        """

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> Program:
        """Raises UnsupportedOp; any other exception is recorded as verdict `error`."""
