"""The parent: runs jobs one at a time in isolated children and yields exactly one Result for each."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate import code_files, environment, oracle
from graphnet.evaluate.plan import Job, Limits, graph_digest, graph_passes, job_key, sidecar_of
from graphnet.evaluate.protocol import CodePlace, Work
from graphnet.evaluate.records import Result, Verdict
from graphnet.evaluate.server import Server, ServerDied, ServerRefused
from graphnet.evaluate.store import Store
from graphnet.evaluate.supervise import Outcome, watch
from graphnet.evaluate.warm import with_warm
from graphnet.evaluate.worker import describe
from graphnet.ir import fileio, finalize, sidecar
from graphnet.ir.graph import Graph
from graphnet.ir.names import name_nodes


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Told before and after each job."""

    index: int
    """Of the job, from 0."""
    total: int
    graph: str
    compiler: str
    result: Result | None = None
    """None before the job; afterwards its result."""
    resumed: bool = False
    """The result was in the store already."""
    elapsed_s: float = 0.0
    remaining_s: float | None = None
    """Estimate from the mean of the jobs that were run so far; None before the first is done."""


def run(
    jobs: Sequence[Job],
    store: Store | None = None,
    *,
    limits: Limits | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[Result]:
    """Do the jobs in order and yield one Result for each, kept in `store` before it is yielded.

    `resume` goes on with the store's newest run: jobs that it has are not run again, their stored result is yielded.
    Without it a new run begins. A job that is listed twice is run once. Closing the iterator, or an exception such as
    KeyboardInterrupt, kills the running child and leaves the store with the results that were yielded.
    Raises UsageError (not Linux; resumed with other settings), StoreError (disk full).
    """
    if sys.platform != "linux":
        raise UsageError("evaluation needs Linux: children are forked and watched through /proc")
    session = _Session(jobs, store, limits or Limits(), resume, progress)
    try:
        yield from session.results()
    finally:
        session.close()


class _Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job's graph, read and rewritten; or why that failed."""

    original: Graph
    states: tuple[Graph, ...]
    """Before the first pass that rewrites it and after each; empty when that failed."""
    digest: str
    """Of the original graph."""
    key: str
    structure_hash: str = ""
    error: str = ""


class _Session:
    def __init__(
        self, jobs: Sequence[Job], store: Store | None, limits: Limits, resume: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:  # fmt: skip
        self._jobs, self._store, self._limits, self._progress = jobs, store, limits, progress
        self._environment = environment.detect()
        self._run_id = _run_id(store, jobs, resume, self._environment.key)
        self._servers: dict[str, Server] = {}
        self._unusable: dict[str, ServerDied | ServerRefused] = {}
        self._no_reference: dict[Path, str] = {}
        self._compared: dict[Any, str] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._cache = self._cache_folder()
        self._done: dict[str, Result] = {}
        self._loaded: tuple[Graph | str, Graph, str, str] | None = None
        self._began = time.monotonic()
        self._measured = 0

    def results(self) -> Iterator[Result]:
        if self._store:
            self._store.add_environment(self._environment)
        for index, job in enumerate(self._jobs):
            prepared = self._prepare(job)
            self._tell(index, job, prepared)
            result = self._known(prepared.key)
            resumed = result is not None
            if result is None:
                result = self._result(job, prepared)
                self._measured += 1
                if self._store:
                    self._store.add(result)
                self._done[prepared.key] = result
            self._tell(index, job, prepared, result, resumed)
            yield result

    def close(self) -> None:
        """End all servers."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        if self._temporary:
            self._temporary.cleanup()

    def _cache_folder(self) -> Path:
        """Where reference outputs are kept: for this run only if the cache cannot be used."""
        try:
            return oracle.cache_folder()
        except OSError:
            self._temporary = tempfile.TemporaryDirectory(prefix="graphnet-reference-")
            return Path(self._temporary.name)

    def _known(self, key: str) -> Result | None:
        return self._done.get(key) or (self._store.find(self._run_id, key) if self._store else None)

    def _prepare(self, job: Job) -> _Prepared:
        try:
            graph, digest, structure = self._load(job.graph)
        except Exception as error:
            name = job.graph if isinstance(job.graph, str) else job.graph.name
            missing = Graph(name=Path(name).name.split(".")[0])
            return _Prepared(original=missing, states=(), digest="", key=job_key(job, name, ""), error=describe(error))
        key = job_key(job, f"{graph.graph_id} {graph.name}", digest)
        try:
            states = _rewritten(graph, job.passes)
        except Exception as error:
            text = f"passes {', '.join(job.passes)}: {describe(error)}"
            return _Prepared(
                original=graph, states=(), digest=digest, key=key, structure_hash=structure, error=text
            )  # fmt: skip
        return _Prepared(original=graph, states=states, digest=digest, key=key, structure_hash=structure)

    def _load(self, source: Graph | str) -> tuple[Graph, str, str]:
        """Graph, digest and structure hash; the last one is kept, since its next compiler comes next."""
        if self._loaded is None or self._loaded[0] is not source:
            if isinstance(source, Graph):
                graph = source
            else:
                graph = Graph.from_onnx(source) if source.endswith(".onnx") else fileio.load(source)
            finalize.check_types(graph)
            self._loaded = source, graph, graph_digest(graph), graph.stored_hash or graph.structure_hash()
        return self._loaded[1:]

    def _result(self, job: Job, prepared: _Prepared) -> Result:
        started = datetime.now(UTC)
        problem = prepared.error or self._difference(job, prepared)
        if problem:
            outcome = _failed("error", problem)
            versions: dict[str, str] = {}
        else:
            outcome, versions = self._run(job, prepared)
        graph = prepared.original
        return Result(
            run_id=self._run_id, job_key=prepared.key, graph_id=graph.graph_id, graph=graph.name, subset=graph.domain,
            structure_hash=prepared.structure_hash, compiler=job.compiler, passes=job.passes, target=job.target,
            dims=_sizes(graph, job.dims), seed=job.seed, verdict=outcome.verdict, stage=outcome.stage,
            message=outcome.message, notes=outcome.notes, memory=outcome.memory, versions=versions,
            environment=self._environment.key, started=started.isoformat(timespec="milliseconds"),
            wall_s=outcome.wall_s, **outcome.fields,
        )  # fmt: skip

    def _run(self, job: Job, prepared: _Prepared) -> tuple[Outcome, dict[str, str]]:
        reference, problem = self._reference(job, prepared)
        try:
            server = self._server(compilers.split(job.compiler)[0])
        except (ServerDied, ServerRefused) as error:
            return _failed("error" if isinstance(error, ServerRefused) else "crashed", str(error)), {}
        work = msgspec.structs.replace(
            _work(job, prepared.states[-1], prepared.original, reference), code=_code_place(job, prepared)
        )
        outcome = with_warm(server, work, self._limits) if job.warm else watch(server, work, self._limits)
        if problem and outcome.stage == "check":
            outcome = msgspec.structs.replace(outcome, message=f"no reference outputs: {problem}")
        if outcome.verdict in ("timeout", "crashed") and server.ready.threads > 1:
            note = (
                f"the fork server has {server.ready.threads} threads: a lock that one held at the fork may be the cause"
            )
            outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, note))
        return outcome, server.ready.versions

    def _reference(self, job: Job, prepared: _Prepared) -> tuple[str, str]:
        """File of the reference outputs, made if need be; or why there is none."""
        original = prepared.original
        file = self._cache / oracle.file_name(prepared.digest, _sizes(original, job.dims), job.seed)
        if file in self._no_reference:
            return "", self._no_reference[file]
        if oracle.touch(file):
            return str(file), ""
        try:
            server = self._server(oracle.COMPILER)
        except (ServerDied, ServerRefused) as error:
            return "", str(error)
        work = msgspec.structs.replace(
            _work(job, original, original, str(file)), oracle=True,
            target=Target(threads=job.target.threads),  # on the CPU, whatever the job's device and options
        )  # fmt: skip
        outcome = watch(server, work, self._limits)
        if outcome.verdict != "ok":
            problem = f"{outcome.verdict} in {outcome.stage}: {outcome.message}"
            self._no_reference[file] = problem  # it would take as long for the graph's next compiler
            return "", problem
        oracle.evict(file.parent, keep=file)
        return str(file), ""

    def _difference(self, job: Job, prepared: _Prepared) -> str:
        """What is wrong with the passes that rewrote the graph, "" if each kept its function; told once per graph."""
        if len(prepared.states) < 2:
            return ""
        passes = graph_passes(job.passes)
        key = (prepared.digest, passes, tuple(sorted(_sizes(prepared.original, job.dims).items())), job.seed)
        if key not in self._compared:
            self._compared[key] = self._compare(job, prepared, passes)
        return self._compared[key]

    def _compare(self, job: Job, prepared: _Prepared, passes: tuple[str, ...]) -> str:
        try:
            server = self._server(oracle.COMPILER)
        except (ServerDied, ServerRefused) as error:
            return f"passes {', '.join(passes)} cannot be checked: {error}"
        work = msgspec.structs.replace(
            _work(job, prepared.states[-1], prepared.original, ""), target=Target(threads=job.target.threads),
            before=tuple(map(_encoded, prepared.states[:-1])), passes=passes,
        )  # fmt: skip
        outcome = watch(server, work, self._limits)
        if outcome.verdict in ("ok", "wrong"):
            return outcome.message
        return f"passes {', '.join(passes)} cannot be checked: {outcome.verdict} in {outcome.stage}: {outcome.message}"

    def _server(self, compiler: str) -> Server:
        """The running server of a compiler, started if need be. Raises ServerDied, ServerRefused."""
        server = self._servers.get(compiler)
        if server is not None and server.alive:
            return server
        if server is not None:
            self._servers.pop(compiler).close()
        if compiler in self._unusable:
            raise self._unusable[compiler]
        try:
            server = Server.start(compiler, self._limits.preload_s)
        except (ServerDied, ServerRefused) as error:
            self._unusable[compiler] = error  # an import that hangs would hang for each of its jobs
            raise
        self._servers[compiler] = server
        return server

    def _tell(
        self, index: int, job: Job, prepared: _Prepared, result: Result | None = None, resumed: bool = False
    ) -> None:  # fmt: skip
        if self._progress is None:
            return
        elapsed, remaining = time.monotonic() - self._began, None
        if self._measured:
            remaining = elapsed / self._measured * (len(self._jobs) - index - (result is not None))
        self._progress(
            Progress(
                index=index, total=len(self._jobs), graph=prepared.original.name, compiler=job.compiler, result=result,
                resumed=resumed, elapsed_s=elapsed, remaining_s=remaining,
            )
        )  # fmt: skip


def _sizes(graph: Graph, asked: Mapping[str, int]) -> dict[str, int]:
    """Size of every symbol that can be bound; what was asked for stays, even where it cannot be bound."""
    return {**{name: dim.default for name, dim in graph.dims.items() if not dim.data_dependent}, **asked}


def _rewritten(graph: Graph, passes: Sequence[str]) -> tuple[Graph, ...]:
    graph, names = name_nodes(graph), graph_passes(passes)
    if not names:
        return (graph,)
    from graphnet.rewrite.passes import states  # a rewrite renews metadata, which imports much

    return tuple(states(graph, names))


def _work(job: Job, graph: Graph, original: Graph, reference: str) -> Work:
    return Work(
        graph=_encoded(graph), sidecar=sidecar_of(graph), target=job.target, dims=job.dims,
        seed=job.seed, budget_s=job.budget_s, tolerance=job.tolerance, profile=job.profile, reference=reference,
        output_names=original.outputs,
    )  # fmt: skip


def _code_place(job: Job, prepared: _Prepared) -> CodePlace | None:
    if not job.code:
        return None
    name = prepared.original.name
    folder = code_files.folder_of(Path(job.code).absolute(), job.compiler, name, prepared.key)
    return CodePlace(folder=str(folder), job_key=prepared.key, graph=name, compiler=job.compiler)


def _encoded(graph: Graph) -> bytes:
    return msgspec.json.encode(sidecar.unlink(graph))


def _failed(verdict: Verdict, message: str) -> Outcome:
    return Outcome(verdict=verdict, stage="load", message=message, notes=(), fields={}, memory=None, wall_s=0.0)


def _run_id(store: Store | None, jobs: Sequence[Job], resume: bool, machine: str) -> str:
    """The run that results belong to: the newest in the store when resuming, else a new one. Raises UsageError."""
    settings: dict[str, Any] = {
        "budget_s": sorted({j.budget_s for j in jobs}),
        "tolerance": sorted({j.tolerance for j in jobs}),
        "machine": machine,
        "packages": dict(environment.packages()),
    }
    if any(job.warm for job in jobs):
        settings["warm"] = "compilation too"
    if store is None:
        return f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    last = store.last_run() if resume else None
    if last is None:
        return store.begin_run(settings)
    run_id, before = last
    for name, value in settings.items():
        if before.get(name) != value:
            raise UsageError(
                f"run {run_id} was made with {name} {before.get(name, 'none')}, not {value}:"
                " resume with that, or begin a new run"
            )
    return run_id
