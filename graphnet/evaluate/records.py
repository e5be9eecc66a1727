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


class Block(_Struct, frozen=True, kw_only=True):
    """A turn of one program in a race: timed runs without a break, its inputs at new places in memory.

    What the machine did meanwhile is of the whole machine where it does not say otherwise. Nanoseconds.
    """

    round: int
    """In each round every program of the race has one turn, in random order."""
    samples: int
    """How many samples are of this block."""
    buffer_seed: int = 0
    """Decides where in its 4 KiB page each buffer of an input begins (`timing.buffer_offset`)."""
    wall_ns: int = 0
    """Of the turn, by the clock of the parent."""
    wait_ns: int = 0
    """Run-queue wait of the program's threads (`/proc/PID/task/*/schedstat`)."""
    switches: int = 0
    """Times that a thread of the program was made to yield its CPU."""
    steal_ns: int = 0
    """Taken by the hypervisor, over all CPUs."""
    throttled_ns: int = 0
    """Held back by the quota of the cgroup."""
    other_ns: int = 0
    """CPU time of all other processes."""
    mhz: float = 0.0
    """Mean frequency of the CPUs at the end of the turn; 0 where the system does not tell."""
    disturbed: str = ""
    """By what, so much that the turn was taken again; `""` for a block whose samples count."""


class Timing(_Struct, frozen=True, kw_only=True):
    """Raw samples of one program. Nanoseconds."""

    warmup_ns: tuple[int, ...] = ()
    samples_ns: tuple[int, ...]
    """Per inference; the mean of `inner_loops` runs where one run is too short for the clock."""
    race: str = ""
    """Programs of one race took turns: their blocks of the same round are pairs."""
    blocks: tuple[Block, ...] = ()
    """In the order of time; those that count cut `samples_ns` into parts, the disturbed ones `disturbed_ns`."""
    disturbed_ns: tuple[int, ...] = ()
    """Samples of disturbed blocks, which do not count."""
    inner_loops: int = 1
    cpu_ns: tuple[int, ...] = ()
    """Process CPU time of each sample."""
    steady: bool = True
    """False when the warm-up never became steady within its limit."""
    budget_ended: bool = False
    """True when the time budget ended the block before 100 runs."""
    buffer_seed: int = 0
    """Decides where in its 4 KiB page each buffer of a weight begins (`timing.buffer_offset`)."""


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


class Floor(_Struct, frozen=True, kw_only=True):
    """Below what a difference means nothing on a machine: programs compared with themselves (`graphnet noise`).

    Standard deviations are of the logarithm of a ratio, beyond what the spread of its blocks explains.
    """

    device: str = "cpu"
    threads: int
    pairs: int
    """Comparisons that it is from."""
    spread: float
    """Standard deviation between two processes of the same program that take turns."""
    sequential: float
    """The same for two processes that run one after the other."""
    median: float
    """Of |ratio - 1|, taking turns."""
    p95: float
    """95th percentile of |ratio - 1|, taking turns."""
    sequential_p95: float
    """The same one after the other."""
    covered: float
    """Share of the 95 % intervals that hold 1, taking turns."""
    compilers: tuple[str, ...] = ()
    measured: str = ""
    """UTC, ISO 8601."""


class Environment(_Struct, frozen=True, kw_only=True):
    """The machine. `key` is a digest of what makes figures comparable; measured peaks and noise are no part of it."""

    key: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    os: str
    python: str
    governor: str = ""
    isa: tuple[str, ...] = ()
    facts: dict[str, str] = {}
    """Settings of the system that move figures, by `environment.FACTS`; those that it does not tell are left out."""
    peaks: tuple[Peaks, ...] = ()
    floors: tuple[Floor, ...] = ()


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
    more_timings: tuple[Timing, ...] = ()
    """Of further races: the first compiler is timed again beside those that memory had no room for in the first."""
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
