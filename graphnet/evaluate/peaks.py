"""What this machine does at best, per thread count: measured, kept in the cache folder, the highest figure staying."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate import environment, oracle, plan, runner
from graphnet.evaluate.bandwidth import Figure
from graphnet.evaluate.records import Peaks, Result
from graphnet.ir.fileio import write_atomic
from graphnet.ir.graph import DType, Fill, Graph, Input, Node, Normal, Uniform, Value, Weight

COMPILERS = ("torch", "onnxruntime", "openvino", "jax")
"""Whose matrix products are tried; those that are not installed, or lack the dtype, drop out."""
INTEGER_COMPILERS = ("onnxruntime",)
"""That have products of 8-bit integers (unsigned by signed); the others use wider ones, or have none."""
LEVELS: Mapping[DType, int] = {"float32": -3, "float64": -5, "bfloat16": -3, "int8": -3}
"""Dtypes, with the tolerance level that a product must reach: float32 in place of float64 does not count."""
BUDGET_S = 0.5
DEVICE_ELEMENTS = 1 << 25
"""Of each array of the addition that measures the memory of another device than the CPU."""
CHILD_LIMIT_S = 300.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def ensure(device: str = "cpu", threads: int = 1, told: Callable[[str], object] = lambda _: None) -> Peaks:
    """Peaks of this machine, measured now if they never were; `told` hears of it before. Raises OSError."""
    known = cached(environment.detect().key, device, threads)
    if known is not None:
        return known
    if device == "cpu" and threads > environment.detect().cpu_count:
        told(f"{threads} threads are more than this machine has CPUs for us: there are no peaks to compare with")
        return Peaks(device=device, threads=threads)
    told(f"measuring what this machine does at best on {device} with {threads} thread(s), once ...")
    return update(device, threads)


def update(device: str = "cpu", threads: int = 1) -> Peaks:
    """Measure, and keep of each figure the highest that was ever measured on this machine.

    Where nothing could be measured (the device is absent) nothing is kept. Raises OSError, and UsageError for more
    threads than there are CPUs.
    """
    key, cpus = environment.detect().key, environment.detect().cpu_count
    if device == "cpu" and threads > cpus:
        raise UsageError(f"peaks of {threads} threads cannot be measured: this machine has {cpus} CPUs for us")
    found = measure(device, threads)
    if not found.flops and not found.bandwidth:
        return found
    known = cached(key, device, threads)
    if known is not None:
        (found,) = environment.merged_peaks((known,), (found,))
    write_atomic(_file(key, device, threads), msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def cached(key: str, device: str, threads: int) -> Peaks | None:
    """Peaks in the cache of the machine whose environment has this key; None where there are none."""
    return _read(_file(key, device, threads))


def measure(device: str = "cpu", threads: int = 1) -> Peaks:
    """Measure now, which takes a quarter to half a minute: nothing is read from the cache or kept."""
    figures = list(_products(device, threads))
    figures += _cpu_figures(threads) if device == "cpu" else _device_bandwidth(device, threads)
    best: dict[str, Figure] = {}
    for figure in figures:
        if figure.name not in best or figure.rate > best[figure.name].rate:
            best[figure.name] = figure
    levels = [name for name in best if name == "DRAM" or name.startswith("L")]
    return Peaks(
        device=device, threads=threads,
        flops={name: figure.rate for name, figure in best.items() if name not in levels},
        bandwidth={name: best[name].rate for name in levels},
        sizes={name: best[name].size for name in levels if best[name].size},
        sources={name: figure.source for name, figure in best.items()},
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def side(threads: int) -> int:
    """Rows of the square matrices: large enough to keep all threads busy, small enough for seconds."""
    return 1024 if threads <= 2 else 2048 if threads <= 16 else 4096


def _products(device: str, threads: int) -> Iterator[Figure]:
    """The rate of every library and dtype that gives a right result, by the same runner as any other job."""
    size = side(threads)
    for dtype, level in LEVELS.items():
        graph = _product(dtype, size)
        for result in _run(graph, INTEGER_COMPILERS if dtype == "int8" else COMPILERS, device, threads, level):
            rate = _rate(result, 2 * size**3)
            if rate:
                yield Figure(name=dtype, rate=rate, source=f"{_library(result)} {graph.nodes[0].op} {size}")


def _device_bandwidth(device: str, threads: int) -> Iterator[Figure]:
    """One addition z = x + y of arrays far larger than any cache of a device: two are read, one is written."""
    shape = (DEVICE_ELEMENTS,)
    graph = _binary("Add", ("float32", "float32", "float32"), shape)
    for result in _run(graph, ("torch", "jax"), device, threads, LEVELS["float32"]):
        rate = _rate(result, 3 * 4 * DEVICE_ELEMENTS)
        if rate:
            yield Figure(
                name="DRAM", rate=rate, source=f"{_library(result)} Add, 3 arrays of {DEVICE_ELEMENTS >> 18} MiB"
            )


def _run(graph: Graph, compilers: Sequence[str], device: str, threads: int, level: int) -> Iterator[Result]:
    jobs = plan.plan(
        [graph], compilers, target=Target(device=device, threads=threads), budget_s=BUDGET_S, tolerance=level,
        profile=False,
    )  # fmt: skip
    yield from runner.run(jobs)


def _rate(result: Result, amount: int) -> float | None:
    """By the fastest run; None where the result is wrong or there is none."""
    if result.verdict not in ("ok", "unstable") or result.timing is None:
        return None
    return amount / (min(result.timing.samples_ns) * 1e-9)


def _library(result: Result) -> str:
    return f"{result.compiler} {next(iter(result.versions.values()), '')}".rstrip()


def _product(dtype: DType, size: int) -> Graph:
    shape = (size, size)
    if dtype == "int8":
        return _binary("MatMulInteger", ("uint8", "int8", "int32"), shape)
    return _binary("MatMul", (dtype, dtype, dtype), shape)


def _binary(op: str, dtypes: tuple[DType, DType, DType], shape: tuple[int, ...]) -> Graph:
    """`op` of an input and a weight of one shape, which is that of the result; their dtypes in this order."""
    left, right, result = dtypes
    return Graph(
        name=f"{op}_{right}", inputs=(Input(name="x", dtype=left, shape=shape, fill=_fill(left)),), outputs=("z",),
        weights={"y": Weight(dtype=right, shape=shape, fill=_fill(right))},
        nodes=(Node(op=op, name=op.lower(), inputs=("x", "y"), outputs=("z",)),),
        values={"z": Value(dtype=result, shape=shape)},
    )  # fmt: skip


def _fill(dtype: DType) -> Fill:
    return Uniform(low=0, high=7) if dtype.endswith("int8") else Normal()


def _cpu_figures(threads: int) -> list[Figure]:
    """Memory, and NumPy's products, from a process of its own: thread pools read their size once, at import."""
    folder = oracle.cache_folder("peaks")
    arguments = (threads, folder, side(threads), BUDGET_S)
    done = subprocess.run(
        [sys.executable, "-m", "graphnet.evaluate.bandwidth", *map(str, arguments)],
        env=os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads)), capture_output=True, timeout=CHILD_LIMIT_S,
        check=False,
    )  # fmt: skip
    return msgspec.json.decode(done.stdout, type=list[Figure]) if done.returncode == 0 else []


def _file(key: str, device: str, threads: int) -> Path:
    return oracle.cache_folder("peaks") / f"{key}-{device}-{threads}.json"


def _read(file: Path) -> Peaks | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Peaks)
    except (OSError, msgspec.DecodeError):  # absent, or of another version: measured anew
        return None
