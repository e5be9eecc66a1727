"""One program in a race: its turns, its samples, what disturbed them, and the timing that they make."""

from __future__ import annotations

import math
import os
import secrets
from statistics import median
from typing import Any

import msgspec

from graphnet.evaluate import disturbance, procfs, rounds
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.protocol import Samples, Work
from graphnet.evaluate.records import Block, Noise, Timing
from graphnet.evaluate.rounds import Share
from graphnet.evaluate.server import Server
from graphnet.evaluate.supervise import Outcome, Watched

REPEATS = 2
"""A disturbed turn is taken again so often in one round; in all, half as many turns as the program has."""
LAST_RUNS = 5
"""Of the warm-up, which agree with each other."""
_CLOCK_SLACK_S = 0.5


class Entrant:
    """A job on its server."""

    def __init__(self, server: Server, work: Work, limits: Limits) -> None:
        self._job = Watched(server, work, limits)
        self._work = work
        self._share = Share(0, rounds.NO_TURN)
        self._samples: list[int] = []
        self._cpu: list[int] = []
        self._disturbed: list[int] = []
        self._blocks: list[Block] = []
        self._medians: dict[int, float] = {}
        self._repeats = self._spent_ns = self._claimed_ns = 0
        self.held_bytes = 0
        """Memory that it keeps while others have their turn."""

    @property
    def waiting(self) -> bool:
        """Whether it can be given a turn."""
        return self._job.warm_up is not None and not self._job.ended

    @property
    def short_of_memory(self) -> bool:
        """Whether it failed because others kept memory."""
        return self._job.short_of_memory

    def start(self, held_bytes: int) -> None:
        """Load, compile, warm up; `held_bytes` is the memory that others keep."""
        self._job.start(held_bytes)
        warm_up = self._job.warm_up
        if warm_up is not None:
            run_ns = median(warm_up.times_ns[-LAST_RUNS:])
            self._share = rounds.share(round(run_ns * warm_up.inner_loops), int(self._work.budget_s * 1e9))
        self._measure_memory()

    def finish(self, held_bytes: int) -> None:
        """What comes after the timed runs."""
        if self.waiting:
            self._job.finish(held_bytes)
        self._measure_memory()

    def takes_part(self, number: int) -> bool:
        """Whether it has a turn in this round."""
        return self._share.takes_part(number)

    def turn(self, number: int, held_bytes: int) -> None:
        """Its block of a round, taken again while the machine disturbs it."""
        for left in reversed(range(REPEATS + 1)):
            found = self._take(number, held_bytes)
            if found is None:
                return
            block, samples = found
            reason = disturbance.disturbed(block, self._work.target.threads, os.cpu_count() or 1)
            if not (reason and left and self._repeats < self._share.turns // 2):
                self._blocks.append(block)
                self._samples += samples.wall_ns
                self._cpu += samples.cpu_ns
                self._medians[number] = median(samples.wall_ns)
                return
            self._repeats += 1
            self._blocks.append(msgspec.structs.replace(block, disturbed=reason))
            self._disturbed += samples.wall_ns

    def wants_more(self, first: Entrant | None) -> bool:
        """Whether more rounds would make a figure of it, or a better ratio to the first one, within its budget."""
        spent = sum(self._samples) * self._inner_loops
        budget = self._work.budget_s * 1e9
        if self._spread > rounds.UNSTABLE:
            return spent < rounds.MORE_FOR_UNSTABLE * budget
        return first is not None and spent < budget and self._uncertainty(first) > rounds.PRECISION

    def outcome(self, race: str) -> Outcome:
        """All that is known of the job, its timing included."""
        found = self._job.outcome()
        warm_up = self._job.warm_up
        if warm_up is None or not self._samples:
            return found
        timing = Timing(
            warmup_ns=warm_up.times_ns, samples_ns=tuple(self._samples), race=race, blocks=tuple(self._blocks),
            disturbed_ns=tuple(self._disturbed), inner_loops=warm_up.inner_loops, cpu_ns=tuple(self._cpu),
            steady=warm_up.steady, budget_ended=len(self._samples) < rounds.ENOUGH_RUNS,
            buffer_seed=warm_up.buffer_seed,
        )  # fmt: skip
        before, after = warm_up.noise_ns, self._job.noise_ns
        noise = Noise(before_ns=before, after_ns=after, cv=rounds.variation([*before, *after]))
        changes: dict[str, Any] = {"fields": {**found.fields, "timing": timing, "noise": noise}}
        claimed_s = self._claimed_ns * self._inner_loops * 1e-9
        changes["notes"] = (*found.notes, *compare_clocks(claimed_s, self._spent_ns * 1e-9))
        if found.verdict == "ok" and self._spread > rounds.UNSTABLE:
            changes |= {"verdict": "unstable", "stage": "run", "message": self._unstable()}
        return msgspec.structs.replace(found, **changes)

    def _take(self, number: int, held_bytes: int) -> tuple[Block, Samples] | None:
        pids = [self._job.pid, *procfs.descendants(self._job.pid)]
        before = disturbance.take(pids)
        seed = secrets.randbits(32)
        found = self._job.turn(msgspec.structs.replace(self._share.turn, seed=seed), held_bytes)
        if found is None:
            return None
        samples, wall_ns = found
        self._spent_ns += wall_ns
        self._claimed_ns += sum(samples.wall_ns)
        block = Block(
            round=number, samples=len(samples.wall_ns), buffer_seed=seed, wall_ns=wall_ns,
            **disturbance.between(before, disturbance.take(pids)),
        )  # fmt: skip
        return block, samples

    @property
    def _inner_loops(self) -> int:
        return self._job.warm_up.inner_loops if self._job.warm_up else 1

    @property
    def _spread(self) -> float:
        return rounds.median_spread(self._samples) if self._samples else 0.0

    def _uncertainty(self, first: Entrant) -> float:
        """Half-width of the 95 % interval of the median log ratio of common rounds."""
        common = self._medians.keys() & first._medians.keys()
        ratios = [math.log(self._medians[number] / first._medians[number]) for number in common]
        return rounds.half_width(ratios) if ratios else 0.0

    def _measure_memory(self) -> None:
        pids = [] if self._job.ended or not self._job.pid else [self._job.pid, *procfs.descendants(self._job.pid)]
        self.held_bytes = sum(map(procfs.proportional_bytes, pids))

    def _unstable(self) -> str:
        return (
            f"95 % interval of the median is +-{self._spread:.0%} after {len(self._samples)} runs,"
            f" over {rounds.UNSTABLE:.0%}"
        )


def compare_clocks(claimed_s: float, elapsed_s: float) -> list[str]:
    """A note when the child's clock cannot be right by ours: in its turns it can only run, and little else.

    Binding inputs, runs that fill the caches and a busy machine may take up three quarters of the time and half a
    second more.
    """
    if elapsed_s / 4 - _CLOCK_SLACK_S <= claimed_s <= elapsed_s + _CLOCK_SLACK_S:
        return []
    return [f"the child's clock says that all runs took {claimed_s:.3g} s, the parent's {elapsed_s:.3g} s"]
