"""Rewrites that keep, and that change, what a graph computes."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.evaluate.equivalence import difference, first_difference
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight

replace = msgspec.structs.replace


def floats(*items: float) -> np.ndarray:
    return np.array(items, np.float64)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def chain(*operators: str) -> Graph:
    """x plus a weight, then unary operators `v0`, `v1` ... in a row."""
    nodes = [Node(op="Add", name="add", inputs=("x", "w"), outputs=("v",))]
    for index, operator in enumerate(operators):
        before = nodes[-1].outputs[0]
        nodes.append(Node(op=operator, name=f"n{index}", inputs=(before,), outputs=(f"v{index}",)))
    return Graph(
        name="chain", inputs=(Input(name="x", dtype="float32", shape=(3, 4)),), outputs=(nodes[-1].outputs[0],),
        weights={"w": Weight(dtype="float32", shape=(4,), fill=Normal(), stream=0)}, nodes=tuple(nodes),
        values={node.outputs[0]: Value(dtype="float32", shape=(3, 4)) for node in nodes},
    )  # fmt: skip


def compare(*states: Graph) -> str:
    reference = compilers.get("reference")
    reference.configure(Target())
    names = [f"p{index}" for index in range(1, len(states))]
    return first_difference(reference, states, names, Target(), seed=1)


def test_equal_graphs_agree() -> None:
    graph = chain("Tanh", "Abs", "Relu")
    assert compare(graph, chain("Tanh", "Abs", "Abs"), graph) == ""


def test_the_pass_and_the_first_wrong_node_are_named() -> None:
    graph = chain("Tanh", "Abs", "Sqrt")
    assert compare(graph, graph, chain("Sin", "Abs", "Sqrt")).startswith(
        "pass 'p2' changes the results: value 'v0' of node 'n0' (Sin) differs by up to 0."
    )


def test_an_intermediate_state_is_checked_too() -> None:
    """pytorch#190764: the first and the last state agree, the one between does not."""
    graph = chain("Tanh", "Abs", "Abs")
    assert "pass 'p1'" in compare(graph, chain("Tanh", "Sin", "Abs"), graph)


def test_a_difference_of_float32_round_off_shows() -> None:
    graph = chain("Tanh")
    scaled = Node(op="Mul", name="scale", inputs=("v", "c"), outputs=("u",))
    weights = {**graph.weights, "c": Weight(dtype="float64", shape=(), fill=Normal(mean=1 + 1e-7, std=0.0))}
    other = replace(
        graph, nodes=(graph.nodes[0], scaled, replace(graph.nodes[1], inputs=("u",))), weights=weights,
        values={**graph.values, "u": Value(dtype="float32", shape=(3, 4))},
    )  # fmt: skip
    assert "value 'v0' of node 'n0' (Tanh) differs by" in compare(graph, other)


@pytest.mark.parametrize(
    ("value", "expected", "words"),
    [
        (floats(1, 2), floats(1, 2 + 1e-12), ""),
        (floats(0, 1e6), floats(1e-5, 1e6), ""),
        (floats(0, 1), floats(1e-5, 1), "differs by up to 1e-05, its largest element was 1"),
        (floats(np.nan, 1), floats(np.nan, 1), ""),
        (floats(np.inf, 1), floats(-np.inf, 1), "NaN or infinite in other places"),
        (floats(np.nan, 1), floats(0, 1), "NaN or infinite in other places"),
        (ints(1, 2), ints(1, 3), "has 1 of 2 elements changed"),
        (ints(1), floats(1), r"is int64\[1\], was float64\[1\]"),
    ],
)
def test_differences(value: np.ndarray, expected: np.ndarray, words: str) -> None:
    found = difference(value, expected)
    assert (found == "") == (words == "")
    assert re.search(words, found)
