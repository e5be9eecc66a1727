"""The data caches of this machine, and which CPUs share them, from /sys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Cache(msgspec.Struct, frozen=True, order=True):
    """One cache of data."""

    level: int
    size: int
    """Bytes."""
    cpus: tuple[int, ...]
    """That share it."""


def read(cpus: Sequence[int], folder: Path = CPUS) -> list[Cache]:
    """Every cache of data that any of `cpus` has, the nearest first; empty where the system does not tell."""
    return sorted({cache for cpu in cpus for cache in _of_cpu(folder / f"cpu{cpu}" / "cache")})


def one_per_core(cpus: Sequence[int], folder: Path = CPUS) -> list[int]:
    """`cpus` in an order that uses each core once before any core a second time."""
    seen: dict[tuple[int, ...], int] = {}
    turns = []
    for cpu in sorted(cpus):
        core = _cpu_list(_text(folder / f"cpu{cpu}" / "topology" / "thread_siblings_list")) or (cpu,)
        seen[core] = seen.get(core, 0) + 1
        turns.append((seen[core], cpu))
    return [cpu for _, cpu in sorted(turns)]


def usable() -> list[int]:
    """CPUs that this process may run on, one of each core first."""
    return one_per_core(sorted(os.sched_getaffinity(0)))


def _of_cpu(folder: Path) -> Iterator[Cache]:
    for entry in sorted(folder.glob("index*")):
        size, level = _text(entry / "size"), _text(entry / "level")
        if _text(entry / "type") == "Instruction" or not level.isdigit() or not size:
            continue
        number = size.rstrip("KMG")
        if number.isdigit():
            unit = _UNITS.get(size[len(number) :], 1)
            yield Cache(int(level), int(number) * unit, _cpu_list(_text(entry / "shared_cpu_list")))


def _cpu_list(text: str) -> tuple[int, ...]:
    """`0-2,8` as numbers."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return ()
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
