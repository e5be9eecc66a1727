"""Lowering of a static graph to one JAX function, whose operations carry the names of the graph's nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import DType, Graph, Input, Node, walk
from graphnet.lower.jax.layout import arrange
from graphnet.lower.jax.ops import jax_dtype
from graphnet.lower.jax.ops_all import JAX
from graphnet.lower.table import Scope

_CARRIERS: dict[str, np.dtype[Any]] = {
    "int4": np.dtype(np.int8),
    "uint4": np.dtype(np.uint8),
    "float4e2m1": np.dtype(np.float32),
}
_SCOPE = re.compile(r"\bnode(\d+)_")


@dataclass(frozen=True)
class Lowered:
    """`function(params, *inputs)` returns the outputs; `params` are the graph's weights by name, laid out for it."""

    function: Callable[..., tuple[Any, ...]]
    params: dict[str, np.ndarray]
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    nodes: tuple[str, ...]
    """Names of the graph's nodes, nested ones included, in the order of their scopes."""


def node_of(nodes: Sequence[str], op_name: str) -> str:
    """The one of `Lowered.nodes` that an `op_name` in HLO metadata belongs to (the innermost), `""` for none."""
    found = _SCOPE.findall(op_name)
    return nodes[int(found[-1])] if found else ""


def lower(graph: Graph, tensors: Mapping[str, np.ndarray]) -> Lowered:
    """The graph as a function, channels last inside (see `layout`). Raises UnsupportedOp.

    What a rule must know at compile time is a literal in it; every other weight is an argument, so that XLA cannot
    work on it ahead of the run.
    """
    inputs = tuple(_described(item) for item in graph.inputs)
    for node in walk(graph):
        JAX.entry(node)
    names = [node.name for node in walk(graph)]
    scopes = {name: f"node{index}_{re.sub(r'[^A-Za-z0-9.]+', '_', name)}" for index, name in enumerate(names)}

    def around(node: Node) -> AbstractContextManager[Any]:
        return jax.named_scope(scopes[node.name])

    def function(params: Mapping[str, Any], *inputs: Any) -> tuple[Any, ...]:
        env = {name: _stated(value, graph.weights[name].dtype) for name, value in params.items()}
        env.update((item.name, _stated(value, item.dtype)) for item, value in zip(graph.inputs, inputs, strict=True))
        return Scope(JAX, graph, env, tensors, jnp.asarray, around=around, peek=_concrete).run()

    arranged, params = arrange(function, _run_time(graph, tensors), inputs)
    return Lowered(arranged, params, inputs, tuple(names))


def _described(item: Input) -> jax.ShapeDtypeStruct:
    if any(isinstance(dim, str) for dim in item.shape):
        raise UnsupportedOp(f"jax: input '{item.name}' has symbolic shape {item.shape}; bind the graph first")
    return jax.ShapeDtypeStruct(item.shape, carrier(item.dtype))  # type: ignore[no-untyped-call]


def carrier(dtype: DType) -> np.dtype[Any]:
    """The dtype in which an argument is handed over: XLA takes 4-bit arguments only in a layout of its own."""
    return _CARRIERS.get(dtype) or jax_dtype(dtype)


def _stated(value: Any, dtype: DType) -> Any:
    return value.astype(jax_dtype(dtype)) if dtype in _CARRIERS else value


def _concrete(value: Any) -> np.ndarray | None:
    """The array behind a value that was worked out while tracing (see `ops_control`), else None."""
    return None if isinstance(value, jax.core.Tracer) else np.asarray(value)


def _run_time(graph: Graph, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights that some rule reads at run time (or a nested graph, or an output)."""
    used: set[str] = set(graph.outputs)
    for node in walk(graph):
        static = set(JAX.compile_time_inputs(node))
        used.update(name for index, name in enumerate(node.inputs) if index not in static)
        used.update(name for attr in node.attrs.values() for name in getattr(attr, "outputs", ()))
    return {
        name: np.asarray(tensors[name]).astype(carrier(weight.dtype), copy=False)
        for name, weight in graph.weights.items()
        if name in used
    }
