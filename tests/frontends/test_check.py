"""The comparison that every capture passes."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet.errors import CaptureError
from graphnet.frontends import check
from graphnet.ir.graph import Graph, Input, Node, Value

X = np.array([[1.0, -2.0, 4.0]], np.float32)


def relu_graph(op: str = "Relu") -> Graph:
    return Graph(
        name="one",
        inputs=(Input(name="x", dtype="float32", shape=(1, 3)),),
        outputs=("y",),
        nodes=(Node(op=op, name="n", inputs=("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=(1, 3))},
    )


def test_equal_outputs_have_no_error() -> None:
    assert check.compare(relu_graph(), {"x": X}, {}, [np.array([[1, 0, 4]], np.float32)]) == 0.0


def test_error_is_relative_to_the_largest_expected_value() -> None:
    expected = np.array([[1, 0.0002, 4]], np.float32)
    error = check.compare(relu_graph(), {"x": X}, {}, [expected])
    assert error == pytest.approx(0.0002 / 4, rel=1e-5)


def test_a_difference_names_the_output_and_the_error() -> None:
    with pytest.raises(CaptureError, match=r"one: output 'y' differs from its source by 0\.25 .*allowed 0\.0001"):
        check.compare(relu_graph(), {"x": X}, {}, [np.array([[1, 1, 4]], np.float32)])


def test_an_unstable_source_widens_the_tolerance() -> None:
    expected = [np.array([[1, 0.02, 4]], np.float32)]
    with pytest.raises(CaptureError):
        check.compare(relu_graph(), {"x": X}, {}, expected, instability=[1e-6])
    assert check.compare(relu_graph(), {"x": X}, {}, expected, instability=[1e-3]) == pytest.approx(0.005, rel=1e-5)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ([np.zeros((3,), np.float32)], r"shape \(1, 3\), the source gives \(3,\)"),
        ([np.zeros((1, 3), np.float64)], "is float32, the source gives float64"),
        ([], "has 1 outputs, its source 0"),
    ],
)
def test_shape_dtype_and_count_are_compared(expected: list[np.ndarray], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        check.compare(relu_graph(), {"x": X}, {}, expected)


def test_a_graph_that_does_not_run_is_a_capture_error() -> None:
    with pytest.raises(CaptureError, match="one: ONNX Runtime cannot run the captured graph"):
        check.compare(relu_graph("NoSuchOperator"), {"x": X}, {}, [X])


def test_relative_error_of_special_values() -> None:
    nan, inf = float("nan"), float("inf")
    assert check.relative_error(np.array([nan, 1.0]), np.array([nan, 1.0])) == 0.0
    assert check.relative_error(np.array([nan, 1.0]), np.array([2.0, 1.0])) == inf
    assert check.relative_error(np.array([2.0, 1.0]), np.array([nan, 1.0])) == inf
    assert check.relative_error(np.array([inf, 1.0]), np.array([-inf, 1.0])) == inf
    assert check.relative_error(np.array([0.0]), np.array([0.0])) == 0.0
    assert check.relative_error(np.array([1e-9]), np.array([0.0])) == inf
    assert check.relative_error(np.array([1, 2]), np.array([1, 2])) == 0.0
    assert check.relative_error(np.array([1, 2]), np.array([1, 3])) == inf
    assert check.relative_error(np.zeros((0, 3)), np.zeros((0, 3))) == 0.0
    assert check.relative_error(np.array([1 + 1j]), np.array([1 + 1j])) == 0.0
