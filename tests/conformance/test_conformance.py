"""ONNX's node tests over every compiler: each case passes, or stands in the compiler's gap table and fails."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from graphnet import compilers
from graphnet.errors import UnsupportedOp
from tests.conformance import harness
from tests.conformance.isolated import Crashed, Failed, Isolated

COMPILERS = ("torch", "jax", "onnxruntime", "openvino", "tvm", "iree", "tensorflow", "tinygrad", "reference")
"""A compiler's gaps are in `gaps_<name>.py`; it is covered once it is named here."""
SAMPLED = {"jax": 4, "openvino": 8, "tvm": 32, "iree": 32, "tensorflow": 8, "tinygrad": 16, "reference": 4}
"""One in so many cases runs by default, the rest are slow tests: some compilers take a second for each."""
TARGET = compilers.Target(threads=1)
LEAST_PASSING = {
    "torch": 0.95,
    "jax": 0.95,
    "onnxruntime": 0.94,
    "openvino": 0.89,
    "tvm": 0.80,
    "iree": 0.84,
    "tensorflow": 0.96,
    "tinygrad": 0.82,
    "reference": 0.95,
}


@pytest.fixture(scope="session")
def processes() -> Iterator[dict[str, Isolated]]:
    """One process for each compiler: to start one takes seconds."""
    found = {name: Isolated(name, TARGET) for name in COMPILERS}
    yield found
    for process in found.values():
        process.close()


def _node_tests() -> Iterator[Any]:
    for name in COMPILERS:
        for index, case in enumerate(harness.cases()):
            slow = [pytest.mark.slow] if index % SAMPLED.get(name, 1) else []
            yield pytest.param(name, case, marks=slow, id=f"{name}-{case}")


@pytest.mark.parametrize(("name", "case"), list(_node_tests()))
def test_node(processes: dict[str, Isolated], name: str, case: str) -> None:
    compiler, gap, prepared = processes[name], harness.gap_of(name, case), harness.cases()[case]
    if gap is None:
        harness.check(prepared, compiler.run(prepared))
        return
    try:
        harness.check(prepared, compiler.run(prepared))
    except (AssertionError, UnsupportedOp, Failed, Crashed):
        return
    pytest.fail(f"{name} passes {case}: take the gap '{gap.pattern}' ({gap.reason}) out of the table")


@pytest.mark.parametrize("name", COMPILERS)
def test_gaps_exist_and_say_why(name: str) -> None:
    for gap in harness.gaps(name):
        assert any(fnmatchcase(case, gap.pattern) for case in harness.cases()), f"no case matches {gap.pattern}"
        assert gap.word in ("notimpl", "notyet", "never")
        assert len(gap.reason) > 10


@pytest.mark.parametrize("name", COMPILERS)
def test_enough_cases_pass(name: str) -> None:
    cases = harness.cases()
    assert len(cases) >= 1600, "the import refuses node tests that it used to take"
    passing = sum(harness.gap_of(name, case) is None for case in cases)
    assert passing / len(cases) >= LEAST_PASSING[name]
