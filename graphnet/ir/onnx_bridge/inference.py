"""Walks a graph once: dtype, shape and (small) data of every value, and the nodes as a rewriter leaves them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import msgspec
import numpy as np

from graphnet.errors import GraphFormatError
from graphnet.ir import dims as dims_
from graphnet.ir import tensors
from graphnet.ir.graph import Body, Dimension, Graph, Node, Shape, Value, Weight
from graphnet.ir.onnx_bridge.control import control_flow
from graphnet.ir.onnx_bridge.data import propagate
from graphnet.ir.onnx_bridge.evaluate import evaluate
from graphnet.ir.onnx_bridge.nodes import PartialShape, Result, attributes_with_defaults, infer_types
from graphnet.ir.onnx_bridge.read import Declared
from graphnet.ir.onnx_bridge.shapes import Call, partial_shapes
from graphnet.ir.onnx_bridge.tensors import exact, literal
from graphnet.ir.symbolic import resolve

DATA_LIMIT = 4096
"""Elements of an array that is kept as known, and that folding may make out of several."""
UNIFORM_LIMIT = 1 << 20
"""Elements of an array that repeats one number (Expand, ConstantOfShape), or whose size depends on its data."""
_GROWS = frozenset({"Expand", "ConstantOfShape"})
_SIZED_BY_DATA = frozenset({"NonZero", "Unique", "Compress"})
_DEFAULTS_IGNORED = frozenset({"STFT"})
"""ONNX's inference takes an absent `onesided` for 0, the standard for 1."""
_READS_DATA = frozenset({
    "Reshape", "Expand", "ConstantOfShape", "Range", "Slice", "Split", "Tile", "Pad", "Resize", "Upsample", "OneHot",
    "TopK", "Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "DFT", "STFT", "HannWindow", "HammingWindow",
    "BlackmanWindow", "MelWeightMatrix", "CenterCropPad", "AffineGrid", "Col2Im", "MaxUnpool", "SplitToSequence",
})  # fmt: skip
Data = np.ndarray


@dataclass
class Scope:
    """Names visible at one nesting level."""

    types: dict[str, Value] = field(default_factory=dict)
    data: dict[str, Data] = field(default_factory=dict)
    weights: dict[str, Weight] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Names that a rewriter replaced by others."""
    outputs: frozenset[str] = frozenset()
    parent: Scope | None = None

    def type_of(self, name: str) -> Value | None:
        """dtype and shape of a visible name."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.types.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def known(self, name: str, limit: int = 0) -> Data | None:
        """Its elements where they are known: literals (of at most `limit` elements) and what follows from shapes."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.types:
                return scope.data.get(name) if name in scope.data else scope._literal(name, limit or DATA_LIMIT)
            scope = scope.parent
        return None

    def alias(self, name: str) -> str:
        """What a name is called now."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.types:
                return scope.aliases.get(name, name)
            scope = scope.parent
        return name

    def _literal(self, name: str, limit: int) -> Data | None:
        weight = self.weights.get(name)
        if weight is None or weight.role != "constant" or not exact(weight.fill) or prod(weight.shape) > limit:
            return None
        array = self.data[name] = literal(weight, name)
        return array


class Rewriter(Protocol):
    """Decides what becomes of each node once its outputs' types are known."""

    def prepare(self, node: Node, scope: Scope) -> Node:
        """The node as it shall be inferred."""

    def node(self, node: Node, scope: Scope) -> Sequence[Node]:
        """The nodes that replace it. Names that it renames or turns into weights go into the scope."""

    def finish(self, graph: Graph | Body, nodes: list[Node], scope: Scope) -> tuple[list[Node], tuple[str, ...]]:
        """The nodes and outputs of a level once all its nodes are done."""


