"""ONNX Runtime with a real delay: a compiler for `benchmarks.gate_power`, as `benchmarks.delayed:Delayed`."""

from __future__ import annotations

import time

from graphnet.compilers import Target, Tensors
from graphnet.compilers.onnxruntime import OnnxRuntime, OnnxRuntimeProgram
from graphnet.ir.graph import Graph

LEVELS = (0.02, 0.05, 0.07, 0.1, 0.2)
"""Of the run time. Turns, and so the blocks of the record, have them one after the other."""


def level_of(block: int) -> float:
    """The delay in a block of the record, counted from 0 with those that were disturbed."""
    return LEVELS[block % len(LEVELS)]


class DelayedProgram(OnnxRuntimeProgram):
    """Each run is followed by computing for a share of its own time.

    Inputs are bound once for the first run and once for each turn: the first binding is no block.
    """

    def __init__(self, graph: Graph, tensors: Tensors, target: Target) -> None:
        super().__init__(graph, tensors, target)
        self._bindings = 0
        self._level = 0.0

    def bind(self, inputs: Tensors) -> None:
        """Go on to the next level."""
        super().bind(inputs)
        self._level = level_of(self._bindings - 1) if self._bindings else 0.0
        self._bindings += 1

    def run(self) -> None:
        """The program's own time, then the delay."""
        start = time.perf_counter_ns()
        super().run()
        end = time.perf_counter_ns()
        until = end + round((end - start) * self._level)
        while time.perf_counter_ns() < until:
            pass


class Delayed(OnnxRuntime):
    """Its programs are `DelayedProgram`."""

    name = "delayed"

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> DelayedProgram:
        """As ONNX Runtime does."""
        return DelayedProgram(graph, tensors, target)
