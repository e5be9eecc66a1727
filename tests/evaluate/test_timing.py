from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.evaluate import timing
from graphnet.evaluate.protocol import Samples, Turn
from graphnet.evaluate.timing import Clock

MS = 1_000_000


class FakeTime:
    """A clock that only moves when the measured program runs; each run takes the next of `costs`."""

    def __init__(self, costs: Iterator[int]) -> None:
        self.now = 0
        self.runs = 0
        self._costs = costs

    def run(self) -> None:
        self.now += next(self._costs)
        self.runs += 1

    def clock(self) -> Clock:
        return Clock(now=lambda: self.now, cpu=lambda: self.now // 2)


def warm_up(costs: Iterator[int], budget_s: float = 10.0) -> tuple[list[int], bool]:
    fake = FakeTime(costs)
    return timing.warm_up(fake.run, round(budget_s * 1e9), fake.clock())


def take(costs: Iterator[int], turn: Turn, inner: int = 1) -> tuple[Samples, FakeTime]:
    fake = FakeTime(costs)
    return timing.take_turn(fake.run, turn, inner, fake.clock()), fake


def test_steady_program() -> None:
    assert warm_up(repeat(10 * MS)) == ([10 * MS] * 5, True), "five agree at once"


def test_warm_up_lasts_until_the_time_no_longer_falls() -> None:
    falling = [round(100 * MS * 0.7**i) + 10 * MS for i in range(30)]
    times, steady = warm_up(iter([*falling, *repeat(10 * MS, 200)]))
    assert steady
    assert 10 < len(times) < 30
    assert statistics.median(times[-5:]) < 1.1 * 10 * MS


def test_noise_without_slope_does_not_prolong_the_warm_up() -> None:
    assert timing.is_steady([100, 130, 100, 130, 100])
    assert timing.is_steady([100, 100, 100, 100, 900])
    assert not timing.is_steady([140, 130, 120, 110, 100])
    assert not timing.is_steady([100, 100, 100, 100])


def test_slope_test_by_hand() -> None:
    # slopes between all pairs of 104, 103, 102, 101, 100 are -1: a drift of 4 over the window, 3.9 % of the median 102
    assert timing.is_steady([104, 103, 102, 101, 100])
    # here the drift is 8 of 104: 7.7 %
    assert not timing.is_steady([108, 106, 104, 102, 100])


def test_warm_up_gives_up_and_says_so() -> None:
    falling = [round(1000 * MS * 0.98**i) for i in range(100)]
    times, steady = warm_up(iter([*falling, *repeat(MS, 2000)]), budget_s=1000)
    assert len(times) == timing.WARMUP_MAX_RUNS
    assert not steady


def test_slow_program_is_warmed_up_three_times() -> None:
    assert warm_up(repeat(60_000 * MS), budget_s=10) == ([60_000 * MS] * 3, False)


def test_a_turn_has_the_runs_that_were_asked_for() -> None:
    samples, fake = take(repeat(10 * MS), Turn(runs=5, least_ns=10 * MS, most_ns=500 * MS))
    assert samples == Samples(wall_ns=(10 * MS,) * 5, cpu_ns=(5 * MS,) * 5)
    assert fake.runs == 5


def test_a_turn_runs_untimed_first_where_told() -> None:
    samples, fake = take(iter([40 * MS, *repeat(10 * MS, 50)]), Turn(runs=5, most_ns=500 * MS, rewarm_ns=MS))
    assert samples.wall_ns == (10 * MS,) * 5
    assert fake.runs == 6


def test_a_turn_of_short_runs_is_long_enough() -> None:
    turn = Turn(runs=5, least_ns=10 * MS, most_ns=500 * MS)
    assert len(take(repeat(MS), turn)[0].wall_ns) == 10
    assert len(take(repeat(MS // 50), turn)[0].wall_ns) == 5 * timing.MOST_FOLD


def test_a_turn_ends_in_time_with_one_sample_at_least() -> None:
    assert len(take(repeat(100 * MS), Turn(runs=5, least_ns=10 * MS, most_ns=250 * MS))[0].wall_ns) == 3
    assert len(take(repeat(10_000 * MS), Turn(runs=5, least_ns=10 * MS, most_ns=250 * MS))[0].wall_ns) == 1


def test_short_runs_are_timed_several_to_a_sample() -> None:
    assert timing.inner_loops(100) == 200
    samples, fake = take(repeat(100), Turn(runs=2, most_ns=MS), inner=200)
    assert samples.wall_ns == (100, 100)
    assert fake.runs == 400


def test_a_program_that_takes_no_time_does_not_hang_the_clock() -> None:
    assert timing.inner_loops(0) == timing.MAX_INNER_LOOPS


def test_garbage_collector_is_off_only_while_timing() -> None:
    with timing.no_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_patched_clock_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    samples = timing.take_turn(lambda: time.sleep(0.001), Turn(runs=3, most_ns=1000 * MS), 1, Clock())
    assert min(samples.wall_ns) >= MS


def test_real_sleep_is_timed_within_reason() -> None:
    samples = timing.take_turn(lambda: time.sleep(0.002), Turn(runs=20, most_ns=1000 * MS), 1, Clock())
    assert 2 * MS <= min(samples.wall_ns) < 20 * MS
    assert statistics.median(samples.cpu_ns) < MS, "a sleep costs no CPU time"


def test_noise_loop() -> None:
    times = timing.noise_loop(Clock())
    assert len(times) == 10
    assert min(times) > 50_000


@given(
    st.integers(0, 63).map(lambda i: 64 * i),
    st.sampled_from(["float32", "int8", "bool", "complex128"]),
    st.lists(st.integers(0, 5), max_size=3),
)
def test_aligned_copy(offset: int, dtype: str, shape: list[int]) -> None:
    array = np.ones(shape, dtype)
    copy = timing.aligned_copy(array, offset)
    assert copy.dtype == array.dtype
    assert np.array_equal(copy, array)
    assert copy.flags.c_contiguous
    assert copy.flags.writeable
    if array.nbytes:
        assert copy.ctypes.data % 4096 == offset
        assert not np.shares_memory(array, copy)


def test_aligned_copy_of_strided_and_of_string_arrays() -> None:
    strided = np.arange(24).reshape(4, 6)[:, ::2].T
    assert np.array_equal(timing.aligned_copy(strided, 64), strided)
    text = np.array(["a", "bc"], object)
    assert timing.aligned_copy(text).tolist() == ["a", "bc"]


def test_buffers_of_one_seed_are_at_different_places_of_their_pages() -> None:
    arrays = {f"tensor{index}": np.ones(8, np.float32) for index in range(200)}
    copies = timing.aligned_copies(arrays, 7)
    offsets = {name: copy.ctypes.data % 4096 for name, copy in copies.items()}
    assert offsets == {name: timing.buffer_offset(7, name) for name in arrays}, "the record tells them"
    assert all(offset % 64 == 0 for offset in offsets.values())
    assert len(set(offsets.values())) > 20


def test_any_two_buffers_are_together_by_chance_only() -> None:
    together = sum(timing.buffer_offset(seed, "a") == timing.buffer_offset(seed, "b") for seed in range(1000))
    assert together < 50, "1 in 64 is expected"
    assert len({timing.random_seed() for _ in range(20)}) > 10


def test_clock_reads_are_far_below_the_resolution_floor() -> None:
    read: Callable[[], int] = Clock().now
    costs = []
    for _ in range(1000):
        start = read()
        costs.append(read() - start)
    assert statistics.median(costs) * 20 < timing.SHORTEST_SAMPLE_NS
