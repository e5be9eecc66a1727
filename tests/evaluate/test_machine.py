"""What is remembered of this machine: floors, which of several, and where."""

from __future__ import annotations

from pathlib import Path

import msgspec

from graphnet.evaluate import environment, machine
from graphnet.evaluate.records import Environment, Floor
from graphnet.evaluate.store import Store

OLD = Floor(
    threads=1, pairs=9, spread=0.01, sequential=0.02, median=0.003, p95=0.01, sequential_p95=0.05, covered=0.9,
    measured="2026-01-01",
)  # fmt: skip
NEW = msgspec.structs.replace(OLD, spread=0.02, measured="2026-02-02")
TWO = msgspec.structs.replace(OLD, threads=2)
MACHINE = Environment(key="k", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3")


def test_the_newest_floor_of_each_thread_count_is_kept() -> None:
    assert environment.merged_floors((OLD,), (NEW, TWO)) == (NEW, TWO)
    assert environment.merged_floors((NEW,), (TWO, OLD)) == (NEW, TWO)
    assert environment.merged_floors((), (OLD,)) == (OLD,)


def test_a_store_keeps_the_newest_floor(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for floors in ((), (OLD,), (NEW,), (OLD, TWO), ()):
            store.add_environment(msgspec.structs.replace(MACHINE, floors=floors))
        assert store.environments() == [msgspec.structs.replace(MACHINE, floors=(NEW, TWO))]


def test_a_floor_is_remembered_until_the_next(own_cache: Path) -> None:
    assert machine.known_here().floors == ()
    for floor in (OLD, TWO, NEW):
        machine.remember_floor(floor)
    assert machine.known_here().floors == (NEW, TWO)
    key = environment.detect().key
    assert sorted(file.name for file in (own_cache / "floors").iterdir()) == [f"{key}-cpu-1.json", f"{key}-cpu-2.json"]
    (own_cache / "floors" / f"{key}-cpu-2.json").write_text('{"threads": ')
    assert machine.known_here().floors == (NEW,), "a damaged file is as good as none"


def test_what_was_measured_since_counts_for_this_machine_alone(own_cache: Path) -> None:
    machine.remember_floor(NEW)
    here = msgspec.structs.replace(environment.detect(), floors=(OLD,))
    assert machine.with_known_here([here, MACHINE]) == [msgspec.structs.replace(here, floors=(NEW,)), MACHINE]
