"""Channels last: rewrites a traced JAX function so that convolution nets keep their channels in the last axis.

ONNX's arrays are [batch, channels, *spatial]; a JAX user writes [batch, *spatial, channels], and XLA's CPU backend runs
that up to twice as fast, but does not move the transposes out of a net that was written the other way round. So each
value is carried here with the order in which its axes really lie: a convolution asks for channels last and yields
channels last, a transpose only renames axes, and what works axis by axis is done in whatever order it finds. All else
gets its operands in ONNX's order. Weights that only convolutions read are laid out [*spatial, in, out] when loaded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend import core

from graphnet.lower.jax.layout_rules import (
    ELEMENTWISE,
    RULES,
    Order,
    Ordered,
    Spread,
    Value,
    bind,
    broadcast,
    convolution,
    in_onnx_order,
    kernel_order,
    plain,
    rank_of,
    reordered,
    transpose,
)  # fmt: skip


def arrange(
    function: Callable[..., Any], params: Mapping[str, np.ndarray], inputs: Sequence[jax.ShapeDtypeStruct]
) -> tuple[Callable[..., Any], dict[str, np.ndarray]]:
    """`function(params, *inputs)` with channels last inside, and the weights laid out as it then expects them.

    Weights that nothing but a transpose reads are laid out transposed. Raises what tracing `function` raises.
    """
    names = sorted(params)
    described = {name: jax.typeof(params[name]) for name in names}
    closed = jax.make_jaxpr(function)(described, *inputs)
    orders = {names[i]: order for i, order in _preferred_orders(closed.jaxpr).items() if i < len(names)}

    def arranged(params: Mapping[str, Any], *inputs: Any) -> tuple[Any, ...]:
        weights = [Ordered(params[name], orders.get(name, plain(params[name].ndim))) for name in names]
        outputs = _run(closed, [*weights, *map(_whole, inputs)])
        return tuple(value.laid(plain(len(value.shape))) for value in outputs)

    laid = {name: np.ascontiguousarray(params[name].transpose(order)) for name, order in orders.items()}
    return arranged, {**params, **laid}


def _preferred_orders(jaxpr: core.Jaxpr) -> dict[int, Order]:
    """Orders in which all readers of an argument (by position) want it, where they agree on another than ONNX's."""
    wanted: dict[int, set[Order]] = defaultdict(set)
    for var in jaxpr.outvars:
        wanted[id(var)].add(())
    for eqn in jaxpr.eqns:
        for place, var in enumerate(eqn.invars):
            wanted[id(var)].add(_wanted_order(eqn, place))
    found = {position: wanted[id(var)] for position, var in enumerate(jaxpr.invars)}
    return {position: next(iter(orders)) for position, orders in found.items() if len(orders) == 1 and () not in orders}


def _wanted_order(eqn: core.JaxprEqn, place: int) -> Order:
    """The order in which an equation wants an operand, `()` for no wish."""
    if eqn.primitive is lax.conv_general_dilated_p and place == 1 and in_onnx_order(eqn):
        return kernel_order(rank_of(eqn, 1))
    return tuple(eqn.params["permutation"]) if eqn.primitive is lax.transpose_p else ()


def _run(closed: core.ClosedJaxpr, arguments: Sequence[Value]) -> list[Value]:
    env: dict[Any, Value] = {}

    def read(var: Any) -> Value:
        return _whole(var.val) if isinstance(var, core.Literal) else env[var]

    env.update(zip(closed.jaxpr.constvars, map(_whole, closed.consts), strict=True))
    env.update(zip(closed.jaxpr.invars, arguments, strict=True))
    for eqn in closed.jaxpr.eqns:
        scope = str(eqn.source_info.name_stack)
        with jax.named_scope(scope) if scope else nullcontext():
            results = _apply(eqn, [read(var) for var in eqn.invars])
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(var) for var in closed.jaxpr.outvars]


def _whole(array: Any) -> Ordered:
    return Ordered(array, plain(np.ndim(array)))


def _called(eqn: core.JaxprEqn) -> core.ClosedJaxpr | None:
    """The function that an equation merely calls."""
    key = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
    name = key.get(eqn.primitive.name)
    found: core.ClosedJaxpr | None = eqn.params[name] if name else None
    return found


def _apply(eqn: core.JaxprEqn, values: list[Value]) -> list[Value]:
    called = _called(eqn)
    if called is not None:
        return _run(called, values)
    name = eqn.primitive.name
    if name == "broadcast_in_dim":
        return [broadcast(eqn, values)]
    if name in RULES and any(map(reordered, values)):
        if name not in ELEMENTWISE:
            values = [v.ordered() if isinstance(v, Spread) and reordered(v) else v for v in values]
        found = RULES[name](eqn, values)
        if found is not None:
            return found
    if eqn.primitive is lax.conv_general_dilated_p and in_onnx_order(eqn):
        return [convolution(eqn, values)]
    if eqn.primitive is lax.transpose_p and (renamed := transpose(eqn, values)) is not None:
        return [renamed]
    arrays = [value.laid(plain(len(value.shape))) for value in values]
    return [_whole(array) for array in bind(eqn, arrays)]
