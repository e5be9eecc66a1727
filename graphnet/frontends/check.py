"""The capture gate: a graph's outputs, computed by ONNX Runtime unoptimised, against its source's own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from graphnet.errors import CaptureError
from graphnet.ir import onnx_bridge
from graphnet.ir.graph import Graph

TOLERANCE = 1e-4
"""Largest accepted error of a float output, relative to the largest magnitude of the expected output."""
INSTABILITY_FACTOR = 20.0
"""A source that itself moves by e between float32 and float64 may differ from its capture by this many e."""
_INLINE_LIMIT = 1 << 30


def run(graph: Graph, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of `graph` in graph order, by ONNX Runtime on one CPU thread with all graph optimisation off."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # its parallel ScatterND loses additions to repeated indices
    model = onnx_bridge.to_onnx(graph, weights)
    feed = {item.name: inputs[item.name] for item in graph.inputs}
    try:
        if model.ByteSize() < _INLINE_LIMIT:
            session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return list(session.run(list(graph.outputs), feed))
        with tempfile.TemporaryDirectory(prefix="graphnet-check-") as folder:
            path = Path(folder, "model.onnx")
            onnx_bridge.save_onnx(model, path)
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            return list(session.run(list(graph.outputs), feed))
    except Exception as error:  # any: onnxruntime's exception types share no base but Exception
        raise CaptureError(f"{graph.name}: ONNX Runtime cannot run the captured graph: {error}") from error


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest absolute difference over the largest magnitude of `expected`; NaN and infinities must match in place.

    Integers, bools and empty arrays: 0 where equal, infinity where not.
    """
    if actual.shape != expected.shape:
        return float("inf")
    if not np.issubdtype(expected.dtype, np.inexact):
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    wide = np.complex128 if np.issubdtype(expected.dtype, np.complexfloating) else np.float64
    left, right = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.all(np.isfinite(left[finite])):
        return float("inf")
    if not finite.any():
        return 0.0
    difference, scale = float(np.abs(left - right)[finite].max()), float(np.abs(right[finite]).max())
    return difference / scale if scale else (0.0 if difference == 0 else float("inf"))


def compare(
    graph: Graph,
    inputs: Mapping[str, np.ndarray],
    weights: Mapping[str, np.ndarray],
    expected: Sequence[np.ndarray],
    *,
    instability: Sequence[float] | None = None,
    tolerance: float = TOLERANCE,
) -> float:
    """Run `graph` and return its largest relative error against `expected` (its source's outputs, in graph order).

    `instability` is each output's own error between the source in float32 and in float64; it widens the tolerance.
    Raises CaptureError naming the output and the error.
    """
    actual = run(graph, inputs, weights)
    if len(actual) != len(expected):
        raise CaptureError(f"{graph.name}: the capture has {len(actual)} outputs, its source {len(expected)}")
    worst = 0.0
    for index, (name, got, want) in enumerate(zip(graph.outputs, actual, expected, strict=True)):
        if got.dtype != want.dtype:
            raise CaptureError(f"{graph.name}: output '{name}' is {got.dtype}, the source gives {want.dtype}")
        if got.shape != want.shape:
            raise CaptureError(f"{graph.name}: output '{name}' has shape {got.shape}, the source gives {want.shape}")
        error = relative_error(got, want)
        limit = max(tolerance, INSTABILITY_FACTOR * instability[index] if instability else 0.0)
        if not error <= limit:
            raise CaptureError(
                f"{graph.name}: output '{name}' differs from its source by {error:.3g} (relative to the largest value;"
                f" allowed {limit:.3g})"
            )
        worst = max(worst, error)
    return worst
