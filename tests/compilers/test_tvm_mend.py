"""Forms of operators that TVM's importer lacks: what replaces them keeps their values, and the rest is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet.compilers import Target, get
from graphnet.compilers.tvm.mend import beyond_importer, mend
from graphnet.ir import tensors
from graphnet.ir.graph import DType, Graph, Input, Node, Uniform, Value, Values, Weight

IMAGE = (1, 2, 3, 4)


def single(
    op: str, inputs: dict[str, tuple[DType, tuple[int, ...]]], outputs: dict[str, tuple[DType, tuple[int, ...]]],
    weights: dict[str, Weight] | None = None, order: tuple[str, ...] = (), **attrs: Any,
) -> Graph:  # fmt: skip
    """One node called `n`; `order` names its inputs where some are weights or left out."""
    return Graph(
        name="single", outputs=tuple(outputs), weights=weights or {},
        inputs=tuple(
            Input(name=name, dtype=dtype, shape=shape, fill=Uniform(low=1, high=4))
            for name, (dtype, shape) in inputs.items()
        ),
        nodes=(Node(op=op, name="n", inputs=order or tuple(inputs), outputs=tuple(outputs), attrs=attrs),),
        values={name: Value(dtype=dtype, shape=shape) for name, (dtype, shape) in outputs.items()},
    )  # fmt: skip


def literal(dtype: DType, *data: float | bool) -> Weight:
    return Weight(dtype=dtype, shape=(len(data),), fill=Values(data=data), role="constant")


def mended(graph: Graph) -> Graph:
    return mend(graph, tensors.weights(graph, 0))


def outputs(graph: Graph) -> list[np.ndarray]:
    compiler, target = get("reference"), Target()
    compiler.configure(target)
    program = compiler.compile(graph, tensors.weights(graph, 0), target)
    program.bind(tensors.inputs(graph, 0))
    program.run()
    return list(program.outputs())


CASES = {
    "shape": (single("Shape", {"x": ("float32", IMAGE)}, {"y": ("int64", (2,))}, start=1, end=-1), ["Identity"]),
    "dropout": (
        single("Dropout", {"x": ("float32", IMAGE)}, {"y": ("float32", IMAGE), "mask": ("bool", IMAGE)}),
        ["Identity", "Expand"],
    ),
    "pow of floats": (
        single("Pow", {"x": ("float32", (3,)), "e": ("int64", (3,))}, {"y": ("float32", (3,))}),
        ["Cast", "Pow"],
    ),
    "pow of integers": (
        single("Pow", {"x": ("int32", (3,)), "e": ("float32", (3,))}, {"y": ("int32", (3,))}),
        ["Cast", "Pow", "CastLike"],
    ),
    "maximum of nothing": (
        single(
            "ReduceMax", {"x": ("float32", (2, 0))}, {"y": ("float32", (2,))}, {"a": literal("int64", 1)},
            ("x", "a"), keepdims=0,
        ),
        ["Expand"],
    ),
    "resize by scales": (
        single(
            "Resize", {"x": ("float32", IMAGE)}, {"y": ("float32", (1, 2, 6, 12))},
            {"s": literal("float32", 3.0, 2.0)}, ("x", "", "s"), mode="nearest", axes=(3, 2),
        ),
        ["Resize"],
    ),
    "resize by sizes": (
        single(
            "Resize", {"x": ("float32", IMAGE)}, {"y": ("float32", (1, 2, 6, 4))},
            {"s": literal("int64", 6)}, ("x", "", "", "s"), mode="nearest", axes=(2,),
        ),
        ["Resize"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_replaces_a_node_computes_the_same(case: str) -> None:
    graph, operators = CASES[case]
    written = mended(graph)
    assert [node.op for node in written.nodes] == operators
    assert all(node.name.startswith("n//") for node in written.nodes)
    assert not any("axes" in node.attrs for node in written.nodes)
    for found, expected in zip(outputs(written), outputs(graph), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        single("Pow", {"x": ("float32", (3,)), "e": ("float32", (3,))}, {"y": ("float32", (3,))}),
        single("Pow", {"x": ("int32", (3,)), "e": ("int64", (3,))}, {"y": ("int32", (3,))}),
        single(
            "Dropout", {"x": ("float32", IMAGE), "r": ("float32", ())}, {"y": ("float32", IMAGE)},
            {"t": literal("bool", True)}, ("x", "r", "t"),
        ),
        single(
            "Resize", {"x": ("float32", IMAGE), "s": ("float32", (1,))}, {"y": ("float32", (1, 2, 6, 4))},
            order=("x", "", "s"), axes=(2,),
        ),
    ],
    ids=["one dtype", "integers alone", "training", "scales of a run"],
)  # fmt: skip
def test_what_needs_no_mending_or_cannot_be_mended_stays(graph: Graph) -> None:
    assert mended(graph) == graph


def test_nodes_whose_form_the_importer_lacks_are_found() -> None:
    shapes: dict[str, tuple[DType, tuple[int, ...]]] = {"x": ("float32", (2, 6)), "s": ("float32", (6,))}
    one = single("LayerNormalization", shapes, {"y": ("float32", (2, 6))})
    two = single("LayerNormalization", shapes, {"y": ("float32", (2, 6)), "mean": ("float32", (2, 1))})
    row = single("RMSNormalization", shapes, {"y": ("float32", (2, 6))})
    all_axes = single("RMSNormalization", shapes | {"s": ("float32", (2, 6))}, {"y": ("float32", (2, 6))}, axis=0)
    assert [sorted(beyond_importer(graph)) for graph in (one, two, row, all_axes)] == [[], ["n"], [], ["n"]]
