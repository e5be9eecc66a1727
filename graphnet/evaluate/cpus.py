"""How many CPUs there are for us: programs of more threads than that would wait for themselves."""

from __future__ import annotations

import os

from graphnet.errors import UsageError
from graphnet.evaluate import cgroup


def usable_cpus() -> int:
    """CPUs of our affinity mask, or whole CPUs' worth of time that our cgroups grant where that is less; at least 1."""
    count = len(os.sched_getaffinity(0))
    quota = cgroup.cpu_quota()
    return count if quota is None else min(count, max(1, int(quota)))


def require_cpus(threads: int) -> None:
    """Raises UsageError for more threads than CPUs."""
    if 1 <= threads <= usable_cpus():
        return
    mask, quota = len(os.sched_getaffinity(0)), cgroup.cpu_quota()
    granted = "" if quota is None else f", and the quota of the cgroup grants the time of {quota:g}"
    raise UsageError(
        f"{threads} thread(s) asked for; this process may use {mask} CPU(s) of {os.cpu_count()}{granted}:"
        f" ask for 1 to {usable_cpus()} thread(s)"
    )
