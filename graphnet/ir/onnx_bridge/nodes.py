"""GraphIR nodes as NodeProtos, and what ONNX's own operator schemas say of them: attributes, types, shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TypeProto, helper, shape_inference
from onnx.defs import OpSchema, SchemaError

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import OPSET, Attr, Body, Dimension, DType, FloatAttr, Node, TensorAttr, Value
from graphnet.ir.onnx_bridge.tensors import dtype_name, literal, tensor_type, to_proto

PartialShape = tuple[Dimension | None, ...]
Result = tuple[DType, PartialShape | None] | None
"""dtype and shape of an output as far as they are known."""
IR_VERSION = 11
"""The version whose default opset is 23: every reader of opset 23 has it."""
_OPSETS = [helper.make_opsetid("", OPSET)]
_INFERENCE_ERRORS = (
    shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    KeyError,
    TypeError,
    ValueError,
    MemoryError,
)
_TYPED = {
    OpSchema.AttrType.FLOAT: AttributeProto.FLOAT,
    OpSchema.AttrType.INT: AttributeProto.INT,
    OpSchema.AttrType.STRING: AttributeProto.STRING,
    OpSchema.AttrType.FLOATS: AttributeProto.FLOATS,
    OpSchema.AttrType.INTS: AttributeProto.INTS,
    OpSchema.AttrType.STRINGS: AttributeProto.STRINGS,
    OpSchema.AttrType.TENSOR: AttributeProto.TENSOR,
    OpSchema.AttrType.GRAPH: AttributeProto.GRAPH,
}


@lru_cache(maxsize=4096)
def schema(op: str, domain: str = "") -> OpSchema | None:
    """The operator's schema at the pinned opset; None for an unknown operator or another domain."""
    if domain:
        return None
    try:
        found = onnx.defs.get_schema(op, OPSET, "")
    except SchemaError:
        return None
    return None if found.deprecated else found


def attribute_proto(name: str, value: Attr, kind: int | None = None) -> AttributeProto:
    """An attribute; `kind` is the type that the schema asks for, else it follows from the value."""
    proto = AttributeProto(name=name)
    match value:
        case FloatAttr():
            value = float(value.value)
        case TensorAttr():
            proto.type = AttributeProto.TENSOR
            proto.t.CopyFrom(to_proto(literal(value, name), value.dtype))
            return proto
        case Body():
            raise TypeError("bodies are written by the graph writer")
        case bool():
            value = int(value)
    proto.type = kind if kind is not None else _kind(value)  # type: ignore[assignment]
    try:
        _set(proto, value)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise GraphFormatError(f"attribute '{name}' cannot be {value!r}: {error}") from error
    return proto


def _kind(value: Any) -> int:
    first = value[0] if isinstance(value, tuple) and value else value
    plural = isinstance(value, tuple)
    if isinstance(first, float):
        return AttributeProto.FLOATS if plural else AttributeProto.FLOAT
    if isinstance(first, str):
        return AttributeProto.STRINGS if plural else AttributeProto.STRING
    return AttributeProto.INTS if plural else AttributeProto.INT


def _set(proto: AttributeProto, value: Any) -> None:
    match proto.type:
        case AttributeProto.FLOAT:
            proto.f = value
        case AttributeProto.INT:
            proto.i = value
        case AttributeProto.STRING:
            proto.s = value.encode()
        case AttributeProto.FLOATS:
            proto.floats.extend(float(item) for item in value)
        case AttributeProto.INTS:
            proto.ints.extend(value)
        case AttributeProto.STRINGS:
            proto.strings.extend(item.encode() for item in value)
        case _:
            raise TypeError("the schema wants another type")


def node_proto(node: Node) -> NodeProto:
    """The node without its bodies."""
    proto = NodeProto(op_type=node.op, name=node.name, domain=node.domain)
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    if node.attrs:
        found = schema(node.op, node.domain)
        kinds = found.attributes if found is not None else {}
        for name, value in node.attrs.items():
            if not isinstance(value, Body):
                kind = _TYPED.get(kinds[name].type) if name in kinds else None
                proto.attribute.append(attribute_proto(name, value, kind))
    return proto


@lru_cache(maxsize=65536)
def type_proto(value: Value) -> TypeProto:
    """dtype and shape; expressions become dimension names."""
    return helper.make_tensor_type_proto(tensor_type(value.dtype), list(value.shape))


def infer_types(node: Node, types: Sequence[Value | None], data: Sequence[np.ndarray | None]) -> list[Result]:
    """What ONNX's own inference says of each output; `data` are inputs known as integers.

    Raises GraphFormatError where the node breaks its schema.
    """
    found = schema(node.op, node.domain)
    if found is None:
        if not node.domain:
            raise GraphFormatError(f"node '{node.name}': ONNX has no operator '{node.op}' at opset {OPSET}")
        return [None] * len(node.outputs)
    given = {name: type_ for name, type_ in zip(node.inputs, types, strict=True) if name and type_ is not None}
    known = {
        name: to_proto(array, given[name].dtype, name)
        for name, array in zip(node.inputs, data, strict=True)
        if name and array is not None and array.dtype != object
    }
    protos = {name: type_proto(type_) for name, type_ in given.items()}
    try:
        result = shape_inference.infer_node_outputs(
            found, node_proto(node), protos, known, opset_imports=_OPSETS, ir_version=IR_VERSION
        )
    except _INFERENCE_ERRORS as error:
        cause = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise GraphFormatError(f"node '{node.name}' ({node.op}) is invalid: {cause}") from error
    return [_type_of(result[name]) if name in result else None for name in node.outputs]


def _type_of(proto: TypeProto) -> Result:
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.elem_type:
        return None
    tensor = proto.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return dtype, None
    return dtype, tuple(_dimension(dim) for dim in tensor.shape.dim)


def _dimension(dim: onnx.TensorShapeProto.Dimension) -> Dimension | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None


def attributes_with_defaults(node: Node) -> Mapping[str, Any]:
    """Plain attribute values, the schema's defaults where absent."""
    found = schema(node.op, node.domain)
    values: dict[str, Any] = dict(schema_defaults(node.op)) if found is not None else {}
    for name, value in node.attrs.items():
        values[name] = float(value.value) if isinstance(value, FloatAttr) else value
    return values


@lru_cache(maxsize=4096)
def schema_defaults(op: str) -> Mapping[str, Any]:
    """Default values of an operator's attributes (default domain), strings decoded."""
    found = schema(op)
    if found is None:
        return {}
    result = {}
    for name, attribute in found.attributes.items():
        if attribute.default_value.type:
            value = helper.get_attribute_value(attribute.default_value)
            result[name] = value.decode() if isinstance(value, bytes) else value
    return result
