"""Types of If, Loop and Scan from their nested graphs, which are walked (and rewritten) on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Body, Dimension, Input, Node, Value, bodies
from graphnet.ir.onnx_bridge.nodes import Result, attributes_with_defaults
from graphnet.ir.onnx_bridge.read import default_fill
from graphnet.ir.onnx_bridge.tensors import exact, literal

if TYPE_CHECKING:
    from graphnet.ir.onnx_bridge.inference import Inference, Scope

_CONTROL_FLOW = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def control_flow(walk: Inference, node: Node, types: list[Value | None], scope: Scope) -> Node:
    """Walk the nested graphs of a node: the node with them done, its outputs' types in `scope`."""
    if node.domain or node.op not in _CONTROL_FLOW:
        raise GraphFormatError(
            f"node '{node.name}': {node.domain or 'ai.onnx'}::{node.op} with a nested graph is not supported"
        )
    found = attributes_with_defaults(node)
    required = _CONTROL_FLOW[node.op]
    for key in required:
        if not isinstance(found.get(key), Body):
            raise GraphFormatError(f"node '{node.name}' ({node.op}) needs the graph '{key}'")
    if node.op == "If" and (len(node.inputs) != 1 or not node.inputs[0]):
        raise GraphFormatError(f"node '{node.name}' (If) needs its condition as its one input")
    if node.op == "If":
        node, results = _if(walk, node, scope)
    elif node.op == "Loop":
        node, results = _loop(walk, node, types, scope)
    else:
        node, results = _scan(walk, node, types, scope)
    if len(results) < len(node.outputs):
        raise GraphFormatError(f"node '{node.name}' ({node.op}) has more outputs than its graph gives")
    for name, result in zip(node.outputs, results, strict=False):
        if name:
            scope.types[name] = walk.settled(node, name, result, types)
    return node


def _body(walk: Inference, body: Body, scope: Scope, shapes: Sequence[Value] | None = None) -> tuple[Body, list[Value]]:
    if shapes is not None:
        if len(shapes) != len(body.inputs):
            raise GraphFormatError(f"a nested graph takes {len(body.inputs)} inputs, its node gives {len(shapes)}")
        typed = zip(body.inputs, shapes, strict=True)
        inputs = tuple(Input(name=i.name, dtype=t.dtype, shape=t.shape, fill=default_fill(t)) for i, t in typed)
        body = msgspec.structs.replace(body, inputs=inputs)
    nodes, names, inner = walk.run(body, scope)
    outputs = [inner.type_of(name) for name in names]
    if any(output is None for output in outputs):
        raise GraphFormatError(f"a nested graph's output of {list(body.outputs)} is not defined")
    values = {name: inner.types[name] for node in nodes for name in node.outputs if name}
    weights = dict(inner.weights)
    done = msgspec.structs.replace(body, nodes=tuple(nodes), values=values, weights=weights, outputs=names)
    return done, [output for output in outputs if output is not None]


def _if(walk: Inference, node: Node, scope: Scope) -> tuple[Node, list[Result]]:
    branches = {key: _body(walk, body, scope) for key, body in bodies(node)}
    node = msgspec.structs.replace(node, attrs=node.attrs | {key: body for key, (body, _) in branches.items()})
    columns = zip(*(types for _, types in branches.values()), strict=False)
    return node, [_union(list(column), node) for column in columns]


def _loop(walk: Inference, node: Node, types: list[Value | None], scope: Scope) -> tuple[Node, list[Result]]:
    body = node.attrs["body"]
    assert isinstance(body, Body)
    given = types + [None] * (2 - len(types))
    states = [type_ for type_ in given[2:] if type_ is not None]
    head = [Value(dtype="int64", shape=()), given[1] or Value(dtype="bool", shape=())]
    if given[1] is None and len(body.inputs) > 1:
        head[1] = Value(dtype="bool", shape=body.inputs[1].shape)
    done, results = _body(walk, body, scope, head + states)
    carried = results[1 : 1 + len(states)]
    wider = [_widen(walk, *both) for both in zip(states, carried, body.inputs[2:], strict=False)]
    if wider != states:
        done, results = _body(walk, body, scope, head + wider)
        carried = results[1 : 1 + len(states)]
    trips: Dimension | None = None
    known = scope.known(node.inputs[0]) if node.inputs and node.inputs[0] else None
    if known is not None and known.size == 1 and _always_true(node, body, done, scope):
        trips = max(int(known.reshape(-1)[0]), 0) if known.dtype != object else known.reshape(-1)[0]
    scans: list[Result]
    scans = [(value.dtype, (trips, *value.shape)) for value in results[1 + len(states) :]]
    node = msgspec.structs.replace(node, attrs=node.attrs | {"body": done})
    return node, [_union([a, b], node) for a, b in zip(wider, carried, strict=False)] + scans


