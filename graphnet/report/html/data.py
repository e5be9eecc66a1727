"""The overview that the page embeds: graphs by compilers, scores and the machine, for each group of settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from graphnet.analyze.frame import CORRECT_AT, latency, samples
from graphnet.analyze.groups import Key, Settings, by_column, by_settings, key, sizes
from graphnet.analyze.pairs import floor_of, speedup
from graphnet.analyze.payback import payback_runs
from graphnet.analyze.score import scores
from graphnet.analyze.stats import summarize
from graphnet.evaluate.records import CompileTime, Environment, Floor, Memory, Result
from graphnet.report.grid import labels
from graphnet.report.html.graphs import GraphFacts
from graphnet.report.html.text import visible

LEVELS = tuple(range(-10, 4))
NAME_LIMIT = 200


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One result. Times in seconds, memory in bytes; None is unknown, or does not apply."""

    verdict: str
    stage: str = ""
    median: float | None = None
    """Of whatever was timed; `speedup` and `payback` are there for the verdict `ok` alone."""
    low: float | None = None
    high: float | None = None
    fastest: float | None = None
    p90: float | None = None
    p99: float | None = None
    runs: int = 0
    speedup: float | None = None
    speedup_low: float | None = None
    """Lower end of its 95 % interval; None for the baseline itself, and where there are too few samples."""
    speedup_high: float | None = None
    rounds: int = 0
    """Rounds in which it took turns with the baseline; 0 where they ran one after the other."""
    unresolved: bool = False
    """The interval of the speedup holds 1, or there is none."""
    level: int | None = None
    compile: float | None = None
    warm_compile: float | None = None
    payback: int | None = None
    """Runs until compilation is earned back; None where a run is not faster than the baseline's, or there is none."""
    warm_payback: int | None = None
    memory: dict[str, int] = {}
    """Those parts of `Memory` that were measured."""
    noise: float | None = None
    notes: tuple[str, ...] = ()
    message: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A graph at one choice of sizes, with a cell per column (None: no such job)."""

    slug: str
    """Unique in its group: `GN-2026-CV-001`."""
    label: str
    graph_id: str
    subset: str
    sizes: str
    structure_hash: str
    tier: str = ""
    operators: int | None = None
    parameters: int | None = None
    flops: int | None = None
    bytes: int | None = None
    cells: tuple[Cell | None, ...]


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one column over the baseline."""

    graphs: int
    left_out: int
    """Graphs on which the baseline has no latency."""
    speedup: float | None
    """Geometric mean over the graphs that are correct at the level `CORRECT_AT`; None if none is."""
    correct: float
    """Their share."""
    S: tuple[float, ...]
    """At each of `LEVELS`."""
    ES: tuple[float, ...]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Results under the same settings: the only ones that are compared."""

    label: str
    settings: dict[str, str | int]
    columns: tuple[str, ...]
    baseline_columns: tuple[int, ...]
    versions: tuple[str, ...]
    """Packages of each column: `torch 2.13.0`."""
    verdicts: tuple[dict[str, int], ...]
    scores: tuple[Score | None, ...]
    rows: tuple[Row, ...]
    started: tuple[str, str]
    """First and last start of a job; UTC, ISO 8601."""
    noise: tuple[float, float] | None
    """Median and highest coefficient of variation of the fixed-work loop."""
    environment: dict[str, str | int]
    floor: Floor | None
    """Noise floor of the machine with so many threads; None where it was never measured."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows first."""

    baseline: str
    correct_at: int
    levels: tuple[int, ...]
    groups: tuple[Group, ...]


def overview(
    results: Sequence[Result], environments: Sequence[Environment], baseline: str, graphs: Mapping[str, GraphFacts]
) -> Overview:
    """Everything but the details of single graphs; `graphs` are facts by structure hash."""
    machines = {environment.key: environment for environment in environments}
    groups = tuple(
        _group(settings, mine, machines.get(settings.environment), baseline, graphs)
        for settings, mine in by_settings(results).items()
    )
    return Overview(baseline=visible(baseline, NAME_LIMIT), correct_at=CORRECT_AT, levels=LEVELS, groups=groups)


