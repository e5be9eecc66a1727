from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from graphnet.evaluate import procfs


def test_resident_memory_agrees_with_the_status_file() -> None:
    ours = procfs.resident_bytes(os.getpid())
    status = Path("/proc/self/status").read_text().splitlines()
    (resident,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
    assert abs(ours - resident) < 8 << 20
    assert procfs.resident_bytes(2**22 + 1) == 0


def test_peak_is_of_the_time_since_its_reset() -> None:
    block = bytearray(b"x") * (256 << 20)
    high = procfs.peak_bytes()
    del block
    assert procfs.reset_peak()
    low = procfs.peak_bytes()
    assert high - low > 200 << 20
    block = bytearray(b"x") * (64 << 20)
    assert 60 << 20 < procfs.peak_bytes() - low < 100 << 20
    del block


def test_reading_resident_memory_is_cheap() -> None:
    begin = time.perf_counter()
    for _ in range(100):
        procfs.resident_bytes(os.getpid())
    assert (time.perf_counter() - begin) / 100 < 0.002


def test_run_queue_wait_grows_only() -> None:
    before = procfs.run_queue_wait_ns()
    assert 0 <= before <= procfs.run_queue_wait_ns()


def test_descendants_and_kill() -> None:
    nested = "import subprocess, time; subprocess.Popen(['sleep', '100']); print('up', flush=True); time.sleep(100)"
    with subprocess.Popen([sys.executable, "-c", nested], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = procfs.descendants(child.pid)
        assert len(found) == 1
        assert set(procfs.descendants(os.getpid())) >= {child.pid, *found}
        procfs.kill([child.pid, *found, 2**22 + 1])
        assert child.wait(10) == -9


def test_marked_processes_are_found_after_exec() -> None:
    environment = {**os.environ, "GRAPHNET_TEST_MARK": "7"}
    with subprocess.Popen(["sleep", "100"], env=environment) as child:
        assert procfs.marked("GRAPHNET_TEST_MARK=7") == [child.pid]
        assert procfs.marked("GRAPHNET_TEST_MARK=77") == []
        child.kill()


def test_memory_limit_is_at_most_the_machine() -> None:
    assert 0 < procfs.memory_limit_bytes() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_oom_kills_is_a_count() -> None:
    assert procfs.oom_kills() >= 0
