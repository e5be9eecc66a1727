"""Working memory, by hand."""

from __future__ import annotations

import msgspec
import pytest

from graphnet.analyze import memory
from graphnet.analyze.frame import frame
from graphnet.compilers import Target
from graphnet.evaluate.records import CompileTime, Memory, Result

RESULT = Result(
    run_id="r", graph_id="g", graph="g", subset="vision", structure_hash="h", compiler="jax", target=Target(),
    verdict="ok", compile=CompileTime(lower_s=1, compile_s=2, first_run_s=3),
    warm_compile=CompileTime(lower_s=1, compile_s=0.5, first_run_s=0.25),
    memory=Memory(baseline=100, load_peak=150, compile_peak=400, run_peak=200, steady=180, weights=40, inputs=7,
                  outputs=3),
)  # fmt: skip


def changed(**fields: int) -> Result:
    assert RESULT.memory is not None
    return msgspec.structs.replace(RESULT, memory=msgspec.structs.replace(RESULT.memory, **fields))


def test_workspace_is_what_is_left() -> None:
    assert memory.workspace(RESULT) == 180 - 100 - 40 - 7 - 3 == 30
    assert memory.workspace(changed(weights=70)) == 0


@pytest.mark.parametrize(
    "result",
    [
        changed(weights=71),
        changed(steady=0),
        changed(baseline=0),
        msgspec.structs.replace(RESULT, memory=None),
        msgspec.structs.replace(RESULT, target=Target(device="cuda")),
    ],
    ids=["below zero", "no timed runs", "no baseline", "no memory", "on a device"],
)
def test_workspace_is_unknown(result: Result) -> None:
    assert memory.workspace(result) is None
    assert frame([result])["workspace_memory"].isna().all()


def test_columns() -> None:
    row = frame([RESULT]).iloc[0]
    assert (row["compile_time"], row["compile_warm"]) == (6.0, 1.75)
    assert (row["peak_memory"], row["steady_memory"], row["workspace_memory"]) == (400, 180, 30)
    plain = frame([msgspec.structs.replace(changed(steady=0), warm_compile=None)])
    assert plain[["compile_warm", "steady_memory"]].isna().all(axis=None)
