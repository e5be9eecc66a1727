"""The regression gate's report as JSON, format `graphnet-gate/1`."""

from __future__ import annotations

from typing import Any

import msgspec

from graphnet.analyze.regression import Gate, Row
from graphnet.report.gate_words import OUTCOMES

FORMAT = "graphnet-gate/1"


def gate_json(found: Gate) -> bytes:
    """Everything that the other forms show, in full precision; seconds, ratios of performance."""
    content = {
        "format": FORMAT,
        "outcome": found.outcome,
        "meaning": OUTCOMES[found.outcome],
        "threshold": found.threshold,
        "compared": found.compared,
        "means": found.means,
        "unlike": found.unlike,
        "notes": found.notes,
        "rows": [_row(row) for row in found.rows],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _row(row: Row) -> dict[str, Any]:
    known, change, live = row.pair.known, row.change, row.live
    return {
        "status": row.status, "failed": row.failed, "graph": known.graph, "graph_id": known.graph_id,
        "compiler": known.compiler, "conditions": row.pair.conditions, "threshold": row.threshold,
        "baseline_s": row.before_s, "current_s": row.after_s, "q": row.q, "note": row.note,
        "change": change and change._asdict(), "live": live and live._asdict(),
    }  # fmt: skip
