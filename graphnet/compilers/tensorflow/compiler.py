"""XLA through TensorFlow (`tensorflow`), or TensorFlow's own graph optimiser and kernels (`tensorflow:grappler`)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when the library is loaded

import numpy as np
import tensorflow as tf

from graphnet.compilers import Kernel, KernelCode, Target, Tensors, check_target, subnormals
from graphnet.compilers.tensorflow.code import emitted, library_calls
from graphnet.compilers.tensorflow.profile import profile_operations, profile_xla
from graphnet.errors import DeviceNotPresent, UnsupportedOp, UsageError
from graphnet.ir.graph import Graph
from graphnet.ir.tensors import inputs as filled_inputs
from graphnet.ir.tensors import numpy_dtype
from graphnet.lower.tensorflow.graph import Lowered, carrier, lower, node_of

DEVICES = {"cpu": "CPU", "cuda": "GPU", "gpu": "GPU"}
FLAGS = ("xla_cpu_enable_fast_math", "xla_cpu_enable_fast_min_max")
"""XLA's numerics flags, stated so that neither its defaults nor the environment decide."""
_NO_KERNEL = re.compile(r"on XLA_\w+: (\w+) \(No registered .*?\{\{node ([^}]*)\}\}([^{]*)\)")
FAST_MATH_VARIABLES = ("TF_SET_ONEDNN_FPMATH_MODE", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
"""Environment variables by which oneDNN would compute float32 products in bfloat16 or TF32."""


def _distribution() -> str:
    """The name under which the framework is installed: with or without kernels for GPUs."""
    found = packages_distributions().get("tensorflow", [])
    return next((name.replace("_", "-") for name in found), "tensorflow-cpu")


class TensorFlow:
    """`tensorflow`: options `jit` (bool: compile with XLA) and `fast_math` (bool, XLA's)."""

    name = "tensorflow"
    packages = (_distribution(),)
    devices = ("cpu", "cuda")
    cache_by_default = False

    def preload(self) -> None:
        """Importing this module imported the framework; its runtime, which has threads, starts in the child."""

    def use_cache(self, folder: Path) -> None:
        """The persistent cache of XLA's programs; TensorFlow reads its flags when it first looks for a device."""
        given = os.environ.get("TF_XLA_FLAGS", "")
        os.environ["TF_XLA_FLAGS"] = f"{given} --tf_xla_persistent_cache_directory={folder}".lstrip()

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device and precision; must precede the first use of a device. Raises DeviceNotPresent."""
        check_target(self.name, target, ("jit", "fast_math"))
        kind = DEVICES.get(target.device)
        if kind is None:
            raise DeviceNotPresent(f"tensorflow: no device '{target.device}' (it knows {', '.join(DEVICES)})")
        exact = target.precision == "float32"
        if exact:
            for name in FAST_MATH_VARIABLES:
                os.environ.pop(name, None)
        os.environ["XLA_FLAGS"] = _flags(target)
        if tf.config.threading.get_intra_op_parallelism_threads() != target.threads:
            tf.config.threading.set_intra_op_parallelism_threads(target.threads)
        if tf.config.threading.get_inter_op_parallelism_threads() != 1:
            tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.experimental.enable_tensor_float_32_execution(not exact)
        return {
            "device": _device(target),
            "jit": _option(target, "jit", True),
            "threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "precision": "float32" if not tf.config.experimental.tensor_float_32_execution_enabled() else "tf32",
            "auto_mixed_precision": bool(tf.config.optimizer.get_experimental_options().get("auto_mixed_precision")),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "onednn_fpmath": next((os.environ[n] for n in FAST_MATH_VARIABLES if os.environ.get(n)), "STRICT"),
            "fast_math": _option(target, "fast_math", False),
            "subnormals": subnormals(target, flushed=True),
            "xla_flags": os.environ["XLA_FLAGS"],
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> TensorFlowProgram:
        """Trace, then run once, which compiles. Raises UnsupportedOp, DeviceNotPresent."""
        device = _device(target)
        start = time.perf_counter()
        with tf.device(device):
            lowered = lower(graph, tensors, jit=_option(target, "jit", True))
        program = TensorFlowProgram(graph, lowered, device, target, time.perf_counter() - start)
        program.bind(filled_inputs(graph))
        try:
            program.run()
        except tf.errors.InvalidArgumentError as error:
            raise _unsupported(str(error), lowered.nodes) or error from error
        return program


def _unsupported(text: str, nodes: Sequence[str]) -> UnsupportedOp | None:
    """What XLA says of an operation that it has no kernel for; None if it says something else."""
    found = _NO_KERNEL.search(text)
    if found is None:
        return None
    operation, place, rest = found.groups()
    attributes = rest.partition("Requested Attributes: ")[2]
    return UnsupportedOp(
        f"tensorflow: XLA has no {operation}{f' ({attributes})' if attributes else ''} (node '{node_of(nodes, place)}')"
    )


def _flags(target: Target) -> str:
    """The environment's flags, ours over them."""
    ours = " ".join(f"--{name}={str(_option(target, 'fast_math', False)).lower()}" for name in FLAGS)
    given = os.environ.get("XLA_FLAGS", "").split()
    rest = [flag for flag in given if flag.partition("=")[0].removeprefix("--") not in FLAGS]
    return " ".join([*rest, ours])


def _option(target: Target, name: str, default: bool) -> bool:
    value = target.options.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"tensorflow: option {name}={value} must be true or false")
    return value


