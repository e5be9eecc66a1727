"""Strides, dilations and padding of ONNX's sliding windows (Conv, pools) worked out in numbers, for any framework."""

from __future__ import annotations

from collections.abc import Sequence

Sizes = tuple[int, ...]
Pads = tuple[Sizes, Sizes]
"""Padding before and padding after, each with one entry per spatial axis."""


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
