"""The operator table and the one interpreter that walks a graph with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body, DType, FloatAttr, Graph, Node, TensorAttr, Value
from graphnet.lower import ranges

Static = Annotated[np.ndarray, "static"]
"""Annotation of a rule's parameter whose array must be known at compile time."""
Ints = Annotated[tuple[int, ...], "ints"]
"""Annotation of a rule's parameter whose integers must be known at compile time (shapes, axes, pads)."""
Operand = Annotated[Any, "operand"]
"""Annotation of a parameter that arrives as a Python number where the graph has a one-element constant there.

A number is passed only beside at least one array operand of equal or higher rank, so broadcasting is unchanged.
"""

ONNX_DTYPES: dict[int, DType] = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1",
}  # fmt: skip
"""The numbers of `onnx.TensorProto.DataType`, as attributes such as Cast's `to` spell them."""

Rule = Callable[..., Any]
Env = dict[str, Any]
_NUMBERS = frozenset(
    {"float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"},
)


@dataclass(frozen=True)
class _Entry:
    rule: Rule
    kinds: tuple[str | None, ...]
    """For each positional parameter `static`, `ints`, `operand` or None; the last one serves a variadic tail."""
    wants_context: bool

    def kind(self, index: int) -> str | None:
        return self.kinds[min(index, len(self.kinds) - 1)] if self.kinds else None


@dataclass(frozen=True)
class Context:
    """What a rule may ask about its node: declare a keyword-only parameter `context`."""

    node: Node
    scope: Scope

    def type_of(self, name: str) -> Value:
        """dtype and shape of a value visible to the node."""
        return self.scope.type_of(name)

    def known(self, index: int) -> np.ndarray | None:
        """The array of the node's input at `index` where it is known at compile time, else None."""
        inputs = self.node.inputs
        return self.scope.known(inputs[index]) if index < len(inputs) and inputs[index] else None

    def stated_size(self, output: int, axis: int) -> int:
        """The size that the graph states where data decides it. Raises UnsupportedOp where it states none."""
        shape = self.type_of(self.node.outputs[output]).shape
        size = shape[axis] if axis < len(shape) else None
        if not isinstance(size, int):
            raise UnsupportedOp(f"the output shape of {self.node.op} depends on data, and XLA's shapes are static")
        return size

    def role(self, index: int) -> str:
        """The role of the weight that is the node's input at `index`; `""` where that is no weight."""
        inputs = self.node.inputs
        return self.scope.role(inputs[index]) if index < len(inputs) and inputs[index] else ""

    def nonnegative(self, index: int) -> bool:
        """Whether no element of the node's input at `index` can be below zero, as far as the graph tells."""
        inputs = self.node.inputs
        return index < len(inputs) and bool(inputs[index]) and ranges.nonnegative(self.scope, inputs[index])

    def wants(self, index: int) -> bool:
        """Whether the node's output at `index` is asked for."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def body(self, body: Body, *args: Any) -> tuple[Any, ...]:
        """Lower a nested graph with `args` bound to its inputs; returns its outputs. Known arguments may be arrays."""
        return self.scope.run_body(body, args)


@dataclass
class OpTable:
    """Operators of one framework. `simple` maps an operator to a function of its inputs alone.

    A rule's positional parameters are the ONNX inputs and its keyword-only parameters the ONNX attributes, with
    ONNX's defaults; an absent optional input arrives as `None`.
    """

    name: str
    simple: Mapping[str, Rule] = field(default_factory=dict)
    _entries: dict[tuple[str, str], _Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for op, rule in self.simple.items():
            self._entries["", op] = _Entry(rule, (), wants_context=False)

    def op(self, *names: str, domain: str = "") -> Callable[[Rule], Rule]:
        """Decorator: register a rule for one or more operators."""

        def register(rule: Rule) -> Rule:
            parameters = inspect.signature(rule, eval_str=True).parameters
            kinds = tuple(_kind(p.annotation) for p in parameters.values() if p.kind is not p.KEYWORD_ONLY)
            for op in names:
                if (domain, op) in self._entries:
                    raise ValueError(f"{self.name}: {op} is registered twice")
                self._entries[domain, op] = _Entry(rule, kinds, "context" in parameters)
            return rule

        return register

    @property
    def operators(self) -> dict[tuple[str, str], Rule]:
        """(domain, operator) to rule."""
        return {key: entry.rule for key, entry in self._entries.items()}

    def entry(self, node: Node) -> _Entry:
        """The rule of a node. Raises UnsupportedOp."""
        try:
            return self._entries[node.domain, node.op]
        except KeyError:
            raise UnsupportedOp(f"{self.name}: no lowering for {_qualified(node)} (node '{node.name}')") from None

    def compile_time_inputs(self, node: Node) -> tuple[int, ...]:
        """Positions of the node's inputs that this table must know at compile time. Raises UnsupportedOp."""
        entry = self.entry(node)
        return tuple(i for i, name in enumerate(node.inputs) if name and entry.kind(i) in ("static", "ints"))


def _no_context(_: Node) -> AbstractContextManager[Any]:
    return nullcontext()


def _not_known(_: Any) -> np.ndarray | None:
    return None


