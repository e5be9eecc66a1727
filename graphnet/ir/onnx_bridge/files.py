"""Reads ONNX files that nobody vouches for: size limits, external data inside the folder only, a process of its own."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Dim, Graph

CHILD_SECONDS = 600
"""Wall time that the import of one file may take."""
_CHUNK = 1 << 24


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the child process is asked to import."""

    path: str
    parameters: list[str] | None = None
    buffers: list[str] = []
    fills: dict[str, Any] = {}
    weights: str = "exact"
    limit: int
    dims: dict[str, Dim | list[int]] = {}
    metadata: dict[str, Any] = {}


def read_model(path: Path, limit: int) -> ModelProto:
    """The model with its external data loaded. Raises GraphFormatError, FileNotFoundError."""
    size = path.stat().st_size
    if size > limit:
        raise GraphFormatError(f"{size:,} bytes; at most {limit:,} are read (set GRAPHNET_MAX_BYTES)")
    model = ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise GraphFormatError(f"not an ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise GraphFormatError("not an ONNX model: it has no graph")
    _check_text(model)
    budget = limit - size
    for tensor in tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            budget -= load_external(tensor, path.parent, budget)
    return model


def _check_text(model: ModelProto) -> None:
    """Refuse names that are not UTF-8, which the protobuf library hands out as bytes. Raises GraphFormatError."""
    stack: list[Any] = [model]
    while stack:
        for field, value in stack.pop().ListFields():
            if field.cpp_type == field.CPPTYPE_MESSAGE:
                stack.extend([value] if hasattr(value, "ListFields") else value)
            elif field.type == field.TYPE_STRING:
                items = [value] if isinstance(value, str | bytes) else value
                if any(isinstance(item, bytes) for item in items):
                    raise GraphFormatError(f"a text in '{field.full_name}' is not UTF-8")


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor that a model can carry: initializers, sparse ones, attributes, nested graphs, functions."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(list(function.node))
        yield from _attribute_tensors(list(function.attribute_proto))
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    stack = [graph]
    while stack:
        current = stack.pop()
        yield from current.initializer
        for sparse in current.sparse_initializer:
            yield sparse.values
            yield sparse.indices
        yield from _node_tensors(list(current.node))


def _node_tensors(nodes: list[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _attribute_tensors(list(node.attribute))


def _attribute_tensors(attributes: list[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for sparse in [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []:
            yield sparse.values
            yield sparse.indices
        for sparse in attribute.sparse_tensors:
            yield sparse.values
            yield sparse.indices
        for graph in [attribute.g] if attribute.HasField("g") else []:
            yield from _graph_tensors(graph)
        for graph in attribute.graphs:
            yield from _graph_tensors(graph)


def load_external(tensor: TensorProto, folder: Path, budget: int) -> int:
    """Move a tensor's external data into it; returns its bytes. Raises GraphFormatError for an illegal place."""
    where = f"tensor '{tensor.name}'"
    entries = {item.key: item.value for item in tensor.external_data}
    location = entries.get("location", "")
    offset, length = _number(entries, "offset", where), _number(entries, "length", where)
    try:
        with _open_inside(folder, location) as file:
            size = os.fstat(file.fileno()).st_size
            length = size - offset if "length" not in entries else length
            if offset > size or length > size - offset:
                raise GraphFormatError(
                    f"{where}: bytes {offset} to {offset + length} of '{location}', which has {size}"
                )
            if length > budget:
                raise GraphFormatError(f"{where}: external data beyond the limit (set GRAPHNET_MAX_BYTES)")
            file.seek(offset)
            data = file.read(length)
    except OSError as error:
        raise GraphFormatError(f"{where}: external data '{location}' cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise GraphFormatError(f"{where}: external data at {location!r}: {error}") from error
    tensor.raw_data = data
    tensor.ClearField("external_data")
    tensor.data_location = TensorProto.DEFAULT
    return length


def _number(entries: Mapping[str, str], key: str, where: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise GraphFormatError(f"{where}: external data has {key} '{text[:40]}'")
    return int(text)


def _open_inside(folder: Path, location: str) -> Any:
    """Open a file below `folder`, component by component: no `..`, no absolute path, no link of either kind.

    Raises ValueError with the reason, OSError.
    """
    parts = location.replace("\\", "/").split("/")
    if not location or location.startswith(("/", "\\")) or ":" in parts[0] or "\0" in location:
        raise ValueError("only a path relative to the model's folder is allowed")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("it may not leave the model's folder")
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
        handle = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=current)
    finally:
        os.close(current)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise ValueError("it is no plain file, or a hard link")
    return os.fdopen(handle, "rb")


def import_isolated(path: Path, options: Any, dims: Mapping[str, Any], metadata: dict[str, Any]) -> Graph:
    """`from_onnx` of a file in a child process with limits on memory and time. Raises GraphFormatError."""
    if not path.is_file():
        raise FileNotFoundError(path)
    request = Request(
        path=str(path.absolute()),
        parameters=None if options.parameters is None else list(options.parameters),
        buffers=list(options.buffers),
        fills={name: msgspec.to_builtins(fill) for name, fill in options.fills.items()},
        weights=options.weights,
        limit=options.limit,
        dims={name: dim if isinstance(dim, Dim) else list(dim) for name, dim in dims.items()},
        metadata=msgspec.to_builtins(metadata),
    )
    with tempfile.TemporaryDirectory(prefix="graphnet-onnx-") as folder:
        result = Path(folder, "graph.json")
        command = [sys.executable, "-P", "-m", "graphnet.ir.onnx_bridge.child", str(result)]
        try:
            done = subprocess.run(
                command,
                input=msgspec.json.encode(request),
                capture_output=True,
                timeout=CHILD_SECONDS,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except subprocess.TimeoutExpired:
            raise GraphFormatError(f"the import took more than {CHILD_SECONDS} s", file=str(path)) from None
        if done.returncode == 0 and result.exists():
            return msgspec.json.decode(result.read_bytes(), type=Graph)
        if done.returncode == 1 and done.stdout.startswith(b"{"):
            answer = msgspec.json.decode(done.stdout, type=dict[str, str])
            raise GraphFormatError(answer["cause"], where=answer["where"], file=str(path))
        raise GraphFormatError(_death(done), file=str(path))


def _death(done: subprocess.CompletedProcess[bytes]) -> str:
    code = done.returncode
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    last = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1][:200]
    return f"the import of this file ended its process ({how}){': ' + last if last else ''}"
