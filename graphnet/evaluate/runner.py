"""The parent: runs jobs in isolated children, race by race, and yields exactly one Result for each."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate import cpus, environment, oracle, race
from graphnet.evaluate.plan import Job, Limits, graph_passes
from graphnet.evaluate.prepare import Preparation, Prepared, code_place, encoded, sizes, work_of
from graphnet.evaluate.protocol import Work
from graphnet.evaluate.records import Result, Verdict
from graphnet.evaluate.server import Server, ServerDied, ServerRefused
from graphnet.evaluate.servers import Servers
from graphnet.evaluate.store import Store
from graphnet.evaluate.supervise import Outcome, watch
from graphnet.evaluate.warm import compile_again


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

    Jobs of one race that follow each other are timed in turns, and kept together when all of them are over.

    `resume` goes on with the store's newest run: jobs that it has are not run again, their stored result is yielded.
    Without it a new run begins. A job that is listed twice is run once. Closing the iterator, or an exception such as
    KeyboardInterrupt, kills the running children and leaves the store with the results that were yielded.
    Raises UsageError (not Linux; more threads than CPUs; resumed with other settings), StoreError (disk full).
    """
    if sys.platform != "linux":
        raise UsageError("evaluation needs Linux: children are forked and watched through /proc")
    cpus.require_cpus(max((job.target.threads for job in jobs), default=1))
    session = _Session(jobs, store, limits or Limits(), resume, progress)
    try:
        yield from session.results()
    finally:
        session.close()


class _Entry(msgspec.Struct, frozen=True):
    """A job of the run, with its place in the list of jobs."""

    index: int
    job: Job
    prepared: Prepared


class _Racer(msgspec.Struct, frozen=True):
    """A job that can be run."""

    entry: _Entry
    server: Server
    work: Work
    no_reference: str
    """Why there is nothing to check it against; `""` if there is."""

    def runner(self, folders: ExitStack) -> race.Runner:
        """For a race; a job with a warm compilation has a folder for its caches, which is among `folders`."""
        if not self.entry.job.warm:
            return race.Runner(self.server, self.work)
        folder = folders.enter_context(self.server.cache_folder())
        return race.Runner(self.server, msgspec.structs.replace(self.work, cache=folder))

    def explained(self, outcome: Outcome) -> Outcome:
        """The outcome with what the child cannot know of its cause."""
        if self.no_reference and outcome.stage == "check":
            outcome = msgspec.structs.replace(outcome, message=f"no reference outputs: {self.no_reference}")
        threads = self.server.ready.threads
        if outcome.verdict in ("timeout", "crashed") and threads > 1:
            note = f"the fork server has {threads} threads: a lock that one held at the fork may be the cause"
            outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, note))
        return outcome


