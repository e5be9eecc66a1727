"""Weight recipes for PyTorch parameters: initialisation-like scales by layer kind, or matched statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

import torch
from torch import nn

from graphnet.frontends import torch_inputs
from graphnet.ir.graph import Constant, Fill, Normal, Uniform
from graphnet.ir.onnx_bridge.tensors import fill_of

_OUTPUT_MAJOR = ("Conv1D",)
"""Layers by class name whose weight is stored as (in, out)."""


def buffer_recipe(module: nn.Module, name: str) -> Fill | None:
    """Recipe of a running statistic; None for every other buffer, whose exact values are part of the graph."""
    owner, _, leaf = name.rpartition(".")
    if not isinstance(module.get_submodule(owner), nn.modules.batchnorm._NormBase):
        return None
    recipes: dict[str, Fill] = {
        "running_mean": Normal(mean=0.0, std=0.1),
        "running_var": Uniform(low=0.5, high=1.5),
    }
    return recipes.get(leaf)


def override(name: str, overrides: Mapping[str, Fill]) -> Fill | None:
    """The first of `overrides` whose `fnmatch` pattern matches `name`."""
    return next((fill for pattern, fill in overrides.items() if fnmatchcase(name, pattern)), None)


def parameter_recipe(module: nn.Module, name: str, overrides: Mapping[str, Fill]) -> Fill:
    """Recipe of the parameter `name` (dotted) of `module`.

    An override whose pattern (`fnmatch`) matches the name wins. Otherwise normal with variance 1 / fan-in for matrices
    and convolutions (2 / fan-in before a rectifier is close to it, and residual nets grow less), near 1 for
    normalisation weights, 1 / width for embeddings, small for biases and free vectors.
    """
    fill = override(name, overrides)
    if fill is not None:
        return fill
    owner_name, _, leaf = name.rpartition(".")
    owner = module.get_submodule(owner_name)
    shape = owner.get_parameter(leaf).shape
    if leaf.endswith(("gamma", "scale")) or (len(shape) <= 1 and leaf.endswith("weight")):
        return Normal(mean=1.0, std=0.05) if shape else Constant(value=1.0)
    if len(shape) <= 1 or "bias" in leaf:
        return Normal(mean=0.0, std=0.02)
    return Normal(mean=0.0, std=_round(_matrix_std(owner, leaf, tuple(shape))))


def _matrix_std(owner: nn.Module, leaf: str, shape: tuple[int, ...]) -> float:
    if isinstance(owner, nn.Embedding | nn.EmbeddingBag):
        return 1 / math.sqrt(shape[1])
    if isinstance(owner, nn.modules.conv._ConvTransposeNd):
        return 1 / math.sqrt(shape[0] * math.prod(shape[2:]) / owner.groups / math.prod(owner.stride))
    if type(owner).__name__ in _OUTPUT_MAJOR:
        return 1 / math.sqrt(shape[0])
    if "weight" in leaf or "kernel" in leaf:
        return 1 / math.sqrt(math.prod(shape[1:]))
    return 0.02


def statistics_recipe(tensor: torch.Tensor) -> Fill:
    """Normal with the mean, standard deviation and range of `tensor`; constant where all elements are equal."""
    values = tensor.detach().double()
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Constant(value=low)
    return Normal(mean=_round(float(values.mean())), std=_round(float(values.std(unbiased=False))), min=low, max=high)


def exact_recipe(tensor: torch.Tensor) -> Fill:
    """The elements themselves."""
    return fill_of(torch_inputs.to_numpy(tensor), torch_inputs.dtype_of(tensor))


def _round(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")
