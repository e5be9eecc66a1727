"""Wall time that the harness adds to a job: everything but compiling, first run, warm-up and timed runs.

`python benchmarks/harness_overhead.py [--compilers torch,jax] [--rounds 5]` runs small graphs twice each, in turn: in
a child of a fork server that is up, and in a fresh interpreter that imports the framework for this one job. Reference
outputs are in the cache before. Prints the median and the largest overhead of both, in seconds, and the ratio of the
medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator

import msgspec

from graphnet.evaluate.plan import Job, plan
from graphnet.evaluate.records import Result
from graphnet.evaluate.runner import run
from graphnet.evaluate.store import Store
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight

BUDGET_S = 0.2
TARGET_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compilers", default="torch,jax,onnxruntime,inductor")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(
        f"{'compiler':12} {'jobs':>4} {'forked: median':>14} {'max':>6} {'fresh: median':>14} {'max':>6} {'ratio':>6}"
    )
    medians = []
    for compiler in arguments.compilers.split(","):
        forked, fresh = measure(compiler, arguments.rounds)
        median, other = statistics.median(forked), statistics.median(fresh)
        medians.append(median)
        print(
            f"{compiler:12} {len(forked):4} {median:14.3f} {max(forked):6.3f} {other:14.3f} {max(fresh):6.3f}"
            f" {other / median:6.1f}"
        )
    print(f"median of compilers {statistics.median(medians):.3f} s, target at most {TARGET_S} s")


def measure(compiler: str, rounds: int) -> tuple[list[float], list[float]]:
    """Overheads in seconds of jobs in forked and in fresh processes, in turn; the first round starts the server."""
    graphs = [mlp(width) for width in (16, 64, 256)]
    jobs = plan(graphs, [compiler], budget_s=BUDGET_S, profile=False)
    repeated = [again(job, index) for index in range(rounds + 1) for job in jobs]
    forked, fresh = [], []
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        results = run(repeated, store)
        for index, job in enumerate(repeated):
            spent = timed(results)
            alone = timed(run([job], store))
            if index >= len(jobs):
                forked.append(spent)
                fresh.append(alone)
    return forked, fresh


def again(job: Job, index: int) -> Job:
    """The same job under another name: a job that is listed twice would be run once."""
    assert isinstance(job.graph, Graph)
    return msgspec.structs.replace(job, graph=msgspec.structs.replace(job.graph, name=f"{job.graph.name}-{index}"))


def timed(results: Iterator[Result]) -> float:
    """Seconds until the next result, less those of its compilation and its runs."""
    begin = time.perf_counter()
    result = next(results)
    spent = time.perf_counter() - begin
    if result.verdict not in ("ok", "unstable") or result.timing is None or result.compile is None:
        raise SystemExit(f"{result.compiler} on {result.graph}: {result.verdict} {result.message}")
    timing = result.timing
    runs = sum(timing.warmup_ns) + timing.inner_loops * sum(timing.samples_ns)
    return spent - result.compile.total_s - runs * 1e-9


def mlp(width: int) -> Graph:
    """softmax(relu(x W1) W2) on float32[8, width]."""
    shape = (8, width)
    weight = Weight(dtype="float32", shape=(width, width), fill=Normal(std=width**-0.5))
    steps = [
        ("MatMul", ("x", "w1"), "a"),
        ("Relu", ("a",), "b"),
        ("MatMul", ("b", "w2"), "c"),
        ("Softmax", ("c",), "y"),
    ]
    return Graph(
        name=f"mlp{width}",
        inputs=(Input(name="x", dtype="float32", shape=shape),),
        outputs=("y",),
        weights={"w1": weight, "w2": weight},
        nodes=tuple(Node(op=op, name=out, inputs=inputs, outputs=(out,)) for op, inputs, out in steps),
        values={out: Value(dtype="float32", shape=shape) for _, _, out in steps},
    )


if __name__ == "__main__":
    main()
