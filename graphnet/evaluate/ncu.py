"""Hardware counters of the kernels of one inference on an NVIDIA GPU, by Nsight Compute (`ncu`)."""

from __future__ import annotations

import csv
import math
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from graphnet.compilers import Target
from graphnet.errors import DeviceNotPresent, GraphNetError
from graphnet.evaluate import plan

TIME_LIMIT_S = 1800.0
_DURATION = "gpu__time_duration.sum"
_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_DRAM_BYTES = "dram__bytes.sum"
_TENSOR = "sm__inst_executed_pipe_tensor.sum"
_OPERATIONS: Mapping[str, int] = {
    f"sm__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum": count
    for letter in "fdh"
    for kind, count in (("add", 1), ("mul", 1), ("fma", 2))
}
"""Instructions by thread in float32, float64 and float16, with the operations that each does."""
METRICS = (_DURATION, _SM, _DRAM, _DRAM_BYTES, _TENSOR, *_OPERATIONS)
_UNITS: Mapping[str, float] = {
    "": 1.0, "%": 1.0, "inst": 1.0, "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12, "b": 1.0,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "nsecond": 1e-9, "usecond": 1e-6,
    "msecond": 1e-3, "second": 1.0,
}  # fmt: skip
"""To seconds, bytes, instructions and per cent; Nsight Compute's prefixes of bytes are decimal."""
_UNKNOWN = ("", "n/a", "nan", "-nan", "(!) n/a")
INSTALL = "install Nsight Compute (package nsight-compute of NVIDIA's CUDA repository) so that `ncu` is on PATH"


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of one kernel. None where the GPU does not have a counter."""

    kernel: str
    seconds: float | None = None
    sm_percent: float | None = None
    """Of what the multiprocessors can issue at best."""
    dram_percent: float | None = None
    """Of the bandwidth of the device memory."""
    dram_bytes: int | None = None
    """Read and written."""
    flops: int | None = None
    """Scalar operations, a multiply-add being 2. None also where tensor cores worked: they are not counted so."""


def profile(graph: Path, compiler: str, target: Target) -> list[Counters]:
    """Counters of one inference of a graph file, after two that warm up; kernels in the order of their launch.

    Every kernel is run several times by Nsight Compute, so that times are not those of a normal run.
    Raises DeviceNotPresent (no CUDA device or no `ncu`; other devices have no counters that we read), GraphNetError.
    """
    tool = require(target.device)
    (job,) = plan.plan([graph], [compiler], target=target)
    arguments = [compiler, str(graph.resolve()), msgspec.json.encode(job.target).decode()]
    done = subprocess.run(
        command(tool, [sys.executable, "-m", "graphnet.evaluate.ncu_child", *arguments]),
        capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in output:
        raise GraphNetError(
            "ncu: this user may not read GPU counters; run as root, or load the driver with"
            " NVreg_RestrictProfilingToAdminUsers=0"
        )
    if done.returncode != 0:
        raise GraphNetError(f"ncu: {graph} on {compiler} ended with status {done.returncode}: {_last_line(output)}")
    return parse(done.stdout)


def require(device: str) -> str:
    """Path of `ncu`. Raises DeviceNotPresent with what is missing."""
    if device == "metal":
        raise DeviceNotPresent("metal: timing only, Apple's counters have no command line that we could ask")
    if device != "cuda":
        raise DeviceNotPresent(f"{device}: hardware counters are read on NVIDIA GPUs only (--backend gpu)")
    if not Path("/dev/nvidiactl").exists() and shutil.which("nvidia-smi") is None:
        raise DeviceNotPresent("cuda: no NVIDIA GPU present")
    tool = shutil.which("ncu")
    if tool is None:
        raise DeviceNotPresent(f"cuda: ncu is not present; {INSTALL}")
    return tool


def command(tool: str, program: Sequence[str]) -> list[str]:
    """The command line: counters are read between cuProfilerStart and cuProfilerStop only."""
    return [
        tool, "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off", "--target-processes",
        "all", "--metrics", ",".join(METRICS), *program,
    ]  # fmt: skip


def parse(text: str) -> list[Counters]:
    """Counters from `ncu --csv --page raw`: messages, a header, a row of units, then a row for each launch.

    Raises GraphNetError if there is no table.
    """
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise GraphNetError(f"ncu: no table of counters in its output: {_last_line(text)}")
    rows = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    header, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    units = dict(zip(header, body[0], strict=True)) if body and not body[0][0] else {}
    launches = [dict(zip(header, row, strict=True)) for row in body if row[0]]
    return [_counters(row, units) for row in launches]


def _counters(row: Mapping[str, str], units: Mapping[str, str]) -> Counters:
    def value(name: str) -> float | None:
        return _number(row.get(name, ""), units.get(name, ""))

    moved = value(_DRAM_BYTES)
    return Counters(
        kernel=row.get("Kernel Name", ""), seconds=value(_DURATION), sm_percent=value(_SM), dram_percent=value(_DRAM),
        dram_bytes=None if moved is None else round(moved), flops=_flops(map(value, _OPERATIONS), value(_TENSOR)),
    )  # fmt: skip


def _flops(counts: Iterable[float | None], tensor: float | None) -> int | None:
    """None where a part is unknown: a lower bound would be taken for the whole."""
    known = list(counts)
    if tensor or any(count is None for count in known):
        return None
    return round(sum(count * factor for count, factor in zip(known, _OPERATIONS.values(), strict=True) if count))


def _number(text: str, unit: str) -> float | None:
    """In base units; `1,234.5` has separators of thousands. Raises GraphNetError for a unit that is not known."""
    plain = text.strip().replace(",", "")
    if plain.lower() in _UNKNOWN:
        return None
    factor = _UNITS.get(unit.strip().lower())
    if factor is None:
        raise GraphNetError(f"ncu: unknown unit '{unit}'")
    try:
        number = float(plain)
    except ValueError:
        raise GraphNetError(f"ncu: '{text}' is not a number") from None
    return number * factor if math.isfinite(number) else None


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")[:500]
