"""Small sets of results for the page, with names as a hostile stranger would choose them."""

from __future__ import annotations

from graphnet.compilers import Kernel, Target
from graphnet.evaluate.records import (
    CompileTime,
    Memory,
    Noise,
    OutputError,
    Result,
    Stage,
    Timing,
    Verdict,
)

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><b>%{x}&lt;i&gt;\u202egnp"
MIB = 1 << 20


def kernels_of(ms: float) -> tuple[Kernel, ...]:
    """Two kernels that take six and three tenths of the time."""
    return (
        Kernel(name="k0", nodes=("n0",), calls=1, total_us=ms * 600),
        Kernel(name="k1", calls=2, total_us=ms * 300),
    )


def record(
    graph: str,
    compiler: str,
    ms: float = 0.0,
    *,
    verdict: Verdict = "ok",
    stage: Stage | None = None,
    compile_s: float = 1.0,
    threads: int = 1,
    subset: str = "vision",
) -> Result:
    """A result whose every run took `ms`; of `ms` 0 one without timing."""
    return Result(
        run_id="r", job_key=f"{graph}|{compiler}|{threads}", graph_id=f"GN-{graph}", graph=graph, subset=subset,
        structure_hash=graph, compiler=compiler, target=Target(threads=threads), verdict=verdict, stage=stage,
        level=-5 if verdict == "ok" else None, timing=Timing(samples_ns=(round(ms * 1e6),) * 5) if ms else None,
        compile=CompileTime(lower_s=compile_s / 4, compile_s=compile_s / 2, first_run_s=compile_s / 4) if ms else None,
        memory=Memory(baseline=100 * MIB, load_peak=120 * MIB, compile_peak=180 * MIB, run_peak=150 * MIB),
        noise=Noise(before_ns=(10, 11), after_ns=(10, 12), cv=0.08), versions={compiler: "1.0"},
        outputs=(OutputError(name="y", dtype="float32", level=-5, max_abs=1e-6, max_rel=2e-5),) if ms else (),
        kernels=kernels_of(ms) if ms else (),
        settings={"device": "cpu", "fused": True}, environment="e", started="2026-12-02T21:00:00+00:00", wall_s=2.0,
    )  # fmt: skip
