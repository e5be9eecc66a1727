"""PyTorch rules that sample images: resize, grid sampling, regions of interest, deformable convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower import grids, resize
from graphnet.lower.table import Ints, Static
from graphnet.lower.torch.ops import TORCH
from graphnet.lower.windows import block_places, ones


@TORCH.op("Resize")
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
) -> Tensor:
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
    native = _native_mode(X, plan)
    if native is not None:
        return F.interpolate(X, plan.size[2:], **native)
    for axis in plan.changed:
        if mode == "nearest":
            X = torch.index_select(X, axis, torch.tensor(plan.nearest(axis)))
        else:
            weights = torch.tensor(plan.weights(axis), dtype=X.dtype)
            X = torch.matmul(X.movedim(axis, -1), weights.t()).movedim(-1, axis)
    outside = plan.outside()
    return X if outside is None else torch.where(torch.tensor(outside), extrapolation_value, X)


def _native_mode(X: Tensor, plan: resize.Plan) -> dict[str, Any] | None:
    """Arguments of `F.interpolate` where it computes exactly this, else None."""
    options = plan.options
    if X.ndim not in (3, 4, 5) or any(axis < 2 for axis in plan.changed) or not plan.exact_scales():
        return None
    if options.antialias or options.exclude_outside or not X.is_floating_point():
        return None
    if options.mode == "nearest":
        floor = options.coordinates == "asymmetric" and options.nearest_mode == "floor"
        return {"mode": "nearest"} if floor else None
    linear = {3: "linear", 4: "bilinear", 5: "trilinear"}[X.ndim]
    name = linear if options.mode == "linear" else "bicubic"
    if name == "bicubic" and (X.ndim != 4 or options.cubic_coeff_a != -0.75):
        return None
    if options.coordinates == "align_corners":
        return {"mode": name, "align_corners": True}
    single = any(plan.size[axis] == 1 for axis in plan.changed)
    half = options.coordinates == "half_pixel" or (options.coordinates == "pytorch_half_pixel" and not single)
    return {"mode": name, "align_corners": False} if half else None


@TORCH.op("GridSample")
def grid_sample(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    if name == "bicubic" and X.ndim != 4:
        raise UnsupportedOp("cubic sampling of volumes does not exist in PyTorch")
    return F.grid_sample(X, grid, name, padding_mode, bool(align_corners))


@TORCH.op("AffineGrid")
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    return F.affine_grid(theta, list(size), bool(align_corners))


@TORCH.op("CenterCropPad")
def center_crop_pad(input_data: Tensor, shape: Ints, *, axes: tuple[int, ...] | None = None) -> Tensor:
    axes = tuple(a % input_data.ndim for a in axes) if axes is not None else tuple(range(input_data.ndim))
    pads = [0] * (2 * input_data.ndim)
    for axis, target in zip(axes, shape, strict=True):
        size = input_data.shape[axis]
        low = (size - target) // 2 if target < size else (target - size) // 2
        if target < size:
            input_data = input_data.narrow(axis, low, target)
        else:
            place = 2 * (input_data.ndim - 1 - axis)
            pads[place : place + 2] = [low, target - size - low]
    return F.pad(input_data, pads) if any(pads) else input_data


@TORCH.op("Col2Im")
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
    strides, dilations = ones(strides, rank), ones(dilations, rank)
    pads = pads or (0,) * (2 * rank)
    if rank == 2 and pads[:2] == pads[2:]:
        return F.fold(input, image_shape, block_shape, dilations, pads[:2], strides)
    padded = [n + low + high for n, low, high in zip(image_shape, pads[:rank], pads[rank:], strict=True)]
    places = torch.tensor(block_places(padded, block_shape, strides, dilations))
    batch, channels = input.shape[0], input.shape[1] // math.prod(block_shape)
    columns = input.reshape(batch, channels, -1)
    flat = torch.zeros((batch, channels, math.prod(padded)), dtype=input.dtype)
    image = flat.scatter_add(2, places.expand(columns.shape), columns).reshape(batch, channels, *padded)
    for axis, (low, size) in enumerate(zip(pads[:rank], image_shape, strict=True)):
        image = image.narrow(2 + axis, low, size)
    return image


@TORCH.op("RoiAlign")
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
    corners = rois * spatial_scale - (0.5 if half else 0.0)
    left, top, right, bottom = corners.unbind(1)
    width, height = right - left, bottom - top
    if not half:
        width, height = torch.clamp(width, min=1.0), torch.clamp(height, min=1.0)
    ys = _bin_samples(top, height, output_height, sampling_ratio)
    xs = _bin_samples(left, width, output_width, sampling_ratio)
    y_low, y_high, y_weights = _bilinear(ys, X.shape[2])
    x_low, x_high, x_weights = _bilinear(xs, X.shape[3])
    images = X[batch_indices]
    corner_values = [
        _take(images, y, x) * (wy.unsqueeze(2) * wx.unsqueeze(1)).unsqueeze(1)
        for y, wy in ((y_low, y_weights[0]), (y_high, y_weights[1]))
        for x, wx in ((x_low, x_weights[0]), (x_high, x_weights[1]))
    ]
    shape = (rois.shape[0], X.shape[1], output_height, sampling_ratio, output_width, sampling_ratio)
    if mode == "max":
        return torch.stack(corner_values).amax(0).reshape(shape).amax((3, 5))
    return sum(corner_values[1:], corner_values[0]).reshape(shape).mean((3, 5))


def _bin_samples(start: Tensor, extent: Tensor, bins: int, ratio: int) -> Tensor:
    """[rois, bins * ratio] sample positions."""
    offsets = torch.tensor(grids.roi_offsets(bins, ratio), dtype=start.dtype)
    return start.unsqueeze(1) + offsets * (extent / bins).unsqueeze(1)


def _bilinear(position: Tensor, size: int) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Neighbours of each position and their weights, zero outside [-1, size]."""
    inside = ((position >= -1.0) & (position <= size)).to(position.dtype)
    clamped = torch.clamp(position, 0.0, size - 1)
    low = torch.floor(clamped)
    high = torch.clamp(low + 1, max=size - 1)
    fraction = clamped - low
    return low.to(torch.int64), high.to(torch.int64), ((1.0 - fraction) * inside, fraction * inside)


