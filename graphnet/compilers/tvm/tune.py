"""MetaSchedule search for kernels faster than our schedules (`tvm:tuned`), in processes that may crash or hang.

A design space is our rule with its choices sampled (contractions), or TVM's own rules for CPUs (the rest). A candidate
takes a kernel's place when its results agree and it was faster in alternate runs. What was found is kept in files as it
is found, so that a process that dies loses only what it was trying.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import tvm
from tvm import tirx

from graphnet.compilers.tvm.nodes import called_kernels
from graphnet.errors import UsageError

_BOOT = "import sys; sys.path[:] = {path!r}; from graphnet.compilers.tvm import search; search.main({folder!r})"
_ATTEMPTS = 5
"""Processes that one search may use up."""
LEAST_SECONDS = 5.0


class Tuned(NamedTuple):
    """What a search found."""

    functions: Mapping[str, tirx.PrimFunc]
    """Scheduled kernels that beat ours, by name."""
    details: Mapping[str, str | int | float]
    """For the record."""


def seconds(options: Mapping[str, object]) -> float:
    """Option `tune`; 0 if there is none. Raises UsageError."""
    given = options.get("tune", 0)
    if isinstance(given, bool) or not isinstance(given, int | float) or (given != 0 and given < LEAST_SECONDS):
        raise UsageError(f"tvm: option tune={given} is no number of seconds of at least {LEAST_SECONDS:g}")
    return float(given)


def tune(module: tvm.IRModule, target: tvm.target.Target, threads: int, limit_s: float) -> Tuned:
    """Search for `limit_s` seconds over the unscheduled kernels that `main` calls."""
    deadline, attempts = time.monotonic() + limit_s, 0
    with tempfile.TemporaryDirectory(prefix="graphnet-tune-") as name:
        folder = Path(name)
        kernels = {variable: found for variable, found in module.functions_items() if isinstance(found, tirx.PrimFunc)}
        (folder / "kernels.json").write_text(tvm.ir.save_json(tvm.IRModule(kernels)))
        request = {
            "target": str(tvm.ir.save_json(target)), "threads": threads,
            "calls": dict(Counter(filter(None, called_kernels(module)))),
        }  # fmt: skip
        while attempts < _ATTEMPTS and (left := deadline - time.monotonic()) >= LEAST_SECONDS:
            attempts += 1
            (folder / "request.json").write_text(json.dumps({**request, "seed": attempts}))
            if _attempt(folder, left) == 0:
                break
        functions = {
            file.stem: tvm.ir.load_json(file.read_text())["main"] for file in sorted(folder.glob("found/*.json"))
        }
        tried = len((folder / "tried").read_text().splitlines()) if (folder / "tried").exists() else 0
        failure = (folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:] if not tried else []
    details: dict[str, str | int | float] = {
        "tune_s": limit_s, "tune_candidates": tried, "tune_replaced": len(functions), "tune_processes": attempts,
    }  # fmt: skip
    return Tuned(functions, details | ({"tune_failure": failure[0][:300]} if failure else {}))


def _attempt(folder: Path, left_s: float) -> int:
    """Exit status of a search process, 0 too where the time ran out."""
    command = [sys.executable, "-c", _BOOT.format(path=sys.path, folder=str(folder))]
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
        )
        try:
            return process.wait(left_s)
        except subprocess.TimeoutExpired:
            return 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
