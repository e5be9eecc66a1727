"""JAX rules that sample images: resize, grid sampling, regions of interest, deformable convolution."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.lower import grids, resize
from graphnet.lower.jax.ops import JAX, is_float
from graphnet.lower.jax.ops_index import IN_RANGE
from graphnet.lower.jax.ops_nn import per_channel
from graphnet.lower.table import Ints, Static
from graphnet.lower.windows import block_places, ones


@JAX.op("Resize")
def resize_(
    X: Array,
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
) -> Array:
    plan = resize.plan(
        X.shape,
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
    Y = X if is_float(X) or mode == "nearest" else X.astype(np.float32)
    for axis in plan.changed:
        if mode == "nearest":
            Y = _picked(Y, axis, plan.nearest(axis))
        else:
            product = jnp.tensordot(Y, jnp.asarray(plan.weights(axis), Y.dtype), ((axis,), (1,)))
            Y = jnp.moveaxis(product, -1, axis)
    outside = plan.outside()
    Y = Y if outside is None else jnp.where(outside, extrapolation_value, Y)
    return Y if Y.dtype == X.dtype else jnp.round(Y).astype(X.dtype)


def _picked(x: Array, axis: int, positions: list[int]) -> Array:
    """Elements at known positions along an axis; whole repetition is a broadcast, which is faster than a gather."""
    size = x.shape[axis]
    times = len(positions) // size if size else 0
    if times and positions == [i for i in range(size) for _ in range(times)]:
        return jnp.repeat(x, times, axis)
    return jnp.take(x, np.array(positions), axis, mode="clip")


@JAX.op("GridSample")
def grid_sample(
    X: Array, grid: Array, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Array:
    """X [batch, channels, *spatial] at grid [batch, *out, spatial axes], whose coordinates come innermost first."""
    sizes, rank = X.shape[2:], X.ndim - 2
    places = []
    for axis, size in enumerate(sizes):
        x = grid[..., rank - 1 - axis]
        place = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
        places.append(place if mode == "cubic" else _padded(place, size, padding_mode, align_corners))
    taps = [_taps(place, mode) for place in places]
    images = jnp.moveaxis(X, 1, -1)
    total: Array | None = None
    for corner in itertools.product(*taps):
        index = [_padded(place, n, padding_mode, align_corners) for (place, _), n in zip(corner, sizes, strict=True)]
        value = _fetched(images, index)
        for _, weight in corner:
            value = value if weight is None else value * weight[..., None]
        total = value if total is None else total + value
    assert total is not None
    return jnp.moveaxis(total, -1, 1).astype(X.dtype)


def _padded(place: Array, size: int, padding_mode: str, align_corners: int) -> Array:
    """Coordinates brought inside the image by the padding mode; zero padding leaves them outside."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return jnp.zeros_like(place)
        turned = jnp.mod(place - low, 2 * span)
        place = jnp.minimum(turned, 2 * span - turned) + low
    return jnp.clip(place, 0, size - 1)


