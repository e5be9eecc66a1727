"""What libraries tell of their memory, against sizes that are known: y = tanh(x W) V, all of float32[64, 64]."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SIZE = 64 * 64 * 4
PROGRAM = """
import json, sys
from graphnet import compilers
from graphnet.compilers import Accounting, Target
from graphnet.ir import tensors
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight
square = {"dtype": "float32", "shape": (64, 64)}
graph = Graph(
    name="two", inputs=(Input(name="x", **square),), outputs=("y",),
    weights={name: Weight(**square, fill=Normal(std=0.1)) for name in ("W", "V")},
    nodes=(
        Node(op="MatMul", name="first", inputs=("x", "W"), outputs=("h",)),
        Node(op="Tanh", name="bend", inputs=("h",), outputs=("t",)),
        Node(op="MatMul", name="second", inputs=("t", "V"), outputs=("y",)),
    ),
    values={name: Value(**square) for name in ("h", "t", "y")},
)
compiler, target = compilers.get(sys.argv[1]), Target()
compiler.configure(target)
program = compiler.compile(graph, tensors.weights(graph), target)
program.bind(tensors.inputs(graph))
program.run()
print(json.dumps(dict(program.memory()) if isinstance(program, Accounting) else None))
"""


def told(compiler: str) -> dict[str, int] | None:
    """In a process of its own: accounts are the process's."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{PROGRAM}", compiler],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, int] | None = json.loads(done.stdout.splitlines()[-1])
    return found


def test_xla_plans_arguments_outputs_and_temporaries() -> None:
    found = told("jax")
    assert found is not None
    assert (found["argument_size"], found["output_size"]) == (3 * SIZE, SIZE)
    assert SIZE <= found["temp_size"] <= 2 * SIZE, "the value between the products, with tanh in place or not"


def test_tvm_plans_values_between_kernels() -> None:
    found = told("tvm")
    assert found is not None
    assert found.keys() == {"planned_storage"}
    assert 2 * SIZE <= found["planned_storage"] <= 3 * SIZE, "y and what lies between the products"


def test_iree_counts_input_values_and_output() -> None:
    found = told("iree")
    assert found is not None
    assert 3 * SIZE <= found["device_bytes_peak"] <= 6 * SIZE


def test_tinygrad_counts_buffers_that_are_alive() -> None:
    found = told("tinygrad")
    assert found is not None
    assert 4 * SIZE <= found["mem_used"] <= 8 * SIZE, "input, weights and output at least"


@pytest.mark.parametrize(
    ("compiler", "expected"), [("torch", {}), ("tensorflow", {}), ("openvino", {}), ("onnxruntime", None)]
)
def test_libraries_without_accounts_on_cpus(compiler: str, expected: object) -> None:
    assert told(compiler) == expected
