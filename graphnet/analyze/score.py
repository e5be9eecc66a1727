"""Speedup score S(t) and error-aware score ES(t) (arXiv 2510.24035)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from graphnet.analyze.stats import geometric_mean
from graphnet.errors import UsageError

Sample = tuple[float | None, int | None, int | None]
"""(speedup over the baseline or None, smallest t at which correct or None, error code or None)."""

ACCURACY, RUN_FAILURE, COMPILE_FAILURE = 1, 2, 3


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """S(t), ES(t) and their components at one tolerance level."""

    t: int
    alpha: float
    """Geometric mean speedup of the correct samples (1 if none)."""
    beta: float
    """Geometric mean speedup of the correct samples slower than the baseline (1 if none)."""
    lam: float
    """Share of correct samples."""
    eta: float
    """Share of the correct samples that are slower than the baseline (0 if none is correct)."""
    gamma: float
    """Mean factor of an erroneous sample in ES: `b`, or towards 1 as t forgives error codes."""
    S: float
    ES: float


def scores(samples: Sequence[Sample], t: int, p: float = 0.1, b: float = 0.1) -> Scores:
    """Aggregate scores of `samples` at tolerance level `t`.

    `S = alpha^lam * beta^(lam*eta*p) * b^(1-lam)`; for t > 0 error codes up to t are forgiven in
    `ES = alpha^lam * beta^(lam*eta*p) * gamma^(1-lam)` with `gamma = b^(share of unforgiven errors)`, while
    correctness stays judged at t = 0. `p` is the slow-down penalty, `b` the failure penalty.
    Raises UsageError for no samples, or a speedup that is not positive and finite.
    """
    if not samples:
        raise UsageError("scores need at least one sample")
    level = min(t, 0)
    correct, codes = [], []
    for sample in samples:
        speedup, good_from, code = sample
        if speedup is not None and not (speedup > 0 and math.isfinite(speedup)):
            raise UsageError(f"a speedup must be positive and finite, not {speedup}")
        if code in (None, ACCURACY) and speedup is not None and good_from is not None and good_from <= level:
            correct.append(speedup)
        else:
            codes.append(ACCURACY if code is None else code)
    slow = [s for s in correct if s < 1]
    lam = len(correct) / len(samples)
    eta = len(slow) / len(correct) if correct else 0.0
    alpha = geometric_mean(correct) if correct else 1.0
    beta = geometric_mean(slow) if slow else 1.0
    unforgiven = sum(1 for code in codes if max(t, 0) < code) / len(codes) if codes else 1.0
    gamma = b**unforgiven
    kept = alpha**lam * beta ** (lam * eta * p)
    return Scores(
        t=t, alpha=alpha, beta=beta, lam=lam, eta=eta, gamma=gamma,
        S=kept * b ** (1 - lam), ES=kept * gamma ** (1 - lam),
    )  # fmt: skip
