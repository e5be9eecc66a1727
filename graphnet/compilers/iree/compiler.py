"""IREE: ONNX to MLIR by its importer, compiled ahead of time by `iree-compile`, run by its runtime."""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import iree.runtime as rt
import numpy as np
from iree.compiler import tools

from graphnet.compilers import Kernel, KernelCode, Target, Tensors, check_target, subnormals
from graphnet.compilers.iree import code
from graphnet.compilers.iree.importer import FUNCTION, SCOPE, Imported, import_graph, sized
from graphnet.compilers.iree.profile import Recording, profile
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import Graph

LEVELS = ("O0", "O1", "O2", "O3")
DEEP_STACK = "--iree-llvmcpu-stack-allocation-limit=1048576"
"""Bytes that a kernel may have on its thread's stack."""
WORKER_STACK = "--task_worker_stack_size=2097152"
"""Bytes of stack of IREE's own threads: what a kernel may have, and as much again for the runtime."""
PRECISION = ("--iree-input-demote-f64-to-f32=false", "--iree-input-demote-i64-to-i32=false")
"""Dtypes are kept: IREE computes float64 in float32 unless told otherwise."""
_DIAGNOSTIC = re.compile(r'error: loc\((?:fused\[)?"([^"]+)"')
_NO_LOWERING = ("failed to legalize", "Unhandled ONNX", "Unknown ONNX", "Unsupported")
_MESSAGE_LIMIT = 500


class Device(NamedTuple):
    """What IREE compiles for and runs on."""

    backend: str
    """Target backend of the compiler."""
    driver: str
    """HAL driver of the runtime."""
    flags: tuple[str, ...] = ()
    needs: str = ""


DEVICES = {
    "cpu": Device("llvm-cpu", "local-sync", ("--iree-llvmcpu-target-cpu=host", DEEP_STACK)),
    "cuda": Device("cuda", "cuda", needs="NVIDIA's driver (libcuda.so)"),
    "metal": Device("metal-spirv", "metal", needs="macOS"),
    "vulkan": Device("vulkan-spirv", "vulkan", needs="a Vulkan loader and driver"),
}