class _Session:
    def __init__(
        self, jobs: Sequence[Job], store: Store | None, limits: Limits, resume: bool,
        progress: Callable[[Progress], None] | None,
    ) -> None:  # fmt: skip
        self._jobs, self._store, self._limits, self._progress = jobs, store, limits, progress
        self._environment = environment.detect()
        self._run_id = _run_id(store, jobs, resume, self._environment.key)
        self._servers = Servers(limits.preload_s)
        self._preparation = Preparation()
        self._no_reference: dict[Path, str] = {}
        self._compared: dict[Any, str] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._cache = self._cache_folder()
        self._done: dict[str, Result] = {}
        self._began = time.monotonic()
        self._measured = 0

    def results(self) -> Iterator[Result]:
        if self._store:
            self._store.add_environment(self._environment)
        for listed in _races(self._jobs):
            entries = [_Entry(index, job, self._preparation.prepare(job)) for index, job in listed]
            known = {entry.prepared.key: self._known(entry.prepared.key) for entry in entries}
            new = {entry.prepared.key: entry for entry in reversed(entries) if known[entry.prepared.key] is None}
            results = self._measure(list(reversed(new.values())))
            if self._store and results:
                self._store.add(*results.values())
            self._done |= results
            self._measured += len(results)
            for entry in entries:
                key = entry.prepared.key
                if new.get(key) is not entry:
                    self._tell(entry)
                result = self._done.get(key) or known[key]
                assert result is not None
                self._tell(entry, result, resumed=new.get(key) is not entry)
                yield result

    def close(self) -> None:
        """End all servers."""
        self._servers.close()
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

    def _measure(self, entries: Sequence[_Entry]) -> dict[str, Result]:
        """One race; results by job key."""
        results: dict[str, Result] = {}
        racers: list[_Racer] = []
        for entry in entries:
            found = self._racer(entry, [racer.entry for racer in racers])
            if isinstance(found, _Racer):
                racers.append(found)
            else:
                self._tell(entry)
                results[entry.prepared.key] = self._result(entry, found, {}, datetime.now(UTC))
        started: dict[int, datetime] = {}

        def starting(number: int) -> None:
            started.setdefault(number, datetime.now(UTC))
            self._tell(racers[number].entry)

        with ExitStack() as folders:
            runners = [racer.runner(folders) for racer in racers]
            outcomes = race.run(runners, self._limits, starting)
            for number, (racer, runner, outcome) in enumerate(zip(racers, runners, outcomes, strict=True)):
                if racer.entry.job.warm:
                    outcome = compile_again(runner.server, runner.work, outcome, self._limits)
                results[racer.entry.prepared.key] = self._result(
                    racer.entry, racer.explained(outcome), racer.server.ready.versions, started[number]
                )
        return results

    def _racer(self, entry: _Entry, beside: Sequence[_Entry]) -> _Racer | Outcome:
        """What a job needs to take part in a race beside others; or its outcome, where it cannot."""
        job, prepared = entry.job, entry.prepared
        problem = prepared.error or self._difference(job, prepared)
        if problem:
            return _failed("error", problem)
        reference, no_reference = self._reference(job, prepared)
        compiler = compilers.split(job.compiler)[0]
        mine = compiler, job.python
        number = sum((compilers.split(other.job.compiler)[0], other.job.python) == mine for other in beside)
        try:
            server = self._servers.get(compiler, job.python, number)
        except (ServerDied, ServerRefused) as error:
            return _failed("error" if isinstance(error, ServerRefused) else "crashed", str(error))
        work = work_of(job, prepared.states[-1], prepared.original, reference)
        return _Racer(entry, server, msgspec.structs.replace(work, code=code_place(job, prepared)), no_reference)

    def _result(self, entry: _Entry, outcome: Outcome, versions: dict[str, str], started: datetime) -> Result:
        job, graph = entry.job, entry.prepared.original
        return Result(
            run_id=self._run_id, job_key=entry.prepared.key, graph_id=graph.graph_id, graph=graph.name,
            subset=graph.domain, structure_hash=entry.prepared.structure_hash, compiler=job.compiler,
            passes=job.passes, target=job.target, dims=sizes(graph, job.dims), seed=job.seed, verdict=outcome.verdict,
            stage=outcome.stage, message=outcome.message, notes=outcome.notes, memory=outcome.memory,
            versions=versions, environment=self._environment.key,
            started=started.isoformat(timespec="milliseconds"), wall_s=outcome.wall_s, **outcome.fields,
        )  # fmt: skip

    def _reference(self, job: Job, prepared: Prepared) -> tuple[str, str]:
        """File of the reference outputs, made if need be; or why there is none."""
        original = prepared.original
        file = self._cache / oracle.file_name(prepared.digest, sizes(original, job.dims), job.seed)
        if file in self._no_reference:
            return "", self._no_reference[file]
        if oracle.touch(file):
            return str(file), ""
        try:
            server = self._servers.get(oracle.COMPILER)
        except (ServerDied, ServerRefused) as error:
            return "", str(error)
        work = msgspec.structs.replace(
            work_of(job, original, original, str(file)), oracle=True,
            target=Target(threads=job.target.threads),  # on the CPU, whatever the job's device and options
        )  # fmt: skip
        outcome = watch(server, work, self._limits)
        if outcome.verdict != "ok":
            problem = f"{outcome.verdict} in {outcome.stage}: {outcome.message}"
            self._no_reference[file] = problem  # it would take as long for the graph's next compiler
            return "", problem
        oracle.evict(file.parent, keep=file)
        return str(file), ""

    def _difference(self, job: Job, prepared: Prepared) -> str:
        """What is wrong with the passes that rewrote the graph, "" if each kept its function; told once per graph."""
        if len(prepared.states) < 2:
            return ""
        passes = graph_passes(job.passes)
        key = (prepared.digest, passes, tuple(sorted(sizes(prepared.original, job.dims).items())), job.seed)
        if key not in self._compared:
            self._compared[key] = self._compare(job, prepared, passes)
        return self._compared[key]

    def _compare(self, job: Job, prepared: Prepared, passes: tuple[str, ...]) -> str:
        try:
            server = self._servers.get(oracle.COMPILER)
        except (ServerDied, ServerRefused) as error:
            return f"passes {', '.join(passes)} cannot be checked: {error}"
        work = msgspec.structs.replace(
            work_of(job, prepared.states[-1], prepared.original, ""), target=Target(threads=job.target.threads),
            before=tuple(map(encoded, prepared.states[:-1])), passes=passes,
        )  # fmt: skip
        outcome = watch(server, work, self._limits)
        if outcome.verdict in ("ok", "wrong"):
            return outcome.message
        return f"passes {', '.join(passes)} cannot be checked: {outcome.verdict} in {outcome.stage}: {outcome.message}"

    def _tell(self, entry: _Entry, result: Result | None = None, resumed: bool = False) -> None:
        if self._progress is None:
            return
        elapsed, remaining = time.monotonic() - self._began, None
        if self._measured:
            remaining = elapsed / self._measured * (len(self._jobs) - entry.index - (result is not None))
        self._progress(
            Progress(
                index=entry.index, total=len(self._jobs), graph=entry.prepared.original.name,
                compiler=entry.job.compiler, result=result, resumed=resumed, elapsed_s=elapsed, remaining_s=remaining,
            )
        )  # fmt: skip


def _races(jobs: Sequence[Job]) -> Iterator[list[tuple[int, Job]]]:
    """Jobs of one race that follow each other, with their numbers; a job without a race alone."""
    for _, group in groupby(enumerate(jobs), lambda item: item[1].race or item[0]):
        yield list(group)


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
