"""Reading and writing graph files (`.json`, `.json.zst`) within limits: bad input is a GraphFormatError."""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import zstandard

from graphnet.errors import GraphFormatError
from graphnet.ir import explain, sidecar
from graphnet.ir.graph import Graph
from graphnet.ir.limits import max_bytes as max_bytes
from graphnet.ir.limits import too_big
from graphnet.ir.memory import paused_collector
from graphnet.ir.validate import validate

if TYPE_CHECKING:
    import numpy as np

ZSTD_LEVEL = 12
ZSTD_MAX_WINDOW = 1 << 27
"""Bytes; what `zstd -19` uses at most is 8 MiB, `--ultra -22` 128 MiB."""
_FEED = 1 << 10
"""Compressed bytes given to the decompressor at once: they may grow 32,768 fold."""

_decoder = msgspec.json.Decoder(Graph)
_encoder = msgspec.json.Encoder()
_SECTIONS: dict[str, Any] = {"inputs": (), "outputs": (), "weights": {}, "nodes": (), "values": {}}


def load(path: str | os.PathLike[str]) -> Graph:
    """Read and validate `x.json` or `x.json.zst`.

    Weights with fill `file` are linked to the sidecar `x.safetensors` beside it, which is checked but not read.
    Raises GraphFormatError (naming file, JSON path and cause), FileNotFoundError, PermissionError.
    """
    graph = loads(_read(Path(path)), file=os.fspath(path))
    try:
        return sidecar.link(graph, sidecar_path(path))
    except GraphFormatError as error:
        raise error.in_file(os.fspath(path)) from None


def loads(data: bytes, file: str = "") -> Graph:
    """Decode and validate JSON, or zstd-compressed JSON. `file` only names it in errors. Raises GraphFormatError."""
    try:
        with paused_collector():
            return _loads(data)
    except GraphFormatError as error:
        raise error.in_file(file) from None


def save(graph: Graph, path: str | os.PathLike[str], tensors: Mapping[str, np.ndarray] | None = None) -> None:
    """Validate and write atomically; `.zst` at the end of the name compresses.

    Weights with fill `file` are written to the sidecar: from `tensors`, else copied from where they were loaded.
    Raises GraphFormatError (the graph is invalid, or such a weight has no elements), OSError.
    """
    target = Path(path)
    if not target.name.endswith((".json", ".json.zst")):
        raise GraphFormatError("a graph file's name ends in .json or .json.zst", file=os.fspath(path))
    data = dumps(graph)
    if target.name.endswith(".zst"):
        data = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).compress(data)
    content = sidecar.content(graph, sidecar_path(path), tensors)
    if content is not None:
        write_atomic(sidecar_path(path), content)
    write_atomic(target, data)


def dumps(graph: Graph) -> bytes:
    """Validated JSON, one line for each input, weight, node and value; equal graphs give equal bytes.

    Raises GraphFormatError.
    """
    validate(graph)
    try:
        return _encode(sidecar.unlink(graph))
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise GraphFormatError(f"it cannot be written as JSON: {error}") from None


def sidecar_path(path: str | os.PathLike[str]) -> Path:
    """Where the exact weights of a graph file are: `x.json` and `x.json.zst` have `x.safetensors`."""
    file = Path(path)
    name = file.name.removesuffix(".zst").removesuffix(".json")
    return file.with_name(name + ".safetensors")


def write_atomic(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Replace a file as a whole: after a crash either the old or the new content is there. Raises OSError."""
    target = Path(path)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.writelines([data] if isinstance(data, bytes) else data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> bytes:
    limit = max_bytes()
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device would hang or never end
        raise GraphFormatError("not a regular file", file=str(path))
    with path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise GraphFormatError(too_big("file", limit), file=str(path))
    return data


def _loads(data: bytes) -> Graph:
    limit = max_bytes()
    if len(data) > limit:
        raise GraphFormatError(too_big("graph", limit))
    if data[:4] == zstandard.FRAME_HEADER:
        data = _decompress(data, limit)
    try:
        graph = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise explain.decode_error(data, error) from None
    if not _is_canonical(graph, data):
        explain.check_members(data)
    validate(graph)
    return graph


def _is_canonical(graph: Graph, data: bytes) -> bool:
    """Whether `data` is what we would write: then no key can be there twice, and `format` is there."""
    try:
        return _encode(graph) == data
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return False


def _decompress(data: bytes, limit: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW).decompressobj()
    out = io.BytesIO()
    view = memoryview(data)
    try:
        for start in range(0, len(data), _FEED):
            out.write(decompressor.decompress(view[start : start + _FEED]))
            if out.tell() > limit:
                raise GraphFormatError(too_big("decompressed graph", limit))
            if decompressor.eof:
                break
    except zstandard.ZstdError as error:
        raise GraphFormatError(f"not valid zstd data: {error}") from None
    if not decompressor.eof:
        raise GraphFormatError("the zstd data is truncated")
    if decompressor.unused_data or start + _FEED < len(data):
        raise GraphFormatError("there is data after the end of the zstd frame")
    return out.getvalue()


def _encode(graph: Graph) -> bytes:
    header = msgspec.structs.replace(graph, **_SECTIONS)
    members = msgspec.json.decode(_encoder.encode(header), type=dict[str, msgspec.Raw])
    lines = [b'"%s":%s' % (key.encode(), bytes(value)) for key, value in members.items()]
    lines += _list_section("inputs", graph.inputs)
    if graph.outputs:
        lines.append(b'"outputs":' + _encoder.encode(graph.outputs))
    lines += _dict_section("weights", graph.weights)
    lines += _list_section("nodes", graph.nodes)
    lines += _dict_section("values", graph.values)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _list_section(name: str, items: Iterable[Any]) -> list[bytes]:
    body = _encoder.encode_lines(items)  # JSON strings hold no raw newline, so only those between items are there
    return [b'"%s":[\n%s\n]' % (name.encode(), body[:-1].replace(b"\n", b",\n"))] if body else []


def _dict_section(name: str, items: Mapping[str, Any]) -> list[bytes]:
    if not items:
        return []
    keys = _encoder.encode_lines(items.keys()).split(b"\n")[:-1]
    values = _encoder.encode_lines(items.values()).split(b"\n")[:-1]
    body = b",\n".join(map(b":".join, zip(keys, values, strict=True)))
    return [b'"%s":{\n%s\n}' % (name.encode(), body)]
