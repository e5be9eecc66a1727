"""PyTorch rules that move data: reshape, transpose, slice, join, pad, index."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.lower.table import Context, Ints, Operand, Static
from graphnet.lower.torch.ops import TORCH, prearranged
from graphnet.lower.torch.tensors import dtype_of, torch_dtype


@TORCH.op("Reshape")
def reshape(data: Tensor, shape: Ints, *, allowzero: int = 0) -> Tensor:
    sizes = [data.shape[i] if d == 0 and not allowzero else d for i, d in enumerate(shape)]
    return data if sizes == list(data.shape) else data.reshape(sizes)


@TORCH.op("Flatten")
def flatten(input: Tensor, *, axis: int = 1) -> Tensor:
    axis = axis + input.ndim if axis < 0 else axis
    if axis == 1 and input.ndim > 1:
        return torch.flatten(input, 1)
    rows = int(np.prod(input.shape[:axis], dtype=np.int64))
    return input.reshape(rows, input.numel() // rows if rows else int(np.prod(input.shape[axis:])))


@TORCH.op("Transpose")
def transpose(data: Tensor, *, perm: tuple[int, ...] | None = None) -> Tensor:
    return data.permute(perm if perm is not None else tuple(reversed(range(data.ndim))))


@TORCH.op("Squeeze")
def squeeze(data: Tensor, axes: Ints | None = None) -> Tensor:
    return data.squeeze() if axes is None else data.squeeze(axes)


@TORCH.op("Unsqueeze")
def unsqueeze(data: Tensor, axes: Ints) -> Tensor:
    rank = data.ndim + len(axes)
    for axis in sorted(a % rank for a in axes):
        data = data.unsqueeze(axis)
    return data


@TORCH.op("Expand")
def expand(input: Tensor, shape: Ints) -> Tensor:
    target = torch.broadcast_shapes(input.shape, shape)
    return input if target == input.shape else input.expand(target)


@TORCH.op("Tile")
def tile(input: Tensor, repeats: Ints) -> Tensor:
    return input.repeat(repeats)


@TORCH.op("Concat")
def concat(*inputs: Tensor, axis: int) -> Tensor:
    return torch.cat(inputs, dim=axis) if len(inputs) > 1 else inputs[0]


@TORCH.op("Split")
def split(
    input: Tensor, split: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, context: Context
) -> tuple[Tensor, ...]:
    if split is not None:
        return tuple(torch.split(input, list(split), axis))
    parts = num_outputs or len(context.node.outputs)
    size = -(-input.shape[axis] // parts)
    return tuple(torch.split(input, size, axis))


@TORCH.op("Slice")
def slice_(data: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Tensor:
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    index: list[Any] = [slice(None)] * data.ndim
    flips: list[int] = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        kept = range(data.shape[axis])[slice(start, None if _before_first(end, data.shape[axis], step) else end, step)]
        if step < 0:
            flips.append(axis % data.ndim)
            kept = kept[::-1]
        if kept != range(data.shape[axis]):
            first, last = (kept[0], kept[-1] + 1) if len(kept) else (0, 0)
            index[axis] = slice(first, last, kept.step) if kept.step > 1 else slice(first, last)
    while index and index[-1] == slice(None):
        index.pop()
    data = data[tuple(index)] if index else data
    return torch.flip(data, flips) if flips else data


def _before_first(end: int, size: int, step: int) -> bool:
    """ONNX clamps a far negative end of a backward slice to 'before the first', which Python spells None."""
    return step < 0 and end < -size


@TORCH.op("Gather")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0, context: Context) -> Tensor:
    known = context.known(1)
    if known is not None and known.ndim == 0:
        return data.select(axis, int(known))
    axis = axis % data.ndim
    if not context.nonnegative(1):
        return data[(slice(None),) * axis + (indices,)]
    if indices.ndim == 1:
        return torch.index_select(data, axis, indices)
    if axis == 0 and data.ndim == 2:
        return F.embedding(indices, data)
    rows = torch.index_select(data, axis, prearranged(torch.flatten, indices))
    return rows.reshape(*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])


@TORCH.op("GatherElements")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0, context: Context) -> Tensor:
    return torch.gather(data, axis, _wrapped(indices, data.shape[axis], context))


def _wrapped(indices: Tensor, size: int, context: Context) -> Tensor:
    """The node's second input as int64 in 0..size-1; ONNX counts negative indices from the end."""
    if context.nonnegative(1):
        return indices.to(torch.int64)
    known = context.known(1)
    if known is not None:
        return torch.tensor(np.where(known < 0, known + size, known), dtype=torch.int64)
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


