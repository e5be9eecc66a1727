"""What the graphs' own files tell the report: tier, size, and the operator that each kernel's time goes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from graphnet.compilers import Kernel
from graphnet.errors import GraphBindError
from graphnet.ir.cost import node_costs
from graphnet.ir.graph import Graph

OTHER = ""
"""Stands for what is no operator's own time: no operator has this name."""
BALANCE = 10.0
"""FLOP per byte of the reference machine (as in `compute_intensity`)."""


class GraphFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one graph."""

    tier: str
    operators: int | None
    parameters: int | None
    weights: dict[str, tuple[str, float]]
    """Operator of each node, and its time on the reference machine in byte-times: max(flops / 10, bytes)."""


def facts(graphs: Iterable[Graph]) -> dict[str, GraphFacts]:
    """Facts by structure hash, of graphs whose file holds one."""
    return {graph.stored_hash: _facts(graph) for graph in graphs if graph.stored_hash}


def operator_times(kernels: Iterable[Kernel], graph: GraphFacts | None) -> dict[str, float]:
    """Microseconds per inference by operator.

    A kernel's whole time counts for the operator among its nodes that the reference machine would spend the longest on.
    Where it names none of the graph's nodes, it counts for `OTHER`; without a graph, each kernel for its own name.
    """
    times: dict[str, float] = {}
    for kernel in kernels:
        name = _heaviest(kernel, graph.weights) if graph else kernel.name
        times[name] = times.get(name, 0.0) + kernel.total_us
    return times


def _facts(graph: Graph) -> GraphFacts:
    weights = {}
    with suppress(GraphBindError):  # a size that only a run decides: its kernels keep their own names
        for node, cost in node_costs(graph):
            weights[node.name] = (node.op, max((cost.flops or 0) / BALANCE, cost.bytes))
    return GraphFacts(
        tier=graph.tier or "", operators=graph.operator_count, parameters=graph.parameters, weights=weights
    )  # fmt: skip


def _heaviest(kernel: Kernel, weights: Mapping[str, tuple[str, float]]) -> str:
    totals: dict[str, float] = {}
    for node in kernel.nodes:
        if node in weights:
            operator, weight = weights[node]
            totals[operator] = totals.get(operator, 0.0) + weight
    return max(totals, key=lambda operator: totals[operator]) if totals else OTHER
