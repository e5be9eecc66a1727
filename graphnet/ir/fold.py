"""Clean-up of captured graphs: constants and shape arithmetic folded, no-ops and dead nodes dropped, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from graphnet.ir import order
from graphnet.ir.graph import (
    Body,
    Bytes,
    Constant,
    Dimension,
    Graph,
    Node,
    Normal,
    Uniform,
    Value,
    Values,
    Weight,
    bodies,
    walk,
)
from graphnet.ir.onnx_bridge import declared_types, used_dims
from graphnet.ir.onnx_bridge.inference import Inference, Scope
from graphnet.ir.onnx_bridge.nodes import attributes_with_defaults, schema_defaults
from graphnet.ir.onnx_bridge.read import Declared, unique_name
from graphnet.ir.onnx_bridge.tensors import fill_of, tensor_type
from graphnet.ir.symbolic import at_least, sub

_FULL = 1 << 31
"""An end of a slice from which on exporters mean `to the end`."""


def clean(graph: Graph) -> Graph:
    """The same function without what capture left behind; idempotent, linear in the number of nodes.

    Folded: whatever follows from literals and shapes alone (never from a parameter or a buffer). Dropped: Identity,
    Cast to the same dtype, Dropout in inference, Reshape, Expand, Slice, Transpose ... that change nothing, a literal
    bias of zeros that an exporter added to a convolution, attributes at their default, dead nodes, unused weights and
    equal constants. A Reshape to symbolic sizes gets `0` and `-1` where that says the same. An If with a known
    condition becomes its branch. Nothing is fused. Raises GraphFormatError for an invalid graph.
    """
    return rewrite(graph, declared_types(graph))


def rewrite(graph: Graph, declared: Mapping[str, Declared]) -> Graph:
    """`clean` with given types to fall back on."""
    cleaner = _Cleaner(graph)
    nodes, outputs, scope = Inference(graph, declared, cleaner).run(graph)
    values = {name: scope.types[name] for node in nodes for name in node.outputs if name}
    done = msgspec.structs.replace(
        graph, nodes=tuple(nodes), outputs=outputs, weights=_with_their_data(graph, scope.weights), values=values
    )
    return msgspec.structs.replace(done, dims=used_dims(done))


def _with_their_data(graph: Graph, weights: Mapping[str, Weight]) -> dict[str, Weight]:
    """The weights, each random one that is at another position now with the stream of its old one."""
    before = {name: position for position, name in enumerate(graph.weights)}
    result = {}
    for position, (name, weight) in enumerate(weights.items()):
        moved = before.get(name, position) != position
        if moved and weight.stream is None and isinstance(weight.fill, Normal | Uniform):
            weight = msgspec.structs.replace(weight, stream=before[name])
        result[name] = weight
    return result


class _Cleaner:
    """The rewriter: judges each node once its types and data are known."""

    def __init__(self, graph: Graph) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._node_names = {node.name for node in walk(graph)}
        self._node_counts: dict[str, int] = {}
        self._used: set[str] = set(graph.outputs)
        self._collect(graph)

    def _collect(self, graph: Graph | Body) -> None:
        self._taken.update(item.name for item in graph.inputs)
        self._taken.update(graph.weights)
        self._used.update(graph.outputs)
        for node in graph.nodes:
            self._taken.update(node.outputs)
            self._used.update(node.inputs)
            for _, body in bodies(node):
                self._collect(body)

    def prepare(self, node: Node, scope: Scope) -> Node:
        """The node with present names, without defaults and exporters' artefacts; see Rewriter."""
        inputs = tuple(scope.alias(name) if name else "" for name in node.inputs)
        attrs = node.attrs if node.domain else _without_defaults(node)
        op = node.op
        if op == "CastLike" and len(inputs) == 2 and not node.domain:
            target = scope.type_of(inputs[1])
            if target is not None:
                kept = {key: value for key, value in attrs.items() if key == "saturate"}
                op, inputs, attrs = "Cast", inputs[:1], {"to": tensor_type(target.dtype), **kept}
        elif op in ("Conv", "ConvTranspose") and len(inputs) > 2 and _is_zero(inputs[2], scope) and not node.domain:
            inputs = inputs[:2]
        if inputs == node.inputs and attrs is node.attrs:
            return node
        return msgspec.structs.replace(node, op=op, inputs=inputs, attrs=attrs)

    def node(self, node: Node, scope: Scope) -> Sequence[Node]:
        """The nodes that replace one; see Rewriter."""
        if node.domain:
            return (node,)
        if node.op == "Reshape":
            node = self._with_target(node, _reshape_target(node, scope), scope)
        elif node.op == "Expand":
            node = self._with_target(node, _expand_target(node, scope), scope)
        if node.op == "If":
            known = scope.known(node.inputs[0])
            if known is not None and known.size == 1:
                branch = node.attrs["then_branch" if known.reshape(-1)[0] else "else_branch"]
                assert isinstance(branch, Body)
                return self._inlined(node, branch, scope)
        is_output = not scope.outputs.isdisjoint(node.outputs)
        same = _same_as(node, scope, self._used)
        if same is not None:
            if is_output:
                return (msgspec.structs.replace(node, op="Identity", inputs=(same,), attrs={}),)
            scope.aliases[node.outputs[0]] = same
            known = scope.known(same)
            if known is not None:
                scope.data[node.outputs[0]] = known
            return ()
        if not is_output and all(_is_folded(name, scope) for name in node.outputs if name):
            return ()
        return (node,)

    def finish(self, graph: Graph | Body, nodes: list[Node], scope: Scope) -> tuple[list[Node], tuple[str, ...]]:
        """Folded names become weights, dead nodes and unused weights go, equal constants become one."""
        nodes = _without_output_copies(nodes, graph.outputs)
        live, used = _live(nodes, graph.outputs)
        for name in used:
            if name in scope.data and name not in scope.weights and _is_folded(name, scope):
                type_ = scope.types[name]
                shape = tuple(scope.data[name].shape)
                fill = fill_of(scope.data[name], type_.dtype)
                scope.weights[name] = Weight(dtype=type_.dtype, shape=shape, fill=fill, role="constant")
        made = {name for node in live for name in node.outputs}
        kept: dict[str, Weight] = {}
        first: dict[object, str] = {}
        replaced: dict[str, str] = {}
        for name, weight in scope.weights.items():
            if name not in used or name in made:
                continue
            if weight.role == "constant" and isinstance(weight.fill, Constant | Values | Bytes):
                # The encoded elements, since 0.0 == -0.0 and 1 == True.
                same = first.setdefault((weight.dtype, weight.shape, msgspec.msgpack.encode(weight.fill)), name)
                if same != name:
                    replaced[name] = same
                    continue
            kept[name] = weight
        scope.weights.clear()
        scope.weights.update(kept)
        if replaced:
            live = [_with_names(node, replaced) for node in live]
        return live, graph.outputs

    def _with_target(self, node: Node, target: list[int] | None, scope: Scope) -> Node:
        if target is None:
            return node
        name = unique_name(f"{node.outputs[0]}_shape", self._taken, self._counts)
        scope.types[name] = Value(dtype="int64", shape=(len(target),))
        scope.data[name] = np.array(target, np.int64)
        return msgspec.structs.replace(node, inputs=(node.inputs[0], name), attrs={})

    def _inlined(self, node: Node, branch: Body, scope: Scope) -> Sequence[Node]:
        """The nodes of a branch in place of the If, its outputs under the If's names."""
        defined = [*branch.weights, *(name for inner in branch.nodes for name in inner.outputs if name)]
        names = {name: unique_name(f"{node.outputs[0]}_{name}", self._taken, self._counts) for name in defined}
        copies = []
        for inner, outer in zip(branch.outputs, node.outputs, strict=False):
            made_inside = inner in branch.values and names[inner] not in node.outputs
            if made_inside:
                names[inner] = outer
            elif outer:
                copies.append((names.get(inner, inner), outer))
        for name, weight in branch.weights.items():
            scope.weights[names[name]] = weight
            scope.types[names[name]] = Value(dtype=weight.dtype, shape=weight.shape)
        for name, value in branch.values.items():
            scope.types[names[name]] = value
        nodes: list[Node] = []
        for inlined in branch.nodes:
            label = unique_name(inlined.name or inlined.op, self._node_names, self._node_counts)
            renamed = msgspec.structs.replace(_with_names(inlined, names), name=label)
            nodes += self.node(self.prepare(renamed, scope), scope)
        for source, outer in copies:
            type_ = scope.type_of(source)
            assert type_ is not None
            scope.types[outer] = type_
            label = unique_name(f"{node.name}_copy", self._node_names, self._node_counts)
            copy = Node(op="Identity", name=label, inputs=(source,), outputs=(outer,))
            nodes += self.node(copy, scope)
        return nodes


