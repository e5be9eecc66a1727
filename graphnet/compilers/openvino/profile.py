"""Times of OpenVINO's executed nodes, and the GraphIR nodes that each of them does the work of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from graphnet.compilers import Kernel
from graphnet.ir.graph import Graph
from graphnet.rewrite.decompose import origin

PROFILED_RUNS = 10
_DATA = ("Input", "Const", "Output")
Covered = Mapping[str, tuple[str, ...]]
"""Names of executed nodes to those of GraphIR nodes."""


def kernel_times(run: Callable[[], object], rows: Callable[[], list[Any]], covered: Covered) -> list[Kernel]:
    """Median time of each row that was executed."""
    run()
    spent: dict[str, list[float]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for _ in range(PROFILED_RUNS):
        run()
        for row in rows():
            if row.status.name == "EXECUTED":
                spent[row.node_name].append(row.real_time.total_seconds() * 1e6)
                kinds[row.node_name] = f"{row.node_type}[{row.exec_type}]"
    return [
        Kernel(name=f"{kinds[name]}:{name}", nodes=covered.get(name, ()), calls=1, total_us=median(times))
        for name, times in spent.items()
    ]


def covered_nodes(graph: Graph, imported: Any, executed: Any) -> dict[str, tuple[str, ...]]:
    """Of a model that ran: by the names of imported operations that it keeps, and by where results go.

    A node that no executed operation lists counts with its reader: it was folded, or its name was lost in a rewrite.
    An operation that ran and lists none (but for changes of layout) takes the nodes that its reader has in such a way,
    or else shares those of its reader.
    """
    made = origins(graph, imported)
    operations = [item for item in executed.get_ordered_ops() if _text(item, "layerType") not in _DATA]
    owner: dict[str, str] = {}
    for operation in operations:
        for layer in _layers(_text(operation, "originalLayersNames"), made):
            owner.setdefault(made[layer], operation.get_friendly_name())
    listed, taken = _by_owner(graph, owner), _by_owner(graph, _taken(graph, owner))
    covered = {name: (*taken.get(name, ()), *listed[name]) for name in listed}
    for operation in reversed(operations):
        name = operation.get_friendly_name()
        reader = next((item for item in _readers(operation) if item in covered), "")
        idle = "not_executed" in _text(operation, "execTimeMcs") or _text(operation, "layerType") == "Reorder"
        if name in covered or not reader or idle:
            continue
        covered[name] = taken.get(reader) or covered[reader]
        covered[reader] = listed.get(reader) or covered[reader]
    return {name: tuple(dict.fromkeys(map(origin, nodes))) for name, nodes in covered.items()}


def _taken(graph: Graph, owner: Mapping[str, str]) -> dict[str, str]:
    """Owners of the nodes that have none: those of the nodes that read their results."""
    readers: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node.name)
    found: dict[str, str] = {}
    for node in reversed(graph.nodes):
        if node.name not in owner:
            names = [name for value in node.outputs for name in readers[value]]
            reader = next((name for name in names if name in owner or name in found), None)
            if reader:
                found[node.name] = owner.get(reader) or found[reader]
    return found


def _by_owner(graph: Graph, owner: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    nodes: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        if node.name in owner:
            nodes[owner[node.name]] = (*nodes.get(owner[node.name], ()), node.name)
    return nodes


def _readers(operation: Any) -> list[str]:
    return [port.get_node().get_friendly_name() for out in operation.outputs() for port in out.get_target_inputs()]


def origins(graph: Graph, imported: Any) -> dict[str, str]:
    """Names of the imported model's operations to the nodes that they came from.

    The importer names the last operation of a node after it, or after the value where that is an output of the graph;
    operations before that have names of their own, and belong to the node that reads them.
    """
    nodes = {node.name for node in graph.nodes}
    producers = {value: node.name for node in graph.nodes for value in node.outputs if value}
    found: dict[str, str] = {}
    for operation in reversed(imported.get_ordered_ops()):
        name = operation.get_friendly_name()
        if operation.get_type_name() in ("Parameter", "Result"):
            continue
        known = _known(name, nodes) or producers.get(name) or _known_tensor(operation, producers)
        if not known:
            known = next((found[reader] for reader in _readers(operation) if reader in found), "")
        if known:
            found[name] = known
    return found


def _known(name: str, nodes: set[str]) -> str:
    """The node of that name, or of what stands before a slash (`node/WithoutBiases`)."""
    while name and name not in nodes:
        name = name.rpartition("/")[0]
    return name


def _known_tensor(operation: Any, producers: Mapping[str, str]) -> str:
    names = (name for out in operation.outputs() for name in out.get_names())
    return next((producers[name] for name in names if name in producers), "")


def _layers(listed: str, known: Mapping[str, str]) -> list[str]:
    """The known names in a list by commas, which names may have themselves."""
    parts, layers, start = listed.split(","), [], 0
    while start < len(parts):
        for end in range(len(parts), start, -1):
            name = ",".join(parts[start:end])
            if name in known:
                layers.append(name)
                start = end - 1
                break
        start += 1
    return layers


def _text(operation: Any, key: str) -> str:
    info = operation.get_rt_info()
    return str(info[key].astype(str)) if key in info else ""
