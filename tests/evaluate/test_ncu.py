"""Nsight Compute's CSV as it prints it, and what is said where it or its GPU is absent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphnet.compilers import Target
from graphnet.errors import DeviceNotPresent, GraphNetError
from graphnet.evaluate import ncu

OPERATIONS = [f"sm__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in
              ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma")]  # fmt: skip
COLUMNS = [
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "dram__bytes.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "gpu__time_duration.sum",
    "sm__inst_executed_pipe_tensor.sum", *OPERATIONS, "sm__throughput.avg.pct_of_peak_sustained_elapsed",
]  # fmt: skip
UNITS = ["", "", "", "", "", "", "", "", "", "", "", "Mbyte", "%", "us", "inst", *["inst"] * 9, "%"]


def line(values: list[str]) -> str:
    return ",".join(f'"{value}"' for value in values)


def launch(number: int, kernel: str, *values: str) -> str:
    place = [
        str(number),
        "4242",
        "python3.11",
        "127.0.0.1",
        kernel,
        "1",
        "7",
        "(256, 1, 1)",
        "(1024, 1, 1)",
        "0",
        "9.0",
    ]
    return line([*place, *values])


TEXT = "\n".join(
    [
        "==PROF== Connected to process 4242 (/usr/bin/python3.11)",
        '==PROF== Profiling "vectorized_elementwise_kernel" - 0: 0%....50%....100% - 9 passes',
        "==PROF== Disconnected from process 4242",
        line(COLUMNS),
        line(UNITS),
        launch(0, "void add<float, 4>(int, float)", "25.165824", "81.20", "1,234.5", "0", "1,048,576", "0", "2,097,152",
               "0", "0", "0", "0", "0", "3", "12.75"),
        launch(1, "sm90_xmma_gemm", "12.5", "20.00", "90.25", "65,536", "5", *["0"] * 8, "95.5"),
        launch(2, "old_gpu", "n/a", "n/a", "3.00", "n/a", *["n/a"] * 9, "1.00"),
    ]
)  # fmt: skip


def test_counters_in_base_units() -> None:
    first, second, third = ncu.parse(TEXT)
    assert first.kernel == "void add<float, 4>(int, float)"
    assert first.seconds == pytest.approx(1.2345e-3)
    assert (first.sm_percent, first.dram_percent) == (12.75, 81.2)
    assert first.dram_bytes == 25_165_824
    assert first.flops == 1_048_576 + 2 * 2_097_152 + 2 * 3
    assert second.flops is None, "tensor cores worked, which these counters do not see"
    assert second.dram_bytes == 12_500_000
    assert third.sm_percent == 1.0
    assert third.seconds == pytest.approx(3e-6)
    assert (third.dram_percent, third.dram_bytes, third.flops) == (None, None, None)


@pytest.mark.parametrize(
    ("unit", "text", "seconds"),
    [("ns", "1,500", 1.5e-6), ("nsecond", "1500", 1.5e-6), ("usecond", "2.5", 2.5e-6), ("ms", "3", 3e-3)],
)  # fmt: skip
def test_units_of_time(unit: str, text: str, seconds: float) -> None:
    table = f'"ID","Kernel Name","gpu__time_duration.sum"\n"","","{unit}"\n"0","k","{text}"\n'
    (found,) = ncu.parse(table)
    assert found.seconds == pytest.approx(seconds)


def test_absent_columns_are_unknown() -> None:
    (found,) = ncu.parse('"ID","Kernel Name"\n"",""\n"0","k"\n')
    assert found == ncu.Counters(kernel="k")


def test_no_launches_are_no_counters() -> None:
    assert ncu.parse('"ID","Kernel Name"\n"",""\n') == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no table of counters in its output: it printed nothing"),
        ("==ERROR== No kernels were profiled.\n", "no table of counters .* No kernels were profiled"),
        ('"ID","gpu__time_duration.sum"\n"","fortnight"\n"0","1"\n', "unknown unit 'fortnight'"),
        ('"ID","gpu__time_duration.sum"\n"","ns"\n"0","soon"\n', "'soon' is not a number"),
    ],
)
def test_what_is_no_table_is_told(text: str, words: str) -> None:
    with pytest.raises(GraphNetError, match=words):
        ncu.parse(text)


def test_command_reads_counters_between_the_marks_only() -> None:
    words = ncu.command("/usr/bin/ncu", ["python", "-m", "x"])
    assert words[:6] == ["/usr/bin/ncu", "--csv", "--page", "raw", "--print-units", "base"]
    assert words[-3:] == ["python", "-m", "x"]
    assert words[words.index("--profile-from-start") + 1] == "off"
    assert set(OPERATIONS) < set(words[words.index("--metrics") + 1].split(","))


@pytest.mark.parametrize(
    ("device", "words"),
    [("metal", "metal: timing only"), ("cpu", "cpu: hardware counters are read on NVIDIA GPUs only")],
)
def test_other_devices(device: str, words: str) -> None:
    with pytest.raises(DeviceNotPresent, match=words):
        ncu.profile(Path("g.json"), "torch", Target(device=device))


def test_without_gpu_or_tool_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/nvidia-smi" if name == "nvidia-smi" else None)
    with pytest.raises(DeviceNotPresent, match="ncu is not present; install Nsight Compute"):
        ncu.require("cuda")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    if not Path("/dev/nvidiactl").exists():
        with pytest.raises(DeviceNotPresent, match="no NVIDIA GPU present"):
            ncu.require("cuda")


def fake_tool(folder: Path, script: str) -> None:
    for name, text in (("nvidia-smi", "exit 0"), ("ncu", script)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def test_output_of_the_tool_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that prints a recorded table: the process around the parser, without a GPU."""
    (tmp_path / "table.csv").write_text(TEXT)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fake_tool(tmp_path, f"cat {tmp_path}/table.csv")
    assert len(ncu.profile(tmp_path / "g.json", "torch", Target(device="cuda"))) == 3
    fake_tool(tmp_path, "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1")
    with pytest.raises(GraphNetError, match="may not read GPU counters; run as root"):
        ncu.profile(tmp_path / "g.json", "torch", Target(device="cuda"))
    fake_tool(tmp_path, "echo out of luck >&2; exit 3")
    with pytest.raises(GraphNetError, match=r"g\.json on torch ended with status 3: out of luck"):
        ncu.profile(tmp_path / "g.json", "torch", Target(device="cuda"))
