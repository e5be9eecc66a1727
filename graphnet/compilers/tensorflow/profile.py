"""Per-kernel times of a TensorFlow function from TensorFlow's profiler: HLO instructions under XLA, else operations."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from graphnet.compilers.base import Kernel
from graphnet.compilers.xla_kernels import Event, kernels
from graphnet.ir.graph import Graph, Node

PROFILED_RUNS = 5


def profile_xla(run: Callable[[], None], hlo: str, node_of: Callable[[str], str]) -> list[Kernel]:
    """Kernels of `run` by HLO instruction.

    Args:
        run: one inference.
        hlo: text of the optimised module.
        node_of: GraphIR node of an operation's name in its metadata, `""` for none.
    """
    found = [(start, stats["hlo_op"], spent) for start, _, spent, stats in _events(run) if "hlo_op" in stats]
    return kernels(sorted(found), hlo, node_of, PROFILED_RUNS)


def profile_operations(run: Callable[[], None], graph: Graph, node_of: Callable[[str], str]) -> list[Kernel]:
    """Kernels of `run` by TensorFlow operation. A fused one bears the name of the last node whose work it does."""
    found = [(start, name, spent) for start, name, spent, _ in _events(run) if ":" in name and node_of(name)]
    return operations(sorted(found), covered(graph, {node_of(name) for _, name, _ in found}), node_of)


def operations(found: list[Event], nodes: Mapping[str, tuple[str, ...]], node_of: Callable[[str], str]) -> list[Kernel]:
    """Events by name, `operation:type`, over all profiled runs."""
    times: dict[str, list[float]] = defaultdict(list)
    for _, name, nanoseconds in found:
        times[name].append(nanoseconds)
    return [
        Kernel(
            name=name,
            nodes=nodes[node_of(name)],
            calls=max(1, round(len(spent) / PROFILED_RUNS)),
            total_us=sum(spent) / PROFILED_RUNS / 1e3,
        )
        for name, spent in times.items()
    ]


def covered(graph: Graph, seen: set[str]) -> dict[str, tuple[str, ...]]:
    """Each node that was seen to run, with those upstream of it that were not: it does their work too."""
    producer: dict[str, Node] = {out: node for node in graph.nodes for out in node.outputs if out}
    claimed = set(seen)
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in seen}
    for node in graph.nodes:
        if node.name in seen:
            upstream: dict[str, None] = {}
            stack = list(node.inputs)
            while stack:
                source = producer.get(stack.pop())
                if source is not None and source.name not in claimed:
                    claimed.add(source.name)
                    upstream[source.name] = None
                    stack.extend(source.inputs)
            found[node.name] = (*list(upstream)[::-1], node.name)
    return found


def _events(run: Callable[[], None]) -> Iterator[tuple[float, str, float, dict[str, Any]]]:
    """Start and name, duration (nanoseconds) and texts that belong to each event of a few profiled runs."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    run()
    with tempfile.TemporaryDirectory(prefix="graphnet-tensorflow-") as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
        tf.profiler.experimental.start(folder, options)
        try:
            for _ in range(PROFILED_RUNS):
                run()
        finally:
            tf.profiler.experimental.stop()
        (trace,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(trace.read_bytes())
    for plane in space.planes:
        names = {key: item.name for key, item in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                stats = {names[s.metadata_id]: s.str_value or names.get(s.ref_value, "") for s in event.stats}
                start = line.timestamp_ns + event.offset_ps / 1e3
                yield start, plane.event_metadata[event.metadata_id].name, event.duration_ps / 1e3, stats
