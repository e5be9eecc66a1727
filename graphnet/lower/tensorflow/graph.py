"""Lowering of a static graph to one TensorFlow function, whose operations carry the names of the graph's nodes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import DType, Graph, Node, walk
from graphnet.lower.table import Scope
from graphnet.lower.tensorflow.axes import Order, kernel_order, plain
from graphnet.lower.tensorflow.layout import known_array, laid, tensor_of
from graphnet.lower.tensorflow.ops import tensorflow_dtype
from graphnet.lower.tensorflow.ops_all import TENSORFLOW

_CARRIERS: dict[str, np.dtype[Any]] = {
    "int4": np.dtype(np.int8),
    "uint4": np.dtype(np.uint8),
    "float4e2m1": np.dtype(np.float32),
}
_SCOPE = re.compile(r"\bnode(\d+)_")


@dataclass(frozen=True)
class Lowered:
    """`concrete(*inputs)` returns the outputs; the weights are variables that it reads, laid out for it."""

    function: Any
    """The `tf.function`; it keeps the variables alive."""
    concrete: Any
    """The traced function for the graph's shapes."""
    jit: bool
    """Whether XLA compiles it."""
    nodes: tuple[str, ...]
    """Names of the graph's nodes, nested ones included, in the order of their scopes."""


def node_of(nodes: Sequence[str], op_name: str) -> str:
    """The one of `Lowered.nodes` that an operation's name belongs to (the innermost), `""` for none."""
    found = _SCOPE.findall(op_name)
    return nodes[int(found[-1])] if found else ""


def lower(graph: Graph, tensors: Mapping[str, np.ndarray], *, jit: bool) -> Lowered:
    """The graph as a function, channels last inside (see `layout`). Raises UnsupportedOp.

    What a rule must know at compile time is a literal in it; every other weight is a variable, so that the compiler
    cannot work on it ahead of the run.
    """
    for node in walk(graph):
        TENSORFLOW.entry(node)
    names = [node.name for node in walk(graph)]
    scopes = {name: f"node{index}_{re.sub(r'[^A-Za-z0-9.]+', '_', name)}" for index, name in enumerate(names)}
    orders = _preferred_orders(graph)
    read = _run_time(graph)
    variables = {
        name: tf.Variable(_carried(tensors[name], weight.dtype, orders.get(name)), trainable=False)
        for name, weight in graph.weights.items()
        if name in read
    }

    def around(node: Node) -> AbstractContextManager[Any]:
        scope: AbstractContextManager[Any] = tf.name_scope(scopes[node.name])
        return scope

    def function(*inputs: Any) -> tuple[Any, ...]:
        env = {
            name: laid(_stated(variable, graph.weights[name].dtype), orders.get(name) or plain(len(variable.shape)))
            for name, variable in variables.items()
        }
        env.update((item.name, _stated(value, item.dtype)) for item, value in zip(graph.inputs, inputs, strict=True))
        outputs = Scope(TENSORFLOW, graph, env, tensors, tf.constant, around=around, peek=known_array).run()
        return tuple(
            _handed(tensor_of(value), graph.type_of(name).dtype)
            for name, value in zip(graph.outputs, outputs, strict=True)
        )

    staged = tf.function(function, jit_compile=jit, autograph=False)
    specs = [tf.TensorSpec(_static_shape(item), tf.as_dtype(carrier(item.dtype))) for item in graph.inputs]
    return Lowered(staged, staged.get_concrete_function(*specs), jit, tuple(names))


def carrier(dtype: DType) -> np.dtype[Any]:
    """The dtype in which an array is handed over: TensorFlow takes no 4-bit numbers from outside."""
    return _CARRIERS.get(dtype) or np.dtype(tensorflow_dtype(dtype).as_numpy_dtype)


def _static_shape(item: Any) -> tuple[int, ...]:
    if any(isinstance(dim, str) for dim in item.shape):
        raise UnsupportedOp(f"tensorflow: input '{item.name}' has symbolic shape {item.shape}; bind the graph first")
    return tuple(item.shape)


def _carried(array: np.ndarray, dtype: DType, order: Order | None) -> np.ndarray:
    array = np.asarray(array).astype(carrier(dtype), copy=False)
    return array if order is None else np.ascontiguousarray(array.transpose(order))


def _stated(value: Any, dtype: DType) -> Any:
    value = tf.convert_to_tensor(value)
    return tf.cast(value, tensorflow_dtype(dtype)) if dtype in _CARRIERS else value


def _handed(value: Any, dtype: DType) -> Any:
    """An output as it leaves the function: XLA packs 4-bit numbers into bytes that TensorFlow does not unpack."""
    return tf.cast(value, tf.as_dtype(carrier(dtype))) if dtype in _CARRIERS else value


def _run_time(graph: Graph) -> set[str]:
    """The names that some rule reads at run time (or a nested graph, or an output)."""
    used: set[str] = set(graph.outputs)
    for node in walk(graph):
        static = set(TENSORFLOW.compile_time_inputs(node))
        used.update(name for index, name in enumerate(node.inputs) if index not in static)
        used.update(name for attr in node.attrs.values() for name in getattr(attr, "outputs", ()))
    return used


def _preferred_orders(graph: Graph) -> dict[str, Order]:
    """Orders in which all readers of a weight want it, where they agree on another than ONNX's."""
    wanted: dict[str, set[Order | None]] = defaultdict(set)
    for name in graph.outputs:
        wanted[name].add(None)
    top = {id(node) for node in graph.nodes}
    for node in walk(graph):
        for index, name in enumerate(node.inputs):
            weight = graph.weights.get(name)
            if weight is not None:
                wanted[name].add(_wanted_order(node, index, len(weight.shape)) if id(node) in top else None)
        for attr in node.attrs.values():
            for name in getattr(attr, "outputs", ()):
                wanted[name].add(None)
    agreed = {name: next(iter(orders)) for name, orders in wanted.items() if len(orders) == 1}
    return {name: order for name, order in agreed.items() if order is not None}


def _wanted_order(node: Node, index: int, rank: int) -> Order | None:
    if node.domain:
        return None
    if node.op in ("Conv", "ConvTranspose") and index == 1:
        return kernel_order(rank)
    if node.op == "Transpose":
        perm: Any = node.attrs.get("perm", plain(rank)[::-1])
        return tuple(axis % rank for axis in perm)
    return None
