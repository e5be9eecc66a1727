"""How near a graph or kernel comes to what its machine does at best: utilizations, efficiency, and what limits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from graphnet.analyze.stats import median_seconds
from graphnet.compilers import Kernel
from graphnet.evaluate.records import Environment, Peaks, Result

DRAM = "DRAM"
ABOVE_PEAK = "above peak"
"""Faster than the machine was ever measured: work was left out, the count is wrong, or data stayed in a cache."""


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one graph or kernel against the machine. None where a count, a latency or a peak is not known."""

    flops_utilization: float | None = None
    """FLOP/s over the peak of the dtype."""
    bandwidth_utilization: float | None = None
    """Bytes/s over the bandwidth of `level`."""
    roofline_efficiency: float | None = None
    """Time that the machine would need at best, max(flops / peak, bytes / bandwidth), over the time taken."""
    intensity: float | None = None
    """FLOP per byte."""
    flop_rate: float | None = None
    """FLOP/s."""
    bound: Literal["compute", "memory"] | None = None
    """Which of the two terms is the larger one."""
    level: str = ""
    """Memory level whose bandwidth counts: the smallest cache that the data fits in, else `DRAM`."""
    dtype: str = ""
    flags: tuple[str, ...] = ()


def peaks_of(result: Result, environments: Iterable[Environment]) -> Peaks | None:
    """The peaks of the machine, device and thread count that a result was measured with."""
    for environment in environments:
        if environment.key == result.environment:
            for peaks in environment.peaks:
                if (peaks.device, peaks.threads) == (result.target.device, result.target.threads):
                    return peaks
    return None


def balance(peaks: Peaks, dtype: str = "float32", level: str = DRAM) -> float | None:
    """FLOP per byte at which arithmetic and memory take the same time; None where a peak is not known."""
    peak, bandwidth = peaks.flops.get(dtype), peaks.bandwidth.get(level)
    return peak / bandwidth if peak and bandwidth else None


def bound_seconds(flops: int | None, moved: int | None, peaks: Peaks, dtype: str, level: str = DRAM) -> float | None:
    """The least time that the machine needs for `flops` and `moved` bytes; None where something is not known."""
    peak, bandwidth = peaks.flops.get(dtype), peaks.bandwidth.get(level)
    if flops is None or moved is None or not peak or not bandwidth:
        return None
    return max(flops / peak, moved / bandwidth)


def level_of(size: int, peaks: Peaks) -> str:
    """The nearest memory level that holds `size` bytes: a cache whose bandwidth was measured, else `DRAM`."""
    caches = sorted((room, name) for name, room in peaks.sizes.items() if name in peaks.bandwidth)
    return next((name for room, name in caches if size <= room), DRAM)


def measure(
    flops: int | None, moved: int | None, seconds: float, peaks: Peaks, *, dtype: str = "float32",
    working_set: int | None = None,
) -> Roofline:  # fmt: skip
    """Figures of `flops` and `moved` bytes in `seconds`. `working_set`: bytes touched, by default `moved`."""
    if not seconds > 0:
        return Roofline(dtype=dtype)
    size = moved if working_set is None else working_set
    level = DRAM if size is None else level_of(size, peaks)
    peak, bandwidth = peaks.flops.get(dtype), peaks.bandwidth.get(level)
    rate = None if flops is None else flops / seconds
    of_peak = rate / peak if rate is not None and peak else None
    of_bandwidth = moved / seconds / bandwidth if moved is not None and bandwidth else None
    least = bound_seconds(flops, moved, peaks, dtype, level)
    above = any(share is not None and share > 1 for share in (of_peak, of_bandwidth))
    return Roofline(
        flops_utilization=of_peak, bandwidth_utilization=of_bandwidth,
        roofline_efficiency=None if least is None else least / seconds,
        intensity=flops / moved if flops is not None and moved else None, flop_rate=rate,
        bound=None if of_peak is None or of_bandwidth is None else "compute" if of_peak >= of_bandwidth else "memory",
        level=level, dtype=dtype, flags=(ABOVE_PEAK,) if above else (),
    )  # fmt: skip


def of_result(result: Result, peaks: Peaks | None) -> Roofline:
    """The whole graph, by the median of its timed runs; empty unless the verdict is `ok` and there are peaks.

    Its working set is weights, inputs and outputs, where the record has them: these must come from as far as their
    level is, while intermediate tensors may stay nearer. Else all the bytes that its nodes move.
    """
    if peaks is None or result.timing is None or result.verdict != "ok":
        return Roofline()
    seconds = median_seconds(result.timing.samples_ns)
    return measure(
        result.flops, result.bytes, seconds, peaks, dtype=dtype_of(result, peaks), working_set=_working_set(result)
    )


def of_kernels(result: Result, peaks: Peaks | None) -> list[tuple[Kernel, Roofline]]:
    """Every kernel by its profiled time; its working set are the bytes that cross its border."""
    if peaks is None:
        return [(kernel, Roofline()) for kernel in result.kernels]
    dtype = dtype_of(result, peaks)
    return [
        (kernel, measure(kernel.flops, kernel.bytes, kernel.total_us * 1e-6, peaks, dtype=dtype))
        for kernel in result.kernels
    ]


def dtype_of(result: Result, peaks: Peaks) -> str:
    """Whose peak counts: the one floating dtype of the outputs where its peak is known, else the target's precision.

    A float32 graph with integer arithmetic inside is compared with float32, and may come out above it.
    """
    found = {output.dtype for output in result.outputs if output.dtype in peaks.flops}
    only = found.pop() if len(found) == 1 else "float32"
    return result.target.precision if only == "float32" else only


def _working_set(result: Result) -> int | None:
    memory = result.memory
    size = memory.weights + memory.inputs + memory.outputs if memory else 0
    return size or None


def rows(peaks: Peaks) -> list[tuple[str, float, str, Mapping[str, float]]]:
    """Of each measured dtype: its name, FLOP/s, source, and its balance point by memory level."""
    return [
        (name, rate, peaks.sources.get(name, ""), {level: rate / width for level, width in peaks.bandwidth.items()})
        for name, rate in peaks.flops.items()
    ]
