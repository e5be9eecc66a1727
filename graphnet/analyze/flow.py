"""Natural loops of a control-flow graph, found by dominators (Cooper, Harvey, Kennedy 2001)."""

from __future__ import annotations

from collections.abc import Sequence

Edges = Sequence[Sequence[int]]
"""For each block the blocks that may come next; block 0 is the entry."""


def innermost_loops(edges: Edges) -> list[set[int]]:
    """Blocks of each natural loop that holds no other loop."""
    loops = natural_loops(edges)
    return [
        body for header, body in loops.items() if not any(other in body for other in loops if other != header)
    ]  # fmt: skip


def loop_blocks(edges: Edges) -> set[int]:
    """Blocks that are in any natural loop."""
    return {block for body in natural_loops(edges).values() for block in body}


def natural_loops(edges: Edges) -> dict[int, set[int]]:
    """Loop bodies by header: an edge to a block that dominates its source closes one; a header has one."""
    above = dominators(edges)
    before = _predecessors(edges)
    loops: dict[int, set[int]] = {}
    for source, targets in enumerate(edges):
        for header in targets:
            if _dominates(above, header, source):
                body = loops.setdefault(header, {header})
                stack = [source]
                while stack:
                    block = stack.pop()
                    if block not in body:
                        body.add(block)
                        stack.extend(before[block])
    return loops


def dominators(edges: Edges) -> list[int]:
    """Immediate dominator of each block; -1 for those with none (entries).

    Blocks that nothing leads to (targets of a jump table, handlers of exceptions) are entries too.
    """
    before = _predecessors(edges)
    order = _postorder(edges, before)
    rank = {block: place for place, block in enumerate(order)}
    root = len(edges)  # stands before every entry
    rank[root] = len(order)
    above = {root: root}
    roots = _roots(edges, before)
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            found = root if block in roots else -1
            for source in before[block]:
                if source in above:
                    found = source if found == -1 else _common(found, source, above, rank)
            if above.get(block) != found:
                above[block], changed = found, True
    return [-1 if above[block] == root else above[block] for block in range(len(edges))]


def _common(left: int, right: int, above: dict[int, int], rank: dict[int, int]) -> int:
    while left != right:
        while rank[left] < rank[right]:
            left = above[left]
        while rank[right] < rank[left]:
            right = above[right]
    return left


def _dominates(above: Sequence[int], upper: int, block: int) -> bool:
    while block not in (upper, -1):
        block = above[block]
    return block == upper


def _predecessors(edges: Edges) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in edges]
    for source, targets in enumerate(edges):
        for target in targets:
            before[target].append(source)
    return before


def _roots(edges: Edges, before: Sequence[Sequence[int]]) -> list[int]:
    """The entry, blocks without predecessors, and one block of each cycle that these do not reach."""
    seen: set[int] = set()
    found = []
    candidates = [0, *(block for block in range(len(edges)) if not before[block]), *range(len(edges))]
    for block in candidates if edges else []:
        if block not in seen:
            found.append(block)
            _visit(block, edges, seen, [])
    return found


def _postorder(edges: Edges, before: Sequence[Sequence[int]]) -> list[int]:
    seen: set[int] = set()
    order: list[int] = []
    for block in _roots(edges, before):
        _visit(block, edges, seen, order)
    return order


def _visit(start: int, edges: Edges, seen: set[int], order: list[int]) -> None:
    """Append what can be reached and was not seen, successors before their predecessors where there is no cycle."""
    seen.add(start)
    stack = [(start, iter(edges[start]))]
    while stack:
        block, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(edges[following])))
