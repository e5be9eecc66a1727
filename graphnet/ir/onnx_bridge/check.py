"""Checks a graph's nodes against ONNX's operator schemas, and its stated types against inference."""

from __future__ import annotations

from collections.abc import Mapping

from onnx.defs import OpSchema

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir import dims as dims_
from graphnet.ir.graph import Attr, Body, Dimension, FloatAttr, Graph, Node, TensorAttr, Value, bodies
from graphnet.ir.onnx_bridge import infer
from graphnet.ir.onnx_bridge.nodes import schema

_SPELLED = {
    "float32": "float", "float64": "double", "float8e4m3fn": "float8e4m3fn", "float8e5m2": "float8e5m2",
}  # fmt: skip
_PLURAL = {OpSchema.AttrType.FLOATS, OpSchema.AttrType.INTS, OpSchema.AttrType.STRINGS}
_KINDS: Mapping[OpSchema.AttrType, tuple[type, ...]] = {
    OpSchema.AttrType.FLOAT: (float, int, FloatAttr),
    OpSchema.AttrType.INT: (int,),
    OpSchema.AttrType.STRING: (str,),
    OpSchema.AttrType.FLOATS: (float, int),
    OpSchema.AttrType.INTS: (int,),
    OpSchema.AttrType.STRINGS: (str,),
    OpSchema.AttrType.TENSOR: (TensorAttr,),
    OpSchema.AttrType.GRAPH: (Body,),
}


def check_operators(graph: Graph) -> None:
    """Every node of the default domain against its schema: operator, arity, attributes, dtypes.

    Raises GraphFormatError naming the node's place.
    """
    _check_level(graph, "$", ())


def check_shapes(graph: Graph) -> None:
    """Every stated dtype and shape against inference. Raises GraphFormatError naming both."""
    found = infer(graph)
    samples = _sample_sizes(graph)
    _compare(graph, found, "$", samples)


def _check_level(graph: Graph | Body, where: str, scopes: tuple[Mapping[str, str], ...]) -> None:
    own = {name: value.dtype for name, value in graph.values.items()}
    own |= {name: weight.dtype for name, weight in graph.weights.items()}
    own |= {item.name: item.dtype for item in graph.inputs}
    visible = (*scopes, own)
    for index, node in enumerate(graph.nodes):
        place = f"{where}.nodes[{index}]"
        if not node.domain:
            _check_node(node, place, visible)
        for key, body in bodies(node):
            _check_level(body, f"{place}.attrs.{key}", visible)


def _check_node(node: Node, where: str, visible: tuple[Mapping[str, str], ...]) -> None:
    found = schema(node.op)
    if found is None:
        raise GraphFormatError(f"node '{node.name}': ONNX has no operator '{node.op}' at opset 23", where=f"{where}.op")
    if not found.min_input <= len(node.inputs) <= found.max_input:
        expected = f"{found.min_input} to {found.max_input}"
        cause = f"node '{node.name}': {node.op} has {len(node.inputs)} inputs; {expected} are legal"
        raise GraphFormatError(cause, where=f"{where}.inputs")
    if not found.min_output <= len(node.outputs) <= found.max_output:
        expected = f"{found.min_output} to {found.max_output}"
        cause = f"node '{node.name}': {node.op} has {len(node.outputs)} outputs; {expected} are legal"
        raise GraphFormatError(cause, where=f"{where}.outputs")
    _check_attributes(node, found, where)
    _check_dtypes(node, found, where, visible)


def _check_attributes(node: Node, found: OpSchema, where: str) -> None:
    for key, value in node.attrs.items():
        stated = found.attributes.get(key)
        if stated is None:
            known = ", ".join(sorted(found.attributes)) or "none"
            cause = f"node '{node.name}': {node.op} has no attribute '{key}'; known: {known}"
            raise GraphFormatError(cause, where=f"{where}.attrs.{key}")
        if not _fits(value, stated.type):
            kind = str(stated.type).rpartition(".")[2]
            cause = f"node '{node.name}': attribute '{key}' of {node.op} must be {kind}, not {str(value)[:80]}"
            raise GraphFormatError(cause, where=f"{where}.attrs.{key}")
    missing = [key for key, stated in found.attributes.items() if stated.required and key not in node.attrs]
    if missing:
        cause = f"node '{node.name}': {node.op} needs the attribute '{missing[0]}'"
        raise GraphFormatError(cause, where=f"{where}.attrs")


