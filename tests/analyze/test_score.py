"""S(t) and ES(t): the worked example, published rows, and agreement of the two closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.analyze.score import Sample, Scores, scores
from graphnet.errors import UsageError

EXAMPLE: list[Sample] = [
    (2.0, -7, None),
    (1.5, -5, None),
    (0.8, -5, None),
    (1.2, None, 1),
    (None, None, 2),
    (None, None, 3),
]

WORKED = [
    (-8, 1.0, 1.0, 0.0, 0.0, 0.1, 0.100000, 0.100000),
    (-7, 2.0, 1.0, 0.166667, 0.0, 0.1, 0.164755, 0.164755),
    (-6, 2.0, 1.0, 0.166667, 0.0, 0.1, 0.164755, 0.164755),
    (-5, 1.338866, 0.8, 0.5, 0.333333, 0.1, 0.364547, 0.364547),
    (0, 1.338866, 0.8, 0.5, 0.333333, 0.1, 0.364547, 0.364547),
    (1, 1.338866, 0.8, 0.5, 0.333333, 0.215443, 0.364547, 0.535082),
    (2, 1.338866, 0.8, 0.5, 0.333333, 0.464159, 0.364547, 0.785392),
    (3, 1.338866, 0.8, 0.5, 0.333333, 1.0, 0.364547, 1.152798),
]


@pytest.mark.parametrize(("t", "alpha", "beta", "lam", "eta", "gamma", "s", "es"), WORKED)
def test_worked_example(
    t: int, alpha: float, beta: float, lam: float, eta: float, gamma: float, s: float, es: float
) -> None:
    got = scores(EXAMPLE, t)
    assert (got.alpha, got.beta, got.lam, got.eta, got.gamma, got.S, got.ES) == pytest.approx(
        (alpha, beta, lam, eta, gamma, s, es), abs=6e-7
    )


@pytest.mark.parametrize(
    ("alpha", "beta", "lam", "eta", "published"),
    [(1.342, 0.817, 0.930, 0.046, 1.118), (1.344, 0.822, 0.423, 0.064, 0.300)],
)
def test_published_rows(alpha: float, beta: float, lam: float, eta: float, published: float) -> None:
    """1000 samples made so that their components are the published ones (shares to 1/1000)."""
    correct = round(1000 * lam)
    slow = round(correct * eta)
    fast_mean = math.exp((correct * math.log(alpha) - slow * math.log(beta)) / (correct - slow))
    groups: list[tuple[Sample, int]] = [
        ((beta, -10, None), slow), ((fast_mean, -10, None), correct - slow), ((None, None, 3), 1000 - correct),
    ]  # fmt: skip
    samples = [sample for sample, count in groups for _ in range(count)]
    got = scores(samples, -5)
    assert (got.alpha, got.beta, got.lam) == pytest.approx((alpha, beta, lam))
    assert pytest.approx(published, abs=0.003) == got.S


def _by_sample(samples: list[Sample], t: int, p: float, b: float) -> float:
    """ES(t) as a geometric mean over samples."""
    logs = []
    for speedup, good_from, code in samples:
        if code is None and speedup is not None and good_from is not None and good_from <= min(t, 0):
            logs.append(math.log(speedup) * (1 if speedup >= 1 else 1 + p))
        else:
            logs.append(0.0 if t >= (code or 1) else math.log(b))
    return math.exp(math.fsum(logs) / len(logs))


SPEEDUPS = st.floats(0.01, 100)
SAMPLES = st.one_of(
    st.tuples(SPEEDUPS, st.integers(-10, 0), st.none()),
    st.tuples(SPEEDUPS, st.none(), st.just(1)),
    st.tuples(st.none(), st.none(), st.sampled_from([2, 3])),
)


@given(st.lists(SAMPLES, min_size=1, max_size=30), st.integers(-11, 4), st.floats(0, 1), st.floats(0.01, 1))
def test_both_forms_agree(samples: list[Sample], t: int, p: float, b: float) -> None:
    got: Scores = scores(samples, t, p=p, b=b)
    assert pytest.approx(_by_sample(samples, t, p, b), rel=1e-9) == got.ES
    if t <= 0:
        assert pytest.approx(got.S) == got.ES


@pytest.mark.parametrize("speedup", [0.0, -1.0, math.inf, math.nan])
def test_impossible_speedup_is_refused(speedup: float) -> None:
    with pytest.raises(UsageError, match="positive and finite"):
        scores([(speedup, -5, None)], 0)


def test_no_samples_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        scores([], 0)
