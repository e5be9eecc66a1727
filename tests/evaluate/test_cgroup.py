from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet.evaluate import cgroup

V2_THROTTLED = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 7\nnr_throttled 2\nthrottled_usec {}\n"
V1_THROTTLED = "nr_periods 7\nnr_throttled 2\nthrottled_time {}\n"


class Machine:
    """A `/proc` and `/sys` of files in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def groups(self, text: str) -> None:
        self.write("proc/self/cgroup", text)

    def unified(self, path: str, quota: str = "", throttled_usec: int = 0) -> None:
        if quota:  # the root group has none
            self.write(f"sys/fs/cgroup/{path}/cpu.max", f"{quota}\n")
        self.write(f"sys/fs/cgroup/{path}/cpu.stat", V2_THROTTLED.format(throttled_usec))

    def legacy(self, path: str, quota: int, throttled_ns: int = 0, mount: str = "cpu") -> None:
        self.write(f"sys/fs/cgroup/{mount}/{path}/cpu.cfs_quota_us", f"{quota}\n")
        self.write(f"sys/fs/cgroup/{mount}/{path}/cpu.cfs_period_us", "100000\n")
        self.write(f"sys/fs/cgroup/{mount}/{path}/cpu.stat", V1_THROTTLED.format(throttled_ns))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(cgroup, "PROC", tmp_path / "proc")
    monkeypatch.setattr(cgroup, "SYS", tmp_path / "sys")
    yield Machine(tmp_path)
    cgroup.cpu_folders.cache_clear()


def test_without_cgroups_there_is_no_quota(machine: Machine) -> None:
    assert cgroup.cpu_quota() is None
    assert cgroup.throttled_ns() == 0


def test_the_tightest_group_of_those_above_counts(machine: Machine) -> None:
    machine.groups("0::/user.slice/job/step\n")
    machine.unified("")
    machine.unified("user.slice", "250000 100000", 3)
    machine.unified("user.slice/job", "max 100000")
    machine.unified("user.slice/job/step", "400000 100000", 40)
    machine.unified("user.slice/other", "1000 100000", 10**6)
    assert cgroup.cpu_quota() == 2.5
    assert cgroup.throttled_ns() == 43_000


def test_version_1_with_the_controllers_under_two_names(machine: Machine) -> None:
    machine.groups("4:memory:/elsewhere\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n")
    machine.legacy("", -1, mount="cpu,cpuacct")
    machine.legacy("docker", 150_000, 7, mount="cpu,cpuacct")
    machine.legacy("docker/abc", 300_000, 70, mount="cpu,cpuacct")
    (machine.root / "sys/fs/cgroup/cpu").symlink_to("cpu,cpuacct")
    assert cgroup.cpu_quota() == 1.5
    assert cgroup.throttled_ns() == 77, "the second name is the same group"


def test_a_container_that_sees_the_path_of_the_host(machine: Machine) -> None:
    machine.groups("3:cpu,cpuacct:/docker/abc\n")
    machine.legacy("", 50_000, 9)
    assert cgroup.cpu_quota() == 0.5
    assert cgroup.throttled_ns() == 9


def test_a_process_outside_of_its_cgroup_namespace(machine: Machine) -> None:
    machine.groups("0::/../../other\n")
    machine.unified("", "200000 100000")
    assert cgroup.cpu_quota() == 2


def test_both_versions_side_by_side(machine: Machine) -> None:
    machine.groups("2:cpu:/a\n0::/a\n")
    machine.legacy("a", 100_000)
    machine.write("sys/fs/cgroup/unified/a/cpu.stat", "usage_usec 3\n")
    assert cgroup.cpu_quota() == 1
