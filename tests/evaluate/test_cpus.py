from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate import cgroup, cpus
from graphnet.evaluate.plan import Job
from graphnet.evaluate.runner import run


@pytest.fixture(autouse=True)
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 6})
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: None)


@pytest.mark.parametrize(("quota", "usable"), [(2.5, 2), (1.0, 1), (0.5, 1), (16.0, 4)])
def test_a_quota_counts_whole_cpus(monkeypatch: pytest.MonkeyPatch, quota: float, usable: int) -> None:
    monkeypatch.setattr(cgroup, "cpu_quota", lambda: quota)
    assert cpus.usable_cpus() == usable
    cpus.require_cpus(usable)
    with pytest.raises(
        UsageError, match=f"the quota of the cgroup grants the time of {quota:g}: ask for 1 to {usable}"
    ):
        cpus.require_cpus(usable + 1)


def test_more_threads_than_the_mask_has_cpus() -> None:
    cpus.require_cpus(4)
    with pytest.raises(UsageError, match=r"5 thread\(s\) asked for; this process may use 4 CPU\(s\) of .*1 to 4"):
        cpus.require_cpus(5)
    with pytest.raises(UsageError, match=r"0 thread\(s\) asked for"):
        cpus.require_cpus(0)


def test_a_run_of_too_many_threads_is_refused_before_anything_starts(make_job: Callable[..., Job]) -> None:
    job = make_job()
    with pytest.raises(UsageError, match=r"5 thread\(s\) asked for"):
        next(run([Job(graph=job.graph, compiler=job.compiler, target=Target(threads=5))]))
