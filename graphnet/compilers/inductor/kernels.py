"""Which GraphIR nodes each of Inductor's kernels covers, and how long each takes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._inductor import debug
from torch._inductor.graph import GraphLowering

from graphnet.compilers import Kernel
from graphnet.lower.torch.graph import PROVENANCE

PROFILED_RUNS = 10
Covered = dict[str, tuple[str, ...]]
"""Kernels and library calls in the order of the generated code (`cpp_fused_relu_0:3`), with GraphIR nodes."""


@contextmanager
def recorded_provenance(covered: Covered) -> Iterator[None]:
    """Fill `covered` from the compilations inside (Inductor forgets it when a compilation ends)."""

    def save(_: str) -> None:
        for kernel, traces in debug._inductor_kernel_stack_trace.items():
            covered[kernel] = tuple(dict.fromkeys(name for trace in traces for name in _names(trace)))

    before = GraphLowering.save_output_code
    GraphLowering.save_output_code = staticmethod(save)
    try:
        yield
    finally:
        GraphLowering.save_output_code = before


def _names(trace: str) -> list[str]:
    names: list[str] = json.loads(trace.removeprefix(PROVENANCE)) if trace.startswith(PROVENANCE) else []
    return names


def kernel_times(run: Callable[[], None], covered: Covered) -> list[Kernel]:
    """Profile a few runs; time in calls that belong to no kernel has no nodes."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(PROFILED_RUNS):
            run()
    total: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for events in _by_inference(profile.events() or ()):
        for event, kernel in zip(events, assign([event.name for event in events], covered), strict=True):
            total[kernel] += event.cpu_time_total
            calls[kernel] += 1
    return [
        Kernel(
            name=kernel.partition(":")[0] if kernel in covered else kernel,
            nodes=covered.get(kernel, ()),
            calls=max(1, round(calls[kernel] / PROFILED_RUNS)),
            total_us=microseconds / PROFILED_RUNS,
        )
        for kernel, microseconds in total.items()
    ]


def _by_inference(events: Sequence[Any]) -> list[list[Any]]:
    """The calls made directly by the generated code, one list for each inference, in order of time."""
    inferences: dict[int, list[Any]] = defaultdict(list)
    for event in sorted(events, key=lambda item: item.time_range.start):
        parent = event.cpu_parent
        if parent is not None and parent.name.startswith("## Call CompiledFxGraph"):
            inferences[parent.id].append(event)
    return list(inferences.values())


def assign(events: Sequence[str], covered: Mapping[str, Any]) -> list[str]:
    """For each profiled call of one inference the kernel of `covered` that it is, or its own name.

    A generated kernel is called `graph_0_<name>`; a library call such as `aten::addmm` is the next entry with that
    operator (`extern_kernels.addmm:1`) that comes before the next generated kernel.
    """
    order = list(covered)
    position, result = 0, []
    for event in events:
        name = _operator(event)
        found = next((i for i in range(position, len(order)) if _operator(order[i]) == name), None)
        generated = name.startswith("cpp_")
        if found is None or (not generated and any(_operator(k).startswith("cpp_") for k in order[position:found])):
            result.append(event)
        else:
            result.append(order[found])
            position = found + 1
    return result


def _operator(name: str) -> str:
    """`aten::addmm`, `extern_kernels.addmm:1`, `torch.ops.aten.addmm.default:1`: addmm."""
    if name.startswith("graph_"):
        return name.split("_", 2)[2]
    if "::" in name:
        return name.partition("::")[2]
    parts = [part for part in name.partition(":")[0].split(".") if part not in ("default", "out", "binary", "unary")]
    return parts[-1]
