"""Reads a GraphProto at the pinned opset into GraphIR nodes, weights and inputs; types are inferred afterwards."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from graphnet.errors import GraphFormatError
from graphnet.ir import dims
from graphnet.ir.graph import (
    Attr,
    Body,
    Dimension,
    DType,
    Fill,
    FloatAttr,
    Input,
    Node,
    Normal,
    Shape,
    TensorAttr,
    Uniform,
    Value,
    Values,
    Weight,
)
from graphnet.ir.onnx_bridge.nodes import PartialShape
from graphnet.ir.onnx_bridge.tensors import (
    ROLE_KEY,
    ROLES,
    Role,
    default_role,
    dense,
    dtype_name,
    fill_of,
    random_fill,
    to_array,
)

MAX_NESTING = 8
_MAX_TEXTS = 1 << 16


@dataclass(frozen=True)
class Declared:
    """Type of a value as the file states it: the shape may be unknown, or some of its dimensions."""

    dtype: DType
    shape: PartialShape | None


@dataclass(frozen=True)
class ReadOptions:
    """What the caller knows of the model beyond its bytes."""

    parameters: Collection[str] | None = None
    buffers: Collection[str] = ()
    fills: Mapping[str, Fill] = field(default_factory=dict)
    weights: str = "exact"
    limit: int = 1 << 30


@dataclass
class Read:
    """A graph without values, and what the file declared about them."""

    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    weights: dict[str, Weight]
    nodes: tuple[Node, ...]
    declared: dict[str, Declared]


class Reader:
    """One pass over a model: unique names, roles of weights, attributes as data."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.declared: dict[str, Declared] = {}
        self._names: set[str] = set()
        self._node_names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._symbols: dict[str, str] = {}

    def read(self, proto: GraphProto) -> Read:
        """The outermost graph. Raises GraphFormatError."""
        body, inputs = self._graph(proto, {}, "$.graph", 0)
        return Read(inputs, body.outputs, body.weights, body.nodes, self.declared)

    def _graph(
        self, proto: GraphProto, outer: Mapping[str, str], where: str, depth: int
    ) -> tuple[Body, tuple[Input, ...]]:
        if depth > MAX_NESTING:
            raise GraphFormatError(f"graphs nested deeper than {MAX_NESTING}", where=where)
        names = dict(outer)
        weights = self._initializers(proto, names, where)
        inputs = self._inputs(proto, names, weights, where, nested=depth > 0)
        self._declare(proto, names, where)
        nodes: list[Node] = []
        for index, node in enumerate(proto.node):
            self._node(node, names, weights, nodes, f"{where}.node[{index}]", depth)
        outputs = self._outputs(proto, names, nodes, where)
        return Body(inputs=inputs, outputs=outputs, weights=weights, nodes=tuple(nodes)), inputs

    def _initializers(self, proto: GraphProto, names: dict[str, str], where: str) -> dict[str, Weight]:
        weights: dict[str, Weight] = {}
        for index, tensor in enumerate(proto.initializer):
            place = f"{where}.initializer[{index}]"
            name = self._define(tensor.name, names, place)
            weights[name] = self._weight(tensor, place)
        for index, sparse in enumerate(proto.sparse_initializer):
            place = f"{where}.sparse_initializer[{index}]"
            name = self._define(sparse.values.name, names, place)
            array = dense(sparse, self.options.limit, place)
            dtype = dtype_name(sparse.values.data_type, place)
            weights[name] = self._exact(array, dtype, self._role(sparse.values.name, dtype, sparse.values))
        return weights

    def _weight(self, tensor: TensorProto, where: str) -> Weight:
        dtype = dtype_name(tensor.data_type, where)
        given = self.options.fills.get(tensor.name)
        if given is None:
            return self._exact(to_array(tensor, where), dtype, self._role(tensor.name, dtype, tensor))
        shape = tuple(int(size) for size in tensor.dims)
        return Weight(dtype=dtype, shape=shape, fill=given, role=self._role(tensor.name, dtype, tensor))

    def _exact(self, array: np.ndarray, dtype: DType, role: Role) -> Weight:
        fill: Fill = fill_of(array, dtype)
        if self.options.weights == "random" and dtype.startswith(("float", "bfloat")) and array.size > 1:
            fill = random_fill(array)
        return Weight(dtype=dtype, shape=array.shape, fill=fill, role=role)

    def _role(self, name: str, dtype: DType, tensor: TensorProto | None = None) -> Role:
        if self.options.parameters is None:
            stated = (
                [item.value for item in tensor.metadata_props if item.key == ROLE_KEY] if tensor is not None else []
            )
            return ROLES.get(stated[0], default_role(dtype)) if stated else default_role(dtype)
        if name in self.options.parameters:
            return "parameter"
        return "buffer" if name in self.options.buffers else "constant"

    def _inputs(
        self, proto: GraphProto, names: dict[str, str], weights: dict[str, Weight], where: str, *, nested: bool
    ) -> tuple[Input, ...]:
        found: list[Input] = []
        initialized = {tensor.name for tensor in proto.initializer}
        initialized |= {sparse.values.name for sparse in proto.sparse_initializer}
        for index, info in enumerate(proto.input):
            if info.name in initialized:
                continue
            place = f"{where}.input[{index}]"
            name = self._define(info.name, names, place)
            type_ = self._input_type(info, place, nested=nested)
            if not nested and self._is_weight(info.name):
                weights[name] = self._weight_input(info.name, type_, place)
            else:
                fill = self.options.fills.get(info.name) or default_fill(type_)
                found.append(Input(name=name, dtype=type_.dtype, shape=type_.shape, fill=fill))
        return tuple(found)

    def _is_weight(self, name: str) -> bool:
        return name in (self.options.parameters or ()) or name in self.options.buffers

    def _weight_input(self, name: str, type_: Value, where: str) -> Weight:
        shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
        fill = self.options.fills.get(name)
        if fill is None or len(shape) != len(type_.shape):
            raise GraphFormatError(f"input '{name}' is a weight: it needs a fill and a static shape", where=where)
        return Weight(dtype=type_.dtype, shape=shape, fill=fill, role=self._role(name, type_.dtype))

    def _input_type(self, info: ValueInfoProto, where: str, *, nested: bool) -> Value:
        declared = self._type(info.type, info.name, where)
        if declared is None:
            if not nested:
                raise GraphFormatError(f"input '{info.name}' has no type", where=where)
            return Value(dtype="float32", shape=())
        if declared.shape is None and not nested:
            raise GraphFormatError(f"input '{info.name}' has no shape; give it one", where=where)
        sizes = enumerate(declared.shape or ())
        prefix = info.name if dims.SYMBOL.fullmatch(info.name) else "input"
        return Value(
            dtype=declared.dtype,
            shape=tuple(self._symbol(f"{prefix}_dim{i}") if dim is None else dim for i, dim in sizes),
        )

    def _outputs(
        self,
        proto: GraphProto,
        names: dict[str, str],
        nodes: list[Node],
        where: str,
    ) -> tuple[str, ...]:
        """Output names; one that no node of this graph computes, or that comes twice, gets an Identity."""
        produced = {name for node in nodes for name in node.outputs}
        result: list[str] = []
        for index, info in enumerate(proto.output):
            name = self._lookup(info.name, names, f"{where}.output[{index}]")
            if name not in produced or name in result:
                copy = self._unique(f"{name}_out")
                node = Node(op="Identity", name=self._node_name("Identity"), inputs=(name,), outputs=(copy,))
                nodes.append(node)
                name = copy
            result.append(name)
        return tuple(result)

    def _declare(self, proto: GraphProto, names: Mapping[str, str], where: str) -> None:
        for info in [*proto.value_info, *proto.output]:
            declared = self._type(info.type, info.name, f"{where}.value_info")
            if declared is not None:
                self.declared[names.get(info.name, info.name)] = declared

    def _type(self, proto: TypeProto, name: str, where: str) -> Declared | None:
        kind = proto.WhichOneof("value")
        if kind is None:
            return None
        if kind != "tensor_type":
            raise GraphFormatError(
                f"'{name}' is a {kind.removesuffix('_type')}: only tensors are supported", where=where
            )
        tensor = proto.tensor_type
        if tensor.elem_type == TensorProto.UNDEFINED:
            return None
        shape = self._shape(tensor.shape, where) if tensor.HasField("shape") else None
        return Declared(dtype_name(tensor.elem_type, where), shape)

    def _shape(self, proto: onnx.TensorShapeProto, where: str) -> PartialShape:
        return tuple(self._dimension(dim, where) for dim in proto.dim)

    def _dimension(self, dim: onnx.TensorShapeProto.Dimension, where: str) -> Dimension | None:
        if dim.HasField("dim_value"):
            if dim.dim_value >= 0:
                return int(dim.dim_value)
            if ".input" in where:
                raise GraphFormatError(f"negative dimension {dim.dim_value}", where=where)
            return None  # exporters write -1 for an unknown size of a value, which inference finds
        return self._symbol(dim.dim_param) if dim.dim_param else None

    def _symbol(self, text: str) -> Dimension:
        """A symbol or expression; a name that our grammar lacks gets a legal one."""
        if dims.SYMBOL.fullmatch(text):
            return text
        try:
            return dims.simplify(text)
        except GraphFormatError:
            known = self._symbols.get(text)
            if known is None:
                legal = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)[:64]
                known = self._symbols[text] = f"d{legal}" if not legal[:1].isalpha() else legal
            return known

    def _node(
        self,
        proto: NodeProto,
        names: dict[str, str],
        weights: dict[str, Weight],
        nodes: list[Node],
        where: str,
        depth: int,
    ) -> None:
        domain = "" if proto.domain in ("", "ai.onnx") else proto.domain
        if domain == "" and proto.op_type == "Constant":
            name = self._define(proto.output[0] if proto.output else "", names, where)
            weights[name] = self._constant(proto, where)
            return
        inputs = tuple(self._lookup(name, names, where) if name else "" for name in proto.input)
        attrs: dict[str, Attr] = {}
        for attribute in proto.attribute:
            attrs[attribute.name] = self._attribute(attribute, names, f"{where}.{attribute.name}", depth)
        outputs = tuple(self._define(name, names, where) if name else "" for name in proto.output)
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        while outputs and not outputs[-1]:
            outputs = outputs[:-1]
        name = self._node_name(proto.name or proto.op_type)
        nodes.append(Node(op=proto.op_type, name=name, inputs=inputs, outputs=outputs, attrs=attrs, domain=domain))

    def _constant(self, proto: NodeProto, where: str) -> Weight:
        array, dtype = constant_value(proto, self.options.limit, where)
        return Weight(dtype=dtype, shape=array.shape, fill=fill_of(array, dtype), role="constant")

    def _attribute(self, proto: AttributeProto, names: dict[str, str], where: str, depth: int) -> Attr:
        match proto.type:
            case AttributeProto.FLOAT:
                return _float(proto.f)
            case AttributeProto.INT:
                return int(proto.i)
            case AttributeProto.STRING:
                return _string(proto.s, where)
            case AttributeProto.TENSOR:
                array = to_array(proto.t, where)
                dtype = dtype_name(proto.t.data_type, where)
                return TensorAttr(dtype=dtype, shape=array.shape, fill=fill_of(array, dtype))
            case AttributeProto.GRAPH:
                return self._graph(proto.g, names, where, depth + 1)[0]
            case AttributeProto.FLOATS:
                if not all(math.isfinite(item) for item in proto.floats):
                    raise GraphFormatError("a list of floats holds a non-finite number", where=where)
                return tuple(float(item) for item in proto.floats)
            case AttributeProto.INTS:
                return tuple(int(item) for item in proto.ints)
            case AttributeProto.STRINGS:
                return tuple(_string(item, where) for item in proto.strings)
        kind = AttributeProto.AttributeType.keys()[proto.type] if 0 <= proto.type <= 14 else str(proto.type)
        raise GraphFormatError(f"attributes of type {kind} are not supported", where=where)

    def _lookup(self, name: str, names: Mapping[str, str], where: str) -> str:
        try:
            return names[name]
        except KeyError:
            raise GraphFormatError(f"'{name}' is used but not defined before", where=where) from None

    def _define(self, name: str, names: dict[str, str], where: str) -> str:
        if not name:
            raise GraphFormatError("a definition without a name", where=where)
        if name in names:
            raise GraphFormatError(f"'{name}' is defined twice", where=where)
        names[name] = self._unique(name)
        return names[name]

    def _unique(self, name: str) -> str:
        return unique_name(name, self._names, self._counts)

    def _node_name(self, name: str) -> str:
        return unique_name(name, self._node_names, self._counts)


