"""Operators that IREE's ONNX front end cannot lower, said with others that it can."""

from __future__ import annotations

import msgspec
import numpy as np

from graphnet.ir.graph import Graph, Node, Shape, Value, Values, Weight
from graphnet.rewrite.decompose import SEPARATOR


def mend(graph: Graph) -> tuple[Graph, str]:
    """The graph with such nodes replaced, and which operators they were; the new nodes of node `n` are `n//...`."""
    nodes: list[Node] = []
    weights, values = dict(graph.weights), dict(graph.values)
    mended: set[str] = set()
    for node in graph.nodes:
        if node.op == "ScatterElements" and node.attrs.get("reduction") in ("min", "max"):
            mended.add(f"ScatterElements ({node.attrs['reduction']})")
            nodes += _scatter_nd(graph, node, weights, values)
        else:
            nodes.append(node)
    written = msgspec.structs.replace(graph, nodes=tuple(nodes), weights=weights, values=values)
    return written, ", ".join(sorted(mended))


def _scatter_nd(graph: Graph, node: Node, weights: dict[str, Weight], values: dict[str, Value]) -> list[Node]:
    """ScatterND with the same reduction.

    Where one index was spread over a row, whole rows are scattered; else each index is completed by its own place on
    the other axes.
    """
    data, indices, updates = node.inputs
    shape = tuple(int(size) for size in graph.type_of(indices).shape)
    given = node.attrs.get("axis", 0)
    axis = int(given if isinstance(given, int) else 0) % len(shape)
    prefix = f"{node.name}{SEPARATOR}"

    def literal(name: str, array: np.ndarray) -> str:
        fill = Values(data=tuple(array.reshape(-1).tolist()))
        weights[prefix + name] = Weight(dtype="int64", shape=array.shape, fill=fill, role="constant")
        return prefix + name

    def add(op: str, name: str, inputs: tuple[str, ...], sizes: Shape, **attrs: int) -> Node:
        values[prefix + name] = Value(dtype="int64", shape=sizes)
        return Node(op=op, name=prefix + name, inputs=inputs, outputs=(prefix + name,), attrs=dict(attrs))

    rows = _spread(graph, indices) if axis == 0 and shape[1:] == graph.type_of(data).shape[1:] else ""
    made = [add("Cast", "wide", (rows or indices,), graph.type_of(rows or indices).shape, to=7)]
    if rows:
        column = literal("column", np.array([shape[0], 1]))
        made.append(add("Reshape", "full", (prefix + "wide", column), (shape[0], 1)))
    else:
        places = np.moveaxis(np.indices(shape), 0, -1)
        made.append(add("Unsqueeze", "column", (prefix + "wide", literal("last", np.array([-1]))), (*shape, 1)))
        parts = [literal("before", places[..., :axis])] if axis else []
        parts.append(prefix + "column")
        parts += [literal("after", places[..., axis + 1 :])] if axis + 1 < len(shape) else []
        made.append(add("Concat", "full", tuple(parts), (*shape, len(shape)), axis=-1))
    scatter = Node(
        op="ScatterND", name=f"{prefix}ScatterND", inputs=(data, prefix + "full", updates), outputs=node.outputs,
        attrs={"reduction": node.attrs["reduction"]},
    )  # fmt: skip
    return [*made, scatter]


def _spread(graph: Graph, indices: str) -> str:
    """The value with one index a row that `indices` repeats over the row, `""` if there is none."""
    maker = next((node for node in graph.nodes if indices in node.outputs), None)
    if maker is None or maker.op != "Expand":
        return ""
    source, spread = graph.type_of(maker.inputs[0]).shape, graph.type_of(indices).shape
    narrow = len(source) == len(spread) and source[0] == spread[0] and all(size == 1 for size in source[1:])
    return maker.inputs[0] if narrow else ""
