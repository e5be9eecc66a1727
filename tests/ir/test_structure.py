"""The structure hash: blind to names and order, and to nothing else; brute-force isomorphism on small graphs."""

from __future__ import annotations

import random
import re
from itertools import pairwise, permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet.ir import structure
from graphnet.ir.fills import pack
from graphnet.ir.graph import (
    Body,
    Constant,
    Dim,
    FloatAttr,
    Graph,
    Input,
    Node,
    Normal,
    TensorAttr,
    Uniform,
    Value,
    Values,
    Weight,
)  # fmt: skip
from graphnet.ir.structure import structure_hash

F32 = Value(dtype="float32", shape=("n", 4))
NORMAL = Weight(dtype="float32", shape=(4, 4), fill=Normal())


def graph(nodes: list[Node], outputs: tuple[str, ...], weights: dict[str, Weight] | None = None) -> Graph:
    values = {name: F32 for node in nodes for name in node.outputs}
    return Graph(
        name="g",
        dims={"n": Dim(min=1, max=8, default=2)},
        inputs=(Input(name="x", dtype="float32", shape=("n", 4)), Input(name="y", dtype="float32", shape=("n", 4))),
        outputs=outputs,
        weights=weights or {},
        nodes=tuple(nodes),
        values=values,
    )


def node(op: str, inputs: str, output: str, **attrs: Any) -> Node:
    return Node(op=op, name=output, inputs=tuple(inputs.split()), outputs=(output,), attrs=attrs)


BASE = graph(
    [
        node("MatMul", "x w", "a", alpha=1.5, perm=(0, 1)),
        node("Relu", "a", "b"),
        node("Add", "b y", "c"),
        node("Gather", "c i", "d", mode="hard"),
    ],
    ("d", "b"),
    {"w": NORMAL, "i": Weight(dtype="int64", shape=(2,), fill=Values(data=(0, 1)), role="constant")},
)


def with_node(index: int, **changes: Any) -> Graph:
    nodes = list(BASE.nodes)
    nodes[index] = msgspec.structs.replace(nodes[index], **changes)
    return msgspec.structs.replace(BASE, nodes=tuple(nodes))


def with_value(name: str, value: Value) -> Graph:
    return msgspec.structs.replace(BASE, values={**BASE.values, name: value})


def with_weight(name: str, **changes: Any) -> Graph:
    weight = msgspec.structs.replace(BASE.weights[name], **changes)
    return msgspec.structs.replace(BASE, weights={**BASE.weights, name: weight})


CHANGES = {
    "operator": with_node(1, op="Sigmoid"),
    "domain": with_node(1, domain="own"),
    "attribute value": with_node(0, attrs={"alpha": 1.25, "perm": (0, 1)}),
    "attribute kind": with_node(0, attrs={"alpha": 1.5, "perm": (0.0, 1.0)}),
    "attribute order of elements": with_node(0, attrs={"alpha": 1.5, "perm": (1, 0)}),
    "attribute added": with_node(1, attrs={"alpha": 1.5}),
    "infinite attribute": with_node(1, attrs={"alpha": FloatAttr(value="inf")}),
    "wiring": with_node(2, inputs=("a", "y")),
    "operand order": with_node(2, inputs=("y", "b")),
    "input left out": with_node(2, inputs=("b", "", "y")),
    "output left out": with_node(1, outputs=("", "b")),
    "dtype of a value": with_value("a", Value(dtype="float16", shape=("n", 4))),
    "shape of a value": with_value("a", Value(dtype="float32", shape=("n", 5))),
    "expression in a value": with_value("a", Value(dtype="float32", shape=("2*n", 4))),
    "symbol bound": with_value("a", Value(dtype="float32", shape=(2, 4))),
    "output order": msgspec.structs.replace(BASE, outputs=("b", "d")),
    "output dropped": msgspec.structs.replace(BASE, outputs=("d",)),
    "input order": msgspec.structs.replace(BASE, inputs=BASE.inputs[::-1]),
    "input dtype": msgspec.structs.replace(
        BASE, inputs=(BASE.inputs[0], Input(name="y", dtype="float64", shape=("n", 4)))
    ),
    "input added": msgspec.structs.replace(BASE, inputs=(*BASE.inputs, Input(name="z", dtype="bool", shape=()))),
    "weight width": with_weight("w", shape=(4, 8)),
    "weight dtype": with_weight("w", dtype="float16"),
    "constant's content": with_weight("i", fill=Values(data=(0, 2))),
    "constant made random": with_weight("i", fill=Uniform(low=0, high=1)),
    "weight added": msgspec.structs.replace(BASE, weights={**BASE.weights, "v": NORMAL}),
    "node added": msgspec.structs.replace(
        BASE, nodes=(*BASE.nodes, node("Relu", "d", "e")), values={**BASE.values, "e": F32}
    ),
}


