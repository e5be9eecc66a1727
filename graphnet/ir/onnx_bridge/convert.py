"""Brings a model to the pinned opset: functions inlined, operators upgraded by ONNX's version converter."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, inliner, version_converter
from onnx.defs import SchemaError

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import OPSET

_KEPT_INLINE = 4096
"""Bytes of an initializer that the converter gets to see: it needs axes and the like, never weights."""


def upgrade(model: ModelProto) -> ModelProto:
    """The model at opset 23 without function bodies; the argument is left alone. Raises GraphFormatError."""
    version = default_opset(model)
    if not model.functions and version == OPSET:
        return model
    light, heavy = _without_weights(model)
    if light.functions:
        light = _inlined(light)
        version = default_opset(light)
    if version != OPSET:
        light = _relabelled(light) if _same_meaning(light, version) else _converted(light, version)
    for tensor in light.graph.initializer:
        original = heavy.get(tensor.name)
        if original is not None:
            tensor.CopyFrom(original)
    return light


def default_opset(model: ModelProto) -> int:
    """The version of ONNX's own operators. Raises GraphFormatError when the model states none."""
    versions = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
    if not versions:
        if all(node.domain not in ("", "ai.onnx") for node in model.graph.node) and model.opset_import:
            return OPSET
        raise GraphFormatError("no version of the default operator set is given", where="$.opset_import")
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= versions[0] <= newest:
        raise GraphFormatError(f"opset {versions[0]} is not in 1 to {newest}", where="$.opset_import")
    return int(versions[0])


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all graphs nested in its nodes' attributes."""
    stack = [graph]
    while stack:
        current = stack.pop()
        yield current
        for node in current.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    stack.append(attribute.g)
                stack.extend(attribute.graphs)


def _without_weights(model: ModelProto) -> tuple[ModelProto, dict[str, TensorProto]]:
    """A copy whose large initializers have no data, and the full ones by name."""
    heavy = {tensor.name: tensor for tensor in model.graph.initializer if tensor.ByteSize() > _KEPT_INLINE}
    light = ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _assign(light, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            _assign(light.graph, field.name, value)
    for tensor in model.graph.initializer:
        if tensor.name in heavy:
            light.graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
        else:
            light.graph.initializer.add().CopyFrom(tensor)
    return light, heavy


def _assign(message: ModelProto | GraphProto, name: str, value: object) -> None:
    if hasattr(value, "extend") or hasattr(value, "MergeFrom"):
        getattr(message, name).MergeFrom(value)
    else:
        setattr(message, name, value)


def expand(model: ModelProto, operator: str) -> ModelProto:
    """The model with each `operator` of the default domain replaced by the function that the standard defines it by.

    Raises GraphFormatError.
    """
    try:
        return inliner.inline_selected_functions(model, [("", operator)], inline_schema_functions=True)
    except Exception as error:
        raise GraphFormatError(f"{operator} could not be expanded: {_cause(error)}", where="$.nodes") from error


def _inlined(model: ModelProto) -> ModelProto:
    try:
        return inliner.inline_local_functions(model)
    except Exception as error:
        raise GraphFormatError(f"functions could not be inlined: {_cause(error)}", where="$.functions") from error


def _same_meaning(model: ModelProto, version: int) -> bool:
    """Whether every operator has the same definition at both opsets."""
    return all(_unchanged(node, version) for graph in graphs(model.graph) for node in graph.node)


def _unchanged(node: NodeProto, version: int) -> bool:
    if node.domain not in ("", "ai.onnx"):
        return True
    try:
        before = onnx.defs.get_schema(node.op_type, version, "")
        after = onnx.defs.get_schema(node.op_type, OPSET, "")
    except SchemaError:
        return False
    if before.since_version == after.since_version:
        return True
    return version > OPSET and all(attribute.name in after.attributes for attribute in node.attribute)


def _relabelled(model: ModelProto) -> ModelProto:
    for item in model.opset_import:
        if item.domain in ("", "ai.onnx"):
            item.version = OPSET
    return model


def _converted(model: ModelProto, version: int) -> ModelProto:
    if version < 9 and any(node.op_type == "Scan" for graph in graphs(model.graph) for node in graph.node):
        # the converter takes it over as it is, though its inputs had a batch axis until opset 8
        raise GraphFormatError(f"Scan of opset {version} cannot be converted to {OPSET}", where="$.opset_import")
    sparse = list(model.graph.sparse_initializer)
    try:
        converted = version_converter.convert_version(model, OPSET)
    except Exception as error:
        cause = f"opset {version} could not be converted to {OPSET}: {_cause(error)}"
        raise GraphFormatError(cause, where="$.opset_import") from error
    if not converted.graph.sparse_initializer:
        converted.graph.sparse_initializer.extend(sparse)
    return converted


def _cause(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
