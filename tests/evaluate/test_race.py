"""Programs that take turns: order, pairs, suspension, failures among them, too little memory for all at once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from graphnet.evaluate import procfs
from graphnet.evaluate.plan import Job, Limits
from graphnet.evaluate.records import Result, Timing
from graphnet.evaluate.runner import run

MakeJob = Callable[..., Job]


class Turn(NamedTuple):
    name: str
    pid: str
    place: int
    running: str
    """Processes of other programs that were not suspended."""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Turn]]:
    """Reads what the compilers of `racing.py` left."""
    file = tmp_path / "racing.log"
    monkeypatch.setenv("RACING_LOG", str(file))

    def read() -> list[Turn]:
        parts = [line.split() for line in file.read_text().splitlines()]
        return [Turn(name, pid, int(place), running) for name, pid, place, running in parts]

    return read


@pytest.fixture
def race(make_job: MakeJob, limits: Limits, log: object) -> Callable[..., list[Result]]:
    """Jobs on compilers of `racing.py` in one race."""

    def race_of(*names: str) -> list[Result]:
        jobs = [make_job("g", compiler=f"racing:{name}") for name in names]
        return list(run([msgspec.structs.replace(job, race="r", budget_s=0.2) for job in jobs], limits=limits))

    return race_of


def timing_of(result: Result) -> Timing:
    assert result.timing is not None
    return result.timing


def test_programs_take_turns_in_random_order(race: Callable[..., list[Result]], log: Callable[[], list[Turn]]) -> None:
    results = race("First", "Second")
    assert {result.verdict for result in results} <= {"ok", "unstable"}
    one, other = map(timing_of, results)
    assert one.race == other.race != ""
    assert {block.round for block in one.blocks} >= set(range(50))
    assert {block.round for block in other.blocks} >= set(range(50))
    names = [turn.name for turn in log()][2:-2]  # without the first runs and the checks
    assert max(len(list(group)) for _, group in groupby(names)) < len(names) / 2, "not one after the other"
    firsts = {tuple(names[place : place + 2]) for place in range(0, 100, 2)}
    assert len(firsts) > 1, "the order within rounds varies"


def test_blocks_cut_the_samples(race: Callable[..., list[Result]]) -> None:
    (result,) = race("First")
    timing = timing_of(result)
    counted = [block.samples for block in timing.blocks if not block.disturbed]
    assert sum(counted) == len(timing.samples_ns) == len(timing.cpu_ns)
    assert sum(block.samples for block in timing.blocks) - sum(counted) == len(timing.disturbed_ns)
    assert all(block.wall_ns > 0 for block in timing.blocks)


def test_inputs_are_placed_anew_for_each_block(
    race: Callable[..., list[Result]], log: Callable[[], list[Turn]]
) -> None:
    (result,) = race("First")
    assert len({block.buffer_seed for block in timing_of(result).blocks}) == len(timing_of(result).blocks)
    assert len({turn.place for turn in log()}) > 5


def test_those_who_wait_are_suspended_with_all_their_threads(
    race: Callable[..., list[Result]], log: Callable[[], list[Turn]]
) -> None:
    race("Spinning", "First", "Second")
    turns = log()
    assert {turn.running for turn in turns} == {"-"}
    assert len({turn.pid for turn in turns}) == 3


def test_a_program_that_dies_in_a_turn_leaves_the_others_alone(race: Callable[..., list[Result]]) -> None:
    first, dead, second = race("First", "DiesInItsThirdTurn", "Second")
    assert (dead.verdict, dead.stage) == ("crashed", "run")
    assert "SIGABRT" in dead.message
    for result in (first, second):
        assert result.verdict in ("ok", "unstable")
        assert {block.round for block in timing_of(result).blocks} >= set(range(50))


def test_one_large_program_fits_beside_small_ones(
    race: Callable[..., list[Result]], log: Callable[[], list[Turn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "memory_limit_bytes", lambda: 900 << 20)
    first, large, second = race("First", "Large", "Second")
    assert {result.verdict for result in (first, large, second)} <= {"ok", "unstable"}
    assert timing_of(first).race == timing_of(large).race == timing_of(second).race
    assert first.more_timings == ()


def test_a_copy_of_a_job_is_another_one_in_another_process(
    make_job: MakeJob, limits: Limits, log: Callable[[], list[Turn]]
) -> None:
    job = msgspec.structs.replace(make_job("g", compiler="racing:First"), race="r", budget_s=0.2)
    one, other = run([job, msgspec.structs.replace(job, copy=1)], limits=limits)
    assert one.job_key != other.job_key
    assert timing_of(one).race == timing_of(other).race
    assert len(Counter(turn.pid for turn in log())) == 2


def test_copies_that_do_not_fit_together(
    make_job: MakeJob, limits: Limits, log: Callable[[], list[Turn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "memory_limit_bytes", lambda: 900 << 20)
    job = msgspec.structs.replace(make_job("g", compiler="racing:Large"), race="r", budget_s=0.2)
    copies = [msgspec.structs.replace(job, copy=number) for number in range(3)]
    first, second, third = run(copies, limits=limits)
    assert {result.verdict for result in (first, second, third)} <= {"ok", "unstable"}
    assert timing_of(second).race == timing_of(first).race
    assert [timing.race for timing in first.more_timings] == [timing_of(third).race]
    assert timing_of(third).race != timing_of(first).race


def test_a_job_that_fits_with_nobody_is_timed_alone(
    make_job: MakeJob, limits: Limits, log: Callable[[], list[Turn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procfs, "memory_limit_bytes", lambda: 560 << 20)
    job = msgspec.structs.replace(make_job("g", compiler="racing:Large"), race="r", budget_s=0.2)
    first, second = run([job, msgspec.structs.replace(job, copy=1)], limits=limits)
    assert {first.verdict, second.verdict} <= {"ok", "unstable"}
    assert timing_of(first).race != timing_of(second).race
    assert first.more_timings == ()


def test_a_compiler_of_another_environment(make_job: MakeJob, limits: Limits) -> None:
    job = msgspec.structs.replace(make_job("g", compiler="null"), race="r", target=Job(graph="", compiler="").target)
    ours, theirs = run([job, msgspec.structs.replace(job, python=sys.executable)], limits=limits)
    assert ours.job_key != theirs.job_key
    assert (theirs.verdict, theirs.stage) == (ours.verdict, ours.stage) == ("wrong", "check")
    assert timing_of(ours).race == timing_of(theirs).race


def test_an_interpreter_that_is_not_there(make_job: MakeJob, limits: Limits) -> None:
    (result,) = run([msgspec.structs.replace(make_job("g"), python="/nowhere/python")], limits=limits)
    assert (result.verdict, result.stage) == ("error", "load")
    assert "/nowhere/python" in result.message
