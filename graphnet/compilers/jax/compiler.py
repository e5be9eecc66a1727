"""XLA through JAX (`jax`): the graph is traced to one function and compiled ahead of the run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from graphnet.compilers import Kernel, KernelCode, Target, Tensors, check_target, subnormals, xla_code
from graphnet.compilers.jax.profile import profile
from graphnet.errors import DeviceNotPresent, UsageError
from graphnet.ir.graph import Graph
from graphnet.lower.jax.graph import carrier, lower, node_of

PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "metal": "METAL"}
FLAGS = ("xla_cpu_enable_fast_math", "xla_cpu_enable_fast_min_max")
"""XLA's numerics flags, stated so that neither its defaults nor the environment decide."""
MEMORY_SIZES = ("argument_size", "output_size", "alias_size", "temp_size", "generated_code_size", "peak_memory")


class Jax:
    """`jax`: options `fast_math` (bool) and `xla_flags` (more of XLA's flags, separated by spaces)."""

    name = "jax"
    packages = ("jax", "jaxlib")
    devices = ("cpu", "cuda", "metal")
    cache_by_default = False

    def __init__(self) -> None:
        self._cache: Path | None = None

    def preload(self) -> None:
        """Importing this module imported the framework; its backend, which has threads, starts in the child."""

    def use_cache(self, folder: Path) -> None:
        """JAX's compilation cache, also for programs that it takes for too small or too quick to keep."""
        self._cache = folder

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device and precision; must precede the first use of a device. Raises DeviceNotPresent.

        XLA sizes its CPU pools by `PJRT_NPROC` when the backend starts; `xla_cpu_multi_thread_eigen` does not bound
        them (measured by the CPU time of each thread).
        """
        check_target(self.name, target, ("fast_math", "xla_flags"))
        platform = PLATFORMS.get(target.device)
        if platform is None:
            raise DeviceNotPresent(f"jax: no device '{target.device}' (it knows {', '.join(PLATFORMS)})")
        os.environ["PJRT_NPROC"] = str(target.threads)
        os.environ["XLA_FLAGS"] = _flags(target)
        precision = "highest" if target.precision == "float32" else "default"
        settings = {
            "jax_enable_x64": True,
            "jax_default_matmul_precision": precision,
            "jax_enable_compilation_cache": self._cache is not None,
            "jax_compilation_cache_dir": str(self._cache) if self._cache else None,
            "jax_persistent_cache_min_compile_time_secs": 0.0,
            "jax_persistent_cache_min_entry_size_bytes": -1,
            # The calling thread does the work, instead of handing it to another and waiting.
            "jax_cpu_enable_async_dispatch": False,
        }
        for name, value in settings.items():
            jax.config.update(name, value)  # type: ignore[no-untyped-call]
        device = _device(target)
        return {
            "device": device.device_kind,
            "platform": device.platform,
            "threads": _pool_size() or target.threads,
            "precision": precision,
            "fast_math": _fast_math(target),
            "subnormals": subnormals(target, flushed=True),
            "x64": True,
            "compilation_cache": self._cache is not None,
            "xla_flags": os.environ["XLA_FLAGS"],
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> JaxProgram:
        """Trace, then compile. Raises UnsupportedOp, DeviceNotPresent."""
        device = _device(target)
        start = time.perf_counter()
        lowered = lower(graph, tensors)
        with jax.default_device(device):
            params = jax.device_put(lowered.params, device)
            staged = jax.jit(lowered.function).lower(params, *lowered.inputs)
            spent = time.perf_counter() - start
            compiled = staged.compile()
        return JaxProgram(graph, staged, compiled, params, device, lowered.nodes, spent)


def _flags(target: Target) -> str:
    """The environment's flags, ours over them, those of the options over both."""
    ours = " ".join(f"--{name}={str(_fast_math(target)).lower()}" for name in FLAGS)
    given = os.environ.get("XLA_FLAGS", "").split()
    rest = [flag for flag in given if flag.partition("=")[0].removeprefix("--") not in FLAGS]
    return " ".join(filter(None, [*rest, ours, str(target.options.get("xla_flags", ""))]))


def _fast_math(target: Target) -> bool:
    value = target.options.get("fast_math", False)
    if not isinstance(value, bool):
        raise UsageError(f"jax: option fast_math={value} must be true or false")
    return value


def _device(target: Target) -> jax.Device:
    platform = PLATFORMS.get(target.device, "")
    try:
        return jax.devices(platform)[0]
    except RuntimeError as error:
        wheel = {"cuda": "jax[cuda13]", "METAL": "jax-metal"}.get(platform, "jax")
        raise DeviceNotPresent(
            f"jax: no device '{target.device}' that it can use ({error}); its plugin comes with: pip install {wheel}"
        ) from error


def _pool_size() -> int:
    """Threads of XLA's intra-operator pool in this process, 0 where the system does not tell."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return 0
    return sum(_thread_name(task).startswith("tf_XLAEigen") for task in tasks.iterdir())


def _thread_name(task: Path) -> str:
    try:
        return (task / "comm").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it ended after the listing
        return ""


class JaxProgram:
    """An XLA executable; weights and inputs are its run-time arguments."""

    def __init__(
        self,
        graph: Graph,
        staged: jax.stages.Lowered,
        compiled: jax.stages.Compiled,
        params: Mapping[str, jax.Array],
        device: jax.Device,
        nodes: tuple[str, ...],
        lower_s: float,
    ) -> None:
        self.graph, self.compiled, self.device, self.nodes = graph, compiled, device, nodes
        self._staged = staged
        self.lower_s = lower_s
        """Seconds of tracing the graph and writing StableHLO, part of the compilation."""
        self._params = params
        self._inputs: tuple[jax.Array, ...] = ()
        self._results: tuple[jax.Array, ...] = ()

    def bind(self, inputs: Tensors) -> None:
        """Put the inputs on the device."""
        arrays = tuple(np.asarray(inputs[i.name]).astype(carrier(i.dtype), copy=False) for i in self.graph.inputs)
        self._inputs = jax.device_put(arrays, self.device)
        jax.block_until_ready(self._inputs)  # type: ignore[no-untyped-call]

    def run(self) -> None:
        """One inference, complete on return."""
        self._results = self.compiled(self._params, *self._inputs)
        jax.block_until_ready(self._results)  # type: ignore[no-untyped-call]

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order; the lowering keeps the graph's dtypes."""
        return [np.array(result) for result in self._results]

    def kernels(self) -> Sequence[Kernel]:
        """Time by HLO instruction over a few profiled runs, with the graph's nodes that each covers."""
        return profile(self.run, self.hlo(), partial(node_of, self.nodes))

    def memory(self) -> Mapping[str, int]:
        """XLA's plan for one inference: `temp_size` is what it needs beside arguments and outputs."""
        analysis = self.compiled.memory_analysis()
        return {
            name: int(getattr(analysis, f"{name}_in_bytes"))
            for name in MEMORY_SIZES
            if hasattr(analysis, f"{name}_in_bytes")
        }

    def code(self) -> Sequence[KernelCode]:
        """Code by HLO instruction, as the profile has it, from a compilation of its own. Raises ToolNotFound."""
        with tempfile.TemporaryDirectory(prefix="graphnet-jax-") as folder:
            self._staged.compile(compiler_options={"xla_dump_to": folder})
            return xla_code.emitted(Path(folder))

    def hlo(self) -> str:
        """The optimised HLO."""
        return str(self.compiled.as_text())
