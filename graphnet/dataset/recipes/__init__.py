"""The recipes of the core set, one file per source package; modules of the networks themselves are `nets_*.py`."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module

from graphnet.dataset.recipe import Recipe
from graphnet.errors import UsageError

MODULES = (
    "timm",
    "transformers_text",
    "transformers_other",
    "diffusers",
    "torch_geometric",
    "torch_rechub",
    "own",
    "matmul",
)


def load(subsets: Collection[str] | None = None, names: Collection[str] | None = None) -> list[Recipe]:
    """Recipes of the subsets and names (graph ids too), all by default, in table order.

    Raises UsageError for a subset or a name that no recipe has.
    """
    found = [recipe for module in MODULES for recipe in import_module(f"{__name__}.{module}").RECIPES]
    unknown = set(subsets or ()) - {recipe.subset for recipe in found}
    unknown |= set(names or ()) - {recipe.name for recipe in found} - {recipe.graph_id for recipe in found}
    if unknown:
        raise UsageError(f"no recipe for {', '.join(sorted(unknown))}; see the tables in graphnet/dataset/recipes/")
    return [
        recipe
        for recipe in found
        if (not subsets or recipe.subset in subsets) and (not names or recipe.name in names or recipe.graph_id in names)
    ]
