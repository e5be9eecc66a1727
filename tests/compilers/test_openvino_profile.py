"""OpenVINO: which nodes a kernel covers, and its times, from recorded tables of operations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphnet.compilers.openvino.profile import covered_nodes, kernel_times
from graphnet.ir.graph import Graph, Input, Node, Value


def operation(name: str, info: dict[str, str] | None = None, readers: tuple[Any, ...] = (), type_: str = "Op") -> Any:
    """As much of an operation of a model as is read."""
    ports = [SimpleNamespace(get_node=lambda reader=reader: reader) for reader in readers]
    output = SimpleNamespace(get_target_inputs=lambda: ports, get_names=set)
    return SimpleNamespace(
        get_friendly_name=lambda: name, get_type_name=lambda: type_, outputs=lambda: [output],
        get_rt_info=lambda: {key: np.array(value) for key, value in (info or {}).items()},
    )  # fmt: skip


def chain(*names: str) -> Graph:
    """Relu after Relu: node `a` makes `oa`."""
    values = ["x", *(f"o{name}" for name in names)]
    return Graph(
        name="chain", inputs=(Input(name="x", dtype="float32", shape=(1,)),), outputs=(values[-1],),
        nodes=tuple(
            Node(op="Relu", name=name, inputs=(values[index],), outputs=(values[index + 1],))
            for index, name in enumerate(names)
        ),
        values={name: Value(dtype="float32", shape=(1,)) for name in values[1:]},
    )  # fmt: skip


def model(*operations: Any) -> Any:
    return SimpleNamespace(get_ordered_ops=lambda: list(operations))


def row(name: str, layers: str = "", readers: tuple[Any, ...] = (), kind: str = "Eltwise") -> Any:
    return operation(name, {"originalLayersNames": layers, "layerType": kind}, readers)


def test_nodes_by_original_names() -> None:
    """`a` was made of two operations, `b,1` has a comma and a suffix, the last is named after the graph's output."""
    last = operation("oc")
    middle = operation("b,1/WithoutBias", readers=(last,))
    first = operation("a", readers=(middle,))
    imported = model(operation("Multiply_7", readers=(first,)), first, middle, last)
    end = row("oc", "oc")
    fused = row("fused", "Multiply_7,b,1/WithoutBias", (end,))
    executed = model(row("x_reorder", readers=(fused,), kind="Reorder"), fused, end)
    assert covered_nodes(chain("a", "b,1", "c"), imported, executed) == {"fused": ("a", "b,1"), "oc": ("c",)}


def test_nodes_whose_names_are_lost() -> None:
    """`a` went into an operation without names, `b` into the one that lists only `c`, which itself is done in two."""
    imported = model(operation("c"), operation("d"))
    end = row("d", "d")
    second = row("c", "c", (end,))
    first = row("MatMul_9", readers=(second,))
    idle = operation("Constant_5", {"execTimeMcs": "not_executed"}, (second,))
    assert covered_nodes(chain("a", "c", "d"), imported, model(idle, first, second, end)) == {
        "MatMul_9": ("a",), "c": ("c",), "d": ("d",),
    }  # fmt: skip
    assert covered_nodes(chain("b", "c"), imported, model(row("c", "c"))) == {"c": ("b", "c")}
    assert covered_nodes(chain("c", "d"), imported, model(idle, first, second, end)) == {
        "MatMul_9": ("c",), "c": ("c",), "d": ("d",),
    }  # fmt: skip


def test_kernel_times_leave_out_the_first_run_and_what_did_not_run() -> None:
    runs: list[int] = []

    def rows() -> list[Any]:
        spent = SimpleNamespace(total_seconds=lambda: 1.0 if len(runs) == 1 else 4e-6)
        return [
            SimpleNamespace(node_name="n", node_type="Relu", exec_type="jit", real_time=spent, status=status)
            for status in (SimpleNamespace(name="EXECUTED"), SimpleNamespace(name="NOT_RUN"))
        ]

    [kernel] = kernel_times(lambda: runs.append(1), rows, {"n": ("node",)})
    assert (kernel.name, kernel.nodes, kernel.calls) == ("Relu[jit]:n", ("node",), 1)
    assert kernel.total_us == pytest.approx(4.0)
