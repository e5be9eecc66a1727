"""GraphIR-to-GraphIR passes by name: `register_pass`, and applying a list of them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from graphnet.errors import UsageError
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph
from graphnet.ir.tensors import pin_streams
from graphnet.rewrite.fuse_matmul import fuse_parallel_matmuls

Pass = Callable[[Graph], Graph]

DEFAULT = "default"
"""The compiler's own optimisations, always run: GraphIR passes come before them."""

_PASSES: dict[str, Pass] = {"fuse_parallel_matmuls": fuse_parallel_matmuls, "custom_fusion": fuse_parallel_matmuls}


@overload
def register_pass(name: str) -> Callable[[Pass], Pass]: ...
@overload
def register_pass(name: str, function: Pass) -> Pass: ...
def register_pass(name: str, function: Pass | None = None) -> Pass | Callable[[Pass], Pass]:
    """Make a GraphIR pass known by `name` (a decorator, or called with the function); a later one replaces it.

    A pass takes a valid graph and returns a valid graph with the same inputs and outputs.
    """
    if name == DEFAULT:
        raise UsageError(f"the pass name '{DEFAULT}' stands for the compiler's own optimisations")

    def register(function: Pass) -> Pass:
        _PASSES[name] = function
        return function

    return register if function is None else register(function)


def known_passes() -> list[str]:
    """Names that `passes=` takes."""
    return [DEFAULT, *_PASSES]


def require_known(passes: Sequence[str], also: Sequence[str] = ()) -> None:
    """Raises UsageError for an unknown pass, listing the known ones, with those that are known elsewhere."""
    for name in passes:
        if name != DEFAULT and name not in _PASSES:
            raise UsageError(f"unknown pass '{name}'; known: {', '.join([*known_passes(), *also])}")


def apply_passes(graph: Graph, passes: Sequence[str]) -> Graph:
    """The graph after all of the named passes, see `states`."""
    return states(graph, passes)[-1]


def states(graph: Graph, passes: Sequence[str]) -> list[Graph]:
    """The graph before the first pass and after each, validated, with its interface checked and metadata renewed.

    Raises UsageError for an unknown pass (listing the known ones) or one that changes the graph's interface.
    """
    require_known(passes)
    found = [graph]
    for name in passes:
        if name != DEFAULT:
            found.append(_apply(found[-1], name))
    return found


def _apply(graph: Graph, name: str) -> Graph:
    graph = pin_streams(graph)
    result = _PASSES[name](graph)
    result.validate()
    if result.inputs != graph.inputs or len(result.outputs) != len(graph.outputs):
        raise UsageError(f"pass '{name}' changed the inputs or outputs of graph '{graph.name}'")
    for old, new in zip(graph.outputs, result.outputs, strict=True):
        if graph.type_of(old) != result.type_of(new):
            raise UsageError(f"pass '{name}' changed output '{old}' from {graph.type_of(old)} to {result.type_of(new)}")
    return finalize(result)
