"""The same graph on the baseline build and on the current build of a compiler, timed in turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from graphnet import compilers
from graphnet.dataset import catalog
from graphnet.errors import GraphNetError, UsageError
from graphnet.evaluate import runner
from graphnet.evaluate.plan import Job, Limits, plan
from graphnet.evaluate.records import Result

Run = Callable[[Sequence[Job]], Iterable[Result]]


class Builds(msgspec.Struct, frozen=True, kw_only=True):
    """Where the two builds of a compiler are."""

    baseline_python: str = ""
    """Interpreter of the environment with the baseline build; `""` is ours."""
    current_python: str = ""
    baseline_compilers: Mapping[str, str] = {}
    """Compiler (or variant) that stands for the baseline build, by the current one; `""` is for all others."""


def builds(baseline_python: str, current_python: str, baseline_compilers: Sequence[str]) -> Builds:
    """From the command line; a compiler is `NAME`, or `CURRENT=BASELINE`. Raises UsageError."""
    if not baseline_python and not baseline_compilers:
        raise UsageError(
            "--live needs the baseline build: --baseline-python, the interpreter of an environment that has it,"
            " or --baseline-compiler, a compiler or variant that stands for it"
        )
    for python in filter(None, (baseline_python, current_python)):
        if not Path(python).is_file():
            raise UsageError(f"no interpreter at {python}; give the path of a Python, such as base/bin/python")
    by_current: dict[str, str] = {}
    for text in baseline_compilers:
        current, equals, baseline = text.partition("=")
        current, baseline = (current, baseline) if equals else ("", text)
        for name in filter(None, (current, baseline or " ")):
            compilers.check_name(name)
        if by_current.setdefault(current, baseline) != baseline:
            raise UsageError(f"--baseline-compiler: two for {current or 'all compilers'}; one as CURRENT=BASELINE each")
    return Builds(baseline_python=baseline_python, current_python=current_python, baseline_compilers=by_current)


class Live:
    """Measures pairs; keeps what it found out about the places of graphs."""

    def __init__(self, made: Builds, places: Sequence[str] = (), limits: Limits | None = None, run: Run | None = None):
        """`places`: files, folders or subsets with the graphs; the collection by itself."""
        self._builds, self._places = made, places
        self._run = run or (lambda jobs: runner.run(jobs, limits=limits))
        self._numbers = itertools.count(1)
        self._files: list[Path] | None = None

    def __call__(self, current: Result, budget_s: float) -> tuple[Result, Result]:
        """Results of the baseline build and of the current one. Raises GraphNetError where they cannot be made."""
        jobs = self.jobs(current, self.graph(current), budget_s)
        results = tuple(self._run(jobs))
        if len(results) != len(jobs):
            raise UsageError(f"{len(results)} results of {len(jobs)} jobs")
        return results[0], results[1]

    def jobs(self, current: Result, graph: str, budget_s: float) -> tuple[Job, Job]:
        """Two jobs of one race that differ in the build alone. Raises UsageError."""
        race = f"gate {next(self._numbers)} {current.graph} {current.compiler}"
        after = Job(
            graph=graph, compiler=current.compiler, target=current.target, dims=current.dims, seed=current.seed,
            passes=current.passes, budget_s=budget_s, profile=False, race=race, copy=1,
            python=self._builds.current_python,
        )  # fmt: skip
        return self._baseline(current, after), after

    def _baseline(self, current: Result, after: Job) -> Job:
        known = self._builds.baseline_compilers
        name, python = known.get(current.compiler, known.get("", "")), self._builds.baseline_python
        if not name and not python:
            raise UsageError(
                f"no baseline build of {current.compiler}: give --baseline-compiler {current.compiler}=NAME"
            )
        if not name or name == current.compiler:
            return msgspec.structs.replace(after, copy=0, python=python)
        (job,) = plan([after.graph], [name], target=_target(current, name), passes=current.passes)
        return msgspec.structs.replace(after, compiler=name, target=job.target, copy=0, python=python)

    def graph(self, current: Result) -> str:
        """File of the graph: of the same name or id, and of the same structure. Raises UsageError."""
        unlike = ""
        for file in self._candidates(current.graph):
            try:
                graph = catalog.load_graph(file)
            except (GraphNetError, OSError):
                continue  # another graph's damage is no matter of this one
            if current.graph_id == graph.graph_id and current.graph == graph.name:
                if (graph.stored_hash or graph.structure_hash()) == current.structure_hash:
                    return str(file)
                unlike = f"; {file} has another structure"
        raise UsageError(
            f"no file of graph {current.graph_id or current.graph} in"
            f" {', '.join(map(str, self._places)) or 'the collection'}{unlike}: name its place by --graph"
        )

    def _candidates(self, name: str) -> Iterator[Path]:
        """Files of that name first: to read all of a collection takes long."""
        if self._files is None:
            places = self._places or (catalog.benchmark_folder(),)
            self._files = [file for place in places for file in catalog.graph_files(place)]
        named = [file for file in self._files if file.name.split(".json")[0].removesuffix(".onnx") == name]
        yield from named
        yield from (file for file in self._files if file not in named)


def _target(current: Result, baseline: str) -> compilers.Target:
    """The target of the current build without what is of its variant; of another compiler's options none are kept."""
    base, variant = compilers.split(current.compiler)
    if compilers.split(baseline)[0] != base:
        return msgspec.structs.replace(current.target, options={}, passes=(), spec="")
    own = compilers.variants(base)[variant] if variant else {}
    options = {name: value for name, value in current.target.options.items() if own.get(name) != value}
    return msgspec.structs.replace(current.target, options=options)
