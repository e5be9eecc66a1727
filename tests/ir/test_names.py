"""Node names: unnamed and repeated ones are replaced, stated ones are kept."""

from __future__ import annotations

import msgspec

from graphnet.ir.graph import Body, Graph, Input, Node, Value, bodies, walk
from graphnet.ir.names import name_nodes


def _graph(*names: str) -> Graph:
    """A chain of Relu on x, one node per name."""
    nodes = tuple(Node(op="Relu", name=name, inputs=(f"v{i}",), outputs=(f"v{i + 1}",)) for i, name in enumerate(names))
    return Graph(
        name="chain", inputs=(Input(name="v0", dtype="float32", shape=(2,)),), outputs=(f"v{len(names)}",),
        nodes=nodes, values={node.outputs[0]: Value(dtype="float32", shape=(2,)) for node in nodes},
    )  # fmt: skip


def test_unnamed_nodes_get_operator_and_position() -> None:
    assert [node.name for node in name_nodes(_graph("", "a", "")).nodes] == ["Relu_0", "a", "Relu_2"]


def test_stated_names_are_never_taken_by_others() -> None:
    assert [node.name for node in name_nodes(_graph("", "Relu_0", "Relu_0_1")).nodes] == [
        "Relu_0_2", "Relu_0", "Relu_0_1",
    ]  # fmt: skip


def test_named_graphs_are_returned_as_they_are() -> None:
    graph = _graph("a", "b")
    assert name_nodes(graph) is graph


def test_a_name_is_used_once_over_all_nested_graphs() -> None:
    inner = Body(outputs=("t",), values={"t": Value(dtype="float32", shape=(2,))},
                 nodes=(Node(op="Neg", name="b", inputs=("v0",), outputs=("t",)),))  # fmt: skip
    graph = _graph("a", "b")
    chosen = msgspec.structs.replace(graph.nodes[0], op="If", inputs=("c",), attrs={"then_branch": inner})
    named = name_nodes(msgspec.structs.replace(graph, nodes=(chosen, graph.nodes[1])))
    names = [node.name for node in walk(named)]
    assert len(set(names)) == 3
    assert names[0] == "a"
    [(_, body)] = bodies(named.nodes[0])
    assert body.nodes[0].outputs == ("t",)
