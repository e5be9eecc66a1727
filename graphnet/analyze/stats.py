"""Statistics of raw timing samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from scipy import stats

from graphnet.evaluate.records import Timing

RESAMPLES = 2000


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Latency of one program. Seconds, except `count`."""

    median: float
    low: float
    """Lower end of the 95 % bootstrap interval of the median, over blocks where there are any."""
    high: float
    min: float
    mean: float
    p90: float
    p99: float
    count: int


def summarize(timing: Timing) -> Summary:
    """Summary of the raw samples. Raises ValueError without samples."""
    if not timing.samples_ns:
        raise ValueError("no samples to summarise")
    seconds = np.asarray(timing.samples_ns, dtype=np.float64) * 1e-9
    low, high = _interval(timing, seconds)
    p90, p99 = np.quantile(seconds, (0.9, 0.99))
    return Summary(
        median=float(np.median(seconds)), low=low, high=high, min=float(seconds.min()), mean=float(seconds.mean()),
        p90=float(p90), p99=float(p99), count=len(seconds),
    )  # fmt: skip


def _interval(timing: Timing, seconds: np.ndarray) -> tuple[float, float]:
    """Of the median. Samples of one block are alike: drawn one by one they would make the interval too narrow.

    So it is that of the median of block medians, relative to that, around the median of all samples.
    """
    medians = np.asarray([np.median(samples) for _, samples in blocks_of(timing)], dtype=np.float64)
    if len(medians) < 2 or not medians.all():
        return median_interval(seconds)
    low, high = median_interval(medians)
    scale = float(np.median(seconds) / np.median(medians))
    return low * scale, high * scale


def blocks_of(timing: Timing) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Round and samples (ns) of each block that counts, in the order of time; blocks without samples are left out."""
    at = 0
    for block in timing.blocks:
        if not block.disturbed:
            samples = timing.samples_ns[at : at + block.samples]
            at += block.samples
            if samples:
                yield block.round, samples


def median_seconds(samples_ns: Sequence[float]) -> float:
    """Median in seconds of raw samples in nanoseconds."""
    return float(np.median(np.asarray(samples_ns, dtype=np.float64) * 1e-9))


def median_interval(seconds: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the median, with a fixed seed so that a report repeats."""
    if len(seconds) < 2 or float(np.ptp(seconds)) == 0.0:
        return float(seconds.min()), float(seconds.max())
    found = stats.bootstrap(
        (seconds,), np.median, confidence_level=confidence, n_resamples=RESAMPLES, method="percentile",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def median_ratio(base_ns: Sequence[float], other_ns: Sequence[float]) -> float | None:
    """Median of `other_ns` over that of `base_ns`; None where that is 0."""
    base = median_seconds(base_ns)
    return median_seconds(other_ns) / base if base > 0 else None


def ratio_interval(
    base_ns: Sequence[float], other_ns: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of `median_ratio`, both sides resampled independently, with a fixed seed.

    None where a side has fewer than 2 samples, or so many zeros that a ratio is not a number.
    """
    if min(len(base_ns), len(other_ns)) < 2 or np.quantile(base_ns, 0.01) <= 0:
        return None
    found = stats.bootstrap(
        (np.asarray(base_ns, np.float64), np.asarray(other_ns, np.float64)), _ratio_of_medians,
        confidence_level=confidence, n_resamples=RESAMPLES, method="percentile", vectorized=True,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _ratio_of_medians(base: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(np.median(other, axis=axis) / np.median(base, axis=axis))


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values. Raises ValueError without values."""
    if not len(values):
        raise ValueError("no values to average")
    return float(stats.gmean(values))
