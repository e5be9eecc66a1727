"""The Python interface: evaluate a compiler, read results back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from graphnet.analyze.frame import frame
from graphnet.compilers import Target
from graphnet.evaluate import plan, runner
from graphnet.evaluate.plan import Limits
from graphnet.evaluate.records import Result
from graphnet.evaluate.runner import Progress
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Graph
from graphnet.report import files

Graphs = Iterable[Graph | str | os.PathLike[str]]


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
    limits: Limits | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Result]:
    """Run every graph on every compiler, one job at a time; one Result per pair, whatever happens.

    With `output`, records go to `<output>/results.db` as they are made, and the files of each compiler are written at
    the end (also when interrupted). `budget` is in seconds of timed runs per job. Raises UsageError, StoreError.
    """
    jobs = plan.plan(
        graphs, compilers, target=target, dims=dims, seed=seed, passes=passes, budget_s=budget, tolerance=tolerance,
        profile=profile,
    )  # fmt: skip
    if output is None:
        return list(runner.run(jobs, limits=limits, progress=progress))
    results: list[Result] = []
    with Store(output) as store:
        try:
            results.extend(runner.run(jobs, store, limits=limits, resume=resume, progress=progress))
        finally:
            files.write(store.results(), Path(output))
    return results


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
    `time_low`, `time_high`; `compile_time` (seconds, lowering to first run); `throughput` (FLOP/s); `peak_memory`
    (bytes); `verdict`, `stage`, `level` (tolerance level reached), `message`. Raises UsageError.
    """
    spec = Target(device=device, spec=target, threads=threads, options=dict(options or {}))
    results = evaluate(
        graphs, [compiler], target=spec, dims=dims, seed=seed, passes=passes, budget=budget, limits=limits,
        output=output, profile=output is not None,
    )  # fmt: skip
    return frame(results)


def load_results(where: str | os.PathLike[str]) -> list[Result]:
    """The newest result of every job in a results folder (or database URL). Raises StoreError."""
    with Store(where, create=False) as store:
        return store.results()
