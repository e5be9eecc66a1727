"""The cost model: FLOPs, bytes and intensities of nodes and graphs, counts, tier and operator distribution."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod

import msgspec

from graphnet.ir import dims as dims_
from graphnet.ir import fills
from graphnet.ir.cost_rules import PARTIAL_READS, VIEWS, Operands, flops
from graphnet.ir.graph import Body, Graph, Node, Shape, Tier, bodies, walk

BALANCE = 10.0
"""FLOP per byte at which the reference machine's arithmetic and memory take the same time."""
_TIERS: tuple[tuple[int, Tier], ...] = ((99, "kernel"), (500, "micro"), (4_999, "block"), (50_000, "model"))
_HALF_BYTE = frozenset({"int4", "uint4", "float4e2m1"})
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAMES = {"MatMul": "matmul", "Gemm": "matmul", "IsNaN": "is_nan"}


class NodeCost(msgspec.Struct, frozen=True):
    """Cost of one node at the default sizes."""

    flops: int | None
    """A multiply-add is 2. None where the operator has no rule."""
    bytes: int
    """Each input read once (of a Gather or Slice: what it takes), each output written once; views move nothing."""
    unknown: tuple[tuple[str, int], ...] = ()
    """Operators without a rule, those in nested graphs included, with their counts."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one inference at the default sizes. `flops` and `bytes` are lower bounds if `unknown` is not empty."""

    flops: int
    bytes: int
    unknown: dict[str, int]
    """Operators without a cost rule, by name, with the number of such nodes."""
    arithmetic_intensity: float
    """FLOP per byte; 0 for a graph that moves nothing."""
    compute_intensity: float
    """Share (0 to 1) of the roofline time spent in compute-bound nodes, at 10 FLOP per byte."""


def graph_cost(graph: Graph) -> Cost:
    """Sum over all nodes. Raises GraphBindError for a dimension that has no value at the defaults."""
    total_flops = total_bytes = 0
    unknown: Counter[str] = Counter()
    compute_time = total_time = 0.0
    for _, cost in node_costs(graph):
        work, moved = cost.flops or 0, cost.bytes
        total_flops += work
        total_bytes += moved
        for name, count in cost.unknown:
            unknown[name] += count
        arithmetic = work / BALANCE
        longest = max(arithmetic, float(moved))
        total_time += longest
        if arithmetic >= moved and work:
            compute_time += longest
    return Cost(
        flops=total_flops,
        bytes=total_bytes,
        unknown=dict(sorted(unknown.items())),
        arithmetic_intensity=total_flops / total_bytes if total_bytes else 0.0,
        compute_intensity=compute_time / total_time if total_time else 0.0,
    )


def node_cost(graph: Graph, node: Node) -> NodeCost:
    """Cost of one node of the outermost graph. Raises KeyError for a name the graph does not define."""
    return _Costs(graph).node(node, (_types(graph),))


def node_costs(graph: Graph) -> Iterator[tuple[Node, NodeCost]]:
    """Every node of the outermost graph with its cost; control flow includes its bodies."""
    costs, types = _Costs(graph), (_types(graph),)
    return ((node, costs.node(node, types)) for node in graph.nodes)


def operator_count(graph: Graph | Body) -> int:
    """Number of nodes, those in nested bodies included; constants are weights, not nodes."""
    return sum(1 for _ in walk(graph))


def distribution(graph: Graph) -> dict[str, int]:
    """Operators in lower snake case with their counts, the most frequent first."""
    counts: Counter[str] = Counter()
    _count(graph, (_types(graph),), counts)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def parameters(graph: Graph) -> int:
    """Elements of all weights with role `parameter`, nested bodies included."""
    total = sum(prod(weight.shape) for weight in graph.weights.values() if weight.role == "parameter")
    for node in walk(graph):
        for _, body in bodies(node):
            total += sum(prod(weight.shape) for weight in body.weights.values() if weight.role == "parameter")
    return total


