from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from graphnet.evaluate import rounds

MS = 1_000_000
S = 1000 * MS


def test_a_hundred_runs_in_fifty_turns() -> None:
    share = rounds.share(9 * MS, 10 * S)
    assert (share.turns, share.turn.runs) == (50, 2)
    assert share.turn.rewarm_ns > 0
    assert all(share.takes_part(number) for number in range(100))


def test_a_budget_for_fifty_runs_has_a_turn_in_every_other_round() -> None:
    share = rounds.share(20 * MS, 1 * S)
    assert (share.turns, share.turn.runs) == (25, 2)
    assert [number for number in range(50) if share.takes_part(number)] == list(range(0, 50, 2))


def test_a_slow_program_has_five_runs_in_five_turns_and_none_untimed() -> None:
    share = rounds.share(60 * S, 10 * S)
    assert (share.turns, share.turn.runs, share.turn.rewarm_ns) == (5, 1, 0)
    assert [number for number in range(100) if share.takes_part(number)] == [0, 8, 16, 32, 48, 50, 58, 66, 82, 98]


@given(st.integers(0, 100 * S), st.integers(1, 100 * S))
def test_never_fewer_than_five_runs_and_within_the_budget_else(sample_ns: int, budget_ns: int) -> None:
    share = rounds.share(sample_ns, budget_ns)
    count = share.turns * share.turn.runs
    assert sum(share.takes_part(number) for number in range(rounds.ROUNDS)) == share.turns
    assert 5 <= count <= 100
    assert count == 5 or count * sample_ns <= budget_ns
    assert share.turn.most_ns * share.turns <= max(budget_ns, share.turns)


@given(st.integers(5, 50), st.integers(5, 50))
def test_all_turns_of_a_slower_program_are_in_rounds_of_a_faster_one(one: int, other: int) -> None:
    fewer, more = (
        {number for number in range(rounds.ROUNDS) if rounds.Share(turns, rounds.NO_TURN).takes_part(number)}
        for turns in sorted((one, other))
    )
    assert fewer <= more
    assert len(fewer) == min(one, other)


@pytest.mark.parametrize("count", [6, 10, 17, 50, 100, 199])
def test_interval_of_the_median_has_the_stated_coverage(count: int) -> None:
    rank = rounds._interval_rank(count)
    assert 1 - 2 * binom.cdf(rank - 1, count, 0.5) >= 0.95
    assert 1 - 2 * binom.cdf(rank, count, 0.5) < 0.95


def test_interval_of_many_samples() -> None:
    assert abs(rounds._interval_rank(1000) - binom.ppf(0.025, 1000, 0.5)) <= 1


def test_median_spread_by_hand() -> None:
    assert rounds.median_spread([10] * 50) == 0
    assert rounds.median_spread([8, 10, 12]) == pytest.approx(0.2)
    assert rounds.median_spread([0, 0, 0]) == 0


def test_variation_by_hand() -> None:
    assert rounds.variation([1, 3]) == pytest.approx(0.5)
