"""The process that runs one ONNX file: its path, inputs (.npz by name) and outputs (.npz by position) as arguments."""

from __future__ import annotations

import sys

import numpy as np


def main(file: str, given: str, found: str) -> int:
    """Run the file unoptimised on CPU and write its outputs."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    with np.load(given, allow_pickle=False) as inputs:
        outputs = session.run(None, {item.name: inputs[item.name] for item in session.get_inputs()})
    np.savez(found, allow_pickle=False, **{str(index): array for index, array in enumerate(outputs)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:4]))
