"""Graph networks of PyTorch Geometric on random graphs of the size of Cora, with random weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from graphnet.dataset.recipe import Recipe, floats, indices
from graphnet.ir.graph import Dim

_DIMS = {"nodes": Dim(min=2, max=20_000, default=2708), "edges": Dim(min=2, max=100_000, default=10_556)}
_INPUTS = (floats("x", "nodes", 256), indices("edge_index", "nodes", 2, "edges"))


def _build(model: str, **config: Any) -> Any:
    from torch_geometric.nn import models

    return getattr(models, model)(**config)


def _recipe(number: int, name: str, model: str, **config: Any) -> Recipe:
    config = {"in_channels": 256, "hidden_channels": 128, "out_channels": 16, "num_layers": 3} | config
    return Recipe(
        graph_id=f"GN-2026-GR-{number:03d}",
        name=name,
        subset="graph",
        package="torch-geometric",
        model=model,
        license="MIT",
        factory=partial(_build, model, **config),
        inputs=_INPUTS,
        dims=_DIMS,
        config=config,
    )


RECIPES = (
    _recipe(1, "gcn", "GCN", add_self_loops=False),
    _recipe(2, "gat", "GAT", heads=4, add_self_loops=False),
    _recipe(3, "graphsage", "GraphSAGE"),
    _recipe(4, "gin", "GIN", norm="batch_norm"),
    _recipe(5, "edgecnn", "EdgeCNN", num_layers=2, hidden_channels=64),
    _recipe(6, "gatv2", "GAT", heads=4, v2=True, add_self_loops=False),
)
