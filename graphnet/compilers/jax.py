"""XLA through JAX (`jax`): the graph is traced to one function and compiled ahead of the run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from graphnet.compilers import Target, Tensors
from graphnet.errors import DeviceNotPresent
from graphnet.ir.graph import Graph
from graphnet.ir.tensors import numpy_dtype
from graphnet.lower.jax_graph import Lowered, carrier, lower

PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "metal": "METAL"}
PROFILED_RUNS = 10
FLAGS = {
    "xla_cpu_enable_fast_math": "false",
    "xla_cpu_enable_fast_min_max": "false",
    "xla_allow_excess_precision": "false",
}
"""XLA's own numerics flags; the first two are its defaults, stated so that no environment changes them."""


class Jax:
    """`jax`: no options."""

    name = "jax"
    packages = ("jax", "jaxlib")

    def preload(self) -> None:
        """Importing this module imported the framework; its backend, which has threads, starts in the child."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device and precision; must precede the first use of a device. Raises DeviceNotPresent.

        XLA sizes its CPU pools by `PJRT_NPROC` when the backend starts; `xla_cpu_multi_thread_eigen` does not bound
        them (measured by the CPU time of each thread).
        """
        platform = PLATFORMS.get(target.device)
        if platform is None:
            raise DeviceNotPresent(f"jax: no device '{target.device}' (it knows {', '.join(PLATFORMS)})")
        os.environ["PJRT_NPROC"] = str(target.threads)
        os.environ["XLA_FLAGS"] = _flags(os.environ.get("XLA_FLAGS", ""))
        precision = "highest" if target.precision == "float32" else "default"
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", precision)
        jax.config.update("jax_enable_compilation_cache", False)
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        device = _device(target)
        return {
            "device": device.device_kind,
            "platform": device.platform,
            "threads": _pool_size() or target.threads,
            "precision": precision,
            "fast_math": False,
            "x64": True,
            "compilation_cache": False,
            "xla_flags": os.environ["XLA_FLAGS"],
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> JaxProgram:
        """Trace, then compile. Raises UnsupportedOp, DeviceNotPresent."""
        device = _device(target)
        start = time.perf_counter()
        lowered = lower(graph, tensors)
        inputs = [jax.ShapeDtypeStruct(_sizes(item.shape), carrier(item.dtype)) for item in graph.inputs]
        with jax.default_device(device):
            params = jax.device_put(lowered.params, device)
            traced = jax.jit(lowered.function).lower(params, *inputs)
            spent = time.perf_counter() - start
            compiled = traced.compile()
        return JaxProgram(graph, lowered, compiled, params, device, spent)


def _flags(given: str) -> str:
    ours = " ".join(f"--{name}={value}" for name, value in FLAGS.items())
    rest = [flag for flag in given.split() if flag.partition("=")[0].removeprefix("--") not in FLAGS]
    return " ".join([*rest, ours])


def _device(target: Target) -> jax.Device:
    platform = PLATFORMS.get(target.device, "")
    try:
        return jax.devices(platform)[0]
    except RuntimeError as error:
        raise DeviceNotPresent(f"jax: device '{target.device}' is not on this machine ({error})") from error


def _pool_size() -> int:
    """Threads of XLA's intra-operator pool in this process, 0 where the system does not tell."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return 0
    return sum((task / "comm").read_text().startswith("tf_XLAEigen") for task in tasks.iterdir())


def _sizes(shape: Sequence[int | str]) -> tuple[int, ...]:
    return tuple(int(dim) for dim in shape)


class JaxProgram:
    """An XLA executable; weights and inputs are its run-time arguments."""

    def __init__(
        self,
        graph: Graph,
        lowered: Lowered,
        compiled: jax.stages.Compiled,
        params: Mapping[str, jax.Array],
        device: jax.Device,
        lower_s: float,
    ) -> None:
        self.graph, self.lowered, self.compiled, self.device = graph, lowered, compiled, device
        self.lower_s = lower_s
        """Seconds of tracing the graph and writing StableHLO, part of the compilation."""
        self._params = params
        self._inputs: tuple[jax.Array, ...] = ()
        self._results: tuple[jax.Array, ...] = ()

    def bind(self, inputs: Tensors) -> None:
        """Put the inputs on the device."""
        arrays = tuple(np.asarray(inputs[i.name]).astype(carrier(i.dtype), copy=False) for i in self.graph.inputs)
        self._inputs = jax.block_until_ready(jax.device_put(arrays, self.device))

    def run(self) -> None:
        """One inference, complete on return."""
        self._results = jax.block_until_ready(self.compiled(self._params, *self._inputs))

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order; the lowering keeps the graph's dtypes."""
        return [np.array(result) for result in self._results]

    def code(self) -> str:
        """The optimised HLO."""
        return str(self.compiled.as_text())
