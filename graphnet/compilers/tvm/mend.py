"""Forms of operators that TVM's importer reads wrongly or not at all, said in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from graphnet.ir import fills
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import DType, Graph, Node, Value, Weight
from graphnet.ir.onnx_bridge.nodes import attributes_with_defaults
from graphnet.ir.onnx_bridge.tensors import tensor_type
from graphnet.rewrite.decompose import SEPARATOR

FLOATS = ("float32", "float16", "float64", "bfloat16")
EMPTY: Mapping[str, float] = {
    "ReduceSum": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceProd": 1, "ReduceMin": np.inf,
    "ReduceMax": -np.inf, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf,
}  # fmt: skip
"""What a reduction over no elements is; TVM leaves it unset."""
Names = tuple[str, ...]


def beyond_importer(graph: Graph) -> frozenset[str]:
    """Names of nodes to write out in primitives though the importer has their operator.

    Its LayerNormalization has one output, and its RMSNormalization takes one axis.
    """
    read = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    found = set()
    for node in graph.nodes:
        if node.op == "LayerNormalization" and any(name in read for name in node.outputs[1:]):
            found.add(node.name)
        if node.op == "RMSNormalization" and len(graph.type_of(node.inputs[1]).shape) > 1:
            found.add(node.name)
    return frozenset(found)


def mend(graph: Graph, tensors: Mapping[str, np.ndarray]) -> Graph:
    """The graph with other such nodes replaced; the new nodes of node `n` are `n//...`. `tensors` has every weight."""
    mender = _Mender(graph, tensors)
    for node in graph.nodes:
        mender.add(node)
    return msgspec.structs.replace(graph, nodes=tuple(mender.nodes), weights=mender.weights, values=mender.values)


class _Mender:
    def __init__(self, graph: Graph, tensors: Mapping[str, np.ndarray]) -> None:
        self._graph, self._tensors = graph, tensors
        self.nodes: list[Node] = []
        self.weights, self.values = dict(graph.weights), dict(graph.values)
        self._rules: Mapping[str, Callable[[Node], bool]] = {
            "Shape": self._shape, "Dropout": self._dropout, "Pow": self._pow, "Resize": self._resize,
            **dict.fromkeys(EMPTY, self._empty),
        }  # fmt: skip

    def add(self, node: Node) -> None:
        """The node itself or what replaces it."""
        rule = None if node.domain else self._rules.get(node.op)
        if rule is None or not rule(node):
            self.nodes.append(node)

    def _shape(self, node: Node) -> bool:
        """A known shape is a literal: the importer's is no tensor, and no output."""
        sizes = self._graph.type_of(node.inputs[0]).shape
        attrs = attributes_with_defaults(node)
        end = attrs.get("end")
        sizes = sizes[int(attrs["start"]) : None if end is None else int(end)]
        if not all(isinstance(size, int) for size in sizes):
            return False
        self._node(
            node, "Identity", (self._literal(node, "sizes", "int64", np.array(sizes, np.int64)),), node.outputs[:1]
        )
        return True

    def _dropout(self, node: Node) -> bool:
        """In inference it passes its input on; the importer's mask is of floats."""
        training = node.inputs[2] if len(node.inputs) > 2 else ""
        known = self._tensors.get(training) if training else np.array(False)
        if known is None or known.any():
            return False
        self._node(node, "Identity", node.inputs[:1], node.outputs[:1])
        if len(node.outputs) > 1 and node.outputs[1]:
            shape = self._literal(node, "shape", "int64", np.array(self._graph.type_of(node.inputs[0]).shape, np.int64))
            kept = self._literal(node, "kept", "bool", np.array(True))
            self._node(node, "Expand", (kept, shape), node.outputs[1:2])
        return True

    def _pow(self, node: Node) -> bool:
        """A power of floats by integers, or of integers by floats: the importer takes one dtype."""
        base, exponent = (self._graph.type_of(name) for name in node.inputs)
        if base.dtype == exponent.dtype:
            return False
        dtype = base.dtype if base.dtype in FLOATS else exponent.dtype
        if dtype not in FLOATS:
            return False
        inputs = tuple(self._cast(node, name, dtype) for name in node.inputs)
        if base.dtype == dtype:
            self._node(node, "Pow", inputs, node.outputs)
            return True
        power = self._value(node, "power", dtype, self._graph.type_of(node.outputs[0]).shape)
        self._node(node, "Pow", inputs, (power,))
        self._node(node, "CastLike", (power, node.inputs[0]), node.outputs)
        return True

    def _empty(self, node: Node) -> bool:
        source, result = self._graph.type_of(node.inputs[0]), self._graph.type_of(node.outputs[0])
        if 0 not in source.shape or 0 in result.shape or result.dtype not in FLOATS:
            return False
        value = np.array(EMPTY[node.op], tensors_.numpy_dtype(result.dtype))
        shape = self._literal(node, "shape", "int64", np.array(result.shape, np.int64))
        self._node(node, "Expand", (self._literal(node, "value", result.dtype, value), shape), node.outputs)
        return True

    def _resize(self, node: Node) -> bool:
        """Scales or sizes of some axes: the importer takes those of all."""
        axes = node.attrs.get("axes")
        if node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":  # its region has axes, too
            return False
        if not isinstance(axes, tuple) or node.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
            return False
        shape = self._graph.type_of(node.inputs[0]).shape
        inputs = list(node.inputs)
        wholes: tuple[tuple[int, DType, np.ndarray], ...] = (
            (2, "float32", np.ones(len(shape), np.float32)), (3, "int64", np.array(shape)),
        )  # fmt: skip
        for place, dtype, full in wholes:
            if place >= len(inputs) or not inputs[place]:
                continue
            known = self._tensors.get(inputs[place])
            if known is None:
                return False
            full[[int(axis) for axis in axes]] = known
            inputs[place] = self._literal(node, f"input{place}", dtype, full)
        attrs = {name: value for name, value in node.attrs.items() if name != "axes"}
        self._node(node, "Resize", tuple(inputs), node.outputs, attrs)
        return True

    def _cast(self, node: Node, name: str, dtype: DType) -> str:
        type_ = self._graph.type_of(name)
        if type_.dtype == dtype:
            return name
        wide = self._value(node, f"wide{len(self.nodes)}", dtype, type_.shape)
        self._node(node, "Cast", (name,), (wide,), {"to": tensor_type(dtype)})
        return wide

    def _value(self, node: Node, name: str, dtype: DType, shape: Any) -> str:
        full = f"{node.name}{SEPARATOR}{name}"
        self.values[full] = Value(dtype=dtype, shape=shape)
        return full

    def _literal(self, node: Node, name: str, dtype: DType, array: np.ndarray) -> str:
        full = f"{node.name}{SEPARATOR}{name}"
        self.weights[full] = Weight(dtype=dtype, shape=array.shape, fill=fills.pack(array.tobytes()), role="constant")
        return full

    def _node(self, node: Node, op: str, inputs: Names, outputs: Names, attrs: Mapping[str, Any] | None = None) -> None:
        name = f"{node.name}{SEPARATOR}{len(self.nodes)}.{op}"
        self.nodes.append(Node(op=op, name=name, inputs=inputs, outputs=outputs, attrs=dict(attrs or {})))
