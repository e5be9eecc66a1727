"""The child: one job from graph to verdict, each stage announced to the parent before it begins."""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphnet.compilers import Accounting, Caching, Coded, Compiler, Kernel, Profiled, Program, cache_policy
from graphnet.errors import DeviceNotPresent, GraphNetError, UnsupportedOp
from graphnet.evaluate import code_files, correctness, equivalence, oracle, procfs, timing
from graphnet.evaluate.protocol import CodePlace, Report, Samples, Turn, WarmUp, Work
from graphnet.evaluate.records import CompileTime, Memory, Stage, Verdict
from graphnet.ir import fills, sidecar, tensors
from graphnet.ir.graph import Graph, Value
from graphnet.ir.region import region_costs

_now = time.perf_counter
MESSAGE_LIMIT = 2000
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "resource_exhausted", "cannot allocate memory", "can't allocate memory")
SUBNORMAL_SHARE = 0.01
LAZY_SHARE, LAZY_FLOOR_S = 0.5, 0.01
CACHE_VARIABLES = ("XDG_CACHE_HOME", "CUDA_CACHE_PATH")
"""Environment variables by which libraries and drivers find their caches of compiled code."""


def run(compiler: Compiler, work: Work, send: Callable[[Report], None], turns: Iterable[Turn] = ()) -> None:
    """Do the job; whatever it raises becomes a verdict. Never raises but for a broken pipe to the parent.

    Timed runs are taken in `turns`, each of which blocks until the parent gives it.
    """
    job = _Job(compiler, work, send, turns)
    try:
        job.perform()
    except BaseException as error:
        if job.finished:
            job.send(Report(notes=(f"profiling failed: {describe(error)}",)))
        else:
            verdict, stage = classify(error, job.stage)
            job.send(Report(verdict=verdict, failed_stage=stage, message=describe(error), memory=job.memory()))
    job.send(Report(done=True))


def classify(error: BaseException, stage: Stage) -> tuple[Verdict, Stage]:
    """The verdict that an exception stands for, and the stage it belongs to."""
    if isinstance(error, UnsupportedOp):
        return "unsupported", "lower"
    if isinstance(error, DeviceNotPresent):
        return "unsupported", stage
    text = str(error).lower()
    if isinstance(error, MemoryError) or any(words in text for words in _OUT_OF_MEMORY):
        return "out_of_memory", stage
    return "error", stage


def describe(error: BaseException) -> str:
    """Type and text, cut to a length that a table can bear."""
    text = str(error).strip().encode("utf-8", "replace").decode()
    name = "" if isinstance(error, GraphNetError) else f"{type(error).__name__}: "
    return (name + text)[:MESSAGE_LIMIT] or type(error).__name__


