"""JAX rules of control flow: `lax.cond`, `lax.scan`, `lax.while_loop`; only what these cannot express is unrolled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body
from graphnet.lower.jax.ops import JAX
from graphnet.lower.loops import UNROLL_LIMIT, tracks, trip_count
from graphnet.lower.table import Context


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
    count = trip_count(body, context)
    stacked = len(body.outputs) - 1 - len(v_initial)
    if count is not None:
        return _counted(count, v_initial, body, context)
    if stacked:
        raise UnsupportedOp("the length of its scan outputs depends on data, and XLA's shapes are static")
    return _while(M, cond, v_initial, body, context)


def _counted(trips: int, initial: tuple[Array, ...], body: Body, context: Context) -> tuple[Array, ...]:
    split = len(initial)

    def step(carried: tuple[Array, ...], index: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        results = context.body(body, index, np.array(True), *carried)[1:]
        return results[:split], results[split:]

    try:
        carried, stacked = lax.scan(step, tuple(initial), jnp.arange(trips))
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
    inputs = tracks(scan_input_axes, scan_input_directions, num_scan_inputs)
    ordered = [jnp.flip(x, axis) if back else x for x, (axis, back) in zip(scanned, inputs, strict=True)]

    def step(carried: tuple[Array, ...], slices: tuple[Array, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        results = context.body(body, *carried, *slices)
        return results[:split], results[split:]

    rows = tuple(jnp.moveaxis(x, axis, 0) for x, (axis, _) in zip(ordered, inputs, strict=True))
    try:
        final, columns = lax.scan(step, tuple(state), rows)
    except TypeError as error:
        raise UnsupportedOp(f"its state changes its type: {error}") from error
    found = tracks(scan_output_axes, scan_output_directions, len(columns))
    outputs = (
        jnp.moveaxis(jnp.flip(column, 0) if back else column, 0, axis)
        for column, (axis, back) in zip(columns, found, strict=True)
    )
    return (*final, *outputs)