def unique_name(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """`name`, or with a number appended the next that is not taken yet; it is taken from then on."""
    unique = name
    while unique in taken:
        counts[name] = counts.get(name, 0) + 1
        unique = f"{name}_{counts[name]}"
    taken.add(unique)
    return unique


def constant_value(proto: NodeProto, limit: int, where: str) -> tuple[np.ndarray, DType]:
    """What a Constant node holds. Raises GraphFormatError."""
    if len(proto.attribute) != 1:
        raise GraphFormatError("a Constant has exactly one attribute", where=where)
    attribute = proto.attribute[0]
    match attribute.name:
        case "value":
            return to_array(attribute.t, where), dtype_name(attribute.t.data_type, where)
        case "sparse_value":
            sparse = attribute.sparse_tensor
            return dense(sparse, limit, where), dtype_name(sparse.values.data_type, where)
        case "value_int":
            return np.array(attribute.i, np.int64), "int64"
        case "value_ints":
            return np.array(attribute.ints, np.int64), "int64"
        case "value_float":
            return np.array(attribute.f, np.float32), "float32"
        case "value_floats":
            return np.array(attribute.floats, np.float32), "float32"
        case "value_string":
            return np.array(_string(attribute.s, where), object), "string"
        case "value_strings":
            return np.array([_string(item, where) for item in attribute.strings], object), "string"
    raise GraphFormatError(f"a Constant has no attribute '{attribute.name}'", where=where)


def default_fill(type_: Value) -> Fill:
    """How to generate data for an input of which only the type is known."""
    if type_.dtype.startswith(("float", "bfloat", "complex")):
        return Normal()
    if type_.dtype == "string":
        count = math.prod(dim if isinstance(dim, int) else 0 for dim in type_.shape)
        return Values(data=("text",) * min(count, _MAX_TEXTS))
    return Uniform(low=0, high=1)


def shape_of(shape: PartialShape) -> Shape | None:
    """The shape where every dimension is known."""
    known = tuple(dim for dim in shape if dim is not None)
    return known if len(known) == len(shape) else None


def _float(value: float) -> Attr:
    if math.isfinite(value):
        return float(value)
    return FloatAttr(value="nan" if math.isnan(value) else "inf" if value > 0 else "-inf")


def _string(item: bytes, where: str) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError as error:
        raise GraphFormatError(f"a string is not UTF-8: {error}", where=where) from error
