"""Baseline files of the regression gate: what of results it needs, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from graphnet.compilers import Target
from graphnet.errors import StoreError, UsageError
from graphnet.evaluate.records import Environment, Result, Timing
from graphnet.evaluate.store import EXPORT_FORMAT, ResultSet, load_set
from graphnet.ir.fileio import write_atomic

MEDIANS_FORMAT = "graphnet-medians/1"


class Medians(msgspec.Struct, frozen=True, kw_only=True, tag=MEDIANS_FORMAT, tag_field="format"):
    """A baseline that was written by hand, or by another tool: no samples, no settings."""

    medians: dict[str, dict[str, float]]
    """Seconds of one inference, by graph name and compiler."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What a current run is compared with."""

    found: ResultSet
    bare: bool = False
    """It knows medians by graph and compiler alone."""


def load_baseline(where: str | os.PathLike[str]) -> Baseline:
    """A baseline of bare medians, or any set of results that `load_set` reads. Raises StoreError."""
    place = os.fspath(where)
    if place.endswith(".json") and "://" not in place and Path(place).is_file():
        data = Path(place).read_bytes()
        try:
            tag = msgspec.json.decode(data, type=_Tagged).format
        except msgspec.DecodeError:
            tag = ""  # `load_set` says what is wrong
        if tag == MEDIANS_FORMAT:
            return Baseline(found=_from_medians(data, place), bare=True)
    return Baseline(found=load_set(place))


def write_baseline(where: str | os.PathLike[str], output: str | os.PathLike[str]) -> int:
    """Write the newest results of a folder (or of what `load_set` reads) as a baseline; returns how many they are.

    Equal results give equal bytes. Raises StoreError, UsageError (there are no results).
    """
    if Path(output).suffix != ".json":
        raise UsageError(f"a baseline's name ends in .json, not '{Path(output).name}'")
    found = compact(load_set(where))
    if not found.results:
        raise UsageError(f"no results in {where}; `graphnet evaluate --output {where}` makes them")
    try:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(output, encode(found))
    except OSError as error:
        raise StoreError(f"cannot write {output}: {error.strerror or error}; choose another place") from error
    return len(found.results)


def compact(found: ResultSet) -> ResultSet:
    """Results in a fixed order with what the gate reads: raw samples, blocks, versions, settings, machines.

    Left out are kernels, memory, notes, errors of outputs, warm-up runs, disturbed blocks and measured peaks.
    """
    results = sorted(
        map(_compact, found.results), key=lambda result: (result.graph, result.compiler, result.job_key, result.started)
    )
    used = {result.environment for result in results}
    machines = sorted(
        (msgspec.structs.replace(item, peaks=()) for item in found.environments if item.key in used),
        key=lambda item: item.key,
    )
    return ResultSet(environments=tuple(machines), results=tuple(results))


def encode(found: ResultSet) -> bytes:
    """JSON that `load_set` reads, one line for each machine and each result: a new baseline has a readable diff."""
    encoder = msgspec.json.Encoder(order="deterministic")
    machines, results = (b",\n".join(map(encoder.encode, items)) for items in (found.environments, found.results))
    return b'{"format":"%s","environments":[\n%s\n],"results":[\n%s\n]}\n' % (EXPORT_FORMAT.encode(), machines, results)


def _compact(result: Result) -> Result:
    return msgspec.structs.replace(
        result, notes=(), kernels=(), memory=None, noise=None, outputs=(), compile=None, warm_compile=None,
        timing=_bare_timing(result.timing) if result.timing else None,
        more_timings=tuple(map(_bare_timing, result.more_timings)),
    )  # fmt: skip


def _bare_timing(timing: Timing) -> Timing:
    blocks = (
        type(block)(round=block.round, samples=block.samples) for block in timing.blocks if not block.disturbed
    )  # fmt: skip
    return msgspec.structs.replace(timing, warmup_ns=(), cpu_ns=(), disturbed_ns=(), blocks=tuple(blocks))


class _Tagged(msgspec.Struct):
    format: str = ""


def _from_medians(data: bytes, place: str) -> ResultSet:
    try:
        medians = msgspec.json.decode(data, type=Medians).medians
    except msgspec.DecodeError as error:
        raise StoreError(f"{place}: damaged medians: {error}") from error
    results = []
    for graph, by_compiler in medians.items():
        for compiler, seconds in by_compiler.items():
            if not 1e-9 <= seconds <= 1e6:
                raise StoreError(f"{place}: median of {graph} on {compiler} is {seconds}, not a time in seconds")
            results.append(
                Result(
                    run_id="", graph_id="", graph=graph, subset="", structure_hash="", compiler=compiler,
                    target=Target(), verdict="ok", timing=Timing(samples_ns=(round(seconds * 1e9),)),
                )
            )  # fmt: skip
    return ResultSet(results=tuple(results), environments=tuple[Environment, ...]())