def ordered_columns(results: Sequence[Result], baseline: str) -> dict[str, list[Result]]:
    """Results of one settings group by compiler, those of the baseline first."""
    columns = by_column(results)
    return dict(sorted(columns.items(), key=lambda item: item[1][0].compiler != baseline))


def ordered_rows(results: Sequence[Result]) -> dict[Key, Result]:
    """A result of each row of one settings group, in the order of the page: by subset, then name, then sizes."""
    first = {key(result): result for result in reversed(results)}
    order = sorted(first, key=lambda row: (first[row].subset, first[row].graph, sizes(first[row]), row[1:]))
    return {row: first[row] for row in order}


def slugs(rows: Mapping[Key, Result]) -> dict[Key, str]:
    """A name for the address of each row, told apart by its sizes, then by a number."""
    counts = Counter(result.graph_id or result.graph for result in rows.values())
    taken: Counter[str] = Counter()
    named = {}
    for row, result in rows.items():
        name = result.graph_id or result.graph
        slug = visible(f"{name} {sizes(result)}".rstrip() if counts[name] > 1 else name, NAME_LIMIT)
        taken[slug] += 1
        named[row] = slug if taken[slug] == 1 else f"{slug} ~{taken[slug]}"
    return named


def _group(
    settings: Settings,
    results: Sequence[Result],
    environment: Environment | None,
    baseline: str,
    graphs: Mapping[str, GraphFacts],
) -> Group:
    columns = ordered_columns(results, baseline)
    base = [result for result in results if result.compiler == baseline]
    noises = [result.noise.cv for result in results if result.noise and result.noise.before_ns]
    starts = sorted(result.started for result in results)
    return Group(
        label=visible(str(settings), NAME_LIMIT), settings=_shown_settings(settings),
        columns=tuple(visible(name, NAME_LIMIT) for name in columns),
        baseline_columns=tuple(i for i, mine in enumerate(columns.values()) if mine[0].compiler == baseline),
        versions=tuple(_versions(mine) for mine in columns.values()),
        verdicts=tuple(dict(Counter(result.verdict for result in mine)) for mine in columns.values()),
        scores=tuple(_score(base, mine) for mine in columns.values()),
        rows=_rows(results, columns, base, graphs, environment), started=(starts[0], starts[-1]),
        noise=(median(noises), max(noises)) if noises else None,
        environment=_shown_environment(environment) if environment else {},
        floor=_shown_floor(floor_of(results[0], [environment])) if environment else None,
    )  # fmt: skip


def _rows(
    results: Sequence[Result],
    columns: Mapping[str, Sequence[Result]],
    base: Sequence[Result],
    graphs: Mapping[str, GraphFacts],
    environment: Environment | None,
) -> tuple[Row, ...]:
    rows, names = ordered_rows(results), labels(results)
    addresses = slugs(rows)
    bases = {key(result): result for result in base}
    found = [{key(result): result for result in mine} for mine in columns.values()]
    built = []
    for row, sample in rows.items():
        known = graphs.get(sample.structure_hash)
        mine = [column.get(row) for column in found]
        cells = tuple(cell(result, bases.get(row), environment) if result else None for result in mine)
        costs = next((result for result in mine if result and result.flops is not None), sample)
        built.append(
            Row(
                slug=addresses[row], label=visible(names[row], NAME_LIMIT), cells=cells,
                graph_id=visible(sample.graph_id, NAME_LIMIT), subset=visible(sample.subset, NAME_LIMIT),
                sizes=visible(sizes(sample), NAME_LIMIT), structure_hash=visible(sample.structure_hash, NAME_LIMIT),
                tier=known.tier if known else "", operators=known.operators if known else None,
                parameters=known.parameters if known else None, flops=costs.flops, bytes=costs.bytes,
            )
        )  # fmt: skip
    return tuple(built)


