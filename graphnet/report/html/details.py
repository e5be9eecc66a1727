"""The details of each graph that the page embeds and shows on demand: kernels, outputs, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from graphnet.analyze.groups import by_settings, key
from graphnet.compilers import Kernel
from graphnet.evaluate.records import Result
from graphnet.report.html.data import NAME_LIMIT, ordered_columns, ordered_rows
from graphnet.report.html.graphs import OTHER, GraphFacts, operator_times
from graphnet.report.html.text import visible

KERNELS = 15
"""Heaviest kernels that are listed for each result; the rest is one sum."""
OPERATORS = 40
"""Operators that are told apart for each result; the rest is under `OTHER`."""
NODES = 120
"""Characters of a kernel's list of nodes."""


class KernelRow(msgspec.Struct, frozen=True, array_like=True):
    """One kernel: microseconds per inference, all its calls together."""

    name: str
    nodes: str
    calls: int
    microseconds: float
    flops: int | None
    bytes: int | None


class OutputRow(msgspec.Struct, frozen=True, array_like=True):
    """Error of one output against the float64 reference."""

    name: str
    dtype: str
    level: int | None
    max_abs: float | None
    max_rel: float | None


class Quality(Protocol):
    """What the page shows of the code that was emitted for a job; None is unknown. Shares are 0 to 1."""

    @property
    def saturation(self) -> float | None:
        """Instructions per cycle of the hot loops over the dispatch width."""

    @property
    def vector_share(self) -> float | None:
        """Vector instructions among the floating-point ones."""

    @property
    def fma_share(self) -> float | None:
        """Multiply-adds among the floating-point instructions."""

    @property
    def width_share(self) -> float | None:
        """Vector width used over the widest available."""

    @property
    def spills(self) -> int | None:
        """Loads and stores of the stack in loops."""

    @property
    def library_share(self) -> float | None:
        """Share of the kernels' time that is spent in library calls."""


class Detail(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """More of one result. Times in seconds if not said otherwise."""

    job: str
    started: str = ""
    wall: float = 0.0
    compile: tuple[float, float, float] | None = None
    """Lowering, compilation, first run."""
    warm_compile: tuple[float, float, float] | None = None
    kernels: tuple[KernelRow, ...] = ()
    more_kernels: int = 0
    more_microseconds: float = 0.0
    operators: dict[str, float] = {}
    """Microseconds per inference by operator."""
    outputs: tuple[OutputRow, ...] = ()
    allocator: dict[str, int] = {}
    quality: dict[str, float] = {}
    """Members of `Quality` that are known."""
    settings: int = 0
    """Index into `Details.settings`."""


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """By group, row and column, in the order of the overview."""

    settings: tuple[dict[str, str], ...]
    """Settings that results ran with, each set once: there are far fewer of them than results."""
    groups: tuple[tuple[tuple[Detail | None, ...], ...], ...]


def details(
    results: Sequence[Result],
    baseline: str,
    graphs: Mapping[str, GraphFacts],
    quality: Mapping[str, Quality],
) -> Details:
    """Details of all results; `graphs` are facts by structure hash, `quality` is of the code by job key."""
    known: dict[tuple[tuple[str, str], ...], int] = {}
    groups = []
    for mine in by_settings(results).values():
        columns = [{key(result): result for result in column} for column in ordered_columns(mine, baseline).values()]
        groups.append(
            tuple(
                tuple(_detail(found[row], graphs, quality, known) if row in found else None for found in columns)
                for row in ordered_rows(mine)
            )
        )
    return Details(settings=tuple(dict(items) for items in known), groups=tuple(groups))


def _detail(
    result: Result,
    graphs: Mapping[str, GraphFacts],
    quality: Mapping[str, Quality],
    known: dict[tuple[tuple[str, str], ...], int],
) -> Detail:
    kernels = sorted(result.kernels, key=lambda kernel: -kernel.total_us)
    operators = operator_times(kernels, graphs.get(result.structure_hash))
    settings = tuple(settings_of(result).items())
    cold, warm = result.compile, result.warm_compile
    return Detail(
        job=visible(result.job_key, NAME_LIMIT), started=visible(result.started, NAME_LIMIT),
        wall=_short(result.wall_s),
        compile=(_short(cold.lower_s), _short(cold.compile_s), _short(cold.first_run_s)) if cold else None,
        warm_compile=(_short(warm.lower_s), _short(warm.compile_s), _short(warm.first_run_s)) if warm else None,
        kernels=tuple(map(_kernel, kernels[:KERNELS])), more_kernels=len(kernels[KERNELS:]),
        more_microseconds=_short(sum(kernel.total_us for kernel in kernels[KERNELS:])),
        operators=_largest(operators),
        outputs=tuple(
            OutputRow(visible(o.name, NAME_LIMIT), visible(o.dtype, NAME_LIMIT), o.level, o.max_abs, o.max_rel)
            for o in result.outputs
        ),
        allocator={visible(name, NAME_LIMIT): size for name, size in result.memory.allocator.items()}
        if result.memory else {},
        quality=_quality(quality[result.job_key]) if result.job_key in quality else {},
        settings=known.setdefault(settings, len(known)),
    )  # fmt: skip


def settings_of(result: Result) -> dict[str, str]:
    """What was asked of the compiler beyond the settings of the group, and what it reported."""
    target = result.target
    asked: dict[str, Any] = {"target": target.spec, **target.options, "passes": " > ".join(target.passes)}
    shown = {name: value for name, value in asked.items() if value != ""} | result.settings
    return {visible(name, NAME_LIMIT): visible(_plain(value)) for name, value in shown.items()}


def _quality(found: Quality) -> dict[str, float]:
    names = ("saturation", "vector_share", "fma_share", "width_share", "spills", "library_share")
    return {name: value for name in names if (value := getattr(found, name)) is not None}


def _plain(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kernel(kernel: Kernel) -> KernelRow:
    nodes = visible(" ".join(kernel.nodes[:20]), NODES)
    name = visible(kernel.name, NODES)
    return KernelRow(name, nodes, kernel.calls, _short(kernel.total_us), kernel.flops, kernel.bytes)


def _largest(operators: Mapping[str, float]) -> dict[str, float]:
    order = sorted(operators.items(), key=lambda item: -item[1])
    totals: dict[str, float] = {}
    for place, (name, time) in enumerate(order):
        shown = visible(name, NAME_LIMIT) if place < OPERATORS else OTHER  # two long names may look alike once cut
        totals[shown] = totals.get(shown, 0.0) + time
    return {name: _short(time) for name, time in totals.items()}


def _short(value: float) -> float:
    """Five significant digits: the page carries many of them."""
    return float(f"{value:.5g}")
