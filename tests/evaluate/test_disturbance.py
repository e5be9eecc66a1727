from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet.evaluate import cgroup, disturbance
from graphnet.evaluate.disturbance import Snapshot, between, disturbed, take
from graphnet.evaluate.records import Block

MS = 1_000_000
STATUS = """Name:\tpython
State:\tT (stopped)
voluntary_ctxt_switches:\t900
nonvoluntary_ctxt_switches:\t{}
"""
STAT = """cpu  100 20 30 4000 50 6 7 8 0 0
cpu0 50 10 15 2000 25 3 3 4 0 0
intr 12345
"""
CPUINFO = "processor\t: 0\ncpu MHz\t\t: 2000.000\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.000\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `/proc` with two programs: 7 has two threads, 8 one; and nothing in `/sys`."""
    for module in (disturbance, cgroup):
        monkeypatch.setattr(module, "PROC", tmp_path / "proc")
        monkeypatch.setattr(module, "SYS", tmp_path / "sys")
    monkeypatch.setattr(disturbance, "TICK_NS", 10 * MS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    for task, counts, switches in (
        ("7/task/7", "100 20 3", 4),
        ("7/task/9", "1000 200 9", 5),
        ("8/task/8", "7 7 7", 7),
    ):
        _write(tmp_path / "proc" / task / "schedstat", counts)
        _write(tmp_path / "proc" / task / "status", STATUS.format(switches))
    _write(tmp_path / "proc/stat", STAT)
    _write(tmp_path / "proc/cpuinfo", CPUINFO)
    return tmp_path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_counters_by_hand(machine: Path) -> None:
    # user 100, nice 20, system 30, irq 6, softirq 7: 163 ticks; idle and waiting for a disk are not busy
    assert take([7]) == Snapshot(
        wait_ns=220, switches=9, cpu_ns=1100, busy_ns=1630 * MS, steal_ns=80 * MS, throttled_ns=0, mhz=2500.0
    )
    assert take([7, 8])[:3] == (227, 16, 1107)
    assert take([])[:3] == (0, 0, 0)


def test_a_program_that_has_ended_counts_nothing(machine: Path) -> None:
    assert take([7, 12345]) == take([7])
    (machine / "proc/7/task/9/schedstat").unlink()
    assert take([7])[:3] == (20, 4, 100)


def test_throttling_is_of_our_cgroup(machine: Path) -> None:
    _write(machine / "proc/self/cgroup", "0::/a\n")
    _write(machine / "sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nthrottled_usec 30\n")
    cgroup.cpu_folders.cache_clear()
    assert take([]).throttled_ns == 30_000
    cgroup.cpu_folders.cache_clear()


def test_the_frequency_that_the_driver_tells_comes_first(machine: Path) -> None:
    for cpu, khz in ((0, 1_500_000), (1, 2_500_000)):
        _write(machine / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", f"{khz}\n")
    assert take([]).mhz == 2000.0


def test_a_system_that_tells_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disturbance, "PROC", machine / "nowhere")
    monkeypatch.setattr(cgroup, "PROC", machine / "nowhere")
    assert take([7]) == (0, 0, 0, 0, 0, 0, 0.0)


def test_between_two_snapshots() -> None:
    before = Snapshot(10, 1, 100 * MS, 1000 * MS, 20 * MS, 5, 2000.0)
    after = Snapshot(15, 3, 300 * MS, 1500 * MS, 30 * MS, 9, 2100.0)
    assert between(before, after) == {
        "wait_ns": 5, "switches": 2, "steal_ns": 10 * MS, "throttled_ns": 4, "other_ns": 300 * MS, "mhz": 2100.0
    }  # fmt: skip
    assert set(between(before, after)) < set(Block.__struct_fields__)


def test_nothing_is_ever_negative() -> None:
    before = Snapshot(10, 5, 0, 1000 * MS, 20, 5, 0.0)
    after = Snapshot(0, 0, 900 * MS, 1010 * MS, 20, 5, 0.0)
    assert set(between(before, after).values()) == {0}, "a thread has ended, and ticks are coarser than our time"


SECOND = 1000 * MS


@pytest.mark.parametrize(
    ("told", "threads", "words"),
    [
        ({}, 1, ""),
        ({"steal_ns": 20 * MS}, 1, ""),
        ({"steal_ns": 30 * MS}, 1, "the hypervisor took 30 ms"),
        ({"steal_ns": 30 * MS}, 2, ""),
        ({"throttled_ns": 10 * MS}, 1, ""),
        ({"throttled_ns": 90 * MS}, 1, "the CPU quota held it back for 9% of the time"),
        ({"wait_ns": 50 * MS, "other_ns": SECOND}, 1, ""),
        ({"wait_ns": 60 * MS, "other_ns": SECOND}, 1, "its threads waited for a CPU for 6% of the time"),
        ({"wait_ns": 900 * MS, "other_ns": 10 * MS}, 2, ""),
        ({"switches": 40, "wait_ns": MS, "other_ns": MS}, 1, ""),
        ({"other_ns": 500 * MS}, 1, ""),
        ({"other_ns": SECOND}, 1, ""),
        ({"other_ns": 1070 * MS}, 1, ""),
        ({"other_ns": 1080 * MS}, 1, "other processes used 108% of a CPU, 1 are not ours"),
        ({"other_ns": 70 * MS}, 2, ""),
        ({"other_ns": 80 * MS}, 2, "other processes used 8% of a CPU, 0 are not ours"),
    ],
)
def test_turn_of_a_second_on_two_cpus(told: dict[str, int], threads: int, words: str) -> None:
    block = Block(round=0, samples=10, wall_ns=SECOND, **told)  # type: ignore[arg-type]
    assert disturbed(block, threads, 2) == words


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"other_ns": 20 * MS}, ""),
        ({"wait_ns": MS}, "its threads waited for a CPU for 10% of the time"),
        ({"steal_ns": 10 * MS}, "the hypervisor took 10 ms"),
    ],
)
def test_turn_of_one_tick(told: dict[str, int], words: str) -> None:
    block = Block(round=0, samples=10, wall_ns=10 * MS, **told)  # type: ignore[arg-type]
    assert disturbed(block, 1, 2) == words


