"""Exact weights beside a graph: the safetensors file `<graph file stem>.safetensors` (fill kind `file`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir.explain import member
from graphnet.ir.graph import File, Graph, Weight

if TYPE_CHECKING:
    import numpy as np

MAX_HEADER_BYTES = 100 << 20
NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "float8e5m2": "F8_E5M2", "float8e4m3fn": "F8_E4M3", "int16": "I16",
    "uint16": "U16", "float16": "F16", "bfloat16": "BF16", "int32": "I32", "uint32": "U32", "float32": "F32",
    "float64": "F64", "int64": "I64", "uint64": "U64", "complex64": "C64",
}  # fmt: skip
"""Our dtypes by their names in safetensors files; the others cannot have fill `file`."""
_SIZES = {"BOOL": 1, "F8_E5M2": 1, "F8_E4M3": 1, "BF16": 2, "C64": 8}


class Located(File, frozen=True, kw_only=True, tag="file", tag_field="kind"):
    """A `File` fill that knows where its sidecar is: made when a graph file is read, never part of the file."""

    path: str


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def link(graph: Graph, path: Path) -> Graph:
    """The graph with its `file` fills tied to the sidecar at `path`; dtypes and shapes are checked, data is not read.

    Raises GraphFormatError: no such file, a link out of the folder, a malformed file, a weight that does not agree.
    """
    wanted = {name: weight for name, weight in graph.weights.items() if isinstance(weight.fill, File)}
    if not wanted:
        return graph
    real = _real_path(path)
    entries, _ = _header(real)
    for name, weight in wanted.items():
        _check(name, weight, entries, path)
    fill = Located(path=real)
    linked = {name: msgspec.structs.replace(weight, fill=fill) for name, weight in wanted.items()}
    return msgspec.structs.replace(graph, weights={**graph.weights, **linked})


def unlink(graph: Graph) -> Graph:
    """The graph as it is written: without the places of sidecars."""
    located = {name: weight for name, weight in graph.weights.items() if isinstance(weight.fill, Located)}
    if not located:
        return graph
    plain = {name: msgspec.structs.replace(weight, fill=File()) for name, weight in located.items()}
    return msgspec.structs.replace(graph, weights={**graph.weights, **plain})


def read(fill: File, dtype: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The elements of weight `name`. Raises GraphFormatError, also when the graph was not loaded from a file."""
    import numpy as np

    from graphnet.ir.tensors import numpy_dtype

    if not isinstance(fill, Located):
        raise GraphFormatError(
            "its elements are in a sidecar file, and this graph was not loaded from a file: load it by path",
            where=member("$.weights", name),
        )
    entries, start = _header(fill.path)
    _check(name, Weight(dtype=dtype, shape=shape, fill=fill), entries, Path(fill.path))  # type: ignore[arg-type]
    flat = np.fromfile(fill.path, numpy_dtype(dtype), prod(shape), offset=start + entries[name].data_offsets[0])
    return flat.reshape(shape)


def content(graph: Graph, path: Path, tensors: Mapping[str, np.ndarray] | None) -> Iterable[bytes] | None:
    """The bytes of the sidecar to be written at `path`; None when none is needed or it is there already.

    Raises GraphFormatError: a `file` weight has no elements, or the wrong ones.
    """
    wanted = {name: weight for name, weight in graph.weights.items() if isinstance(weight.fill, File)}
    sources = {weight.fill.path for weight in wanted.values() if isinstance(weight.fill, Located)}
    if not wanted or (not tensors and len(sources) == 1 and sources == {os.path.realpath(path)}):
        return None
    given = tensors or {}
    arrays = {name: _array(name, weight, given) for name, weight in wanted.items()}
    entries, position = {}, 0
    for name, array in arrays.items():
        entries[name] = _Entry(NAMES[wanted[name].dtype], array.shape, (position, position + array.nbytes))
        position += array.nbytes
    header = msgspec.json.encode(entries)
    header += b" " * (-len(header) % 8)
    return [len(header).to_bytes(8, "little"), header, *(array.tobytes() for array in arrays.values())]


def _array(name: str, weight: Weight, given: Mapping[str, np.ndarray]) -> np.ndarray:
    from graphnet.ir.tensors import numpy_dtype

    array = given.get(name)
    if array is None:
        return read(weight.fill, weight.dtype, weight.shape, name)  # type: ignore[arg-type]
    if array.dtype != numpy_dtype(weight.dtype) or array.shape != weight.shape:
        raise GraphFormatError(
            f"given elements are {array.dtype}{list(array.shape)}, the weight is {weight.dtype}{list(weight.shape)}",
            where=member("$.weights", name),
        )
    return array


def _real_path(path: Path) -> str:
    real = os.path.realpath(path)
    if os.path.dirname(real) != os.path.realpath(path.parent):
        raise GraphFormatError(f"the sidecar '{path.name}' is a link that leaves its folder")
    try:
        mode = os.stat(real).st_mode
    except FileNotFoundError:
        raise GraphFormatError(f"weights with fill 'file' need the sidecar '{path.name}' beside the graph") from None
    if not stat.S_ISREG(mode):
        raise GraphFormatError(f"the sidecar '{path.name}' is not a regular file")
    return real


def _header(path: str) -> tuple[dict[str, _Entry], int]:
    """Entries by name, and where the data starts."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise GraphFormatError(f"sidecar: {error.strerror}", file=path) from None
    return _parse(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=8)
def _parse(path: str, size: int, _changed: int) -> tuple[dict[str, _Entry], int]:
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
            raise GraphFormatError("sidecar: truncated, or no safetensors file", file=path)
        text = stream.read(length)
    try:
        raw = msgspec.json.decode(text, type=dict[str, Any])
        raw.pop("__metadata__", None)
        entries = msgspec.convert(raw, dict[str, _Entry])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise GraphFormatError(f"sidecar: bad safetensors header: {error}", file=path) from None
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        if not 0 <= begin <= end <= size - 8 - length:
            raise GraphFormatError(f"sidecar: data of '{name}' lies outside the file", file=path)
    return entries, 8 + length


def _check(name: str, weight: Weight, entries: Mapping[str, _Entry], path: Path) -> None:
    where = member("$.weights", name)
    entry = entries.get(name)
    if entry is None:
        raise GraphFormatError(f"the sidecar '{path.name}' has no tensor '{name}'", where=where)
    expected = NAMES.get(weight.dtype)
    if entry.dtype != expected or entry.shape != weight.shape:
        found = f"{entry.dtype}{list(entry.shape)}"
        raise GraphFormatError(
            f"the sidecar '{path.name}' has {found}, the weight is {weight.dtype}{list(weight.shape)}", where=where
        )
    size = _SIZES.get(entry.dtype) or int(entry.dtype[1:]) // 8
    if entry.data_offsets[1] - entry.data_offsets[0] != prod(entry.shape) * size:
        raise GraphFormatError(f"the sidecar '{path.name}' has the wrong number of bytes for it", where=where)
