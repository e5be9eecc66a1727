"""Results of many runs as series in time, each of one graph on one compiler under one group of settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
import numpy as np
from scipy import stats

from graphnet.analyze import steps
from graphnet.analyze.frame import latency
from graphnet.analyze.groups import conditions, key
from graphnet.analyze.steps import Fit, Step
from graphnet.errors import StoreError, UsageError
from graphnet.evaluate.records import Environment, Result

LEAST_RUNS = 3
"""Of a series; a shorter one is counted, and not shown."""
ABSENT = "none"
Identity = tuple[object, ...]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a series. Seconds."""

    run: str
    """Id of the run."""
    started: datetime
    seconds: float
    """Median of one inference."""
    low: float
    """Lower end of the 95 % interval of the median."""
    high: float
    versions: dict[str, str] = {}


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A graph on a compiler, with everything alike from run to run but the versions of packages."""

    graph: str
    compiler: str
    conditions: str
    """Settings, machine, sizes, the compiler's own options, and the structure of the graph."""
    points: tuple[Point, ...]
    """In the order of time."""
    fit: Fit


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a series, told."""

    series: Series
    step: Step
    possible: bool
    """It is of the last run only."""

    @property
    def before(self) -> Point:
        """The last run at the old level."""
        return self.series.points[self.step.index - 1]

    @property
    def after(self) -> Point:
        """The first run at the new level."""
        return self.series.points[self.step.index]

    @property
    def versions(self) -> tuple[str, ...]:
        """Packages that changed between the two."""
        return changed_versions(self.before.versions, self.after.versions)


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is to be shown of many runs."""

    runs: int
    series: tuple[Series, ...]
    """Those with steps first."""
    changes: tuple[Change, ...]
    """The newest run first, in a run what became slowest first."""
    short: int
    """Series of fewer than LEAST_RUNS runs, which are left out."""


def history(
    results: Iterable[Result],
    environments: Mapping[str, Environment],
    *,
    graphs: Collection[str] = (),
    compilers: Collection[str] = (),
) -> History:
    """Series of all results that are `ok`, and the steps in them.

    A run has one point in a series: of several results (the same run read from two places, say) the newest. Machines
    never share a series. `environments`, by key, are looked at after the last of the results, so that both can be read
    on the way. `graphs` (names or ids) and `compilers` select. Raises UsageError where no series has LEAST_RUNS runs,
    StoreError for a result without a time.
    """
    runs: dict[str, datetime] = {}
    found: dict[Identity, dict[str, tuple[Result, Point]]] = {}
    for result in results:
        asked = (not graphs or {result.graph, result.graph_id} & {*graphs}) and (
            not compilers or result.compiler in compilers
        )
        point = _point(result) if asked else None
        if point is None:
            continue
        run = point.run
        runs[run] = min(runs.get(run, point.started), point.started)
        mine = found.setdefault(_identity(result), {})
        if run not in mine or mine[run][1].started <= point.started:
            mine[run] = (_bare(result), point)
    series = [_series([*mine.values()], environments) for mine in found.values() if len(mine) >= LEAST_RUNS]
    if not series:
        raise UsageError(_too_few(found.values(), len(runs), bool(graphs or compilers)))
    series.sort(key=lambda item: (not item.fit.steps, item.fit.possible is None))
    changes = [change for item in series for change in _changes(item)]
    changes.sort(key=lambda change: (runs[change.after.run], change.after.run, change.step.ratio), reverse=True)
    return History(runs=len(runs), series=tuple(series), changes=tuple(changes), short=len(found) - len(series))


def changed_versions(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """`onnxruntime 1.31.0 -> 1.32.0` for each package that differs."""
    return tuple(
        f"{name} {before.get(name, ABSENT)} -> {after.get(name, ABSENT)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _identity(result: Result) -> Identity:
    target = result.target
    return key(result), result.compiler, target.spec, target.passes, tuple(sorted(target.options.items()))


def _bare(result: Result) -> Result:
    """Without what is large: a history may be of a hundred thousand results."""
    return msgspec.structs.replace(result, timing=None, more_timings=(), kernels=(), memory=None, noise=None)


def _point(result: Result) -> Point | None:
    """None where the run measured nothing that counts."""
    if result.verdict != "ok" or not result.timing or not result.timing.samples_ns:
        return None
    seconds = latency(result)
    if not seconds or seconds <= 0:
        return None
    low, high = _median_interval(np.asarray(result.timing.samples_ns, np.float64) * 1e-9)
    return Point(
        run=result.run_id or result.started, started=_time(result), seconds=seconds, low=low, high=high,
        versions=result.versions,
    )  # fmt: skip


def _median_interval(seconds: np.ndarray) -> tuple[float, float]:
    """95 % interval of the median by order statistics: no bootstrap, which takes minutes over a long history."""
    ordered, count = np.sort(seconds), len(seconds)
    rank = _rank(count)
    return float(ordered[rank]), float(ordered[count - 1 - rank])


@lru_cache
def _rank(count: int) -> int:
    """Samples below the interval, of `count` in order: fewer than that lie below the median in 2.5 % of cases."""
    return max(int(stats.binom.ppf(0.025, count, 0.5)) - 1, 0)


def _time(result: Result) -> datetime:
    try:
        time = datetime.fromisoformat(result.started)
    except ValueError:
        raise StoreError(
            f"the result of {result.graph} on {result.compiler} in run '{result.run_id}' says it started at"
            f" '{result.started}', which is no time (ISO 8601): a history needs the order of its runs"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _series(found: Sequence[tuple[Result, Point]], machines: Mapping[str, Environment]) -> Series:
    ordered = sorted(found, key=lambda item: item[1].started)
    result, points = ordered[-1][0], tuple(point for _, point in ordered)
    errors = [_log_error(point) for point in points]
    fit = steps.fit([point.seconds for point in points], errors, _floor(result, machines))
    structure = f"structure {result.structure_hash[:12] or 'unknown'}"
    return Series(
        graph=result.graph, compiler=result.compiler, conditions=f"{conditions(result)}, {structure}", points=points,
        fit=fit,
    )  # fmt: skip


def _log_error(point: Point) -> float:
    """Standard error of the logarithm, from the interval."""
    low = max(point.low, point.seconds * 1e-3)  # a sample of no time has no logarithm
    return float(np.log(point.high / low)) / (2 * steps.NORMAL_95)


def _floor(result: Result, machines: Mapping[str, Environment]) -> float:
    """Of one process: a floor is of the ratio of two."""
    machine = machines.get(result.environment)
    here = (result.target.device, result.target.threads)
    found = [floor.sequential for floor in (machine.floors if machine else ()) if (floor.device, floor.threads) == here]
    return max(found, default=0.0) / 2**0.5


def _changes(series: Series) -> Iterable[Change]:
    for step in series.fit.steps:
        yield Change(series=series, step=step, possible=False)
    if series.fit.possible:
        yield Change(series=series, step=series.fit.possible, possible=True)


def _too_few(found: Iterable[Mapping[str, object]], runs: int, selected: bool) -> str:
    longest = max(map(len, found), default=0)
    of = " that were asked for (--graph, --compiler)" if selected else ""
    return (
        f"a history needs at least {LEAST_RUNS} runs of the same graph, compiler, settings and machine that are ok;"
        f" of the results{of}, in {runs} run(s), no series has more than {longest}"
    )
