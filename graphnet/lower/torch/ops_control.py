"""PyTorch rules of control flow: what is known at compile time is unrolled, the rest becomes `torch.cond`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body
from graphnet.lower.loops import UNROLL_LIMIT, tracks
from graphnet.lower.table import Context
from graphnet.lower.torch.ops import TORCH, branches


@TORCH.op("If")
def if_(cond: Tensor, *, else_branch: Body, then_branch: Body, context: Context) -> tuple[Tensor, ...]:
    known = context.known(0)
    if known is not None:
        return context.body(then_branch if bool(known.reshape(-1)[0]) else else_branch)
    return branches(cond.reshape(()), lambda: context.body(then_branch), lambda: context.body(else_branch))


@TORCH.op("Loop")
def loop(
    M: Tensor | None = None, cond: Tensor | None = None, *v_initial: Tensor, body: Body, context: Context
) -> tuple[Tensor, ...]:
    trips = context.known(0)
    limit = None if M is None else _number(M, trips)
    going = True if cond is None else bool(_number(cond, context.known(1)))
    carried = v_initial
    columns: list[list[Tensor]] = [[] for _ in body.outputs[1 + len(carried) :]]
    step = 0
    while going and (limit is None or step < limit):
        if step >= UNROLL_LIMIT:
            raise UnsupportedOp(f"a loop of more than {UNROLL_LIMIT} iterations is not unrolled")
        test, *results = context.body(body, np.array(step, np.int64), np.array(True), *carried)
        carried = tuple(results[: len(carried)])
        for column, value in zip(columns, results[len(carried) :], strict=True):
            column.append(value)
        step += 1
        # A trip count alone ends the loop when the body only hands its condition on.
        going = bool(_number(test, None))
    scans = tuple(_scanned(column, context, len(carried) + i) for i, column in enumerate(columns))
    return (*carried, *scans)


def _number(value: Tensor, known: np.ndarray | None) -> Any:
    """The value where it is known at compile time; reading an unknown one raises inside the recorder."""
    return known.reshape(-1)[0].item() if known is not None else value.reshape(()).item()


def _scanned(column: list[Tensor], context: Context, index: int) -> Tensor:
    if column:
        return torch.stack(column)
    stated = context.type_of(context.node.outputs[index])
    shape = [0, *(int(dim) if isinstance(dim, int) else 0 for dim in stated.shape[1:])]
    from graphnet.lower.torch.tensors import torch_dtype

    return torch.empty(shape, dtype=torch_dtype(stated.dtype))


@TORCH.op("Scan")
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
    length = scanned[0].shape[inputs[0].axis]
    if length > UNROLL_LIMIT:
        raise UnsupportedOp(f"a scan of more than {UNROLL_LIMIT} steps is not unrolled")
    columns: list[list[Tensor]] = [[] for _ in body.outputs[split:]]
    for step in range(length):
        slices = [
            x.select(axis, length - 1 - step if back else step) for x, (axis, back) in zip(scanned, inputs, strict=True)
        ]
        results = context.body(body, *state, *slices)
        state = results[:split]
        for column, value in zip(columns, results[split:], strict=True):
            column.append(value)
    found = tracks(scan_output_axes, scan_output_directions, len(columns))
    outputs = tuple(
        torch.stack(column[::-1] if back else column, axis) for column, (axis, back) in zip(columns, found, strict=True)
    )
    return (*state, *outputs)
