"""TVM (`tvm`): its ONNX importer, then its own pipeline (`untuned`) or our schedules (the default)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from graphnet.compilers import Kernel, KernelCode, Target, Tensors, check_target, subnormals
from graphnet.compilers.tvm import code
from graphnet.compilers.tvm.importer import composites, import_graph
from graphnet.compilers.tvm.lower import Lowered, check_passes, finish, known_passes, lower
from graphnet.compilers.tvm.math import use_vector_math
from graphnet.compilers.tvm.nodes import called_kernels, completed
from graphnet.compilers.tvm.profile import kernel_times, planned_storage
from graphnet.compilers.tvm.target import KINDS, Machine, flush_subnormals, machine, set_threads
from graphnet.compilers.tvm.tune import seconds
from graphnet.errors import UsageError
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import Graph

SCHEDULES = ("ours", "none")
LIBRARIES = ("tvm.contrib.cblas.matmul", "tvm.contrib.mkl.matmul", "tvm.contrib.dnnl.matmul")
"""Kernels of other libraries that a build of TVM may have."""


class Tvm:
    """`tvm`: options `schedule` (ours, none: TVM's default pipeline) and `tune` (seconds of search per graph)."""

    name = "tvm"
    packages = ("apache-tvm",)
    devices = tuple(KINDS)

    def preload(self) -> None:
        """Importing this module imported TVM, which starts no thread; find out once what it can do."""
        composites()
        known_passes()

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads (before TVM's pool starts), target, floating-point mode. Raises DeviceNotPresent and UsageError."""
        check_target(self.name, target, ("schedule", "tune"), passes=known_passes(), takes_spec=True)
        check_passes(target)
        _check_options(target)
        found = machine(target)
        use_vector_math(target.options.get("schedule") != "none")
        flushed = flush_subnormals()
        return {
            "target": str(found.target),
            "threads": set_threads(target.threads),
            "schedule": str(target.options.get("schedule", SCHEDULES[0])),
            "precision": "float32",
            "fast_math": False,
            "subnormals": subnormals(target, flushed),
            "libraries": ", ".join(name for name in LIBRARIES if tvm.get_global_func(name, allow_missing=True)),
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> TvmProgram:
        """Import, lower, schedule, build. Raises UnsupportedOp."""
        found, start = machine(target), time.perf_counter()
        imported = import_graph(graph, tensors)
        lower_s = time.perf_counter() - start
        lowered = lower(imported.module, imported.nodes, target, found.target)
        kernels = _called(lowered, graph)
        executable = relax.build(lowered.module, found.target, relax_pipeline=finish(found.target))
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(lowered.rules.items()))
        details = {"kernels": rules, **lowered.details}
        if imported.decomposed:
            details["decomposed"] = imported.decomposed
        return TvmProgram(graph, executable, found, kernels, lower_s, details)


class TvmProgram:
    """A Relax virtual machine and tensors on its device; weights are constants of the program."""

    def __init__(
        self, graph: Graph, executable: Any, found: Machine, kernels: Sequence[tuple[str, tuple[str, ...]]],
        lower_s: float, details: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.lower_s = lower_s
        """Seconds of writing ONNX and importing it, part of the compilation."""
        self.details = dict(details)
        self._graph, self._device, self._kernels = graph, found.device, kernels
        self._executable = executable
        self._machine = relax.VirtualMachine(executable, found.device)
        self._main = self._machine["main"]
        self._inputs: list[Any] = []
        self._results: list[Any] = []

    def bind(self, inputs: Tensors) -> None:
        """Copy the inputs to the device."""
        self._inputs = [tvm.runtime.tensor(np.asarray(inputs[item.name]), self._device) for item in self._graph.inputs]

    def run(self) -> None:
        """One inference, complete on return."""
        results = self._main(*self._inputs)
        if self._device.dlpack_device_type() != tvm.cpu().dlpack_device_type():
            self._device.sync()
        self._results = [results] if isinstance(results, tvm.runtime.Tensor) else list(results)

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [
            _to_numpy(result, tensors_.numpy_dtype(self._graph.type_of(name).dtype))
            for name, result in zip(self._graph.outputs, self._results, strict=True)
        ]

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each kernel over a few runs, with the nodes that it covers."""
        return kernel_times(self._machine, self.run, self._kernels)

    def memory(self) -> Mapping[str, int]:
        """The storages of one inference together; weights, which are constants, and inputs are not among them."""
        return {"planned_storage": planned_storage(self._machine, self.run)}

    def code(self) -> Sequence[KernelCode]:
        """Code of each kernel of the virtual machine."""
        return code.emitted(self._executable, (name for name, _ in self._kernels))

    def source(self, form: str = "asm") -> str:
        """The text of the whole module: `asm` or, on CPUs, `ll` (LLVM IR)."""
        return code.source(self._executable, form)


def _called(lowered: Lowered, graph: Graph) -> list[tuple[str, tuple[str, ...]]]:
    """Names of the kernels in the order in which `main` calls them, with their nodes."""
    names = called_kernels(lowered.module)
    if len(names) != len(lowered.nodes):
        return [(name, ()) for name in names if name]
    nodes = completed(graph, lowered.nodes)
    return [(name, covered) for name, covered in zip(names, nodes, strict=True) if name]


def _to_numpy(result: Any, dtype: np.dtype[Any]) -> np.ndarray:
    found: np.ndarray = result.numpy()
    return np.array(found.view(dtype) if found.dtype != dtype and found.itemsize == dtype.itemsize else found)


def _check_options(target: Target) -> None:
    if target.options.get("schedule", "ours") not in SCHEDULES:
        raise UsageError(f"tvm: option schedule={target.options['schedule']} is unknown; use {' or '.join(SCHEDULES)}")
    if seconds(target.options) and (target.device != "cpu" or target.options.get("schedule") == "none"):
        raise UsageError("tvm: option tune is for our schedules on the CPU")
