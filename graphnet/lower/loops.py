"""What Loop and Scan state about their iterations, worked out in numbers, for any framework."""

from __future__ import annotations

from typing import NamedTuple

from graphnet.ir.graph import Body
from graphnet.ir.tensors import fill_array
from graphnet.lower.table import Context

UNROLL_LIMIT = 1024
"""Iterations; a longer loop would make a program that no compiler finishes."""


class Track(NamedTuple):
    """The axis along which a scan cuts an input or stacks an output, and whether from the end."""

    axis: int
    backward: bool


def tracks(axes: tuple[int, ...] | None, directions: tuple[int, ...] | None, count: int) -> list[Track]:
    """One entry per scanned input or output of a Scan; axis 0, forward by default."""
    none = (0,) * count
    return [Track(axis, bool(back)) for axis, back in zip(axes or none, directions or none, strict=True)]


def trip_count(body: Body, context: Context) -> int | None:
    """How often a Loop node runs where that is known at compile time, else None."""
    trips, going = context.known(0), context.known(1)
    if trips is None:
        return None
    if going is not None and not going.reshape(-1)[0]:
        return 0
    inputs = context.node.inputs
    if going is None and len(inputs) > 1 and inputs[1]:
        return None
    count = int(trips.reshape(-1)[0])
    return max(0, count) if not count or _keeps_going(body, context) else None


def _keeps_going(body: Body, context: Context) -> bool:
    """Whether a Loop's body hands its condition on unchanged, or sets it to true."""
    producers = {name: node for node in body.nodes for name in node.outputs}
    name = body.outputs[0]
    while name in producers and producers[name].op == "Identity":
        name = producers[name].inputs[0]
    if name == body.inputs[1].name:
        return True
    if name in body.weights:
        weight = body.weights[name]
        return bool(fill_array(weight.fill, weight.dtype, weight.shape, name).reshape(-1)[0])
    known = None if name in producers else context.scope.known(name)
    return known is not None and bool(known.reshape(-1)[0])
