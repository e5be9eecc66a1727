"""Horizontal fusion: MatMuls of one input by several weights become one wider MatMul and a Split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from graphnet.ir.graph import Graph, Node, Value, Values, Weight
from graphnet.ir.order import sort_nodes


def fuse_parallel_matmuls(graph: Graph) -> Graph:
    """Fuse `x @ W1, x @ W2, ...` into `Split(x @ Concat(W1, W2, ...))` (query, key and value projections).

    A right operand qualifies when it is a rank-2 weight or the Transpose of one, so the fused nodes depend on nothing
    that the originals produce. Every output element is the same dot product as before.
    """
    weights, values = dict(graph.weights), dict(graph.values)
    fused: list[Node] = []
    dropped: set[str] = set()
    for group in _groups(graph):
        fused += _fuse(graph, group, weights, values)
        dropped.update(node.outputs[0] for node in group)
    kept = [node for node in graph.nodes if not node.outputs or node.outputs[0] not in dropped]
    return msgspec.structs.replace(graph, nodes=sort_nodes([*kept, *fused]), weights=weights, values=values)


def _groups(graph: Graph) -> list[list[Node]]:
    from_weight = {
        node.outputs[0] for node in graph.nodes if node.op == "Transpose" and node.inputs[0] in graph.weights
    } | set(graph.weights)
    groups: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.op == "MatMul" and not node.domain and node.inputs[1] in from_weight:
            right = graph.type_of(node.inputs[1])
            if len(right.shape) == 2 and node.inputs[0] not in from_weight:
                groups[node.inputs[0], right.dtype].append(node)
    return [group for group in groups.values() if len(group) > 1]


def _fuse(graph: Graph, group: Sequence[Node], weights: dict[str, Weight], values: dict[str, Value]) -> list[Node]:
    stem = f"fused.{group[0].name or group[0].outputs[0]}"
    rights = tuple(node.inputs[1] for node in group)
    widths = tuple(int(graph.type_of(right).shape[1]) for right in rights)
    depth, dtype = graph.type_of(rights[0]).shape[0], graph.type_of(rights[0]).dtype
    left = graph.type_of(group[0].outputs[0]).shape[:-1]
    packed, product, sizes = f"{stem}.weight", f"{stem}.product", f"{stem}.sizes"
    values[packed] = Value(dtype=dtype, shape=(depth, sum(widths)))
    values[product] = Value(dtype=dtype, shape=(*left, sum(widths)))
    weights[sizes] = Weight(dtype="int64", shape=(len(widths),), fill=Values(data=widths), role="constant")
    outputs = tuple(node.outputs[0] for node in group)
    return [
        Node(op="Concat", name=f"{stem}.concat", inputs=rights, outputs=(packed,), attrs={"axis": 1}),
        Node(op="MatMul", name=f"{stem}.matmul", inputs=(group[0].inputs[0], packed), outputs=(product,)),
        Node(op="Split", name=f"{stem}.split", inputs=(product, sizes), outputs=outputs, attrs={"axis": len(left)}),
    ]