@TORCH.op("GatherND")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    batch = [
        torch.arange(size).reshape([size if i == dim else 1 for i in range(indices.ndim - 1)])
        for dim, size in enumerate(data.shape[:batch_dims])
    ]
    return data[(*batch, *indices.unbind(-1))]


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@TORCH.op("ScatterElements")
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none", context: Context
) -> Tensor:
    indices = _wrapped(indices, data.shape[axis], context)
    if reduction == "none":
        return torch.scatter(data, axis, indices, updates)
    if reduction == "add":
        return torch.scatter_add(data, axis, indices, updates)
    return torch.scatter_reduce(data, axis, indices, updates, _REDUCTIONS[reduction])


@TORCH.op("ScatterND")
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    index = indices.to(torch.int64).unbind(-1)
    if reduction == "none":
        return torch.index_put(data, index, updates)
    if reduction == "add":
        return torch.index_put(data, index, updates, accumulate=True)
    depth = indices.shape[-1]
    flat = torch.zeros(indices.shape[:-1], dtype=torch.int64)
    for size, part in zip(data.shape[:depth], index, strict=True):
        flat = flat * size + torch.where(part < 0, part + size, part)
    rows = data.reshape(int(np.prod(data.shape[:depth])), -1)
    source = updates.reshape(flat.numel(), -1)
    where = flat.reshape(-1, 1).expand(source.shape)
    return torch.scatter_reduce(rows, 0, where, source, _REDUCTIONS[reduction]).reshape(data.shape)


@TORCH.op("Pad")
def pad(
    data: Tensor,
    pads: Ints,
    constant_value: Operand = None,
    axes: Ints | None = None,
    *,
    mode: str = "constant",
    context: Context,
) -> Tensor:
    rank = data.ndim
    axes = tuple(a % rank for a in axes) if axes is not None else tuple(range(rank))
    before, after = [0] * rank, [0] * rank
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        before[axis], after[axis] = low, high
    if mode == "constant":
        return _pad_constant(data, before, after, context.known(2), constant_value)
    for axis in range(rank):
        if before[axis] or after[axis]:
            size = data.shape[axis]
            positions = _pad_positions(size, before[axis], after[axis], mode)
            data = torch.index_select(data, axis, torch.tensor(positions))
    return data


def _pad_constant(
    data: Tensor, before: list[int], after: list[int], known: np.ndarray | None, value: Tensor | float | None
) -> Tensor:
    pads = [p for low, high in zip(reversed(before), reversed(after), strict=True) for p in (low, high)]
    while len(pads) > 2 and pads[-2:] == [0, 0]:
        del pads[-2:]
    if known is not None:
        return F.pad(data, pads, value=known.item())
    if not isinstance(value, Tensor):
        return F.pad(data, pads, value=value or 0)
    inside = F.pad(torch.ones(data.shape, dtype=torch.bool), pads, value=False)
    return torch.where(inside, F.pad(data, pads), value)


def _pad_positions(size: int, before: int, after: int, mode: str) -> list[int]:
    core = np.arange(size)[max(0, -before) : size + min(0, after)]
    return [int(i) for i in np.pad(core, (max(0, before), max(0, after)), mode=mode)]  # type: ignore[call-overload]


