"""Which GraphIR nodes each call of a kernel covers, found by following values through TVM's fusion."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import tvm
from tvm import relax

from graphnet.ir.graph import Graph

Nodes = list[tuple[str, ...]]
Key = tuple[Any, ...]


def _bindings(function: relax.Function) -> Iterator[tuple[relax.Var, relax.Expr]]:
    if isinstance(function.body, relax.SeqExpr):
        for block in function.body.blocks:
            for binding in block.bindings:
                if isinstance(binding, relax.VarBinding):
                    yield binding.var, binding.value


def called_kernels(module: tvm.IRModule) -> list[str]:
    """Name of the kernel of each call in `main`, `""` for a call of something else."""
    values = (value for _, value in _bindings(module["main"]) if isinstance(value, relax.Call))
    return [
        str(call.args[0].name_hint) if call.args and isinstance(call.args[0], tvm.ir.GlobalVar) else ""
        for call in values
    ]


def bound_nodes(module: tvm.IRModule, names: Mapping[str, str]) -> dict[str, str]:
    """The node of every binding of `main`. What a pass put in belongs to the next binding that has a node."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    node = ""
    for variable, _ in _bindings(module["main"]):
        name = str(variable.name)
        waiting.append(name)
        if name in names:
            node = names[name]
            found |= dict.fromkeys(waiting, node)
            waiting = []
    return found | dict.fromkeys(waiting, node)


def covered(before: tvm.IRModule, owners: Mapping[str, str], after: tvm.IRModule) -> Nodes:
    """GraphIR nodes of each call in `main` of the fused module `after`; `before` is the same, not yet fused."""
    producers: dict[Key, deque[relax.Var]] = defaultdict(deque)
    for variable, value in _bindings(before["main"]):
        producers[_key(value, {})].append(variable)
    walk = _Walk(after, owners, producers)
    values = dict(zip(after["main"].params, before["main"].params, strict=True))
    return walk.calls({new: _value(old, {}) for new, old in values.items()})


def completed(graph: Graph, nodes: Nodes) -> Nodes:
    """`nodes` with those of the graph that no call has: passes merged them into a reader, or into what they read."""
    owners = {name: index for index, names in reversed(list(enumerate(nodes))) for name in names}
    producers = {value: node.name for node in graph.nodes for value in node.outputs if value}
    readers: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node.name)
    for node in reversed(graph.nodes):
        if node.name not in owners:
            found = [owners[name] for value in node.outputs for name in readers[value] if name in owners]
            owners |= {node.name: min(found)} if found else {}
    for node in graph.nodes:
        if node.name not in owners:
            found = [owners[producers[value]] for value in node.inputs if producers.get(value) in owners]
            owners |= {node.name: max(found)} if found else {}
    merged: dict[int, list[str]] = defaultdict(list)
    for node in graph.nodes:
        if node.name in owners and node.name not in nodes[owners[node.name]]:
            merged[owners[node.name]].append(node.name)
    return [(*names, *merged[index]) for index, names in enumerate(nodes)]


class _Walk:
    """Runs over the fused module with each of its values known by the variable of the unfused one."""

    def __init__(
        self, module: tvm.IRModule, owners: Mapping[str, str], producers: Mapping[Key, deque[relax.Var]]
    ) -> None:
        self._module, self._owners, self._producers = module, owners, producers

    def calls(self, values: dict[relax.Var, Any]) -> Nodes:
        nodes: Nodes = []
        for variable, value in _bindings(self._module["main"]):
            if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar):
                found: list[str] = []
                values[variable] = self._inside(value, values, found)
                nodes.append(tuple(dict.fromkeys(filter(None, found))))
            elif isinstance(value, relax.Call):
                values[variable], owner = self._original(value, values)
                nodes.append((owner,) if owner else ())
            else:
                values[variable] = self._plain(value, values)
        return nodes

    def _inside(self, call: relax.Call, values: Mapping[relax.Var, Any], found: list[str]) -> Any:
        function = self._module[call.op]
        inner = {
            parameter: _value(argument, values) for parameter, argument in zip(function.params, call.args, strict=False)
        }
        for variable, value in _bindings(function):
            if isinstance(value, relax.Call):
                inner[variable], owner = self._original(value, inner)
                found.append(owner)
            else:
                inner[variable] = self._plain(value, inner)
        return _value(function.body.body, inner)

    def _original(self, call: relax.Call, values: Mapping[relax.Var, Any]) -> tuple[Any, str]:
        same = self._producers.get(_key(call, values))
        if not same:
            return ("unknown", id(call)), ""
        variable = same[0] if len(same) == 1 else same.popleft()  # equal calls stand in the same order
        return variable.__chandle__(), self._owners.get(str(variable.name), "")

    def _plain(self, value: relax.Expr, values: Mapping[relax.Var, Any]) -> Any:
        same = self._producers.get(_key(value, values))
        return same[0].__chandle__() if same else _value(value, values)


def _key(value: relax.Expr, values: Mapping[relax.Var, Any]) -> Key:
    if isinstance(value, relax.Call):
        operator = value.op.name if isinstance(value.op, tvm.ir.Op) else str(value.op)
        return (operator, str(value.ty), *(_value(argument, values) for argument in value.args))
    return ("value", _value(value, values))


def _value(value: Any, values: Mapping[relax.Var, Any]) -> Any:
    if isinstance(value, relax.Var):
        return values.get(value, value.__chandle__())
    if isinstance(value, relax.Tuple):
        return tuple(_value(item, values) for item in value.fields)
    if isinstance(value, relax.TupleGetItem):
        inner = _value(value.tuple_value, values)
        return inner[value.index] if isinstance(inner, tuple) and value.index < len(inner) else (inner, value.index)
    if isinstance(value, tvm.ir.GenericConst):
        return value.__chandle__()
    if isinstance(value, tvm.ir.GlobalVar):
        return str(value.name_hint)
    return str(value)
