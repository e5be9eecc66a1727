"""Records for tests of the regression gate, with times that are drawn from a known distribution."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from graphnet.compilers import Target
from graphnet.evaluate.records import Block, Environment, Floor, Result, Timing
from graphnet.evaluate.store import ResultSet

ROUNDS = 20
PER_BLOCK = 5


def machine(key: str = "m1", cpu: str = "EPYC", floor: float | None = None) -> Environment:
    """A machine; `floor` is the deviation between two runs, one after the other, of its noise floor."""
    floors: tuple[Floor, ...] = ()
    if floor is not None:
        floors = (
            Floor(
                threads=1, pairs=20, spread=floor / 10, sequential=floor, median=floor, p95=2 * floor,
                sequential_p95=2 * floor, covered=0.95,
            ),
        )  # fmt: skip
    return Environment(
        key=key, cpu_model=cpu, cpu_count=2, memory_bytes=8 << 30, os="Linux", python="3.11", floors=floors
    )


def of(*results: Result, environments: Sequence[Environment] = (machine(floor=0.001),)) -> ResultSet:
    return ResultSet(results=results, environments=tuple(environments))


def blocks_of(medians_ms: Sequence[float], race: str = "", noise: float = 0.0, seed: int = 0) -> Timing:
    """One block for each median."""
    generator = np.random.default_rng(seed)
    samples = [
        round(median * 1e6 * factor)
        for median in medians_ms
        for factor in np.exp(generator.normal(0, noise, PER_BLOCK))
    ]
    blocks = tuple(Block(round=number, samples=PER_BLOCK) for number in range(len(medians_ms)))
    return Timing(samples_ns=tuple(samples), blocks=blocks, race=race)


def record(
    graph: str = "a", ms: float = 0, *, compiler: str = "jax", noise: float = 0.002, seed: int = 0, **fields: object
) -> Result:
    """A result of so many milliseconds with `noise` between its blocks; a crash without."""
    generator = np.random.default_rng([seed, *map(ord, graph), *map(ord, compiler)])
    timing = blocks_of(list(ms * np.exp(generator.normal(0, noise, ROUNDS)))) if ms else None
    plain = Result(
        run_id="r", graph_id="", graph=graph, subset="vision", structure_hash=graph, compiler=compiler,
        target=Target(), verdict="ok" if ms else "crashed", stage=None if ms else "run", environment="m1",
        timing=timing, versions={compiler: "1.0"},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)
