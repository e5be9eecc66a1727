"""Windows and mel filters of ONNX's signal operators as arrays, for any framework."""

from __future__ import annotations

import math

import numpy as np

HANN = (0.5, 0.5)
HAMMING = (25 / 46, 21 / 46)
BLACKMAN = (0.42, 0.5, 0.08)


def cosine_window(size: int, periodic: int, coefficients: tuple[float, ...]) -> np.ndarray:
    """Generalised cosine window, float64 [size]: sum over k of (-1)^k a_k cos(2 pi k n / N)."""
    n = np.arange(size, dtype=np.float64)
    span = size if periodic else size - 1
    return np.asarray(sum(a * (-1) ** k * np.cos(2 * math.pi * k * n / span) for k, a in enumerate(coefficients)))


def mel_filters(bins: int, dft_length: int, sample_rate: int, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Triangular filters between edges in hertz, float64 [dft_length // 2 + 1, bins], by ONNX's formula."""
    low, high = (2595 * math.log10(1 + float(edge.item()) / 700) for edge in (lower, upper))
    mels = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    edges = (((dft_length + 1) * 700 * (10 ** (mels / 2595) - 1)) // sample_rate).astype(int)
    weights = np.zeros((dft_length // 2 + 1, bins))
    for i in range(bins):
        left, centre, right = edges[i : i + 3]
        if centre == left:
            weights[centre, i] = 1
        else:
            weights[left : centre + 1, i] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            weights[centre:right, i] = (right - np.arange(centre, right)) / (right - centre)
    return weights
