"""The table of code quality and the listings."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from graphnet.analyze.assembly import Mix
from graphnet.analyze.code_quality import CodeQuality, HotLoop, KernelQuality
from graphnet.analyze.mca import Throughput
from graphnet.errors import UsageError
from graphnet.evaluate import code_files
from graphnet.report import code_tables

THROUGHPUT = Throughput(
    cpu="znver4", release=19, instructions=3, ipc=3.0, dispatch_width=6, cycles=1.0, reciprocal_throughput=0.5,
    port="FP0", pressure=0.75,
)  # fmt: skip
LOOP = HotLoop(
    function="f", lines=((3, 4),), mix=Mix(instructions=2, floats=1, vector_floats=1, width=256), throughput=THROUGHPUT
)
FAST = CodeQuality(
    job_key="1" * 32, graph="g", compiler="tvm", measured="", mcpu="znver4", llvm=19, vector_bits=512,
    kernels=(
        KernelQuality(kernel="k", time_us=7.0, file="k.s", loop=LOOP, spills=0),
        KernelQuality(kernel="straight", time_us=1.0, file="s.s", spills=0),
    ),
    saturation=0.5, vector_share=1.0, fma_share=0.0, width_share=0.5, spills=0, library_share=0.0,
    saturation_time_share=0.875,
)  # fmt: skip
LIBRARY = CodeQuality(job_key="2" * 32, graph="g", compiler="torch", measured="", coded=False)
UNKNOWN = CodeQuality(
    job_key="3" * 32, graph="g", compiler="jax", measured="", notes=("no profile",),
    kernels=(KernelQuality(kernel="a", file="a.s", problem="aarch64 assembly is not analysed"),),
)  # fmt: skip


def printed(found: list[CodeQuality]) -> list[str]:
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(code_tables.quality_table(found))
    return capture.get().splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_a_library_is_no_zero_and_unknown_is_a_dash() -> None:
    lines = printed([FAST, LIBRARY, UNKNOWN])
    rows = {cells(line)[1]: cells(line)[2:] for line in lines if line.startswith("│")}
    assert rows == {
        "jax": ["-"] * 7,
        "torch": ["library call", "-", "-", "-", "-", "-", "100%"],
        "tvm": ["0.50", "88%", "100%", "0%", "50% of 512", "0", "0%"],
    }
    assert "g on tvm: 1 kernel(s): no loop, so no saturation" in lines
    assert "g on jax: no profile" in lines
    assert "g on jax: 1 kernel(s): aarch64 assembly is not analysed" in lines


def test_nothing_to_show_names_the_flag() -> None:
    with pytest.raises(UsageError, match="evaluate --code"):
        code_tables.quality_table([])


def test_a_listing_shows_the_lines_of_the_loop_with_its_figures(tmp_path: Path) -> None:
    folder = code_files.folder_of(tmp_path, "tvm", "g", "1" * 32)
    folder.mkdir(parents=True)
    (folder / "k.s").write_text("f:\n.L1:\n\tvaddps\t%ymm0, %ymm1, %ymm2\n\tjne\t.L1\n\tretq\n")
    (text,) = code_tables.listings(tmp_path, [FAST, LIBRARY])
    assert text.plain.splitlines()[1:] == [
        f"g on tvm: k, 7.0 us ({folder / 'k.s'})",
        "  IPC 3.00 of 6 (saturation 0.50), block reciprocal throughput 0.5 cycles, busiest FP0 0.75 cycles a pass;"
        " 1 of 1 floats in vectors, 0 multiply-adds, 256 bits",
        "  lines 3 to 4 of f",
        "\tvaddps\t%ymm0, %ymm1, %ymm2",
        "\tjne\t.L1",
    ]
