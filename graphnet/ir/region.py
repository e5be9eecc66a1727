"""The cost of groups of nodes that run as one kernel: work of all, traffic only over the group's border."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import msgspec

from graphnet.ir.cost import NodeCost, node_costs, tensor_bytes
from graphnet.ir.cost_rules import PARTIAL_READS, VIEWS
from graphnet.ir.dims import shape_at
from graphnet.ir.graph import Graph, Node, bodies, walk
from graphnet.ir.order import used_names

_CONTROL = frozenset({"If", "Loop", "Scan"})


class RegionCost(msgspec.Struct, frozen=True):
    """Cost of nodes that run as one. None where unknown."""

    flops: int | None = None
    bytes: int | None = None


UNKNOWN = RegionCost()


def region_costs(graph: Graph, regions: Sequence[Collection[str]]) -> list[RegionCost]:
    """Cost of each region, a set of names of nodes of `graph`, at the default sizes.

    FLOPs are the sum over the nodes. Bytes are those of each tensor that crosses the border, once: read from outside
    (weights included), or made inside and read outside or an output of the graph. Views are free, and a view of a
    tensor is that tensor; of an input that only Gather or Slice read, what they take counts.

    Both are None for a region that is empty, that shares a node (other than a view) with another one, or that has a
    node which is not in the outermost graph or whose cost is unknown. Bytes alone are None where an If, Loop or Scan is
    fused with others. Names must be unique (`graphnet.ir.names.name_nodes`).
    Raises GraphBindError for a dimension that has no value at the defaults.
    """
    table = _Table(graph)
    shared = table.shared(regions)
    return [
        UNKNOWN if not names or shared.intersection(map(table.owner, names)) else table.cost(names) for names in regions
    ]


class _Table:
    """Nodes by name with their costs, and who makes and reads each tensor, views looked through."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._costs: dict[str, tuple[Node, NodeCost]] = {n.name: (n, cost) for n, cost in node_costs(graph)}
        self._owner = {
            inner.name: node.name for node in graph.nodes for _, body in bodies(node) for inner in walk(body)
        }
        self._root: dict[str, str] = {}
        self._readers: dict[str, list[str]] = defaultdict(list)
        self._defaults = {name: dim.default for name, dim in graph.dims.items()}
        for node in graph.nodes:
            if _is_view(node):
                if node.op not in ("Shape", "Size"):
                    self._root[node.outputs[0]] = self._rooted(node.inputs[0])
                continue
            for name in self._reads(node):
                self._readers[name].append(node.name)
        self._outputs = {self._rooted(name) for name in graph.outputs}

    def owner(self, name: str) -> str:
        """The node of the outermost graph that a node is, or is nested in."""
        return self._owner.get(name, name)

    def shared(self, regions: Iterable[Collection[str]]) -> set[str]:
        """Nodes of the outermost graph that several regions have a part of."""
        counts = Counter(owner for names in regions for owner in {self.owner(name) for name in names})
        return {name for name, count in counts.items() if count > 1 and not self._is_free(name)}

    def _is_free(self, name: str) -> bool:
        return name in self._costs and _is_view(self._costs[name][0])

    def cost(self, names: Collection[str]) -> RegionCost:
        found = [self._costs.get(name) for name in dict.fromkeys(names)]
        known = [item for item in found if item is not None]
        if len(known) < len(found) or any(cost.flops is None or cost.unknown for _, cost in known):
            return UNKNOWN
        flops = sum(cost.flops or 0 for _, cost in known)
        working = [node for node, _ in known if not _is_view(node)]
        if not any(node.op in _CONTROL and not node.domain for node in working):
            return RegionCost(flops, self._traffic(working))
        return RegionCost(flops, known[0][1].bytes if len(known) == 1 else None)

    def _traffic(self, nodes: Sequence[Node]) -> int:
        inside = {node.name for node in nodes}
        made = {name for node in nodes for name in node.outputs if name}
        read: dict[str, int] = {}
        for node in nodes:
            for name, size in self._read_bytes(node).items():
                if name not in made:
                    read[name] = min(read.get(name, 0) + size, self._bytes(name)) if size else read.get(name, 0)
        written = [name for name in made if name in self._outputs or not inside.issuperset(self._readers[name])]
        return sum(read.values()) + sum(map(self._bytes, written))

    def _read_bytes(self, node: Node) -> dict[str, int]:
        """What a node reads of each tensor: all, or as much as it gives out."""
        sizes = dict.fromkeys(self._reads(node), 0)
        part = PARTIAL_READS.get(node.op) if not node.domain else None
        for index, name in enumerate(node.inputs):
            if name:
                whole = self._bytes(name)
                root = self._rooted(name)
                sizes[root] = max(sizes[root], min(whole, self._bytes(node.outputs[0])) if index == part else whole)
        return sizes

    def _reads(self, node: Node) -> list[str]:
        return list(dict.fromkeys(self._rooted(name) for name in used_names(node)))

    def _rooted(self, name: str) -> str:
        return self._root.get(name, name)

    def _bytes(self, name: str) -> int:
        value = self._graph.type_of(name)
        return tensor_bytes(value.dtype, shape_at(value.shape, self._defaults))


def _is_view(node: Node) -> bool:
    return node.op in VIEWS and not node.domain
