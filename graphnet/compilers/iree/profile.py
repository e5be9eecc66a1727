"""Per-dispatch times of an IREE module from `iree-benchmark-module`, each with the GraphIR nodes that it holds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import iree.runtime as rt
import numpy as np
from iree.compiler import ir, tools

from graphnet.compilers.base import Kernel
from graphnet.compilers.iree.importer import FUNCTION, SCOPE, Imported
from graphnet.rewrite.decompose import origin

PROFILED_RUNS = 5
_SHARED = frozenset({"arith.constant", "linalg.fill", "tensor.empty"})
"""Operations that IREE shares between nodes: their locations tell nothing."""
_REGIONS = ("flow.dispatch.workgroups", "flow.dispatch.region")


class Recording(NamedTuple):
    """What to run: a module, the backend it is for, its weights, inputs and driver."""

    module: bytes
    backend: str
    index: rt.ParameterIndex
    inputs: Sequence[np.ndarray]
    driver: str


def profile(
    recording: Recording, imported: Imported, compiler_flags: Sequence[str], runtime_flags: Sequence[str],
    nodes: Collection[str],
) -> list[Kernel]:  # fmt: skip
    """Dispatches in order of their first execution; with one thread their times add up to that of the run.

    A node whose work is split over several dispatches (padding before a convolution) is named in each. A dispatch
    function that serves several places of the graph is one kernel, with the nodes of all of them.

    Args:
        recording: what to run.
        imported: the graph that the module was compiled from.
        compiler_flags: the flags that it was compiled with.
        runtime_flags: of threads.
        nodes: names of the graph's nodes.
    """
    with tempfile.TemporaryDirectory(prefix="graphnet-iree-") as folder:
        rows = _measure(Path(folder), recording, runtime_flags)
        regions, calls = (
            _phase(Path(folder), imported, recording.backend, compiler_flags, phase)
            for phase in ("dispatch-creation", "flow")
        )
    return kernels(rows, covered(regions, calls, nodes))


def _measure(folder: Path, recording: Recording, flags: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of `iree-profile dispatch`, of a process that runs the module several times."""
    module, weights, times = folder / "module.vmfb", folder / "weights.irpa", folder / "times.ireeprof"
    module.write_bytes(recording.module)
    recording.index.create_archive_file(str(weights))
    arguments = [f"--module={module}", f"--parameters={SCOPE}={weights}", f"--device={recording.driver}"]
    for number, array in enumerate(recording.inputs):
        path = folder / f"{number}.npy"
        np.save(path, array)
        arguments.append(f"--input=@{path}")
    _tool(
        "iree-benchmark-module", *arguments, f"--function={FUNCTION}", f"--benchmark_min_time={PROFILED_RUNS}x",
        "--device_profiling_mode=host-execution", f"--device_profiling_output={times}", *flags,
    )  # fmt: skip
    return [json.loads(line) for line in _tool("iree-profile", "dispatch", "--format=jsonl", str(times)).splitlines()]


def _tool(name: str, *arguments: str) -> str:
    """Standard output of a tool of the runtime's distribution. Raises RuntimeError with what it says."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _phase(folder: Path, imported: Imported, backend: str, flags: Sequence[str], phase: str) -> ir.Module:
    """The module as it is after a phase of the compiler, locations included."""
    source, result = folder / "module.mlirbc", folder / f"{phase}.mlirbc"
    source.write_bytes(imported.module)
    tools.compile_file(
        str(source), input_type="onnx", target_backends=[backend], output_file=str(result),
        extra_args=[*flags, f"--compile-to={phase}", "--emit-mlir-bytecode"],
    )  # fmt: skip
    return ir.Module.parse(result.read_bytes(), ir.Context())


def covered(regions: ir.Module, calls: ir.Module, nodes: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Dispatch function to the nodes whose operators it holds.

    A phase earlier every dispatch is a region with its operators in it; then equal ones are made one function, whose
    body has the locations of the first. Both list them in the same order.
    """
    bodies = _operations(regions, lambda op: op.name in _REGIONS)
    sites = _operations(calls, lambda op: op.name == "flow.dispatch")
    found: dict[str, dict[str, None]] = defaultdict(dict)
    if len(bodies) != len(sites):
        return {}
    for body, site in zip(bodies, sites, strict=True):
        for entry in ir.ArrayAttr(site.attributes["entry_points"]):
            name = str(entry).rpartition("@")[2].strip('"')
            found[name] |= dict.fromkeys(node for node in _origins(body) if node in nodes)
    return {name: tuple(names) for name, names in found.items()}


def _operations(module: ir.Module, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if wanted(operation):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _origins(region: ir.Operation) -> list[str]:
    found: dict[str, None] = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name not in _SHARED:
            found.update(dict.fromkeys(origin(name) for name in _names(operation.location)))
        return ir.WalkResult.ADVANCE

    region.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(found)


def _names(location: Any) -> list[str]:
    """Names in a location, those of a fused one included."""
    if isinstance(location, ir.FusedLoc):
        return [name for part in location.locations for name in _names(part)]
    return [location.name_str] if isinstance(location, ir.NameLoc) else []


def kernels(rows: Iterable[Mapping[str, Any]], nodes: Mapping[str, tuple[str, ...]]) -> list[Kernel]:
    """Rows of the profile as times of one inference."""
    return [
        Kernel(
            name=row["key"],
            nodes=nodes.get(row["key"], ()),
            calls=max(1, row["count"] // PROFILED_RUNS),
            total_us=row["total_ns"] / PROFILED_RUNS / 1e3,
        )
        for row in rows
        if row["type"] == "host_dispatch_group"
    ]
