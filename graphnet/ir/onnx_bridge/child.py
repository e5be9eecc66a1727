"""The process that imports one untrusted ONNX file: request on stdin, graph into a file, error as JSON on stdout."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import msgspec

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Fill
from graphnet.ir.onnx_bridge import files, import_model
from graphnet.ir.onnx_bridge.read import ReadOptions

BASE_MEMORY = 2 << 30
"""Address space of the interpreter and its libraries; a multiple of the file limit is added for the work."""
_COPIES = 4


def main(target: str) -> int:
    """Import, write the graph to `target`, return the exit status (1: a GraphFormatError, told on stdout)."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=files.Request)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the C++ library may write to stdout
    size = Path(request.path).stat().st_size
    space = BASE_MEMORY + _COPIES * max(request.limit, size)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        options = ReadOptions(
            request.parameters,
            request.buffers,
            {name: msgspec.convert(fill, Fill) for name, fill in request.fills.items()},
            request.weights,
            request.limit,
        )
        dims = {name: tuple(dim) if isinstance(dim, list) else dim for name, dim in request.dims.items()}
        model = files.read_model(Path(request.path), request.limit)
        graph = import_model(model, options, dims, request.metadata)  # type: ignore[arg-type]
        Path(target).write_bytes(msgspec.json.encode(graph))
    except GraphFormatError as error:
        answer.write(msgspec.json.encode({"cause": error.cause, "where": error.where}))
        answer.flush()
        return 1
    except (MemoryError, RecursionError) as error:
        cause = f"{type(error).__name__} within the limits of the import (set GRAPHNET_MAX_BYTES)"
        answer.write(msgspec.json.encode({"cause": cause, "where": "$"}))
        answer.flush()
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