def _fits(value: Attr, kind: OpSchema.AttrType) -> bool:
    legal = _KINDS.get(kind, ())
    if kind in _PLURAL:
        return isinstance(value, tuple) and all(isinstance(item, legal) for item in value)
    return isinstance(value, legal)


def _check_dtypes(node: Node, found: OpSchema, where: str, visible: tuple[Mapping[str, str], ...]) -> None:
    legal = {item.type_param_str: item.allowed_type_strs for item in found.type_constraints}
    bound: dict[str, str] = {}
    for kind, names, formal in (("inputs", node.inputs, found.inputs), ("outputs", node.outputs, found.outputs)):
        for slot, name in enumerate(names):
            parameter = formal[min(slot, len(formal) - 1)]
            place = f"{where}.{kind}[{slot}]"
            if not name:
                if parameter.option == OpSchema.FormalParameterOption.Single:
                    raise GraphFormatError(f"node '{node.name}': {node.op} needs '{parameter.name}'", where=place)
                continue
            dtype = next((scope[name] for scope in reversed(visible) if name in scope), None)
            if dtype is None:
                raise GraphFormatError(f"dangling name: '{name}' is not defined", where=place)
            if f"tensor({_SPELLED.get(dtype, dtype)})" not in legal.get(parameter.type_str, [parameter.type_str]):
                raise GraphFormatError(f"node '{node.name}': {node.op} does not take {dtype} '{name}'", where=place)
            first = bound.setdefault(parameter.type_str, dtype) if parameter.is_homogeneous else dtype
            if first != dtype:
                cause = f"node '{node.name}': '{name}' is {dtype}, but {node.op} has {first} for the same type"
                raise GraphFormatError(cause, where=place)


def _sample_sizes(graph: Graph) -> list[dict[str, int]]:
    """Sizes at which two spellings of a dimension are compared: the defaults, the least, and odd ones in between."""
    defaults = {name: dim.default for name, dim in graph.dims.items()}
    least = {name: dim.min for name, dim in graph.dims.items()}
    middle = {name: min(dim.min + 7 + 2 * i, dim.max) for i, (name, dim) in enumerate(graph.dims.items())}
    return [defaults, least, middle]


def _compare(stated: Graph | Body, found: Graph | Body, where: str, samples: list[dict[str, int]]) -> None:
    for name, value in stated.values.items():
        other = found.values.get(name)
        if other is None or not _same(value, other, samples):
            given = "nothing" if other is None else f"{other.dtype}{list(other.shape)}"
            cause = f"'{name}' is stated as {value.dtype}{list(value.shape)}, but inference gives {given}"
            raise GraphFormatError(cause, where=f"{where}.values.{name}")
    for index, (node, other_node) in enumerate(zip(stated.nodes, found.nodes, strict=True)):
        for key, body in bodies(node):
            other_body = other_node.attrs[key]
            assert isinstance(other_body, Body)
            _compare(body, other_body, f"{where}.nodes[{index}].attrs.{key}", samples)


def _same(a: Value, b: Value, samples: list[dict[str, int]]) -> bool:
    if a == b:
        return True
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return False
    return all(_same_dimension(x, y, samples) for x, y in zip(a.shape, b.shape, strict=True))


def _same_dimension(a: Dimension, b: Dimension, samples: list[dict[str, int]]) -> bool:
    if a == b:
        return True
    try:
        return all(dims_.evaluate(a, sizes) == dims_.evaluate(b, sizes) for sizes in samples)
    except GraphBindError:
        return False
