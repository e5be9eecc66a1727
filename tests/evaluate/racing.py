"""Compilers for y = 2 x that leave a line in RACING_LOG for each turn, and try to be bad neighbours."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphnet.compilers import Target, Tensors
from graphnet.ir.graph import Graph


class Logged:
    """Right; each turn says who it is and which processes that were logged before it are running."""

    name = "racing:Logged"
    packages: tuple[str, ...] = ()
    devices = ("cpu",)

    def preload(self) -> None:
        pass

    def configure(self, target: Target) -> dict[str, Any]:
        return {}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> LoggedProgram:
        return LoggedProgram(type(self).__name__)


class First(Logged):
    pass


class Second(Logged):
    pass


class Spinning(Logged):
    """A thread of it never rests."""

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> LoggedProgram:
        threading.Thread(target=_spin, daemon=True).start()
        return super().compile(graph, tensors, target)


class DiesInItsThirdTurn(Logged):
    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> LoggedProgram:
        return MortalProgram(type(self).__name__)


class Large(Logged):
    """Keeps 300 MiB."""

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> LoggedProgram:
        program = LoggedProgram(type(self).__name__)
        program.ballast = np.ones(300 << 20, np.uint8)
        return program


class LoggedProgram:
    lower_s = 0.0
    ballast: np.ndarray

    def __init__(self, name: str) -> None:
        self._name = name
        self._x = self._y = np.zeros(0, np.float32)

    def run(self) -> None:
        self._y = self._x * np.float32(2)

    def outputs(self) -> Sequence[np.ndarray]:
        return [self._y]

    def bind(self, inputs: Tensors) -> None:
        self._x = inputs["x"]
        log = Path(os.environ["RACING_LOG"])
        pids = (
            {int(line.split()[1]) for line in log.read_text().splitlines()} - {os.getpid()} if log.exists() else set()
        )
        running = [str(pid) for pid in pids if _state(pid) not in ("T", "gone")]
        place = inputs["x"].ctypes.data % 4096
        with log.open("a") as stream:
            stream.write(f"{self._name} {os.getpid()} {place} {','.join(running) or '-'}\n")


class MortalProgram(LoggedProgram):
    _turns = 0

    def bind(self, inputs: Tensors) -> None:
        super().bind(inputs)
        self._turns += 1
        if self._turns == 4:  # the first is that of the first run
            os.abort()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def _spin() -> None:
    while True:
        pass
