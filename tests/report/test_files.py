"""latency.csv and memory_usage.log."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec

from graphnet.compilers import Kernel, Target
from graphnet.evaluate.records import Memory, Result, Timing
from graphnet.report import files

RESULT = Result(
    run_id="r", graph_id="GN-2026-CV-001", graph="resnet50", subset="vision", structure_hash="h", compiler="jax",
    target=Target(), verdict="ok", level=-6, timing=Timing(samples_ns=(100_000, 200_000, 300_000)),
    kernels=(
        Kernel(name="small", nodes=("n3",), calls=1, total_us=20.0),
        Kernel(name="fused", nodes=("n1", "n2"), calls=4, total_us=160.0),
    ),
    memory=Memory(baseline=1 << 20, load_peak=2 << 20, compile_peak=8 << 20, run_peak=4 << 20,
                  timeline=((0.5, 3 << 20),)),
)  # fmt: skip
FAILED = Result(
    run_id="r", graph_id="GN-2026-CV-002", graph="vgg", subset="vision", structure_hash="i", compiler="jax",
    target=Target(), verdict="crashed", stage="load", message="signal 9",
)  # fmt: skip


SETTINGS = "cpu, 1 thread(s), float32, passes default, seed 0, machine unknown"


def test_latency_rows_name_nodes_and_shares() -> None:
    rows = list(csv.DictReader(io.StringIO(files.latency_csv([RESULT, FAILED]))))
    assert [row["kernel"] for row in rows] == ["end_to_end", "all_kernels", "fused", "small"]
    assert rows[0]["total_us"] == "200.000"
    assert (rows[1]["calls"], rows[1]["total_us"], rows[1]["share"]) == ("5", "180.000", "0.9000")
    assert rows[2]["nodes"] == "n1 n2"
    assert (rows[2]["calls"], rows[2]["mean_us"], rows[2]["share"]) == ("4", "40.000", "0.8000")
    assert {row["graph_id"] for row in rows} == {"GN-2026-CV-001"}


def test_rows_of_one_graph_under_several_settings_are_told_apart() -> None:
    other = msgspec.structs.replace(RESULT, target=Target(threads=2, options={"level": 3}), dims={"batch": 8})
    rows = list(csv.DictReader(io.StringIO(files.latency_csv([RESULT, other]))))
    assert list(dict.fromkeys(row["settings"] for row in rows)) == [
        SETTINGS,
        SETTINGS.replace("1 thread", "2 thread") + ", batch=8, level=3",
    ]
    assert "resnet50 (cpu, 2 thread(s)" in files.memory_log([RESULT, other])


def test_memory_log_tells_peaks_and_what_was_not_measured() -> None:
    lines = files.memory_log([RESULT, FAILED]).splitlines()
    assert lines == [
        f"GN-2026-CV-001 resnet50 ({SETTINGS}) baseline=1.0MiB load_peak=2.0MiB compile_peak=8.0MiB run_peak=4.0MiB",
        "  t=0.500s rss=3.0MiB",
        f"GN-2026-CV-002 vgg ({SETTINGS}) not measured: crashed load signal 9",
    ]


def test_memory_log_tells_the_parts_after_the_timed_runs() -> None:
    assert RESULT.memory is not None
    memory = msgspec.structs.replace(
        RESULT.memory,
        steady=6 << 20,
        weights=2 << 20,
        inputs=1 << 20,
        outputs=1 << 19,
        allocator={"temp": 5, "args": 7},
    )
    lines = files.memory_log([msgspec.structs.replace(RESULT, memory=memory)]).splitlines()
    assert lines[1:3] == [
        "  steady=6.0MiB weights=2.0MiB inputs=1.0MiB outputs=0.5MiB workspace=1.5MiB",
        "  allocator: args=7B temp=5B",
    ]
    memory = msgspec.structs.replace(memory, weights=5 << 20, allocator={})
    lines = files.memory_log([msgspec.structs.replace(RESULT, memory=memory)]).splitlines()
    assert lines[1].endswith("workspace=unknown")
    assert lines[2] == "  t=0.500s rss=3.0MiB"


def test_each_compiler_gets_a_folder(tmp_path: Path) -> None:
    written = files.write([RESULT, FAILED], tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in written) == [
        "jax/latency.csv",
        "jax/memory_usage.log",
        "summary.md",
    ]
    assert (tmp_path / "jax" / "latency.csv").read_text() == files.latency_csv([RESULT, FAILED])