def test_every_change_changes_the_hash() -> None:
    hashes = {name: structure_hash(changed) for name, changed in {"base": BASE, **CHANGES}.items()}
    assert len(set(hashes.values())) == len(hashes)
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in hashes.values())


def test_golden_value() -> None:
    """Stored in files: a change of the algorithm must not go unseen."""
    assert structure_hash(BASE) == GOLDEN


def renamed(source: Graph, seed: int) -> Graph:
    """Other names of everything, another legal order of nodes, weights and values."""
    draw = random.Random(seed)
    names = [item.name for item in source.inputs] + list(source.weights) + list(source.values)
    fresh = {name: f"z{draw.random()}" for name in names} | {"": ""}
    symbol = {name: f"s{draw.randrange(10**9)}" for name in source.dims}

    def shape(dims_: tuple[int | str, ...]) -> Any:
        return tuple(dim if isinstance(dim, int) else re.sub(r"\bn\b", symbol["n"], dim) for dim in dims_)

    def rename(node_: Node) -> Node:
        return msgspec.structs.replace(
            node_,
            name=f"q{draw.random()}",
            inputs=tuple(fresh[name] for name in node_.inputs),
            outputs=tuple(fresh[name] for name in node_.outputs),
            attrs=dict(draw.sample(sorted(node_.attrs.items()), len(node_.attrs))),
        )

    order = structure.topological_order(source, seed)
    weights = [(fresh[name], weight) for name, weight in source.weights.items()]
    values = [(fresh[k], Value(dtype=v.dtype, shape=shape(v.shape))) for k, v in source.values.items()]
    draw.shuffle(weights)
    draw.shuffle(values)
    inputs = [msgspec.structs.replace(i, name=fresh[i.name], shape=shape(i.shape)) for i in source.inputs]
    return Graph(
        name="other",
        framework="JAX 1",
        dims={symbol[name]: msgspec.structs.replace(dim, max=99) for name, dim in source.dims.items()},
        inputs=tuple(inputs),
        outputs=tuple(fresh[name] for name in source.outputs),
        weights=dict(weights),
        nodes=tuple(rename(source.nodes[index]) for index in order),
        values=dict(values),
    )


@pytest.mark.parametrize("seed", range(20))
def test_names_order_and_metadata_do_not_matter(seed: int) -> None:
    for source in [BASE, *CHANGES.values()]:
        assert structure_hash(renamed(source, seed)) == structure_hash(source)


def test_random_recipes_inputs_fills_and_floating_weights_do_not_matter() -> None:
    same = [
        with_weight("w", fill=Uniform(low=-1, high=1)),
        with_weight("w", fill=Constant(value=1.0)),
        with_weight("w", role="buffer"),
        msgspec.structs.replace(
            BASE, inputs=(msgspec.structs.replace(BASE.inputs[0], fill=Constant()), BASE.inputs[1])
        ),
    ]
    assert {structure_hash(item) for item in same} == {structure_hash(BASE)}


