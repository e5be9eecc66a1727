"""Memory in records, against programs that allocate known amounts."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from graphnet.evaluate import procfs
from graphnet.evaluate.records import Result
from graphnet.evaluate.worker import steady_bytes, stored_bytes

KEPT, PASSING, SLACK = 64 << 20, 128 << 20, 8 << 20


def test_kept_and_passing_memory_are_told_apart(evaluate: Callable[..., Result]) -> None:
    result = evaluate(compiler="caching:Heavy")
    memory = result.memory
    assert result.verdict in ("ok", "unstable"), "filling memory on a busy machine takes unlike times"
    assert memory is not None
    assert KEPT <= memory.steady - memory.baseline < KEPT + SLACK
    assert KEPT <= memory.compile_peak - memory.baseline < KEPT + SLACK
    assert KEPT + PASSING <= memory.run_peak - memory.baseline < KEPT + PASSING + SLACK
    assert memory.allocator == {"arena": KEPT, "spare": 0}, "a 0 that the library tells is no unknown"
    assert (memory.weights, memory.inputs, memory.outputs) == (4, 4 * 8 * 4, 4 * 8 * 4)


def test_a_library_that_cannot_tell_is_a_note(evaluate: Callable[..., Result]) -> None:
    result = evaluate(compiler="caching:Silent")
    assert result.verdict in ("ok", "unstable"), "a busy machine"
    assert result.memory is not None
    assert result.memory.allocator == {}
    assert "the library does not tell of its memory: RuntimeError: no statistics in this build" in result.notes


def test_a_job_that_did_not_run_has_no_steady_memory(evaluate: Callable[..., Result]) -> None:
    result = evaluate("raise", "compile")
    assert result.memory is not None
    assert (result.memory.steady, result.memory.weights) == (0, 4)


def test_freed_memory_is_not_steady() -> None:
    before = steady_bytes()
    blocks = [bytearray(b"x" * 60_000) for _ in range(1000)]
    assert steady_bytes() - before > 50_000_000
    del blocks
    assert abs(steady_bytes() - before) < 10_000_000


def test_giving_back_does_no_harm_twice() -> None:
    procfs.give_back()
    procfs.give_back()


@pytest.mark.parametrize(
    ("dtype", "array", "expected"),
    [
        ("float32", np.zeros((4, 8), np.float32), 128),
        ("bfloat16", np.zeros(3, ml_dtypes.bfloat16), 6),
        ("int4", np.zeros(5, ml_dtypes.int4), 3),
        ("float64", np.zeros((0, 7)), 0),
        ("int64", np.zeros((), np.int64), 8),
    ],
)
def test_bytes_of_a_tensor(dtype: str, array: np.ndarray, expected: int) -> None:
    assert stored_bytes(dtype, array) == expected
