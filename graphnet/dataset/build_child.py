"""The child that builds one graph: capture, then the gates that every graph of the collection passes."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import msgspec
import numpy as np

from graphnet.dataset import recipes
from graphnet.dataset.recipe import Recipe
from graphnet.errors import CaptureError
from graphnet.frontends import check, registry
from graphnet.ir import finalize, tensors
from graphnet.ir.graph import Graph, Source

SENSITIVITY = 1e-3
"""Some output must move by this much of its largest value when the inputs change, or errors would stay hidden."""
LARGEST = 1e4
"""Outputs beyond this make absolute tolerances meaningless."""


def capture(recipe: Recipe) -> Graph:
    """The recipe's graph, finished, compared with its source and fit for the collection. Raises CaptureError."""
    source = provenance(recipe)
    if recipe.graph is not None:
        made = recipe.graph()
        graph = finalize.finalize(
            msgspec.structs.replace(
                made, graph_id=recipe.graph_id, name=recipe.name, domain=recipe.subset, source=source
            )
        )
    else:
        from graphnet.frontends import torch as torch_capture

        if recipe.factory is None:
            raise CaptureError(f"{recipe.name}: the recipe has neither a factory nor a graph")
        graph = torch_capture.capture_factory(
            recipe.factory,
            recipe.inputs,
            name=recipe.name,
            domain=recipe.subset,
            graph_id=recipe.graph_id,
            dims=recipe.dims,
            fills=recipe.fills,
            source=source,
        )
    graph.validate()
    finalize.check(graph)
    require_lively(graph)
    return graph


def provenance(recipe: Recipe) -> Source:
    """Source metadata: the package with its version, or our own implementation, with its licence."""
    source = registry.provenance(recipe.package, recipe.model, **recipe.config)
    return msgspec.structs.replace(source, license=recipe.license)


def require_lively(graph: Graph) -> None:
    """Outputs are finite, of a sane scale, and depend on the inputs. Raises CaptureError naming the output."""
    static = graph.bind()
    weights = tensors.weights(static, 0)
    first = check.run(static, tensors.inputs(static, 0), weights)
    second = check.run(static, tensors.inputs(static, 1), weights)
    moved = 0.0
    for name, one, other in zip(graph.outputs, first, second, strict=True):
        if not np.issubdtype(one.dtype, np.inexact):
            continue
        largest = float(np.abs(one).max(initial=0.0))
        if not np.isfinite(one).all() or largest > LARGEST:
            raise CaptureError(f"{graph.name}: output '{name}' reaches {largest:.3g} with the recipe's weights")
        moved = max(moved, check.relative_error(other, one))
    if moved < SENSITIVITY:
        raise CaptureError(f"{graph.name}: outputs change by {moved:.3g} at most when the inputs do")


def main() -> None:
    """`build_child GRAPH_ID TARGET`."""
    graph_id, target = sys.argv[1:]
    warnings.simplefilter("ignore")
    graph = capture(recipes.load(names=[graph_id])[0])
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    graph.save(target)


if __name__ == "__main__":
    main()
