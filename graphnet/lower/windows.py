"""Strides, dilations and padding of ONNX's sliding windows (Conv, pools) worked out in numbers, for any framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Sizes = tuple[int, ...]
Pads = tuple[Sizes, Sizes]
"""Padding before and padding after, each with one entry per spatial axis."""
AxisPads = tuple[tuple[int, int], ...]
"""Padding (before, after) of each spatial axis."""


def ones(given: Sizes | None, rank: int) -> Sizes:
    """Strides or dilations: 1 per axis by default."""
    return tuple(given) if given else (1,) * rank


def resolve_pads(
    auto_pad: str, pads: Sizes | None, size: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes
) -> Pads:
    """`auto_pad` by the formula of ONNX's Conv: SAME gives ceil(size / stride) positions."""
    rank = len(kernel)
    if auto_pad in ("NOTSET", ""):
        pads = tuple(pads) if pads else (0,) * (2 * rank)
        return pads[:rank], pads[rank:]
    if auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    totals = [
        max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        for n, k, s, d in zip(size, kernel, strides, dilations, strict=True)
    ]
    return _halves(totals, upper=auto_pad == "SAME_UPPER")


def resolve_transposed_pads(
    auto_pad: str, pads: Sizes | None, output_shape: Sizes | None, size: Sizes, kernel: Sizes,
    strides: Sizes, dilations: Sizes, output_padding: Sizes,
) -> Pads:  # fmt: skip
    """What ConvTranspose cuts off its full result, by the formula of ONNX's ConvTranspose (negative: it adds)."""
    if output_shape is None and not auto_pad.startswith("SAME"):
        return resolve_pads(auto_pad, pads, size, kernel, strides, dilations)
    if output_shape is None:
        output_shape = tuple(n * s for n, s in zip(size, strides, strict=True))
    wanted = tuple(output_shape)[-len(kernel) :]
    axes = zip(wanted, size, kernel, strides, dilations, output_padding, strict=True)
    totals = [s * (n - 1) + extra + (k - 1) * d + 1 - w for w, n, k, s, d, extra in axes]
    return _halves(totals, upper=auto_pad == "SAME_UPPER")


def _halves(totals: Sequence[int], *, upper: bool) -> Pads:
    """The odd element goes to the end (`upper`) or the beginning."""
    small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (small, large) if upper else (large, small)


class Pool(NamedTuple):
    """A pooling window over spatial axes of `size`; `padding` is the stated one with what ceil mode adds."""

    size: Sizes
    kernel: Sizes
    strides: Sizes
    dilations: Sizes
    stated: AxisPads
    padding: AxisPads

    def counts(self, *, include_pad: bool) -> np.ndarray:
        """Elements under each window; stated padding counts only where asked, that of ceil mode never."""
        total: Any = np.ones(())
        axes = zip(self.size, self.kernel, self.strides, self.dilations, self.stated, self.padding, strict=True)
        for n, k, s, d, (low, high), (_, end) in axes:
            first, beyond = (0, low + n + high) if include_pad else (low, low + n)
            starts = np.arange((n + low + end - (k - 1) * d - 1) // s + 1) * s
            taps = starts[:, None] + np.arange(k) * d
            total = total[..., None] * ((taps >= first) & (taps < beyond)).sum(1)
        return np.asarray(total)


def pool(
    size: Sizes, kernel: Sizes, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Sizes | None = None,
    pads: Sizes | None = None, strides: Sizes | None = None,
) -> Pool:  # fmt: skip
    """The window of a pooling operator, its attributes resolved."""
    strides, dilations = ones(strides, len(kernel)), ones(dilations, len(kernel))
    stated = resolve_pads(auto_pad, pads, size, kernel, strides, dilations)
    padding = with_ceil(stated, size, kernel, strides, dilations) if ceil_mode else stated
    by_axis = (tuple(zip(*each, strict=True)) for each in (stated, padding))
    return Pool(size, kernel, strides, dilations, *by_axis)


def with_ceil(pads: Pads, size: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes) -> Pads:
    """Padding with what the last, partial window of ceil mode needs; that window must start inside the input."""
    after = []
    for low, high, n, k, s, d in zip(*pads, size, kernel, strides, dilations, strict=True):
        span = (k - 1) * d + 1
        count = -(-(n + low + high - span) // s) + 1
        count -= (count - 1) * s >= n + low
        after.append(high + max(0, (count - 1) * s + span - (n + low + high)))
    return pads[0], tuple(after)


def unpooled(size: Sizes, kernel: Sizes, pads: Sizes | None, strides: Sizes | None) -> Sizes:
    """The spatial size that MaxUnpool restores."""
    rank = len(kernel)
    before, after = resolve_pads("NOTSET", pads, size, kernel, (1,) * rank, (1,) * rank)
    axes = zip(size, ones(strides, rank), before, after, kernel, strict=True)
    return tuple((n - 1) * s - low - high + k for n, s, low, high, k in axes)


def block_places(padded: Sequence[int], block: Sizes, strides: Sizes, dilations: Sizes) -> np.ndarray:
    """Flat position in Col2Im's padded image of each (element of block, block), row-major, int64."""
    rank = len(padded)
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(padded, block, strides, dilations, strict=True)]
    within = (np.arange(k) * d for k, d in zip(block, dilations, strict=True))
    axes = np.ix_(*within, *(np.arange(c) * s for c, s in zip(counts, strides, strict=True)))
    flat = np.zeros([*block, *counts], np.int64)
    for i in range(rank):
        flat = flat * padded[i] + axes[i] + axes[rank + i]
    return flat.reshape(-1)
