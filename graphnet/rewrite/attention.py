"""Attention written out: two matrix products, scale, mask and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from graphnet.ir.graph import Attr, DType, Graph, Node, NonFinite, Value, Values, Weight

_PLAIN = frozenset({"scale", "is_causal", "q_num_heads", "kv_num_heads", "qk_matmul_output_mode"})
"""Attributes that `expand_attention` handles; the rest goes the way of the standard's function body."""


def expand_attention(node: Node, types: Sequence[Value | None]) -> Graph | None:
    """The node as a graph with inputs and output of the same names; None for a variant that is not handled here.

    Handled are one output, three or four inputs (query, key, value, mask), as many key heads as query heads. Rows that
    the mask hides entirely give zeros, as the standard's function body does.
    """
    outputs = [name for name in node.outputs if name]
    if len(outputs) != 1 or len([name for name in node.inputs if name]) > 4 or set(node.attrs) - _PLAIN:
        return None
    query, key, value = types[0], types[1], types[2]
    if query is None or key is None or value is None or query.dtype == "bfloat16":
        return None
    mask = types[3] if len(types) > 3 else None
    writer = _Writer(query.dtype)
    heads = int(_number(node, "q_num_heads", query.shape[1] if len(query.shape) == 4 else 0))
    if heads != int(_number(node, "kv_num_heads", key.shape[1] if len(key.shape) == 4 else 0)):
        return None
    batch, queries, keys = int(query.shape[0]), int(query.shape[-2]), int(key.shape[-2])
    flat = len(query.shape) == 3
    depth = int(query.shape[-1]) // heads if flat else int(query.shape[-1])
    width = int(value.shape[-1]) // heads if flat else int(value.shape[-1])
    q, k, v = node.inputs[:3]
    if flat:
        q = writer.split_heads(q, (batch, queries, heads, depth), (0, 2, 1, 3))
        k = writer.split_heads(k, (batch, keys, heads, depth), (0, 2, 3, 1))
        v = writer.split_heads(v, (batch, keys, heads, width), (0, 2, 1, 3))
    else:
        k = writer.add("Transpose", (k,), (batch, heads, depth, keys), perm=(0, 1, 3, 2))
    scale = _number(node, "scale", 1 / math.sqrt(depth))
    scores_shape = (batch, heads, queries, keys)
    scores = writer.add("MatMul", (q, k), scores_shape)
    scores = writer.add("Mul", (scores, writer.scalar("scale", float(scale))), scores_shape)
    if _number(node, "is_causal", 0):
        scores = writer.add("Add", (scores, writer.causal(queries, keys)), scores_shape)
    hidden = ""
    if mask is not None and mask.dtype == "bool":
        scores = writer.add("Where", (node.inputs[3], scores, writer.scalar("hidden", "-inf")), scores_shape)
        hidden = node.inputs[3]
    elif mask is not None:
        scores = writer.add("Add", (scores, node.inputs[3]), scores_shape)
    weights = writer.add("Softmax", (scores,), scores_shape, axis=-1)
    result = writer.add("MatMul", (weights, v), (batch, heads, queries, width))
    if hidden and mask is not None:
        result = writer.zero_hidden_rows(result, hidden, mask.shape, (batch, heads, queries, width))
    if flat:
        result = writer.add("Transpose", (result,), (batch, queries, heads, width), perm=(0, 2, 1, 3))
        result = writer.reshape(result, (batch, queries, heads * width))
    return writer.graph(result, outputs[0])


def _number(node: Node, name: str, default: Attr | int | float | str) -> float:
    value = node.attrs.get(name, default)
    return float(value) if isinstance(value, int | float) else 0.0


class _Writer:
    """Collects nodes, literals and types."""

    def __init__(self, dtype: DType) -> None:
        self._dtype: DType = dtype
        self._nodes: list[Node] = []
        self._weights: dict[str, Weight] = {}
        self._values: dict[str, Value] = {}

    def add(
        self, op: str, inputs: tuple[str, ...], shape: tuple[int, ...], dtype: DType | None = None, **attrs: Attr
    ) -> str:  # fmt: skip
        name = f"{len(self._nodes)}"
        self._nodes.append(Node(op=op, name=name, inputs=inputs, outputs=(name,), attrs=attrs))
        self._values[name] = Value(dtype=dtype or self._dtype, shape=shape)
        return name

    def scalar(self, name: str, value: float | NonFinite) -> str:
        return self._literal(name, self._dtype, (), (value,))

    def reshape(self, value: str, shape: tuple[int, ...]) -> str:
        sizes = self._literal(f"shape{len(self._nodes)}", "int64", (len(shape),), shape)
        return self.add("Reshape", (value, sizes), shape)

    def split_heads(self, value: str, shape: tuple[int, ...], order: tuple[int, ...]) -> str:
        return self.add(
            "Transpose", (self.reshape(value, shape),), tuple(shape[axis] for axis in order), perm=order
        )  # fmt: skip

    def causal(self, queries: int, keys: int) -> str:
        """0 where a query sees a key, -inf above the diagonal."""
        seen = np.tril(np.ones((queries, keys), bool))
        data: tuple[float | NonFinite, ...] = tuple(0.0 if item else "-inf" for item in seen.flat)
        return self._literal("causal", self._dtype, (queries, keys), data)

    def zero_hidden_rows(self, result: str, mask: str, mask_shape: Sequence[int | str], shape: tuple[int, ...]) -> str:
        """Rows without a visible key are NaN after the softmax of -inf."""
        seen_shape = (*(int(size) for size in mask_shape[:-1]), 1)
        number = self.add("Cast", (mask,), tuple(map(int, mask_shape)), to=1, dtype="float32")
        axes = self._literal("last", "int64", (1,), (-1,))
        most = self.add("ReduceMax", (number, axes), seen_shape, dtype="float32", keepdims=1)
        seen = self.add("Cast", (most,), seen_shape, dtype="bool", to=9)
        return self.add("Where", (seen, result, self.scalar("zero", 0.0)), shape)

    def graph(self, result: str, output: str) -> Graph:
        """The collected graph, with `result` under the name `output`."""
        *before, last = self._nodes
        values = dict(self._values)
        values[output] = values.pop(result)
        nodes = (*before, msgspec.structs.replace(last, outputs=(output,)))
        return Graph(name="attention", outputs=(output,), nodes=nodes, weights=self._weights, values=values)

    def _literal(self, name: str, dtype: DType, shape: tuple[int, ...], data: Sequence[float | NonFinite]) -> str:
        name = f"literal.{name}"
        self._weights[name] = Weight(dtype=dtype, shape=shape, fill=Values(data=tuple(data)), role="constant")
        return name
