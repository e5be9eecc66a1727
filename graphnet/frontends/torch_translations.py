"""Our own rules for PyTorch operators whose translation by torch.onnx adds work or odd types that the model has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from onnxscript import opset23 as op
from onnxscript.function_libs.torch_lib.ops import core as torchlib

if TYPE_CHECKING:
    import onnx_ir


def table() -> dict[Callable[..., Any], Callable[..., Any]]:
    """ATen overloads to the functions that build their ONNX operators."""
    aten = torch.ops.aten
    return {
        aten.conv1d.default: _convolution,
        aten.conv2d.default: _convolution,
        aten.conv3d.default: _convolution,
        aten.conv_transpose1d.default: _transposed_convolution,
        aten.conv_transpose2d.input: _transposed_convolution,
        aten.conv_transpose3d.input: _transposed_convolution,
        aten.split.Tensor: _split,
        aten.split_with_sizes.default: _split,
        aten.chunk.default: _chunk,
        aten.unbind.int: _unbind,
        aten.index.Tensor: _index,
    }


def repair_splits(model: onnx_ir.Model) -> None:
    """Drop `num_outputs` where the sizes are given: it told the exporter how many outputs to make, no more."""
    for node in model.graph.all_nodes():
        if node.op_type == "Split" and len(node.inputs) == 2:
            node.attributes.pop("num_outputs")


def _convolution(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """Without a bias where the model has none: the exporter's rule adds one of computed zeros."""
    rank = len(weight.shape) - 2
    pads = _per_axis(padding, rank)
    return op.Conv(
        input,
        weight,
        bias,
        strides=_per_axis(stride, rank),
        pads=[*pads, *pads],
        dilations=_per_axis(dilation, rank),
        group=groups,
    )


def _transposed_convolution(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    rank = len(weight.shape) - 2
    pads = _per_axis(padding, rank)
    return op.ConvTranspose(
        input,
        weight,
        bias,
        strides=_per_axis(stride, rank),
        pads=[*pads, *pads],
        output_padding=_per_axis(output_padding, rank),
        dilations=_per_axis(dilation, rank),
        group=groups,
    )


def _split(self: Any, split_size: Any, dim: int = 0) -> Any:
    """Split with known sizes: the exporter's rule makes a sequence, which few compilers read."""
    size = self.shape[dim]
    if isinstance(split_size, int) and isinstance(size, int):
        sizes = [min(split_size, size - start) for start in range(0, size, split_size)] or [0]
    elif isinstance(split_size, Sequence) and all(isinstance(item, int) for item in split_size):
        sizes = list(split_size)
    else:
        return op.SplitToSequence(self, split_size, axis=dim)
    if len(sizes) == 1:
        return (op.Identity(self),)
    return op.Split(self, _ints(sizes), axis=dim, num_outputs=len(sizes))


def _chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    size = self.shape[dim]
    if not isinstance(size, int):
        return torchlib.aten_chunk(self, chunks, dim)
    return _split(self, max(1, -(-size // chunks)), dim)


def _unbind(self: Any, dim: int = 0) -> Any:
    size = self.shape[dim]
    if not isinstance(size, int):
        return op.SplitToSequence(self, axis=dim, keepdims=False)
    axis = _ints([dim])
    return tuple(op.Squeeze(part, axis) for part in _split(self, 1, dim))


def _index(self: Any, indices: Sequence[Any]) -> Any:
    """One integer index tensor is a Gather: the exporter's rule builds GatherND with computed coordinates."""
    used = [axis for axis, index in enumerate(indices) if index is not None]
    if len(used) == 1 and indices[used[0]].dtype.name in ("INT32", "INT64"):
        return op.Gather(self, indices[used[0]], axis=used[0])
    return torchlib.aten_index(self, indices)


def _ints(values: Sequence[int]) -> Any:
    return op.Constant(value_ints=values)


def _per_axis(value: int | Sequence[int], rank: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values
