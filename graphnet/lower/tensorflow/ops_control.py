"""TensorFlow rules of control flow: `tf.cond`, `tf.while_loop`; only what these cannot express is unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body
from graphnet.lower.loops import UNROLL_LIMIT, tracks, trip_count
from graphnet.lower.table import Context
from graphnet.lower.tensorflow.axes import plain
from graphnet.lower.tensorflow.layout import known_array, moved, tensor_of
from graphnet.lower.tensorflow.ops import TENSORFLOW


def _body(context: Context, body: Body, *arguments: Any) -> tuple[Any, ...]:
    return tuple(map(tensor_of, context.body(body, *arguments)))


@TENSORFLOW.op("If")
def if_(cond: Tensor, *, else_branch: Body, then_branch: Body, context: Context) -> tuple[Tensor, ...]:
    known = known_array(cond) if context.known(0) is None else context.known(0)
    if known is not None:
        return _body(context, then_branch if bool(known.reshape(-1)[0]) else else_branch)
    try:
        chosen: tuple[Tensor, ...] = tf.cond(
            tf.reshape(cond, ()), lambda: _body(context, then_branch), lambda: _body(context, else_branch)
        )
    except TypeError as error:
        raise UnsupportedOp(f"its branches give different types: {error}") from error
    return chosen


@TENSORFLOW.op("Loop")
def loop(
    M: Tensor | None = None, cond: Tensor | None = None, *v_initial: Tensor, body: Body, context: Context
) -> tuple[Tensor, ...]:
    """A trip count known at compile time lets outputs be stacked; a loop that ends on a condition stacks none."""
    count = trip_count(body, context)
    stacked = len(body.outputs) - 1 - len(v_initial)
    if count is not None:
        return _counted(count, v_initial, stacked, body, context)
    if stacked:
        raise UnsupportedOp("the length of its scan outputs depends on data, and XLA's shapes are static")
    return _while(M, cond, v_initial, body, context)


def _counted(trips: int, initial: tuple[Tensor, ...], stacked: int, body: Body, context: Context) -> tuple[Tensor, ...]:
    def step(index: Tensor, carried: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        results = _body(context, body, tf.cast(index, tf.int64), np.array(True), *carried)[1:]
        return results[: len(initial)], results[len(initial) :]

    try:
        return repeated(trips, initial, stacked, step)
    except (TypeError, ValueError, UnsupportedOp):
        # Carried values whose shapes change, or a body that must know the iteration's number.
        return _unrolled(trips, initial, body, context)


def repeated(trips: int, initial: tuple[Tensor, ...], stacked: int, step: Any) -> tuple[Tensor, ...]:
    """`step(index, carried)` gives the next carried values and `stacked` rows; returns the last and the columns."""
    if not stacked:
        state = tf.while_loop(
            lambda index, _: index < trips,
            lambda index, carried: (index + 1, step(index, carried)[0]),
            (tf.constant(0), tuple(initial)),
            maximum_iterations=trips,
        )
        return tuple(state[1])
    probe = tf.function(step, autograph=False).get_concrete_function(
        tf.TensorSpec((), tf.int32), tuple(tf.TensorSpec(v.shape, v.dtype) for v in initial)
    )
    described = probe.structured_outputs[1]
    arrays = tuple(tf.TensorArray(row.dtype, trips, element_shape=row.shape) for row in described)

    def advance(index: Tensor, carried: Any, columns: Any) -> tuple[Tensor, Any, Any]:
        following, rows = step(index, carried)
        return index + 1, following, tuple(c.write(index, row) for c, row in zip(columns, rows, strict=True))

    _, final, columns = tf.while_loop(
        lambda index, *_: index < trips, advance, (tf.constant(0), tuple(initial), arrays), maximum_iterations=trips
    )
    return (*final, *(column.stack() for column in columns))


def _unrolled(trips: int, initial: tuple[Tensor, ...], body: Body, context: Context) -> tuple[Tensor, ...]:
    if trips > UNROLL_LIMIT:
        raise UnsupportedOp(f"a loop of {trips} iterations whose body changes shapes is not unrolled")
    carried: tuple[Tensor, ...] = initial
    rows: list[tuple[Tensor, ...]] = []
    for index in range(trips):
        results = _body(context, body, np.array(index, np.int64), np.array(True), *carried)[1:]
        carried = results[: len(initial)]
        rows.append(results[len(initial) :])
    return (*carried, *(tf.stack(column) for column in zip(*rows, strict=True)))


def _while(
    M: Tensor | None, cond: Tensor | None, initial: tuple[Tensor, ...], body: Body, context: Context
) -> tuple[Tensor, ...]:
    limit = None if M is None else tf.reshape(M, ())
    start = tf.constant(True) if cond is None else tf.reshape(cond, ())

    def test(index: Tensor, going: Tensor, _: Any) -> Tensor:
        return going if limit is None else going & (index < limit)

    def step(index: Tensor, going: Tensor, carried: Any) -> tuple[Any, ...]:
        following, *results = _body(context, body, index, going, *carried)
        return index + 1, tf.reshape(following, ()), tuple(results)

    try:
        return tuple(tf.while_loop(test, step, (tf.constant(0, tf.int64), start, tuple(initial)))[2])
    except (TypeError, ValueError) as error:
        raise UnsupportedOp(f"its carried values change their types: {error}") from error


@TENSORFLOW.op("Scan")
def scan(
    *initial_state_and_scan_inputs: Tensor,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None = None,
    scan_input_directions: tuple[int, ...] | None = None,
    scan_output_axes: tuple[int, ...] | None = None,
    scan_output_directions: tuple[int, ...] | None = None,
    context: Context,
) -> tuple[Tensor, ...]:
    split = len(initial_state_and_scan_inputs) - num_scan_inputs
    state, scanned = initial_state_and_scan_inputs[:split], initial_state_and_scan_inputs[split:]
    inputs = tracks(scan_input_axes, scan_input_directions, num_scan_inputs)
    rows = [_turned(_to_front(x, axis), back) for x, (axis, back) in zip(scanned, inputs, strict=True)]

    def step(index: Tensor, carried: Any) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        results = _body(context, body, *carried, *(row[index] for row in rows))
        return results[:split], results[split:]

    try:
        results = repeated(rows[0].shape[0], tuple(state), len(body.outputs) - split, step)
    except (TypeError, ValueError) as error:
        raise UnsupportedOp(f"its state changes its type: {error}") from error
    columns = results[split:]
    found = tracks(scan_output_axes, scan_output_directions, len(columns))
    outputs = (_from_front(_turned(column, back), axis) for column, (axis, back) in zip(columns, found, strict=True))
    return (*results[:split], *outputs)


def _turned(x: Tensor, backward: int) -> Tensor:
    return tf.reverse(x, [0]) if backward else x


def _to_front(x: Tensor, axis: int) -> Tensor:
    order = list(plain(len(x.shape)))
    order.insert(0, order.pop(axis))
    return moved(x, tuple(order))


def _from_front(x: Tensor, axis: int) -> Tensor:
    rank = len(x.shape)
    order = list(range(1, rank))
    order.insert(axis % rank, 0)
    return moved(x, tuple(order))