def _with_names(node: Node, names: Mapping[str, str]) -> Node:
    """The node, and its nested graphs, with names replaced."""
    attrs = node.attrs
    if any(isinstance(value, Body) for value in attrs.values()):
        attrs = {key: _body_names(value, names) if isinstance(value, Body) else value for key, value in attrs.items()}
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    if inputs == node.inputs and outputs == node.outputs and attrs is node.attrs:
        return node
    return msgspec.structs.replace(node, inputs=inputs, outputs=outputs, attrs=attrs)


def _body_names(body: Body, names: Mapping[str, str]) -> Body:
    own = {item.name for item in body.inputs} | set(body.weights) | set(body.values)
    outer = {name: to for name, to in names.items() if name not in own}
    return msgspec.structs.replace(
        body,
        nodes=tuple(_with_names(node, outer) for node in body.nodes),
        outputs=tuple(outer.get(name, name) for name in body.outputs),
    )


def _is_folded(name: str, scope: Scope) -> bool:
    data = scope.data.get(name)
    return data is not None and (data.dtype != object or scope.types[name].dtype == "string")


def _is_zero(name: str, scope: Scope) -> bool:
    data = scope.known(name, 1 << 20) if name else None
    return data is not None and data.dtype != object and not np.any(data)


def _without_defaults(node: Node) -> dict[str, Any]:
    defaults = schema_defaults(node.op)
    if not any(key in defaults and defaults[key] == value for key, value in node.attrs.items()):
        return node.attrs
    return {key: value for key, value in node.attrs.items() if not (key in defaults and defaults[key] == value)}


