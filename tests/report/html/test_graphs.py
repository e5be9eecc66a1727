"""Which operator a kernel's time goes to."""

from __future__ import annotations

from graphnet.compilers import Kernel
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight
from graphnet.report.html.graphs import OTHER, facts, operator_times


def graph() -> Graph:
    """relu(x @ W), a product of 2*4*8*16 = 1024 FLOP over 896 bytes, and 256 bytes twice for the Relu."""
    return finalize(
        Graph(
            name="mlp", domain="synthetic", inputs=(Input(name="x", dtype="float32", shape=(4, 8)),), outputs=("y",),
            weights={"W": Weight(dtype="float32", shape=(8, 16), fill=Normal(std=0.3))},
            nodes=(
                Node(op="MatMul", name="product", inputs=("x", "W"), outputs=("h",)),
                Node(op="Relu", name="rectified", inputs=("h",), outputs=("y",)),
            ),
            values={"h": Value(dtype="float32", shape=(4, 16)), "y": Value(dtype="float32", shape=(4, 16))},
        )
    )  # fmt: skip


def test_facts_of_a_graph() -> None:
    known = facts([graph()])[graph().stored_hash or ""]
    assert (known.tier, known.operators, known.parameters) == ("kernel", 2, 128)
    assert known.weights == {"product": ("MatMul", 4 * (4 * 8 + 8 * 16 + 4 * 16)), "rectified": ("Relu", 512.0)}


def test_a_fused_kernel_counts_for_its_costliest_operator() -> None:
    kernels = [
        Kernel(name="fused", nodes=("rectified", "product"), calls=1, total_us=7.0),
        Kernel(name="alone", nodes=("rectified",), calls=1, total_us=2.0),
        Kernel(name="copy", nodes=("made_by_a_rewrite",), calls=1, total_us=1.0),
    ]
    known = facts([graph()])[graph().stored_hash or ""]
    assert operator_times(kernels, known) == {"MatMul": 7.0, "Relu": 2.0, OTHER: 1.0}
    assert operator_times(kernels, None) == {"fused": 7.0, "alone": 2.0, "copy": 1.0}
