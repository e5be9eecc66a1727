"""Capture of ONNX files: imported, cleaned up, and compared with the file itself before it counts as captured."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphnet.errors import CaptureError
from graphnet.frontends import check as gate
from graphnet.ir import finalize, fold, onnx_bridge, tensors
from graphnet.ir.graph import Graph

RUN_SECONDS = 600
"""Wall time that one run of the original file may take."""


def capture(path: str | os.PathLike[str], *, check: bool = True, weights: str = "exact", **options: Any) -> Graph:
    """Import an ONNX file (`weights` and `options` as for `from_onnx`), clean it up and fill its metadata.

    With `check` the captured graph, with the file's exact weights, and the file itself are run on the same inputs by
    ONNX Runtime; the largest relative error is stored in `source.max_error`. Raises GraphFormatError, CaptureError.
    """
    file = Path(path)
    exact = fold.clean(onnx_bridge.from_onnx(file, weights="exact", **options))
    error = _compare(exact, file) if check else None
    graph = exact if weights == "exact" else fold.clean(onnx_bridge.from_onnx(file, weights=weights, **options))
    source = msgspec.structs.replace(
        graph.source,
        model=graph.source.model or file.name,
        capture=graph.source.capture or "onnx",
        mode=graph.source.mode or "inference",
        max_error=error,
    )
    done = finalize.finalize(msgspec.structs.replace(graph, source=source))
    done.validate()
    return done


def _compare(graph: Graph, file: Path) -> float:
    inputs = tensors.inputs(graph)
    return gate.compare(graph, inputs, graph.materialize(), run_file(file, inputs))


def run_file(file: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of an ONNX file as it is, computed in a process of its own. Raises CaptureError."""
    with tempfile.TemporaryDirectory(prefix="graphnet-onnx-") as folder:
        given, found = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        np.savez(given, allow_pickle=False, **dict(inputs))
        arguments = [str(file.absolute()), str(given), str(found)]
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "graphnet.frontends.onnx_child", *arguments],
                capture_output=True,
                timeout=RUN_SECONDS,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except subprocess.TimeoutExpired:
            raise CaptureError(f"{file}: one run of the file took more than {RUN_SECONDS} s") from None
        if done.returncode != 0 or not found.exists():
            last = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1][:300]
            raise CaptureError(f"{file}: ONNX Runtime cannot run the file (exit status {done.returncode}): {last}")
        with np.load(found, allow_pickle=False) as arrays:
            return [arrays[str(index)] for index in range(len(arrays.files))]
