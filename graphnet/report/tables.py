"""Tables for the terminal (rich). Data goes in as `Text`: rich reads a plain `str` as markup, `[3, 224]` included."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from statistics import median

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphnet.analyze.frame import CORRECT_AT, covered_share, samples
from graphnet.analyze.groups import Settings, by_column, by_settings, key
from graphnet.analyze.pairs import speedup
from graphnet.analyze.score import scores
from graphnet.analyze.stats import geometric_mean
from graphnet.errors import UsageError
from graphnet.evaluate.probe import Probe
from graphnet.evaluate.records import CompileTime, Environment, Result
from graphnet.ir.graph import Graph
from graphnet.report.floor_text import floor_lines
from graphnet.report.grid import BASELINE, LEGEND, grid

SCORE_LEVELS = (-6, -5, -3, 0, 1, 2, 3)
RESOLVED = "resolved: speed-ups whose 95 % interval leaves out 1, of all graphs that are ok on both"


def summary_table(
    results: Sequence[Result], baseline: str = BASELINE, environments: Sequence[Environment] = ()
) -> Group:  # fmt: skip
    """Graphs by compilers, a table for each group of settings: median latency with its speed-up, or the verdict.

    Below stands what the signs mean, and the noise floors that `environments` have of the machines.
    """
    groups = by_settings(results)
    tables: list[RenderableType] = []
    for settings, mine in groups.items():
        columns, rows = grid(mine, baseline, environments)
        title = f"Median latency in ms (speed-up over {baseline}), or the verdict"
        table = Table(title=_titled(title, settings, groups), title_justify="left")
        table.add_column("graph")
        for name in columns:
            table.add_column(Text(name), justify="right")
        for label, cells in rows:
            table.add_row(Text(label), *(Text(cell.text, style="red" if cell.failed else "") for cell in cells))
        tables.append(table)
    return Group(*tables, Text(LEGEND), floor_text(results, environments))


def floor_text(results: Sequence[Result], environments: Sequence[Environment]) -> Text:
    """The noise floors of the machines that results are from."""
    return Text("\n".join(floor_lines(results, environments)))


def verdict_table(results: Sequence[Result]) -> Table:
    """Compilers by verdicts, with the share that is ok and the geometric mean of compile time.

    Of warm compilation, where there was some, the mean is over graphs that were compiled both ways, and so is that of
    the cold one beside it.
    """
    verdicts = list(dict.fromkeys(result.verdict for result in results))
    warm = any(result.warm_compile for result in results)
    columns = ("compile cold (s)", "compile warm (s)", "cache") if warm else ("compile time (s)",)
    table = Table(title="Verdicts", title_justify="left")
    for name in ("compiler", *verdicts, "ok share", *columns):
        table.add_column(name, justify="left" if name == "compiler" else "right")
    for name, mine in by_column(results).items():
        counts = [sum(result.verdict == verdict for result in mine) for verdict in verdicts]
        share = sum(result.verdict == "ok" for result in mine) / len(mine)
        cells = _compile_cells(mine) if warm else [_mean_seconds([result.compile for result in mine])]
        table.add_row(Text(name), *map(str, counts), f"{share:.1%}", *map(Text, cells))
    return table


def _compile_cells(results: Sequence[Result]) -> list[str]:
    """Means of cold and warm compilation over the graphs that have both, and the library's policy of caching."""
    both = [result for result in results if result.compile and result.warm_compile]
    policies = dict.fromkeys(str(result.settings.get("compile_cache", "unknown")) for result in both)
    return [
        _mean_seconds([result.compile for result in both]),
        _mean_seconds([result.warm_compile for result in both]),
        ", ".join(policies) or "-",
    ]


def _mean_seconds(times: Sequence[CompileTime | None]) -> str:
    totals = [time.total_s for time in times if time and time.total_s > 0]
    return f"{geometric_mean(totals):.2f}" if totals else "-"


def coverage_table(results: Sequence[Result]) -> Table | None:
    """How much of the end-to-end time the profiled kernels add up to, by compiler; None where nothing was profiled.

    Above 100 % on a machine that was busier while profiling, or where a profiler slows what it measures.
    """
    table = Table(title="Kernel times over end-to-end time", title_justify="left")
    for name in ("compiler", "graphs", "median", "lowest", "highest", "median with GraphIR nodes"):
        table.add_column(name, justify="left" if name == "compiler" else "right")
    for name, mine in by_column(results).items():
        shares = [share for result in mine if (share := covered_share(result)) is not None]
        named = [share for result in mine if (share := covered_share(result, only_named=True)) is not None]
        if shares:
            figures = (median(shares), min(shares), max(shares), median(named))
            table.add_row(Text(name), str(len(shares)), *(f"{share:.0%}" for share in figures))
    return table if table.row_count else None


