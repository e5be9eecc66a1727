"""Linear layers back in PyTorch's own form: what the exporter spells Transpose, MatMul, Add is one `F.linear`."""

from __future__ import annotations

from collections import Counter

import msgspec

from graphnet.ir.graph import Graph, Node

DOMAIN = "graphnet.torch"
"""Domain of the one operator `Linear(X, W, B)` that exists between this pass and the table, never in a file."""


def restore_linear(graph: Graph) -> tuple[Graph, dict[str, tuple[str, ...]]]:
    """Replace MatMul(x, Transpose(W)) [+ b] by Linear(x, W[, b]), where W (rank 2) and b (rank 1) are weights.

    The product must have no other use than the sum. The new node bears the name of the node whose value it makes; the
    second result gives the names of the nodes that it stands for.
    """
    uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)
    for node in graph.nodes:
        if any(not isinstance(value, (int, float, str, tuple)) for value in node.attrs.values()):
            uses.update(_captured(node))
    producer = {out: node for node in graph.nodes for out in node.outputs}
    linear: dict[str, Node] = {}
    for node in graph.nodes:
        found = _product(node, graph, producer) if node.op == "MatMul" else None
        if found is not None:
            linear[node.outputs[0]] = found
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.op == "Add" and not node.domain:
            product, bias = _sum(node, graph, linear)
            if product and uses[product] == 1 and product not in absorbed:
                absorbed.add(product)
                linear[node.outputs[0]] = _linear(node, (*linear[product].inputs, bias))
    nodes = tuple(
        linear.get(node.outputs[0], node) if node.outputs else node
        for node in graph.nodes
        if not node.outputs or node.outputs[0] not in absorbed
    )
    covers = {node.name: _stands_for(node, producer) for node in nodes if node.domain == DOMAIN}
    return msgspec.structs.replace(graph, nodes=nodes), covers


def _stands_for(node: Node, producer: dict[str, Node]) -> tuple[str, ...]:
    """Transpose, MatMul and, where there is a bias, Add: found again from the value that the Linear makes."""
    last = producer[node.outputs[0]]
    product = last
    if last.op == "Add":
        product = next(producer[name] for name in last.inputs if name in producer and _reads(producer[name], node))
    names = (producer[product.inputs[1]].name, product.name, last.name)
    return tuple(dict.fromkeys(names))


def _reads(product: Node, linear: Node) -> bool:
    return product.op == "MatMul" and product.inputs[0] == linear.inputs[0]


def _captured(node: Node) -> list[str]:
    from graphnet.ir.graph import bodies, walk

    return [name for _, body in bodies(node) for inner in walk(body) for name in inner.inputs]


def _product(node: Node, graph: Graph, producer: dict[str, Node]) -> Node | None:
    transpose = producer.get(node.inputs[1])
    if node.domain or transpose is None or transpose.op != "Transpose" or transpose.domain:
        return None
    weight = graph.weights.get(transpose.inputs[0])
    if weight is None or len(weight.shape) != 2 or transpose.attrs.get("perm", (1, 0)) != (1, 0):
        return None
    return _linear(node, (node.inputs[0], transpose.inputs[0]))


def _sum(node: Node, graph: Graph, linear: dict[str, Node]) -> tuple[str, str]:
    for product, bias in (node.inputs, node.inputs[::-1]):
        weight = graph.weights.get(bias)
        found = linear.get(product)
        if weight is None or found is None or len(found.inputs) != 2:
            continue
        if weight.shape == graph.weights[found.inputs[1]].shape[:1]:
            return product, bias
    return "", ""


def _linear(node: Node, inputs: tuple[str, ...]) -> Node:
    return Node(op="Linear", name=node.name, inputs=inputs, outputs=node.outputs, domain=DOMAIN)
