"""The null compiler: zeros of the right dtype and shape. For tests of everything around a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphnet.compilers import Target, Tensors, check_target
from graphnet.ir.graph import Graph, Value
from graphnet.ir.tensors import numpy_dtype


class Null:
    """`null`: computes nothing, so it is right only where the graph's outputs are zero."""

    name = "null"
    packages: tuple[str, ...] = ()
    devices = ("cpu",)

    def preload(self) -> None:
        """Nothing to import."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Nothing to set."""
        check_target(self.name, target)
        return {"threads": target.threads}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> NullProgram:  # noqa: ARG002
        """Needs the output types only."""
        return NullProgram([graph.type_of(name) for name in graph.outputs])


class NullProgram:
    """Holds zeros."""

    def __init__(self, types: Sequence[Value]) -> None:
        self._types = types
        self._outputs: list[np.ndarray] = []

    def bind(self, inputs: Tensors) -> None:
        """Inputs are not looked at."""

    def run(self) -> None:
        """Make fresh zeros."""
        self._outputs = [np.zeros(_shape(value), numpy_dtype(value.dtype)) for value in self._types]

    def outputs(self) -> Sequence[np.ndarray]:
        """Zeros, in the order of the graph's outputs."""
        return self._outputs


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else 0 for dim in value.shape)
