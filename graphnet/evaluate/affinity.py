"""Where programs run: a set of CPUs for a number of threads, and pinning processes to it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Set
from pathlib import Path

from graphnet.errors import UsageError
from graphnet.evaluate import cgroup

SYS = Path("/sys")


def usable_cpus() -> int:
    """CPUs of our affinity mask, or whole CPUs' worth of time that our cgroups grant where that is less; at least 1."""
    count = len(os.sched_getaffinity(0))
    quota = cgroup.cpu_quota()
    return count if quota is None else min(count, max(1, int(quota)))


def cpus_for(threads: int) -> tuple[int, ...]:
    """As many CPUs of our affinity mask as a program has threads, in the order in which to use them.

    Distinct cores come before two hardware threads of one core, then one NUMA node before several, then cores other
    than that of CPU 0, which serves interrupts on most machines. Raises UsageError for more threads than CPUs.
    """
    mask = os.sched_getaffinity(0)
    if not 1 <= threads <= usable_cpus():
        raise UsageError(f"{threads} thread(s) asked for; {_available(len(mask))}")
    cores = _cores(mask)
    nodes = sorted(_nodes(), key=lambda node: 0 in node)
    places = [[core & node for core in cores if core & node] for node in (*nodes, mask)]
    enough = [place for place in places if threads <= sum(map(len, place))]
    best = min(enough, key=lambda place: max(0, threads - len(place)))  # who has to share a core; of equals the first
    return _in_order(best)[:threads]


def pin(pid: int, cpus: Collection[int]) -> None:
    """Keep a process on these CPUs: all threads that it has and those that they start. 0 is this process.

    A process that has ended is left alone. Raises UsageError where the system allows none of the CPUs.
    """
    try:
        threads = os.listdir(f"/proc/{pid or 'self'}/task")
    except FileNotFoundError:
        return
    for thread in threads:
        try:
            os.sched_setaffinity(int(thread), cpus)
        except ProcessLookupError:  # it ended after the listing
            continue
        except OSError as error:
            named = ", ".join(map(str, sorted(cpus)))
            raise UsageError(f"process {pid or os.getpid()} cannot be kept on CPU {named}: {error.strerror}") from error


def _available(mask: int) -> str:
    quota = cgroup.cpu_quota()
    granted = "" if quota is None else f", and the quota of the cgroup grants the time of {quota:g}"
    return f"this process may use {mask} CPU(s) of {os.cpu_count()}{granted}: ask for 1 to {usable_cpus()} thread(s)"


def _in_order(cores: Iterable[frozenset[int]]) -> tuple[int, ...]:
    ranked = [(rank, 0 in core, cpu) for core in cores for rank, cpu in enumerate(sorted(core))]
    return tuple(cpu for _, _, cpu in sorted(ranked))


def _cores(mask: Set[int]) -> list[frozenset[int]]:
    """The hardware threads in the mask, core by core."""
    folder = SYS / "devices/system/cpu"
    siblings = {cpu: _listed(folder / f"cpu{cpu}/topology/thread_siblings_list") or {cpu} for cpu in mask}
    return sorted({frozenset(found & mask) for found in siblings.values()}, key=min)


def _nodes() -> list[frozenset[int]]:
    folder = SYS / "devices/system/node"
    return [frozenset(_listed(path)) for path in sorted(folder.glob("node[0-9]*/cpulist"))]


def _listed(path: Path) -> set[int]:
    """CPUs of a kernel list such as `0-3,8`; empty where there is none."""
    try:
        text = path.read_text().strip()
    except OSError:
        return set()
    ends = [part.partition("-") for part in text.split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}