class _Job:
    def __init__(
        self, compiler: Compiler, work: Work, send: Callable[[Report], None], turns: Iterable[Turn]
    ) -> None:  # fmt: skip
        self._compiler, self._work, self.send, self._turns = compiler, work, send, turns
        self.stage: Stage = "load"
        self.finished = False
        self._baseline = procfs.resident_bytes(os.getpid())
        self._peaks: dict[str, int] = {}
        self._problems: list[str] = []
        self._settings: dict[str, Any] = {}
        self._compile_time = CompileTime()
        self._buffer_seed = timing.random_seed()
        self._parts: dict[str, int] = {}
        self._steady = 0
        self._allocator: dict[str, int] = {}

    def perform(self) -> None:
        self._enter("load")
        if self._work.probe:
            self._compiler.configure(self._work.target)
            self.send(Report(verdict="ok"))
            return
        if self._work.before:
            self._compare_states()
            return
        graph, weights = self._load()
        self._enter("compile")
        program = self._compile(graph, weights)
        del weights
        self._enter("run")
        if self._work.oracle:
            self._write_reference(program, graph)
            return
        if self._work.compile_only:
            self._first_run(program, graph)
            self.send(Report(verdict="ok"))
            return
        self._time(program, graph)
        self._enter("check")
        level = self._check(program, graph)
        self.send(self._judge(level))
        self.finished = True
        if self._work.profile and isinstance(program, Profiled):
            self._attempt("profiling", "run", partial(self._profile, program, graph))
        if self._work.code:
            self._attempt("getting the code", "compile", partial(self._write_code, program, self._work.code))

    def _attempt(self, what: str, stage: Stage, action: Callable[[], None]) -> None:
        """Do what can only add to the verdict, with the time limit of a stage; its failure is a note."""
        self.send(Report(done=True, stage=stage))
        try:
            action()
        except Exception as error:
            self.send(Report(notes=(f"{what} failed: {describe(error)}",)))

    def _profile(self, program: Profiled, graph: Graph) -> None:
        kernels = tuple(program.kernels())
        if not all(math.isfinite(kernel.total_us) for kernel in kernels):
            raise ValueError("a kernel's time is not a finite number")
        if not all(kernel.calls >= 1 for kernel in kernels):
            raise ValueError("a kernel that was not called at all")
        self.send(Report(kernels=_with_costs(graph, kernels)))

    def _write_code(self, program: Program, place: CodePlace) -> None:
        if self._work.target.device != "cpu":
            raise UnsupportedOp(f"the code of kernels is read for CPUs only, not for {self._work.target.device}")
        codes = tuple(program.code()) if isinstance(program, Coded) else None
        code_files.write(
            Path(place.folder), codes, job_key=place.job_key, graph=place.graph, compiler=place.compiler
        )  # fmt: skip

    def memory(self) -> Memory:
        """Peaks of the stages so far, the running one included."""
        self._peaks[self.stage] = max(self._peaks.get(self.stage, 0), procfs.peak_bytes())
        peaks = {f"{stage}_peak": self._peaks.get(stage, 0) for stage in ("load", "compile", "run")}
        return msgspec.structs.replace(
            Memory(baseline=self._baseline, steady=self._steady, allocator=self._allocator), **peaks, **self._parts
        )

    def _enter(self, stage: Stage) -> None:
        memory = self.memory() if self._peaks or stage != "load" else None
        procfs.reset_peak()
        self.stage = stage
        self.send(Report(stage=stage, memory=memory))

    def _load(self) -> tuple[Graph, dict[str, np.ndarray]]:
        """The bound graph and its weights; configures the framework before."""
        work = self._work
        settings = self._configure()
        bound = self._bound(work.graph)
        flops, size = _cost(bound)
        self._settings = _plain(settings)
        self.send(Report(settings=self._settings, flops=flops, bytes=size))
        weights = tensors.weights(bound, work.seed)
        for name in weights:  # one at a time: never two copies of all
            weights[name] = timing.aligned_copy(weights[name], timing.buffer_offset(self._buffer_seed, name))
        self._parts["weights"] = sum(stored_bytes(bound.weights[name].dtype, array) for name, array in weights.items())
        return bound, weights

    def _configure(self) -> dict[str, Any]:
        """Settings of the framework; caches of compiled code are where the job says, whatever is in the home folder."""
        work, folder = self._work, Path(self._work.cache or "cache").absolute()
        folder.mkdir(exist_ok=True)
        os.environ |= dict.fromkeys(CACHE_VARIABLES, str(folder))
        if isinstance(self._compiler, Caching) and (self._compiler.cache_by_default or work.compile_only):
            self._compiler.use_cache(folder)
        settings = self._compiler.configure(work.target)
        return {**settings, "compile_cache": cache_policy(self._compiler)}

    def _bound(self, encoded: bytes) -> Graph:
        graph = msgspec.json.decode(encoded, type=Graph)
        if self._work.sidecar:
            graph = sidecar.link(graph, Path(self._work.sidecar))
        return graph.bind(**self._work.dims) if graph.dims or self._work.dims else graph

    def _compare_states(self) -> None:
        """Whether the passes that made the graph kept its function."""
        work = self._work
        self._compiler.configure(work.target)
        states = [self._bound(encoded) for encoded in (*work.before, work.graph)]
        self._enter("check")
        problem = equivalence.first_difference(
            self._compiler, states, work.passes, work.target, oracle.check_seed(work.seed)
        )
        if problem:
            self.send(Report(verdict="wrong", failed_stage="check", message=problem[:MESSAGE_LIMIT]))
        else:
            self.send(Report(verdict="ok"))

    def _compile(self, graph: Graph, weights: Mapping[str, np.ndarray]) -> Program:
        start = _now()
        program = self._compiler.compile(graph, weights, self._work.target)
        spent = _now() - start
        lowering = min(spent, float(getattr(program, "lower_s", 0.0)))
        self._compile_time = CompileTime(lower_s=lowering, compile_s=spent - lowering)
        self._settings |= _plain(getattr(program, "details", {}))
        self.send(Report(compile=self._compile_time, settings=self._settings))
        return program

    def _first_run(self, program: Program, graph: Graph) -> None:
        """Bind and run once."""
        bound = timing.aligned_copies(tensors.inputs(graph, self._work.seed), self._buffer_seed)
        self._parts["inputs"] = sum(stored_bytes(item.dtype, bound[item.name]) for item in graph.inputs)
        program.bind(bound)
        start = _now()
        program.run()
        compile_time = msgspec.structs.replace(self._compile_time, first_run_s=_now() - start)
        self.send(Report(compile=compile_time, quiet=not self._work.compile_only))

    def _time(self, program: Program, graph: Graph) -> None:
        """First run, warm-up and timed runs; what the program did to its inputs goes to `self._problems`."""
        self._first_run(program, graph)
        clock = timing.Clock()
        with timing.no_garbage_collection():
            times, steady = timing.warm_up(program.run, int(self._work.budget_s * 1e9), clock)
            inner = timing.inner_loops(min(times))
            ready = WarmUp(
                times_ns=tuple(times), steady=steady, inner_loops=inner, buffer_seed=self._buffer_seed,
                noise_ns=tuple(timing.noise_loop(clock)),
            )  # fmt: skip
            self.send(Report(warm_up=ready, waiting=True))
            inputs = tensors.inputs(graph, self._work.seed)
            samples = [self._turn(program, inputs, turn, inner, clock) for turn in self._turns]
            del inputs
            self.send(Report(noise_ns=tuple(timing.noise_loop(clock))))
        self._steady = steady_bytes()
        start = _now()
        outputs = program.outputs()
        self.send(Report(notes=_lazy(_now() - start, [time for turn in samples for time in turn.wall_ns])))
        self._parts["outputs"] = sum(
            stored_bytes(graph.type_of(name).dtype, array) for name, array in zip(graph.outputs, outputs, strict=False)
        )
        self._ask_library(program)

    def _turn(
        self, program: Program, inputs: Mapping[str, np.ndarray], turn: Turn, inner: int, clock: timing.Clock
    ) -> Samples:  # fmt: skip
        """A block of timed runs on copies of the inputs at new places."""
        bound = timing.aligned_copies(inputs, turn.seed)
        program.bind(bound)
        samples = timing.take_turn(program.run, turn, inner, clock)
        self._problems += [found for found in _changed(bound, inputs, "the timed runs") if found not in self._problems]
        self.send(Report(samples=samples, waiting=True))
        return samples

    def _ask_library(self, program: Program) -> None:
        """What the library tells of its memory; a library that fails at that has done its job all the same."""
        if not isinstance(program, Accounting):
            return
        try:
            self._allocator = {str(name): int(size) for name, size in program.memory().items()}
        except Exception as error:
            self.send(Report(notes=(f"the library does not tell of its memory: {describe(error)}",)))

    def _check(self, program: Program, graph: Graph) -> int | None:
        """Run once on other inputs than the timed ones, so that outputs kept from those show; returns the level."""
        inputs = tensors.inputs(graph, oracle.check_seed(self._work.seed))
        bound = timing.aligned_copies(inputs, self._buffer_seed)
        program.bind(bound)
        program.run()
        outputs = [np.array(array) for array in program.outputs()]
        self._problems += _changed(bound, inputs, "the checked run")
        names = self._work.output_names or graph.outputs
        if len(outputs) != len(names):
            self._problems.append(f"the program has {len(outputs)} outputs, the graph {len(names)}")
            return None
        errors, notes = [], []
        for name, own, actual, expected in zip(names, graph.outputs, outputs, self._reference(), strict=True):
            declared = graph.type_of(own)
            error, problem = correctness.compare(name, declared, actual, expected)
            errors.append(error)
            self._problems += [problem] if problem else []
            notes += _subnormals(name, declared, expected)
        level = None if self._problems else correctness.worst(errors)  # else a score would take it as correct
        self.send(Report(outputs=tuple(errors), level=level, notes=tuple(notes)))
        return level

    def _judge(self, level: int | None) -> Report:
        problems = list(self._problems)
        if level is None and not problems:
            problems.append("not close to the reference even at t = 0")
        elif level is not None and level > self._work.tolerance:
            problems.append(f"close to the reference at t = {level}, asked is t = {self._work.tolerance}")
        if problems:
            return Report(verdict="wrong", failed_stage="check", message="; ".join(problems)[:MESSAGE_LIMIT])
        return Report(verdict="ok")

    def _reference(self) -> list[np.ndarray]:
        if not self._work.reference:
            raise GraphNetError("there is no reference to check against")
        return oracle.read(Path(self._work.reference))

    def _write_reference(self, program: Program, graph: Graph) -> None:
        program.bind(tensors.inputs(graph, oracle.check_seed(self._work.seed)))
        program.run()
        self._enter("check")
        oracle.write(Path(self._work.reference), program.outputs())
        self.send(Report(verdict="ok"))


