"""Results as pandas tables: one row per graph, or per (graph, compiler)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from graphnet.analyze import memory, roofline
from graphnet.analyze.groups import key
from graphnet.analyze.pairs import time_quotient
from graphnet.analyze.score import ACCURACY, COMPILE_FAILURE, RUN_FAILURE, Sample
from graphnet.analyze.stats import median_seconds, summarize
from graphnet.evaluate.records import Environment, Result

CORRECT_AT = -3
"""Tolerance level at which `evaluate` calls a result `ok`."""


def latency(result: Result) -> float | None:
    """Median seconds of one inference; None unless the verdict is `ok`."""
    return median_seconds(result.timing.samples_ns) if result.timing and result.verdict == "ok" else None


def covered_share(result: Result, only_named: bool = False) -> float | None:
    """Sum of the kernels' times over the median of the timed runs; None where there are no kernels.

    `only_named` counts those that name the GraphIR nodes which they cover.
    """
    if not result.timing or not result.kernels:
        return None
    total = sum(kernel.total_us for kernel in result.kernels if kernel.nodes or not only_named)
    return total * 1e-6 / median_seconds(result.timing.samples_ns)


def row(result: Result, environments: Iterable[Environment] = ()) -> dict[str, object]:
    """The columns of one result. Times in seconds, memory in bytes, throughput in FLOP/s; shares of measured peaks."""
    shares = roofline.of_result(result, roofline.peaks_of(result, environments))
    timing = summarize(result.timing) if result.timing else None
    seconds = latency(result)
    return {
        "graph_id": result.graph_id or result.graph,
        "graph": result.graph,
        "subset": result.subset,
        "compiler": result.compiler,
        "verdict": result.verdict,
        "stage": result.stage or "",
        "end_to_end_time": seconds,
        "time_low": timing.low if seconds is not None and timing else None,
        "time_high": timing.high if seconds is not None and timing else None,
        "time_min": timing.min if seconds is not None and timing else None,
        "time_p90": timing.p90 if seconds is not None and timing else None,
        "time_p99": timing.p99 if seconds is not None and timing else None,
        "runs": timing.count if timing else 0,
        "compile_time": result.compile.total_s if result.compile else None,
        "compile_warm": result.warm_compile.total_s if result.warm_compile else None,
        "throughput": result.flops / seconds if result.flops is not None and seconds else None,
        "flops_utilization": shares.flops_utilization,
        "bandwidth_utilization": shares.bandwidth_utilization,
        "roofline_efficiency": shares.roofline_efficiency,
        "peak_memory": memory.peak(result.memory) if result.memory else None,
        "steady_memory": memory.steady(result),
        "workspace_memory": memory.workspace(result),
        "level": result.level,
        "message": result.message,
    }


def frame(results: Iterable[Result], environments: Sequence[Environment] = ()) -> pd.DataFrame:
    """One row per graph, indexed by graph id (by name for a graph without one), in the order of `results`.

    `environments` have the peaks that utilizations are shares of; these are NaN without.
    """
    rows = pd.DataFrame([row(result, environments) for result in results], columns=_columns())
    numbers = ["end_to_end_time", "time_low", "time_high", "time_min", "time_p90", "time_p99", "compile_time"]
    numbers += ["compile_warm", "throughput", "flops_utilization", "bandwidth_utilization", "roofline_efficiency"]
    numbers += ["peak_memory", "steady_memory", "workspace_memory"]
    rows[numbers] = rows[numbers].astype("float64")
    rows["level"] = rows["level"].astype("Int64")
    return rows.set_index("graph_id")


def samples(baseline: Sequence[Result], results: Sequence[Result]) -> list[Sample]:
    """Score samples of one compiler's `results` against those of the `baseline`, over the graphs that both were asked
    to run under the same settings.

    Speedups are of turns in the same race where there was one. A graph on which the baseline itself failed has no
    speedup and is left out, for every compiler alike.
    """
    base = {key(r): r for r in baseline if latency(r) is not None}
    return [_sample(base[key(r)], r) for r in results if key(r) in base]


def _sample(base: Result, result: Result) -> Sample:
    if result.verdict in ("ok", "wrong", "unstable") and result.timing:
        level = result.level  # None where it is wrong otherwise than by numbers
        return time_quotient(result, base), level, ACCURACY if level is None else None
    if result.verdict == "wrong":
        return None, None, ACCURACY
    return None, None, RUN_FAILURE if result.stage in ("run", "check") else COMPILE_FAILURE


def _columns() -> list[str]:
    return [
        "graph_id", "graph", "subset", "compiler", "verdict", "stage", "end_to_end_time", "time_low", "time_high",
        "time_min", "time_p90", "time_p99", "runs", "compile_time", "compile_warm", "throughput", "flops_utilization",
        "bandwidth_utilization", "roofline_efficiency", "peak_memory", "steady_memory", "workspace_memory", "level",
        "message",
    ]  # fmt: skip
