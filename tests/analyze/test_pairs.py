"""Ratios of results that took turns, or did not, against hand calculations, scipy, and simulated coverage."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy import stats

from graphnet.analyze import pairs
from graphnet.analyze.pairs import Ratio, block_medians, location_interval, speedup, time_ratio
from graphnet.compilers import Target
from graphnet.evaluate.records import Block, Environment, Floor, Result, Timing
from tests.analyze.raced import result, timing

FLOOR = Floor(threads=1, pairs=9, spread=0.01, sequential=0.05, median=0, p95=0, sequential_p95=0, covered=1)
MACHINE = Environment(key="m", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", floors=(FLOOR,))
DRIFT = [100.0, 150.0, 80.0, 200.0, 90.0, 120.0, 300.0, 110.0]


def found(base: Result, other: Result, floor: Floor | None = None) -> tuple[Ratio, float, float]:
    ratio = time_ratio(base, other, floor)
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    return ratio, ratio.low, ratio.high


def test_blocks_cut_the_samples_that_count() -> None:
    blocks = (
        Block(round=0, samples=2), Block(round=1, samples=5, disturbed="steal"), Block(round=1, samples=3),
        Block(round=3, samples=1), Block(round=3, samples=1), Block(round=4, samples=2),
    )  # fmt: skip
    samples = (1, 3, 10, 20, 90, 7, 8)
    medians = block_medians(Timing(samples_ns=samples, blocks=blocks, disturbed_ns=(9,) * 5))
    assert medians == pytest.approx({0: 2e-9, 1: 20e-9, 3: 8e-9}), (
        "the last of a round; a block without samples is none"
    )


def test_turns_cancel_what_both_share() -> None:
    ratio, low, high = found(result(DRIFT), result([1.25 * us for us in DRIFT]))
    assert (ratio.value, low, high) == pytest.approx((1.25, 1.25, 1.25))
    assert (ratio.rounds, ratio.resolved) == (8, True)
    apart, low, high = found(result(DRIFT), result([1.25 * us for us in DRIFT], race="y"))
    assert apart.rounds == 0
    assert low < 1 < high, "one after the other, the same figures tell nothing"
    assert not apart.resolved


def test_only_common_rounds_are_pairs() -> None:
    ratio, *_ = found(result({0: 100, 2: 100, 5: 100, 7: 10}), result({0: 300, 1: 1, 2: 200, 5: 200, 6: 1}))
    assert ratio.rounds == 3
    assert ratio.value == pytest.approx(2.0), "median of 3, 2, 2"


def test_a_race_may_be_among_more_timings() -> None:
    base = result([100.0] * 6, race="one", more_timings=(timing([50.0] * 6, race="two"),))
    ratio, low, high = found(base, result([200.0] * 6, race="two"))
    assert (ratio.value, low, high, ratio.rounds) == pytest.approx((4.0, 4.0, 4.0, 6))
    assert found(base, result([200.0] * 6, race="three"))[0].value == pytest.approx(2.0), "the first timing, unpaired"


def test_few_rounds_have_the_interval_of_student() -> None:
    factors = [1.1, 1.2, 1.4]
    ratio, low, high = found(result([100.0] * 3), result([100 * factor for factor in factors]))
    expected = stats.t.interval(0.95, 2, np.mean(np.log(factors)), stats.sem(np.log(factors)))
    assert ratio.value == pytest.approx(1.2)
    assert (math.log(low), math.log(high)) == pytest.approx(expected, abs=1e-9)
    one = time_ratio(result([100.0]), result([200.0]))
    assert one == Ratio(pytest.approx(2.0), None, None, 1)  # type: ignore[arg-type]
    assert not one.resolved


@pytest.mark.parametrize("values", [(), (0.0, 0.0)])
def test_nothing_that_took_time_is_no_ratio(values: tuple[float, ...]) -> None:
    empty = result([], timing=Timing(samples_ns=tuple(map(int, values))))
    assert time_ratio(empty, result([100.0])) is None
    assert time_ratio(result([100.0]), empty) is None
    assert time_ratio(result([100.0], timing=None), result([100.0])) is None


def test_samples_without_blocks_are_compared_as_they_are() -> None:
    base, other = (result([], timing=Timing(samples_ns=(ns,) * 5)) for ns in (4000, 3000))
    ratio, low, high = found(base, other)
    assert (ratio.value, low, high, ratio.rounds) == pytest.approx((0.75, 0.75, 0.75, 0))
    single = result([], timing=Timing(samples_ns=(2000,)))
    assert time_ratio(base, single) == Ratio(pytest.approx(0.5), None, None, 0)  # type: ignore[arg-type]


def test_blocks_not_samples_are_resampled() -> None:
    """Eight blocks whose samples hardly differ: as 24 independent samples they would look three times as sure."""
    generator = np.random.default_rng(3)
    base, other = generator.normal(100, 5, 8), generator.normal(100, 5, 8)
    _, low, high = found(result(list(base)), result(list(other), race="y"))
    error = math.hypot(*(1.25 * np.std(np.log(side), ddof=1) / math.sqrt(8) for side in (base, other)))
    assert math.log(high / low) / 2 > 1.96 * error
    assert found(result(list(base)), result(list(other), race="y"))[1:] == (low, high), "it repeats"


def test_the_floor_widens_in_quadrature() -> None:
    ratio, low, high = found(result(DRIFT), result(DRIFT), FLOOR)
    assert (ratio.value, math.log(low), math.log(high)) == pytest.approx((1.0, -0.0196, 0.0196))
    plain, down, up = found(result(DRIFT), result(DRIFT[::-1], race="y"))
    ratio, low, high = found(result(DRIFT), result(DRIFT[::-1], race="y"), FLOOR)
    assert ratio.value == plain.value
    assert math.log(high) == pytest.approx(math.hypot(math.log(up), 1.96 * 0.05))
    assert math.log(low) == pytest.approx(-math.hypot(math.log(down), 1.96 * 0.05))


def test_speedup_is_of_ok_results_over_the_floor_of_their_machine() -> None:
    base, other = result([102.0] * 8), result([100.0] * 8, compiler="tvm")
    ratio = speedup(base, other, [MACHINE])
    assert ratio is not None
    assert ratio.value == pytest.approx(1.02)
    assert ratio.resolved, "ln 1.02 is 0.0198, the floor 0.0196"
    wide = msgspec.structs.replace(MACHINE, floors=(msgspec.structs.replace(FLOOR, spread=0.011),))
    again = speedup(base, other, [wide])
    assert again is not None
    assert not again.resolved
    assert speedup(base, msgspec.structs.replace(other, verdict="wrong"), []) is None
    assert speedup(base, base, [MACHINE]) == Ratio(1.0, None, None, 0)


def test_a_floor_is_of_machine_device_and_threads() -> None:
    mine = result([1.0])
    assert pairs.floor_of(mine, [MACHINE]) == FLOOR
    for other in ({"environment": "n"}, {"target": Target(threads=2)}, {"target": Target(device="cuda")}):
        assert pairs.floor_of(msgspec.structs.replace(mine, **other), [MACHINE]) is None
    higher = msgspec.structs.replace(FLOOR, sequential=0.1)
    other_machine = msgspec.structs.replace(MACHINE, key="n", floors=(higher,))
    there = result([1.0], environment="n")
    assert pairs.wider_floor(mine, there, [MACHINE, other_machine]) == higher
    assert [item.floor for item in pairs.floors_of([mine, there, mine], [MACHINE])] == [FLOOR, None]


@pytest.mark.parametrize("noise", ["normal", "heavy", "contaminated", "bimodal"])
@pytest.mark.parametrize("rounds", [5, 8, 20])
def test_intervals_hold_the_truth(noise: str, rounds: int) -> None:
    """Of 300 intervals that hold it with 95 % each, at least 92 % do but for 1 time in 100."""
    generator = np.random.default_rng(rounds)
    shape = 300, rounds
    logs = 0.01 * (generator.standard_t(2, shape) if noise == "heavy" else generator.normal(size=shape))
    if noise == "contaminated":
        logs += (generator.random(shape) < 0.2) * generator.uniform(-0.4, 0.4, shape)
    if noise == "bimodal":
        logs += generator.choice([-0.3, 0, 0, 0.3], shape)
    ends = [location_interval(tuple(row)) for row in logs]
    assert sum(end is not None and end[0] <= 0 <= end[1] for end in ends) >= 0.92 * 300


def test_rounds_that_hang_together_count_for_less() -> None:
    """The same values, shuffled and in order."""
    values = np.linspace(-0.01, 0.01, 20)
    shuffled = location_interval(tuple(np.random.default_rng(0).permutation(values)))
    drifting = location_interval(tuple(values))
    assert shuffled is not None
    assert drifting is not None
    assert drifting[1] - drifting[0] > 1.2 * (shuffled[1] - shuffled[0])
