"""Tables for the terminal (rich)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from rich.table import Table

from graphnet import compilers
from graphnet.analyze.frame import CORRECT_AT, frame, samples
from graphnet.analyze.score import scores
from graphnet.analyze.stats import geometric_mean
from graphnet.errors import GraphNetError
from graphnet.evaluate.records import Result
from graphnet.ir.graph import Graph

SCORE_LEVELS = (-6, -5, -3, 0, 1, 2, 3)


def summary_table(results: Sequence[Result], baseline: str = "torch") -> Table:
    """Graphs by compilers: median latency with its speed-up over the baseline, or the verdict."""
    names = list(dict.fromkeys(result.compiler for result in results))
    table = Table(title="Median latency in ms (speed-up over " + baseline + "), or the verdict", title_justify="left")
    table.add_column("graph")
    for name in names:
        table.add_column(name, justify="right")
    by_key = {(result.graph_id or result.graph, result.compiler): result for result in results}
    rows = frame(results)
    for key, group in rows.groupby(level=0, sort=False):
        times = dict(zip(group["compiler"], group["end_to_end_time"], strict=True))
        base = times.get(baseline)
        cells = [_cell(by_key.get((str(key), name)), times.get(name), base, name == baseline) for name in names]
        table.add_row(str(group["graph"].iloc[0]), *cells)
    return table


def _cell(result: Result | None, seconds: float | None, base: float | None, is_base: bool) -> str:
    if result is None:
        return "-"
    if result.verdict != "ok" or seconds is None or pd.isna(seconds):
        return f"[red]{result.verdict}[/red]" + (f" ({result.stage})" if result.stage else "")
    ratio = "" if is_base or base is None or pd.isna(base) else f" ({base / seconds:.2f}x)"
    return f"{seconds * 1e3:.3g}{ratio}"


def verdict_table(results: Sequence[Result]) -> Table:
    """Compilers by verdicts, with the share that is ok and the geometric mean of compile time."""
    verdicts = list(dict.fromkeys(result.verdict for result in results))
    table = Table(title="Verdicts", title_justify="left")
    for name in ("compiler", *verdicts, "ok share", "compile time (s)"):
        table.add_column(name, justify="left" if name == "compiler" else "right")
    for name in dict.fromkeys(result.compiler for result in results):
        mine = [result for result in results if result.compiler == name]
        counts = [sum(result.verdict == verdict for result in mine) for verdict in verdicts]
        share = sum(result.verdict == "ok" for result in mine) / len(mine)
        totals = [result.compile.total_s for result in mine if result.compile and result.compile.total_s > 0]
        table.add_row(
            name, *map(str, counts), f"{share:.1%}", f"{geometric_mean(totals):.2f}" if totals else "-"
        )  # fmt: skip
    return table


def score_table(results: Sequence[Result], baseline: str, p: float, b: float) -> Table:
    """S(t) and ES(t) of each compiler over the baseline, with the geometric mean speed-up of its correct graphs."""
    table = Table(
        title=f"Scores over {baseline} (p={p:g}, b={b:g}); S(t) for t <= 0, ES(t) for t > 0", title_justify="left"
    )
    for name in ("compiler", "graphs", f"ok at {CORRECT_AT}", "speed-up", *(f"t={t}" for t in SCORE_LEVELS)):
        table.add_column(name, justify="left" if name == "compiler" else "right")
    for name in dict.fromkeys(result.compiler for result in results):
        found = samples(results, baseline, name)
        if not found:
            table.add_row(name, "0", *["-"] * (2 + len(SCORE_LEVELS)))
            continue
        at = scores(found, CORRECT_AT, p, b)
        values = [f"{scores(found, t, p, b).ES:.3f}" for t in SCORE_LEVELS]
        table.add_row(name, str(len(found)), f"{at.lam:.1%}", f"{at.alpha:.3f}", *values)
    return table


def graph_table(graphs: Iterable[Graph]) -> Table:
    """One line per graph."""
    table = Table()
    for name in ("id", "name", "subset", "tier", "operators", "parameters", "GFLOP", "framework"):
        table.add_column(name, justify="right" if name in ("operators", "parameters", "GFLOP") else "left")
    for graph in graphs:
        table.add_row(
            graph.graph_id, graph.name, graph.domain, graph.tier or "", f"{graph.operator_count or 0:,}",
            f"{graph.parameters or 0:,}", f"{(graph.flops or 0) / 1e9:.3f}", graph.framework,
        )  # fmt: skip
    return table


def graph_card(graph: Graph, path: Path) -> Table:
    """Everything that a reader wants to know of one graph."""
    table = Table(title=str(path), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    operators = sorted(graph.operator_distribution.items(), key=lambda item: -item[1])
    inputs = [f"{item.name}: {item.dtype}[{', '.join(map(str, item.shape))}]" for item in graph.inputs]
    dims = [f"{name} = {dim.min}..{dim.max}, default {dim.default}" for name, dim in graph.dims.items()]
    cost = (
        f"{(graph.flops or 0) / 1e9:.4g} GFLOP, {(graph.bytes or 0) / 1e6:.4g} MB, "
        f"{graph.arithmetic_intensity or 0:.3g} FLOP/byte, compute intensity {graph.compute_intensity or 0:.2f}"
    )
    rows = {
        "name": f"{graph.name} {graph.graph_id}".strip(),
        "source": f"{graph.framework}; {graph.source.package} {graph.source.model} ({graph.source.license})",
        "subset, tier": f"{graph.domain}, {graph.tier}",
        "inputs": "\n".join(inputs),
        "dimensions": "\n".join(dims),
        "outputs": ", ".join(graph.outputs),
        "operators": f"{graph.operator_count}: " + ", ".join(f"{name} {count}" for name, count in operators[:12]),
        "parameters": f"{graph.parameters or 0:,}",
        "cost": cost,
        "unknown cost": ", ".join(f"{name} {count}" for name, count in graph.unknown_cost.items()),
        "structure hash": graph.stored_hash or "",
    }
    for label, value in rows.items():
        if value:
            table.add_row(label, value)
    return table


def compiler_table() -> Table:
    """Each known compiler with its packages' versions, or what to install."""
    table = Table()
    for name in ("compiler", "packages", "state"):
        table.add_column(name)
    for name in compilers.names():
        try:
            found = compilers.get(name)
            table.add_row(name, ", ".join(f"{k} {v}" for k, v in compilers.versions(found).items()), "ready")
        except GraphNetError as error:
            table.add_row(name, "", str(error))
    return table
