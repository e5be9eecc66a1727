"""What a recipe is: how one graph of the dataset is made again, and short forms for the inputs that recipes declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from graphnet.ir.graph import Constant, Dim, Dimension, Domain, Fill, Graph, Input, Normal, Uniform

if TYPE_CHECKING:
    from torch import nn

BATCH = {"batch": Dim(min=1, max=64, default=1)}


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """One graph: `factory` builds the PyTorch module, called with `inputs` as keyword arguments."""

    graph_id: str
    """`GN-<year>-<domain code>-<number>`; stable for ever, never given to another graph."""
    name: str
    subset: Domain
    package: str
    """Distribution that the architecture comes from, or `own implementation`; its version is stamped at build."""
    model: str
    license: str
    factory: Callable[[], nn.Module] | None = None
    graph: Callable[[], Graph] | None = None
    """For graphs made directly in GraphIR, instead of `factory`."""
    inputs: tuple[Input, ...] = ()
    dims: dict[str, Dim] = {}
    fills: dict[str, Fill] = {}
    """Recipes of parameters by `fnmatch` pattern, before the rules by layer kind."""
    config: dict[str, int | float | str | bool] = {}
    """What was chosen over the package's defaults."""
    compress: bool = False
    """Stored as `.json.zst`."""

    @property
    def file_name(self) -> str:
        """Path below the benchmark folder."""
        return f"{self.subset}/{self.name}.json{'.zst' if self.compress else ''}"


def image(size: int = 224, *, name: str = "x", channels: int = 3) -> Input:
    """A batch of normalised images, (batch, channels, size, size)."""
    return Input(name=name, dtype="float32", shape=("batch", channels, size, size))


def floats(name: str, *shape: Dimension, fill: Fill | None = None) -> Input:
    """A float32 input, standard normal unless `fill` says otherwise."""
    return Input(name=name, dtype="float32", shape=shape, fill=fill or Normal())


def indices(name: str, count: int | str, *shape: Dimension) -> Input:
    """An int64 input of indices into a table of `count` rows (a number, or a dimension expression)."""
    high = count - 1 if isinstance(count, int) else f"{count}-1"
    return Input(name=name, dtype="int64", shape=shape, fill=Uniform(low=0, high=high))


def ones(name: str, *shape: Dimension) -> Input:
    """An int64 input of ones: an attention mask of full sequences."""
    return Input(name=name, dtype="int64", shape=shape, fill=Constant(value=1))
