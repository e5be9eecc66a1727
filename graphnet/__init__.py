"""GraphNet: computation graphs for tensor compilers, and a bench that runs the same graph through each of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphnet.analyze.score import scores
    from graphnet.api import evaluate_compiler, load_results
    from graphnet.compilers.passes import register_pass
    from graphnet.dataset.catalog import load_graphs
    from graphnet.errors import GraphFormatError, GraphNetError
    from graphnet.frontends.torch import capture
    from graphnet.ir.graph import Graph

__version__ = "0.1.0"

__all__ = [
    "Graph",
    "GraphFormatError",
    "GraphNetError",
    "capture",
    "evaluate_compiler",
    "load_graphs",
    "load_results",
    "register_pass",
    "scores",
]

_HOME = {
    "Graph": "graphnet.ir.graph",
    "GraphFormatError": "graphnet.errors",
    "GraphNetError": "graphnet.errors",
    "capture": "graphnet.frontends.torch",
    "evaluate_compiler": "graphnet.api",
    "load_graphs": "graphnet.dataset.catalog",
    "load_results": "graphnet.api",
    "register_pass": "graphnet.compilers.passes",
    "scores": "graphnet.analyze.score",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphnet' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