def _always_true(node: Node, body: Body, done: Body, scope: Scope) -> bool:
    """Whether neither the start condition nor the body's own can end the loop early."""
    if len(node.inputs) > 1 and node.inputs[1]:
        start = scope.known(node.inputs[1])
        if start is None or not bool(start.reshape(-1)[0]):
            return False
    name = done.outputs[0]
    makers = {out: n for n in done.nodes for out in n.outputs}
    while name in makers and makers[name].op in ("Identity", "Cast"):
        name = makers[name].inputs[0]
    if len(body.inputs) > 1 and name == body.inputs[1].name:
        return True
    weight = done.weights.get(name) or scope.weights.get(name)
    return weight is not None and exact(weight.fill) and bool(literal(weight, name).reshape(-1)[0])


def _widen(walk: Inference, first: Value, later: Value, stated: Input) -> Value:
    """A type that holds for the first and every later trip; sizes that differ have the symbol that the body states."""
    if first.dtype != later.dtype or len(first.shape) != len(later.shape):
        found = f"from {first.dtype}{list(first.shape)} to {later.dtype}{list(later.shape)}"
        raise GraphFormatError(f"loop state '{stated.name}' changes {found}")
    named = stated.shape if len(stated.shape) == len(first.shape) else first.shape
    sizes = zip(first.shape, later.shape, named, strict=True)
    return Value(dtype=first.dtype, shape=tuple(a if a == b else walk.varying(c, stated.name) for a, b, c in sizes))


def _scan(walk: Inference, node: Node, types: list[Value | None], scope: Scope) -> tuple[Node, list[Result]]:
    body = node.attrs["body"]
    assert isinstance(body, Body)
    attrs = attributes_with_defaults(node)
    given = [type_ for type_ in types if type_ is not None]
    states = len(given) - int(attrs["num_scan_inputs"])
    axes = attrs.get("scan_input_axes") or (0,) * (len(given) - states)
    if states < 0 or len(axes) != len(given) - states:
        raise GraphFormatError(f"node '{node.name}' (Scan) has {len(given)} inputs, fewer than it scans")
    slices, length = [], None
    for type_, axis in zip(given[states:], axes, strict=True):
        if not -len(type_.shape) <= axis < len(type_.shape):
            raise GraphFormatError(f"node '{node.name}' (Scan): axis {axis} is outside {list(type_.shape)}")
        axis %= len(type_.shape)
        length = type_.shape[axis]
        slices.append(Value(dtype=type_.dtype, shape=type_.shape[:axis] + type_.shape[axis + 1 :]))
    done, results = _body(walk, body, scope, given[:states] + slices)
    out_axes = attrs.get("scan_output_axes") or (0,) * (len(results) - states)
    outputs: list[Result] = [(v.dtype, v.shape) for v in results[:states]]
    for value, axis in zip(results[states:], out_axes, strict=False):
        place = axis % (len(value.shape) + 1)
        outputs.append((value.dtype, (*value.shape[:place], length, *value.shape[place:])))
    return msgspec.structs.replace(node, attrs=node.attrs | {"body": done}), outputs


def _union(types: list[Value], node: Node) -> Result:
    """One type for results of either branch, or of any trip: dimensions that differ are unknown."""
    first = types[0]
    if any(t.dtype != first.dtype or len(t.shape) != len(first.shape) for t in types):
        found = " and ".join(f"{t.dtype}{list(t.shape)}" for t in types)
        raise GraphFormatError(f"node '{node.name}' ({node.op}): its graph gives {found}")
    columns = zip(*(t.shape for t in types), strict=True)
    return first.dtype, tuple(column[0] if len(set(column)) == 1 else None for column in columns)
