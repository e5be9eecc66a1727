"""tinygrad: its ONNX front end inside its JIT, on the CPU with code that clang compiles."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tinygrad import helpers
from tinygrad.device import Device
from tinygrad.engine.jit import TinyJit
from tinygrad.tensor import Tensor

from graphnet.compilers import FLUSH_SUBNORMALS, Kernel, KernelCode, Target, Tensors, check_target, subnormals
from graphnet.compilers.tinygrad.code import emitted
from graphnet.compilers.tinygrad.profile import named_calls, profile
from graphnet.errors import DeviceNotPresent, UsageError
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import Graph, Input
from graphnet.rewrite.decompose import decomposed


class Backend(NamedTuple):
    """A device of tinygrad."""

    name: str
    needs: str


DEVICES = {
    "cpu": Backend("CPU", "clang (apt-get install clang), or CC=<a clang>"),
    "cuda": Backend("CUDA", "NVIDIA's driver and NVRTC (libcuda.so, libnvrtc.so)"),
    "metal": Backend("METAL", "macOS"),
}


class Tinygrad:
    """`tinygrad`: option `beam` (width of its search for faster kernels; 0, its default, is a heuristic).

    Its CPU device runs kernels on the calling thread, one piece after the other whatever its own thread count says
    (version 0.14): the record's `threads` is 1.
    """

    name = "tinygrad"
    packages = ("tinygrad", "onnx")
    devices = tuple(DEVICES)
    cache_by_default = True

    def __init__(self) -> None:
        self._cache: Path | None = None

    def preload(self) -> None:
        """Importing this module imported the framework; it opens devices when they are first used."""

    def use_cache(self, folder: Path) -> None:
        """The database of compiled kernels and found schedules."""
        self._cache = folder

    def configure(self, target: Target) -> dict[str, Any]:
        """Cache in our folder or off, float32 kept, the device opened. Raises DeviceNotPresent, UsageError."""
        check_target(self.name, target, ("beam",))
        backend = DEVICES.get(target.device)
        if backend is None:
            raise DeviceNotPresent(f"tinygrad: no device '{target.device}' (it knows {', '.join(DEVICES)})")
        if target.device == "cpu":
            os.environ["CC"] = find_clang()
        settings = {
            "DEV": backend.name, "BEAM": _beam(target), "CACHELEVEL": 2 if self._cache else 0, "IGNORE_BEAM_CACHE": 0,
            "NUM_CPU_THREADS": 1, "PARALLEL": 0, "FLOAT16": 0, "ALLOW_TF32": 0, "DEFAULT_FLOAT": "float32",
        }  # fmt: skip
        if self._cache:
            helpers.CACHEDB = str(self._cache / "cache.db")
        for name, value in settings.items():
            helpers.ContextVar._cache[name].value = value
        device = _open(target)
        importlib.import_module("graphnet.compilers.tinygrad.importer")
        flushed = FLUSH_SUBNORMALS and target.device == "cpu" and _flush_subnormals()
        return {
            "device": device.device,
            "renderer": type(device.renderer).__name__,
            "compiler": os.environ.get("CC", "") if target.device == "cpu" else "",
            "threads": 1,
            "beam": _beam(target),
            "precision": "float32",
            "subnormals": subnormals(target, flushed),
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> TinygradProgram:
        """Read the model, put the weights on the device, call the JIT twice. Raises UnsupportedOp."""
        del target  # `configure` has set it: tinygrad's settings are those of the process
        return TinygradProgram(graph, tensors)


class TinygradProgram:
    """A captured JIT; inputs are fixed buffers, weights are constants of the function."""

    def __init__(self, graph: Graph, tensors: Tensors) -> None:
        self._graph = graph
        from graphnet.compilers.tinygrad import importer as front_end  # opens the device

        start = time.perf_counter()
        self._model = front_end.Model(graph, tensors)
        self.lower_s = time.perf_counter() - start
        """Seconds of writing the ONNX model and reading it into tinygrad, part of the compilation."""
        self.details = {"decomposed": decomposed(graph, front_end.DECOMPOSED)}
        self._to_tensor = front_end.to_tensor
        self._to_array = front_end.to_array
        self._jit = TinyJit(self._infer)
        self.bind({item.name: _ones(item) for item in graph.inputs})
        for _ in range(2):
            self.run()

    def _infer(self, **inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(value.clone() for value in self._model(inputs))

    def bind(self, inputs: Tensors) -> None:
        """Copy the inputs into buffers of the device."""
        self._inputs = {item.name: self._to_tensor(inputs[item.name], item.dtype) for item in self._graph.inputs}

    def run(self) -> None:
        """One inference, complete on return."""
        self._outputs = self._jit(**self._inputs)
        Device[Device.DEFAULT].synchronize()  # type: ignore[no-untyped-call]

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [
            self._to_array(output, self._graph.type_of(name))
            for output, name in zip(self._outputs, self._graph.outputs, strict=True)
        ]

    def memory(self) -> Mapping[str, int]:
        """Bytes in buffers that are alive, on all devices (files of weights count as one)."""
        return {"mem_used": int(helpers.GlobalCounters.mem_used)}

    def kernels(self) -> Sequence[Kernel]:
        """Time of each kernel of the captured JIT over a few runs."""
        return profile(self._jit, self._inputs, self._model.readers())

    def code(self) -> Sequence[KernelCode]:
        """Code of each kernel, disassembled. Raises ToolNotFound."""
        return emitted(named_calls(self._jit))


def _ones(item: Input) -> np.ndarray:
    """To compile with: not zeros, by which integers cannot be divided."""
    return np.ones([int(size) for size in item.shape], tensors_.numpy_dtype(item.dtype))


def find_clang() -> str:
    """The compiler to call: `CC`, else clang, else its newest numbered version. Raises DeviceNotPresent."""
    numbered = [
        name for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_dir()
        for name in os.listdir(folder) if re.fullmatch(r"clang-\d+", name)
    ]  # fmt: skip
    newest = sorted(numbered, key=lambda name: int(name.partition("-")[2]), reverse=True)
    for name in filter(None, (os.environ.get("CC"), "clang", *newest)):
        if shutil.which(name) and "clang" in Path(name).name:
            return name
    raise DeviceNotPresent(f"tinygrad: device 'cpu' needs {DEVICES['cpu'].needs}")


def _open(target: Target) -> Any:
    backend = DEVICES[target.device]
    try:
        return Device[backend.name]
    except Exception as error:  # whatever the loader of the device's library raises
        cause = " ".join(str(error).split())[:200]
        raise DeviceNotPresent(
            f"tinygrad: device '{target.device}' cannot be opened ({cause}); it needs {backend.needs}"
        ) from error


def _beam(target: Target) -> int:
    beam = target.options.get("beam", 0)
    if isinstance(beam, bool) or not isinstance(beam, int) or beam < 0:
        raise UsageError(f"tinygrad: option beam={beam} must be a whole number, 0 or more")
    return beam


def _flush_subnormals() -> bool:
    """Set the mode of this thread, on which kernels run, since the library cannot be told; False where unknown.

    On x86-64 glibc's `fenv_t` holds MXCSR at byte 28; its bits 15 (results) and 6 (operands) flush to zero.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return False
    mathematics = ctypes.CDLL("libm.so.6")
    state = (ctypes.c_uint32 * 8)()
    mathematics.fegetenv(state)
    state[7] |= 1 << 15 | 1 << 6
    return bool(mathematics.fesetenv(state) == 0)
