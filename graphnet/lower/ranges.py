"""Which integers cannot be negative: ONNX counts negative indices from the end, frameworks often do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphnet.ir.graph import Constant, Input, Node, Uniform, Values

if TYPE_CHECKING:
    from graphnet.lower.table import Scope

DEPTH = 64
"""Nodes looked back through at most; an index further away than this counts as unknown."""
_FROM_FIRST = frozenset({
    "Cast", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "ReduceMax", "ReduceMin",
    "ReduceSum", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze", "CumSum",
})  # fmt: skip
_FROM_ALL = frozenset({"Add", "Concat", "Div", "Max", "Min", "Mod", "Mul", "Sum"})
_ALWAYS = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"})


def nonnegative(scope: Scope, name: str, depth: int = DEPTH) -> bool:
    """Whether no element of a visible value can be below zero.

    Known arrays are looked at; inputs are as their fill says; nodes that move, add or multiply hand it on.
    """
    known = scope.known(name)
    if known is not None:
        return known.dtype.kind in "biu" and bool((known >= 0).all())
    if scope.type_of(name).dtype.startswith(("uint", "bool")):
        return True
    made = scope.producer(name)
    if made is not None:
        return depth > 0 and _result(*made, name, depth - 1)
    return _filled(scope, name)


def _result(scope: Scope, node: Node, name: str, depth: int) -> bool:
    if node.domain:
        return False
    if node.op in _ALWAYS or (node.op == "TopK" and name == node.outputs[1]):
        return True
    sources = node.inputs[1:] if node.op == "Where" else node.inputs if node.op in _FROM_ALL else node.inputs[:1]
    if node.op not in _FROM_ALL | _FROM_FIRST | {"Where"}:
        return False
    return all(nonnegative(scope, source, depth) for source in sources)


def _filled(scope: Scope, name: str) -> bool:
    """Whether a graph input is filled with integers from zero up (inputs of nested graphs are unknown)."""
    item: Input | None = next((item for item in scope.graph.inputs if item.name == name), None)
    if item is None or scope.parent is not None:
        return scope.parent is not None and name not in scope.env and _filled(scope.parent, name)
    if not item.dtype.startswith("int"):
        return False
    if isinstance(item.fill, Uniform):
        return item.fill.low >= 0
    if isinstance(item.fill, Constant):
        return isinstance(item.fill.value, bool | int) and item.fill.value >= 0
    return isinstance(item.fill, Values) and all(isinstance(v, int) and v >= 0 for v in item.fill.data)
