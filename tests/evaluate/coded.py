"""A compiler for tests whose program shows its code, or fails to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphnet.compilers import KernelCode, Target
from graphnet.ir.graph import Graph


class Coded:
    name = "coded"
    packages: tuple[str, ...] = ()
    devices = ("cpu",)

    def preload(self) -> None: ...

    def configure(self, target: Target) -> dict[str, Any]:
        return {}

    def compile(self, graph: Graph, tensors: Mapping[str, np.ndarray], target: Target) -> Doubled:
        return Doubled(str(target.options.get("fault", "")))


class Doubled:
    """y = 2 x."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._x = self._y = np.zeros(())

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._x = inputs["x"]

    def run(self) -> None:
        self._y = 2 * self._x

    def outputs(self) -> Sequence[np.ndarray]:
        return [self._y]

    def code(self) -> Sequence[KernelCode]:
        if self._fault == "code":
            raise ValueError("no code today")
        return [KernelCode(name="double", assembly="double:\n\tretq\n")]