def cell(result: Result, base: Result | None, environment: Environment | None = None) -> Cell:
    """One result against the baseline's of the same row, with the noise floor of their machine."""
    timing = summarize(result.timing) if result.timing else None
    gain = speedup(base, result, [environment] if environment else []) if base else None
    measured = result.noise and result.noise.before_ns
    return Cell(
        verdict=result.verdict, stage=result.stage or "", level=result.level,
        median=timing.median if timing else None, low=timing.low if timing else None,
        high=timing.high if timing else None, fastest=timing.min if timing else None,
        p90=timing.p90 if timing else None, p99=timing.p99 if timing else None, runs=timing.count if timing else 0,
        speedup=gain.value if gain else None, speedup_low=gain.low if gain else None,
        speedup_high=gain.high if gain else None, rounds=gain.rounds if gain else 0,
        unresolved=gain is not None and base is not result and not gain.resolved,
        compile=result.compile.total_s if result.compile else None,
        warm_compile=result.warm_compile.total_s if result.warm_compile else None,
        payback=_payback(result, result.compile, base, base.compile if base else None),
        warm_payback=_payback(result, result.warm_compile, base, base.warm_compile if base else None),
        memory=memory_parts(result.memory) if result.memory else {},
        noise=result.noise.cv if result.noise and measured else None,
        notes=tuple(map(visible, result.notes)), message=visible(result.message),
    )  # fmt: skip


def memory_parts(memory: Memory) -> dict[str, int]:
    """Parts that were measured, in bytes; `own` is the peak over the baseline: without Python and the framework."""
    names = ("baseline", "load_peak", "compile_peak", "run_peak", "steady", "weights", "inputs", "outputs")
    parts = {name: size for name in names if (size := getattr(memory, name))}
    peak = max(memory.load_peak, memory.compile_peak, memory.run_peak)
    if peak and memory.baseline:
        parts["own"] = max(0, peak - memory.baseline)
    return parts


def _payback(
    result: Result, spent: CompileTime | None, base: Result | None, base_spent: CompileTime | None
) -> int | None:
    seconds, base_seconds = latency(result), latency(base) if base else None
    if base is None or result.compiler == base.compiler or not (spent and base_spent and seconds and base_seconds):
        return None
    return payback_runs(spent.total_s, seconds, base_spent.total_s, base_seconds)


def _score(base: Sequence[Result], mine: Sequence[Result]) -> Score | None:
    found = samples(base, mine)
    if not found:
        return None
    at = scores(found, CORRECT_AT)
    all_levels = [scores(found, t) for t in LEVELS]
    return Score(
        graphs=len(found), left_out=len(mine) - len(found), speedup=at.alpha if at.lam else None, correct=at.lam,
        S=tuple(s.S for s in all_levels), ES=tuple(s.ES for s in all_levels),
    )  # fmt: skip


def _versions(results: Sequence[Result]) -> str:
    found = {(name, version) for result in results for name, version in result.versions.items()}
    return visible(", ".join(f"{name} {version}" for name, version in sorted(found)), NAME_LIMIT)


def _shown_settings(settings: Settings) -> dict[str, str | int]:
    return {
        "device": visible(settings.device), "threads": settings.threads, "precision": visible(settings.precision),
        "passes": visible("+".join(settings.passes)), "seed": settings.seed,
        "environment": visible(settings.environment),
    }  # fmt: skip


def _shown_floor(floor: Floor | None) -> Floor | None:
    """The floor with names that may be shown."""
    if floor is None:
        return None
    names = tuple(visible(name, NAME_LIMIT) for name in floor.compilers)
    return msgspec.structs.replace(floor, compilers=names, measured=visible(floor.measured, NAME_LIMIT))


def _shown_environment(environment: Environment) -> dict[str, str | int]:
    shown: dict[str, str | int] = {
        "cpu_model": visible(environment.cpu_model), "cpu_count": environment.cpu_count,
        "memory_bytes": environment.memory_bytes, "os": visible(environment.os),
        "python": visible(environment.python), "governor": visible(environment.governor),
        "isa": visible(" ".join(environment.isa), 400),
        **{visible(name): visible(value) for name, value in environment.facts.items()},
    }  # fmt: skip
    return {name: value for name, value in shown.items() if value not in ("", 0)}
