"""Derived metadata: computed from the graph, stored in it, and checked against it."""

from __future__ import annotations

from typing import Any

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir import cost, structure
from graphnet.ir.graph import Graph

_APPROXIMATE = 1e-9


def finalize(graph: Graph) -> Graph:
    """The graph with every derived field filled: input_shapes, counts, costs, intensities, tier and hash."""
    return msgspec.structs.replace(graph, **derived(graph))


def refresh(graph: Graph, original: Graph) -> Graph:
    """`finalize` where the original graph has its metadata; else `graph` as it is."""
    if original.operator_count is None and original.stored_hash is None:
        return graph
    return finalize(graph)


def derived(graph: Graph) -> dict[str, Any]:
    """Every derived field by attribute name. Sources: the format page (counts, tier) and the metrics page (costs)."""
    total = cost.graph_cost(graph)
    count = cost.operator_count(graph)
    return {
        "input_shapes": tuple(item.shape for item in graph.inputs),
        "operator_count": count,
        "operator_distribution": cost.distribution(graph),
        "parameters": cost.parameters(graph),
        "flops": total.flops,
        "bytes": total.bytes,
        "unknown_cost": dict(total.unknown),
        "arithmetic_intensity": total.arithmetic_intensity,
        "compute_intensity": total.compute_intensity,
        "tier": cost.tier(count),
        "stored_hash": structure.structure_hash(graph),
    }


def check_metadata(graph: Graph) -> None:
    """Compare every stored derived field with its value computed anew.

    Raises GraphFormatError naming both values. A graph that was never finalized, and a number that is not stored, are
    not compared.
    """
    finalized = graph.operator_count is not None or graph.stored_hash is not None
    for field, computed in derived(graph).items():
        stored = getattr(graph, field)
        if stored is None or (not finalized and stored in ((), {})):
            continue
        if not _equal(stored, computed):
            name = {"stored_hash": "structure_hash"}.get(field, field)
            raise GraphFormatError(f"stored {stored!r}, but the graph gives {computed!r}", where=f"$.{name}")


def check(graph: Graph) -> None:
    """Everything `graphnet verify` asks: the metadata, the operators against ONNX, the shapes inferred anew.

    Raises GraphFormatError.
    """
    check_types(graph)
    check_metadata(graph)


def check_types(graph: Graph) -> None:
    """Operators and attributes against ONNX, dtypes and shapes against their inference. Raises GraphFormatError."""
    from graphnet.ir.onnx_bridge.check import check_operators, check_shapes

    check_operators(graph)
    check_shapes(graph)


def _equal(stored: Any, computed: Any) -> bool:
    if isinstance(stored, float) and isinstance(computed, float):
        return abs(stored - computed) <= _APPROXIMATE * max(abs(stored), abs(computed))
    return bool(stored == computed)