def test_constants_are_told_apart_by_value_dtype_and_shape_however_written() -> None:
    def divided(fill: Any, dtype: Any = "float32", shape: tuple[int, ...] = (2,)) -> str:
        weight = Weight(dtype=dtype, shape=shape, fill=fill, role="constant")
        return structure_hash(graph([node("Div", "x k", "o")], ("o",), {"k": weight}))

    ones = b"\0\0\x80\x3f\0\0\x80\x3f"
    assert divided(Constant(value=1)) == divided(Values(data=(1.0, 1))) == divided(pack(ones))
    assert divided(Values(data=(1, 2))) == divided(pack(ones[:4] + b"\0\0\0\x40"))
    others = [
        divided(Constant(value=1)),
        divided(Constant(value=2)),
        divided(Values(data=(1, 2))),
        divided(Values(data=(2, 1))),
        divided(Constant(value=1), dtype="float64"),
        divided(Constant(value=1), shape=(2, 1)),
        divided(Constant(value=0.0)),
        divided(Constant(value=-0.0)),
        divided(Constant(value="nan")),
    ]
    assert len(set(others)) == len(others)


def test_direction_of_edges_matters() -> None:
    forward = graph([node("A", "x", "a"), node("B", "a", "b"), node("C", "b", "c")], ("c",))
    backward = graph([node("C", "x", "c"), node("B", "c", "b"), node("A", "b", "a")], ("a",))
    assert structure_hash(forward) != structure_hash(backward)


def test_which_of_two_equal_computations_is_read() -> None:
    """Forward colours alone are the same here."""
    twins = [node("Relu", "x", "a"), node("Relu", "x", "b")]
    own = graph([*twins, node("Add", "a a", "c"), node("Mul", "b b", "d")], ("c", "d"))
    crossed = graph([*twins, node("Add", "a b", "c"), node("Mul", "a b", "d")], ("c", "d"))
    assert structure_hash(own) != structure_hash(crossed)


def test_tied_weights() -> None:
    def three(first: str, second: str, third: str) -> str:
        nodes = [node("A", f"x {first}", "a"), node("B", f"a {second}", "b"), node("C", f"b {third}", "c")]
        return structure_hash(graph(nodes, ("c",), {"u": NORMAL, "v": NORMAL}))

    assert three("u", "u", "v") == three("v", "v", "u")
    assert len({three("u", "u", "v"), three("u", "v", "v"), three("u", "v", "u")}) == 3


def branch(text: str, output: str) -> Body:
    nodes = tuple(node(*item.split(":")) for item in text.split(";"))
    return Body(nodes=nodes, outputs=(output,), values={item.outputs[0]: F32 for item in nodes})


def choose(then: Body, other: Body) -> str:
    nodes = [node("A", "x", "a"), node("B", "y", "b"), node("If", "a", "o", then_branch=then, else_branch=other)]
    return structure_hash(graph(nodes, ("o",)))


def test_nested_graphs() -> None:
    plain = choose(branch("Neg:a:t", "t"), branch("Abs:a:e", "e"))
    assert plain == choose(branch("Neg:a:other", "other"), branch("Abs:a:names", "names"))
    different = [
        plain,
        choose(branch("Abs:a:t", "t"), branch("Neg:a:e", "e")),
        choose(branch("Neg:b:t", "t"), branch("Abs:a:e", "e")),
        choose(branch("Neg:a:t", "t"), branch("Abs:a:e;Abs:e:f", "f")),
        choose(branch("Neg:a:t;Abs:a:u", "t"), branch("Abs:a:e", "e")),
        choose(Body(outputs=("a",)), branch("Abs:a:e", "e")),
        choose(Body(outputs=("b",)), branch("Abs:a:e", "e")),
    ]
    assert len(set(different)) == len(different)


def test_tensor_attributes_by_content() -> None:
    def filled(fill: Any, dtype: Any = "int64") -> str:
        value = TensorAttr(dtype=dtype, shape=(1,), fill=fill)
        return structure_hash(graph([node("ConstantOfShape", "x", "o", value=value)], ("o",)))

    assert filled(Constant(value=3)) == filled(Values(data=(3,)))
    assert len({filled(Constant(value=3)), filled(Constant(value=4)), filled(Constant(value=3), "int32")}) == 3


