"""Runs cases in a process of their own, so that a crash or a hang of a compiler costs one case."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from graphnet import compilers
from graphnet.errors import UnsupportedOp
from graphnet.evaluate import procfs
from tests.conformance import harness

SECONDS = 120.0
"""A case may take this long to compile and run."""


class Crashed(Exception):
    """The process ended or had to be ended."""


class Failed(Exception):
    """What the compiler raised, in words."""


class Isolated:
    """A compiler behind a process that is started when needed."""

    def __init__(self, name: str, target: compilers.Target) -> None:
        self.name, self._target = name, target
        self._process: Any = None
        self._connection: Connection | None = None

    def run(self, case: harness.Case) -> Sequence[np.ndarray]:
        """The outputs. Raises UnsupportedOp, Crashed, Failed."""
        connection = self._connected()
        try:
            connection.send(case)
            if not connection.poll(SECONDS):
                raise Crashed(f"took more than {SECONDS:g} s")
            outcome = connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            status = self._process.exitcode
            self.close()
            raise Crashed(f"ended with status {status}") from None
        except Crashed:
            self.close()
            raise
        if isinstance(outcome, str):
            raise UnsupportedOp(outcome) if outcome.startswith("UnsupportedOp") else Failed(outcome)
        results: Sequence[np.ndarray] = outcome
        return results

    def close(self) -> None:
        """End the process, and what it started: IREE compiles in a process of its own."""
        if self._process is not None:
            procfs.kill([*procfs.descendants(self._process.pid), self._process.pid])
            self._process.join()
        self._process = self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None:
            ours, theirs = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")
            self._process = context.Process(target=_serve, args=(theirs, self.name, self._target), daemon=True)
            self._process.start()
            theirs.close()
            self._connection = ours
        return self._connection


def _serve(connection: Connection, name: str, target: compilers.Target) -> None:
    """The child: run what arrives until the parent hangs up."""
    os.chdir(tempfile.mkdtemp(prefix="graphnet-conformance-"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    compiler = compilers.get(name)
    compiler.preload()
    compiler.configure(target)
    while True:
        try:
            case = connection.recv()
        except EOFError:
            return
        try:
            outcome: Any = [np.array(item) for item in harness.run(case, compiler, target)]
        except Exception as error:
            outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:2000]}"
        connection.send(outcome)
