"""How full a loop keeps the pipeline, as `llvm-mca` simulates it: runs the tool and reads its JSON."""

from __future__ import annotations

import subprocess

import msgspec

from graphnet.compilers import llvm_tools
from graphnet.errors import GraphNetError

ITERATIONS = 100
"""Passes of the loop that are simulated; the first few, in which the pipeline fills, count too."""
TIMEOUT_S = 60.0
_UNKNOWN_CPU = "is not a recognized processor"


class McaError(GraphNetError):
    """`llvm-mca` cannot simulate this assembly on this CPU; the message says why."""


class Throughput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one loop does on one CPU when every load hits the first cache and every branch is foreseen."""

    cpu: str
    """LLVM's name."""
    release: int
    """Of LLVM: another one may model the CPU otherwise."""
    instructions: int
    """Of one pass."""
    ipc: float
    """Instructions per cycle."""
    dispatch_width: int
    """Instructions that the CPU can begin in a cycle, by LLVM's model."""
    cycles: float
    """Per pass."""
    reciprocal_throughput: float
    """Cycles per pass if nothing but the ports limited it (`Block RThroughput`)."""
    port: str = ""
    """The busiest resource of the model."""
    pressure: float | None = None
    """Cycles per pass in which that port is busy."""

    @property
    def saturation(self) -> float:
        """IPC / dispatch width, 0 to 1."""
        return self.ipc / self.dispatch_width


class _Summary(msgspec.Struct):
    BlockRThroughput: float
    DispatchWidth: int
    IPC: float
    Instructions: int
    Iterations: int
    TotalCycles: int


class _Usage(msgspec.Struct):
    InstructionIndex: int
    ResourceIndex: int
    ResourceUsage: float


class _Pressure(msgspec.Struct):
    ResourcePressureInfo: list[_Usage] = []


class _Region(msgspec.Struct):
    SummaryView: _Summary
    Instructions: list[str]
    ResourcePressureView: _Pressure = msgspec.field(default_factory=_Pressure)


class _Target(msgspec.Struct):
    CPUName: str
    Resources: list[str]


class _Output(msgspec.Struct):
    CodeRegions: list[_Region]
    TargetInfo: _Target


def simulate(loop: str, cpu: str) -> Throughput:
    """Simulate one loop of x86-64 assembly on the CPU that LLVM calls `cpu`. Raises ToolNotFound, McaError."""
    tool = llvm_tools.find("llvm-mca")
    command = [tool, "-mtriple=x86_64", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "--json"]
    try:
        done = subprocess.run(command, input=loop, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise McaError(f"llvm-mca took more than {TIMEOUT_S:g} s") from error
    release = llvm_tools.release(tool)
    if _UNKNOWN_CPU in done.stderr:
        raise McaError(f"llvm-mca of LLVM {release} does not know CPU '{cpu}'; install a newer one")
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise McaError(f"llvm-mca of LLVM {release}: {first.strip()[:200] or f'status {done.returncode}'}")
    return read(done.stdout, release)


def read(text: str, release: int) -> Throughput:
    """Figures of the one region in what `llvm-mca --json` printed. Raises McaError where it is not as known."""
    try:
        output = msgspec.json.decode(text, type=_Output)
        (region,) = output.CodeRegions
    except (msgspec.DecodeError, ValueError) as error:
        raise McaError(f"the JSON of llvm-mca of LLVM {release} is not understood: {error}") from error
    summary = region.SummaryView
    if not (summary.Iterations and summary.DispatchWidth and summary.TotalCycles):
        raise McaError(f"llvm-mca of LLVM {release} gave a summary without cycles")
    port, pressure = _busiest(region, output.TargetInfo.Resources)
    return Throughput(
        cpu=output.TargetInfo.CPUName, release=release, instructions=summary.Instructions // summary.Iterations,
        ipc=summary.IPC, dispatch_width=summary.DispatchWidth, cycles=summary.TotalCycles / summary.Iterations,
        reciprocal_throughput=summary.BlockRThroughput, port=port, pressure=pressure,
    )  # fmt: skip


def _busiest(region: _Region, names: list[str]) -> tuple[str, float | None]:
    """Resource with the highest use per pass: rows with an index after the last instruction are the sums."""
    sums = [row for row in region.ResourcePressureView.ResourcePressureInfo
            if row.InstructionIndex == len(region.Instructions) and row.ResourceIndex < len(names)]  # fmt: skip
    if not sums:
        return "", None
    most = max(sums, key=lambda row: row.ResourceUsage)
    # Of several units of one kind LLVM writes the number as a byte: "Zn4Load.\x01".
    name = "".join(char if char.isprintable() else str(ord(char)) for char in names[most.ResourceIndex])
    return name, most.ResourceUsage
