"""Writes GraphIR as a ModelProto at the pinned opset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import OPSET, Body, Graph, Node, Value, Weight, walk
from graphnet.ir.onnx_bridge.nodes import IR_VERSION, node_proto, type_proto
from graphnet.ir.onnx_bridge.tensors import ROLE_KEY, default_role, literal, to_proto

PRODUCER = "graphnet"
_EXTERNAL_THRESHOLD = 1024
_ALIGNMENT = 4096


def to_onnx(graph: Graph, tensors: Mapping[str, np.ndarray] | None = None) -> ModelProto:
    """The model with weights as initializers holding `tensors` (or `materialize(0)`), every value's type filled in.

    A model above 2 GB can be held in memory but not serialised in one piece: use `save_onnx`.
    """
    arrays = tensors_.weights(graph, 0) if tensors is None else tensors
    proto = GraphProto(name=graph.name or "graph")
    for item in graph.inputs:
        proto.input.append(_info(item.name, Value(dtype=item.dtype, shape=item.shape)))
    for name, weight in graph.weights.items():
        proto.initializer.append(_initializer(np.asarray(arrays[name]), weight, name))
    _write_level(graph, proto, graph.outputs, [graph.type_of(name) for name in graph.outputs])
    opsets = [helper.make_opsetid("", OPSET)]
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({node.domain for node in walk(graph)} - {""})]
    return ModelProto(
        ir_version=IR_VERSION, producer_name=PRODUCER, graph=proto, opset_import=opsets, domain="", model_version=1
    )


def save_onnx(
    model: Graph | ModelProto, path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write `path`, and beside it `<name>.data` with every tensor of 1 KB or more: for models of any size."""
    proto = to_onnx(model, tensors) if isinstance(model, Graph) else model
    target = Path(path)
    data_name = f"{target.name}.data"
    with open(target.with_name(data_name), "wb") as data:
        for tensor in proto.graph.initializer:
            if len(tensor.raw_data) < _EXTERNAL_THRESHOLD:
                continue
            data.write(b"\0" * (-data.tell() % _ALIGNMENT))
            offset = data.tell()
            data.write(tensor.raw_data)
            entries = {"location": data_name, "offset": str(offset), "length": str(len(tensor.raw_data))}
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)
    target.write_bytes(proto.SerializeToString())


def _write_level(graph: Graph | Body, proto: GraphProto, outputs: Iterable[str], types: Iterable[Value | None]) -> None:
    """Nodes, value_info and outputs; an output that no node makes is copied under a name of its own."""
    made = {name for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        proto.node.append(_node(node))
    wanted = list(outputs)
    for name, type_ in zip(wanted, types, strict=True):
        if name in made:
            proto.output.append(_info(name, type_))
            continue
        copy = f"{name}__output"
        proto.node.append(helper.make_node("Identity", [name], [copy], name=f"{name}__copy"))
        proto.output.append(_info(copy, type_))
    final = set(wanted)
    for name, value in graph.values.items():
        if name not in final:
            proto.value_info.append(_info(name, value))


def _node(node: Node) -> onnx.NodeProto:
    proto = node_proto(node)
    for name, value in node.attrs.items():
        if isinstance(value, Body):
            attribute = AttributeProto(name=name, type=AttributeProto.GRAPH)
            _write_body(value, attribute.g, f"{node.name}_{name}")
            proto.attribute.append(attribute)
    return proto


def _write_body(body: Body, proto: GraphProto, name: str) -> None:
    proto.name = name
    for item in body.inputs:
        proto.input.append(_info(item.name, Value(dtype=item.dtype, shape=item.shape)))
    for key, weight in body.weights.items():
        proto.initializer.append(_initializer(literal(weight, key), weight, key))
    types = [body.values.get(output) for output in body.outputs]
    for index, output in enumerate(body.outputs):
        literal_ = body.weights.get(output)
        if literal_ is not None:
            types[index] = Value(dtype=literal_.dtype, shape=literal_.shape)
    _write_level(body, proto, body.outputs, types)


def _initializer(array: np.ndarray, weight: Weight, name: str) -> TensorProto:
    """The tensor, with its role where that is not what its dtype alone says."""
    proto = to_proto(array, weight.dtype, name)
    if weight.role != default_role(weight.dtype):
        proto.metadata_props.add(key=ROLE_KEY, value=weight.role)
    return proto


def _info(name: str, type_: Value | None) -> ValueInfoProto:
    info = ValueInfoProto(name=name)
    if type_ is not None:
        info.type.CopyFrom(type_proto(type_))
    return info
