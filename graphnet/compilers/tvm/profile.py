"""Times of a program's kernels, by the virtual machine's instrument."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from graphnet.compilers import Kernel

PROFILED_RUNS = 10
SECONDS = 20.0
_OVERHEAD_PREFIX = "vm.builtin."


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
