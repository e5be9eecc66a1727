"""Inputs of a PyTorch capture: from example arguments or declared as GraphIR inputs, and tensors made of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from graphnet.errors import UsageError
from graphnet.ir import dims as dimensions
from graphnet.ir import tensors
from graphnet.ir.graph import Constant, Dim, DType, Fill, Input, Normal, Uniform

_DTYPES: dict[torch.dtype, DType] = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.complex64: "complex64",
    torch.complex128: "complex128",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.uint8: "uint8",
    torch.bool: "bool",
}
_EXAMPLE_SIZES = (2, 3, 5, 7, 11, 13)
"""Sizes below 2 would be specialised by torch.export, equal ones taken for the same dimension."""


class Call(msgspec.Struct, frozen=True):
    """How a module is called: its tensor inputs, and the argument structure that they are put into."""

    inputs: tuple[Input, ...]
    spec: Any
    """Tree structure of `(args, kwargs)`."""
    leaves: tuple[Any, ...]
    """Leaves of that tree, of which the tensors are placeholders."""


def declared(inputs: Sequence[Input]) -> Call:
    """Every input is a keyword argument of the same name."""
    leaves, spec = pytree.tree_flatten(((), {item.name: torch.empty(0) for item in inputs}))
    return Call(tuple(inputs), spec, tuple(leaves))


def from_examples(
    model: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dims: Mapping[str, Dim],
    axes: Mapping[str, Mapping[int, str]] | None,
    fills: Mapping[str, Fill],
) -> Call:
    """Inputs named after the parameters of `model.forward` that the example arguments bind to.

    `axes` maps input names to their symbolic axes; without it the first dimension of `dims` is axis 0 of every input of
    at least one axis. `fills` gives the data of an input by name; otherwise it is read off the example. Raises
    UsageError when `axes` names an unknown input or axis.
    """
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    names = _argument_names(model, args, kwargs)
    examples = {name: leaf for name, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.Tensor)}
    if axes is None:
        first = next(iter(dims), None)
        axes = {name: {0: first} for name, tensor in examples.items() if first is not None and tensor.dim() > 0}
    for name, item in axes.items():
        if name not in examples:
            raise UsageError(f"axes names the input '{name}'; the model is called with {', '.join(examples)}")
        for axis, symbol in item.items():
            if symbol not in dims or not 0 <= axis < examples[name].dim():
                raise UsageError(
                    f"axes of input '{name}': axis {axis} as '{symbol}' is not an axis of it, or not in dims"
                )
    inputs = tuple(
        Input(
            name=name,
            dtype=dtype_of(tensor),
            shape=tuple(axes.get(name, {}).get(axis, size) for axis, size in enumerate(tensor.shape)),
            fill=fills.get(name) or example_fill(tensor),
        )
        for name, tensor in examples.items()
    )
    return Call(inputs, spec, tuple(leaves))


def dtype_of(tensor: torch.Tensor) -> DType:
    """GraphIR's name of the tensor's dtype. Raises UsageError for one that ONNX lacks."""
    if tensor.dtype not in _DTYPES:
        raise UsageError(f"a tensor of {tensor.dtype} cannot be captured; use one of {', '.join(_DTYPES.values())}")
    return _DTYPES[tensor.dtype]


def example_fill(tensor: torch.Tensor) -> Fill:
    """Data like the example's: constant, uniform over its integers or probabilities, else normal by its statistics."""
    if tensor.numel() == 0:
        return Constant(value=0)
    if tensor.is_complex():
        return Normal()
    values = tensor.detach().double()
    low, high = float(values.min()), float(values.max())
    exact = not tensor.is_floating_point()
    if low == high:
        value = bool(low) if tensor.dtype == torch.bool else int(low) if exact else low
        return Constant(value=value)
    if exact:
        return Uniform(low=int(low), high=int(high))
    if low >= 0 and high <= 1:
        return Uniform(low=0.0, high=1.0)
    return Normal(mean=float(f"{float(values.mean()):.3g}"), std=float(f"{float(values.std()):.3g}"))


def example_sizes(dims: Mapping[str, Dim]) -> dict[str, int]:
    """A size for each dimension to trace with: at least 2, all different where the ranges allow, near the default."""
    sizes: dict[str, int] = {}
    for name, dim in dims.items():
        if dim.max < 2:
            raise UsageError(f"dimension '{name}' has the single size {dim.max}: write it as a number, not in dims")
        options = [dim.default, *(size for size in _EXAMPLE_SIZES if dim.min <= size <= dim.max), dim.max]
        legal = [size for size in options if size >= 2]
        sizes[name] = next((size for size in legal if size not in sizes.values()), legal[0])
    return sizes


def make(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int = 0) -> list[torch.Tensor]:
    """Tensors for the inputs with every symbol bound by `sizes`."""
    made = []
    for position, item in enumerate(inputs):
        shape = tuple(dimensions.evaluate(dim, sizes) for dim in item.shape)
        fill = item.fill
        if isinstance(fill, Uniform) and isinstance(fill.high, str):
            fill = msgspec.structs.replace(fill, high=dimensions.evaluate(fill.high, sizes))
        made.append(to_torch(tensors.fill_array(fill, item.dtype, shape, item.name, (seed << 64) + position)))
    return made


def to_torch(array: np.ndarray) -> torch.Tensor:
    """A tensor that owns its memory; bfloat16 arrays become torch.bfloat16."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array, copy=True))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's values; torch.bfloat16 becomes ml_dtypes' bfloat16."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(tensors.numpy_dtype("bfloat16"))
    return tensor.numpy()


def _argument_names(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    parameters = list(inspect.signature(model.forward).parameters.values())
    positional: list[str] = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [f"{parameter.name}_{index}" for index in range(len(args) - len(positional))]
        elif parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            positional.append(parameter.name)
    paths, _ = pytree.tree_flatten_with_path((dict(enumerate(args)), dict(kwargs)))
    names = []
    for path, _leaf in paths:
        key, *rest = re.findall(r"\w+", pytree.keystr(path[1:]))
        names.append("_".join([positional[int(key)] if key.isdigit() else key, *rest]))
    return names
