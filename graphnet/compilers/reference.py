"""The float64 oracle (`reference`): every float of the graph widened to float64, evaluated eagerly, integers exact."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from graphnet.compilers import Target, Tensors, check_target
from graphnet.compilers.torch_program import TorchProgram, configure_torch, torch_device
from graphnet.ir.graph import Attr, Body, Graph, Node, TensorAttr, Values
from graphnet.ir.tensors import fill_array
from graphnet.lower.table import ONNX_DTYPES
from graphnet.lower.torch.graph import lower

_WIDENED = frozenset({"float16", "bfloat16", "float32"})
_FLOAT64 = 11
_DTYPE_ATTRS = {
    "Cast": "to", "EyeLike": "dtype", "Bernoulli": "dtype", "RandomNormal": "dtype", "RandomNormalLike": "dtype",
    "RandomUniform": "dtype", "RandomUniformLike": "dtype", "BlackmanWindow": "output_datatype",
    "HannWindow": "output_datatype", "HammingWindow": "output_datatype", "MelWeightMatrix": "output_datatype",
    "DequantizeLinear": "output_dtype", "LayerNormalization": "stash_type", "Attention": "softmax_precision",
}  # fmt: skip
_DTYPE_DEFAULTS = {
    "RandomNormal": 1, "RandomUniform": 1, "BlackmanWindow": 1, "HannWindow": 1, "HammingWindow": 1,
    "MelWeightMatrix": 1, "LayerNormalization": 1,
}  # fmt: skip


class Reference:
    """`reference`: no options; outputs of float dtypes arrive as float64."""

    name = "reference"
    packages = ("torch",)
    devices = ("cpu",)

    def preload(self) -> None:
        """Importing this module imported the framework."""

    def configure(self, target: Target) -> dict[str, Any]:
        """Threads and device; float64 throughout."""
        check_target(self.name, target)
        return {**configure_torch(target), "precision": "float64"}

    def compile(self, graph: Graph, tensors: Tensors, target: Target) -> TorchProgram:
        """Widen and lower. Raises UnsupportedOp."""
        wide = widen(graph)
        module = lower(wide, {name: widen_array(array) for name, array in tensors.items()})
        return _WideningProgram(wide, module.forward, torch_device(target))


class _WideningProgram(TorchProgram):
    def bind(self, inputs: Tensors) -> None:
        super().bind({name: widen_array(array) for name, array in inputs.items()})


def widen_array(array: np.ndarray) -> np.ndarray:
    """float16, bfloat16 and float32 as float64 (exact); anything else as it is."""
    return array.astype(np.float64) if array.dtype.name in _WIDENED else array


def widen(graph: Graph) -> Graph:
    """The same graph with float16, bfloat16 and float32 replaced by float64, in nested graphs and attributes too.

    The weights' fills say how the original arrays are made, which `widen_array` then widens: the result is for
    lowering, not for materialising.
    """
    return msgspec.structs.replace(
        graph,
        inputs=tuple(_typed(item) for item in graph.inputs),
        weights={name: _typed(weight) for name, weight in graph.weights.items()},
        values={name: _typed(value) for name, value in graph.values.items()},
        nodes=tuple(_node(node) for node in graph.nodes),
    )


def _typed(item: Any) -> Any:
    return msgspec.structs.replace(item, dtype="float64") if item.dtype in _WIDENED else item


def _node(node: Node) -> Node:
    attrs: dict[str, Attr] = {key: _attr(value) for key, value in node.attrs.items()}
    key = _DTYPE_ATTRS.get(node.op)
    if key is not None and not node.domain:
        number = attrs.get(key, _DTYPE_DEFAULTS.get(node.op))
        if isinstance(number, int) and ONNX_DTYPES.get(number) in _WIDENED:
            attrs[key] = _FLOAT64
    if node.op == "ConstantOfShape" and "value" not in attrs:
        attrs["value"] = TensorAttr(dtype="float64", shape=(1,), fill=Values(data=(0.0,)))
    return msgspec.structs.replace(node, attrs=attrs)


def _attr(value: Attr) -> Attr:
    if isinstance(value, TensorAttr) and value.dtype in _WIDENED:
        array = fill_array(value.fill, value.dtype, value.shape, "attribute").astype(np.float64)
        return TensorAttr(dtype="float64", shape=value.shape, fill=Values(data=tuple(_scalar(v) for v in array.flat)))
    return _body(value) if isinstance(value, Body) else value


def _scalar(value: float) -> Any:
    if np.isnan(value):
        return "nan"
    return float(value) if np.isfinite(value) else ("inf" if value > 0 else "-inf")


def _body(body: Body) -> Body:
    weights = {}
    for name, weight in body.weights.items():
        if weight.dtype in _WIDENED:
            array = fill_array(weight.fill, weight.dtype, weight.shape, name).astype(np.float64)
            weight = msgspec.structs.replace(
                weight, dtype="float64", fill=Values(data=tuple(_scalar(v) for v in array.flat))
            )
        weights[name] = weight
    return msgspec.structs.replace(
        body,
        inputs=tuple(_typed(item) for item in body.inputs),
        values={name: _typed(value) for name, value in body.values.items()},
        weights=weights,
        nodes=tuple(_node(node) for node in body.nodes),
    )
