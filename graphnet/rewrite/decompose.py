"""Composite operators (Attention, LayerNormalization, Gelu ...) written out in primitives."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir import onnx_bridge
from graphnet.ir.fold import clean
from graphnet.ir.graph import Graph, Input, Node
from graphnet.ir.onnx_bridge.nodes import schema_defaults
from graphnet.rewrite.attention import expand_attention

SEPARATOR = "//"
"""Between the name of a node and those of the nodes that replace it."""


def decompose(graph: Graph, operators: Collection[str], named: Collection[str] = ()) -> Graph:
    """Replace nodes of `operators`, and those of the names `named`, by the function bodies of the ONNX standard.

    Attention has a leaner body of our own. A body that has one of `operators` is expanded too. The new nodes of node
    `n` are called `n//...`, see `origin`. A node that cannot be expanded (no function, a variant that onnx cannot
    inline) stays. `graph` is bound; nested graphs are left as they are.
    """
    nodes: list[Node] = []
    weights, values = dict(graph.weights), dict(graph.values)
    for node in graph.nodes:
        wanted = (node.op in operators or node.name in named) and not node.domain
        body = _body(graph, node) if wanted else None
        if body is None:
            nodes.append(node)
            continue
        body = decompose(body, {*operators} - {node.op})
        nodes += body.nodes
        weights |= body.weights
        values |= body.values
    return msgspec.structs.replace(graph, nodes=tuple(nodes), weights=weights, values=values)


def origin(name: str) -> str:
    """Name of the node that a node came from: itself unless `decompose` made it."""
    return name.partition(SEPARATOR)[0]


def decomposed(graph: Graph, operators: Collection[str], named: Collection[str] = ()) -> str:
    """Operators that `decompose` with these arguments writes out, for a record: `Attention, Gelu`."""
    return ", ".join(sorted({node.op for node in graph.nodes if node.op in operators or node.name in named}))


def _body(graph: Graph, node: Node) -> Graph | None:
    """A graph of the primitives, its names made unique by the node's; None if it cannot be expanded."""
    prefix, outer = f"{node.name}{SEPARATOR}", {*node.inputs, *node.outputs}
    if node.op == "Attention":
        types = [graph.type_of(name) if name else None for name in node.inputs]
        written = expand_attention(node, types)
        if written is not None:
            return _renamed(written, outer, prefix)
    single = _single(graph, node)
    try:
        model = onnx_bridge.expand(onnx_bridge.to_onnx(single), node.op)
        if any(inner.op_type == node.op for inner in model.graph.node):
            return None
        return _renamed(clean(onnx_bridge.from_onnx(model, parameters=(), trusted=True)), outer, prefix)
    except GraphFormatError:  # onnx's inliner cannot leave out an optional input in the middle, or makes a bad body
        return None


def _single(graph: Graph, node: Node) -> Graph:
    """The node as a graph of its own; constants that it reads are part of it, since they may decide shapes."""
    used = [name for name in dict.fromkeys(node.inputs) if name]
    constants = {n: graph.weights[n] for n in used if n in graph.weights and graph.weights[n].role == "constant"}
    types = {name: graph.type_of(name) for name in used if name not in constants}
    node = msgspec.structs.replace(node, attrs={**schema_defaults(node.op), **node.attrs})  # onnx loses the defaults
    outputs = tuple(name for name in node.outputs if name)
    return Graph(
        name="expansion",
        inputs=tuple(Input(name=name, dtype=found.dtype, shape=found.shape) for name, found in types.items()),
        outputs=outputs, weights=constants, nodes=(node,), values={name: graph.type_of(name) for name in outputs},
    )  # fmt: skip


def _renamed(graph: Graph, kept: Collection[str], prefix: str) -> Graph:
    def name(old: str) -> str:
        return old if not old or old in kept else prefix + old

    nodes = tuple(
        msgspec.structs.replace(
            node, name=f"{prefix}{index}.{node.op}", inputs=tuple(map(name, node.inputs)),
            outputs=tuple(map(name, node.outputs)),
        )
        for index, node in enumerate(graph.nodes)
    )  # fmt: skip
    return msgspec.structs.replace(
        graph, nodes=nodes, weights={name(old): weight for old, weight in graph.weights.items()},
        values={name(old): value for old, value in graph.values.items()},
    )  # fmt: skip
