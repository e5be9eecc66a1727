"""What a graph is apart from its names: the structure hash, topological orders, the critical path.

The structure hash is a Weisfeiler-Lehman colouring of the graph whose vertices are inputs, weights and nodes, those of
nested graphs included (a nested graph's outputs are inputs of the node that owns it):

1. each vertex gets a label: operator, domain, attributes, dtype and shape of its outputs (a weight: dtype and shape);
2. forward, in topological order: colour = hash(label, colours of the vertices it reads, in input order, each with the
   output's position there). Equal colours now mean equal computations;
3. backward: colour = hash(colour, sorted colours of its readers, each with both positions, and its places among the
   graph's outputs). This tells apart which of several equal computations is read by whom;
4. 2 and 3 are repeated on the colours while that splits a class further, at most `ROUNDS` times;
5. the result is the hash of the sorted colours.

Not in the hash: names of nodes, values, weights and symbols (symbols are numbered by first appearance in the inputs),
ranges of symbols, fills of inputs, metadata. Elements of a weight are in it where they belong to the computation: in
role `constant`, and in integer, bool and string tensors of every role (shapes, axes, tables), by value, however they
are written. Floating parameters and buffers count by dtype and shape alone: other weights are the same structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir import dims
from graphnet.ir.fills import FLOAT_MAX
from graphnet.ir.graph import (
    Body,
    Bytes,
    Constant,
    Dimension,
    Fill,
    FloatAttr,
    Graph,
    Node,
    Shape,
    TensorAttr,
    Values,
    Weight,
    bodies,
)
from graphnet.ir.memory import paused_collector
from graphnet.ir.order import predecessors, sort_nodes, topological

__all__ = ["CriticalPath", "critical_path", "sort_nodes", "structure_hash", "topological_order"]

ROUNDS = 4
"""Forward and backward passes at most."""
_VERSION = b"graphnet structure 1"
_COLOUR_BYTES = 16
_ABSENT = b"\0" * _COLOUR_BYTES
_encoder = msgspec.json.Encoder(order="sorted")

Edge = tuple[int, bytes]
"""The vertex that is read (-1: an input left out) and the position of its output."""


class CriticalPath(msgspec.Struct, frozen=True):
    """The heaviest chain of nodes, each reading from the one before."""

    positions: tuple[int, ...]
    """Positions in `Graph.nodes`, first to last."""
    length: float
    """Sum of the weights."""


def structure_hash(graph: Graph) -> str:
    """64 hex digits, equal for graphs that differ in names and legal node order only. `graph` must be valid."""
    with paused_collector():
        flat = _Flat(graph)
        colours = flat.labels
        classes = 0
        for _ in range(ROUNDS):
            colours = flat.backward(flat.forward(colours))
            found = len(set(colours))
            if found in (classes, len(colours)):
                break
            classes = found
    return blake2b(_VERSION + b"".join(sorted(colours)), digest_size=32).hexdigest()


def topological_order(graph: Graph, seed: int | None = None) -> list[int]:
    """Positions of the outermost nodes in a legal order: the stored one, or one drawn at random from `seed`.

    Raises GraphFormatError naming the nodes of a cycle.
    """
    return topological(graph.nodes, seed)


def critical_path(graph: Graph, weight: Callable[[Node], float] | None = None) -> CriticalPath:
    """The longest path through the outermost nodes; `weight` of a node is at least 0, and 1 by default.

    Of several longest paths, the one whose nodes come first. The nodes must be in topological order.
    """
    before = predecessors(graph.nodes)
    length: list[float] = []
    previous: list[int] = []
    for index, node in enumerate(graph.nodes):
        best = max(before[index], key=lambda source: (length[source], -source), default=-1)
        length.append((length[best] if best >= 0 else 0.0) + (1.0 if weight is None else weight(node)))
        previous.append(best)
    if not length:
        return CriticalPath((), 0.0)
    index = max(range(len(length)), key=lambda at: (length[at], -at))
    path, total = [index], length[index]
    while previous[index] >= 0:
        index = previous[index]
        path.append(index)
    return CriticalPath(tuple(reversed(path)), total)


class _Flat:
    """A graph and its nested graphs as one list of vertices in topological order."""

    def __init__(self, graph: Graph) -> None:
        self.labels: list[bytes] = []
        self.edges: list[list[Edge]] = []
        self.readers: list[list[Edge]] = []
        self.names: dict[str, Edge] = {}
        self.renamed = _number_symbols(graph)
        self.types: dict[tuple[str, Shape], str] = {}
        outputs = self.add_graph(graph, "graph")
        for position, (vertex, place) in enumerate(outputs):
            self.readers[vertex].append((-1, b"%so%d" % (place, position)))

    def forward(self, labels: list[bytes]) -> list[bytes]:
        colours: list[bytes] = []
        for label, edges in zip(labels, self.edges, strict=True):
            parts = [label]
            for vertex, place in edges:
                parts += (colours[vertex] if vertex >= 0 else _ABSENT, place)
            colours.append(blake2b(b"".join(parts), digest_size=_COLOUR_BYTES).digest())
        return colours

    def backward(self, labels: list[bytes]) -> list[bytes]:
        colours = [b""] * len(labels)
        for at in range(len(labels) - 1, -1, -1):
            readers = [(colours[vertex] if vertex >= 0 else _ABSENT) + place for vertex, place in self.readers[at]]
            readers.sort()
            colours[at] = blake2b(labels[at] + b"|".join(readers), digest_size=_COLOUR_BYTES).digest()
        return colours

    def add_graph(self, graph: Graph | Body, kind: str) -> list[Edge]:
        for position, item in enumerate(graph.inputs):
            self.names[item.name] = self.add([kind, position, self.type(item.dtype, item.shape)], []), b"0"
        for name, weight in graph.weights.items():
            self.names[name] = self.add(["weight", self.type(weight.dtype, weight.shape), _content(weight)], []), b"0"
        for node in graph.nodes:
            self.add_node(node, graph)
        return self.find(graph.outputs)

    def add_node(self, node: Node, graph: Graph | Body) -> None:
        edges = self.find(node.inputs)
        attributes = node.attrs
        if any(isinstance(value, msgspec.Struct) for value in attributes.values()):
            for key, body in sorted(bodies(node)):
                edges.append((-1, b"body"))
                edges += self.add_graph(body, f"input of {key}")
            attributes = {key: _plain(value) for key, value in attributes.items()}  # type: ignore[misc]
        types = []
        for position, name in enumerate(node.outputs):
            if name:
                self.names[name] = len(self.labels), b"%d" % position
                value = graph.values[name]
                types.append(self.types.get((value.dtype, value.shape)) or self.type(value.dtype, value.shape))
            else:
                types.append("")
        self.add([node.domain, node.op, attributes, types], edges)

    def add(self, label: list[object], edges: list[Edge]) -> int:
        vertex = len(self.labels)
        self.labels.append(_encoder.encode(label))
        self.edges.append(edges)
        self.readers.append([])
        for slot, (source, place) in enumerate(edges):
            if source >= 0:
                self.readers[source].append((vertex, b"%s:%d" % (place, slot)))
        return vertex

    def find(self, names: Iterable[str]) -> list[Edge]:
        try:
            return [self.names[name] if name else (-1, b"-") for name in names]
        except KeyError as error:
            raise GraphFormatError(f"name {error} is not defined before it is used") from None

    def type(self, dtype: str, shape: Shape) -> str:
        text = self.types.get((dtype, shape))
        if text is None:
            sizes = [self.size(dim) for dim in shape]
            text = self.types[dtype, shape] = f"{dtype}[{', '.join(sizes)}]"
        return text

    def size(self, dim: Dimension) -> str:
        if isinstance(dim, int):
            return str(dim)
        unknown = dict.fromkeys(dims.symbols(dim) - self.renamed.keys(), "data")
        return str(dims.substitute(dim, {**self.renamed, **unknown}))


def _number_symbols(graph: Graph) -> dict[str, str]:
    """Symbols of the inputs to `d0`, `d1` ...: those that stand alone first, then those in expressions."""
    texts = [dim for item in graph.inputs for dim in item.shape if isinstance(dim, str)]
    texts.sort(key=lambda text: not text.isidentifier())
    found = dict.fromkeys(name for text in texts for name in dims.symbol_order(text))
    return {name: f"d{number}" for number, name in enumerate(found)}


def _content(weight: Weight) -> str:
    literal = weight.role == "constant" or weight.dtype not in FLOAT_MAX
    return _elements(weight.fill, weight.dtype, weight.shape) if literal else ""


def _elements(fill: Fill, dtype: str, shape: tuple[int, ...]) -> str:
    """A digest of exact elements that does not depend on how they are written, else the kind of the recipe."""
    from graphnet.ir.tensors import fill_array

    if not isinstance(fill, (Constant, Values, Bytes)):
        return "random" if type(fill).__name__ in ("Normal", "Uniform") else "file"
    if isinstance(fill, Values) and dtype == "string":
        return _digest(_encoder.encode(fill.data))
    if isinstance(fill, Constant):
        return "all " + fill_array(fill, dtype, (), "").tobytes().hex()
    array = fill_array(fill, dtype, shape, "")
    data = array.tobytes()
    first = data[: array.itemsize]
    if first * array.size == data and data:
        return "all " + first.hex()
    return _digest(data) if data else ""


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_COLOUR_BYTES).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Body):
        return "body"
    if isinstance(value, TensorAttr):
        return [value.dtype, value.shape, _elements(value.fill, value.dtype, value.shape)]
    return ["float", value.value] if isinstance(value, FloatAttr) else value
