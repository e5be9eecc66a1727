"""Programs beside themselves: the pairs that a noise floor is from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from graphnet.analyze.pairs import time_ratio
from graphnet.evaluate.records import Result


def noise_table(pairs: Sequence[tuple[Result, Result]]) -> Table:
    """A row for each pair: ratio with its interval, not widened by any floor; in turns or one after the other."""
    table = Table(title="Programs against themselves", title_justify="left")
    for name in ("compiler", "graph", "timed", "ratio", "95 % interval"):
        table.add_column(name, justify="right" if name in ("ratio", "95 % interval") else "left")
    for base, other in pairs:
        ratio = time_ratio(base, other)
        if ratio is None:
            continue
        interval = "unknown" if ratio.low is None or ratio.high is None else f"[{ratio.low:.3f}, {ratio.high:.3f}]"
        how = "in turns" if ratio.rounds else "one after the other"
        table.add_row(Text(base.compiler), Text(base.graph), how, f"{ratio.value:.3f}", interval)
    return table
