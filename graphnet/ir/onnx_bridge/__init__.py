"""ONNX models to GraphIR and back: the package's one door to the `onnx` library."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from onnx import ModelProto

from graphnet.errors import GraphFormatError, UsageError
from graphnet.ir import fileio
from graphnet.ir.graph import Body, Dim, Dimension, Fill, Graph, Uniform, walk
from graphnet.ir.onnx_bridge.convert import expand, upgrade
from graphnet.ir.onnx_bridge.inference import Inference, used_symbols
from graphnet.ir.onnx_bridge.read import Declared, Reader, ReadOptions
from graphnet.ir.onnx_bridge.tensors import tensor_type
from graphnet.ir.onnx_bridge.write import save_onnx, to_onnx
from graphnet.ir.symbolic import minimum, sub
from graphnet.ir.validate import validate

__all__ = ["expand", "from_onnx", "infer", "save_onnx", "tensor_type", "to_onnx"]

BATCH_NAMES = frozenset({"batch", "batch_size", "b", "bs", "n", "N", "B"})
DEFAULT_RANGE = (1, 4096)
DEFAULT_SIZE = 128
"""Of a symbol that is not a batch size, where the caller gives no range."""
_PASSING = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand"})
DimRange = Dim | tuple[int, int] | tuple[int, int, int]


def from_onnx(
    model: ModelProto | str | os.PathLike[str],
    *,
    parameters: Collection[str] | None = None,
    buffers: Collection[str] = (),
    fills: Mapping[str, Fill] | None = None,
    dims: Mapping[str, DimRange] | None = None,
    weights: str = "exact",
    trusted: bool = False,
    **metadata: Any,
) -> Graph:
    """Import a model: upgraded to opset 23, functions inlined, every value with dtype and shape.

    `parameters` and `buffers` name the initializers (or inputs) with these roles; all others are then constants.
    Without them float initializers are parameters and others constants. `fills` gives weights (which then need no
    data) and inputs their recipe. `dims` gives symbols `(min, max)`, `(min, max, default)` or a Dim. `weights` is
    `exact` (values are kept) or `random` (float weights become normal distributions with their statistics).
    `metadata` are fields of Graph. A file is imported in a child process unless `trusted`, so that a crash inside
    the onnx library is an error like any other. Raises GraphFormatError, UsageError.
    """
    if weights not in ("exact", "random"):
        raise UsageError(f"weights='{weights}' is unknown; use exact or random")
    options = ReadOptions(parameters, buffers, dict(fills or {}), weights, fileio.max_bytes())
    if isinstance(model, ModelProto):
        return import_model(model, options, dims or {}, metadata)
    from graphnet.ir.onnx_bridge import files

    path = Path(model)
    metadata.setdefault("name", path.stem)
    if trusted:
        try:
            return import_model(files.read_model(path, options.limit), options, dims or {}, metadata)
        except GraphFormatError as error:
            raise error.in_file(str(path)) from error
    return files.import_isolated(path, options, dims or {}, metadata)


def import_model(
    model: ModelProto, options: ReadOptions, dims: Mapping[str, DimRange], metadata: dict[str, Any]
) -> Graph:
    """`from_onnx` of a model in memory, in this process. Raises GraphFormatError."""
    read = Reader(options).read(upgrade(model).graph)
    metadata.setdefault("name", model.graph.name or "graph")
    # literals come last, so that folding them away later leaves the others' positions (and random streams) alone
    weights = dict(sorted(read.weights.items(), key=lambda item: item[1].role == "constant"))
    graph = Graph(inputs=read.inputs, outputs=read.outputs, weights=weights, nodes=read.nodes, **metadata)
    done = _with_legal_indices(infer(graph, read.declared, dims), options.fills)
    validate(done)
    return done


def infer(
    graph: Graph, declared: Mapping[str, Declared] | None = None, dims: Mapping[str, DimRange] | None = None
) -> Graph:
    """Types of all values anew; `declared` (default: the present ones) counts where inference cannot tell.

    `dims` are ranges of symbols that the graph does not declare yet. Raises GraphFormatError.
    """
    stated = declared_types(graph) if declared is None else declared
    inference = Inference(graph, stated)
    nodes, _, scope = inference.run(graph)
    values = {name: scope.types[name] for node in nodes for name in node.outputs if name}
    done = msgspec.structs.replace(graph, nodes=tuple(nodes), values=values)
    return msgspec.structs.replace(done, dims=used_dims(done, dims or {}))


def _with_legal_indices(graph: Graph, given: Collection[str]) -> Graph:
    """Integer inputs of which the caller said nothing get the range of the tables that they index."""
    highest: dict[str, Dimension] = {}
    origin = {item.name: item.name for item in graph.inputs if item.dtype in ("int32", "int64")}
    for node in graph.nodes:
        if node.op in _PASSING and not node.domain and node.inputs and node.inputs[0] in origin:
            origin[node.outputs[0]] = origin[node.inputs[0]]
        elif node.op in ("Gather", "GatherElements") and len(node.inputs) > 1 and node.inputs[1] in origin:
            shape, axis = graph.type_of(node.inputs[0]).shape, node.attrs.get("axis", 0)
            if isinstance(axis, int) and -len(shape) <= axis < len(shape):
                name = origin[node.inputs[1]]
                highest[name] = minimum(highest.get(name, shape[axis]), shape[axis])
    changed = tuple(
        msgspec.structs.replace(item, fill=Uniform(low=0, high=sub(highest[item.name], 1)))
        if item.name in highest and item.name not in given and highest[item.name] != 0
        else item
        for item in graph.inputs
    )
    return msgspec.structs.replace(graph, inputs=changed)


def declared_types(graph: Graph) -> dict[str, Declared]:
    """The types that a graph states, nested graphs included."""
    found = {name: Declared(value.dtype, value.shape) for name, value in graph.values.items()}
    for node in walk(graph):
        for body in node.attrs.values():
            if isinstance(body, Body):
                found |= {name: Declared(value.dtype, value.shape) for name, value in body.values.items()}
    return found


def used_dims(graph: Graph, given: Mapping[str, DimRange] = MappingProxyType({})) -> dict[str, Dim]:
    """Every symbol in use with its range: those of inputs can be bound, others are data-dependent."""
    bindable = used_symbols([item.shape for item in graph.inputs])
    used = bindable | used_symbols([value.shape for value in graph.values.values()])
    for node in walk(graph):
        for body in node.attrs.values():
            if isinstance(body, Body):
                used |= used_symbols([item.shape for item in body.inputs])
                used |= used_symbols([value.shape for value in body.values.values()])
    return {name: graph.dims.get(name) or _dim(name, given.get(name), name in bindable) for name in sorted(used)}


def _dim(name: str, given: DimRange | None, bindable: bool) -> Dim:
    if isinstance(given, Dim):
        return given
    if given is not None:
        low, high = int(given[0]), int(given[1])
        default = int(given[2]) if len(given) > 2 else low
        return Dim(min=low, max=high, default=default, data_dependent=not bindable)
    if not bindable:
        return Dim(min=0, max=1 << 31, default=1, data_dependent=True)
    low, high = DEFAULT_RANGE
    batch = name in BATCH_NAMES or name.startswith("batch")
    return Dim(min=low, max=high, default=1 if batch else DEFAULT_SIZE)