@pytest.fixture
def spinning() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes on one CPU that never sleep, both suspended."""
    cpu = min(os.sched_getaffinity(0))
    program = "print('up', flush=True)\nwhile True: pass"
    pair = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
    for child in pair:
        assert child.stdout is not None
        child.stdout.readline()
        os.sched_setaffinity(child.pid, [cpu])
        _suspend(child.pid)
    yield pair
    for child in pair:
        child.kill()
        child.communicate()


def _suspend(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


def test_a_competitor_on_our_cpu_disturbs(spinning: list[subprocess.Popen[bytes]]) -> None:
    ours, competitor = (child.pid for child in spinning)
    os.kill(competitor, signal.SIGCONT)
    before, start = take([ours]), time.perf_counter_ns()
    os.kill(ours, signal.SIGCONT)
    time.sleep(0.3)
    _suspend(ours)
    block = Block(round=0, samples=1, wall_ns=time.perf_counter_ns() - start, **between(before, take([ours])))
    assert block.wait_ns > 0.2 * block.wall_ns, "half is the competitor's share"
    assert block.switches > 0
    # With steal too, the competitor may not be the first thing to be named.
    assert disturbed(block, 1, os.cpu_count() or 1)


def test_own_time_is_not_that_of_others(spinning: list[subprocess.Popen[bytes]]) -> None:
    ours = spinning[0].pid
    before = take([ours])
    os.kill(ours, signal.SIGCONT)
    time.sleep(0.3)
    _suspend(ours)
    after = take([ours])
    assert after.cpu_ns - before.cpu_ns > 50 * MS
    machine = after.busy_ns - before.busy_ns
    assert between(before, after)["other_ns"] == max(0, machine - (after.cpu_ns - before.cpu_ns))
