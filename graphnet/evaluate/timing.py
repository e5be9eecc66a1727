"""The child's clock: warm-up until steady, turns of timed runs with raw samples, aligned buffers, the machine's noise.

Warm-up is at least 5 runs and ends when the last 5 agree: their Theil-Sen slope (the median of the slopes between all
pairs), over the window of 5, is at most 5 % of their median. Random noise has no slope, so a noisy machine does not
prolong it; a program that still gets faster does.
"""

from __future__ import annotations

import gc
import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations

import msgspec
import numpy as np

from graphnet.evaluate.protocol import Samples, Turn

ALIGNMENT = 64
OFFSETS = 64
"""Buffers start at one of this many multiples of 64 bytes: all places within a 4 KiB page."""
WARMUP_WINDOW = 5
WARMUP_SLOPE = 0.05
WARMUP_MAX_RUNS = 100
MOST_FOLD = 20
"""A turn of very short runs takes up to so many times the samples asked for."""
SHORTEST_SAMPLE_NS = 20_000
"""The resolution floor, some 300 times the cost of reading the clock: shorter runs are timed several to a sample."""
MAX_INNER_LOOPS = 10_000
NOISE_REPEATS = 10
NOISE_WORK = 20_000


class Clock(msgspec.Struct, frozen=True):
    """Nanosecond clocks, taken when this module was imported: code that later patches `time` does not reach them."""

    now: Callable[[], int] = time.perf_counter_ns
    cpu: Callable[[], int] = time.process_time_ns


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage now and not again before the end."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def take_turn(run: Callable[[], None], turn: Turn, inner: int, clock: Clock) -> Samples:
    """Timed runs, `inner` of them to a sample."""
    now, cpu, loops = clock.now, clock.cpu, range(inner)
    wall_times: list[int] = []
    cpu_times: list[int] = []
    begin = now()
    while now() - begin < turn.rewarm_ns:
        run()
    begin = now()
    while True:
        cpu_start = cpu()
        start = now()
        for _ in loops:
            run()
        end = now()
        cpu_times.append((cpu() - cpu_start) // inner)
        wall_times.append((end - start) // inner)
        count, spent = len(wall_times), end - begin
        enough = count >= turn.runs and (spent >= turn.least_ns or count >= MOST_FOLD * turn.runs)
        if enough or spent >= turn.most_ns:
            return Samples(wall_ns=tuple(wall_times), cpu_ns=tuple(cpu_times))


def warm_up(run: Callable[[], None], budget_ns: int, clock: Clock) -> tuple[list[int], bool]:
    """Run times until they are steady, and whether they became so before 100 runs or the budget (after 3 runs)."""
    times: list[int] = []
    begin = clock.now()
    while True:
        start = clock.now()
        run()
        times.append(clock.now() - start)
        if is_steady(times):
            return times, True
        late = len(times) >= 3 and clock.now() - begin > budget_ns
        if late or len(times) >= WARMUP_MAX_RUNS:
            return times, False


def is_steady(times: Sequence[int]) -> bool:
    """The slope test of the module's docstring."""
    if len(times) < WARMUP_WINDOW:
        return False
    window = times[-WARMUP_WINDOW:]
    slopes = [(window[j] - window[i]) / (j - i) for i, j in combinations(range(WARMUP_WINDOW), 2)]
    drift = abs(statistics.median(slopes)) * (WARMUP_WINDOW - 1)
    return drift <= WARMUP_SLOPE * statistics.median(window)


def inner_loops(run_ns: int) -> int:
    """Runs per sample: 1, or as many as fill the resolution floor."""
    return max(1, min(MAX_INNER_LOOPS, -(-SHORTEST_SAMPLE_NS // max(run_ns, 1))))


def noise_loop(clock: Clock) -> list[int]:
    """Times of the same fixed work (about a millisecond of integer arithmetic), in nanoseconds."""
    times = []
    for _ in range(NOISE_REPEATS):
        start = clock.now()
        _fixed_work()
        times.append(clock.now() - start)
    return times


def _fixed_work() -> int:
    total = 0
    for number in range(NOISE_WORK):
        total += number * number & 0xFF
    return total


def random_seed() -> int:
    """A seed for `buffer_offset`, another one in each process."""
    return secrets.randbits(32)


def buffer_offset(seed: int, name: str) -> int:
    """Where in a page the buffer of a tensor begins: a multiple of 64 below 4096, drawn for each name of its own.

    Buffers at one place in their pages would alias: a store to one delays loads from another (4K aliasing).
    """
    return ALIGNMENT * random.Random(f"{seed} {name}").randrange(OFFSETS)


def aligned_copy(array: np.ndarray, offset: int = 0) -> np.ndarray:
    """A C-contiguous copy that starts `offset` bytes (a multiple of 64) past a 4 KiB boundary of its own allocation."""
    if array.dtype.hasobject or array.nbytes == 0:
        return array.copy()
    page = ALIGNMENT * OFFSETS
    buffer = np.empty(array.nbytes + page + offset, np.uint8)
    start = -buffer.ctypes.data % page + offset
    copy = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def aligned_copies(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Each array by `aligned_copy`, at its `buffer_offset`."""
    return {name: aligned_copy(array, buffer_offset(seed, name)) for name, array in arrays.items()}
