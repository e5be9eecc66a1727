"""What the compilers on PyTorch share: devices, threads, precision, and a program around a callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphnet.compilers import FLUSH_SUBNORMALS, Target, Tensors, subnormals
from graphnet.errors import DeviceNotPresent
from graphnet.ir import tensors as ir_tensors
from graphnet.ir.graph import Graph
from graphnet.lower.torch.tensors import to_numpy, to_torch

DEVICES = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "metal": "mps"}


def torch_device(target: Target) -> torch.device:
    """The device of the target. Raises DeviceNotPresent."""
    kind = DEVICES.get(target.device)
    if kind is None:
        raise DeviceNotPresent(f"torch: no device '{target.device}' (it knows {', '.join(DEVICES)})")
    if kind == "cuda" and not torch.cuda.is_available():
        raise DeviceNotPresent(
            f"torch: no CUDA device that torch {torch.__version__} can use; it takes an NVIDIA GPU with its driver"
            " and a CUDA build (https://pytorch.org/get-started)"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise DeviceNotPresent("torch: no Metal device; it takes a Mac with Apple silicon")
    return torch.device(kind)


def configure_torch(target: Target) -> dict[str, Any]:
    """Threads, precision and subnormal policy of this process, in one place. Raises DeviceNotPresent."""
    device = torch_device(target)
    torch.set_num_threads(target.threads)
    if torch.get_num_interop_threads() != 1:
        torch.set_num_interop_threads(1)
    reduced = target.precision != "float32"
    torch.set_float32_matmul_precision("high" if reduced else "highest")
    torch.backends.cuda.matmul.allow_tf32 = reduced
    torch.backends.cudnn.allow_tf32 = reduced
    flushed = torch.set_flush_denormal(FLUSH_SUBNORMALS)
    torch.set_grad_enabled(False)
    return {
        "device": str(device),
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
        "subnormals": subnormals(target, flushed and FLUSH_SUBNORMALS),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


class TorchProgram:
    """A callable of tensors with inputs bound once; `run` returns when the device is done."""

    def __init__(self, graph: Graph, function: Callable[..., Any], device: torch.device) -> None:
        self.graph, self.function, self.device = graph, function, device
        self.inputs: tuple[torch.Tensor, ...] = ()
        self._results: Sequence[torch.Tensor] = ()
        self.lower_s = 0.0
        """Seconds of the compilation that went into building the FX graph."""

    def bind(self, inputs: Tensors) -> None:
        """Share the arrays' memory on the CPU (so their alignment is kept), copy to any other device."""
        self.inputs = tuple(to_torch(np.asarray(inputs[item.name])).to(self.device) for item in self.graph.inputs)

    def run(self) -> None:
        """One inference, complete on return."""
        with torch.inference_mode():
            self._results = self.function(*self.inputs)
        if self.device.type != "cpu":
            synchronize(self.device)

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order, with the graph's dtypes."""
        return [
            to_numpy(result, ir_tensors.numpy_dtype(self.graph.type_of(name).dtype))
            for name, result in zip(self.graph.outputs, self._results, strict=True)
        ]

    def memory(self) -> Mapping[str, int]:
        """The caching allocator of a CUDA device; there is none on the CPU."""
        if self.device.type != "cuda":
            return {}
        return {
            "max_memory_allocated": torch.cuda.max_memory_allocated(self.device),
            "memory_allocated": torch.cuda.memory_allocated(self.device),
            "memory_reserved": torch.cuda.memory_reserved(self.device),
        }


def synchronize(device: torch.device) -> None:
    """Wait for all work queued on the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
