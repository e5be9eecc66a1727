"""What is stored: one Result per (graph, compiler), and the Environment it was measured in."""

from __future__ import annotations

from typing import Literal

import msgspec

from graphnet.compilers import Kernel, Target

RESULT_FORMAT = "graphnet-result/1"

Verdict = Literal["ok", "unsupported", "wrong", "unstable", "error", "crashed", "timeout", "out_of_memory"]
Stage = Literal["load", "lower", "compile", "run", "check"]


class _Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class OutputError(_Struct, frozen=True, kw_only=True):
    """Error of one output against the float64 reference."""

    name: str
    dtype: str
    level: int | None
    """Smallest tolerance level t in -10..0 at which all elements are close; None if not even at 0."""
    max_abs: float | None = None
    max_rel: float | None = None
    """None where not a number (NaN mismatch)."""


class Timing(_Struct, frozen=True, kw_only=True):
    """Raw samples of one program. Nanoseconds."""

    warmup_ns: tuple[int, ...] = ()
    samples_ns: tuple[int, ...]
    """Per inference; the mean of `inner_loops` runs where one run is too short for the clock."""
    inner_loops: int = 1
    cpu_ns: tuple[int, ...] = ()
    """Process CPU time of each sample."""
    wait_ns: int = 0
    """Run-queue wait of all threads over the timed block (`/proc/self/task/*/schedstat`)."""
    steady: bool = True
    """False when the warm-up never became steady within its limit."""
    budget_ended: bool = False
    """True when the time budget ended the block before 100 runs."""
    buffer_seed: int = 0
    """Decides where in its 4 KiB page each buffer of an input or weight begins (`timing.buffer_offset`)."""


class CompileTime(_Struct, frozen=True, kw_only=True):
    """Seconds from graph to runnable artefact."""

    lower_s: float = 0.0
    compile_s: float = 0.0
    first_run_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds, all parts together."""
        return self.lower_s + self.compile_s + self.first_run_s


class Memory(_Struct, frozen=True, kw_only=True):
    """Resident memory of the child in bytes: baseline before the job, then the peak of each stage."""

    baseline: int = 0
    load_peak: int = 0
    compile_peak: int = 0
    run_peak: int = 0
    steady: int = 0
    """Resident after the timed runs."""
    weights: int = 0
    """What the weights of the graph come to by their dtypes and shapes."""
    inputs: int = 0
    outputs: int = 0
    allocator: dict[str, int] = {}
    """What the library's own allocator tells, by its own names (`temporaries`, `peak` ...)."""
    timeline: tuple[tuple[float, int], ...] = ()
    """(seconds since the job began, resident bytes)."""


class Noise(_Struct, frozen=True, kw_only=True):
    """A calibrated fixed-work loop before and after the timed block."""

    before_ns: tuple[int, ...] = ()
    after_ns: tuple[int, ...] = ()
    cv: float = 0.0
    """Coefficient of variation over both."""


class Peaks(_Struct, frozen=True, kw_only=True):
    """What the machine does at best with so many threads: the highest that was ever measured on it."""

    device: str = "cpu"
    threads: int
    flops: dict[str, float] = {}
    """FLOP/s by dtype (`float32`), of a large matrix product."""
    bandwidth: dict[str, float] = {}
    """Bytes/s by level (`L1`, `L2`, `L3`, `DRAM`), of a triad a = b + s c."""
    sizes: dict[str, int] = {}
    """Bytes of each cache level, of all caches that the threads use together."""
    sources: dict[str, str] = {}
    """What measured each figure, by dtype or level (`torch 2.13.0 matmul 2048`)."""
    measured: str = ""
    """UTC, ISO 8601."""


class Environment(_Struct, frozen=True, kw_only=True):
    """The machine. `key` is a digest of the fields that make figures comparable; measured peaks are not among them."""

    key: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    os: str
    python: str
    governor: str = ""
    isa: tuple[str, ...] = ()
    peaks: tuple[Peaks, ...] = ()


class Result(_Struct, frozen=True, kw_only=True, tag=RESULT_FORMAT, tag_field="format"):
    """Everything known of one job. Exactly one per requested job, whatever happened to the child."""

    run_id: str
    job_key: str = ""
    """Digest of graph, compiler, target, dims, seed and passes: the same job after a restart has the same key."""
    graph_id: str
    graph: str
    """Name of the graph (`resnet50`)."""
    subset: str
    structure_hash: str
    compiler: str
    passes: tuple[str, ...] = ("default",)
    target: Target
    dims: dict[str, int] = {}
    """Size of every symbolic dimension: as asked, else its default."""
    seed: int = 0
    verdict: Verdict
    stage: Stage | None = None
    """The stage that failed; None when the verdict is ok."""
    message: str = ""
    notes: tuple[str, ...] = ()
    compile: CompileTime | None = None
    """Cold: caches of compiled code were empty."""
    warm_compile: CompileTime | None = None
    """The same again in a new process, with the caches that the first one left; None unless asked for."""
    timing: Timing | None = None
    outputs: tuple[OutputError, ...] = ()
    level: int | None = None
    """Largest level over the outputs.

    None when some output is not close at t = 0 or was never checked, and when the program is wrong in another way than
    by numbers (it changed its inputs, say).
    """
    kernels: tuple[Kernel, ...] = ()
    memory: Memory | None = None
    noise: Noise | None = None
    flops: int | None = None
    bytes: int | None = None
    versions: dict[str, str] = {}
    settings: dict[str, str | int | float | bool] = {}
    """Effective settings that the compiler reported (threads, precision, flags)."""
    environment: str = ""
    """Key of the Environment."""
    started: str = ""
    """UTC, ISO 8601."""
    wall_s: float = 0.0
    """Wall time of the whole job as the parent saw it."""