class Inference:
    """State of one walk. `declared` are types to fall back on where inference cannot tell."""

    def __init__(self, graph: Graph, declared: Mapping[str, Declared], rewriter: Rewriter | None = None) -> None:
        self.graph, self.declared, self.rewriter = graph, declared, rewriter
        self.evaluates = rewriter is not None
        self.fresh: dict[str, int] = {}
        self._taken = set(graph.dims) | {s for i in graph.inputs for d in i.shape for s in dims_.symbols(d)}
        self._bindable = used_symbols([item.shape for item in graph.inputs])
        self._ranges = {name: (dim.min, dim.max) for name, dim in graph.dims.items()}
        self._settled_dims: dict[str, Dimension] = {}
        self._memo: dict[Hashable, list[Result]] = {}

    def run(self, graph: Graph | Body, parent: Scope | None = None) -> tuple[list[Node], tuple[str, ...], Scope]:
        """Walk one level: its nodes and outputs, and what is known of its names. Raises GraphFormatError."""
        scope = Scope(parent=parent, outputs=frozenset(graph.outputs))
        for item in graph.inputs:
            scope.types[item.name] = Value(dtype=item.dtype, shape=item.shape)
        for name, weight in graph.weights.items():
            scope.types[name] = Value(dtype=weight.dtype, shape=weight.shape)
        scope.weights.update(graph.weights)
        nodes: list[Node] = []
        for node in graph.nodes:
            if self.rewriter is None:
                nodes.append(self._step(node, scope))
            else:
                nodes.extend(self.rewriter.node(self._step(self.rewriter.prepare(node, scope), scope), scope))
        if self.rewriter is None:
            return nodes, graph.outputs, scope
        return *self.rewriter.finish(graph, nodes, scope), scope

    def symbol(self, hint: str) -> str:
        """A new symbol for a size that only the run determines."""
        legal = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in hint)[:48]
        legal = legal if legal[:1].isalpha() else f"u_{legal}"
        name, count = legal, 0
        while name in self._taken:
            count += 1
            name = f"{legal}_{count}"
        self._taken.add(name)
        return name

    def varying(self, stated: Dimension, name: str) -> str:
        """The stated size where it is a symbol that only the run determines, else a new one."""
        if isinstance(stated, str) and dims_.SYMBOL.fullmatch(stated) and stated not in self._bindable:
            return stated
        return self.symbol(f"{name}_size")

    def _step(self, node: Node, scope: Scope) -> Node:
        types: list[Value | None] = []
        for index, name in enumerate(node.inputs):
            type_ = scope.type_of(name) if name else None
            if name and type_ is None:
                raise GraphFormatError(f"'{name}' is not defined before node '{node.name}', input {index}")
            types.append(type_)
        if any(isinstance(value, Body) for value in node.attrs.values()):
            return control_flow(self, node, types, scope)
        limit = UNIFORM_LIMIT if node.op in _SIZED_BY_DATA else DATA_LIMIT
        data = [scope.known(name, limit) if name else None for name in node.inputs]
        inferred = self._infer(node, types, data)
        for name, result in zip(node.outputs, inferred, strict=True):
            if name:
                scope.types[name] = self.settled(node, name, result, types)
        self._follow(node, types, data, scope)
        return node

    def _infer(self, node: Node, types: list[Value | None], data: list[Data | None]) -> list[Result]:
        reads = node.domain == "" and node.op in _READS_DATA
        used = [_key(array) for array in data] if reads else ()
        given = tuple((name != "", type_) for name, type_ in zip(node.inputs, types, strict=True))
        # an operator may be told its inputs apart by name only where one name comes twice
        key = (node.op, node.domain, tuple(map(bool, node.outputs)), tuple(node.attrs.items()), given, tuple(used))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = _infer_now(node, types, data if reads else [None] * len(data))
        return found

    def settled(
        self,
        node: Node,
        name: str,
        result: Result,
        types: Sequence[Value | None],
    ) -> Value:
        """The inferred type, completed by the declared one, and by new symbols where neither can tell."""
        declared = self.declared.get(name)
        if result is None and declared is None:
            guess = next((type_ for type_ in types if type_ is not None), None)
            cause = "" if guess is None else f" (its first input is {guess.dtype}{list(guess.shape)})"
            raise GraphFormatError(
                f"type of '{name}' is unknown: node '{node.name}' is {node.domain or 'ai.onnx'}::{node.op}{cause}"
            )
        dtype = result[0] if result is not None else declared.dtype  # type: ignore[union-attr]
        shape = result[1] if result is not None else None
        stated = declared.shape if declared is not None and declared.dtype == dtype else None
        if shape is None:
            if stated is None:
                raise GraphFormatError(
                    f"shape of '{name}' is unknown: node '{node.name}' is {node.domain or 'ai.onnx'}::{node.op}"
                )
            shape = stated
        if stated is None or len(stated) != len(shape):
            stated = (None,) * len(shape)
        return Value(dtype=dtype, shape=tuple(map(self._dimension, shape, stated, [name] * len(shape))))

    def _dimension(self, dim: Dimension | None, stated: Dimension | None, name: str) -> Dimension:
        if isinstance(dim, int):
            return dim
        if dim is not None and "(" in dim:
            dim = self._resolved(dim)
        if dim is None or (stated is not None and isinstance(dim, str) and ("max(" in dim or "min(" in dim)):
            dim = stated
        if isinstance(dim, int):
            return dim
        if dim is None:
            dim = self.symbol(f"{name}_size")
        try:
            return dims_.simplify(dim)
        except GraphFormatError:
            return self.symbol(f"{name}_size")

    def _resolved(self, dim: str) -> Dimension:
        found = self._settled_dims.get(dim)
        if found is None:
            found = self._settled_dims[dim] = resolve(dim, self._ranges)
        return found

    def _follow(self, node: Node, types: Sequence[Value | None], data: list[Data | None], scope: Scope) -> None:
        """Data of the outputs: evaluated where all inputs are known, else followed symbolically."""
        outputs = [scope.types[name] if name else None for name in node.outputs]
        results: Sequence[Data | None] | None = None
        if self.evaluates or all(type_ is None or type_.dtype in ("int64", "int32", "bool") for type_ in types):
            results = self._evaluated(node, data, outputs)
        if results is None:
            results = propagate(node, types, data)
        for name, array, type_ in zip(node.outputs, results, outputs, strict=True):
            if not name or array is None or type_ is None:
                continue
            if array.dtype != object and type_.dtype != "string":
                array = array.astype(tensors.numpy_dtype(type_.dtype), copy=False)
            scope.data[name] = array
            if array.shape != type_.shape:
                scope.types[name] = Value(dtype=type_.dtype, shape=array.shape)

    def _evaluated(
        self, node: Node, data: list[Data | None], outputs: Sequence[Value | None]
    ) -> Sequence[Data | None] | None:
        if not node.inputs or any(type_ is None for type_ in outputs):
            return None
        wanted = [type_ for type_ in outputs if type_ is not None]
        for name, array in zip(node.inputs, data, strict=True):
            if name and (array is None or (array.dtype == object and _has_symbols(array))):
                return None
        if not _small(node, data, wanted):
            return None
        return evaluate(node, data, wanted)


