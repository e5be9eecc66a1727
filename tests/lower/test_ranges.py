from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet.ir.graph import Constant, Fill, Graph, Input, Node, Uniform, Value, Values, Weight
from graphnet.lower.ranges import nonnegative
from graphnet.lower.table import OpTable, Scope


def scope(*nodes: Node, fill: Fill, dtype: Any = "int64", weights: dict[str, int] | None = None) -> Scope:
    known = {name: np.array([value]) for name, value in (weights or {}).items()}
    graph = Graph(
        name="g",
        inputs=(Input(name="x", dtype=dtype, shape=(3,), fill=fill),),
        weights={name: Weight(dtype="int64", shape=(1,), fill=Constant(value=int(a[0]))) for name, a in known.items()},
        nodes=nodes,
        values={name: Value(dtype="int64", shape=(3,)) for node in nodes for name in node.outputs},
    )
    return Scope(OpTable("test"), graph, {}, known, np.asarray)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (Uniform(low=0, high=9), True),
        (Uniform(low=0, high="nodes-1"), True),
        (Uniform(low=-1, high=9), False),
        (Constant(value=0), True),
        (Constant(value=-2), False),
        (Values(data=(0, 1, 2)), True),
        (Values(data=(0, -1, 2)), False),
    ],
)
def test_inputs_are_as_their_fill_says(fill: Fill, expected: bool) -> None:
    assert nonnegative(scope(fill=fill), "x") is expected


def node(op: str, *inputs: str, outputs: tuple[str, ...] = ("y",)) -> Node:
    return Node(op=op, name=op, inputs=inputs, outputs=outputs)


IDS = Uniform(low=0, high=9)


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Unsqueeze", ("x", "one"), True),
        ("Add", ("x", "one"), True),
        ("Add", ("x", "minus"), False),
        ("Sub", ("x", "one"), False),
        ("Where", ("x", "x", "one"), True),
        ("Where", ("x", "minus", "one"), False),
        ("ArgMax", ("x",), True),
        ("Neg", ("x",), False),
    ],
)
def test_what_operators_hand_on(op: str, inputs: tuple[str, ...], expected: bool) -> None:
    found = scope(node(op, *inputs), fill=IDS, weights={"one": 1, "minus": -1})
    assert nonnegative(found, "y") is expected


def test_positions_of_topk_are_and_its_values_may_not_be() -> None:
    found = scope(node("TopK", "x", "one", outputs=("v", "i")), fill=Uniform(low=-5, high=5), weights={"one": 1})
    assert nonnegative(found, "i")
    assert not nonnegative(found, "v")


def test_unsigned_integers_are_and_floats_are_not() -> None:
    assert nonnegative(scope(fill=Values(data=(1, 2, 3)), dtype="uint8"), "x")
    assert not nonnegative(scope(fill=Values(data=(1, 2, 3)), dtype="float32"), "x")


def test_the_search_ends() -> None:
    chain = [node("Identity", "x" if i == 0 else f"v{i - 1}", outputs=(f"v{i}",)) for i in range(100)]
    assert not nonnegative(scope(*chain, fill=IDS), "v99")
    assert nonnegative(scope(*chain, fill=IDS), "v9")