def _device(target: Target) -> str:
    kind = DEVICES.get(target.device, "")
    found = tf.config.list_physical_devices(kind)
    if not found:
        raise DeviceNotPresent(
            f"tensorflow: device '{target.device}' is not here (found: "
            f"{', '.join(device.device_type for device in tf.config.list_physical_devices())});"
            " for an NVIDIA card: pip install tensorflow[and-cuda]"
        )
    return f"/{kind}:0"


class TensorFlowProgram:
    """A traced and compiled function; weights are variables that it reads, inputs its arguments."""

    def __init__(self, graph: Graph, lowered: Lowered, device: str, target: Target, lower_s: float) -> None:
        self.graph, self.lowered, self.device, self._target = graph, lowered, device, target
        self.lower_s = lower_s
        """Seconds of loading the weights and tracing the graph, part of the compilation."""
        self._inputs: tuple[Any, ...] = ()
        self._results: tuple[Any, ...] = ()

    def bind(self, inputs: Tensors) -> None:
        """Put the inputs on the device."""
        with tf.device(self.device):
            self._inputs = tuple(
                tf.constant(np.asarray(inputs[item.name]).astype(carrier(item.dtype), copy=False))
                for item in self.graph.inputs
            )

    def run(self) -> None:
        """One inference, complete on return."""
        self._results = self.lowered.concrete(*self._inputs)
        if self.device != "/CPU:0":
            tf.test.experimental.sync_devices()

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order, with the graph's dtypes."""
        return [
            np.array(result.numpy()).astype(numpy_dtype(self.graph.type_of(name).dtype), copy=False)
            for name, result in zip(self.graph.outputs, self._results, strict=True)
        ]

    def kernels(self) -> Sequence[Kernel]:
        """Time by HLO instruction, or by TensorFlow operation without XLA, over a few profiled runs."""
        belongs_to = partial(node_of, self.lowered.nodes)
        if self.lowered.jit:
            return profile_xla(self.run, self.hlo(), belongs_to)
        return profile_operations(self.run, self.graph, belongs_to)

    def memory(self) -> Mapping[str, int]:
        """What a GPU's allocator has given out: now, and at most; the one for CPUs (2.21) misses what is small."""
        if self.device == "/CPU:0":
            return {}
        found: Mapping[str, int] = tf.config.experimental.get_memory_info(self.device.strip("/"))
        return found

    def code(self) -> Sequence[KernelCode]:
        """Code by HLO instruction; without XLA, TensorFlow's own kernels by operation. Raises ToolNotFound."""
        return emitted(self.graph, self._target) if self.lowered.jit else library_calls(self.kernels())

    def hlo(self) -> str:
        """The optimised HLO, compiled anew for its text."""
        return str(self.lowered.function.experimental_get_compiler_ir(*self._inputs)(stage="optimized_hlo"))