def tensor_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor in memory; 4-bit elements lie two in a byte, strings count nothing."""
    count = prod(shape)
    return (count + 1) // 2 if dtype in _HALF_BYTE else count * fills.ITEM_BYTES.get(dtype, 0)


def tier(count: int) -> Tier:
    """kernel < 100 <= micro <= 500 < block < 5,000 <= model <= 50,000 < industrial."""
    return next((name for most, name in _TIERS if count <= most), "industrial")


@lru_cache(maxsize=4096)
def operator_name(op: str, domain: str = "", rank: int | None = None) -> str:
    """Name in a distribution: `conv2d` for Conv of rank 4, `matmul` for MatMul and Gemm, else snake case."""
    if domain:
        return f"{domain}::{_SNAKE.sub('_', op).lower()}"
    if op == "Conv" and rank is not None and rank > 2:
        return f"conv{rank - 2}d"
    return _NAMES.get(op) or _SNAKE.sub("_", op).lower()


Types = Mapping[str, tuple[str, Shape]]
Scopes = tuple[Types, ...]


def _types(graph: Graph | Body) -> Types:
    types: dict[str, tuple[str, Shape]] = {name: (item.dtype, item.shape) for name, item in graph.values.items()}
    types.update((name, (item.dtype, item.shape)) for name, item in graph.weights.items())
    types.update((item.name, (item.dtype, item.shape)) for item in graph.inputs)
    return types


def _find(name: str, scopes: Scopes) -> tuple[str, Shape]:
    for types in reversed(scopes):
        found = types.get(name)
        if found is not None:
            return found
    raise KeyError(name)


def _count(graph: Graph | Body, scopes: Scopes, counts: Counter[str]) -> None:
    for node in graph.nodes:
        rank = len(_find(node.inputs[0], scopes)[1]) if node.op == "Conv" and node.inputs else None
        counts[operator_name(node.op, node.domain, rank)] += 1
        for _, body in bodies(node):
            _count(body, (*scopes, _types(body)), counts)


class _Costs:
    """Costs at the default sizes; every distinct type is evaluated once."""

    def __init__(self, graph: Graph) -> None:
        self._dims = graph.dims
        self._defaults = {name: dim.default for name, dim in graph.dims.items()}
        self._static: dict[tuple[str, Shape], tuple[tuple[int, ...], int]] = {}
        self._literals = graph.weights

    def node(self, node: Node, scopes: Scopes) -> NodeCost:
        inputs = [self._sized(_find(name, scopes)) if name else None for name in node.inputs]
        outputs = [self._sized(_find(name, scopes)) for name in node.outputs if name]
        if node.domain == "" and node.op in ("If", "Loop", "Scan"):
            return self._control_flow(node, scopes, inputs)
        operands = Operands([None if i is None else i[0] for i in inputs], [o[0] for o in outputs], node.attrs)
        work = flops(node.op, operands) if node.domain == "" else None
        moved = 0
        if node.op not in VIEWS or node.domain:
            written = sum(item[1] for item in outputs)
            part = PARTIAL_READS.get(node.op) if node.domain == "" else None
            moved = written + sum(
                min(item[1], outputs[0][1]) if index == part else item[1]
                for index, item in enumerate(inputs)
                if item is not None and node.inputs.index(node.inputs[index]) == index
            )
        if work is None:
            name = f"{node.domain}::{node.op}" if node.domain else node.op
            return NodeCost(None, moved, ((name, 1),))
        return NodeCost(work, moved)

    def _sized(self, type_: tuple[str, Shape]) -> tuple[tuple[int, ...], int]:
        """Static shape and bytes of a type."""
        found = self._static.get(type_)
        if found is None:
            dtype, shape = type_
            static = dims_.shape_at(shape, self._defaults)
            found = self._static[type_] = (static, tensor_bytes(dtype, static))
        return found

    def _control_flow(self, node: Node, scopes: Scopes, inputs: list[tuple[tuple[int, ...], int] | None]) -> NodeCost:
        """If: the dearer branch. Scan, Loop: one body times the trips; trips that a run decides count as 1, unknown."""
        totals = [self._body(body, scopes) for _, body in bodies(node)]
        if not totals:
            return NodeCost(None, 0, ((node.op, 1),))
        if node.op == "If":
            return max(totals, key=lambda cost: (cost.flops or 0, cost.bytes))
        (total,) = totals[:1]
        trips = self._trips(node, scopes, inputs)
        unknown = total.unknown if trips is not None else (*total.unknown, (node.op, 1))
        times = 1 if trips is None else trips
        return NodeCost((total.flops or 0) * times, total.bytes * times, unknown)

    def _trips(self, node: Node, scopes: Scopes, inputs: list[tuple[tuple[int, ...], int] | None]) -> int | None:
        body = node.attrs["body"]
        if not isinstance(body, Body):
            return None
        if node.op == "Scan":
            count = node.attrs.get("num_scan_inputs", 1)
            axes = node.attrs.get("scan_input_axes", (0,))
            first = inputs[-count] if isinstance(count, int) and 0 < count <= len(inputs) else None
            axis = axes[0] if isinstance(axes, tuple) and axes else 0
            return first[0][axis] if first is not None and isinstance(axis, int) else None
        scans = node.outputs[len(node.inputs) - 2 :] if len(node.inputs) >= 2 else ()
        for name in scans:
            leading = _find(name, scopes)[1][:1] if name else ()
            if leading and not self._depends_on_data(leading[0]):
                return self._sized(("int64", leading))[0][0]
        weight = self._literals.get(node.inputs[0]) if node.inputs else None
        data = getattr(weight.fill, "data", None) if weight is not None else None
        static = isinstance(data, tuple) and len(data) == 1 and (len(node.inputs) < 2 or not node.inputs[1])
        return max(int(data[0]), 0) if static and data is not None and _passes_on(body) else None

    def _depends_on_data(self, dim: int | str) -> bool:
        return isinstance(dim, str) and any(self._dims[name].data_dependent for name in dims_.symbols(dim))

    def _body(self, body: Body, scopes: Scopes) -> NodeCost:
        inner = (*scopes, _types(body))
        costs = [self.node(node, inner) for node in body.nodes]
        unknown: Counter[str] = Counter()
        for cost in costs:
            for name, count in cost.unknown:
                unknown[name] += count
        total = sum(cost.flops or 0 for cost in costs)
        return NodeCost(total, sum(cost.bytes for cost in costs), tuple(sorted(unknown.items())))


def _passes_on(body: Body) -> bool:
    """Whether a loop body never ends the loop itself: its condition output is its condition input, or literal true."""
    if not body.outputs or len(body.inputs) < 2:
        return False
    name = body.outputs[0]
    makers = {out: node for node in body.nodes for out in node.outputs}
    while name in makers and makers[name].op == "Identity":
        name = makers[name].inputs[0]
    weight = body.weights.get(name)
    return name == body.inputs[1].name or (
        weight is not None and getattr(weight.fill, "data", getattr(weight.fill, "value", None)) in ((True,), True)
    )
