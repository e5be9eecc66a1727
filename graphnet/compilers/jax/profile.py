"""Per-kernel times of an XLA executable from JAX's own profiler."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import jax

from graphnet.compilers import Kernel
from graphnet.compilers.xla_kernels import Event, kernels

PROFILED_RUNS = 5


def profile(run: Callable[[], None], hlo: str, node_of: Callable[[str], str]) -> list[Kernel]:
    """Kernels of `run` by HLO instruction, in order of first execution; times add up to that of the run (one thread).

    Args:
        run: one inference.
        hlo: text of the optimised module.
        node_of: GraphIR node of an `op_name` in its metadata, `""` for none.
    """
    run()
    with tempfile.TemporaryDirectory(prefix="graphnet-jax-") as folder:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        with jax.profiler.trace(folder, profiler_options=options):
            for _ in range(PROFILED_RUNS):
                run()
        (trace,) = Path(folder).rglob("*.xplane.pb")
        return kernels(events(jax.profiler.ProfileData.from_file(str(trace))), hlo, node_of, PROFILED_RUNS)


def events(data: jax.profiler.ProfileData) -> list[Event]:
    """Executions of HLO instructions in order. Other events (`ThunkExecutor::Execute` ...) enclose these."""
    found = [
        (event.start_ns, str(stats["hlo_op"]), event.duration_ns)
        for plane in data.planes
        for line in plane.lines
        for event in line.events
        if "hlo_op" in (stats := dict(event.stats))
    ]
    return sorted(found)
