"""What all forms of the regression gate's report say alike."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from graphnet.analyze.regression import Gate, Live, Row, Status
from graphnet.analyze.slower import Change

OUTCOMES = ("passed", "regression", "could not measure")
HOW = (
    "Ratio: performance of the current run over that of the baseline (below 1 is slower), with a 95 % interval that"
    " the machine's noise floor widens; q: chance that a pair is called slower by mistake, adjusted for their number."
)


def headline(found: Gate) -> str:
    """`regression: 1 regressed, 1 missing, 40 passed; 41 pairs compared`."""
    if found.refused:
        return f"{OUTCOMES[2]}: the environments are unlike"
    counts = Counter(row.status for row in found.rows)
    told = ", ".join(f"{counts[status]} {status}" for status in get_args(Status) if counts[status])
    return f"{OUTCOMES[found.outcome]}: {told or 'no results at all'}; {found.compared} compared"


def advice(found: Gate) -> list[str]:
    """What a reader must know besides: notes, unlike environments and what to do about them."""
    lines = [f"unlike {item.what}: {item.values[0]} in the baseline, {item.values[1]} now" for item in found.unlike]
    if found.refused:
        lines.append("make a baseline in this environment, or compare all the same by --allow-environment-change")
    elif not found.compared:
        lines.append("no graph that worked in the baseline was measured now: look at names, sizes and settings")
    return [*lines, *found.notes]


def means(found: Gate) -> list[str]:
    """`geometric mean of the ratios of all compilers: 0.998 (40 pairs in both sets)`."""
    return [
        f"geometric mean of the ratios of {mean.compiler or 'all compilers'}: {mean.ratio:.3f}"
        f" ({mean.count} pair{'' if mean.count == 1 else 's'} in both sets)"
        for mean in found.means
    ]


def graph_name(row: Row) -> str:
    """Name of the graph, with what tells its rows apart."""
    return ", ".join(filter(None, (row.pair.known.graph, row.pair.conditions)))


def ratio(found: Change | Live | None) -> str:
    """`0.950 [0.930, 0.970]`, without the interval where there is none; `-` without a ratio."""
    if found is None or found.ratio is None:
        return "-"
    interval = "" if found.low is None or found.high is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.ratio:.3f}{interval}"


def milliseconds(seconds: float | None) -> str:
    """`12.35`, or `-`."""
    return "-" if seconds is None else f"{seconds * 1e3:.4g}"


def q_text(row: Row) -> str:
    """`0.012`, or `-`."""
    return "-" if row.q is None else f"{row.q:.2g}"


HEADINGS = (
    "status",
    "graph",
    "compiler",
    "baseline ms",
    "current ms",
    "ratio",
    "threshold",
    "q",
    "taking turns",
    "note",
)


def cells(row: Row) -> tuple[str, ...]:
    """One text for each of the HEADINGS."""
    return (
        row.status, graph_name(row), row.pair.known.compiler, milliseconds(row.before_s), milliseconds(row.after_s),
        ratio(row.change), f"{row.threshold:g}", q_text(row), ratio(row.live), row.note,
    )  # fmt: skip