def _take(images: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """images [rois, C, H, W] at rows y [rois, P] and columns x [rois, Q]: [rois, C, P, Q]."""
    rows = y[:, None, :, None].expand(-1, images.shape[1], -1, images.shape[3])
    picked = torch.gather(images, 2, rows)
    columns = x[:, None, None, :].expand(-1, images.shape[1], y.shape[1], -1)
    return torch.gather(picked, 3, columns)


@TORCH.op("DeformConv")
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
    if X.ndim != 4:
        raise UnsupportedOp("deformable convolution is implemented over two spatial axes")
    del kernel_shape
    (batch, channels, height, width), (kh, kw) = X.shape, W.shape[2:]
    strides, dilations, pads = ones(strides, 2), ones(dilations, 2), pads or (0, 0, 0, 0)
    out_h, out_w = offset.shape[2:]
    shifts = offset.reshape(batch, offset_group, kh * kw, 2, out_h, out_w)
    rows, columns = grids.deform_base((kh, kw), (out_h, out_w), strides, dilations, pads)
    y = shifts[:, :, :, 0] + torch.tensor(rows, dtype=X.dtype)
    x = shifts[:, :, :, 1] + torch.tensor(columns, dtype=X.dtype)
    grid = torch.stack((2 * x / max(width - 1, 1) - 1, 2 * y / max(height - 1, 1) - 1), -1)
    images = X.reshape(batch * offset_group, channels // offset_group, height, width)
    sampled = F.grid_sample(images, grid.reshape(batch * offset_group, kh * kw * out_h, out_w, 2), align_corners=True)
    sampled = sampled.reshape(batch, offset_group, -1, kh * kw, out_h, out_w)
    if mask is not None:
        sampled = sampled * mask.reshape(batch, offset_group, 1, kh * kw, out_h, out_w)
    columns_in = sampled.reshape(batch, group, -1, out_h * out_w)
    kernel = W.reshape(group, W.shape[0] // group, -1)
    result = torch.matmul(kernel, columns_in).reshape(batch, W.shape[0], out_h, out_w)
    return result if B is None else result + B.reshape(1, -1, 1, 1)


@TORCH.op("NonMaxSuppression")
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Ints | None = None,
    iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None,
    *,
    center_point_box: int = 0,
) -> Tensor:
    """One round per kept box, over all batches and classes at once; rows are cut to the kept ones at the end."""
    (batches, classes, count), kept = scores.shape, max_output_boxes_per_class[0] if max_output_boxes_per_class else 0
    overlap = _overlaps(boxes, bool(center_point_box))
    limit = 0.0 if iou_threshold is None else iou_threshold
    alive = torch.ones_like(scores, dtype=torch.bool) if score_threshold is None else scores > score_threshold
    batch = torch.arange(batches).unsqueeze(1).expand(batches, classes)
    label = torch.arange(classes).unsqueeze(0).expand(batches, classes)
    rows, valid = [torch.zeros((batches, classes, 3), dtype=torch.int64)], [torch.zeros_like(alive[..., 0])]
    for _ in range(min(kept, count)):
        best = torch.argmax(torch.where(alive, scores, float("-inf")), -1)
        valid.append(alive.any(-1))
        rows.append(torch.stack((batch, label, best), -1))
        near = overlap[batch, best] > limit
        alive = alive & ~near & (torch.arange(count) != best.unsqueeze(-1))
    return torch.stack(rows, 2).reshape(-1, 3)[torch.stack(valid, 2).reshape(-1)]


def _overlaps(boxes: Tensor, centred: bool) -> Tensor:
    """Intersection over union of every pair: [batch, boxes, boxes]."""
    if centred:
        x, y, width, height = boxes.unbind(-1)
        left, top, right, bottom = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    else:
        y1, x1, y2, x2 = boxes.unbind(-1)
        left, right = torch.minimum(x1, x2), torch.maximum(x1, x2)
        top, bottom = torch.minimum(y1, y2), torch.maximum(y1, y2)

    def shared(low: Tensor, high: Tensor) -> Tensor:
        width = torch.minimum(high.unsqueeze(-1), high.unsqueeze(-2)) - torch.maximum(
            low.unsqueeze(-1), low.unsqueeze(-2)
        )
        return torch.clamp(width, min=0.0)

    area = (right - left) * (bottom - top)
    common = shared(left, right) * shared(top, bottom)
    return common / (area.unsqueeze(-1) + area.unsqueeze(-2) - common)
