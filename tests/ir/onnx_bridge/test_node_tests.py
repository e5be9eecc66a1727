"""Import, clean-up and round trip of ONNX's own node tests: types against the tests' real outputs."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest

from graphnet.errors import GraphFormatError
from graphnet.ir import finalize, fold, tensors
from graphnet.ir.graph import Graph
from graphnet.ir.onnx_bridge import from_onnx, to_onnx

REFUSED = {
    r"is a (sequence|optional): only tensors are supported": "GraphIR has tensors only",
    r"element type (U?INT2|FLOAT8E8M0) is not supported": "dtypes newer than opset 23",
    r"opset 2[4-9] could not be converted to 23": "operators and attributes newer than opset 23",
    r"Scan of opset 8 cannot be converted": "the standard's converter gets it wrong silently",
    r"has unsupported type: tensor\(": "dtypes that the operator takes only after opset 23",
    r"node 'Attention' \(Attention\) is invalid": "an input that Attention has only after opset 23",
    r"with a nested graph is not supported": "a preview operator whose attribute is a graph",
    r"shape of '.*' is unknown": "rank depends on data: a Squeeze without axes after a data-dependent Reshape",
    r"ONNX has no operator '.*' at opset 23": "operators newer than opset 23",
}
"""What the import refuses, as patterns of its message, and why."""


@functools.cache
def cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found: list[Any] = collect_testcases(None)
    return found


def imported(case: Any) -> Graph | str:
    try:
        return from_onnx(case.model)
    except GraphFormatError as error:
        return str(error)


def wrong_types(graph: Graph, case: Any) -> list[str]:
    """Outputs whose stated type is not that of the test's data."""
    wrong = []
    for _, expected in case.data_sets or []:
        for name, value in zip(graph.outputs, expected, strict=True):
            array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
            stated = graph.type_of(name)
            if stated.dtype == "string":
                continue
            sizes = zip(stated.shape, array.shape, strict=False)
            shaped = len(stated.shape) == array.ndim and all(isinstance(a, str) or a == b for a, b in sizes)
            if not shaped or tensors.numpy_dtype(stated.dtype) != array.dtype:
                wrong.append(f"{case.name}: {name} is {array.dtype}{list(array.shape)}, stated as {stated}")
    return wrong


def test_types_are_those_of_real_outputs() -> None:
    refused, wrong, good = [], [], 0
    used = set()
    for case in cases():
        graph = imported(case)
        if isinstance(graph, str):
            reasons = [pattern for pattern in REFUSED if re.search(pattern, graph)]
            used.update(reasons)
            refused += [] if reasons else [f"{case.name}: {graph}"]
            continue
        good += 1
        wrong += wrong_types(graph, case)
    assert refused == []
    assert wrong == []
    assert good / len(cases()) > 0.88
    assert set(REFUSED) - used <= {r"ONNX has no operator '.*' at opset 23"}, "a reason that nothing needs any more"


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_clean_graphs_are_valid_and_survive_the_round_trip(part: int) -> None:
    for case in cases()[part::4]:
        graph = imported(case)
        if isinstance(graph, str):
            continue
        done = finalize.finalize(fold.clean(graph))
        done.validate()
        finalize.check(done)
        assert fold.clean(done).nodes == done.nodes, case.name
        again = from_onnx(to_onnx(done), name=done.name)
        assert again.values == done.values, case.name
        assert again.structure_hash() == done.stored_hash, case.name


RUNTIME_DIFFERS = {
    "test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
    "test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
    "test_maxunpool_export_with_output_shape",
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
}
"""ONNX Runtime's own results differ on the tests' original models, too."""


@pytest.mark.slow
def test_clean_graphs_compute_what_the_tests_expect() -> None:
    differs = set()
    compared = 0
    for case in cases():
        graph = imported(case)
        if isinstance(graph, str) or not case.data_sets or "bernoulli" in case.name or "training_dropout" in case.name:
            continue
        inputs, expected = case.data_sets[0]
        arrays = [value for value in [*inputs, *expected] if isinstance(value, np.ndarray)]
        if len(arrays) < len(inputs) + len(expected) or len(inputs) != len(graph.inputs):
            continue
        found = runtime_outputs(fold.clean(graph), inputs)
        if found is None:
            continue
        compared += 1
        if not all(close(a, b) for a, b in zip(found, expected, strict=True)):
            differs.add(case.name)
    assert differs <= RUNTIME_DIFFERS
    assert compared > 1_000


def runtime_outputs(graph: Graph, inputs: list[np.ndarray]) -> list[np.ndarray] | None:
    """ONNX Runtime's outputs, None for an operator or dtype that it lacks."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(to_onnx(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
        feed = {item.name: array for item, array in zip(graph.inputs, inputs, strict=True)}
        return list(session.run(None, feed))
    except Exception:  # any: the library's errors share no base class
        return None


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    if expected.dtype.kind in "OSU":
        return bool(np.array_equal(found, expected))
    return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=1e-2, atol=1e-3, equal_nan=True))
