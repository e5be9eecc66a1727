"""The order of nodes: which node needs which, sorting, cycles, random legal orders."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Sequence

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Body, Graph, Node, bodies


def used_names(node: Node) -> Iterator[str]:
    """Names that a node reads, those that its bodies read from the enclosing graphs included; may repeat."""
    yield from (name for name in node.inputs if name)
    for _, body in bodies(node):
        yield from free_names(body)


def free_names(body: Body) -> list[str]:
    """Names that a nested graph reads from the enclosing ones, in order of first use."""
    own = {item.name for item in body.inputs} | body.weights.keys()
    own.update(name for node in body.nodes for name in node.outputs)
    used = [name for node in body.nodes for name in used_names(node)]
    return [name for name in dict.fromkeys([*used, *body.outputs]) if name not in own]


def predecessors(nodes: Sequence[Node]) -> list[list[int]]:
    """For each node the positions of the nodes whose outputs it reads, each once, in order of first use."""
    maker = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    return [list(dict.fromkeys(maker[name] for name in used_names(node) if name in maker)) for node in nodes]


def topological(nodes: Sequence[Node], seed: int | None = None) -> list[int]:
    """Positions of the nodes in a legal order: closest to the given one, or drawn at random from `seed`.

    Raises GraphFormatError naming the nodes of a cycle.
    """
    before = predecessors(nodes)
    after: list[list[int]] = [[] for _ in nodes]
    for index, sources in enumerate(before):
        for source in sources:
            after[source].append(index)
    waiting = [len(sources) for sources in before]
    ready = [index for index, count in enumerate(waiting) if not count]
    take = _smallest(ready) if seed is None else _drawn(ready, random.Random(seed))
    order: list[int] = []
    while ready:
        index = take()
        order.append(index)
        for follower in after[index]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower) if seed is None else ready.append(follower)
    if len(order) < len(nodes):
        raise GraphFormatError(f"cycle: {' -> '.join(cycle(nodes))}", where="$.nodes")
    return order


def sort_nodes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes in the topological order closest to the given one. Raises GraphFormatError for a cycle."""
    return tuple(nodes[index] for index in topological(nodes))


def cycle(nodes: Sequence[Node]) -> list[str]:
    """The nodes of one cycle by name (or operator and position), the first again at the end; empty without a cycle."""
    before = predecessors(nodes)
    done = [0] * len(nodes)  # 1 while on the path from a start, 2 when finished
    for start in range(len(nodes)):
        if done[start]:
            continue
        path, stack = [start], [iter(before[start])]
        done[start] = 1
        while stack:
            index = next(stack[-1], None)
            if index is None:
                done[path.pop()] = 2
                stack.pop()
            elif done[index] == 1:
                found = path[path.index(index) :]
                labels = [nodes[i].name or f"{nodes[i].op} at {i}" for i in reversed(found)]
                shown = labels if len(labels) <= 8 else [*labels[:4], "...", *labels[-3:]]
                return [*shown, shown[0]]
            elif not done[index]:
                done[index] = 1
                path.append(index)
                stack.append(iter(before[index]))
    return []


def defined_at(graph: Graph | Body, name: str) -> str | None:
    """Name or position of the node that makes a value, None if no node of this graph does."""
    for index, node in enumerate(graph.nodes):
        if name in node.outputs:
            return f"'{node.name}'" if node.name else f"number {index}"
    return None


def _smallest(ready: list[int]) -> Callable[[], int]:
    heapq.heapify(ready)
    return lambda: heapq.heappop(ready)


def _drawn(ready: list[int], source: random.Random) -> Callable[[], int]:
    def take() -> int:
        place = source.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return ready.pop()

    return take