def _infer_now(node: Node, types: list[Value | None], data: list[Data | None]) -> list[Result]:
    if node.op in _DEFAULTS_IGNORED and not node.domain:
        node = msgspec.structs.replace(node, attrs=attributes_with_defaults(node))
    results = infer_types(node, types, data)
    if node.domain or all(r is not None and r[1] is not None and None not in r[1] for r in results):
        return results
    attrs = attributes_with_defaults(node)
    shapes = [type_.shape if type_ is not None else None for type_ in types]
    ours = partial_shapes(node.op, Call(shapes, data, attrs, len(node.outputs)))
    return [_completed(result, ours[i] if i < len(ours) else None) for i, result in enumerate(results)]


def _completed(result: Result, ours: PartialShape | None) -> Result:
    if result is None or ours is None:
        return result
    dtype, shape = result
    if shape is None or len(shape) != len(ours):
        return dtype, ours
    return dtype, tuple(dim if dim is not None else own for dim, own in zip(shape, ours, strict=True))


def _small(node: Node, data: list[Data | None], outputs: list[Value]) -> bool:
    if sum(array.size for array in data if array is not None) > UNIFORM_LIMIT:
        return False
    if node.op in _SIZED_BY_DATA:
        return True
    limit = DATA_LIMIT
    if node.op in _GROWS and all(array is None or array.size <= 64 for array in data):
        limit = UNIFORM_LIMIT if data[0] is not None and (data[0].size == 1 or node.op == "ConstantOfShape") else limit
    for value in outputs:
        if any(isinstance(dim, str) for dim in value.shape):
            return False
        if prod(dim for dim in value.shape if isinstance(dim, int)) > limit:
            return False
    return True


def _has_symbols(array: Data) -> bool:
    return any(isinstance(item, str) for item in array.reshape(-1)) and array.dtype == object


def _key(array: Data | None) -> Hashable:
    return None if array is None else (array.shape, array.dtype.str, tuple(array.reshape(-1).tolist()))


def used_symbols(shapes: Sequence[Shape]) -> set[str]:
    """Symbols in any of the shapes."""
    return {symbol for shape in shapes for dim in shape if isinstance(dim, str) for symbol in dims_.symbols(dim)}
