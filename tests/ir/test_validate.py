"""Graphs made in memory: what `validate` accepts, and the faults that no file can have (files: tests/attacks)."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import (
    Body,
    Constant,
    Dim,
    FloatAttr,
    Graph,
    Input,
    Node,
    Normal,
    TensorAttr,
    Uniform,
    Value,
    Values,
    Weight,
)  # fmt: skip
from graphnet.ir.validate import validate

F32 = Value(dtype="float32", shape=("n",))


def graph(*nodes: Node, outputs: tuple[str, ...] = ("y",), **changes: Any) -> Graph:
    made = Graph(
        name="g",
        dims={"n": Dim(min=0, max=2**40, default=4)},
        inputs=(Input(name="x", dtype="float32", shape=("n",)),),
        outputs=outputs,
        nodes=nodes,
        values={name: F32 for node in nodes for name in node.outputs if name},
    )
    return msgspec.structs.replace(made, **changes)


def node(output: str, *inputs: str, **attrs: Any) -> Node:
    return Node(op="Op", name=output, inputs=inputs, outputs=(output,), attrs=attrs)


NONZERO = Dim(min=0, max=4, default=2, data_dependent=True)
LOOP = Body(
    inputs=(Input(name="i", dtype="int64", shape=(), fill=Constant(value=0)),
            Input(name="s", dtype="float32", shape=("n",))),
    outputs=("c", "t"),
    weights={"c": Weight(dtype="bool", shape=(), fill=Constant(value=True), role="constant")},
    nodes=(node("t", "s", "x", "v"),),
    values={"t": F32},
)  # fmt: skip


@pytest.mark.parametrize(
    "good",
    [
        graph(outputs=("x",)),
        graph(node("y", "x")),
        graph(Node(op="Split", name="", inputs=("x",), outputs=("", "y")), node("z", "y")),
        graph(node("v", "x"), node("y", "v", body=LOOP)),
        graph(node("v", "x"), node("w", "v", body=LOOP), node("y", "w", body=LOOP)),
        graph(node("y", "x", i=-(2**63), f=1e300, s="a\nb", t=(), inf=FloatAttr(value="-inf"))),
        graph(node("y", "x", t=TensorAttr(dtype="string", shape=(1,), fill=Values(data=("a",))))),
        graph(Node(op="com.x:Odd-1", name="n", domain="com.x", inputs=("x",), outputs=("y",))),
        graph(node("y", "x"), weights={"w": Weight(dtype="int8", shape=(0, 2**40), fill=Uniform(low=-128, high=127))}),
        graph(node("y", "x"), name="ResNet 50 (v1.5)", graph_id="GN-2026-REC-10000"),
        graph(node("y", "x"), values={"y": Value(dtype="float32", shape=("max(1, n//2 + 1)", 3))}),
        graph(node("y", "x"), dims={"n": Dim(min=0, max=4, default=4), "nz": NONZERO},
              values={"y": Value(dtype="float32", shape=("nz",))}),
    ],
)  # fmt: skip
def test_good(good: Graph) -> None:
    validate(good)


@pytest.mark.parametrize(
    ("bad", "where", "cause"),
    [
        (graph(node("y", "x", k=True)), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k=float("nan"))), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k=(1.0, float("inf")))), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k=None)), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k=[1])), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k="\udc80")), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y", "x", k=("a", "\udc80"))), "$.nodes[0].attrs.k", "no attribute"),
        (graph(node("y\ud800", "x"), outputs=("y\ud800",)), "$.nodes[0].name", "lone surrogates"),
        (graph(node("y", "x"), values={"y": Value(dtype="float128", shape=())}), "$.values.y.dtype", "no dtype"),  # type: ignore[arg-type]
        (graph(node("y", "x"), values={"y": Value(dtype="float32", shape=(1.5,))}), "$.values.y.shape[0]", "neither"),  # type: ignore[arg-type]
        (graph(node("y", "x"), arithmetic_intensity=float("inf")), "$.arithmetic_intensity", "not finite"),
        (graph(node("y", "x"), weights={"w": Weight(dtype="float32", shape=(), fill=Normal(std=float("nan")))}),
         "$.weights.w.fill.std", "no finite"),
        (graph(node("y", "x"), weights={"w": Weight(dtype="string", shape=(), fill=Constant(value="nan"))}),
         "$.weights.w.fill", "'values' only"),
        (graph(node("y", "x"), weights={"w": Weight(dtype="string", shape=(), fill=Uniform())}),
         "$.weights.w.fill", "'values' only"),
        (graph(node("y", "x"), weights={"w": Weight(dtype="float16", shape=(), fill=Uniform(low=-6e4, high=6e4))}),
         "$.weights.w.fill.high", "outside float16"),
        (graph(node("y", "x"), weights={"w": Weight(dtype="int8", shape=(), fill="x")}),  # type: ignore[arg-type]
         "$.weights.w.fill", "unknown fill str"),
    ],
)  # fmt: skip
def test_bad(bad: Graph, where: str, cause: str) -> None:
    with pytest.raises(GraphFormatError) as caught:
        validate(bad)
    assert (caught.value.where, cause in caught.value.cause) == (where, True), caught.value


def test_branches_may_use_the_same_names_and_siblings_do_not_see_them() -> None:
    branch = Body(outputs=("t",), nodes=(node("t", "x"),), values={"t": F32})
    validate(graph(node("y", "x", then_branch=branch, else_branch=branch)))
    with pytest.raises(GraphFormatError, match="dangling name: 't'"):
        validate(graph(node("y", "x", then_branch=branch), node("z", "t")))


def test_validation_is_linear_and_fast() -> None:
    """CPU seconds for 50,000 nodes: 0.2 on a quiet core."""
    nodes = [node("v0", "x"), *(node(f"v{i}", f"v{i - 1}", f"v{i // 2}", axis=i) for i in range(1, 50_000))]
    large = graph(*nodes, outputs=("v49999",))
    began = time.process_time()
    validate(large)
    assert time.process_time() - began < 1
