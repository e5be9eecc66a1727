"""TensorFlow rules that sample images: resize, grid sampling, regions of interest, deformable convolution."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower import grids, resize
from graphnet.lower.table import Ints, Static
from graphnet.lower.tensorflow.axes import places
from graphnet.lower.tensorflow.layout import any_layout, laid, moved, order_of, raw
from graphnet.lower.tensorflow.ops import TENSORFLOW, is_float
from graphnet.lower.windows import block_places, ones


@TENSORFLOW.op("Resize", layout=any_layout)
def resize_(
    X: Tensor,
    roi: Static | None = None,
    scales: Static | None = None,
    sizes: Ints | None = None,
    *,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """Axis by axis: a gather (nearest) or the product with a matrix of weights, in the order in which X lies."""
    plan = resize.plan(
        tuple(X.shape),
        None if roi is None else roi.astype(np.float64),
        None if scales is None else scales.astype(np.float64),
        sizes,
        resize.Options(
            antialias=bool(antialias),
            axes=axes,
            coordinates=coordinate_transformation_mode,
            cubic_coeff_a=cubic_coeff_a,
            exclude_outside=bool(exclude_outside),
            extrapolation_value=extrapolation_value,
            keep_aspect_ratio_policy=keep_aspect_ratio_policy,
            mode=mode,
            nearest_mode=nearest_mode,
        ),
    )
    x, order = raw(X), order_of(X)
    y = x if is_float(x) or mode == "nearest" else tf.cast(x, tf.float32)
    for axis in plan.changed:
        place = places(order)[axis]
        y = _picked(y, place, plan.nearest(axis)) if mode == "nearest" else _mixed(y, place, plan.weights(axis))
    outside = plan.outside()
    if outside is not None:
        y = tf.where(np.transpose(outside, order), tf.constant(extrapolation_value, y.dtype), y)
    return laid(y if y.dtype == x.dtype else tf.cast(tf.round(y), x.dtype), order)


def _picked(x: Tensor, axis: int, positions: list[int]) -> Tensor:
    """Elements at known positions along an axis; whole repetition is a broadcast, which is faster than a gather."""
    size = x.shape[axis]
    times = len(positions) // size if size else 0
    if times and positions == [i for i in range(size) for _ in range(times)]:
        before, after = tuple(x.shape[: axis + 1]), tuple(x.shape[axis + 1 :])
        spread = tf.broadcast_to(tf.expand_dims(x, axis + 1), (*before, times, *after))
        return tf.reshape(spread, (*before[:-1], size * times, *after))
    return tf.gather(x, np.array(positions), axis=axis)


def _mixed(x: Tensor, axis: int, weights: np.ndarray) -> Tensor:
    """Weighted sums along an axis: `weights` is [output size, input size]."""
    shape = tuple(x.shape)
    rows = tf.reshape(x, (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
    mixed = tf.einsum("oi,biq->boq", tf.constant(weights, x.dtype), rows)
    return tf.reshape(mixed, (*shape[:axis], weights.shape[0], *shape[axis + 1 :]))


@TENSORFLOW.op("GridSample")
def grid_sample(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """X [batch, channels, *spatial] at grid [batch, *out, spatial axes], whose coordinates come innermost first."""
    sizes, rank = X.shape[2:], len(X.shape) - 2
    found = []
    for axis, size in enumerate(sizes):
        x = grid[..., rank - 1 - axis]
        place = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
        found.append(place if mode == "cubic" else _padded(place, size, padding_mode, align_corners))
    taps = [_taps(place, mode) for place in found]
    images = _channels_last(X)
    total: Any = None
    for corner in itertools.product(*taps):
        index = [_padded(place, n, padding_mode, align_corners) for (place, _), n in zip(corner, sizes, strict=True)]
        value = _fetched(images, index)
        for _, weight in corner:
            value = value if weight is None else value * tf.cast(weight, value.dtype)[..., None]
        total = value if total is None else total + value
    return _channels_second(total)


def _channels_last(x: Tensor) -> Tensor:
    return moved(x, (0, *range(2, len(x.shape)), 1))


def _channels_second(x: Tensor) -> Tensor:
    return moved(x, (0, len(x.shape) - 1, *range(1, len(x.shape) - 1)))


def _padded(place: Tensor, size: int, padding_mode: str, align_corners: int) -> Tensor:
    """Coordinates brought inside the image by the padding mode; zero padding leaves them outside."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return tf.zeros_like(place)
        turned = tf.math.floormod(place - low, 2 * span)
        place = tf.minimum(turned, 2 * span - turned) + low
    return tf.clip_by_value(place, 0, size - 1)


