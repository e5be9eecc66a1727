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
    """By the names of the imported model's operations that the executed model keeps, and by where results go.

    A node that no executed one lists (its name was lost in a fusion, or it was folded) counts with its reader.
    """
    made = origins(graph, imported)
    owner: dict[str, str] = {}
    for operation in executed.get_ordered_ops():
        name = operation.get_friendly_name()
        info = operation.get_rt_info()
        if _text(info, "execTimeMcs") == "not_executed" and _text(info, "layerType") in ("Input", "Const", "Output"):
            continue
        for layer in _layers(_text(info, "originalLayersNames"), made):
            owner.setdefault(made[layer], name)
    readers: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.inputs:
            readers[value].append(node.name)
    for node in reversed(graph.nodes):
        if node.name not in owner:
            found = [owner[reader] for value in node.outputs for reader in readers[value] if reader in owner]
            owner |= {node.name: found[0]} if found else {}
    covered: dict[str, dict[str, None]] = defaultdict(dict)
    for node in graph.nodes:
        if node.name in owner:
            covered[owner[node.name]][origin(node.name)] = None
    return {name: tuple(nodes) for name, nodes in covered.items()}


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
            readers = [
                port.get_node().get_friendly_name() for out in operation.outputs() for port in out.get_target_inputs()
            ]
            known = next((found[reader] for reader in readers if reader in found), "")
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


def _text(info: Any, key: str) -> str:
    return str(info[key].astype(str)) if key in info else ""
