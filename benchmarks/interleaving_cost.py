"""What taking turns costs: wall time of evaluating graphs in races of several compilers, over that of one by one.

    python -m benchmarks.interleaving_cost --rounds 3

Both ways have the same jobs, and the same number of samples: 100 for each program that the budget allows so many. A way
is all that an evaluation does (start, compile, warm up, timed runs, check); which one comes first is random. Printed is
the ratio of wall times for each graph, their geometric mean over graphs and rounds, and its 95 % interval.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from pathlib import Path

import msgspec
import numpy as np
from scipy import stats

from graphnet.evaluate import plan, rounds, runner

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmark"
GRAPHS = ("matmul/square_512", "vision/resnet18", "vision/mobilenetv3", "recommender/dcn_v2", "transformer/distilbert")
COMPILERS = ("torch", "onnxruntime", "jax")
_numbers = itertools.count()


def seconds(graph: str, budget_s: float, *, together: bool) -> tuple[float, int]:
    """Wall time, and how many samples there are."""
    jobs = plan.plan([BENCHMARK / f"{graph}.json"], COMPILERS, budget_s=budget_s, profile=False)
    name = f"cost {next(_numbers)}"
    jobs = [
        msgspec.structs.replace(job, race=name if together else f"{name} {number}") for number, job in enumerate(jobs)
    ]
    start = time.perf_counter()
    results = list(runner.run(jobs))
    spent = time.perf_counter() - start
    assert all(result.timing is not None for result in results), [result.message for result in results]
    return spent, sum(len(result.timing.samples_ns) for result in results if result.timing)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of timed runs per program")
    options = parser.parse_args()
    rounds.MOST_ROUNDS = rounds.ROUNDS  # neither way goes on for a better ratio: that is more samples, not their cost
    logs = []
    for graph in GRAPHS:
        seconds(graph, options.budget, together=True)  # reference outputs, and files into memory
        for _ in range(options.rounds):
            ways = random.sample([True, False], 2)
            spent = {way: seconds(graph, options.budget, together=way) for way in ways}
            logs.append(math.log(spent[True][0] / spent[False][0]))
            print(
                f"{graph}: {spent[True][0]:.1f} s and {spent[False][0]:.1f} s, {spent[True][1]} and {spent[False][1]}"
            )
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    low, mean, high = (math.exp(float(np.mean(logs)) + shift) for shift in (-half, 0, half))
    print(f"in turns over one by one: {mean:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
