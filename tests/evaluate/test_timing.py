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
from scipy.stats import binom

from graphnet.evaluate import timing
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
        return Clock(now=lambda: self.now, cpu=lambda: self.now // 2, wait=lambda: self.now // 100)


def measure(costs: Iterator[int], budget_s: float = 10.0) -> tuple[timing.Measured, FakeTime]:
    fake = FakeTime(costs)
    return timing.measure(fake.run, budget_s, 128, fake.clock()), fake


def test_steady_program() -> None:
    measured, fake = measure(repeat(10 * MS))
    result = measured.timing
    assert result.warmup_ns == (10 * MS,) * 5, "five agree at once"
    assert result.samples_ns == (10 * MS,) * 100
    assert result.cpu_ns == (5 * MS,) * 100
    assert result.steady
    assert not result.budget_ended
    assert result.wait_ns == 100 * 10 * MS // 100
    assert result.buffer_seed == 128
    assert fake.runs == 105
    assert not measured.unstable
    assert measured.notes == ()


def test_warm_up_lasts_until_the_time_no_longer_falls() -> None:
    falling = [round(100 * MS * 0.7**i) + 10 * MS for i in range(30)]
    measured, _ = measure(iter([*falling, *repeat(10 * MS, 200)]))
    warmup = measured.timing.warmup_ns
    assert measured.timing.steady
    assert 10 < len(warmup) < 30
    assert statistics.median(warmup[-5:]) < 1.1 * 10 * MS
    assert max(measured.timing.samples_ns) < 1.1 * 10 * MS


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
    measured, _ = measure(iter([*falling, *repeat(MS, 2000)]), budget_s=1000)
    assert len(measured.timing.warmup_ns) == timing.WARMUP_MAX_RUNS
    assert not measured.timing.steady


def test_slow_program_is_warmed_up_three_times_and_timed_five_times() -> None:
    measured, fake = measure(repeat(60_000 * MS), budget_s=10)
    assert len(measured.timing.warmup_ns) == 3
    assert not measured.timing.steady
    assert len(measured.timing.samples_ns) == 5
    assert measured.timing.budget_ended
    assert fake.runs == 8


def test_budget_ends_the_block() -> None:
    measured, _ = measure(repeat(500 * MS), budget_s=10)
    assert len(measured.timing.samples_ns) == 20
    assert measured.timing.budget_ended


def test_short_runs_are_timed_several_to_a_sample_and_for_long_enough() -> None:
    measured, _ = measure(repeat(100))
    result = measured.timing
    assert result.inner_loops == 200
    assert set(result.samples_ns) == {100}
    assert len(result.samples_ns) == timing.MAX_RUNS
    one_ms, _ = measure(repeat(MS))
    assert one_ms.timing.inner_loops == 1
    assert len(one_ms.timing.samples_ns) == 200


def test_a_program_that_takes_no_time_does_not_hang_the_clock() -> None:
    assert timing.inner_loops(0) == timing.MAX_INNER_LOOPS


def test_unstable_block_is_prolonged_once_and_may_recover() -> None:
    jitter = [(10 + 10 * (i % 2)) * MS for i in range(105)]
    measured, _ = measure(iter([*jitter, *repeat(10 * MS, 200)]))
    assert len(measured.timing.samples_ns) == 300
    assert not measured.unstable
    assert measured.notes[0].startswith("the first 100 runs were unstable")


def test_unstable_block_stays_unstable() -> None:
    measured, _ = measure((10 + 10 * (i % 2)) * MS for i in range(1000))
    assert len(measured.timing.samples_ns) == 300
    assert measured.unstable
    # half of the samples are 10, half 20: the interval of the median is [10, 20], the median 10, 15 or 20
    assert measured.spread == pytest.approx(5 / statistics.median(measured.timing.samples_ns) * MS)


@pytest.mark.parametrize("count", [6, 10, 17, 50, 100, 199])
def test_interval_of_the_median_has_the_stated_coverage(count: int) -> None:
    rank = timing._interval_rank(count)
    assert 1 - 2 * binom.cdf(rank - 1, count, 0.5) >= 0.95
    assert 1 - 2 * binom.cdf(rank, count, 0.5) < 0.95


def test_interval_of_many_samples() -> None:
    assert abs(timing._interval_rank(1000) - binom.ppf(0.025, 1000, 0.5)) <= 1


def test_median_spread_by_hand() -> None:
    assert timing.median_spread([10] * 50) == 0
    assert timing.median_spread([8, 10, 12]) == pytest.approx(0.2)
    assert timing.median_spread([0, 0, 0]) == 0


def test_garbage_collector_is_off_only_while_timing() -> None:
    seen = set()
    fake = FakeTime(repeat(MS))

    def run() -> None:
        fake.run()
        seen.add(gc.isenabled())

    timing.measure(run, 1.0, clock=fake.clock())
    assert seen == {False}
    assert gc.isenabled()


def test_patched_clock_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    measured = timing.measure(lambda: time.sleep(0.001), 0.05)
    assert min(measured.timing.samples_ns) >= MS


def test_real_sleep_is_timed_within_reason() -> None:
    measured = timing.measure(lambda: time.sleep(0.002), 0.1)
    assert 2 * MS <= min(measured.timing.samples_ns) < 20 * MS
    assert statistics.median(measured.timing.cpu_ns) < MS, "a sleep costs no CPU time"


def test_noise_loop_and_variation() -> None:
    times = timing.noise_loop(Clock())
    assert len(times) == 10
    assert min(times) > 50_000
    assert timing.variation([1, 3]) == pytest.approx(0.5)


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
