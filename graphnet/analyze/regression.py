"""The regression gate: each graph and compiler of a current run against a baseline, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec
from scipy import stats

from graphnet.analyze.differences import Difference
from graphnet.analyze.pairs import wider_floor
from graphnet.analyze.regression_pairs import Pair, pairs, unlike
from graphnet.analyze.slower import Change, change, seconds
from graphnet.analyze.stats import geometric_mean
from graphnet.analyze.thresholds import check_threshold, require_used, threshold_of
from graphnet.evaluate.records import Environment, Floor, Result
from graphnet.evaluate.store import ResultSet

SIGNIFICANCE = 0.05
"""False discovery rate over all pairs: of those called slower, at most so large a share is expected not to be."""

Status = Literal[
    "regressed", "newly incorrect", "newly failing", "missing", "not compared", "unstable", "not confirmed",
    "still failing", "added", "fixed", "passed", "faster",
]  # fmt: skip
"""Worst first. `unstable`: one cannot tell. `not confirmed`: a suspicion that did not stand when measured again."""
FAILURES: frozenset[Status] = frozenset({"regressed", "newly incorrect", "newly failing", "missing", "not compared"})
SUSPECTS: frozenset[Status] = frozenset({"regressed", "unstable"})
"""Statuses that hang on time, and that a second measurement can therefore change."""
RAN = ("ok", "unstable")
CANNOT_TELL = "slower than the threshold, but not by more than its uncertainty: use --live, or a larger --budget"
RATIO_ALONE = "by the ratio alone: too few samples for a test"


class Live(NamedTuple):
    """A pair measured again, both builds taking turns."""

    ratio: float | None = None
    """Performance over that of the baseline build, geometric mean over races; None when it could not be measured."""
    low: float | None = None
    """Lower end of the 95 % interval (Student's t over races)."""
    high: float | None = None
    races: int = 0
    rounds: int = 0
    """Of all races together."""
    budget_s: float = 0.0
    """Of each build in each race."""
    problem: str = ""
    """Why it could not be measured."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A graph on a compiler."""

    pair: Pair
    status: Status
    threshold: float
    change: Change | None = None
    """None where no performance was compared."""
    q: float | None = None
    """p adjusted for the number of pairs."""
    note: str = ""
    live: Live | None = None

    @property
    def failed(self) -> bool:
        """Whether it makes the gate fail."""
        return self.status in FAILURES

    @property
    def before_s(self) -> float | None:
        """Median seconds in the baseline."""
        return seconds(self.pair.base)

    @property
    def after_s(self) -> float | None:
        """Median seconds in the current run."""
        return seconds(self.pair.current)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """Geometric mean of the ratios over the pairs that have one: what only one set has never moves it."""

    compiler: str
    """Empty: all compilers."""
    count: int
    ratio: float


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All that is to be reported."""

    threshold: float
    rows: tuple[Row, ...] = ()
    """Worst first."""
    unlike: tuple[Difference, ...] = ()
    """In what the environments differ."""
    refused: bool = False
    """Nothing was compared because they do."""
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> int:
        """Pairs that say something of the current build: by their times, or by a failure that is new."""
        told = ("newly incorrect", "newly failing")
        return sum(
            row.change is not None or row.status in told or (row.live is not None and row.live.ratio is not None)
            for row in self.rows
        )

    @property
    def outcome(self) -> int:
        """0 pass, 1 regression, 2 could not measure."""
        if self.refused or not self.compared:
            return 2
        return int(any(row.failed for row in self.rows))

    @property
    def means(self) -> tuple[Mean, ...]:
        """Of all compilers together, then of each one where there are several."""
        ratios: dict[str, list[float]] = {}
        for row in self.rows:
            if row.change is not None:
                ratios.setdefault(row.pair.known.compiler, []).append(row.change.ratio)
        whole = {"": [ratio for found in ratios.values() for ratio in found]} if ratios else {}
        groups = whole | (dict(sorted(ratios.items())) if len(ratios) > 1 else {})
        return tuple(
            Mean(compiler=name, count=len(found), ratio=geometric_mean(found)) for name, found in groups.items()
        )


def gate(
    baseline: ResultSet,
    current: ResultSet,
    threshold: float,
    *,
    per_graph: Mapping[str, float] | None = None,
    bare: bool = False,
    allow_environment_change: bool = False,
) -> Gate:
    """Judge every pair. Times of `current` may be up to 1/`threshold` of those in the baseline.

    A pair regresses when its ratio is below the threshold *and* it is slower beyond chance: one-sided test on the
    stored samples, false discoveries controlled over all pairs (Benjamini-Hochberg), and an interval, widened by the
    noise floor of the machine, that excludes 1. `per_graph` has thresholds by pattern; `bare`: the baseline knows
    medians by graph and compiler alone. Raises UsageError (a threshold is none, or is for no graph).
    """
    check_threshold(threshold)
    found, older = pairs(baseline.results, current.results, bare=bare)
    require_used(per_graph or {}, (side for pair in found for side in pair[:2] if side))
    differing = unlike(found, baseline.environments, current.environments)
    notes = _notes(found, older, bare)
    if differing and not allow_environment_change:
        return Gate(threshold=threshold, unlike=differing, refused=True, notes=notes)
    machines = (*current.environments, *baseline.environments)
    rows = [_row(pair, threshold_of(pair.known, threshold, per_graph or {}), machines) for pair in found]
    if any(row.change and row.change.p is not None for row in rows) and not any(
        _floor(row.pair, machines) for row in rows
    ):
        notes += ("the noise floor of this machine is not known, so that drift between runs counts as change",)
    return Gate(threshold=threshold, rows=worst_first(_decided(rows)), unlike=differing, notes=notes)


def worst_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    """By status, then the slowest ratio."""
    order = {status: place for place, status in enumerate(get_args(Status))}

    def place(row: Row) -> tuple[int, float, str, str]:
        known = row.pair.known
        return order[row.status], row.change.ratio if row.change else 0.0, known.graph, known.compiler

    return tuple(sorted(rows, key=place))


def _notes(found: Sequence[Pair], older: int, bare: bool) -> tuple[str, ...]:
    notes = []
    if bare:
        notes.append("the baseline has bare medians: pairs are judged by the ratio alone, and the machine is unchecked")
    if older:
        notes.append(f"{older} older result(s) gave way to newer ones of the same graph, compiler and settings")
    runs = {pair.current.run_id for pair in found if pair.current}
    if len(runs) > 1:
        notes.append(f"the current results are of {len(runs)} runs: those of a pair that was not run again are older")
    return tuple(notes)


def _row(pair: Pair, threshold: float, machines: Sequence[Environment]) -> Row:
    """A row whose times, if they are comparable, are still to be judged."""
    status, note = _by_verdict(pair)
    if status is not None or pair.base is None or pair.current is None:
        return Row(pair=pair, status=status or "not compared", threshold=threshold, note=note)
    found = change(pair.base, pair.current, _floor(pair, machines))
    if found is None:
        return Row(pair=pair, status="not compared", threshold=threshold, note="no time above 0 on one side")
    return Row(pair=pair, status="passed", threshold=threshold, change=found)


def _by_verdict(pair: Pair) -> tuple[Status | None, str]:
    """What the verdicts alone decide, and why; None where times must."""
    base, current = pair.base, pair.current
    if base is None:
        return "added", "" if current is None or current.verdict == "ok" else outcome(current)
    if current is None:
        return "missing", "" if base.verdict == "ok" else f"the baseline: {outcome(base)}"
    if base.structure_hash and current.structure_hash and base.structure_hash != current.structure_hash:
        return "not compared", "the graph of this name has another structure now: make a new baseline"
    if base.verdict not in RAN:
        return ("fixed" if current.verdict in RAN else "still failing"), f"the baseline: {outcome(base)}"
    if current.verdict not in RAN:
        return ("newly incorrect" if current.verdict == "wrong" else "newly failing"), outcome(current)
    if "unstable" in (base.verdict, current.verdict):
        side = "baseline" if base.verdict == "unstable" else "current"
        return "unstable", f"the {side} result is unstable: measure again on a quieter machine, or use --live"
    return None, ""


def outcome(result: Result) -> str:
    """`crashed in compile: message`."""
    stage = f" in {result.stage}" if result.stage else ""
    return f"{result.verdict}{stage}{': ' if result.message else ''}{result.message}"


def _floor(pair: Pair, machines: Sequence[Environment]) -> Floor | None:
    """Of both sides' machines; one side is enough, where the other is absent."""
    return wider_floor(pair.base or pair.known, pair.current or pair.known, machines)


def _decided(rows: Sequence[Row]) -> list[Row]:
    tested = [row.change.p for row in rows if row.change and row.change.p is not None]
    adjusted = iter(stats.false_discovery_control(tested) if tested else ())
    decided = []
    for row in rows:
        if row.change is None:
            decided.append(row)
        else:
            decided.append(_judged(row, row.change, None if row.change.p is None else float(next(adjusted))))
    return decided


def _judged(row: Row, found: Change, q: float | None) -> Row:
    slow, fast = found.ratio < row.threshold, found.ratio > 1 / row.threshold
    if q is None or found.low is None or found.high is None:
        status: Status = "regressed" if slow else "faster" if fast else "passed"
        return msgspec.structs.replace(row, status=status, note=RATIO_ALONE)
    if slow and q <= SIGNIFICANCE and found.high < 1:
        return msgspec.structs.replace(row, status="regressed", q=q)
    if slow:
        return msgspec.structs.replace(row, status="unstable", q=q, note=CANNOT_TELL)
    return msgspec.structs.replace(row, status="faster" if fast and found.low > 1 else "passed", q=q)