def score_table(
    results: Sequence[Result], baseline: str, p: float, b: float, environments: Sequence[Environment] = ()
) -> Group:  # fmt: skip
    """S(t) and ES(t) of each compiler over the baseline, with the geometric mean speed-up of its correct graphs.

    Left out are graphs for which the baseline has no latency under the same settings. Resolved are speed-ups whose
    95 % interval, widened by the noise floors that `environments` have, leaves out 1.

    A table for each group of settings. Raises UsageError: nothing to compare with.
    """
    present = sorted({result.compiler for result in results})
    if baseline not in present:
        raise UsageError(f"no results of the baseline '{baseline}'; there are some of: {', '.join(present) or 'none'}")
    groups = by_settings(results)
    title = f"Scores over {baseline} (p={p:g}, b={b:g}); S(t) for t <= 0, ES(t) for t > 0"
    tables = [
        _scores_of(mine, _titled(title, settings, groups), baseline, (p, b), environments)
        for settings, mine in groups.items()
    ]
    return Group(*tables, Text(RESOLVED), floor_text(results, environments))


def _scores_of(
    results: Sequence[Result],
    title: Text,
    baseline: str,
    penalties: tuple[float, float],
    environments: Sequence[Environment],
) -> Table:
    table = Table(title=title, title_justify="left")
    levels = [f"t={t}" for t in SCORE_LEVELS]
    for name in ("compiler", "graphs", "left out", f"ok at {CORRECT_AT}", "speed-up", "resolved", *levels):
        table.add_column(name, justify="left" if name == "compiler" else "right")
    base = [result for result in results if result.compiler == baseline]
    for name, mine in by_column(results).items():
        found = samples(base, mine)
        if not found:
            table.add_row(Text(name), "0", str(len(mine)), *["-"] * (3 + len(SCORE_LEVELS)))
            continue
        at = scores(found, CORRECT_AT, *penalties)
        values = [f"{scores(found, t, *penalties).ES:.3f}" for t in SCORE_LEVELS]
        left_out = str(len(mine) - len(found))
        resolved = _resolved(base, mine, environments)
        table.add_row(Text(name), str(len(found)), left_out, f"{at.lam:.1%}", f"{at.alpha:.3f}", resolved, *values)
    return table


def _resolved(base: Sequence[Result], results: Sequence[Result], environments: Sequence[Environment]) -> str:
    """How many speed-ups of how many are resolved: `12/15`; `-` for the baseline itself."""
    bases = {key(result): result for result in base}
    pairs = [(bases[key(result)], result) for result in results if key(result) in bases]
    found = [ratio for one, other in pairs if one is not other and (ratio := speedup(one, other, environments))]
    return f"{sum(ratio.resolved for ratio in found)}/{len(found)}" if found else "-"


def _titled(title: str, settings: Settings, groups: Collection[Settings]) -> Text:
    return Text(f"{title}\n{settings}" if len(groups) > 1 else title)


def graph_table(graphs: Iterable[Graph]) -> Table:
    """One line per graph."""
    table = Table()
    for name in ("id", "name", "subset", "tier", "operators", "parameters", "GFLOP", "framework"):
        table.add_column(name, justify="right" if name in ("operators", "parameters", "GFLOP") else "left")
    for graph in graphs:
        cells = (
            graph.graph_id, graph.name, graph.domain, graph.tier or "", f"{graph.operator_count or 0:,}",
            f"{graph.parameters or 0:,}", f"{(graph.flops or 0) / 1e9:.3f}", graph.framework,
        )  # fmt: skip
        table.add_row(*map(Text, cells))
    return table


def graph_card(graph: Graph, path: Path) -> Table:
    """Everything that a reader wants to know of one graph."""
    table = Table(title=Text(str(path)), title_justify="left", show_header=False)
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
            table.add_row(label, Text(value))
    return table


def compiler_table(probes: Iterable[Probe]) -> Group:
    """Each compiler with versions and devices that are here, then what is absent and how to get it."""
    table = Table()
    for name in ("compiler", "packages", "devices here", "variants"):
        table.add_column(name)
    absent = []
    for found in probes:
        packages = ", ".join(f"{package} {version}" for package, version in found.versions.items())
        here = ", ".join(device for device, problem in found.devices.items() if not problem)
        variants = ", ".join(f":{variant}" for variant in found.variants)
        table.add_row(Text(found.compiler), Text(packages or "-"), Text(here or "-"), Text(variants))
        absent += [f"{found.compiler}: {found.problem}"] if found.problem else []
        absent += [f"{found.compiler} on {device}: {why}" for device, why in found.devices.items() if why]
    return Group(table, *([Text("Not here:"), *(Text(f"  {line}") for line in absent)] if absent else []))
