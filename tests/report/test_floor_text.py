"""The sentence on the noise floor."""

from __future__ import annotations

import msgspec

from graphnet.compilers import Target
from graphnet.evaluate.records import Environment, Floor
from graphnet.report.floor_text import floor_lines
from tests.analyze.raced import result

FLOOR = Floor(
    threads=1, pairs=60, spread=0.01, sequential=0.03, median=0.004, p95=0.013, sequential_p95=0.06, covered=0.9,
    compilers=("torch", "jax", "onnxruntime"),
)  # fmt: skip
MACHINE = Environment(key="m", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", floors=(FLOOR,))


def test_a_floor_in_words() -> None:
    assert floor_lines([result([1.0]), result([2.0])], [MACHINE]) == [
        "Noise floor of this machine (1 thread, torch, jax and onnxruntime against themselves, 60 pairs):"
        " median |ratio - 1| 0.4 %, 95th percentile 1.3 %; one after the other 6 %"
    ]


def test_what_was_not_measured_is_said() -> None:
    two = result([1.0], target=Target(threads=2))
    assert floor_lines([two], [MACHINE]) == [
        "Noise floor of this machine (2 threads): not measured; `graphnet noise` measures it"
    ]
    assert floor_lines([result([1.0], target=Target(device="cuda"))], [])[0].startswith(
        "Noise floor of this machine (cuda, 1 thread): not"
    )


def test_machines_are_named_where_there_are_several() -> None:
    few = msgspec.structs.replace(FLOOR, compilers=("torch", "jax"), sequential_p95=0.341)
    there = msgspec.structs.replace(MACHINE, key="n", floors=(few,))
    lines = floor_lines([result([1.0]), result([1.0], environment="n")], [MACHINE, there])
    assert lines[0].startswith("Noise floor of machine m (1 thread, torch, jax and onnxruntime against")
    assert lines[1].startswith("Noise floor of machine n (1 thread, torch and jax against themselves, 60 pairs)")
    assert lines[1].endswith("one after the other 34 %")
