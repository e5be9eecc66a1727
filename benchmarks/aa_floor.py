"""Programs against themselves while another process loads one CPU half of the time: how often is the truth, 1, told?

    python -m benchmarks.aa_floor --comparisons 200 --budget 1 --output aa_floor.json

Each comparison has four processes of one program: two that take turns (ours), then two one after the other. From the
latter, with the very same samples, come the hand-written loop (ratio of the means of 100 runs) and the method of
PaddlePaddle's GraphNet (3 warm-up runs, 5 trials, their median). Printed per method: median and 95th percentile of
|ratio - 1|, the lowest and the highest ratio, and for ours the share of 95 % intervals that hold 1: as the blocks alone
have it, and widened by a noise floor that is measured first, on pairs of its own, under the same load.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import cycle, islice, product
from pathlib import Path

import msgspec
import numpy as np

from graphnet.analyze.noise import floor_from
from graphnet.analyze.pairs import Ratio, time_ratio
from graphnet.compilers import Target
from graphnet.evaluate import plan, runner
from graphnet.evaluate.records import Floor, Result

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmark"
GRAPHS = (
    "matmul/square_512", "vision/resnet18", "vision/deit_tiny", "vision/mobilenetv3", "graph/gcn", "graph/graphsage",
    "science/deeponet", "recommender/wide_and_deep", "recommender/dcn_v2", "transformer/distilbert",
)  # fmt: skip
COMPILERS = ("torch", "onnxruntime", "jax")
OK = ("ok", "unstable")
PEER_TRIALS = 5


class Comparison(msgspec.Struct, frozen=True):
    """Ratios of one program to itself by three methods."""

    graph: str
    compiler: str
    ours: Ratio
    naive: float
    peer: float
    pair: tuple[Result, Result]
    apart: tuple[Result, Result]


@contextmanager
def half_load(period_s: float) -> Iterator[None]:
    """Another process that computes for half of each period, on whatever CPU it gets."""
    process = multiprocessing.get_context("spawn").Process(target=_compute, args=(period_s,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _compute(period_s: float) -> None:
    while True:
        end = time.monotonic() + period_s / 2
        while time.monotonic() < end:
            pass
        time.sleep(period_s / 2)


def jobs_of(graph: str, compiler: str, number: int, budget_s: float) -> list[plan.Job]:
    """Two copies in a race, two alone; numbered so that each comparison measures anew."""
    file = BENCHMARK / f"{graph}.json"
    (job,) = plan.plan([file], [compiler], target=Target(), budget_s=budget_s, profile=False)
    races = (f"{number}", f"{number}", f"{number}.a", f"{number}.b")
    return [msgspec.structs.replace(job, race=race, copy=4 * number + place) for place, race in enumerate(races)]


def compare(results: Sequence[Result]) -> Comparison | None:
    """One comparison from its four results; None where one of them failed."""
    first, second, alone, again = results
    ours = time_ratio(first, second)
    if ours is None or any(result.verdict not in OK or result.timing is None for result in results):
        return None
    samples = [result.timing.samples_ns for result in (alone, again) if result.timing]
    naive = statistics.fmean(samples[1]) / statistics.fmean(samples[0])
    peer = statistics.median(samples[1][:PEER_TRIALS]) / statistics.median(samples[0][:PEER_TRIALS])
    return Comparison(
        first.graph, first.compiler, ours, naive, peer, (first, second), (alone, again)
    )  # fmt: skip


def measure(count: int, budget_s: float, told: str) -> list[Comparison]:
    """So many comparisons, graphs and compilers in turn, in random order."""
    programs = list(product(GRAPHS, COMPILERS))
    random.Random(told).shuffle(programs)
    chosen = list(islice(cycle(programs), count))
    offset = random.Random(told).randrange(1, 1000) * 1000
    jobs = [job for number, program in enumerate(chosen, offset) for job in jobs_of(*program, number, budget_s)]
    found: list[Comparison] = []
    waiting: list[Result] = []
    for result in runner.run(jobs):
        waiting.append(result)
        if len(waiting) == 4:
            comparison = compare(waiting)
            waiting = []
            if comparison:
                found.append(comparison)
                print(
                    told, len(found), comparison.graph, comparison.compiler, f"{comparison.ours.value:.4f}", flush=True
                )
    return found


def summary(comparisons: Sequence[Comparison], floor: Floor) -> dict[str, dict[str, float]]:
    """By method: median and 95th percentile of |ratio - 1|, extremes, coverage."""
    by_method = {
        "in turns": [comparison.ours.value for comparison in comparisons],
        "mean of 100 runs, one after the other": [comparison.naive for comparison in comparisons],
        "3 warm-ups, median of 5, one after the other": [comparison.peer for comparison in comparisons],
    }
    table = {}
    for name, ratios in by_method.items():
        away = np.abs(np.asarray(ratios) - 1)
        table[name] = {
            "median |ratio - 1|": float(np.median(away)), "p95": float(np.quantile(away, 0.95)),
            "lowest": min(ratios), "highest": max(ratios),
        }  # fmt: skip
    widened = [time_ratio(*comparison.pair, floor) for comparison in comparisons]
    table["in turns"] |= {
        "intervals of blocks that hold 1": _held([comparison.ours for comparison in comparisons]),
        "intervals with the floor that hold 1": _held(widened),
    }
    return table


def _held(ratios: Sequence[Ratio | None]) -> float:
    return sum(ratio is not None and not ratio.resolved for ratio in ratios) / len(ratios)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--floor-pairs", type=int, default=30, help="comparisons of their own that the floor is from")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of timed runs per process")
    parser.add_argument("--period", type=float, default=1.0, help="seconds; half of each is load")
    parser.add_argument("--quiet-machine", action="store_true", help="no load")
    parser.add_argument("--output", type=Path, default=Path("aa_floor.json"))
    options = parser.parse_args()
    with nullcontext() if options.quiet_machine else half_load(options.period):
        calibration = measure(options.floor_pairs, options.budget, "floor")
        pairs = [pair for comparison in calibration for pair in (comparison.pair, comparison.apart)]
        floor = floor_from(pairs)
        comparisons = measure(options.comparisons, options.budget, "comparison")
    table = summary(comparisons, floor)
    for name, figures in table.items():
        print(name, {label: round(value, 4) for label, value in figures.items()})
    kept = [
        [one.graph, one.compiler, one.ours.value, one.ours.low, one.ours.high, one.naive, one.peer]
        for one in comparisons
    ]
    content = {"summary": table, "floor": msgspec.to_builtins(floor), "comparisons": kept}
    options.output.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
