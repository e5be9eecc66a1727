"""The child that measures what cores and memory do at best, level by level, and matrix products of NumPy."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from graphnet.evaluate import caches, procfs, triad

ITEM = 8
STREAMS = 3
REPEATS = 12
BLOCK_S = 0.02
"""Seconds of each timed block."""
DRAM_FACTOR = 4
"""Each array is at least so many times the last-level caches together (the rule of STREAM)."""
ASSUMED_CACHE = 32 << 20
"""Bytes of last-level cache where the system does not tell."""
MEMORY_SHARE = 8
"""All arrays together take at most the eighth part of the memory."""
GAP = 64 * 17
"""Bytes between the arrays of a thread, so that their elements do not fall into the same sets of a cache."""

Loop = Callable[[tuple[np.ndarray, ...], int], int]
"""Runs over (a, b, c) so many times and returns what one pass amounts to, in bytes or FLOPs."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured rate, what measured it, and for a cache its bytes."""

    name: str
    """`L1`, `DRAM`, or a dtype for a matrix product (FLOP/s)."""
    rate: float
    source: str
    size: int = 0


def measure(threads: int, folder: Path) -> list[Figure]:
    """Arithmetic, and all levels of the memory, on so many threads, each on a core of its own as far as there are."""
    cpus = caches.usable()
    cpus = [cpus[index % len(cpus)] for index in range(threads)]
    compiled, known = triad.load(folder), caches.read(cpus)
    found = _cache_figures(compiled, known, cpus) if compiled else []
    return [*found, _dram(compiled, known, cpus), *(_arithmetic(compiled, cpus) if compiled else [])]


def _arithmetic(compiled: triad.Triad, cpus: Sequence[int]) -> list[Figure]:
    """FLOP/s of multiply-adds between registers: no product of matrices can do better."""
    return [
        Figure(name=dtype, rate=_rate(_chains(compiled, dtype), cpus, 8), source="chains of vector multiply-adds")
        for dtype in triad.C_TYPES
    ]


def _chains(compiled: triad.Triad, dtype: str) -> Loop:
    return lambda _, passes: compiled.multiply_add(dtype, passes)


