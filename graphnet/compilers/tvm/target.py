"""TVM's targets: the device's default, target strings, the threads and the floating-point mode of the process."""

from __future__ import annotations

import ctypes
import json
import os
import platform
from typing import Any, NamedTuple

import tvm
from tvm.target import codegen

from graphnet.compilers import FLUSH_SUBNORMALS, Target
from graphnet.compilers.tvm.contract import Registers
from graphnet.errors import DeviceNotPresent, UsageError

KINDS = {"cpu": "llvm", "cuda": "cuda", "metal": "metal"}
"""TVM's target kind by device."""
_SWITCHES = {"cuda": "USE_CUDA", "metal": "USE_METAL"}
_LISTS = frozenset({"mattr", "keys", "libs"})
_FLUSH_TO_ZERO, _ZERO_DENORMALS = 0x8000, 0x0040
_MXCSR = 7


class Machine(NamedTuple):
    """Where the code will run."""

    target: tvm.target.Target
    device: Any


def machine(target: Target) -> Machine:
    """Target and device. Raises DeviceNotPresent and UsageError (a wrong target string)."""
    kind = KINDS.get(target.device)
    if kind is None:
        raise DeviceNotPresent(f"tvm: no device '{target.device}' (it knows {', '.join(KINDS)})")
    if kind != "llvm":
        return Machine(_parsed(target, kind), _accelerator(target.device))
    return Machine(_parsed(target, kind), tvm.cpu())


def registers(target: tvm.target.Target) -> Registers:
    """Vector registers of a CPU target."""
    has = tvm.get_global_func("target.target_has_feature")
    if has("avx512f", target):
        return Registers(32, 16)
    if has("avx2", target):
        return Registers(16, 8)
    return Registers(32 if has("neon", target) else 16, 4)


def set_threads(threads: int) -> int:
    """Give TVM's pool that many threads, before it starts or after; returns how many it has.

    They are not bound to cores: the pool would bind each to a core of its own choice, whoever else runs there.
    """
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_BIND_THREADS"] = "0"
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    return int(tvm.get_global_func("runtime.NumThreads")())


def flush_subnormals() -> bool:
    """Set this thread's mode, which the pool's threads inherit; whether it could be done."""
    if not FLUSH_SUBNORMALS or platform.machine() != "x86_64":
        return False
    environment = (ctypes.c_uint32 * 8)()  # glibc's fenv_t: the x87 state, then MXCSR
    library = ctypes.CDLL("libm.so.6" if platform.system() == "Linux" else None)
    library.fegetenv(ctypes.byref(environment))
    environment[_MXCSR] |= _FLUSH_TO_ZERO | _ZERO_DENORMALS
    library.fesetenv(ctypes.byref(environment))
    library.fegetenv(ctypes.byref(environment))
    return bool(environment[_MXCSR] & _FLUSH_TO_ZERO and environment[_MXCSR] & _ZERO_DENORMALS)


def _accelerator(name: str) -> Any:
    if tvm.get_global_func(f"device_api.{name}", allow_missing=True) is None:
        raise DeviceNotPresent(
            f"tvm: this build has no {name} runtime; build TVM with {_SWITCHES[name]}=ON and install it in its place"
        )
    device = tvm.device(name, 0)
    if not device.exist:
        raise DeviceNotPresent(f"tvm: no {name} device on this machine")
    return device


def _parsed(target: Target, kind: str) -> tvm.target.Target:
    config: dict[str, Any] = {"kind": kind} | ({"mcpu": "native"} if kind == "llvm" else {})
    if target.spec:
        config = parse(target.spec)
    if config.get("kind") != kind:
        raise UsageError(f"tvm: target '{target.spec}' is not for device {target.device}, whose kind is {kind}")
    if config.get("mcpu") == "native":
        config["mcpu"] = codegen.llvm_get_system_cpu()
    fast = [key for key in config if key.startswith("fast-math")]
    if fast and target.precision == "float32":
        raise UsageError(f"tvm: target option {fast[0]} changes float32 arithmetic, which this run forbids")
    if kind != "llvm":
        config.setdefault("host", {"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu()})
    try:
        return tvm.target.Target(config)
    except Exception as error:
        text = " ".join(str(error).split())
        raise UsageError(
            f"tvm: target '{target.spec}' is refused: {text}; write 'KIND -KEY=VALUE ...' or a JSON object, with"
            f" KIND one of {', '.join(KINDS.values())} ('-mcpu=native' means this machine)"
        ) from error


def parse(spec: str) -> dict[str, Any]:
    """A classic target string (`llvm -mcpu=native -num-cores=4`) or a JSON object as TVM's target dictionary.

    Raises UsageError.
    """
    if spec.lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(spec)
        except ValueError as error:
            raise UsageError(f"tvm: target '{spec}' is not a JSON object: {error}") from error
        return found
    kind, *options = spec.split()
    config: dict[str, Any] = {"kind": kind}
    for option in options:
        key, equals, value = option.lstrip("-").partition("=")
        if not option.startswith("-") or not equals:
            raise UsageError(f"tvm: target option '{option}' is not -KEY=VALUE (in '{spec}')")
        config[key] = value.split(",") if key in _LISTS else int(value) if value.isdecimal() else value
    return config