def _taps(place: Array, mode: str) -> list[tuple[Array, Array | None]]:
    """Whole coordinates around each place and their weights."""
    if mode == "nearest":
        return [(jnp.round(place), None)]
    low = jnp.floor(place)
    t = place - low
    if mode == "linear":
        return [(low, 1 - t), (low + 1, t)]
    weights = [_cubic(t + 1), _cubic(t), _cubic(1 - t), _cubic(2 - t)]
    return [(low + offset, weight) for offset, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def _cubic(t: Array, a: float = -0.75) -> Array:
    """Keys' convolution kernel at distances t in [0, 2]."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return jnp.where(t <= 1, near, far)


def _fetched(images: Array, index: list[Array]) -> Array:
    """images [batch, *spatial, channels] at whole coordinates [batch, *out]; zero outside."""
    sizes = images.shape[1:-1]
    inside = [(i >= 0) & (i <= n - 1) for i, n in zip(index, sizes, strict=True)]
    whole = [jnp.clip(i, 0, n - 1).astype(np.int32) for i, n in zip(index, sizes, strict=True)]
    batch = jnp.arange(images.shape[0]).reshape(-1, *(1,) * (index[0].ndim - 1))
    value = images.at[(batch, *whole)].get(mode=IN_RANGE)
    return jnp.where(_all_of(inside)[..., None], value, 0)


def _all_of(conditions: list[Array]) -> Array:
    """Where all of them hold."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


@JAX.op("AffineGrid")
def affine_grid(theta: Array, size: Ints, *, align_corners: int = 0) -> Array:
    """theta [batch, rank, rank + 1] to a grid [batch, *spatial, rank] for GridSample."""
    spatial = size[2:]
    base = jnp.asarray(grids.affine_base(spatial, align_corners), theta.dtype)
    return jnp.einsum("...k,nrk->n...r", base, theta)


@JAX.op("Col2Im")
def col2im(
    input: Array,
    image_shape: Ints,
    block_shape: Ints,
    *,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    rank = len(image_shape)
    strides, dilations, pads = ones(strides, rank), ones(dilations, rank), pads or (0,) * (2 * rank)
    padded = [n + low + high for n, low, high in zip(image_shape, pads[:rank], pads[rank:], strict=True)]
    places = block_places(padded, block_shape, strides, dilations)
    batch, channels = input.shape[0], input.shape[1] // math.prod(block_shape)
    flat = jnp.zeros((batch, channels, math.prod(padded)), input.dtype)
    image = flat.at[..., places].add(input.reshape(batch, channels, -1)).reshape(batch, channels, *padded)
    starts = (0, 0, *pads[:rank])
    ends = (batch, channels, *(low + n for low, n in zip(pads[:rank], image_shape, strict=True)))
    return lax.slice(image, starts, ends)


@JAX.op("RoiAlign")
def roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    if sampling_ratio <= 0:
        raise UnsupportedOp("sampling_ratio=0 takes a number of samples that depends on the data")
    half = coordinate_transformation_mode == "half_pixel"
    left, top, right, bottom = (rois * spatial_scale - (0.5 if half else 0.0)).T
    width, height = right - left, bottom - top
    if not half:
        width, height = jnp.maximum(width, 1), jnp.maximum(height, 1)
    ys = _corners(_bin_samples(top, height, output_height, sampling_ratio), X.shape[2])
    xs = _corners(_bin_samples(left, width, output_width, sampling_ratio), X.shape[3])
    images = X[batch_indices]
    values = [_taken(images, y, x) * (wy[:, :, None] * wx[:, None, :])[:, None] for (y, wy) in ys for (x, wx) in xs]
    shape = (rois.shape[0], X.shape[1], output_height, sampling_ratio, output_width, sampling_ratio)
    if mode == "max":
        return jnp.max(jnp.max(jnp.stack(values), 0).reshape(shape), (3, 5))
    return jnp.mean(sum(values[1:], values[0]).reshape(shape), (3, 5))


def _bin_samples(start: Array, extent: Array, bins: int, ratio: int) -> Array:
    """[rois, bins * ratio] sample positions."""
    offsets = jnp.asarray(grids.roi_offsets(bins, ratio), start.dtype)
    return start[:, None] + offsets * (extent / bins)[:, None]


def _corners(position: Array, size: int) -> list[tuple[Array, Array]]:
    """The two neighbours of each position with their weights, zero outside [-1, size]."""
    inside = ((position >= -1) & (position <= size)).astype(position.dtype)
    clamped = jnp.clip(position, 0, size - 1)
    low = jnp.floor(clamped)
    fraction = clamped - low
    high = jnp.minimum(low + 1, size - 1)
    return [(low.astype(np.int32), (1 - fraction) * inside), (high.astype(np.int32), fraction * inside)]


def _taken(images: Array, y: Array, x: Array) -> Array:
    """images [rois, C, H, W] at rows y [rois, P] and columns x [rois, Q]: [rois, C, P, Q]."""
    rows = jnp.take_along_axis(images, y[:, None, :, None], 2)
    return jnp.take_along_axis(rows, x[:, None, None, :], 3)


@JAX.op("MaxRoiPool")
def max_roi_pool(X: Array, rois: Array, *, pooled_shape: tuple[int, ...], spatial_scale: float = 1.0) -> Array:
    """rois [n, 5] hold an image's number and whole corners; an empty bin yields zero."""
    corners = jnp.round(rois[:, 1:] * spatial_scale)
    images = X[rois[:, 0].astype(np.int32)]
    masks = []
    for axis, bins in enumerate(pooled_shape):
        first, last = corners[:, 1 - axis], corners[:, 3 - axis]
        extent = jnp.maximum(last - first + 1, 1)[:, None] / bins
        begin = jnp.floor(jnp.arange(bins) * extent) + first[:, None]
        end = jnp.ceil((jnp.arange(bins) + 1) * extent) + first[:, None]
        place = jnp.arange(X.shape[2 + axis])
        masks.append((place >= begin[..., None]) & (place < end[..., None]))
    rows, columns = masks
    tall = jnp.max(jnp.where(rows[:, None, :, :, None], images[:, :, None], -jnp.inf), 3)
    pooled = jnp.max(jnp.where(columns[:, None, None], tall[:, :, :, None], -jnp.inf), 4)
    return jnp.where(pooled == -jnp.inf, 0, pooled).astype(X.dtype)


@JAX.op("DeformConv")
def deform_conv(
    X: Array,
    W: Array,
    offset: Array,
    B: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    offset_group: int = 1,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Array:
    """Two spatial axes: sample at the shifted taps, then one grouped product with the kernel."""
    if X.ndim != 4:
        raise UnsupportedOp("deformable convolution is implemented over two spatial axes")
    del kernel_shape
    (batch, channels, height, width), kernel = X.shape, W.shape[2:]
    strides, dilations, pads = ones(strides, 2), ones(dilations, 2), pads or (0, 0, 0, 0)
    out = offset.shape[2:]
    taps = math.prod(kernel)
    shifts = offset.reshape(batch * offset_group, taps, 2, *out)
    bases = grids.deform_base(kernel, out, strides, dilations, pads)
    places = [shifts[:, :, axis] + jnp.asarray(base, X.dtype) for axis, base in enumerate(bases)]
    images = jnp.moveaxis(X.reshape(batch * offset_group, channels // offset_group, height, width), 1, -1)
    sampled = _linear(images, places)
    if mask is not None:
        sampled = sampled * mask.reshape(batch * offset_group, taps, *out, 1)
    columns = jnp.moveaxis(sampled, -1, 1).reshape(batch, group, channels // group * taps, math.prod(out))
    weights = W.reshape(group, W.shape[0] // group, -1)
    Y = jnp.einsum("gok,ngkp->ngop", weights, columns).reshape(batch, W.shape[0], *out)
    return Y if B is None else Y + per_channel(B, 4)


def _linear(images: Array, places: list[Array]) -> Array:
    """Linear interpolation of images [batch, *spatial, channels], zero outside."""
    values: list[Array] = []
    for corner in itertools.product(*(_taps(place, "linear") for place in places)):
        value = _fetched(images, [place for place, _ in corner])
        for _, weight in corner:
            value = value if weight is None else value * weight[..., None]
        values.append(value)
    return sum(values[1:], values[0])