def _taps(place: Tensor, mode: str) -> list[tuple[Tensor, Tensor | None]]:
    """Whole coordinates around each place and their weights."""
    if mode == "nearest":
        return [(tf.round(place), None)]
    low = tf.floor(place)
    t = place - low
    if mode == "linear":
        return [(low, 1 - t), (low + 1, t)]
    weights = [_cubic(t + 1), _cubic(t), _cubic(1 - t), _cubic(2 - t)]
    return [(low + offset, weight) for offset, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def _cubic(t: Tensor, a: float = -0.75) -> Tensor:
    """Keys' convolution kernel at distances t in [0, 2]."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return tf.where(t <= 1, near, far)


def _fetched(images: Tensor, index: list[Tensor]) -> Tensor:
    """images [batch, *spatial, channels] at whole coordinates [batch, *out]; zero outside."""
    sizes = images.shape[1:-1]
    inside = tf.reduce_all([(i >= 0) & (i <= n - 1) for i, n in zip(index, sizes, strict=True)], 0)
    whole = [tf.cast(tf.clip_by_value(i, 0, n - 1), tf.int32) for i, n in zip(index, sizes, strict=True)]
    value = tf.gather_nd(images, tf.stack(whole, -1), batch_dims=1)
    return tf.where(inside[..., None], value, tf.zeros((), value.dtype))


@TENSORFLOW.op("AffineGrid")
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    """theta [batch, rank, rank + 1] to a grid [batch, *spatial, rank] for GridSample."""
    spatial = size[2:]
    base = grids.affine_base(spatial, align_corners).reshape(-1, len(spatial) + 1)
    grid = tf.linalg.matmul(tf.constant(base, theta.dtype), theta, transpose_b=True)
    return tf.reshape(grid, (theta.shape[0], *spatial, len(spatial)))


@TENSORFLOW.op("Col2Im")
def col2im(
    input: Tensor,
    image_shape: Ints,
    block_shape: Ints,
    *,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    rank = len(image_shape)
    strides, dilations, pads = ones(strides, rank), ones(dilations, rank), pads or (0,) * (2 * rank)
    padded = [n + low + high for n, low, high in zip(image_shape, pads[:rank], pads[rank:], strict=True)]
    found = block_places(padded, block_shape, strides, dilations)
    batch, channels = input.shape[0], input.shape[1] // math.prod(block_shape)
    columns = tf.transpose(tf.reshape(input, (batch * channels, -1)))
    flat = tf.transpose(tf.math.unsorted_segment_sum(columns, found, math.prod(padded)))
    image = tf.reshape(flat, (batch, channels, *padded))
    return tf.slice(image, (0, 0, *pads[:rank]), (batch, channels, *image_shape))


@TENSORFLOW.op("RoiAlign")
def roi_align(
    X: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    if sampling_ratio <= 0:
        raise UnsupportedOp("sampling_ratio=0 takes a number of samples that depends on the data")
    half = coordinate_transformation_mode == "half_pixel"
    left, top, right, bottom = tf.unstack(rois * spatial_scale - (0.5 if half else 0.0), axis=1)
    width, height = right - left, bottom - top
    if not half:
        width, height = tf.maximum(width, 1), tf.maximum(height, 1)
    ys = _corners(_bin_samples(top, height, output_height, sampling_ratio), X.shape[2])
    xs = _corners(_bin_samples(left, width, output_width, sampling_ratio), X.shape[3])
    images = tf.gather(X, batch_indices)
    values = [_taken(images, y, x) * (wy[:, :, None] * wx[:, None, :])[:, None] for (y, wy) in ys for (x, wx) in xs]
    shape = (rois.shape[0], X.shape[1], output_height, sampling_ratio, output_width, sampling_ratio)
    if mode == "max":
        return tf.reduce_max(tf.reshape(tf.reduce_max(tf.stack(values), 0), shape), (3, 5))
    return tf.reduce_mean(tf.reshape(tf.add_n(values), shape), (3, 5))


def _bin_samples(start: Tensor, extent: Tensor, bins: int, ratio: int) -> Tensor:
    """[rois, bins * ratio] sample positions."""
    offsets = tf.constant(grids.roi_offsets(bins, ratio), start.dtype)
    return start[:, None] + offsets * (extent / bins)[:, None]


def _corners(position: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """The two neighbours of each position with their weights, zero outside [-1, size]."""
    inside = tf.cast((position >= -1) & (position <= size), position.dtype)
    clamped = tf.clip_by_value(position, 0, size - 1)
    low = tf.floor(clamped)
    fraction = clamped - low
    high = tf.minimum(low + 1, size - 1)
    return [(tf.cast(low, tf.int32), (1 - fraction) * inside), (tf.cast(high, tf.int32), fraction * inside)]


def _taken(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """images [rois, C, H, W] at rows y [rois, P] and columns x [rois, Q]: [rois, C, P, Q]."""
    return tf.gather(tf.gather(images, y, axis=2, batch_dims=1), x, axis=3, batch_dims=1)


@TENSORFLOW.op("MaxRoiPool")
def max_roi_pool(X: Tensor, rois: Tensor, *, pooled_shape: tuple[int, ...], spatial_scale: float = 1.0) -> Tensor:
    """rois [n, 5] hold an image's number and whole corners; an empty bin yields zero."""
    corners = tf.round(rois[:, 1:] * spatial_scale)
    images = tf.gather(X, tf.cast(rois[:, 0], tf.int32))
    masks = []
    for axis, bins in enumerate(pooled_shape):
        first, last = corners[:, 1 - axis], corners[:, 3 - axis]
        extent = tf.maximum(last - first + 1, 1)[:, None] / bins
        steps = tf.constant(np.arange(bins), extent.dtype)
        begin = tf.floor(steps * extent) + first[:, None]
        end = tf.math.ceil((steps + 1) * extent) + first[:, None]
        place = tf.constant(np.arange(X.shape[2 + axis]), extent.dtype)
        masks.append((place >= begin[..., None]) & (place < end[..., None]))
    rows, columns = masks
    never = tf.constant(-math.inf, X.dtype)
    tall = tf.reduce_max(tf.where(rows[:, None, :, :, None], images[:, :, None], never), 3)
    pooled = tf.reduce_max(tf.where(columns[:, None, None], tall[:, :, :, None], never), 4)
    return tf.where(tf.equal(pooled, never), tf.zeros((), X.dtype), pooled)


@TENSORFLOW.op("DeformConv")
def deform_conv(
    X: Tensor,
    W: Tensor,
    offset: Tensor,
    B: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    offset_group: int = 1,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    """Two spatial axes: sample at the shifted taps, then one grouped product with the kernel."""
    if len(X.shape) != 4:
        raise UnsupportedOp("deformable convolution is implemented over two spatial axes")
    del kernel_shape
    (batch, channels, height, width), kernel = X.shape, W.shape[2:]
    strides, dilations, pads = ones(strides, 2), ones(dilations, 2), pads or (0, 0, 0, 0)
    out = tuple(offset.shape[2:])
    taps = math.prod(kernel)
    shifts = tf.reshape(offset, (batch * offset_group, taps, 2, *out))
    bases = grids.deform_base(tuple(kernel), out, strides, dilations, pads)
    found = [shifts[:, :, axis] + tf.constant(base, X.dtype) for axis, base in enumerate(bases)]
    images = _channels_last(tf.reshape(X, (batch * offset_group, channels // offset_group, height, width)))
    sampled = _linear(images, found)
    if mask is not None:
        sampled = sampled * tf.reshape(mask, (batch * offset_group, taps, *out, 1))
    columns = tf.reshape(_channels_second(sampled), (batch, group, channels // group * taps, math.prod(out)))
    weights = tf.reshape(W, (group, W.shape[0] // group, -1))
    Y = tf.reshape(tf.linalg.matmul(weights, columns), (batch, W.shape[0], *out))
    return Y if B is None else Y + tf.reshape(B, (-1, 1, 1))


def _linear(images: Tensor, found: list[Tensor]) -> Tensor:
    """Linear interpolation of images [batch, *spatial, channels], zero outside."""
    values: list[Tensor] = []
    for corner in itertools.product(*(_taps(place, "linear") for place in found)):
        value = _fetched(images, [place for place, _ in corner])
        for _, weight in corner:
            value = value if weight is None else value * weight[..., None]
        values.append(value)
    return tf.add_n(values)
