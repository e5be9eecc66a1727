"""Capture of ONNX files: cleaned, compared with the file itself, refused when it differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from graphnet.errors import CaptureError, GraphFormatError
from graphnet.frontends import onnx as onnx_capture
from graphnet.ir import finalize, fold
from graphnet.ir.graph import Graph, Normal, Uniform
from graphnet.ir.onnx_bridge import save_onnx

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (int64[batch, seq] ids) => (float[batch, seq, 6] y) <int64[1] axis = {1}> {
    e = Gather <axis = 0> (table, ids)
    h = MatMul(e, w)
    i = Identity(h)
    p = Softmax <axis = -1> (i)
    m = ReduceMean <axes = [1], keepdims = 1> (p)
    y = Sub(p, m)
}"""


def model() -> ModelProto:
    rng = np.random.default_rng(0)
    proto = parser.parse_model(TEXT)
    for name, shape in (("table", (11, 4)), ("w", (4, 6))):
        proto.graph.initializer.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
    return proto


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.onnx"
    path.write_bytes(model().SerializeToString())
    return path


def test_captured_graph_is_clean_checked_and_complete(file: Path) -> None:
    graph = onnx_capture.capture(file, dims={"batch": (1, 8, 2), "seq": (1, 16, 5)}, domain="transformer")
    assert [node.op for node in graph.nodes] == ["Gather", "MatMul", "Softmax", "ReduceMean", "Sub"]
    assert graph.inputs[0].fill == Uniform(low=0, high=10)
    assert (graph.name, graph.domain, graph.operator_count, graph.parameters) == ("small", "transformer", 5, 44 + 24)
    assert (graph.source.model, graph.source.capture, graph.source.mode) == ("small.onnx", "onnx", "inference")
    assert graph.source.max_error is not None
    assert graph.source.max_error < 1e-6
    finalize.check(graph)


def test_random_weights_after_an_exact_comparison(file: Path) -> None:
    graph = onnx_capture.capture(file, weights="random", dims={"batch": (1, 8, 2), "seq": (1, 16, 5)})
    assert isinstance(graph.weights["w"].fill, Normal)
    assert graph.source.max_error is not None


def test_without_comparison(file: Path) -> None:
    assert onnx_capture.capture(file, check=False).source.max_error is None


def test_external_data(tmp_path: Path) -> None:
    save_onnx(Graph.from_onnx(model(), name="big"), tmp_path / "big.onnx")
    assert onnx_capture.capture(tmp_path / "big.onnx").parameters == 68


def test_a_capture_that_differs_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(graph: Graph) -> Graph:
        done = clean(graph)
        nodes = tuple(node for node in done.nodes if node.op != "Sub")
        return Graph(
            name=done.name, dims=done.dims, inputs=done.inputs, outputs=("p",), weights=done.weights, nodes=nodes,
            values={name: value for name, value in done.values.items() if name != "y"},
        )  # fmt: skip

    clean = fold.clean
    monkeypatch.setattr(fold, "clean", spoiled)
    with pytest.raises(CaptureError, match="output 'p' differs from its source"):
        onnx_capture.capture(file)


def test_a_file_that_cannot_run_is_refused(file: Path) -> None:
    with pytest.raises(CaptureError, match=r"ONNX Runtime cannot run the file .exit status 1."):
        onnx_capture.run_file(file, {})


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model")
    with pytest.raises(GraphFormatError, match="not an ONNX model"):
        onnx_capture.capture(bad)
