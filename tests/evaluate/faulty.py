"""A compiler for y = 2 x that fails on demand: option `fault` at stage `at` (load, compile, run, check, profile)."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphnet.compilers import Kernel, Target, Tensors
from graphnet.errors import DeviceNotPresent, UnsupportedOp
from graphnet.evaluate import timing
from graphnet.ir.graph import Graph


class Faulty:
    name = "faulty:Faulty"
    packages: tuple[str, ...] = ("numpy",)
    devices: tuple[str, ...] = ("cpu",)

    def preload(self) -> None:
        pass

    def configure(self, target: Target) -> dict[str, Any]:
        _strike(target, "load")
        state = os.environ.get("FAULTY_STATE", "clean")
        return {"threads": target.threads, "state": state, "cwd": os.getcwd(), "list": [1], "nan": float("nan")}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> FaultyProgram:
        os.environ["FAULTY_STATE"] = "dirty"
        with open("left-behind", "w") as file:
            file.write("x" * 1000)
        _strike(target, "compile")
        return FaultyProgram(target)


class FaultyProgram:
    lower_s = 0.0

    def __init__(self, target: Target) -> None:
        self._target, self._fetches, self._runs = target, 0, 0
        self._x = self._y = np.zeros(0, np.float32)

    def bind(self, inputs: Tensors) -> None:
        self._x = inputs["x"]

    def run(self) -> None:
        self._runs += 1
        if self._runs == 1:
            _strike(self._target, "run")
        fault = self._target.options["fault"]
        if fault == "mutate":
            self._x += 1
        if fault == "stale" and self._runs > 1:
            return
        if fault == "clock":
            time.sleep(0.02)
        if fault == "jitter":
            time.sleep(random.choice((0.04, 0.002)))
        self._y = self._x * np.float32(2)

    def outputs(self) -> Sequence[np.ndarray]:
        self._fetches += 1
        if self._fetches == 2:
            _strike(self._target, "check")
        return _spoil(str(self._target.options["fault"]), self._y)

    def kernels(self) -> Sequence[Kernel]:
        _strike(self._target, "profile")
        fault = self._target.options["fault"]
        total_us = float("nan") if fault == "kernel_nan" else 1.0
        calls = 0 if fault == "kernel_calls" else 1
        return [Kernel(name="double", nodes=("mul",), calls=calls, total_us=total_us)]


class CannotLoad(Faulty):
    def preload(self) -> None:
        raise RuntimeError("the framework does not load")


class DiesInPreload(Faulty):
    def preload(self) -> None:
        print("about to die", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)


class Garrulous(Faulty):
    """Prints in the server's process too."""

    def preload(self) -> None:
        os.write(1, bytes(range(256)) * 100)


class Slow(Faulty):
    """Right, but each job takes half a second."""

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> FaultyProgram:
        time.sleep(0.5)
        return FaultyProgram(Target(options={"fault": "", "at": ""}))


class HangsInPreload(Faulty):
    """Leaves a line in the file that FAULTY_LOG names each time."""

    def preload(self) -> None:
        _log("preload")
        time.sleep(1000)


class TwoDevices(Faulty):
    """On the CPU and on a device that is absent."""

    devices = ("cpu", "cuda")

    def configure(self, target: Target) -> dict[str, Any]:
        if target.device != "cpu":
            raise DeviceNotPresent("no such device")
        return {}


class CpuOracle(Faulty):
    """Right, as a reference, on the CPU with 2 threads and without options; leaves a line in FAULTY_LOG each time."""

    def configure(self, target: Target) -> dict[str, Any]:
        _log("configure")
        assert target == Target(threads=2), target
        return {}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> FaultyProgram:
        return FaultyProgram(Target(options={"fault": "", "at": ""}))


class Nested(Faulty):
    """Starts a process of its own session, then hangs; tells its id by a file."""

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> FaultyProgram:
        _leave_processes()
        time.sleep(1000)
        raise AssertionError


def _log(line: str) -> None:
    with open(os.environ["FAULTY_LOG"], "a") as file:
        file.write(line + "\n")


def _strike(target: Target, stage: str) -> None:
    if target.options["at"] == stage:
        _FAULTS[str(target.options["fault"])]()


def _spoil(fault: str, y: np.ndarray) -> Sequence[np.ndarray]:
    if fault == "wrong":
        y = y + np.float32(0.01)
    elif fault == "nan":
        y = y.copy()
        y[1, 2] = np.nan
    elif fault == "dtype":
        y = y.astype(np.float64)
    elif fault == "shape":
        y = y.reshape(8, 4)
    elif fault == "count":
        return [y, y]
    elif fault == "lazy":
        time.sleep(0.05)
    return [y]


def _segfault() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    time.sleep(1000)


def _hang_in_signal_proof_loop() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def _allocate() -> None:
    kept = []
    while True:
        kept.append(bytearray(os.urandom(1 << 20)) * 16)


def _allocate_in_child() -> None:
    subprocess.run([sys.executable, "-c", "k=[]\nwhile True: k.append(bytearray(b'x'*(16<<20)))"], check=False)


def _print_garbage() -> None:
    random.seed(1)
    for _ in range(50):
        os.write(1, random.randbytes(1 << 14))
        os.write(2, b"GN\xff\xff\xff\xff" * 1000)


def _last_words() -> None:
    print("\N{SNOWMAN} adieu", flush=True)
    os._exit(3)


def _write_to_every_descriptor() -> None:
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"garbage that is no message")
        except OSError:
            continue


def _leave_processes() -> None:
    """A child, one in a session of its own, and a grandchild whose parent has ended (daemon style)."""
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)


def _leave_thread() -> None:
    threading.Thread(target=time.sleep, args=(1000,)).start()


def _kill_server() -> None:
    _leave_processes()
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)


def _slow_down_the_clock() -> None:
    clock = timing.Clock()
    slow = timing.Clock(now=lambda: clock.now() // 100)
    setattr(timing, "Clock", lambda: slow)  # noqa: B010


def _raise(error: BaseException) -> Callable[[], None]:
    def strike() -> None:
        raise error

    return strike


_FAULTS: dict[str, Callable[[], None]] = {
    "segfault": _segfault,
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "exit0": lambda: os._exit(0),
    "sysexit": _raise(SystemExit(3)),
    "interrupt": _raise(KeyboardInterrupt()),
    "hang": _hang,
    "spin": _hang_in_signal_proof_loop,
    "allocate": _allocate,
    "allocate_in_child": _allocate_in_child,
    "bad_alloc": _raise(RuntimeError("std::bad_alloc")),
    "memory_error": _raise(MemoryError()),
    "garbage": _print_garbage,
    "last_words": _last_words,
    "descriptors": _write_to_every_descriptor,
    "clock": _slow_down_the_clock,
    "processes": _leave_processes,
    "thread": _leave_thread,
    "kill_server": _kill_server,
    "raise": _raise(ValueError("no such luck")),
    "kernel_nan": lambda: None,
    "kernel_calls": lambda: None,
    "surrogate": _raise(ValueError("half a character \ud800")),
    "long_message": _raise(ValueError("x" * 1_000_000)),
    "unsupported": _raise(UnsupportedOp("faulty: no lowering for ai.onnx::Mul (node 'mul')")),
    "device": _raise(DeviceNotPresent("faulty: no such device")),
}
