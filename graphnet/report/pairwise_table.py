"""Each two compilers or variants beside each other: the ratio of their times, graph by graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from rich.table import Table
from rich.text import Text

from graphnet.analyze.frame import latency
from graphnet.analyze.groups import by_column, key
from graphnet.analyze.pairs import Ratio, floor_of, time_ratio
from graphnet.analyze.stats import geometric_mean
from graphnet.evaluate.records import Environment, Result
from graphnet.report.grid import labels


def pairwise_table(results: Sequence[Result], environments: Sequence[Environment] = ()) -> Table:
    """A row for each graph and pair that is `ok` on both sides; a pair's geometric mean over its graphs follows."""
    table = Table(title="Time of the second over that of the first, with 95 % interval", title_justify="left")
    for name in ("first", "second", "graph", "ratio", "interval", "rounds", ""):
        table.add_column(name, justify="right" if name in ("ratio", "rounds") else "left")
    names = labels(results)
    columns = {column: {key(result): result for result in mine} for column, mine in by_column(results).items()}
    for (first, mine), (second, theirs) in combinations(columns.items(), 2):
        found: list[Ratio] = []
        for row, label in names.items():
            ratio = _ratio(mine.get(row), theirs.get(row), environments)
            if ratio:
                found.append(ratio)
                table.add_row(Text(first), Text(second), Text(label), *_cells(ratio))
        if len(found) > 1:
            mean = f"{geometric_mean([ratio.value for ratio in found]):.3f}"
            table.add_row(Text(first), Text(second), Text(f"geometric mean of {len(found)}", style="bold"), mean)
    return table


def _ratio(base: Result | None, other: Result | None, environments: Sequence[Environment]) -> Ratio | None:
    if base is None or other is None or latency(base) is None or latency(other) is None:
        return None
    return time_ratio(base, other, floor_of(other, environments))


def _cells(ratio: Ratio) -> tuple[str, str, str, str]:
    interval = "unknown" if ratio.low is None or ratio.high is None else f"[{ratio.low:.3f}, {ratio.high:.3f}]"
    verdict = "" if ratio.resolved else "may be none"
    return f"{ratio.value:.3f}", interval, str(ratio.rounds) if ratio.rounds else "not in turns", verdict
