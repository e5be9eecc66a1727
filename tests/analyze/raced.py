"""Results of races, made by hand: each block has one median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from graphnet.compilers import Target
from graphnet.evaluate.records import Block, Result, Timing

RUNS = 3


def timing(medians_us: Mapping[int, float] | Sequence[float], race: str = "x") -> Timing:
    """Blocks of three samples around each median in microseconds, by round."""
    rounds = dict(medians_us) if isinstance(medians_us, Mapping) else dict(enumerate(medians_us))
    samples = [round(1000 * us) + step for us in rounds.values() for step in (-1, 0, 1)]
    return Timing(
        samples_ns=tuple(samples), race=race, blocks=tuple(Block(round=number, samples=RUNS) for number in rounds)
    )  # fmt: skip


def result(medians_us: Mapping[int, float] | Sequence[float], race: str = "x", **fields: object) -> Result:
    """An `ok` result on the machine `m`."""
    plain = Result(
        run_id="r", graph_id="GN-a", graph="a", subset="vision", structure_hash="a", compiler="jax", target=Target(),
        verdict="ok", level=-6, timing=timing(medians_us, race), environment="m",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)
