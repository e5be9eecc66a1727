"""Sampling positions of ONNX's image operators worked out in numbers, for any framework."""

from __future__ import annotations

import numpy as np

Sizes = tuple[int, ...]


def affine_base(spatial: Sizes, align_corners: int) -> np.ndarray:
    """Coordinates in [-1, 1], innermost axis first, and a one: float64 [*spatial, rank + 1]."""
    lines = [np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1 for n in spatial]
    return np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(spatial)], -1)


def deform_base(
    kernel: Sizes, out: Sizes, strides: Sizes, dilations: Sizes, pads: Sizes
) -> tuple[np.ndarray, np.ndarray]:
    """Rows [taps, out height, 1] and columns [taps, 1, out width] that DeformConv's offsets shift."""
    taps = np.meshgrid(*(np.arange(k) * d for k, d in zip(kernel, dilations, strict=True)), indexing="ij")
    rows, columns = (np.arange(n) * s - low for n, s, low in zip(out, strides, pads[:2], strict=True))
    return taps[0].reshape(-1, 1, 1) + rows.reshape(-1, 1), taps[1].reshape(-1, 1, 1) + columns


def roi_offsets(bins: int, ratio: int) -> np.ndarray:
    """Places of RoiAlign's samples in units of a bin: float64 [bins * ratio]."""
    return (np.arange(bins * ratio) + 0.5) / ratio
