"""How long a program is timed: its share of the rounds of a race, and when there were enough of them.

A race has 50 rounds, in each of which every program has one turn. A program that its budget allows 100 runs takes 2 in
each turn (more if these are shorter than 4 ms); one that is too slow for that has fewer turns, at least 5, spread over
the rounds, and never fewer than 5 runs. There are more rounds, up to 250, while budget is left and the ratio of a
program to the first one is uncertain by more than 1 %, or its own median by more than 15 %.

Turns are short since most noise is shared by the runs of a turn (the load of the machine, the places of buffers): how
far a ratio can be trusted hangs on the number of rounds, hardly on the runs in each.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import comb

import msgspec

from graphnet.evaluate.protocol import Turn

NO_TURN = Turn()
ROUNDS = 50
MOST_ROUNDS = 250
FEWEST_TURNS = 5
RUNS_OF_A_TURN = 2
ENOUGH_RUNS = ROUNDS * RUNS_OF_A_TURN
LEAST_NS = 4_000_000
REWARM_NS = 1_000_000
SHORT_NS = 10_000_000
"""Longer runs are not repeated untimed before a turn: to fill the caches takes a few hundredths of one."""
PRECISION = 0.01
"""Half-width of the 95 % interval of a ratio, relative, down to which it is worth more rounds."""
UNSTABLE = 0.15
"""Half-width of the 95 % interval of the median, relative to the median, beyond which it is no figure."""
MORE_FOR_UNSTABLE = 3
"""Times the budget that an unstable program may take."""
_BITS = ROUNDS.bit_length()
_IN_ORDER = sorted(range(ROUNDS), key=lambda number: f"{number:0{_BITS}b}"[::-1])
_PLACE = {number: place for place, number in enumerate(_IN_ORDER)}
"""Of each round, when the rounds are taken by their bits read backwards, which spreads any number of them."""


class Share(msgspec.Struct, frozen=True):
    """A program's part in the rounds."""

    turns: int
    turn: Turn

    def takes_part(self, number: int) -> bool:
        """Whether it has a turn in this round: its turns are spread over each 50, and are among those of any larger
        share, so that a slow program has all its turns beside a fast one.
        """
        return _PLACE[number % ROUNDS] < self.turns


def share(sample_ns: int, budget_ns: int) -> Share:
    """The share of a program whose samples take so long."""
    total = min(ENOUGH_RUNS, max(FEWEST_TURNS, budget_ns // max(1, sample_ns)))
    turns = max(FEWEST_TURNS, min(ROUNDS, total // RUNS_OF_A_TURN))
    return Share(
        turns,
        Turn(
            runs=total // turns,
            least_ns=LEAST_NS,
            most_ns=max(1, budget_ns // turns),
            rewarm_ns=REWARM_NS if sample_ns < SHORT_NS else 0,
        ),
    )


def median_spread(samples: Sequence[float]) -> float:
    """Half-width of the 95 % interval of the median, over the median.

    (Conover, Practical Nonparametric Statistics, section 3.2.)

    The interval runs between the k-th smallest and k-th largest sample, with the largest k whose coverage
    1 - 2 P(Binomial(n, 1/2) < k) is at least 95 %; k = 1 for fewer than 6 samples.
    """
    middle = statistics.median(samples)
    return half_width(samples) / middle if middle else 0.0


def half_width(samples: Sequence[float]) -> float:
    """Half-width of the 95 % interval of the median, as in `median_spread`."""
    ordered = sorted(samples)
    rank = _interval_rank(len(ordered))
    return (ordered[-rank] - ordered[rank - 1]) / 2


def _interval_rank(count: int) -> int:
    if count > 200:  # the normal approximation is exact to one rank here
        return max(1, int((count - 1.96 * count**0.5) / 2))
    total, rank = 0, 0
    while True:
        total += comb(count, rank)
        if 2 * total > 0.05 * 2**count:
            return max(1, rank)
        rank += 1


def variation(times: Sequence[int]) -> float:
    """Coefficient of variation: population standard deviation over mean."""
    mean = statistics.fmean(times)
    return statistics.pstdev(times) / mean if mean else 0.0
