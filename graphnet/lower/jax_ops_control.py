"""JAX rules of control flow: `lax.cond`, `lax.scan`, `lax.while_loop`; only what these cannot express is unrolled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body
from graphnet.lower.jax_ops import JAX
from graphnet.lower.table import Context

UNROLL_LIMIT = 1024
"""Iterations; a longer loop would make a program that XLA does not finish."""


@JAX.op("If")
def if_(cond: Array, *, else_branch: Body, then_branch: Body, context: Context) -> tuple[Array, ...]:
    known = context.known(0)
    if known is not None:
        return context.body(then_branch if bool(known.reshape(-1)[0]) else else_branch)
    try:
        chosen: tuple[Array, ...] = lax.cond(
            cond.reshape(()), lambda: context.body(then_branch), lambda: context.body(else_branch)
        )
    except TypeError as error:
        raise UnsupportedOp(f"its branches give different types: {error}") from error
    return chosen


@JAX.op("Loop")
def loop(
    M: Array | None = None, cond: Array | None = None, *v_initial: Array, body: Body, context: Context
) -> tuple[Array, ...]:
    """A trip count known at compile time gives a scan; a loop that ends on a condition must stack no outputs."""
    trips, going = context.known(0), context.known(1)
    starts = cond is None or (going is not None and bool(going.reshape(-1)[0]))
    if trips is not None and going is not None and not going.reshape(-1)[0]:
        trips, starts = np.array(0), True
    stacked = len(body.outputs) - 1 - len(v_initial)
    if trips is not None and starts and (_keeps_going(body, context) or not trips.reshape(-1)[0]):
        return _counted(int(trips.reshape(-1)[0]), v_initial, body, context)
    if stacked:
        raise UnsupportedOp("the length of its scan outputs depends on data, and XLA's shapes are static")
    return _while(M, cond, v_initial, body, context)


def _keeps_going(body: Body, context: Context) -> bool:
    """Whether the body hands its condition on unchanged, or sets it to true."""
    producers = {name: node for node in body.nodes for name in node.outputs}
    name = body.outputs[0]
    while name in producers and producers[name].op == "Identity":
        name = producers[name].inputs[0]
    if name == body.inputs[1].name:
        return True
    if name in body.weights:
        from graphnet.ir.tensors import fill_array

        weight = body.weights[name]
        return bool(fill_array(weight.fill, weight.dtype, weight.shape, name).reshape(-1)[0])
    known = None if name in producers else context.scope.known(name)
    return known is not None and bool(known.reshape(-1)[0])


def _counted(trips: int, initial: tuple[Array, ...], body: Body, context: Context) -> tuple[Array, ...]:
    split = len(initial)

    def step(carried: tuple[Array, ...], index: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        results = context.body(body, index, np.array(True), *carried)[1:]
        return results[:split], results[split:]

    try:
        carried, stacked = lax.scan(step, tuple(initial), jnp.arange(max(trips, 0)))
    except (TypeError, UnsupportedOp):
        # Carried values whose shapes change, or a body that must know the iteration's number.
        return _unrolled(trips, initial, body, context)
    return (*carried, *stacked)


def _unrolled(trips: int, initial: tuple[Array, ...], body: Body, context: Context) -> tuple[Array, ...]:
    if trips > UNROLL_LIMIT:
        raise UnsupportedOp(f"a loop of {trips} iterations whose body changes shapes is not unrolled")
    carried: tuple[Array, ...] = initial
    rows: list[tuple[Array, ...]] = []
    for index in range(trips):
        # What follows from the iteration's number alone is worked out now, so that it can be a shape.
        with jax.ensure_compile_time_eval():
            results = context.body(body, np.array(index, np.int64), np.array(True), *carried)[1:]
        carried = results[: len(initial)]
        rows.append(results[len(initial) :])
    return (*carried, *(jnp.stack(column) for column in zip(*rows, strict=True)))


def _while(
    M: Array | None, cond: Array | None, initial: tuple[Array, ...], body: Body, context: Context
) -> tuple[Array, ...]:
    limit = None if M is None else jnp.reshape(M, ())
    start = jnp.asarray(True) if cond is None else jnp.reshape(cond, ())

    def test(state: tuple[Any, ...]) -> Array:
        index, going, _ = state
        goes_on: Array = going if limit is None else going & (index < limit)
        return goes_on

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        index, going, carried = state
        following, *results = context.body(body, index, going, *carried)
        return index + 1, jnp.reshape(following, ()), tuple(results)

    try:
        return tuple(lax.while_loop(test, step, (jnp.zeros((), np.int64), start, tuple(initial)))[2])
    except TypeError as error:
        raise UnsupportedOp(f"its carried values change their types: {error}") from error


@JAX.op("Scan")
def scan(
    *initial_state_and_scan_inputs: Array,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None = None,
    scan_input_directions: tuple[int, ...] | None = None,
    scan_output_axes: tuple[int, ...] | None = None,
    scan_output_directions: tuple[int, ...] | None = None,
    context: Context,
) -> tuple[Array, ...]:
    split = len(initial_state_and_scan_inputs) - num_scan_inputs
    state, scanned = initial_state_and_scan_inputs[:split], initial_state_and_scan_inputs[split:]
    axes = scan_input_axes or (0,) * num_scan_inputs
    backward = scan_input_directions or (0,) * num_scan_inputs
    ordered = [jnp.flip(x, axis) if back else x for x, axis, back in zip(scanned, axes, backward, strict=True)]

    def step(carried: tuple[Array, ...], slices: tuple[Array, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        results = context.body(body, *carried, *slices)
        return results[:split], results[split:]

    rows = tuple(jnp.moveaxis(x, axis, 0) for x, axis in zip(ordered, axes, strict=True))
    try:
        final, columns = lax.scan(step, tuple(state), rows)
    except TypeError as error:
        raise UnsupportedOp(f"its state changes its type: {error}") from error
    out_axes = scan_output_axes or (0,) * len(columns)
    out_backward = scan_output_directions or (0,) * len(columns)
    outputs = (
        jnp.moveaxis(jnp.flip(column, 0) if back else column, 0, axis)
        for column, axis, back in zip(columns, out_axes, out_backward, strict=True)
    )
    return (*final, *outputs)