def steady_bytes() -> int:
    """Resident memory of this process now, without what was freed and only not given back yet."""
    gc.collect()
    procfs.give_back()
    return procfs.resident_bytes(os.getpid())


def stored_bytes(dtype: str, array: np.ndarray) -> int:
    """Bytes of a tensor of a GraphIR dtype; numpy has a byte for each number of 4 bits. Strings count by pointers."""
    return -(-array.size // 2) if dtype in fills.FOUR_BIT else array.nbytes


def _plain(settings: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Settings as a record can hold them: anything but scalars, and NaN, in words."""
    return {
        str(name): value if isinstance(value, (str, bool, int)) or _is_finite(value) else str(value)
        for name, value in settings.items()
    }


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _cost(graph: Graph) -> tuple[int | None, int | None]:
    """FLOPs and bytes, counted: what the file says of itself may be wrong, and would make any throughput.

    None where the graph has an operator of unknown cost: what is left would be a lower bound, not a count.
    """
    try:
        cost = graph.cost()
    except GraphNetError:
        return None, None
    return (None, None) if cost.unknown else (cost.flops, cost.bytes)


def _with_costs(graph: Graph, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels with FLOPs and bytes of the nodes that each covers alone, where these are known."""
    costs = region_costs(graph, [kernel.nodes for kernel in kernels])
    return tuple(
        msgspec.structs.replace(kernel, flops=cost.flops, bytes=cost.bytes)
        for kernel, cost in zip(kernels, costs, strict=True)
    )


def _changed(bound: Mapping[str, np.ndarray], pristine: Mapping[str, np.ndarray], when: str) -> list[str]:
    """Inputs that the program wrote to, in words."""
    return [f"{when} changed input '{name}'" for name, array in bound.items() if not _same(array, pristine[name])]


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    return np.array_equal(left, right) if left.dtype.hasobject else left.tobytes() == right.tobytes()


def _lazy(fetch_s: float, samples_ns: Sequence[int]) -> tuple[str, ...]:
    """A note when fetching outputs takes so long that the work may be done there, outside the clock."""
    if not samples_ns:
        return ()
    median_s = statistics.median(samples_ns) * 1e-9
    if fetch_s < max(LAZY_SHARE * median_s, LAZY_FLOOR_S):
        return ()
    return (f"fetching the outputs took {fetch_s:.3g} s, a run {median_s:.3g} s: is work put off until then?",)


def _subnormals(name: str, declared: Value, expected: np.ndarray) -> list[str]:
    """A note when much of a float64 reference is too small to be a normal number of the output's dtype."""
    if declared.dtype not in ("float32", "float64") or not expected.size:
        return []
    share = np.count_nonzero((expected != 0) & (np.abs(expected) < np.finfo(declared.dtype).tiny)) / expected.size
    if share <= SUBNORMAL_SHARE:
        return []
    return [f"{share:.0%} of output '{name}' is subnormal numbers: flushed to zero, or slow"]
