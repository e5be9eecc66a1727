"""The facts of this machine that a figure depends on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import msgspec

from graphnet.evaluate import cpus, procfs
from graphnet.evaluate.records import Environment, Floor, Peaks

ISA_FLAGS = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
    "avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd", "sve", "sve2", "bf16", "i8mm",
)  # fmt: skip
"""CPU flags that compilers choose code by."""
FACTS: Mapping[str, tuple[tuple[str, Mapping[str, str]], ...]] = {
    "turbo": (
        ("/sys/devices/system/cpu/cpufreq/boost", {"0": "off", "1": "on"}),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", {"0": "on", "1": "off"}),
    ),
    "smt": (("/sys/devices/system/cpu/smt/active", {"0": "off", "1": "on"}),),
    "huge_pages": (("/sys/kernel/mm/transparent_hugepage/enabled", {}),),
    "address_randomization": (
        ("/proc/sys/kernel/randomize_va_space", {"0": "off", "1": "without the heap", "2": "on"}),
    ),
}
"""Files that tell each fact, the first that is there counts, and what their values mean."""
COMPARABLE_FACTS = ("turbo", "huge_pages")
"""Facts that set a level of their own: the frequency above the nominal one, and what a miss of the address cache costs.

The others do not. Randomization only moves what is drawn anew in each process anyway: where its buffers and code lie.
And with hardware threads the machine has other `cpu_count`.
"""
PACKAGES = ("graphnet-eval", "torch", "jax", "jaxlib", "onnxruntime", "onnx", "numpy")
"""Distributions that decide figures."""


@lru_cache(maxsize=1)
def detect() -> Environment:
    """This machine: CPU, instruction sets, usable CPUs, memory, system, Python, governor, FACTS."""
    model, flags = _cpu()
    facts = Environment(
        key="", cpu_model=model, cpu_count=cpus.usable_cpus(), memory_bytes=procfs.memory_limit_bytes(),
        os=f"{platform.system()} {platform.release()} {platform.machine()}", python=platform.python_version(),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        isa=tuple(flag for flag in ISA_FLAGS if flag in flags), facts=_facts(),
    )  # fmt: skip
    return msgspec.structs.replace(facts, key=digest(facts))


def packages() -> Mapping[str, str]:
    """Installed versions of PACKAGES, by name."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def digest(facts: Environment) -> str:
    """16 hex digits over what makes figures comparable; memory counts in whole GiB, since kernels keep back some."""
    told = {name: facts.facts[name] for name in COMPARABLE_FACTS if name in facts.facts}
    comparable = msgspec.structs.replace(
        facts, key="", facts=told, peaks=(), floors=(), memory_bytes=round(facts.memory_bytes / 2**30)
    )
    return hashlib.sha256(msgspec.json.encode(comparable)).hexdigest()[:16]


def merged_peaks(known: Sequence[Peaks], new: Sequence[Peaks]) -> tuple[Peaks, ...]:
    """Peaks of both by device and threads: of each figure the higher one with its source, of dates the later one."""
    merged = {(peaks.device, peaks.threads): peaks for peaks in known}
    for peaks in new:
        place = peaks.device, peaks.threads
        merged[place] = _higher(merged[place], peaks) if place in merged else peaks
    return tuple(merged[place] for place in sorted(merged))


def merged_floors(known: Sequence[Floor], new: Sequence[Floor]) -> tuple[Floor, ...]:
    """Floors of both by device and threads, each the one that was measured last."""
    merged = {(floor.device, floor.threads): floor for floor in known}
    for floor in new:
        place = floor.device, floor.threads
        if place not in merged or floor.measured > merged[place].measured:
            merged[place] = floor
    return tuple(merged[place] for place in sorted(merged))


def merged(known: Environment, new: Environment) -> Environment:
    """The facts of `known` with the peaks and floors of both, which are of one machine."""
    return msgspec.structs.replace(
        known, peaks=merged_peaks(known.peaks, new.peaks), floors=merged_floors(known.floors, new.floors)
    )


def _higher(one: Peaks, other: Peaks) -> Peaks:
    sources = {**other.sources, **one.sources}
    flops, bandwidth = dict(one.flops), dict(one.bandwidth)
    for kept, offered in ((flops, other.flops), (bandwidth, other.bandwidth)):
        for name, rate in offered.items():
            if rate > kept.get(name, 0.0):
                kept[name], sources[name] = rate, other.sources.get(name, "")
    return msgspec.structs.replace(
        one, flops=flops, bandwidth=bandwidth, sources=sources, sizes={**one.sizes, **other.sizes},
        measured=max(one.measured, other.measured),
    )  # fmt: skip


def _cpu() -> tuple[str, frozenset[str]]:
    fields: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags") or fields.get("Features") or ""
    model = fields.get("model name") or fields.get("CPU part") or platform.processor() or "unknown"
    return model, frozenset(flags.split())


def _facts() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, files in FACTS.items():
        for path, meanings in files:
            text = _read(path)
            chosen = text.partition("[")[2].partition("]")[0] or text  # `always [madvise] never`
            if chosen:
                found.setdefault(name, meanings.get(chosen, chosen))
    return found


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
