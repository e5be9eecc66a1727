"""Binding symbolic dimensions to sizes: a static graph with its shapes inferred anew and shape arithmetic folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir import dims as dims_
from graphnet.ir import finalize, fold
from graphnet.ir.graph import Dimension, Fill, Graph, Input, Shape, Uniform
from graphnet.ir.onnx_bridge import declared_types
from graphnet.ir.onnx_bridge.read import Declared


def bind(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The static graph at `sizes`; symbols that are not named get their default.

    Sizes that only a run determines stay symbolic. Raises GraphBindError for an unknown symbol, a size outside its
    range, or sizes that do not fit together; GraphFormatError for an invalid graph.
    """
    given = chosen_sizes(graph, sizes)
    if not given:
        return graph
    inputs = tuple(_bound_input(item, given) for item in graph.inputs)
    declared = {
        name: Declared(type_.dtype, None if type_.shape is None else tuple(_at(dim, given) for dim in type_.shape))
        for name, type_ in declared_types(graph).items()
    }
    rest = {name: dim for name, dim in graph.dims.items() if name not in given}
    bound = msgspec.structs.replace(graph, inputs=inputs, dims=rest)
    try:
        static = fold.rewrite(bound, declared)
    except GraphFormatError as error:
        raise GraphBindError(f"{graph.name} does not hold at {_spelled(given)}: {error.cause}") from error
    _check(graph, static, declared, given)
    return finalize.refresh(static, graph)


def chosen_sizes(graph: Graph, sizes: Mapping[str, int]) -> dict[str, int]:
    """A legal size for every symbol that can be bound. Raises GraphBindError."""
    legal = {name: dim for name, dim in graph.dims.items() if not dim.data_dependent}
    for name, size in sizes.items():
        dim = graph.dims.get(name)
        if dim is None:
            known = ", ".join(sorted(legal)) or "none, the graph is static"
            raise GraphBindError(f"{graph.name} has no symbol '{name}'; its symbols are: {known}")
        if dim.data_dependent:
            raise GraphBindError(f"'{name}' of {graph.name} depends on the data of a run; it cannot be bound")
        if isinstance(size, bool) or not isinstance(size, int) or not dim.min <= size <= dim.max:
            raise GraphBindError(f"{name}={size!r} is not an integer in {dim.min}..{dim.max} ({graph.name})")
    return {name: int(sizes.get(name, dim.default)) for name, dim in legal.items()}


def _bound_input(item: Input, given: Mapping[str, int]) -> Input:
    shape: list[Any] = [_at(dim, given) for dim in item.shape]
    for dim, size in zip(item.shape, shape, strict=True):
        if isinstance(size, int) and size < 0:
            raise GraphBindError(f"input '{item.name}': dimension '{dim}' is {size} at {_spelled(given)}")
    return msgspec.structs.replace(item, shape=tuple(shape), fill=_bound_fill(item.fill, given))


def _bound_fill(fill: Fill, given: Mapping[str, int]) -> Fill:
    if isinstance(fill, Uniform) and isinstance(fill.high, str):
        return msgspec.structs.replace(fill, high=_at(fill.high, given))
    return fill


def _at(dim: Dimension | None, given: Mapping[str, int]) -> Any:
    return dim if dim is None or isinstance(dim, int) else dims_.substitute(dim, given)


def _check(graph: Graph, static: Graph, declared: Mapping[str, Declared], given: Mapping[str, int]) -> None:
    for name, value in static.values.items():
        stated = declared.get(name)
        if stated is None or stated.shape is None or stated.shape == value.shape:
            continue
        if stated.dtype != value.dtype or _differ(stated.shape, value.shape):
            raise GraphBindError(
                f"{graph.name} at {_spelled(given)}: '{name}' is {value.dtype}{list(value.shape)},"
                f" the graph states {stated.dtype}{list(stated.shape)}"
            )


def _differ(stated: tuple[Dimension | None, ...], found: Shape) -> bool:
    if len(stated) != len(found):
        return True
    return any(a != b for a, b in zip(stated, found, strict=True) if isinstance(a, int) and isinstance(b, int))


def _spelled(given: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in given.items())
