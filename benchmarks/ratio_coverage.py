"""How often nominal 95 % intervals of a ratio from few rounds hold the truth, by kind of noise, beside other methods.

`python benchmarks/ratio_coverage.py [--draws 2000] [--methods ours,trimmed-t,...]` draws logarithms of ratios around 0
and prints, for each noise and number of rounds, the coverage in percent and the median width of the interval. `ours` is
`graphnet.analyze.pairs.location_interval`; the others are what it was chosen from. The seed is fixed.

In `contaminated` a fifth of the rounds is off by up to 50 % in either direction; in `load` another process takes half
of the time in bursts of any length, while two programs take turns in random order; in `bimodal` half of the rounds are
off by 35 %; `neighbours` are an autoregressive process with r = 0.3. In `one-sided` the fifth is off in one direction
only: no method can tell that from a slower program, so that its row shows a limit, not an aim.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from graphnet.analyze.pairs import location_interval

SEED = 20261203
ROUNDS = (3, 5, 6, 8, 12, 20, 40)
RESAMPLES = 1000
SIGMA = 0.01
OFF = np.log(1.5)

Interval = tuple[float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--methods", default=",".join(METHODS))
    arguments = parser.parse_args()
    methods = {name: METHODS[name] for name in arguments.methods.split(",")}
    print(f"{'noise':12} {'rounds':>6}" + "".join(f" {name:>16}" for name in methods))
    for noise, draw in NOISES.items():
        for rounds in ROUNDS:
            rows = draw(np.random.default_rng((SEED, rounds)), arguments.draws, rounds)
            cells = []
            for method in methods.values():
                ends = np.asarray([method(row) for row in rows])
                held = (ends[:, 0] <= 0) & (ends[:, 1] >= 0)
                cells.append(f"{held.mean():7.1%} {np.median(ends[:, 1] - ends[:, 0]):8.4f}")
            print(f"{noise:12} {rounds:6}" + "".join(f" {cell:>16}" for cell in cells), flush=True)


# -- noises: (draws, rounds) logarithms of ratios ---------------------------------------------------------------------


def normal(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    return rng.normal(0, SIGMA, (draws, rounds))


def heavy(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    return np.asarray(SIGMA * rng.standard_t(2, (draws, rounds)))


def contaminated(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    hit = rng.random((draws, rounds)) < 0.2
    return np.asarray(normal(rng, draws, rounds) + hit * rng.uniform(-OFF, OFF, (draws, rounds)))


def one_sided(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    hit = rng.random((draws, rounds)) < 0.2
    return np.asarray(normal(rng, draws, rounds) + hit * rng.uniform(0, OFF, (draws, rounds)))


def bimodal(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    return np.asarray(normal(rng, draws, rounds) + rng.choice([-0.3, 0.0, 0.0, 0.3], (draws, rounds)))


def load(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    """Turns of length 1; the load is on for half of a period of 1 to 20; a turn is slow if it is on for most of it."""
    period, phase = rng.uniform(1, 20, (draws, 1)), rng.uniform(0, 1, (draws, 1))
    begin = np.arange(rounds) * rng.uniform(2, 6, (draws, 1))

    def slowed(start: np.ndarray) -> np.ndarray:
        within = start[..., None] + np.linspace(0.05, 0.95, 10)
        on = (within / period[..., None] + phase[..., None]) % 1 < 0.5
        return np.asarray(OFF * (on.mean(-1) > 0.5))

    first, second = slowed(begin), slowed(begin + 1)
    order = rng.choice([-1, 1], (draws, rounds))
    return np.asarray(normal(rng, draws, rounds) + order * (first - second))


def neighbours(rng: np.random.Generator, draws: int, rounds: int) -> np.ndarray:
    steps = normal(rng, draws, rounds + 50)
    for number in range(1, rounds + 50):
        steps[:, number] += 0.3 * steps[:, number - 1]
    return steps[:, 50:]


# -- methods ----------------------------------------------------------------------------------------------------------


def ours(row: np.ndarray) -> Interval:
    return location_interval(tuple(row)) or (np.nan, np.nan)


def median_percentile(row: np.ndarray) -> Interval:
    low, high = np.quantile(np.median(_resampled(row), axis=1), (0.025, 0.975))
    return float(low), float(high)


def median_bca(row: np.ndarray) -> Interval:
    """Corrected for bias; the jackknife of a median says nothing of its acceleration."""
    middle, found = np.median(row), np.median(_resampled(row), axis=1)
    below = ((found < middle).mean() + (found <= middle).mean()) / 2
    bias = stats.norm.ppf(np.clip(below, 0.001, 0.999))
    low, high = np.quantile(found, stats.norm.cdf([2 * bias - 1.96, 2 * bias + 1.96]))
    return float(low), float(high)


def trimmed_bootstrap_t(row: np.ndarray) -> Interval:
    """Symmetric, of the 20 % trimmed mean (Wilcox, Introduction to Robust Estimation, section 4.4)."""
    middle, error = _trimmed(row)
    means, errors = _trimmed(_resampled(row))
    reach = float(np.quantile(np.abs(means - middle) / np.maximum(errors, 1e-12), 0.95)) * float(error)
    return float(middle) - reach, float(middle) + reach


def trimmed_t(row: np.ndarray) -> Interval:
    """Tukey and McLaughlin's interval of the 20 % trimmed mean."""
    middle, error = _trimmed(row)
    reach = stats.t.ppf(0.975, len(row) - 2 * int(0.2 * len(row)) - 1) * float(error)
    return float(middle) - reach, float(middle) + reach


def hodges_lehmann(row: np.ndarray) -> Interval:
    """Walsh averages at the ranks of the normal approximation to Wilcoxon's signed-rank test."""
    count = len(row)
    ours, theirs = np.triu_indices(count)
    averages = np.sort((row[ours] + row[theirs]) / 2)
    error = np.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    rank = max(0, int(count * (count + 1) / 4 - 1.96 * error))
    return float(averages[rank]), float(averages[-rank - 1])


def _resampled(row: np.ndarray) -> np.ndarray:
    return row[np.random.default_rng(0).integers(0, len(row), (RESAMPLES, len(row)))]


def _trimmed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trimmed means over the last axis, and their standard errors by the winsorised variance."""
    count, cut = rows.shape[-1], int(0.2 * rows.shape[-1])
    ordered = np.sort(rows, axis=-1)
    winsorised = np.clip(ordered, ordered[..., [cut]], ordered[..., [count - cut - 1]])
    error = winsorised.std(axis=-1, ddof=1) / ((1 - 2 * cut / count) * np.sqrt(count))
    return ordered[..., cut : count - cut].mean(axis=-1), error


NOISES: Mapping[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal": normal, "heavy": heavy, "contaminated": contaminated, "load": load, "bimodal": bimodal,
    "neighbours": neighbours, "one-sided": one_sided,
}  # fmt: skip
METHODS: Mapping[str, Callable[[np.ndarray], Interval]] = {
    "ours": ours, "percentile": median_percentile, "bca": median_bca, "trimmed-boot-t": trimmed_bootstrap_t,
    "trimmed-t": trimmed_t, "hodges-lehmann": hodges_lehmann,
}  # fmt: skip

if __name__ == "__main__":
    main()
