"""Node names for reports: each node of a graph and of its nested graphs gets one of its own."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from graphnet.ir.graph import Body, Graph, Node, bodies, walk

_G = TypeVar("_G", Graph, Body)


def name_nodes(graph: Graph) -> Graph:
    """The graph with a name for every unnamed node (`<op>_<position>`) and no name used twice, bodies included.

    Files may leave names out and reuse a node's name in another nested graph; what measures nodes may not. Earlier
    nodes keep their names. The graph itself is returned where there is nothing to do.
    """
    names = [node.name for node in walk(graph)]
    if all(names) and len(set(names)) == len(names):
        return graph
    return _Namer(set(names)).graph(graph)


class _Namer:
    def __init__(self, stated: set[str]) -> None:
        self._stated, self._given = stated, set[str]()

    def graph(self, graph: _G) -> _G:
        return msgspec.structs.replace(graph, nodes=tuple(self._node(node, i) for i, node in enumerate(graph.nodes)))

    def _node(self, node: Node, position: int) -> Node:
        stem = node.name or f"{node.op}_{position}"
        name, count = stem, 0
        while name in self._given or (name in self._stated and name != node.name):
            count += 1
            name = f"{stem}_{count}"
        self._given.add(name)
        attrs = {**node.attrs, **{key: self.graph(body) for key, body in bodies(node)}}
        return msgspec.structs.replace(node, name=name, attrs=attrs)
