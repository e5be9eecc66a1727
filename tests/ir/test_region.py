"""Costs of fused nodes, counted by hand: FLOPs of all, bytes only over the border."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet.ir import cost
from graphnet.ir.cost_rules import PARTIAL_READS, VIEWS
from graphnet.ir.graph import Graph, walk
from graphnet.ir.names import name_nodes
from graphnet.ir.region import RegionCost, region_costs
from tests.ir.test_cost import graph_of

BENCHMARK = Path(__file__).parents[2] / "benchmark"


def of(text: str, *regions: str, **weights: tuple[int, ...]) -> list[tuple[int | None, int | None]]:
    """(FLOPs, bytes) of regions, each given as the values that its nodes make: `a b` is the nodes of a and b."""
    graph = name_nodes(graph_of(text, **weights))
    maker = {out: node.name for node in graph.nodes for out in node.outputs}
    found = region_costs(graph, [[maker[value] for value in region.split()] for region in regions])
    return [(item.flops, item.bytes) for item in found]


CHAIN = "g (float[4, 8] x) => (float[4, 16] y) { h = MatMul(x, w) s = Add(h, b) y = Relu(s) }"


def test_a_fused_chain_reads_and_writes_its_border_only() -> None:
    [fused] = of(CHAIN, "h s y", w=(8, 16), b=(16,))
    assert fused == (2 * 4 * 8 * 16 + 64 + 64, 4 * (32 + 128 + 16 + 64))
    product, rest = of(CHAIN, "h", "s y", w=(8, 16), b=(16,))
    assert product == (1024, 4 * (32 + 128 + 64))
    assert rest == (128, 4 * (64 + 16 + 64))


def test_what_is_read_outside_is_written_and_read_once() -> None:
    text = "g (float[8] x) => (float[8] y) { a = Exp(x) b = Mul(a, x) c = Add(a, b) y = Sub(c, a) }"
    assert of(text, "a b", "c y") == [(16, 4 * (8 + 8 + 8)), (16, 4 * (8 + 8 + 8))]


def test_an_output_of_the_graph_is_written_even_where_it_is_also_read_inside() -> None:
    text = "g (float[8] x) => (float[8] a, float[8] y) { a = Exp(x) y = Neg(a) }"
    assert of(text, "a y") == [(16, 4 * (8 + 8 + 8))]


def test_an_output_that_nothing_reads_is_not_written() -> None:
    text = "g (float[6] x) => (float[2] y) { y, i = TopK <axis = 0> (x, k) }"
    graph = "<int64[1] k = {2}>"
    assert of(text.replace(" {", f" {graph} {{"), "y") == [(0, 24 + 8 + 8)]


def test_a_view_is_the_tensor_that_it_shows() -> None:
    """The tensor and its reshape are one read; a view between two regions is a border for what it shows."""
    text = """g (float[8] x) => (float[2, 4] y) <int64[2] s = {2, 4}> {
        a = Exp(x) v = Reshape(a, s) u = Reshape(x, s) y = Add(v, u) }"""
    assert of(text, "a", "y") == [(8, 64), (8, 4 * (8 + 8 + 8))]
    assert of(text, "a v u y") == [(16, 4 * (8 + 8))]
    assert of(text, "v") == [(0, 0)]


def test_an_output_through_a_view_is_written() -> None:
    text = "g (float[8] x) => (float[2, 4] y) <int64[2] s = {2, 4}> { a = Exp(x) y = Reshape(a, s) }"
    assert of(text, "a") == [(8, 64)]


def test_rows_of_a_table_are_read_not_the_table() -> None:
    text = "g (int64[2] i, int64[3] j) => (float[2, 4] y, float[3, 4] z) { y = Gather(w, i) z = Gather(w, j) }"
    assert of(text, "y z", w=(1000, 4)) == [(0, 16 + 24 + 2 * (32 + 48))]
    assert of(text, "y z", w=(4, 4))[0][1] == 16 + 24 + 64 + (32 + 48), "never more than all of it"
    both = "g (int64[2] i) => (float[2, 4] y, float[9, 4] z) { y = Gather(w, i) z = Neg(w) }"
    assert of(both, "y z", w=(9, 4)) == [(36, 16 + 144 + 32 + 144)]


def test_a_node_of_two_kernels_has_no_cost_in_either() -> None:
    assert of(CHAIN, "h s", "s y", w=(8, 16), b=(16,)) == [(None, None), (None, None)]
    assert of(CHAIN, "h s", "y", "y", w=(8, 16), b=(16,))[0] == (1088, 4 * (32 + 128 + 16 + 64))
    text = "g (float[8] x) => (float[8] y) { v = Identity(x) a = Exp(v) y = Neg(v) }"
    assert of(text, "v a", "v y") == [(8, 64 - 32), (8, 64)], "views are free and may be shared; nothing reads a"


def test_unknown_names_operators_and_nothing() -> None:
    graph = graph_of("""g (float[1, 6, 4] b, float[1, 1, 6] s) => (int64[n, 3] y, float[6] z) {
        y = NonMaxSuppression(b, s) z = Exp(o) }""", o=(6,))  # fmt: skip
    graph = name_nodes(graph)
    names = [node.name for node in graph.nodes]
    unknown = RegionCost(None, None)
    assert region_costs(graph, [names[:1], ["no such node"], [], names[1:]]) == [
        unknown, unknown, unknown, RegionCost(6, 48),
    ]  # fmt: skip


LOOP = """g (float[2] x) => (float[2] y) <int64 n = {5}> {
    z = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t) {
        c2 = Identity(c) t = Add(s, s) }>
    y = Exp(z) }"""


def test_a_loop_alone_costs_its_trips() -> None:
    assert of(LOOP, "z", "y") == [(10, 5 * 16), (2, 16)]
    assert of(LOOP, "z y") == [(12, None)]


def test_a_part_of_a_loop_has_no_cost() -> None:
    graph = name_nodes(graph_of(LOOP))
    inner = [node.name for node in walk(graph) if node.op == "Add"]
    assert region_costs(graph, [inner]) == [RegionCost()]
    outer = [node.name for node in graph.nodes if node.op == "Loop"]
    assert region_costs(graph, [inner, outer]) == [RegionCost(), RegionCost()]


@pytest.mark.parametrize("name", ["vision/resnet18", "transformer/distilbert", "graph/gcn"])
def test_every_node_alone_and_all_together(name: str) -> None:
    """Alone, a node costs what `node_costs` says; together they read inputs and weights and write the outputs."""
    graph = name_nodes(Graph.load(BENCHMARK / f"{name}.json")).bind()
    costs = list(cost.node_costs(graph))
    alone = region_costs(graph, [[node.name] for node, _ in costs])
    for (node, expected), found in zip(costs, alone, strict=True):
        assert found.flops == expected.flops
        assert found.bytes == expected.bytes or _shows_one_tensor_twice(node.op, found, expected), node.name
    [together] = region_costs(graph, [[node.name for node, _ in costs]])
    assert together.flops == cost.graph_cost(graph).flops
    readers = [node for node in graph.nodes if node.op not in VIEWS and node.op not in PARTIAL_READS]
    sizes = {name: cost.tensor_bytes(item.dtype, item.shape) for name, item in graph.weights.items()}
    read = {name for node in readers for name in node.inputs if name in sizes}
    assert together.bytes is not None
    assert sum(sizes[name] for name in read) <= together.bytes < sum(item.bytes for _, item in costs)


def _shows_one_tensor_twice(op: str, found: RegionCost, expected: cost.NodeCost) -> bool:
    return op == "Attention" and found.bytes is not None and found.bytes < expected.bytes