class Iree:
    """`iree`: options `opt_level` (O0 to O3) and `flags` (more compiler flags, separated by spaces).

    The level is O3 by default: IREE's documentation recommends the levels for performance, its own default is O0.
    A target string (`--target`) is one or more compiler flags, `--iree-llvmcpu-target-cpu=znver4`.
    """

    name = "iree"
    packages = ("iree-base-compiler", "iree-base-runtime", "onnx")
    devices = tuple(DEVICES)

    def preload(self) -> None:
        """Importing this module imported the framework; contexts and devices, which have threads, come in the child."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Open the device with its threads. Raises DeviceNotPresent, UsageError."""
        check_target(self.name, target, ("opt_level", "flags"), takes_spec=True)
        rt.flags.parse_flags(*_pool(target))
        device = _device(target)
        _open(target)
        return {
            "driver": _driver(target),
            "target_backend": device.backend,
            "threads": target.threads,
            "flags": " ".join(_flags(target)),
            "precision": "float32",
            "subnormals": subnormals(target, flushed=True),
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> IreeProgram:
        """Import, compile in a process of its own, load. Raises UnsupportedOp, DeviceNotPresent."""
        start = time.perf_counter()
        imported = import_graph(graph, tensors)
        lower_s = time.perf_counter() - start
        module = _compile(imported, target)
        return IreeProgram(graph, tensors, imported, module, target, lower_s)


class IreeProgram:
    """A module loaded into a context; weights are its parameters, inputs its arguments."""

    def __init__(
        self, graph: Graph, tensors: Tensors, imported: Imported, module: bytes, target: Target, lower_s: float
    ) -> None:  # fmt: skip
        self._graph, self._imported, self._module, self._target = graph, imported, module, target
        self.lower_s = lower_s
        """Seconds of writing ONNX and importing it to MLIR, part of the compilation."""
        self.details = imported.details
        config = rt.Config(device=_open(target))
        self._device = config.device
        self._index = rt.ParameterIndex()
        for symbol, name in imported.parameters.items():
            self._index.add_buffer(symbol, sized(tensors[name]))
        provider = self._index.create_provider(scope=SCOPE)
        parameters = rt.create_io_parameters_module(config.vm_instance, provider)
        loaded = rt.VmModule.copy_buffer(config.vm_instance, module)
        modules = [*config.default_vm_modules, parameters, loaded]
        self._context = rt.VmContext(instance=config.vm_instance, modules=modules)
        self._function = loaded.lookup_function(FUNCTION)
        self._inputs: dict[str, np.ndarray] = {}
        self._arguments = rt.VmVariantList(0)
        self._results = rt.VmVariantList(0)

    def bind(self, inputs: Tensors) -> None:
        """Copy the inputs into buffers of the device."""
        self._inputs = {item.name: sized(inputs[item.name]) for item in self._graph.inputs}
        self._arguments = rt.VmVariantList(len(self._inputs))
        for array in self._inputs.values():
            self._arguments.push_ref(rt.asdevicearray(self._device, array)._buffer_view)

    def run(self) -> None:
        """One inference, complete on return."""
        self._results = results = rt.VmVariantList(len(self._graph.outputs))
        self._context.invoke(self._function, self._arguments, results)

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [self._fetched(index, name) for index, name in enumerate(self._graph.outputs)]

    def _fetched(self, index: int, name: str) -> np.ndarray:
        view = self._results.get_as_object(index, rt.HalBufferView)
        dtype = tensors_.numpy_dtype(self._graph.type_of(name).dtype)
        array = np.array(rt.DeviceArray(self._device, view).to_host())
        return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array.astype(dtype)

    def kernels(self) -> Sequence[Kernel]:
        """Time by dispatch over a few runs in `iree-benchmark-module`, with the nodes whose operators it holds."""
        recording = Recording(
            self._module, _device(self._target).backend, self._index, tuple(self._inputs.values()),
            _driver(self._target),
        )  # fmt: skip
        names = {node.name for node in self._graph.nodes}
        return profile(recording, self._imported, _flags(self._target), _pool(self._target), names)

    def memory(self) -> Mapping[str, int]:
        """Counts of the device's allocator since it was opened; weights that it takes in place are not among them."""
        allocator = self._device.allocator
        return dict(allocator.statistics) if allocator.has_statistics else {}

    def code(self) -> Sequence[KernelCode]:
        """Code of every dispatch, from a compilation of its own."""
        with tempfile.TemporaryDirectory(prefix="graphnet-iree-") as folder:
            _compile(self._imported, self._target, (f"{code.FLAG}={folder}",))
            return code.emitted(Path(folder))


def _device(target: Target) -> Device:
    device = DEVICES.get(target.device)
    if device is None:
        raise DeviceNotPresent(f"iree: no device '{target.device}' (it knows {', '.join(DEVICES)})")
    return device


def _driver(target: Target) -> str:
    driver = _device(target).driver
    return "local-task" if driver == "local-sync" and target.threads > 1 else driver


def _pool(target: Target) -> list[str]:
    """Runtime flags of the pool of threads."""
    return [f"--task_topology_group_count={target.threads}", WORKER_STACK]


def _open(target: Target) -> rt.HalDevice:
    driver = _driver(target)
    try:
        return rt.get_device(driver)
    except (RuntimeError, ValueError) as error:
        present = ", ".join(rt.query_available_drivers())
        cause = str(error).strip().splitlines()[0].rpartition("; ")[2]
        raise DeviceNotPresent(
            f"iree: driver '{driver}' cannot be opened ({cause}); this runtime has the drivers {present},"
            f" and '{target.device}' needs {_device(target).needs}"
        ) from error


def _flags(target: Target) -> list[str]:
    """The device's flags but those that the user states, the level, the user's flags."""
    level = str(target.options.get("opt_level", "O3"))
    if level not in LEVELS:
        raise UsageError(f"iree: option opt_level={level} is unknown; use {', '.join(LEVELS)}")
    given = [*shlex.split(target.spec), *shlex.split(str(target.options.get("flags", "")))]
    stated = {flag.partition("=")[0] for flag in given}
    ours = (*_device(target).flags, *PRECISION, f"--iree-opt-level={level}")
    return [*(flag for flag in ours if flag.partition("=")[0] not in stated), *given]


def _compile(imported: Imported, target: Target, flags: Sequence[str] = ()) -> bytes:
    """A VM module. Raises UnsupportedOp where the compiler cannot lower a node's operator."""
    with tempfile.TemporaryDirectory(prefix="graphnet-iree-") as folder:
        source = Path(folder, "module.mlirbc")
        source.write_bytes(imported.module)
        try:
            module: bytes = tools.compile_file(
                str(source), input_type="onnx", target_backends=[_device(target).backend],
                extra_args=[*_flags(target), *flags],
            )  # fmt: skip
        except tools.CompilerToolError as error:
            raise _explained(str(error), imported.operators) from error
    return module


def _explained(text: str, operators: Mapping[str, str]) -> Exception:
    """UnsupportedOp, naming the node, if that is what the diagnostics say; RuntimeError with their first line else."""
    lines = text.partition("Diagnostics:")[2].strip().splitlines() or text.strip().splitlines()
    first = next((line for line in lines if "error:" in line), lines[0])
    located = _DIAGNOSTIC.search(first)
    operator = operators.get(located[1], "") if located else ""
    cause = first.partition("error: ")[2][:_MESSAGE_LIMIT]
    if not any(words in first for words in _NO_LOWERING):
        return RuntimeError(f"iree-compile: {cause}")
    return UnsupportedOp(
        f"iree: no lowering for {operator} (node '{located[1]}'): {cause}"
        if located and operator
        else f"iree: no lowering for an operation that it made of the graph's: {cause}"
    )
