"""Evaluates one node on known arrays with ONNX's reference implementation: for small constants only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator

from graphnet.ir import tensors
from graphnet.ir.graph import Body, Node, Value
from graphnet.ir.onnx_bridge.nodes import attributes_with_defaults, node_proto, schema

_NEVER = frozenset({
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial",
    "If", "Loop", "Scan", "SequenceMap", "Optional", "ImageDecoder",
})  # fmt: skip


def evaluate(node: Node, args: Sequence[np.ndarray | None], types: Sequence[Value]) -> list[np.ndarray] | None:
    """Outputs with the dtypes and shapes of `types`, or None where the reference cannot say (or disagrees)."""
    if node.domain or node.op in _NEVER or schema(node.op) is None:
        return None
    if any(isinstance(value, Body) for value in node.attrs.values()):
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            results = _fast(node, args) or _reference(node, args)
        except Exception:  # any: its operators raise what numpy raises, and an answer is never needed
            return None
    arrays = []
    for array, type_ in zip(results, types, strict=False):
        found = np.asarray(array)
        if type_.dtype == "string":
            found = found.astype(object)
        elif found.dtype != tensors.numpy_dtype(type_.dtype):
            return None
        if any(isinstance(dim, int) and dim != size for dim, size in zip(type_.shape, found.shape, strict=False)):
            return None
        if len(type_.shape) != found.ndim:
            return None
        arrays.append(found)
    return arrays if len(arrays) == len(types) else None


def _reference(node: Node, args: Sequence[np.ndarray | None]) -> Sequence[Any]:
    proto = node_proto(node)
    feeds = {name: array for name, array in zip(node.inputs, args, strict=True) if name}
    outputs: Any = ReferenceEvaluator(proto, opsets={"": 23}).run(None, feeds)
    return list(outputs)


def _fast(node: Node, args: Sequence[np.ndarray | None]) -> Sequence[np.ndarray] | None:
    """The operators that make up shape arithmetic, without the cost of building an evaluator."""
    known = [array for array in args if array is not None]
    if len(known) != len(args):
        return None
    match node.op:
        case "Identity":
            return [known[0]]
        case "Concat":
            return [np.concatenate(known, int(attributes_with_defaults(node)["axis"]))]
        case "Unsqueeze":
            return [np.expand_dims(known[0], tuple(known[1].tolist()))]
        case "Squeeze" if len(known) == 2:
            return [np.squeeze(known[0], tuple(known[1].tolist()))]
        case "Gather":
            return [np.take(known[0], known[1].astype(np.int64), int(attributes_with_defaults(node)["axis"]))]
        case "Add" | "Sub" | "Mul" if known[0].dtype.kind in "iu":
            operation = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[node.op]
            return [operation(known[0], known[1])]
    return None
