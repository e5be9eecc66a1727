"""What the cgroups of this process grant it of the CPUs: quota and throttling, of its own group and of all above."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path, PurePosixPath

PROC, SYS = Path("/proc"), Path("/sys")
_UNIFIED = ("fs/cgroup", "fs/cgroup/unified")
_LEGACY = ("fs/cgroup/cpu", "fs/cgroup/cpu,cpuacct")
"""Where version 2, and the cpu controller of version 1, are mounted."""


def cpu_quota() -> float | None:
    """CPUs' worth of time that the tightest of our cgroups grants; None without a limit."""
    granted = [quota for folder in cpu_folders(PROC, SYS) if (quota := _quota(folder)) is not None]
    return min(granted, default=None)


def throttled_ns() -> int:
    """For how long the quotas of our cgroups have held processes back, in nanoseconds since the groups began."""
    total = 0
    for folder in cpu_folders(PROC, SYS):
        for line in _read(folder / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec":
                total += 1000 * int(value)
            elif name == "throttled_time":
                total += int(value)
    return total


@lru_cache(maxsize=8)
def cpu_folders(proc: Path, sys: Path) -> tuple[Path, ...]:
    """Folders of our cgroups with a CPU controller, the innermost first.

    In a container without a cgroup namespace the path of our group is that of the host; the container's own group is
    then the root of what is mounted, and all that can be seen.
    """
    found = []
    for line in _read(proc / "self" / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        unified = number == "0" and not controllers
        if not unified and "cpu" not in controllers.split(","):
            continue
        inside = PurePosixPath(path).relative_to("/")
        parts = PurePosixPath() if ".." in inside.parts else inside
        for mount in _UNIFIED if unified else _LEGACY:
            found += [sys / mount / group for group in (parts, *parts.parents)]
    # The two names of one mount of version 1 are links to the same folder.
    return tuple({folder.resolve(): folder for folder in found if (folder / "cpu.stat").is_file()})


def _quota(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
