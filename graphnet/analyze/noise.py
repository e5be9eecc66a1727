"""The noise floor of a machine, from comparisons of programs with themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from graphnet.analyze.pairs import NORMAL_95, Ratio, time_ratio
from graphnet.errors import UsageError
from graphnet.evaluate.records import Floor, Result

FEWEST_PAIRS = 2
LEAST_VARIANCE = 1e-18
"""Of a logarithm: blocks that are all alike are a clock that is too coarse, not a measurement without error."""


def floor_from(pairs: Sequence[tuple[Result, Result]], measured: str = "") -> Floor:
    """The floor from pairs of results of the same job; `measured` is a time in UTC, ISO 8601.

    Pairs that took turns give `spread` and what goes with it, pairs of different races `sequential`. Pairs without an
    interval do not count. Raises UsageError: fewer than 2 pairs of either kind, or several devices or thread counts.
    """
    if not pairs:
        raise UsageError("a noise floor takes pairs of results that are right; there is none")
    places = {(result.target.device, result.target.threads) for pair in pairs for result in pair}
    if len(places) != 1:
        shown = ", ".join(f"{device} with {threads} thread(s)" for device, threads in sorted(places))
        raise UsageError(f"a noise floor is of one device and thread count, not of: {shown}")
    ratios = [ratio for base, other in pairs if (ratio := time_ratio(base, other)) and ratio.low and ratio.high]
    turns, apart = [ratio for ratio in ratios if ratio.rounds], [ratio for ratio in ratios if not ratio.rounds]
    for kind, found in (("took turns", turns), ("ran one after the other", apart)):
        if len(found) < FEWEST_PAIRS:
            raise UsageError(f"a noise floor takes at least {FEWEST_PAIRS} pairs that {kind}, not {len(found)}")
    ((device, threads),) = places
    away = np.abs(np.asarray([ratio.value for ratio in turns]) - 1)
    return Floor(
        device=device, threads=threads, pairs=len(turns), spread=_spread(turns), sequential=_spread(apart),
        median=float(np.median(away)), p95=float(np.quantile(away, 0.95)),
        sequential_p95=float(np.quantile(np.abs(np.asarray([ratio.value for ratio in apart]) - 1), 0.95)),
        covered=sum(not ratio.resolved for ratio in turns) / len(turns),
        compilers=tuple(dict.fromkeys(result.compiler for pair in pairs for result in pair)), measured=measured,
    )  # fmt: skip


def between(logs: Sequence[float], variances: Sequence[float]) -> float:
    """Standard deviation of true effects around 0, given estimates with the variance of the error of each.

    Paule and Mandel's estimator (1982; DerSimonian and Kacker 2007): the tau for which the sum over the k estimates of
    y^2 / (v + tau^2) is k. The mean is not estimated, so that no degree of freedom goes to it: two processes of the
    same program differ in neither direction. Never negative.
    """
    squares = np.asarray(logs, dtype=np.float64) ** 2
    errors = np.maximum(np.asarray(variances, dtype=np.float64), LEAST_VARIANCE)

    def excess(tau_squared: float) -> float:
        return float((squares / (errors + tau_squared)).sum()) - len(squares)

    if excess(0.0) <= 0:
        return 0.0
    return math.sqrt(optimize.brentq(excess, 0.0, float(squares.max()), xtol=1e-16))


def _spread(ratios: Sequence[Ratio]) -> float:
    """Between processes, beyond the error that the interval of each ratio tells of."""
    logs = [math.log(ratio.value) for ratio in ratios]
    halves = [math.log(ratio.high / ratio.low) / 2 for ratio in ratios if ratio.low and ratio.high]
    return between(logs, [(half / NORMAL_95) ** 2 for half in halves])
