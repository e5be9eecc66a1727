"""ONNX's reference evaluator on numpy as a GraphNet compiler: slow, readable, and a template for your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from onnx.reference import ReferenceEvaluator

from graphnet.compilers import Option, Target, Tensors, check_target
from graphnet.errors import DeviceNotPresent, UsageError
from graphnet.ir.graph import Graph


class NumpyEvaluator:
    """`numpy`: option `verbose` (0 to 10, what the evaluator prints)."""

    name = "numpy"
    packages = ("onnx", "numpy")
    devices = ("cpu",)
    variants: ClassVar[dict[str, dict[str, Option]]] = {"verbose": {"verbose": 1}}

    def preload(self) -> None:
        """Importing this module imported the library."""

    def configure(self, target: Target) -> dict[str, Any]:
        """numpy's matrix products take their threads from the environment: only one is offered here."""
        check_target(self.name, target, ("verbose",))
        if target.device != "cpu":
            raise DeviceNotPresent(f"numpy: no device '{target.device}' (it knows cpu)")
        if target.threads != 1:
            raise UsageError(f"numpy: runs on 1 thread, not {target.threads}")
        return {"threads": 1, "precision": "float32", "verbose": _verbose(target)}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> NumpyProgram:
        """Hand the ONNX model to the evaluator, which looks up each operator."""
        return NumpyProgram(graph, ReferenceEvaluator(graph.to_onnx(tensors), verbose=_verbose(target)))


class NumpyProgram:
    """The evaluator with inputs bound."""

    def __init__(self, graph: Graph, evaluator: ReferenceEvaluator) -> None:
        self._names, self._evaluator = list(graph.outputs), evaluator
        self._inputs: dict[str, np.ndarray] = {}
        self._results: Sequence[np.ndarray] = ()

    def bind(self, inputs: Tensors) -> None:
        """Use the arrays as they are."""
        self._inputs = dict(inputs)

    def run(self) -> None:
        """One inference."""
        self._results = [np.asarray(found) for found in self._evaluator.run(self._names, self._inputs)]

    def outputs(self) -> Sequence[np.ndarray]:
        """Copies of the outputs in graph order."""
        return [np.array(result) for result in self._results]


def _verbose(target: Target) -> int:
    value = target.options.get("verbose", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10:
        raise UsageError(f"numpy: option verbose={value} must be 0 to 10")
    return value