def _cache_figures(compiled: triad.Triad, known: Sequence[caches.Cache], cpus: Sequence[int]) -> list[Figure]:
    figures = []
    for level in sorted({cache.level for cache in known}):
        mine = [cache for cache in known if cache.level == level]
        shares = [_share(mine, cpu, cpus) for cpu in cpus]
        size = _elements(min(shares) // 2 // STREAMS)
        if size:
            rate = _rate(_plain(compiled), cpus, size)
            source = f"triad of {STREAMS} arrays of {size * ITEM >> 10} KiB a thread, ordinary stores"
            figures.append(Figure(name=f"L{level}", rate=rate, source=source, size=sum(cache.size for cache in mine)))
    return figures


def _share(mine: Sequence[caches.Cache], cpu: int, cpus: Sequence[int]) -> int:
    """Bytes of a level that the thread on `cpu` has, those that share its cache taking equal parts."""
    own = [cache for cache in mine if cpu in cache.cpus]
    return own[0].size // max(sum(cpus.count(other) for other in own[0].cpus), 1) if own else 0


def _dram(compiled: triad.Triad | None, known: Sequence[caches.Cache], cpus: Sequence[int]) -> Figure:
    last = max((cache.level for cache in known), default=0)
    size = DRAM_FACTOR * (sum(cache.size for cache in known if cache.level == last) or ASSUMED_CACHE)
    room = procfs.memory_limit_bytes() // MEMORY_SHARE // STREAMS
    elements = _elements(min(size, room) // len(cpus))
    arrays = f"{STREAMS} arrays of {elements * len(cpus) * ITEM >> 20} MiB"
    if room < size:
        arrays += f" (less than {DRAM_FACTOR} times the last-level cache: memory is short)"
    if compiled is None:
        rate = _rate(_numpy_triad, cpus, elements)
        return Figure(name="DRAM", rate=rate, source=f"numpy {np.__version__} multiply and add, {arrays}")
    rates = {"ordinary stores": _rate(_plain(compiled), cpus, elements)}
    if _streams(compiled):
        rates["streaming stores"] = _rate(_streaming(compiled), cpus, elements)
    best = max(rates, key=lambda name: rates[name])
    return Figure(name="DRAM", rate=rates[best], source=f"triad of {arrays}, {best}")


def _plain(compiled: triad.Triad) -> Loop:
    def loop(arrays: tuple[np.ndarray, ...], passes: int) -> int:
        compiled.run(arrays, passes)
        return STREAMS * arrays[0].nbytes

    return loop


def _streaming(compiled: triad.Triad) -> Loop:
    def loop(arrays: tuple[np.ndarray, ...], passes: int) -> int:
        compiled.run(arrays, passes, streaming=True)
        return STREAMS * arrays[0].nbytes

    return loop


def _streams(compiled: triad.Triad) -> bool:
    return compiled.run(_arrays(8), 1, streaming=True)


def _numpy_triad(arrays: tuple[np.ndarray, ...], passes: int) -> int:
    """Two steps, the first of two arrays and the second of three."""
    a, b, c = arrays
    for _ in range(passes):
        np.multiply(c, triad.SCALE, out=a)
        np.add(a, b, out=a)
    return 5 * a.nbytes


def _rate(loop: Loop, cpus: Sequence[int], elements: int) -> float:
    """Bytes or FLOPs per second of all threads together, the best of several blocks."""
    team = _Team(loop, cpus, elements)
    seconds, _ = team.block(1)
    passes = 1
    while seconds < BLOCK_S / 2 and passes < 1 << 40:
        passes = max(passes + 1, min(passes * 16, round(passes * BLOCK_S / max(seconds, 1e-7))))
        seconds, _ = team.block(passes)
    return max(moved * passes / spent for spent, moved in (team.block(passes) for _ in range(REPEATS)))


class _Team:
    """Threads with arrays of their own, which each touches first (so that they lie near its core)."""

    def __init__(self, loop: Loop, cpus: Sequence[int], elements: int) -> None:
        self._loop, self._cpus = loop, cpus
        self._arrays: list[tuple[np.ndarray, ...]] = [()] * len(cpus)
        self._each(lambda index: self._arrays.__setitem__(index, _arrays(elements)))

    def block(self, passes: int) -> tuple[float, int]:
        """Seconds from the first thread's start to the last one's end, and what one pass of all amounts to."""
        barrier = threading.Barrier(len(self._cpus))
        spans: list[tuple[float, float, int]] = []

        def work(index: int) -> None:
            self._loop(self._arrays[index], 1)  # what another block left in the caches goes
            barrier.wait()
            start = time.perf_counter()
            moved = self._loop(self._arrays[index], passes)
            spans.append((start, time.perf_counter(), moved))

        self._each(work)
        starts, ends, moved = zip(*spans, strict=True)
        return max(ends) - min(starts), sum(moved)

    def _each(self, work: Callable[[int], object]) -> None:
        def pinned(index: int, cpu: int) -> None:
            os.sched_setaffinity(0, {cpu})
            work(index)

        crew = [threading.Thread(target=pinned, args=(index, cpu)) for index, cpu in enumerate(self._cpus)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()


def _arrays(elements: int) -> tuple[np.ndarray, ...]:
    size = elements * ITEM
    buffer = np.empty(STREAMS * (size + GAP) + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    places = (start + index * (size + GAP) for index in range(STREAMS))
    arrays = tuple(buffer[place : place + size].view(np.float64) for place in places)
    for array, value in zip(arrays, (0.0, 1.0, 2.0), strict=True):
        array.fill(value)
    return arrays


def _elements(size: int) -> int:
    """How many doubles fit, in whole lines of 64 bytes."""
    return size // 64 * 64 // ITEM


def products(side: int, seconds: float) -> list[Figure]:
    """FLOP/s of NumPy's matrix product (its BLAS has as many threads as the environment of this process allows)."""
    figures = []
    for dtype in ("float32", "float64"):
        left, right = (np.full((side, side), value, dtype) for value in (1.0, 0.5))
        out, end, best = np.empty_like(left), time.perf_counter() + seconds, float("inf")
        np.matmul(left, right, out=out)
        while time.perf_counter() < end:
            start = time.perf_counter()
            np.matmul(left, right, out=out)
            best = min(best, time.perf_counter() - start)
        if np.isfinite(best):
            source = f"numpy {np.__version__} matmul {side}"
            figures.append(Figure(name=dtype, rate=2 * side**3 / best, source=source))
    return figures


def main() -> None:
    """`python -m graphnet.evaluate.bandwidth THREADS FOLDER SIDE SECONDS`: figures as JSON."""
    threads, folder, side, seconds = sys.argv[1:]
    found = [*measure(int(threads), Path(folder)), *products(int(side), float(seconds))]
    sys.stdout.write(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main()
