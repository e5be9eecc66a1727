"""The table of everything: figures by hand, unknown ones as `-`, library code said so."""

from __future__ import annotations

import msgspec

from graphnet.analyze.code_quality import CodeQuality
from graphnet.compilers import Target
from graphnet.evaluate.records import CompileTime, Environment, Memory, OutputError, Peaks, Result, Timing
from graphnet.report.efficiency_table import COLUMNS, efficiency_table, row

PEAKS = Peaks(threads=1, flops={"float32": 1e11}, bandwidth={"DRAM": 2e10}, sources={}, measured="")
MACHINE = Environment(
    key="m", cpu_model="c", cpu_count=2, memory_bytes=2**34, os="Linux", python="3.11", peaks=(PEAKS,)
)  # fmt: skip
RESULT = Result(
    run_id="r", job_key="k", graph_id="g", graph="net", subset="vision", structure_hash="h", compiler="tvm",
    target=Target(threads=1), verdict="ok", timing=Timing(samples_ns=(2_000_000,) * 5), flops=50_000_000,
    bytes=10_000_000, compile=CompileTime(lower_s=0.5, compile_s=1.0, first_run_s=0.25),
    warm_compile=CompileTime(compile_s=0.5), environment="m",
    memory=Memory(baseline=2**20, load_peak=2**21, compile_peak=5 * 2**20, run_peak=2**22),
    outputs=(OutputError(name="y", dtype="float32", level=-6),),
)  # fmt: skip
QUALITY = CodeQuality(
    job_key="k", graph="net", compiler="tvm", measured="", saturation=0.5, saturation_time_share=0.9, vector_share=0.75
)  # fmt: skip


def test_figures_by_hand() -> None:
    """50 MFLOP in 2 ms are 25 GFLOP/s, a quarter of the peak; 10 MB are 5 GB/s, a quarter of the bandwidth."""
    cells = dict(zip(COLUMNS, row(RESULT, [MACHINE], QUALITY), strict=True))
    assert cells == {
        "graph": "net", "compiler": "tvm", "ms": "2", "GFLOP/s": "25", "of peak": "25%", "GB/s": "5",
        "of bandwidth": "25%", "cold s": "1.75", "warm s": "0.50", "peak MiB": "4", "saturation": "0.50 (90% of time)",
        "vector": "75%", "": "",
    }  # fmt: skip


def test_what_is_not_known_is_no_zero() -> None:
    failed = msgspec.structs.replace(RESULT, verdict="unsupported", timing=None, compile=None, warm_compile=None)
    assert row(failed, [], None)[2:9] == ("-",) * 7
    assert row(failed, [], None)[-1] == "unsupported"
    library = msgspec.structs.replace(QUALITY, coded=False, saturation=None, vector_share=None)
    assert row(RESULT, [MACHINE], library)[-3:-1] == ("library", "library")


def test_faster_than_the_machine_is_flagged() -> None:
    fast = msgspec.structs.replace(RESULT, timing=Timing(samples_ns=(400_000,) * 5))
    assert row(fast, [MACHINE], None)[-1] == "above peak"
    assert efficiency_table([fast], [MACHINE], {"k": QUALITY}).row_count == 1
