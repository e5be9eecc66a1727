"""The clock: warm-up until steady, timed runs with raw samples, aligned buffers, the machine's own noise.

Warm-up is at least 5 runs and ends when the last 5 agree: their Theil-Sen slope (the median of the slopes between all
pairs), over the window of 5, is at most 5 % of their median. Random noise has no slope, so a noisy machine does not
prolong it; a program that still gets faster does.

Timed are at least 100 runs and at least 0.2 s, unless the budget ends first; never fewer than 5. A block is unstable
when the 95 % interval of its median (order statistics) reaches further than 15 % from the median; it is then prolonged
once, by twice as many runs.
"""

from __future__ import annotations

import gc
import random
import secrets
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import comb

import msgspec
import numpy as np

from graphnet.evaluate import procfs
from graphnet.evaluate.records import Noise, Timing

ALIGNMENT = 64
OFFSETS = 64
"""Buffers start at one of this many multiples of 64 bytes: all places within a 4 KiB page."""
WARMUP_WINDOW = 5
WARMUP_SLOPE = 0.05
WARMUP_MAX_RUNS = 100
MIN_RUNS = 5
ENOUGH_RUNS = 100
MAX_RUNS = 1000
ENOUGH_NS = 200_000_000
UNSTABLE = 0.15
"""Half-width of the 95 % interval of the median, relative to the median, beyond which a block is unstable."""
SHORTEST_SAMPLE_NS = 20_000
"""The resolution floor, some 300 times the cost of reading the clock: shorter runs are timed several to a sample."""
MAX_INNER_LOOPS = 10_000
NOISE_REPEATS = 10
NOISE_WORK = 20_000


class Clock(msgspec.Struct, frozen=True):
    """Nanosecond clocks, taken when this module was imported: code that later patches `time` does not reach them."""

    now: Callable[[], int] = time.perf_counter_ns
    cpu: Callable[[], int] = time.process_time_ns
    wait: Callable[[], int] = procfs.run_queue_wait_ns


class Measured(msgspec.Struct, frozen=True):
    """A timed block and what was seen around it."""

    timing: Timing
    noise: Noise
    spread: float
    """Relative half-width of the 95 % interval of the median."""
    notes: tuple[str, ...] = ()

    @property
    def unstable(self) -> bool:
        """Whether the median is too uncertain to be a figure."""
        return self.spread > UNSTABLE


def measure(run: Callable[[], None], budget_s: float, seed: int = 0, clock: Clock | None = None) -> Measured:
    """Warm up and time `run`; `seed`, that of the buffers, is only stamped into the record. The first run must be over.

    The garbage collector is off meanwhile.
    """
    clock = clock or Clock()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        return _measure(run, int(budget_s * 1e9), seed, clock)
    finally:
        if was_enabled:
            gc.enable()


def _measure(run: Callable[[], None], budget_ns: int, seed: int, clock: Clock) -> Measured:
    warmup, steady = warm_up(run, budget_ns, clock)
    inner = inner_loops(min(warmup))
    before = noise_loop(clock)
    waited = clock.wait()
    block = _Block(run, inner, clock)
    ended = block.extend(ENOUGH_RUNS, budget_ns)
    notes: tuple[str, ...] = ()
    spread = median_spread(block.samples)
    if spread > UNSTABLE:
        count = len(block.samples)
        notes = (f"the first {count} runs were unstable (median +-{spread:.0%}); timed {2 * count} more",)
        block.extend(2 * count, 2 * budget_ns)
        spread = median_spread(block.samples)
    waited = max(0, clock.wait() - waited)
    after = noise_loop(clock)
    timing = Timing(
        warmup_ns=tuple(warmup), samples_ns=tuple(block.samples), inner_loops=inner, cpu_ns=tuple(block.cpu),
        steady=steady, budget_ended=ended, buffer_seed=seed,
    )  # fmt: skip
    noise = Noise(before_ns=tuple(before), after_ns=tuple(after), cv=variation([*before, *after]))
    return Measured(timing, noise, spread, notes)


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


class _Block:
    """Timed samples, growing."""

    def __init__(self, run: Callable[[], None], inner: int, clock: Clock) -> None:
        self._run, self._inner, self._clock = run, inner, clock
        self.samples: list[int] = []
        self.cpu: list[int] = []

    def extend(self, runs: int, budget_ns: int) -> bool:
        """At least `runs` more samples and 0.2 s of them, or until the budget ends; True when that came first."""
        now, cpu, run, inner = self._clock.now, self._clock.cpu, self._run, self._inner
        loops = range(inner)
        target = len(self.samples) + runs
        begin = now()
        while True:
            cpu_start = cpu()
            start = now()
            for _ in loops:
                run()
            end = now()
            self.cpu.append((cpu() - cpu_start) // inner)
            self.samples.append((end - start) // inner)
            count, spent = len(self.samples), end - begin
            if count >= target and (spent >= ENOUGH_NS or count >= MAX_RUNS):
                return False
            if spent >= budget_ns and count >= MIN_RUNS:
                return count < target


def median_spread(samples: Sequence[int]) -> float:
    """Half-width of the 95 % interval of the median, over the median.

    (Conover, Practical Nonparametric Statistics, section 3.2.)

    The interval runs between the k-th smallest and k-th largest sample, with the largest k whose coverage
    1 - 2 P(Binomial(n, 1/2) < k) is at least 95 %; k = 1 for fewer than 6 samples.
    """
    ordered = sorted(samples)
    rank = _interval_rank(len(ordered))
    middle = statistics.median(ordered)
    return (ordered[-rank] - ordered[rank - 1]) / 2 / middle if middle else 0.0


def _interval_rank(count: int) -> int:
    if count > 200:  # the normal approximation is exact to one rank here
        return max(1, int((count - 1.96 * count**0.5) / 2))
    total, rank = 0, 0
    while True:
        total += comb(count, rank)
        if 2 * total > 0.05 * 2**count:
            return max(1, rank)
        rank += 1


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


def variation(times: Sequence[int]) -> float:
    """Coefficient of variation: population standard deviation over mean."""
    mean = statistics.fmean(times)
    return statistics.pstdev(times) / mean if mean else 0.0


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
