from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from graphnet.errors import UsageError
from graphnet.evaluate import affinity, cgroup

FLAT = {0: "0", 1: "1", 2: "2", 3: "3"}
HYPERTHREADED = {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"}
"""Four cores of two hardware threads, as Intel numbers them."""
PAIRED = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


class Machine:
    """A machine of files, on which we may use some CPUs."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root, self._patch = root, patch
        patch.setattr(affinity, "SYS", root)
        patch.setattr(cgroup, "cpu_quota", lambda: None)

    def build(self, siblings: Mapping[int, str], nodes: Sequence[str] = (), mask: Sequence[int] = ()) -> None:
        for cpu, listed in siblings.items():
            self._write(f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", listed)
        for index, listed in enumerate(nodes):
            self._write(f"devices/system/node/node{index}/cpulist", listed)
        self._patch.setattr(os, "sched_getaffinity", lambda _: set(mask or siblings))

    def _write(self, path: str, text: str) -> None:
        (self._root / path).parent.mkdir(parents=True, exist_ok=True)
        (self._root / path).write_text(text + "\n")


@pytest.mark.parametrize(
    ("siblings", "mask", "threads", "cpus"),
    [
        (FLAT, (), 1, (1,)),
        (FLAT, (), 3, (1, 2, 3)),
        (FLAT, (), 4, (1, 2, 3, 0)),
        (FLAT, (0,), 1, (0,)),
        (HYPERTHREADED, (), 3, (1, 2, 3)),
        (HYPERTHREADED, (), 4, (1, 2, 3, 0)),
        (HYPERTHREADED, (), 6, (1, 2, 3, 0, 5, 6)),
        (HYPERTHREADED, (2, 5, 6), 2, (2, 5)),
        (HYPERTHREADED, (2, 5, 6), 3, (2, 5, 6)),
        (PAIRED, (), 1, (2,)),
        (PAIRED, (), 2, (2, 0)),
        (PAIRED, (), 3, (2, 0, 3)),
    ],
)
def test_distinct_cores_first_and_that_of_cpu_0_last(
    machine: Machine, siblings: dict[int, str], mask: tuple[int, ...], threads: int, cpus: tuple[int, ...]
) -> None:
    machine.build(siblings, mask=mask)
    assert affinity.cpus_for(threads) == cpus


def test_one_node_where_it_has_cores_enough(machine: Machine) -> None:
    machine.build(HYPERTHREADED, nodes=("0-1,4-5", "2-3,6-7"))
    assert affinity.cpus_for(1) == (2,)
    assert affinity.cpus_for(2) == (2, 3), "the node without CPU 0"
    assert affinity.cpus_for(3) == (1, 2, 3), "cores of their own rather than one node"
    assert affinity.cpus_for(8) == (1, 2, 3, 0, 5, 6, 7, 4)


def test_nodes_that_the_mask_cuts(machine: Machine) -> None:
    machine.build(FLAT, nodes=("0-1", "2-3"), mask=(0, 1, 3))
    assert affinity.cpus_for(2) == (1, 0)


def test_a_machine_that_tells_nothing_of_its_cores(machine: Machine) -> None:
    machine.build({}, mask=(3, 5))
    assert affinity.cpus_for(2) == (3, 5)


def test_more_threads_than_cpus_are_refused(machine: Machine) -> None:
    machine.build(FLAT, mask=(1, 2))
    with pytest.raises(UsageError, match=r"3 thread\(s\) asked for; this process may use 2 CPU\(s\).*1 to 2"):
        affinity.cpus_for(3)
    with pytest.raises(UsageError, match=r"0 thread\(s\) asked for"):
        affinity.cpus_for(0)


@pytest.mark.parametrize(("quota", "usable"), [(2.5, 2), (1.0, 1), (0.5, 1), (16.0, 4)])
def test_a_quota_counts_whole_cpus(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, quota: float, usable: int
) -> None:
    machine.build(FLAT)
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: quota)
    assert affinity.usable_cpus() == usable
    assert len(affinity.cpus_for(usable)) == usable
    with pytest.raises(
        UsageError, match=f"the quota of the cgroup grants the time of {quota:g}: ask for 1 to {usable}"
    ):
        affinity.cpus_for(usable + 1)


def test_pinning_reaches_all_threads_of_a_process() -> None:
    (cpu, *_) = affinity.cpus_for(1)
    program = "import threading; threading.Thread(target=input).start(); print('up', flush=True)"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        affinity.pin(child.pid, [cpu])
        threads = os.listdir(f"/proc/{child.pid}/task")
        assert [os.sched_getaffinity(int(thread)) for thread in threads] == [{cpu}, {cpu}]
        child.communicate(b"\n")
    affinity.pin(child.pid, [cpu])  # it has ended: nothing to do


def test_pinning_to_a_cpu_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot be kept on CPU 1023"):
        affinity.pin(0, [1023])
