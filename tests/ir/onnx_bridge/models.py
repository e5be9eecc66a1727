"""What the tests of the bridge share: models from text, and the graph's outputs by ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

from graphnet.ir.graph import Graph
from graphnet.ir.onnx_bridge import to_onnx


def model(text: str, opset: int = 23, ir_version: int = 10) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}]>\n{text}')


def shape(graph: Graph, name: str) -> tuple[int | str, ...]:
    return graph.type_of(name).shape


def run(graph: Graph, **inputs: np.ndarray) -> list[Any]:
    """The graph's outputs by ONNX Runtime."""
    session = onnxruntime.InferenceSession(to_onnx(graph).SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))
