"""The Python interface: evaluate a compiler, read results back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from graphnet.analyze import noise, roofline
from graphnet.analyze.compare import Comparison
from graphnet.analyze.compare import compare as compare_sets
from graphnet.analyze.differences import ResultsOf
from graphnet.analyze.frame import frame
from graphnet.analyze.history import History
from graphnet.analyze.history import history as history_of
from graphnet.compilers import Target
from graphnet.dataset import catalog
from graphnet.errors import GraphNetError, UsageError
from graphnet.evaluate import machine, peaks, plan, runner
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.records import Environment, Floor, Peaks, Result
from graphnet.evaluate.runner import Progress
from graphnet.evaluate.store import Store, load_runs, load_set
from graphnet.ir.graph import Graph
from graphnet.report import files

GraphSource = Graph | str | os.PathLike[str]
Graphs = Iterable[GraphSource]


def evaluate(
    graphs: Graphs,
    compilers: Sequence[str],
    *,
    target: Target | None = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    passes: Sequence[str] = ("default",),
    budget: float = plan.DEFAULT_BUDGET_S,
    tolerance: int = plan.DEFAULT_TOLERANCE,
    profile: bool = True,
    code: bool = False,
    warm: bool = False,
    limits: Limits | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    measure_peaks: bool = False,
    told: Callable[[str], object] = lambda _: None,
) -> list[Result]:
    """Run every graph on every compiler, one job at a time; one Result per pair, whatever happens.

    With `output`, records go to `<output>/results.db` as they are made, and the files of each compiler are written at
    the end (also when interrupted). `budget` is in seconds of timed runs per job. With `warm` each graph is compiled a
    second time in a new process, with the caches of compiled code that the first one left.
    With `code` the code of each job's kernels goes to `<output>/<compiler>/code/`, after all that is timed.
    Of `dims` each graph takes the symbols that it has. Peaks and noise floors of this machine that were measured before
    are stored with its environment; `measure_peaks` measures peaks first where there are none for this device and
    thread count (about half a minute, once; `told` hears of it). Raises UsageError, StoreError.
    """
    if code and (output is None or "://" in os.fspath(output)):
        raise UsageError("code is written to files: give a results folder as output")
    jobs = [
        job
        for number, (graph, sizes) in enumerate(_with_sizes(graphs, dims or {}), 1)
        for job in plan.plan(
            [graph], compilers, target=target, dims=sizes, seed=seed, passes=passes, budget_s=budget,
            tolerance=tolerance, profile=profile, warm=warm, race=f"{number}.",
            code=os.fspath(output) if code and output is not None else "",
        )
    ]  # fmt: skip
    if measure_peaks:
        spec = target or Target()
        peaks.ensure(spec.device, spec.threads, told)
    if output is None:
        return list(runner.run(jobs, limits=limits, progress=progress))
    results: list[Result] = []
    with Store(output) as store:
        store.add_environment(machine.known_here())
        try:
            results.extend(runner.run(jobs, store, limits=limits, resume=resume, progress=progress))
        except BaseException:
            with suppress(GraphNetError):  # what stopped the run is what must be told
                files.write(store.results(), Path(output), store.environments())
            raise
        files.write(store.results(), Path(output), store.environments())
    return results


def measure_noise(
    graphs: Graphs,
    compilers: Sequence[str],
    *,
    threads: int = 1,
    device: str = "cpu",
    budget: float = 2.0,
    limits: Limits | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Floor, list[tuple[Result, Result]]]:
    """The noise floor of this machine, kept for it, and the pairs that it is from.

    Every program is compared with a second process of its own, once taking turns and once one after the other; those
    that are not `ok` or `unstable` are left out. `budget` is in seconds of timed runs. Raises UsageError (too few
    pairs), OSError (the floor cannot be kept).
    """
    jobs = [
        job
        for number, graph in enumerate(graphs, 1)
        for compiler in compilers
        for job in plan.against_itself(
            graph, compiler, Target(device=device, threads=threads), budget, f"{number}.{compiler}"
        )
    ]
    results = list(runner.run(jobs, limits=limits, progress=progress))
    pairs = [
        pair
        for first, second, alone in zip(results[::3], results[1::3], results[2::3], strict=True)
        for pair in ((first, second), (first, alone))
        if all(result.verdict in ("ok", "unstable") for result in pair)
    ]
    floor = noise.floor_from(pairs, datetime.now(UTC).isoformat(timespec="seconds"))
    machine.remember_floor(floor)
    return floor, pairs


def evaluate_compiler(
    compiler: str,
    graphs: Graphs,
    passes: Sequence[str] = ("default",),
    *,
    device: str = "cpu",
    target: str = "",
    threads: int = 1,
    options: Mapping[str, str | int | float | bool] | None = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    budget: float = plan.DEFAULT_BUDGET_S,
    limits: Limits | None = None,
    output: str | os.PathLike[str] | None = None,
) -> pd.DataFrame:
    """Evaluate one compiler: a table with one row per graph, indexed by graph id.

    Columns: `end_to_end_time` (median seconds of one inference; NaN unless the verdict is `ok`) with its 95 % interval
    `time_low`, `time_high`; `compile_time` (seconds, lowering to first run, caches empty) and `compile_warm` (NaN
    unless asked for); `throughput` (FLOP/s); `flops_utilization`, `bandwidth_utilization`, `roofline_efficiency`
    (shares of the machine's measured peaks, NaN where `graphnet roofline` never measured them); `peak_memory`,
    `steady_memory`, `workspace_memory` (bytes); `verdict`, `stage`, `level` (tolerance level reached), `message`.
    Raises UsageError.
    """
    spec = Target(device=device, spec=target, threads=threads, options=dict(options or {}))
    results = evaluate(
        graphs, [compiler], target=spec, dims=dims, seed=seed, passes=passes, budget=budget, limits=limits,
        output=output, profile=output is not None,
    )  # fmt: skip
    return frame(results, [machine.known_here()])


def load_environments(where: str | os.PathLike[str]) -> list[Environment]:
    """The machines that a results folder (or database URL) is from, with their measured peaks and noise floors.

    What was measured on this machine after the results were made counts too. Raises StoreError.
    """
    with Store(where, create=False) as store:
        return machine.with_known_here(store.environments())


def load_results(where: str | os.PathLike[str]) -> list[Result]:
    """The newest result of every job in a results folder (or database URL). Raises StoreError."""
    with Store(where, create=False) as store:
        return store.results()


def rooflines(
    where: str | os.PathLike[str] | None, device: str = "cpu", threads: int = 1
) -> list[tuple[Environment, Peaks, list[Result]]]:
    """Of each machine in a results folder its peaks with the results that they are for; else this machine's peaks.

    Peaks of this machine that were measured after the results were made count too. Raises StoreError, UsageError (no
    machine has peaks of that device and thread count).
    """
    machines = [machine.known_here()] if where is None else load_environments(where)
    results = [] if where is None else load_results(where)
    found = []
    for known in machines:
        for item in known.peaks:
            if (item.device, item.threads) == (device, threads):
                found.append((known, item, [r for r in results if roofline.peaks_of(r, [known]) is item]))
    if not found:
        raise UsageError(
            f"no peaks of {device} with {threads} thread(s) for the machines of {where or 'these results'};"
            f" on each of them run: graphnet roofline --threads {threads}"
        )
    return found


def compare(places: Sequence[str | os.PathLike[str]]) -> Comparison:
    """Sets of results side by side, each with the first: folders, `.db` or `.json` files, database URLs.

    Raises UsageError for fewer than two, StoreError.
    """
    sets = []
    for where in places:
        found = load_set(where)
        machines = tuple(machine.with_known_here(found.environments))
        sets.append(ResultsOf(label=os.fspath(where), results=found.results, environments=machines))
    return compare_sets(sets)


def history(
    places: Sequence[str | os.PathLike[str]], *, graphs: Sequence[str] = (), compilers: Sequence[str] = ()
) -> History:
    """Every run in results folders, `.db` or `.json` files, database URLs, or folders of such, as series with steps.

    Raises UsageError where no series is long enough, StoreError.
    """
    environments: dict[str, Environment] = {}

    def results() -> Iterator[Result]:
        for where in places:
            for found in load_runs(where):
                for environment in found.environments:
                    if environment.floors or environment.key not in environments:
                        environments[environment.key] = environment
                yield from found.results

    return history_of(results(), environments, graphs=graphs, compilers=compilers)


def _with_sizes(graphs: Graphs, dims: Mapping[str, int]) -> list[tuple[GraphSource, dict[str, int]]]:
    """Each graph with those of `dims` that it has. Raises UsageError for a symbol that no graph has.

    A graph that cannot be read keeps them all: its record will say what is wrong with it.
    """
    if not dims:
        return [(graph, {}) for graph in graphs]
    known = [(graph, _symbols(graph)) for graph in graphs]
    if all(symbols is not None for _, symbols in known):
        found = {symbol for _, symbols in known for symbol in symbols or ()}
        for name in dims:
            if name not in found:
                raise UsageError(
                    f"no given graph has a dimension '{name}'; theirs are: {', '.join(sorted(found)) or 'none'}"
                    " (`graphnet info GRAPH` shows those of a graph)"
                )
    return [
        (graph, {name: size for name, size in dims.items() if symbols is None or name in symbols})
        for graph, symbols in known
    ]


def _symbols(source: GraphSource) -> set[str] | None:
    """Names of the dimensions that can be given a size; None when the graph cannot be read."""
    try:
        graph = source if isinstance(source, Graph) else catalog.load_graph(source)
    except (GraphNetError, OSError):
        return None
    return {name for name, dim in graph.dims.items() if not dim.data_dependent}
