"""GraphIR through tinygrad's ONNX front end. Importing it opens the default device: set that first."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tinygrad.dtype import DTYPES_DICT
from tinygrad.nn.onnx import OnnxRunner, onnx_ops, required_input_python_consts
from tinygrad.tensor import Tensor
from tinygrad.uop.ops import UOp

from graphnet.compilers.base import Tensors
from graphnet.errors import UnsupportedOp
from graphnet.ir import onnx_bridge
from graphnet.ir import tensors as tensors_
from graphnet.ir.graph import Graph, Input, Value
from graphnet.rewrite.decompose import decompose, origin

DECOMPOSED = frozenset({"Attention", "DynamicQuantizeLinear", "RMSNormalization", "RotaryEmbedding"})
"""Composite operators that tinygrad's ONNX front end lacks, or does not have whole (grouped heads, masked rows)."""
DEFAULTS: Mapping[str, Mapping[str, int]] = {"GatherElements": {"axis": 0}}
"""Attributes that the standard lets be left out, and the front end does not."""
_MESSAGE_LIMIT = 400
CARRIERS = {"bfloat16": np.uint16}
"""Dtypes that numpy lacks, with the one that carries their bits."""


class Model:
    """A graph in tinygrad's runner; parameters and buffers are inputs of it, held on the device."""

    def __init__(self, graph: Graph, tensors: Tensors) -> None:
        """Raises UnsupportedOp."""
        self._graph = _complete(decompose(graph, DECOMPOSED))
        _check(self._graph)
        outside = {name: weight for name, weight in self._graph.weights.items() if weight.role != "constant"}
        inside = {name: weight for name, weight in self._graph.weights.items() if name not in outside}
        inputs = (Input(name=name, dtype=weight.dtype, shape=weight.shape) for name, weight in outside.items())
        model = msgspec.structs.replace(self._graph, inputs=(*graph.inputs, *inputs), weights=inside)
        self._runner = _read(onnx_bridge.to_onnx(model, tensors_.completed(model, tensors)).SerializeToString())
        self._weights = {name: to_tensor(tensors[name], weight.dtype) for name, weight in outside.items()}

    def __call__(self, inputs: Mapping[str, Tensor]) -> list[Tensor]:
        """The outputs in graph order, not yet computed. Raises UnsupportedOp, RuntimeError with the node's name."""
        given = self._weights | dict(inputs)
        try:
            found = self._runner({name: given[name] for name in self._runner.graph_inputs})
        except Exception as error:
            node = self._graph.nodes[self._runner.position]
            place = f"ai.onnx::{node.op} (node '{origin(node.name)}')"
            cause = " ".join(str(error).split())[:_MESSAGE_LIMIT]
            if isinstance(error, NotImplementedError | TypeError):
                raise UnsupportedOp(f"tinygrad: no lowering for {place}: {cause}") from error
            raise RuntimeError(f"tinygrad: {place}: {type(error).__name__}: {cause}") from error
        return [
            _computed(value, self._graph.type_of(name))
            for name, value in zip(self._graph.outputs, found.values(), strict=True)
        ]

    def readers(self) -> dict[UOp, list[str]]:
        """Names of the nodes of the graph that read a weight, by its buffer."""
        found: dict[UOp, list[str]] = defaultdict(list)
        for node in self._graph.nodes:
            for name in node.inputs:
                if name in self._weights:
                    found[self._weights[name].uop.base].append(origin(node.name))
        return found


def _complete(graph: Graph) -> Graph:
    """With the attributes of DEFAULTS spelled out."""
    nodes = tuple(
        msgspec.structs.replace(node, attrs={**DEFAULTS[node.op], **node.attrs}) if node.op in DEFAULTS else node
        for node in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes)


def _computed(value: Any, type_: Value) -> Tensor:
    """A tensor, also where the front end knows the number already (Size)."""
    return value if isinstance(value, Tensor) else Tensor(value, dtype=DTYPES_DICT[type_.dtype])


def _read(model: bytes) -> _Runner:
    with tempfile.TemporaryDirectory(prefix="graphnet-tinygrad-") as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model)
        try:
            runner = _Runner(path)
        except (KeyError, ValueError) as error:
            raise UnsupportedOp(f"tinygrad: its ONNX front end cannot read the model: {error}") from error
        for value in runner.graph_values.values():
            if isinstance(value, Tensor):
                value.realize()
    runner.const_names = {name for name in runner.const_names if _is_list(runner.graph_values.get(name))}
    return runner


def _is_list(value: Any) -> bool:
    """Whether the runner may give a literal to Gather as numbers: it takes a flat list, and some have more axes."""
    return isinstance(value, Tensor) and value.ndim <= 1


class _Runner(OnnxRunner):
    """tinygrad's runner, which can tell the node that it is at."""

    position = -1

    def __call__(self, inputs: dict[str, Tensor], debug: int = 0) -> dict[str, Tensor]:
        self.position = -1
        found: dict[str, Tensor] = super().__call__(inputs, debug)
        return found

    def _select_op(self, op: str, required_opset: Any) -> Any:
        self.position += 1
        return super()._select_op(op, required_opset)


def _check(graph: Graph) -> None:
    """Refuse operators that the front end lacks, and inputs that it needs as literals but that a run determines."""
    fixed = set(graph.weights)
    for node in graph.nodes:
        if node.domain or node.op not in onnx_ops:
            raise UnsupportedOp(f"tinygrad: no lowering for {node.domain or 'ai.onnx'}::{node.op} (node '{node.name}')")
        for index in required_input_python_consts.get(node.op, ()):
            if index < len(node.inputs) and node.inputs[index] and node.inputs[index] not in fixed:
                raise UnsupportedOp(
                    f"tinygrad: ai.onnx::{node.op} (node '{node.name}') needs its input '{node.inputs[index]}' as a"
                    " literal, and a run determines it"
                )
        if all(name in fixed for name in node.inputs if name):
            fixed |= set(node.outputs)


def to_tensor(array: np.ndarray, dtype: str) -> Tensor:
    """A buffer on the device with a copy of the array."""
    carrier = CARRIERS.get(dtype)
    value = Tensor(np.ascontiguousarray(array).view(carrier) if carrier else array).clone()
    return (value.bitcast(DTYPES_DICT[dtype]).clone() if carrier else value).reshape(array.shape).realize()


def to_array(value: Tensor, type_: Value) -> np.ndarray:
    """A copy on the host, with the graph's dtype."""
    carrier = CARRIERS.get(type_.dtype)
    found = value.bitcast(DTYPES_DICT["uint16"]).numpy() if carrier else value.numpy()
    array: np.ndarray = np.array(found.view(tensors_.numpy_dtype(type_.dtype)) if carrier else found)
    return array
