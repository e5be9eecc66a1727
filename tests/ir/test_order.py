"""Node orders by comparison with brute force over all permutations of small graphs."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.errors import GraphFormatError
from graphnet.ir import order
from graphnet.ir.graph import Body, Graph, Node


def node(name: str, *inputs: str, **attrs: Body) -> Node:
    return Node(op="Op", name=name, inputs=inputs, outputs=(name,), attrs=dict(attrs))


@st.composite
def nodes(draw: st.DrawFn, cyclic: bool = False) -> list[Node]:
    count = draw(st.integers(1, 5))
    made = []
    for index in range(count):
        sources = range(count) if cyclic else range(index)
        reads = draw(st.lists(st.sampled_from([*sources]), max_size=3)) if sources else []
        made.append(node(f"n{index}", "x", *(f"n{source}" for source in reads)))
    return made


def is_legal(sequence: tuple[Node, ...]) -> bool:
    made = {"x"}
    for item in sequence:
        if not made.issuperset(item.inputs):
            return False
        made.update(item.outputs)
    return True


@given(nodes(), st.randoms(use_true_random=False), st.integers(0, 99))
def test_every_order_is_legal_and_seeds_repeat(made: list[Node], shuffle: st.DataObject, seed: int) -> None:
    shuffle.shuffle(made)  # type: ignore[attr-defined]
    assert is_legal(order.sort_nodes(made))
    drawn = order.topological(made, seed)
    assert is_legal(tuple(made[index] for index in drawn))
    assert drawn == order.topological(made, seed)


@given(nodes())
def test_a_sorted_list_stays_and_drawing_reaches_every_order(made: list[Node]) -> None:
    assert order.sort_nodes(made) == tuple(made)
    legal = {tuple(item.name for item in sequence) for sequence in permutations(made) if is_legal(sequence)}
    if len(legal) <= 6:
        drawn = {tuple(made[index].name for index in order.topological(made, seed)) for seed in range(150)}
        assert drawn == legal


@given(nodes(cyclic=True))
def test_cycles_by_brute_force(made: list[Node]) -> None:
    found = order.cycle(made)
    if any(is_legal(sequence) for sequence in permutations(made)):
        assert found == []
        return
    reads = {item.name: item.inputs for item in made}
    assert found[0] == found[-1]
    assert all(first in reads[second] for first, second in pairwise(found))
    with pytest.raises(GraphFormatError, match="cycle: n"):
        order.topological(made)


def test_names_that_nested_graphs_read() -> None:
    inner = Body(nodes=(node("i", "deep", "o"),), outputs=("i",))
    body = Body(nodes=(node("o", "far"), node("p", "q", inner=inner)), outputs=("p", "direct"))
    assert order.free_names(inner) == ["deep", "o"]
    assert order.free_names(body) == ["far", "q", "deep", "direct"]
    made = [node("far"), node("deep"), node("q"), node("direct"), node("user", "q", body=body)]
    assert order.predecessors(made) == [[], [], [], [], [2, 0, 1, 3]]
    assert [item.name for item in order.sort_nodes(made[::-1])] == ["direct", "q", "deep", "far", "user"]


def test_a_long_cycle_is_shortened() -> None:
    made = [node(f"n{index}", f"n{(index - 1) % 1000}") for index in range(1000)]
    found = order.cycle(made)
    assert len(found) == 9
    assert "..." in found
    assert order.defined_at(Graph(name="g", nodes=tuple(made)), "n3") == "'n3'"


def test_a_chain_of_100000_nodes_does_not_recurse() -> None:
    made = [node("n0", "x"), *(node(f"n{index}", f"n{index - 1}") for index in range(1, 100_000))]
    assert order.cycle(made) == []
    assert order.topological(made[::-1]) == list(range(99_999, -1, -1))