@TORCH.op("DepthToSpace")
def depth_to_space(input: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    if mode == "CRD":
        return F.pixel_shuffle(input, blocksize)
    n, c, h, w = input.shape
    blocks = input.reshape(n, blocksize, blocksize, c // blocksize**2, h, w)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(n, c // blocksize**2, h * blocksize, w * blocksize)


@TORCH.op("SpaceToDepth")
def space_to_depth(input: Tensor, *, blocksize: int) -> Tensor:
    n, c, h, w = input.shape
    blocks = input.reshape(n, c, h // blocksize, blocksize, w // blocksize, blocksize)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(n, c * blocksize**2, h // blocksize, w // blocksize)


@TORCH.op("Constant")
def constant(
    *,
    sparse_value: Any = None,
    value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None,
    value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None,
    value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None,
    context: Context,
) -> Any:
    if value is not None:
        return context.scope.literal(value)
    for floats in (value_float, value_floats):
        if floats is not None:
            return context.scope.literal(np.asarray(floats, np.float32))
    for integers in (value_int, value_ints):
        if integers is not None:
            return context.scope.literal(np.asarray(integers, np.int64))
    del sparse_value, value_string, value_strings
    raise UnsupportedOp("sparse and string constants have no tensor form")


@TORCH.op("ConstantOfShape")
def constant_of_shape(input: Ints, *, value: np.ndarray | None = None) -> Tensor:
    if value is None:
        return torch.zeros(input, dtype=torch.float32)
    return torch.full(input, value.item(), dtype=dtype_of(value))


@TORCH.op("Shape")
def shape(data: Tensor, *, end: int | None = None, start: int = 0) -> Tensor:
    return torch.tensor(list(data.shape)[start:end], dtype=torch.int64)


@TORCH.op("Size")
def size(data: Tensor) -> Tensor:
    return torch.tensor(data.numel(), dtype=torch.int64)


@TORCH.op("Range")
def range_(start: Static, limit: Static, delta: Static) -> Tensor:
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=dtype_of(start))


@TORCH.op("EyeLike")
def eye_like(input: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    kind = torch_dtype(dtype) if dtype is not None else input.dtype
    rows, columns = input.shape
    if k == 0:
        return torch.eye(rows, columns, dtype=kind)
    return (torch.arange(columns) == torch.arange(rows).unsqueeze(1) + k).to(kind)


@TORCH.op("Trilu")
def trilu(input: Tensor, k: Ints | None = None, *, upper: int = 1) -> Tensor:
    diagonal = k[0] if k else 0
    return torch.triu(input, diagonal) if upper else torch.tril(input, diagonal)


@TORCH.op("NonZero")
def non_zero(X: Tensor) -> Tensor:
    return torch.nonzero(X).t()


@TORCH.op("Compress")
def compress(input: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    data = input.reshape(-1) if axis is None else input
    dim = 0 if axis is None else axis % input.ndim
    kept = torch.nonzero(condition).reshape(-1)
    return torch.index_select(data, dim, kept)


@TORCH.op("OneHot")
def one_hot(indices: Tensor, depth: Ints, values: Tensor, *, axis: int = -1) -> Tensor:
    size = depth[0]
    rank = indices.ndim + 1
    axis = axis % rank
    classes = torch.arange(size).reshape([size if i == axis else 1 for i in range(rank)])
    hot = torch.remainder(indices.to(torch.int64), size).unsqueeze(axis) == classes
    inside = ((indices >= -size) & (indices < size)).unsqueeze(axis)
    return torch.where(hot & inside, values[1], values[0])


@TORCH.op("ReverseSequence")
def reverse_sequence(input: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    steps = input.shape[time_axis]
    time = torch.arange(steps).unsqueeze(1)
    lengths = sequence_lens.unsqueeze(0)
    source = torch.where(time < lengths, lengths - 1 - time, time)
    view = [1] * input.ndim
    view[time_axis], view[batch_axis] = steps, input.shape[batch_axis]
    source = (source if time_axis < batch_axis else source.t()).reshape(view)
    return torch.gather(input, time_axis, source.expand(input.shape))
