"""Programs for y = 2 x that would be fast, or right, by cheating; option `cheat` says how."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphnet.compilers import Target, Tensors
from graphnet.ir.graph import Graph


class Cheat:
    name = "cheats:Cheat"
    packages: tuple[str, ...] = ("numpy",)
    devices: tuple[str, ...] = ("cpu",)

    def preload(self) -> None:
        pass

    def configure(self, target: Target) -> dict[str, Any]:
        return {"threads": target.threads}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> CheatingProgram:
        if target.options["cheat"] == "patched clock":
            first, real = time.perf_counter_ns(), time.perf_counter_ns
            setattr(time, "perf_counter_ns", lambda: first + (real() - first) // 1000)  # noqa: B010
        return CheatingProgram(str(target.options["cheat"]))


class CheatingProgram:
    def __init__(self, cheat: str) -> None:
        self._cheat, self._runs = cheat, 0
        self._x = self._y = np.zeros(0, np.float32)

    def bind(self, inputs: Tensors) -> None:
        self._x = inputs["x"]

    def run(self) -> None:
        self._runs += 1
        if self._cheat == "kept outputs" and self._runs > 1:
            return
        if self._cheat == "changed inputs":
            self._x *= 0
        if self._cheat == "uneven":
            time.sleep(0.04 if self._runs % 2 else 0.002)
        if self._cheat == "patched clock":
            time.sleep(0.005)
        self._y = self._x * np.float32(2)

    def outputs(self) -> Sequence[np.ndarray]:
        if self._cheat == "late work":
            time.sleep(0.05)
        return [self._y]