def _same_as(node: Node, scope: Scope, used: set[str]) -> str | None:
    """The input that the node's only used output always equals, if it is such a node."""
    if not node.inputs or not node.inputs[0] or not node.outputs or any(name in used for name in node.outputs[1:]):
        return None
    source, result = scope.type_of(node.inputs[0]), scope.type_of(node.outputs[0])
    if source is None or result is None or source != result:
        return None
    attrs = attributes_with_defaults(node)
    match node.op:
        case "Identity" | "Cast" | "Expand":
            return node.inputs[0]
        case "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze":
            return node.inputs[0]
        case "Dropout":
            training = scope.known(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else np.False_
            return node.inputs[0] if training is not None and not np.any(training) else None
        case "Transpose":
            perm = attrs.get("perm", tuple(reversed(range(len(source.shape)))))
            return node.inputs[0] if tuple(perm) == tuple(range(len(source.shape))) else None
        case "Concat" | "Sum" | "Max" | "Min" | "Mean":
            return node.inputs[0] if len(node.inputs) == 1 else None
        case "Slice":
            return node.inputs[0] if _takes_all(node, source, scope) else None
        case "Pad":
            pads = scope.known(node.inputs[1])
            return node.inputs[0] if pads is not None and pads.dtype != object and not pads.any() else None
    return None


def _takes_all(node: Node, source: Value, scope: Scope) -> bool:
    """Whether a Slice starts at 0, ends at or beyond the end and steps by 1 on every axis it names."""
    given = [scope.known(name) if name else None for name in node.inputs[1:]]
    starts, ends, axes, steps = [*given, None, None][:4]
    if starts is None or ends is None or (len(node.inputs) > 4 and steps is None and node.inputs[4]):
        return False
    if len(node.inputs) > 3 and node.inputs[3] and axes is None:
        return False
    if steps is not None and any(step != 1 for step in steps.reshape(-1)):
        return False
    chosen = axes.reshape(-1).tolist() if axes is not None else list(range(starts.size))
    for start, end, axis in zip(starts.reshape(-1), ends.reshape(-1), chosen, strict=True):
        if start != 0 or not isinstance(axis, int):
            return False
        wanted: Dimension = end if isinstance(end, str) else int(end)
        if not (wanted == source.shape[axis] or _reaches(wanted, source.shape[axis])):
            return False
    return True


def _reaches(end: Dimension, size: Dimension) -> bool:
    return (isinstance(end, int) and end >= _FULL - 1) or at_least(sub(end, size), 0)


def _reshape_target(node: Node, scope: Scope) -> list[int] | None:
    """A literal target that says the same for every size: `0` copies a dimension, one `-1` takes the rest."""
    source, result = scope.type_of(node.inputs[0]), scope.type_of(node.outputs[0])
    if source is None or result is None:
        return None
    known = scope.known(node.inputs[1])
    if known is not None and known.dtype != object:
        plain = bool(node.attrs.get("allowzero")) and np.all(known != 0)
        return [int(size) for size in known] if plain else None
    if all(isinstance(dim, int) for dim in result.shape):
        return [int(dim) for dim in result.shape] if 0 not in result.shape else None
    target: list[int] = []
    for index, dim in enumerate(result.shape):
        if isinstance(dim, int):
            target.append(dim if dim else -2)
        elif index < len(source.shape) and source.shape[index] == dim:
            target.append(0)
        else:
            target.append(-1)
    return target if target.count(-1) <= 1 and -2 not in target else None


def _expand_target(node: Node, scope: Scope) -> list[int] | None:
    """A literal target that says the same for every size: `1` keeps a dimension."""
    source, result = scope.type_of(node.inputs[0]), scope.type_of(node.outputs[0])
    known = scope.known(node.inputs[1])
    if source is None or result is None or (known is not None and known.dtype != object):
        return None
    own = (None,) * (len(result.shape) - len(source.shape)) + tuple(source.shape)
    target = [
        dim if isinstance(dim, int) else 1 if dim == mine else None for dim, mine in zip(result.shape, own, strict=True)
    ]
    literal = [dim for dim in target if dim is not None]
    return literal if len(literal) == len(target) else None


def _without_output_copies(nodes: list[Node], outputs: Sequence[str]) -> list[Node]:
    """Identity nodes that only name an output go: the node before makes the output under its name."""
    makers = {name for node in nodes for name in node.outputs}
    final = set(outputs)
    names: dict[str, str] = {}
    dropped = set()
    for node in nodes:
        if node.op != "Identity" or node.domain or node.outputs[0] not in final:
            continue
        source = node.inputs[0]
        if source in makers and source not in final and source not in names:
            names[source] = node.outputs[0]
            dropped.add(node.outputs[0])
    if not names:
        return nodes
    kept = [node for node in nodes if not (node.op == "Identity" and node.outputs[0] in dropped)]
    return [_with_names(node, names) for node in kept]


def _live(nodes: Sequence[Node], outputs: Sequence[str]) -> tuple[list[Node], set[str]]:
    """Nodes that an output depends on, and all names that these and the outputs use."""
    used = set(outputs)
    kept = []
    for node in reversed(nodes):
        if used.isdisjoint(node.outputs):
            continue
        kept.append(node)
        used.update(order.used_names(node))
    return kept[::-1], used
