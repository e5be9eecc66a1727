"""What the machine did during a turn of a program, by the kernel's counters, and whether that spoils the turn.

Run-queue wait counts in nanoseconds and only for the program's own threads: it is what tells that the program had to
share its CPUs, in turns of any length. `/proc/stat` counts in ticks of 10 ms, so steal and the CPU time of others say
little of a turn of 10 ms: one tick of steal makes it disturbed, less is not seen. Pressure (`/proc/pressure/cpu`) would
count microseconds, but of all processes' waiting alike, that of strangers for each other included.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from graphnet.evaluate import cgroup
from graphnet.evaluate.records import Block

PROC, SYS = Path("/proc"), Path("/sys")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
"""Resolution of `/proc/stat`."""
SLACK_NS = 2 * TICK_NS
"""A tick is charged whole to who runs when it comes: a difference may be off by one at each end."""
STEAL_SHARE = 0.02
"""Of the CPU time that the program could use. Twice the size of a difference (1 %) that a race is to tell."""
THROTTLED_SHARE = 0.01
"""Of the wall time. A quota that has run out stops all threads for the rest of its period, up to 100 ms at once."""
WAIT_SHARE = 0.05
"""Of the wall time, over all threads: they wait for each other, so that one which was held up holds up all.

On a quiet machine a program of one thread waits for less than 0.5 %; with a competitor on its CPU for half of the time,
for some 30 %. Runs shorter than a time slice (some ms) hide that from their median; longer ones take it in full.
"""
FREQUENCIES = 4
"""CPUs whose frequency is asked for: each costs some 10 microseconds."""


class Snapshot(NamedTuple):
    """Counters at one moment, nanoseconds since some beginning."""

    wait_ns: int
    """Run-queue wait of the living threads of the program."""
    switches: int
    """How often one of them was made to yield its CPU."""
    cpu_ns: int
    """CPU time of these threads."""
    busy_ns: int
    """CPU time of everything on the machine, interrupts included; without steal."""
    steal_ns: int
    throttled_ns: int
    mhz: float
    """Of our CPUs, 0 where the system does not tell."""


class Meanwhile(TypedDict):
    """What happened between two snapshots: fields of a `Block`."""

    wait_ns: int
    switches: int
    steal_ns: int
    throttled_ns: int
    other_ns: int
    mhz: float


def take(pids: Sequence[int]) -> Snapshot:
    """Counters of the processes of one program and of the machine. Exact when the processes are suspended.

    A thread counts up to its last switch; those that have ended are gone with their counts.
    """
    threads = [_thread(task) for pid in pids for task in _tasks(pid)]
    busy, steal = _machine()
    return Snapshot(
        wait_ns=sum(wait for _, wait, _ in threads), switches=sum(switches for _, _, switches in threads),
        cpu_ns=sum(cpu for cpu, _, _ in threads), busy_ns=busy, steal_ns=steal, throttled_ns=cgroup.throttled_ns(),
        mhz=_mhz(),
    )  # fmt: skip


def between(before: Snapshot, after: Snapshot) -> Meanwhile:
    """Fields of the block that ran between the two. Never negative: a thread that ended took its counts with it."""
    wait, switches, cpu, busy, steal, throttled = (
        max(0, int(new - old)) for old, new in zip(before[:-1], after[:-1], strict=True)
    )
    return Meanwhile(
        wait_ns=wait, switches=switches, steal_ns=steal, throttled_ns=throttled, other_ns=max(0, busy - cpu),
        mhz=after.mhz,
    )  # fmt: skip


def disturbed(block: Block, threads: int, cpus: int) -> str:
    """Why a block is not to count, in words; `""` if it may.

    Others may use the CPUs that the program leaves, be it all the time: what they do to caches and to memory cannot be
    seen here, and in the long run hits all programs of a race alike. That threads of one program wait for each other is
    no disturbance either: nobody can have waited for others longer than these ran.

    Args:
        block: wall time, and the fields of `between`.
        threads: how many the program was given.
        cpus: all CPUs of the machine, as `/proc/stat` counts them all (`os.cpu_count()`), not those of the program.
    """
    wall = block.wall_ns
    if block.steal_ns > STEAL_SHARE * wall * threads:
        return f"the hypervisor took {block.steal_ns / 1e6:.0f} ms"
    if block.throttled_ns > THROTTLED_SHARE * wall:
        return f"the CPU quota held it back for {_percent(block.throttled_ns, wall)} of the time"
    by_others = min(block.wait_ns, block.other_ns + SLACK_NS)
    if by_others > WAIT_SHARE * wall:
        return f"its threads waited for a CPU for {_percent(block.wait_ns, wall)} of the time"
    left = max(0, cpus - threads) * wall
    if block.other_ns > left + WAIT_SHARE * wall + SLACK_NS:
        return f"other processes used {_percent(block.other_ns, wall)} of a CPU, {max(0, cpus - threads)} are not ours"
    return ""


def _percent(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.0%}"


def _tasks(pid: int) -> list[str]:
    folder = f"{PROC}/{pid}/task"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def _thread(task: str) -> tuple[int, int, int]:
    """CPU time and run-queue wait (ns), involuntary switches; zeros for a thread that has ended."""
    try:
        cpu, wait = _bytes(f"{task}/schedstat").split()[:2]
        switches = _bytes(f"{task}/status").rpartition(b"nonvoluntary_ctxt_switches:")[2]
        return int(cpu), int(wait), int(switches)
    except (OSError, ValueError):
        return 0, 0, 0


def _machine() -> tuple[int, int]:
    """Busy and stolen nanoseconds of all CPUs; proc(5) has the columns. Time of guests is in that of users already."""
    try:
        columns = _bytes(f"{PROC}/stat").partition(b"\n")[0].split()[1:]
        user, nice, system, _, _, irq, softirq, steal = map(int, columns[:8])
    except (OSError, ValueError):
        return 0, 0
    return (user + nice + system + irq + softirq) * TICK_NS, steal * TICK_NS


def _mhz() -> float:
    found = []
    for cpu in sorted(os.sched_getaffinity(0))[:FREQUENCIES]:
        try:
            found.append(int(_bytes(f"{SYS}/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")) / 1000)
        except (OSError, ValueError):
            return _mhz_of_cpuinfo()
    return sum(found) / len(found)


def _mhz_of_cpuinfo() -> float:
    """Of the first few CPUs; the file of a large machine has megabytes."""
    try:
        with open(PROC / "cpuinfo", "rb", buffering=0) as stream:
            lines = stream.read(FREQUENCIES * 2048).splitlines()
        told = [float(line.partition(b":")[2]) for line in lines if line.startswith(b"cpu MHz")]
    except (OSError, ValueError):
        return 0.0
    return sum(told) / len(told) if told else 0.0


def _bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
