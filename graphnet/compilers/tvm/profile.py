"""Times of a program's kernels and the storage that it asks for, by the virtual machine's instrument."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphnet.compilers import Kernel

PROFILED_RUNS = 10
SECONDS = 20.0
_OVERHEAD_PREFIX = "vm.builtin."
_ALLOCATE = "vm.builtin.alloc_storage"


def kernel_times(machine: Any, run: Callable[[], None], kernels: Sequence[tuple[str, tuple[str, ...]]]) -> list[Kernel]:
    """Mean time of each call over a few runs. `kernels` are name and nodes of the calls in their order.

    Calls of the virtual machine's own (allocations, shape checks) are summed to a row each, without nodes.
    """
    recorder = _Recorder()
    run()
    machine.set_instrument(recorder)
    start, count = time.perf_counter(), 0
    try:
        while count < PROFILED_RUNS and (not count or time.perf_counter() - start < SECONDS):
            run()
            count += 1
    finally:
        machine.set_instrument(_nothing)
    nodes: dict[str, list[tuple[str, ...]]] = {}
    for name, covered in kernels:
        nodes.setdefault(name, []).append(covered)
    return recorder.rows(count, nodes)


def planned_storage(machine: Any, run: Callable[[], None]) -> int:
    """Bytes of the storages that one inference allocates, as TVM's memory planning shares them between tensors."""
    sizes: list[int] = []

    def note(_function: Any, symbol: str, before: bool, _result: Any, *arguments: Any) -> int:
        if before and symbol == _ALLOCATE:
            _, shape, _, dtype, _ = arguments
            sizes.append(math.prod(map(int, shape)) * np.dtype(str(dtype)).itemsize)
        return 0

    machine.set_instrument(note)
    try:
        run()
    finally:
        machine.set_instrument(_nothing)
    return sum(sizes)


def _nothing(*_: Any) -> int:
    return 0


class _Recorder:
    """Called before and after each call of a run."""

    def __init__(self) -> None:
        self._start = 0
        self._spent: list[tuple[str, int]] = []

    def __call__(self, _function: Any, symbol: str, before: bool, *_: Any) -> int:
        if before:
            self._start = time.perf_counter_ns()
        else:
            self._spent.append((symbol, time.perf_counter_ns() - self._start))
        return 0

    def rows(self, runs: int, nodes: dict[str, list[tuple[str, ...]]]) -> list[Kernel]:
        """One row per call of a kernel with nodes, one per symbol for the rest."""
        each = len(self._spent) // runs
        total: dict[tuple[str, int], int] = {}
        calls: dict[tuple[str, int], int] = {}
        for run in range(runs):
            seen: dict[str, int] = {}
            for symbol, spent in self._spent[run * each : (run + 1) * each]:
                place = seen.get(symbol, 0) if symbol in nodes else 0
                seen[symbol] = place + 1
                total[symbol, place] = total.get((symbol, place), 0) + spent
                calls[symbol, place] = calls.get((symbol, place), 0) + 1
        return [
            Kernel(
                name=symbol, nodes=nodes[symbol][place] if place < len(nodes.get(symbol, ())) else (),
                calls=max(1, calls[symbol, place] // runs), total_us=spent / runs / 1e3,
            )
            for (symbol, place), spent in total.items()
        ]  # fmt: skip
