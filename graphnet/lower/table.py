"""The operator table and the one interpreter that walks a graph with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Body, FloatAttr, Graph, Node, TensorAttr, Value

Static = Annotated[np.ndarray, "static"]
"""Annotation of a rule's parameter whose array must be known at compile time."""
Ints = Annotated[tuple[int, ...], "ints"]
"""Annotation of a rule's parameter whose integers must be known at compile time (shapes, axes, pads)."""

Rule = Callable[..., Any]
Env = dict[str, Any]


@dataclass(frozen=True)
class _Entry:
    rule: Rule
    positional: tuple[inspect.Parameter, ...]
    wants_context: bool


@dataclass(frozen=True)
class Context:
    """What a rule may ask about its node: declare a keyword-only parameter `context`."""

    node: Node
    scope: Scope

    def type_of(self, name: str) -> Value:
        """dtype and shape of a value visible to the node."""
        return self.scope.type_of(name)

    def body(self, body: Body, *args: Any) -> tuple[Any, ...]:
        """Lower a nested graph with `args` bound to its inputs; returns its outputs."""
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
            positional = tuple(p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY)
            for op in names:
                if (domain, op) in self._entries:
                    raise ValueError(f"{self.name}: {op} is registered twice")
                self._entries[domain, op] = _Entry(rule, positional, "context" in parameters)
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
            domain = node.domain or "ai.onnx"
            raise UnsupportedOp(f"{self.name}: no lowering for {domain}::{node.op} (node '{node.name}')") from None


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

    def type_of(self, name: str) -> Value:
        found = self.graph.values.get(name) or self.graph.weights.get(name)
        found = found or next((i for i in self.graph.inputs if i.name == name), None)  # type: ignore[assignment]
        if found is None:
            if self.parent is None:
                raise KeyError(name)
            return self.parent.type_of(name)
        return Value(dtype=found.dtype, shape=found.shape)

    def read(self, name: str) -> Any:
        if name in self.env or self.parent is None:
            return self.env[name]
        return self.parent.read(name)

    def known(self, name: str) -> np.ndarray | None:
        found = self.static.get(name)
        return found if found is not None or self.parent is None else self.parent.known(name)

    def run(self) -> tuple[Any, ...]:
        """Walk the nodes; returns the graph's outputs."""
        for node in self.graph.nodes:
            entry = self.table.entry(node)
            args = [self._argument(node, i, name, entry) for i, name in enumerate(node.inputs)]
            attrs = {key: _plain(value) for key, value in node.attrs.items()}
            if entry.wants_context:
                attrs["context"] = Context(node, self)
            results = entry.rule(*args, **attrs)
            if len(node.outputs) == 1 and not isinstance(results, tuple):
                results = (results,)
            self.env.update((name, value) for name, value in zip(node.outputs, results, strict=False) if name)
        return tuple(self.read(name) for name in self.graph.outputs)

    def run_body(self, body: Body, args: tuple[Any, ...]) -> tuple[Any, ...]:
        from graphnet.ir.tensors import fill_array

        static = {name: fill_array(w.fill, w.dtype, w.shape, name) for name, w in body.weights.items()}
        env = {name: self.literal(array) for name, array in static.items()}
        env.update((item.name, value) for item, value in zip(body.inputs, args, strict=True))
        return Scope(self.table, body, env, static, self.literal, parent=self).run()

    def _argument(self, node: Node, index: int, name: str, entry: _Entry) -> Any:
        if not name:
            return None
        kind = _static_kind(entry, index)
        if kind is None:
            return self.read(name)
        array = self.known(name)
        if array is None:
            raise UnsupportedOp(
                f"{self.table.name}: input {index} ('{name}') of {node.op} must be known at compile time"
                f" (node '{node.name}'); bind the graph's dimensions first"
            )
        return array if kind == "static" else tuple(int(v) for v in np.atleast_1d(array))


def _static_kind(entry: _Entry, index: int) -> str | None:
    if not entry.positional:
        return None
    parameter = entry.positional[min(index, len(entry.positional) - 1)]
    for argument in (parameter.annotation, *getattr(parameter.annotation, "__args__", ())):
        metadata = getattr(argument, "__metadata__", ())
        if metadata and metadata[0] in ("static", "ints"):
            return str(metadata[0])
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, FloatAttr):
        return float(value.value)
    if isinstance(value, TensorAttr):
        from graphnet.ir.tensors import fill_array

        return fill_array(value.fill, value.dtype, value.shape, "attribute")
    return value
