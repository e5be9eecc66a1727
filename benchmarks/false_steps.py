"""How often `graphnet history` sees a step where there is none, and how often it finds one that is there.

    python -m benchmarks.false_steps --series 4000

Series of logarithms are drawn: normal noise, noise with heavy tails (Student's t, 3 degrees of freedom), normal noise
with every tenth run 1.5 times as slow; without known errors or floor, so that the noise is guessed from the series.
Printed, by length: share of series with a step and with a possible step; then, with a step in the middle of so many
times the noise, the share in which exactly that one is found (to a run), and whose 95 % interval holds the true ratio.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from graphnet.analyze.steps import fit

NOISE = 0.01
LENGTHS = (4, 6, 8, 10, 15, 20, 50, 100)
Draw = Callable[[np.random.Generator, int], np.ndarray]


def outliers(draw: np.random.Generator, count: int) -> np.ndarray:
    """Normal noise, and runs that something else disturbed."""
    return draw.normal(size=count) * NOISE + np.where(draw.random(count) < 0.1, np.log(1.5), 0.0)


KINDS: dict[str, Draw] = {
    "normal": lambda draw, count: draw.normal(size=count) * NOISE,
    "heavy tails": lambda draw, count: draw.standard_t(3, size=count) * NOISE,
    "outliers": outliers,
}


def false_steps(kind: str, count: int, series: int, seed: int = 0) -> tuple[float, float]:
    """Shares of `series` series of `count` points that show a step, and a possible step."""
    draw = np.random.default_rng(seed)
    found = [fit(np.exp(KINDS[kind](draw, count)).tolist(), [0.0] * count) for _ in range(series)]
    return (
        sum(bool(item.steps) for item in found) / series,
        sum(item.possible is not None for item in found) / series,
    )  # fmt: skip


def found_steps(count: int, size: float, series: int, seed: int = 0) -> tuple[float, float]:
    """Share of series in which a step of `size` times the noise in the middle is found, and of those intervals that
    hold its ratio.
    """
    draw, middle, hits, covered = np.random.default_rng(seed), count // 2, 0, 0
    for _ in range(series):
        logs = draw.normal(size=count) * NOISE
        logs[middle:] += size * NOISE
        steps = fit(np.exp(logs).tolist(), [0.0] * count).steps
        if len(steps) == 1 and abs(steps[0].index - middle) <= 1:
            hits += 1
            covered += steps[0].low <= np.exp(size * NOISE) <= steps[0].high
    return hits / series, covered / hits if hits else float("nan")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="False and found steps of simulated series.")
    parser.add_argument("--series", type=int, default=4000, help="Simulated series for each figure.")
    series = parser.parse_args().series
    for kind in KINDS:
        for count in LENGTHS:
            sure, possible = false_steps(kind, count, series)
            print(f"{kind}, {count} runs: a step in {sure:.2%}, a possible one in {possible:.2%}")
    for count in LENGTHS:
        for size in (3, 5, 10):
            found, covered = found_steps(count, size, series // 4)
            print(f"a step of {size} x noise amid {count} runs: found {found:.0%}, interval holds it {covered:.0%}")


if __name__ == "__main__":
    main()
