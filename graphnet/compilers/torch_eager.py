"""PyTorch in eager mode (`torch`): the baseline. The lowered FX module runs operator by operator."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from graphnet.compilers import Kernel, Target, Tensors, check_target
from graphnet.compilers.torch_program import TorchProgram, configure_torch, synchronize, torch_device
from graphnet.ir.graph import Graph
from graphnet.lower.torch.graph import covered_nodes, lower

PROFILED_RUNS = 10


class TorchEager:
    """`torch`: no options."""

    name = "torch"
    packages = ("torch",)
    devices = ("cpu", "cuda", "metal")

    def preload(self) -> None:
        """Importing this module imported the framework."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads, device and precision."""
        check_target(self.name, target)
        return configure_torch(target)

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> EagerProgram:
        """Lower the graph; there is nothing else to compile. Raises UnsupportedOp."""
        device, start = torch_device(target), time.perf_counter()
        program = EagerProgram(graph, lower(graph, tensors).to(device), device)
        program.lower_s = time.perf_counter() - start
        return program


class EagerProgram(TorchProgram):
    """The module's generated forward function, called as it is."""

    def __init__(self, graph: Graph, module: fx.GraphModule, device: torch.device) -> None:
        super().__init__(graph, module.forward, device)
        self.module = module

    def kernels(self) -> Sequence[Kernel]:
        """Mean time of each GraphIR node's operators over a few runs, node by node."""
        timer = _Timer(self.module, self.device)
        with torch.inference_mode():
            timer.run(*self.inputs)
            timer.total.clear()
            for _ in range(PROFILED_RUNS):
                timer.run(*self.inputs)
        return _kernels(timer.total, timer.calls)


class _Timer(fx.Interpreter):
    """Runs the module node by node, timing the call of each operator alone (arguments are fetched before)."""

    def __init__(self, module: fx.GraphModule, device: torch.device) -> None:
        super().__init__(module)
        self.device = device
        self.total: dict[tuple[str, ...], int] = defaultdict(int)
        self.calls: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)

    def run_node(self, n: fx.Node) -> Any:
        if n.op not in ("call_function", "call_method"):
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        call = self.call_function if n.op == "call_function" else self.call_method
        start = time.perf_counter_ns()
        result = call(n.target, args, kwargs)
        synchronize(self.device)
        covers = covered_nodes(n)
        self.total[covers] += time.perf_counter_ns() - start
        self.calls[covers][n.name] = _operator(n)
        return result


def _operator(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", node.target))


def _kernels(total: Mapping[tuple[str, ...], int], calls: Mapping[tuple[str, ...], Mapping[str, str]]) -> list[Kernel]:
    return [
        Kernel(
            name="+".join(dict.fromkeys(calls[covers].values())),
            nodes=covers,
            calls=len(calls[covers]),
            total_us=nanoseconds / PROFILED_RUNS / 1e3,
        )
        for covers, nanoseconds in total.items()
    ]
