"""What a program needs beside its data: the working memory that a record implies."""

from __future__ import annotations

from graphnet.evaluate.records import Memory, Result


def peak(memory: Memory) -> int:
    """Largest resident memory of the job's process over its stages, in bytes."""
    return max(memory.load_peak, memory.compile_peak, memory.run_peak)


def steady(result: Result) -> int | None:
    """Resident bytes after the timed runs; None where there were none."""
    return (result.memory.steady or None) if result.memory else None


def workspace(result: Result) -> int | None:
    """Bytes resident after the timed runs beyond the process's own before the job, weights, inputs and outputs.

    An upper bound of what the program works with: the library's code that was read from its files meanwhile is in it.
    None where it is unknown: no timed runs, data on another device than the CPU, or a difference below zero, which says
    that some of the data was in memory before or is not any more.
    """
    memory = result.memory
    if memory is None or not memory.steady or not memory.baseline or result.target.device != "cpu":
        return None
    left = memory.steady - memory.baseline - memory.weights - memory.inputs - memory.outputs
    return left if left >= 0 else None
