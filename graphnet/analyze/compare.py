"""Sets of results side by side: ratios of time with their intervals, changed verdicts, what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from graphnet.analyze.differences import Difference, ResultsOf, differences
from graphnet.analyze.frame import latency
from graphnet.analyze.groups import sizes
from graphnet.analyze.pairs import MachineFloor, floors_of, time_ratio, wider_floor
from graphnet.analyze.stats import geometric_mean
from graphnet.errors import UsageError
from graphnet.evaluate.records import Environment, Result

Name = tuple[str, ...]
_TELLING: dict[str, Callable[[Result], str]] = {
    "id": lambda result: result.graph_id,
    "structure": lambda result: result.structure_hash[:12],
    "device": lambda result: result.target.device,
    "threads": lambda result: str(result.target.threads),
    "precision": lambda result: result.target.precision,
    "passes": lambda result: "+".join(result.passes),
    "library passes": lambda result: ">".join(result.target.passes),
    "seed": lambda result: str(result.seed),
    "target": lambda result: result.target.spec,
    "options": lambda result: " ".join(f"{name}={value}" for name, value in sorted(result.target.options.items())),
    "machine": lambda result: result.environment,
}
"""What may tell apart results of one graph, sizes and compiler, by the words for it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A graph on a compiler in one set."""

    verdict: str
    stage: str = ""
    seconds: float | None = None
    """Median of one inference; None unless the verdict is `ok`."""
    ratio: float | None = None
    """Time over that in the first set (`pairs.time_ratio`): below 1 is faster.

    None in the first set, and where one of both is unknown.
    """
    low: float | None = None
    """Lower end of the 95 % interval of the ratio; None where there are too few samples."""
    high: float | None = None
    rounds: int = 0
    """Rounds in which both took turns; 0 where they ran one after the other."""

    @property
    def outcome(self) -> str:
        """`ok`, or the verdict with its stage."""
        return f"{self.verdict} ({self.stage})" if self.stage else self.verdict


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A graph on a compiler in every set."""

    graph: str
    """Its name, with sizes and settings where it takes them to tell rows apart."""
    compiler: str
    cells: tuple[Cell | None, ...]
    """One for each set; None where the set has no such result."""
    graph_changed: bool = False
    """Graphs of this name have unlike structures: they are not compared."""

    @property
    def changed(self) -> bool:
        """Whether the verdict or its stage differs between the sets that have one."""
        return len({cell.outcome for cell in self.cells if cell}) > 1

    @property
    def missing(self) -> bool:
        """Whether some set has no result."""
        return None in self.cells


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """Geometric mean of the ratios of each set over those rows that are `ok` in all sets."""

    compiler: str
    """Empty: all compilers."""
    count: int
    ratios: tuple[float, ...]
    """One for each set but the first; empty when `count` is 0."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is to be shown of sets side by side."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    """Results in each set."""
    differences: tuple[Difference, ...]
    rows: tuple[Row, ...]
    means: tuple[Mean, ...]
    floors: tuple[MachineFloor, ...] = ()
    """Of all machines and thread counts among the results."""


def compare(sets: Sequence[ResultsOf]) -> Comparison:
    """Compare every set with the first.

    Paired are results of the same graph (by name), sizes and compiler. Settings in which a set has several of those
    (threads, say) tell its rows apart and must be equal in a pair. In any other setting the sets may differ: that is
    said in `differences`, as are unlike machines and versions. Raises UsageError for fewer than two sets.
    """
    if len(sets) < 2:
        raise UsageError("a comparison takes at least two sets of results")
    telling = [name for name in _TELLING if any(_varies(name, found.results) for found in sets)]
    tables = [{_name(result, telling): result for result in found.results} for found in sets]
    names = list(dict.fromkeys(name for table in tables for name in table))
    several = _with_several_sizes(names)
    machines = [environment for found in sets for environment in found.environments]
    rows = tuple(_row(name, [table.get(name) for table in tables], name[0] in several, machines) for name in names)
    return Comparison(
        labels=tuple(found.label for found in sets), counts=tuple(len(found.results) for found in sets),
        differences=differences(sets, told=telling), rows=rows, means=tuple(_means(rows, len(sets))),
        floors=floors_of((result for found in sets for result in found.results), machines),
    )  # fmt: skip


def _varies(telling: str, results: Iterable[Result]) -> bool:
    seen: dict[Name, str] = {}
    told = _TELLING[telling]
    return any(seen.setdefault(_name(result, ()), told(result)) != told(result) for result in results)


def _name(result: Result, telling: Iterable[str]) -> Name:
    """Graph, compiler, sizes, then what tells results apart: equal for the two sides of a pair."""
    rest = (f"{name} {_TELLING[name](result) or 'none'}" for name in telling)
    return result.graph, result.compiler, sizes(result), *rest


def _with_several_sizes(names: Iterable[Name]) -> set[str]:
    seen: dict[str, set[str]] = {}
    for graph, _, size, *_ in names:
        seen.setdefault(graph, set()).add(size)
    return {graph for graph, found in seen.items() if len(found) > 1}


def _row(name: Name, results: Sequence[Result | None], show_sizes: bool, machines: Sequence[Environment]) -> Row:
    graph, compiler, size, *rest = name
    changed = len({result.structure_hash for result in results if result and result.structure_hash}) > 1
    first, *others = results
    base = None if changed else first
    cells = (_cell(first, None, ()), *(_cell(other, base, machines) for other in others))
    label = ", ".join(filter(None, (f"{graph} {size}".rstrip() if show_sizes else graph, *rest)))
    return Row(graph=label, compiler=compiler, cells=cells, graph_changed=changed)


def _cell(result: Result | None, base: Result | None, machines: Sequence[Environment]) -> Cell | None:
    if result is None:
        return None
    seconds = latency(result)
    cell = Cell(verdict=result.verdict, stage=result.stage or "", seconds=seconds)
    if base is None or seconds is None or latency(base) is None:
        return cell
    found = time_ratio(base, result, wider_floor(base, result, machines))
    if found is None:
        return cell
    return msgspec.structs.replace(cell, ratio=found.value, low=found.low, high=found.high, rounds=found.rounds)


def _means(rows: Sequence[Row], count: int) -> Iterable[Mean]:
    compilers = list(dict.fromkeys(row.compiler for row in rows))
    for compiler in [*compilers, ""] if len(compilers) > 1 else compilers:
        mine = [row for row in rows if compiler in ("", row.compiler)]
        ratios = [[cell.ratio for cell in row.cells[1:] if cell and cell.ratio is not None] for row in mine]
        whole = [found for found in ratios if len(found) == count - 1]
        means = tuple(geometric_mean(column) for column in zip(*whole, strict=True))
        yield Mean(compiler=compiler, count=len(whole), ratios=means)
