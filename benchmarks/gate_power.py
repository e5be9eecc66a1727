"""What the regression gate finds of real slow-downs, and how often it finds one that is not there.

    python -m benchmarks.gate_power measure --budget 1 --output gate_power.json     # half an hour on the core set
    python -m benchmarks.gate_power simulate gate_power.json --threshold 0.95 --runs 2000

`measure`: a race for each graph on ONNX Runtime: some processes of the plain program, and some with a real delay
(`benchmarks.delayed`), which is another share of the run time in each turn. So each pair of processes gives log ratios
of rounds at each level; two plain ones give level 0.

`simulate`: runs of the gate over all graphs, from those. Ours is `--live` where every pair is a suspect, which is the
case on a machine whose runs, one after the other, differ by more than the threshold: a race draws a pair of processes
and some of its rounds, with replacement, and takes their median; races go on as `graphnet.analyze.live` has it. A level
counts in one graph at a time, all others being as they were. A run gives a false alarm when any graph fails though none
is slower.

Beside it, on the same samples of a plain process and of another one:

* asv: Mann-Whitney's p < 0.002, and the ratio of medians beyond the factor (`compare` has 1.1 by default, and 1 over
  the threshold is shown too);
* pytest-benchmark's `--benchmark-compare-fail=mean:5%`: the mean is larger by more than that.

Their samples took turns, so that drift, which they would suffer from, is not in them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from scipy import stats

from benchmarks.delayed import LEVELS, level_of
from graphnet.analyze.live import FALSE_ALARMS, FEWEST_TO_CLEAR, LOOKS, MOST_RACES, verdict
from graphnet.analyze.pairs import block_medians
from graphnet.dataset import catalog
from graphnet.evaluate import plan, runner
from graphnet.evaluate.records import Result

PLAIN, DELAYED = "onnxruntime", "benchmarks.delayed:Delayed"
ALL_LEVELS = (0.0, *LEVELS)
ASV_P = 0.002


class Process(msgspec.Struct, frozen=True):
    """One process of a race."""

    medians: dict[int, float]
    """Of blocks that count, seconds, by round."""
    levels: dict[int, float]
    """By round."""
    samples: dict[str, list[int]]
    """Nanoseconds, by level."""


class Measured(msgspec.Struct, frozen=True):
    """A graph."""

    graph: str
    plain: list[Process]
    delayed: list[Process]


def measure(budget_s: float, plain: int, delayed: int) -> Iterator[Measured]:
    """Race by race."""
    for file in catalog.graph_files(catalog.benchmark_folder()):
        names = [PLAIN] * plain + [DELAYED] * delayed
        jobs = [job for name in names for job in plan.plan([file], [name], budget_s=budget_s, profile=False)]
        jobs = [msgspec.structs.replace(job, race=file.stem, copy=number) for number, job in enumerate(jobs)]
        results = list(runner.run(jobs))
        problems = [result.message for result in results if result.verdict not in ("ok", "unstable")]
        if problems:
            print(file.stem, "left out:", problems[0], flush=True)
            continue
        found = Measured(
            file.stem,
            [_process(result, delayed=False) for result in results[:plain]],
            [_process(result, delayed=True) for result in results[plain:]],
        )
        print(file.stem, [len(process.medians) for process in (*found.plain, *found.delayed)], flush=True)
        yield found


def _process(result: Result, *, delayed: bool) -> Process:
    timing = result.timing
    assert timing is not None
    levels: dict[int, float] = {}
    samples: dict[str, list[int]] = {}
    at = 0
    for number, block in enumerate(timing.blocks):
        level = level_of(number) if delayed else 0.0
        if not block.disturbed:
            levels[block.round] = level
            samples.setdefault(f"{level}", []).extend(timing.samples_ns[at : at + block.samples])
            at += block.samples
    return Process(block_medians(timing), levels, samples)


def logs_of(base: Process, other: Process, level: float) -> np.ndarray:
    """Log ratios of performance in the common rounds at a level."""
    common = [number for number in base.medians.keys() & other.medians.keys() if other.levels[number] == level]
    return np.asarray([math.log(base.medians[number] / other.medians[number]) for number in sorted(common)])


def pairs_at(measured: Measured, level: float) -> list[tuple[Process, Process]]:
    """Pairs of processes, of which the second has the level."""
    if level:
        return [(base, other) for base in measured.plain for other in measured.delayed]
    return [(base, other) for base in measured.plain for other in measured.plain if base is not other]


def races(measured: Measured, level: float, count: int, random: np.random.Generator) -> np.ndarray:
    """Log ratios of so many simulated gate runs, with all races that each could have: shape (count, MOST_RACES)."""
    pools = [logs for pair in pairs_at(measured, level) if len(logs := logs_of(*pair, level))]
    if not pools:
        return np.empty((0, MOST_RACES))
    drawn = []
    for chosen in random.integers(0, len(pools), count * MOST_RACES):
        logs = pools[chosen]
        turns = max(len(logs), min(50, len(logs) * (len(LEVELS) if level else 1)))
        drawn.append(np.median(logs[random.integers(0, len(logs), turns)]))
    return np.asarray(drawn).reshape(count, MOST_RACES)


def ours(logs: np.ndarray, threshold: float, family: int) -> np.ndarray:
    """Whether each gate run fails the graph."""
    level = FALSE_ALARMS / (family * LOOKS)
    return np.asarray([_fails(list(run), threshold, level) for run in logs], dtype=bool)


def _fails(logs: Sequence[float], threshold: float, level: float) -> bool:
    for count in range(FEWEST_TO_CLEAR, MOST_RACES + 1):
        found = verdict(logs[:count], threshold, level)
        if found is not None:
            return found
    return False


def asv(before: Sequence[int], after: Sequence[int], factor: float) -> bool:
    """The rule of `asv compare`."""
    differ = stats.mannwhitneyu(before, after).pvalue < ASV_P
    return bool(differ and np.median(after) > factor * np.median(before))


def mean_5_percent(before: Sequence[int], after: Sequence[int]) -> bool:
    """The rule of pytest-benchmark."""
    return bool(np.mean(after) > 1.05 * np.mean(before))


def simulate(everything: Sequence[Measured], threshold: float, runs: int) -> dict[str, dict[str, float]]:
    """By rule: share of gate runs with a false alarm, then the share of (graph, run) that fail at each level."""
    table: dict[str, dict[str, float]] = {}
    for level in ALL_LEVELS:
        failed = _failures(everything, level, threshold, runs)
        for rule, by_graph in failed.items():
            row = table.setdefault(rule, {})
            if not level:
                row["gate runs with a false alarm"] = float(np.any(by_graph, axis=0).mean())
            row[f"{level:.0%}"] = float(np.mean(by_graph))
            row[f"graphs found in 9 of 10 runs at {level:.0%}"] = float((by_graph.mean(axis=1) >= 0.9).mean())
    return table


def _failures(everything: Sequence[Measured], level: float, threshold: float, runs: int) -> Mapping[str, np.ndarray]:
    """By rule: whether a graph fails in a run, shape (graphs, runs)."""
    found: dict[str, list[np.ndarray]] = {}
    for number, measured in enumerate(everything):
        random = np.random.default_rng((number, round(1000 * level)))
        logs = races(measured, level, runs, random)
        if not len(logs):
            continue
        found.setdefault("graphnet.ci --live", []).append(ours(logs, threshold, len(everything)))
        pairs = pairs_at(measured, level)
        sides = [(base.samples["0.0"], other.samples.get(f"{level}", [])) for base, other in pairs]
        sides = [side for side in sides if side[1]]
        chosen = random.integers(0, len(sides), runs)
        rules = {
            "asv, factor 1.1": [asv(*side, 1.1) for side in sides],
            f"asv, factor 1/{threshold:g}": [asv(*side, 1 / threshold) for side in sides],
            "pytest-benchmark mean:5%": [mean_5_percent(*side) for side in sides],
        }
        for name, told in rules.items():
            found.setdefault(name, []).append(np.asarray(told)[chosen])
    return {name: np.asarray(rows) for name, rows in found.items()}


def spreads(everything: Sequence[Measured]) -> np.ndarray:
    """Of each graph: standard deviation of the log ratios of pairs of plain processes."""
    values = [
        [float(np.median(logs)) for pair in pairs_at(measured, 0.0) if len(logs := logs_of(*pair, 0.0))]
        for measured in everything
    ]
    return np.asarray([math.sqrt(np.mean(np.square(logs))) for logs in values if logs])


def main() -> None:
    """Measure, or simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--budget", type=float, default=1.0, help="seconds of timed runs per process")
    measuring.add_argument("--plain", type=int, default=3, help="processes")
    measuring.add_argument("--delayed", type=int, default=2, help="processes")
    measuring.add_argument("--output", type=Path, default=Path("gate_power.json"))
    simulating = commands.add_parser("simulate")
    simulating.add_argument("measured", type=Path)
    simulating.add_argument("--threshold", type=float, default=0.95)
    simulating.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    if options.command == "measure":
        found = []
        for measured in measure(options.budget, options.plain, options.delayed):
            found.append(measured)
            options.output.write_bytes(msgspec.json.encode(found))
        return
    everything = msgspec.json.decode(options.measured.read_bytes(), type=list[Measured])
    quartiles = np.quantile(spreads(everything), (0.25, 0.5, 0.75, 0.9, 1))
    print(f"{len(everything)} graphs; pairs of processes differ by", [f"{value:.2%}" for value in quartiles])
    print(json.dumps(simulate(everything, options.threshold, options.runs), indent=1))


if __name__ == "__main__":
    main()
