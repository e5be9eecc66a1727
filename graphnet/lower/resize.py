"""ONNX Resize worked out in numbers: output sizes, source positions and weights of each axis, for any framework."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphnet.errors import UnsupportedOp


@dataclass(frozen=True)
class Options:
    """The operator's attributes."""

    antialias: bool
    axes: tuple[int, ...] | None
    coordinates: str
    cubic_coeff_a: float
    exclude_outside: bool
    extrapolation_value: float
    keep_aspect_ratio_policy: str
    mode: str
    nearest_mode: str


@dataclass(frozen=True)
class Plan:
    """Sizes and scales of every axis; `region` holds start and end of each axis in units of its length."""

    source: tuple[int, ...]
    size: tuple[int, ...]
    scale: tuple[float, ...]
    region: tuple[tuple[float, float], ...]
    options: Options

    @property
    def changed(self) -> tuple[int, ...]:
        """Axes along which anything is sampled."""
        return tuple(
            axis
            for axis, (n, m, s) in enumerate(zip(self.source, self.size, self.scale, strict=True))
            if n != m or not math.isclose(s, 1.0) or self.region[axis] != (0.0, 1.0)
        )

    def exact_scales(self) -> bool:
        """Whether each scale is the quotient of output and input size, as frameworks assume."""
        return all(abs(n * s - m) < 1e-4 for n, m, s in zip(self.source, self.size, self.scale, strict=True))

    def positions(self, axis: int) -> np.ndarray:
        """Source coordinate of every output element, by the formulas of the specification."""
        n, m, scale = self.source[axis], self.size[axis], self.scale[axis]
        y, resized, mode = np.arange(m, dtype=np.float64), scale * n, self.options.coordinates
        if mode == "align_corners":
            return y * 0.0 if resized == 1 else y * (n - 1) / (resized - 1)
        if mode == "asymmetric":
            return y / scale
        if mode == "tf_crop_and_resize":
            start, end = self.region[axis]
            if resized == 1:
                return np.full(m, 0.5 * (start + end) * (n - 1))
            return start * (n - 1) + y * (end - start) * (n - 1) / (resized - 1)
        if mode == "pytorch_half_pixel" and resized == 1:
            return np.full(m, -0.5)
        if mode == "half_pixel_symmetric":
            return n / 2 * (1 - m / resized) + (y + 0.5) / scale - 0.5
        if mode in ("half_pixel", "pytorch_half_pixel"):
            return (y + 0.5) / scale - 0.5
        raise UnsupportedOp(f"coordinate_transformation_mode {mode} is unknown")

    def nearest(self, axis: int) -> list[int]:
        """Source index of every output element."""
        x = self.positions(axis)
        rounded = {
            "round_prefer_floor": np.ceil(x - 0.5),
            "round_prefer_ceil": np.floor(x + 0.5),
            "floor": np.floor(x),
            "ceil": np.ceil(x),
        }[self.options.nearest_mode]
        return [int(i) for i in np.clip(rounded, 0, self.source[axis] - 1)]

    def weights(self, axis: int) -> np.ndarray:
        """float64 [output size, input size]: each output element as a weighted sum of the inputs."""
        n, stretch = self.source[axis], min(self.scale[axis], 1.0) if self.options.antialias else 1.0
        kernel, support = _kernel(self.options)
        matrix = np.zeros((self.size[axis], n))
        for row, x in zip(matrix, self.positions(axis), strict=True):
            taps = np.arange(math.floor(x - support / stretch), math.ceil(x + support / stretch) + 1)
            weights = kernel(np.abs(stretch * (taps - x)))
            if self.options.exclude_outside:
                weights = np.where((taps < 0) | (taps >= n), 0.0, weights)
            np.add.at(row, np.clip(taps, 0, n - 1), weights / weights.sum())
        return matrix

    def outside(self) -> np.ndarray | None:
        """bool, broadcastable to the output: where the extrapolation value goes (`tf_crop_and_resize` only)."""
        if self.options.coordinates != "tf_crop_and_resize":
            return None
        rank = len(self.source)
        mask = np.zeros((1,) * rank, bool)
        for axis in self.changed:
            x = self.positions(axis)
            beyond = (x < 0) | (x > self.source[axis] - 1)
            mask = mask | beyond.reshape([-1 if i == axis else 1 for i in range(rank)])
        return mask if mask.any() else None


def plan(
    shape: tuple[int, ...],
    roi: np.ndarray | None,
    scales: np.ndarray | None,
    sizes: tuple[int, ...] | None,
    options: Options,
) -> Plan:
    """Sizes and scales of all axes from what the node gives for `options.axes`. Raises UnsupportedOp."""
    rank = len(shape)
    axes = tuple(a % rank for a in options.axes) if options.axes is not None else tuple(range(rank))
    scale, size, region = [1.0] * rank, list(shape), [(0.0, 1.0)] * rank
    if sizes:
        wanted = {axis: n / shape[axis] for axis, n in zip(axes, sizes, strict=True)}
        if options.keep_aspect_ratio_policy != "stretch":
            choose = min if options.keep_aspect_ratio_policy == "not_larger" else max
            common = choose(wanted.values())
            wanted = dict.fromkeys(axes, common)
            sizes = tuple(int(common * shape[axis] + 0.5) for axis in axes)
        for axis, n in zip(axes, sizes, strict=True):
            scale[axis], size[axis] = wanted[axis], n
    elif scales is not None and scales.size:
        for axis, factor in zip(axes, scales, strict=True):
            scale[axis], size[axis] = float(factor), int(factor * shape[axis])
    else:
        raise UnsupportedOp("Resize needs scales or sizes")
    if roi is not None and roi.size and options.coordinates == "tf_crop_and_resize":
        for i, axis in enumerate(axes):
            region[axis] = (float(roi[i]), float(roi[len(axes) + i]))
    return Plan(shape, tuple(size), tuple(scale), tuple(region), options)


def _kernel(options: Options) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """The interpolation kernel over distances, and its radius."""
    if options.mode == "linear":
        return lambda t: np.maximum(0.0, 1.0 - t), 1.0
    a = options.cubic_coeff_a

    def cubic(t: np.ndarray) -> np.ndarray:
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0.0))

    return cubic, 2.0