@st.composite
def small_graphs(draw: st.DrawFn) -> Graph:
    """Up to 5 nodes of one operator over one input: hard for a hash, since only the wiring differs."""
    count = draw(st.integers(1, 5))
    names = ["x"]
    nodes = []
    for index in range(count):
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))
        nodes.append(node("Op", " ".join(reads), f"n{index}"))
        names.append(f"n{index}")
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=2, unique=True))
    return graph(nodes, tuple(outputs))


def isomorphic(first: Graph, second: Graph) -> bool:
    if len(first.nodes) != len(second.nodes):
        return False
    wanted = sorted((item.outputs, item.inputs) for item in second.nodes)
    for names in permutations([item.name for item in second.nodes]):
        to = dict(zip([item.name for item in first.nodes], names, strict=True)) | {"x": "x"}
        moved = sorted(
            (tuple(to[name] for name in item.outputs), tuple(to[name] for name in item.inputs)) for item in first.nodes
        )
        if moved == wanted and tuple(to[name] for name in first.outputs) == second.outputs:
            return True
    return False


@settings(max_examples=300)
@given(small_graphs(), small_graphs())
def test_equal_hash_means_isomorphic_on_small_graphs(first: Graph, second: Graph) -> None:
    assert (structure_hash(first) == structure_hash(second)) == isomorphic(first, second)


def test_all_graphs_of_three_nodes_fall_into_their_isomorphism_classes() -> None:
    """Every graph of three nodes with one or two reads each, all outputs read or not: 1,296 graphs."""
    classes: dict[str, list[Graph]] = {}
    for a in reads(1):
        for b in reads(2):
            for c in reads(3):
                made = graph([node("Op", a, "n0"), node("Op", b, "n1"), node("Op", c, "n2")], ("n2",))
                classes.setdefault(structure_hash(made), []).append(made)
    representatives = [members[0] for members in classes.values()]
    for members in classes.values():
        assert all(isomorphic(members[0], member) for member in members[1:])
    for index, first in enumerate(representatives):
        assert not any(isomorphic(first, second) for second in representatives[index + 1 :])


def reads(count: int) -> list[str]:
    names = ["x", "n0", "n1"][:count]
    return names + [f"{a} {b}" for a in names for b in names]


def test_depth_20_diamonds_are_hashed_in_linear_time() -> None:
    """A chain of `n = n + n` unfolds to 2**2000 paths."""
    nodes = [node("Add", "x x", "n0"), *(node("Add", f"n{i} n{i}", f"n{i + 1}") for i in range(2000))]
    assert len(structure_hash(graph(nodes, ("n2000",)))) == 64


def longest_by_brute_force(source: Graph, cost: dict[str, float]) -> float:
    ends = {"x": 0.0, "y": 0.0}
    for item in source.nodes:
        ends[item.name] = max(ends[name] for name in item.inputs) + cost[item.name]
    return max(ends.values())


@given(small_graphs(), st.lists(st.integers(0, 9), min_size=5, max_size=5))
def test_critical_path(source: Graph, costs: list[int]) -> None:
    cost = {item.name: float(costs[index]) for index, item in enumerate(source.nodes)}
    path = structure.critical_path(source, lambda item: cost[item.name])
    chain = [source.nodes[position] for position in path.positions]
    assert path.length == longest_by_brute_force(source, cost) == sum(cost[item.name] for item in chain)
    assert all(first.outputs[0] in second.inputs for first, second in pairwise(chain))
    assert structure.critical_path(source).length == longest_by_brute_force(source, dict.fromkeys(cost, 1.0))


def test_critical_path_of_nothing() -> None:
    assert structure.critical_path(graph([], ("x",))) == structure.CriticalPath((), 0.0)


GOLDEN = "6529f7a3cc9b4e352dce3e472b39def726391e5ec35b2e07f1feb1076e877b6a"
