"""A set of results for the page."""

from __future__ import annotations

import msgspec
import pytest

from graphnet.compilers import Kernel
from graphnet.evaluate.records import Environment, Result
from tests.report.html.samples import HOSTILE, record


@pytest.fixture
def results() -> list[Result]:
    """Three graphs on three compilers, and one of them again with two threads."""
    hostile = msgspec.structs.replace(
        record("alpha", "jax", 2.0), notes=(HOSTILE,), kernels=(Kernel(name=HOSTILE, calls=1, total_us=900.0),)
    )
    return [
        record("alpha", "torch", 4.0), hostile, record("alpha", HOSTILE, 8.0),
        record("beta", "torch", 9.0, subset="audio"), record("beta", "jax", 3.0, subset="audio", compile_s=1.6),
        record("beta", HOSTILE, verdict="crashed", stage="compile", subset="audio"),
        record(HOSTILE, "torch", 1.0), record(HOSTILE, "jax", 1.0), record(HOSTILE, HOSTILE, 0.5),
        record("alpha", "torch", 3.0, threads=2), record("alpha", "jax", 1.0, threads=2),
    ]  # fmt: skip


@pytest.fixture
def environment() -> Environment:
    return Environment(
        key="e", cpu_model="EPYC <b>", cpu_count=2, memory_bytes=8 << 30, os="Linux", python="3.11", isa=("avx2",),
        facts={"turbo": "off <b>"},
    )  # fmt: skip
