"""TorchInductor (`inductor`) through `torch.compile(fullgraph=True)`, compiled anew each time: all caches are off."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx
import torch._inductor.config as inductor_config
from torch import fx

from graphnet.compilers import Target, Tensors
from graphnet.compilers.torch_program import TorchProgram, configure_torch, torch_device
from graphnet.errors import UsageError
from graphnet.ir.graph import Graph
from graphnet.lower.torch_graph import lower

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Inductor:
    """`inductor`: options `freezing` (bool, weights become constants of the program) and `mode`."""

    name = "inductor"
    packages = ("torch",)

    def preload(self) -> None:
        """Importing this module imported Dynamo and Inductor."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device, precision; caches off so that compile time is honest; compile in this process."""
        settings = configure_torch(target)
        inductor_config.fx_graph_cache = False
        inductor_config.fx_graph_remote_cache = False
        inductor_config.force_disable_caches = True
        inductor_config.compile_threads = 1
        inductor_config.freezing = _flag(target, "freezing")
        inductor_config.cpp.enable_kernel_profile = True
        inductor_config.cpp.threads = target.threads
        return {
            **settings,
            "freezing": inductor_config.freezing,
            "mode": _mode(target),
            "caches": False,
            "fullgraph": True,
        }

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> InductorProgram:
        """Lower and wrap; Inductor compiles at the first run, when it sees the bound inputs. Raises UnsupportedOp."""
        device = torch_device(target)
        return InductorProgram(graph, lower(graph, tensors).to(device), device, _mode(target))


class InductorProgram(TorchProgram):
    """The compiled module."""

    def __init__(self, graph: Graph, module: fx.GraphModule, device: torch.device, mode: str) -> None:
        torch._dynamo.reset()
        super().__init__(graph, torch.compile(module, fullgraph=True, dynamic=False, mode=mode), device)
        self.module = module


def _flag(target: Target, name: str) -> bool:
    value = target.options.get(name, False)
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("0", "1", "true", "false"):
        raise UsageError(f"inductor: option {name}={value} must be true or false")
    return str(value).lower() in ("1", "true")


def _mode(target: Target) -> str:
    mode = str(target.options.get("mode", "default"))
    if mode not in MODES:
        raise UsageError(f"inductor: option mode={mode} is unknown; use {', '.join(MODES)}")
    return mode