@dataclass
class Scope:
    """Names visible while a (nested) graph is walked: framework values in `env`, known arrays in `static`."""

    table: OpTable
    graph: Graph | Body
    env: Env
    static: Mapping[str, np.ndarray]
    literal: Callable[[np.ndarray], Any]
    """Turns a known array into a framework value (used for weights of nested bodies)."""
    parent: Scope | None = None
    around: Callable[[Node], AbstractContextManager[Any]] = _no_context
    """Entered around each node's rule: provenance of what the rule emits."""
    peek: Callable[[Any], np.ndarray | None] = _not_known
    """The array behind a framework value, where the framework worked it out while the graph was walked."""
    _producers: dict[str, Node] = field(default_factory=dict)

    def type_of(self, name: str) -> Value:
        """dtype and shape of a visible value. Raises KeyError."""
        inputs = (item for item in self.graph.inputs if item.name == name)
        found = self.graph.values.get(name) or self.graph.weights.get(name) or next(inputs, None)
        if found is not None:
            return Value(dtype=found.dtype, shape=found.shape)
        if self.parent is None:
            raise KeyError(name)
        return self.parent.type_of(name)

    def read(self, name: str) -> Any:
        """The framework value of a visible name. Raises KeyError."""
        if name in self.env or self.parent is None:
            return self.env[name]
        return self.parent.read(name)

    def known(self, name: str) -> np.ndarray | None:
        """The array of a visible name where it is known at compile time, else None."""
        if name in self.static:
            return self.static[name]
        return self.parent.known(name) if self.parent is not None and name not in self.env else None

    def producer(self, name: str) -> tuple[Scope, Node] | None:
        """The node that makes a visible name, with the scope it stands in; None for inputs and weights."""
        if not self._producers:
            self._producers.update((out, node) for node in self.graph.nodes for out in node.outputs if out)
        if name in self._producers:
            return self, self._producers[name]
        return self.parent.producer(name) if self.parent is not None and name not in self.env else None

    def run(self) -> tuple[Any, ...]:
        """Walk the nodes; returns the graph's outputs. Raises UnsupportedOp."""
        for node in self.graph.nodes:
            with self.around(node):
                self._run_node(node)
        return tuple(self.read(name) for name in self.graph.outputs)

    def run_body(self, body: Body, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Lower a nested graph with `args` (framework values, or arrays where known) bound to its inputs."""
        from graphnet.ir.tensors import fill_array

        static = {name: fill_array(w.fill, w.dtype, w.shape, name) for name, w in body.weights.items()}
        values: Env = {}
        for item, value in zip(body.inputs, args, strict=True):
            if isinstance(value, np.ndarray):
                static[item.name] = value
            else:
                values[item.name] = value
        env = {name: self.literal(array) for name, array in static.items()} | values
        return Scope(self.table, body, env, static, self.literal, self, self.around, self.peek).run()

    def _run_node(self, node: Node) -> None:
        entry = self.table.entry(node)
        attrs = {key: _plain(value) for key, value in node.attrs.items()}
        if entry.wants_context:
            attrs["context"] = Context(node, self)
        try:
            results = entry.rule(*self._arguments(node, entry), **attrs)
        except UnsupportedOp as error:
            if "(node '" in str(error):
                raise
            raise UnsupportedOp(f"{self.table.name}: {_qualified(node)}: {error} (node '{node.name}')") from error
        if not isinstance(results, tuple):
            results = (results,)
        self.env.update((name, value) for name, value in zip(node.outputs, results, strict=False) if name)

    def _arguments(self, node: Node, entry: _Entry) -> list[Any]:
        kinds = [entry.kind(index) if name else None for index, name in enumerate(node.inputs)]
        arguments = [
            self._known_argument(node, index, kind) if kind in ("static", "ints") else self.read(name) if name else None
            for index, (name, kind) in enumerate(zip(node.inputs, kinds, strict=True))
        ]
        operands = [index for index, kind in enumerate(kinds) if kind == "operand"]
        numbers = {i: array for i in operands if (array := self._number(node.inputs[i])) is not None}
        ranks = [getattr(arguments[index], "ndim", 0) for index in operands if index not in numbers]
        for index, array in numbers.items():
            if ranks and array.ndim <= max(ranks):
                arguments[index] = array.item()
        return arguments

    def _number(self, name: str) -> np.ndarray | None:
        array = self.known(name)
        # A one-element parameter is an argument of the computation, not a literal of it.
        if array is None or array.size != 1 or self.role(name) in ("parameter", "buffer"):
            return None
        return array if self.type_of(name).dtype in _NUMBERS else None

    def role(self, name: str) -> str:
        """The role of a visible weight; `""` for any other name."""
        if name in self.graph.weights:
            return self.graph.weights[name].role
        return self.parent.role(name) if self.parent is not None and name not in self.env else ""

    def _known_argument(self, node: Node, index: int, kind: str) -> np.ndarray | tuple[int, ...]:
        name = node.inputs[index]
        array = self.known(name)
        array = self.peek(self.read(name)) if array is None else array
        if array is None:
            raise UnsupportedOp(
                f"{self.table.name}: input {index} ('{name}') of {node.op} must be known at compile time"
                f" (node '{node.name}'); bind the graph's dimensions first"
            )
        return array if kind == "static" else tuple(int(v) for v in array.reshape(-1))


def _kind(annotation: Any) -> str | None:
    for argument in (annotation, *getattr(annotation, "__args__", ())):
        metadata = getattr(argument, "__metadata__", ())
        if metadata and metadata[0] in ("static", "ints", "operand"):
            return str(metadata[0])
    return None


def _qualified(node: Node) -> str:
    return f"{node.domain or 'ai.onnx'}::{node.op}"


def _plain(value: Any) -> Any:
    if isinstance(value, FloatAttr):
        return float(value.value)
    if isinstance(value, TensorAttr):
        from graphnet.ir.tensors import fill_array

        return fill_array(value.fill, value.dtype, value.shape, "attribute")
    return value
