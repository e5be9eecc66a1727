"""JSON Schema of the graph format, generated from the types."""

from __future__ import annotations

from typing import Any

import msgspec

from graphnet.ir.graph import FORMAT, Graph


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a graph file. What it cannot say (order, names, counts) `validate` checks."""
    (_, definitions) = msgspec.json.schema_components((Graph,), ref_template="#/$defs/{name}")
    root = definitions.pop("Graph")
    root["required"] = sorted({*root["required"], "format", "outputs"})
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": FORMAT,
        "title": f"GraphNet graph file, format {FORMAT}",
        **{key: value for key, value in root.items() if key != "title"},
        "$defs": dict(sorted(definitions.items())),
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return plain
