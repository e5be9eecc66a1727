"""What Linux says about processes in /proc: resident memory, run-queue wait, descendants, out-of-memory kills."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process now; 0 when it is gone. About 20 microseconds."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:
            return int(stream.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Memory of a process now, of what it shares only its part (Pss); 0 when it is gone. Milliseconds."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as stream:
            for line in stream:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return resident_bytes(pid)
    return resident_bytes(pid)


def peak_bytes() -> int:
    """Largest resident memory of this process since `reset_peak` (VmHWM)."""
    with open("/proc/self/status", "rb") as stream:
        for line in stream:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> bool:
    """Start a new peak for `peak_bytes`. False where the kernel forbids it: the peak then spans the whole life."""
    try:
        with open("/proc/self/clear_refs", "wb") as stream:
            stream.write(b"5")
    except OSError:
        return False
    return True


def give_back() -> None:
    """Hand freed memory that the C library still holds back to the system, so that it does not count as resident."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:  # glibc has it, musl does not
        trim(0)


def run_queue_wait_ns(pid: int | str = "self") -> int:
    """Time that the living threads of a process were runnable but not running, in nanoseconds, since they began."""
    total = 0
    try:
        with os.scandir(f"/proc/{pid}/task") as tasks:
            for task in tasks:
                with open(f"{task.path}/schedstat", "rb") as stream:
                    total += int(stream.read().split()[1])
    except (OSError, IndexError, ValueError):
        return total
    return total


def thread_count() -> int:
    """Threads of this process."""
    return len(os.listdir("/proc/self/task"))


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, as far as they are there now."""
    found, queue = [], [pid]
    while queue:
        children = _children(queue.pop())
        found += children
        queue += children
    return found


def marked(marker: str) -> list[int]:
    """Processes that began with `marker` (`NAME=value`) in their environment: a server's own, even when orphaned."""
    wanted = marker.encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                environment = Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(entry))
    return found


def kill(pids: list[int]) -> None:
    """SIGKILL to each that still lives."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot, here or in this cgroup."""
    try:
        with open("/proc/vmstat", "rb") as stream:
            for line in stream:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        return 0
    return 0


def memory_limit_bytes() -> int:
    """Memory of the machine, or of the cgroup where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        with os.scandir(f"/proc/{pid}/task") as tasks:
            for task in tasks:
                with open(f"{task.path}/children", "rb") as stream:
                    found += map(int, stream.read().split())
    except OSError:
        return found  # it has ended meanwhile
    return found
