"""Per-kernel times of a captured tinygrad JIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinygrad.device import Device
from tinygrad.engine.realize import ExecContext, get_call_name, pm_exec
from tinygrad.helpers import ansistrip, perf_counter_us
from tinygrad.tensor import Tensor
from tinygrad.uop import Ops
from tinygrad.uop.ops import UOp

from graphnet.compilers.base import Kernel

PROFILED_RUNS = 5


def profile(jit: Any, inputs: Mapping[str, Tensor], readers: Mapping[UOp, Sequence[str]]) -> list[Kernel]:
    """Kernels in order, each waited for.

    tinygrad's scheduler does not keep what a kernel was made from. A kernel is known to do the work of a node if it
    reads a weight of that node; what else is fused into it is not told, and a kernel without weights names no node.

    Args:
        jit: the captured function.
        inputs: its arguments.
        readers: nodes that read a weight, by the weight's buffer.
    """
    buffers = tuple(value.uop.base for _, value in sorted(inputs.items()))
    calls = named_calls(jit)
    times = [0.0] * len(calls)
    for _ in range(PROFILED_RUNS):
        for index, (_, call) in enumerate(calls):
            times[index] += _run(call, buffers)
    return [
        Kernel(
            name=name,
            nodes=tuple(dict.fromkeys(node for value in call.src[1:] for node in readers.get(value.base, ()))),
            calls=1,
            total_us=total / PROFILED_RUNS,
        )
        for (name, call), total in zip(calls, times, strict=True)
    ]


def named_calls(jit: Any) -> list[tuple[str, UOp]]:
    """Kernels and copies of a captured function in order, with their names."""
    return [(ansistrip(get_call_name(call, call.src[1:])), call) for call in _calls(jit.captured.linear)]


def _calls(linear: UOp) -> Iterator[UOp]:
    """Kernels and copies, those of batches included."""
    for call in linear.src:
        if call.src[0].op is Ops.CUSTOM_FUNCTION and call.src[0].arg == "graph":
            yield from _calls(call.src[0].src[0])
        else:
            yield call


def _run(call: UOp, inputs: tuple[UOp, ...]) -> float:
    """Microseconds: what the device says, else what the clock says."""
    start = perf_counter_us()
    seconds = pm_exec.rewrite(call, ExecContext(input_uops=inputs, jit=True, wait=True))
    Device[Device.DEFAULT].synchronize()  # type: ignore[no-untyped-call]
    told = [one for one in seconds or () if one is not None]
    return float(sum(told) * 1e6 if told else perf_counter_us() - start)
