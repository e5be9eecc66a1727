"""Imports ONNX models handed to it, each in a fork of its own: run by test_fuzz.py.

On stdin, for each model: 4 bytes of length, the bytes. On stdout one line each: outcome, seconds, peak megabytes.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from graphnet.errors import GraphFormatError
from graphnet.ir import finalize, fold
from graphnet.ir.onnx_bridge import files, import_model
from graphnet.ir.onnx_bridge.read import ReadOptions

MEMORY = 3 << 30
SECONDS = 30
LIMIT = 64 << 20


def import_once(path: Path) -> int:
    """0 a graph, 1 a GraphFormatError, 2 another exception."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(SECONDS)
    try:
        graph = import_model(files.read_model(path, LIMIT), ReadOptions(limit=LIMIT), {}, {})
        done = finalize.finalize(fold.clean(graph))
        done.validate()
    except GraphFormatError:
        return 1
    except BaseException:
        traceback.print_exc()
        return 2
    return 0


def main(folder: str) -> None:
    """Serve until stdin ends."""
    path = Path(folder, "model.onnx")
    while len(head := sys.stdin.buffer.read(4)) == 4:
        path.write_bytes(sys.stdin.buffer.read(int.from_bytes(head, "little")))
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)
            os._exit(import_once(path))
        _, status, usage = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(f"{code} {time.monotonic() - start:.2f} {usage.ru_maxrss // 1024}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
