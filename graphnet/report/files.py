"""The files of a results folder: `summary.md`, `<compiler>/latency.csv` and `<compiler>/memory_usage.log`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from graphnet.analyze.groups import conditions
from graphnet.analyze.memory import workspace
from graphnet.analyze.stats import median_seconds
from graphnet.errors import StoreError
from graphnet.evaluate.records import Environment, Memory, Result
from graphnet.ir.fileio import write_atomic
from graphnet.report.summary import summary

LATENCY_COLUMNS = ["graph_id", "graph", "kernel", "nodes", "calls", "total_us", "mean_us", "share", "settings"]
MIB = 1 << 20


def write(results: Sequence[Result], folder: Path, environments: Sequence[Environment] = ()) -> list[Path]:
    """Write the summary and both files of every compiler; returns the paths. Each file is replaced as a whole.

    `environments` have the noise floors of the machines. Raises StoreError naming the file that cannot be written.
    """
    if not results:
        return []
    texts = {folder / "summary.md": summary(results, environments)}
    for compiler in dict.fromkeys(result.compiler for result in results):
        mine = [result for result in results if result.compiler == compiler]
        target = folder / compiler.replace(":", "-").replace("/", "-")
        texts |= {target / "latency.csv": latency_csv(mine), target / "memory_usage.log": memory_log(mine)}
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}. All records are kept; make room or fix access, then go on"
            " with --resume"
        ) from error


def latency_csv(results: Sequence[Result]) -> str:
    """Time of each kernel (an operator or several fused) of a profiled run, microseconds per inference.

    `nodes` are the GraphIR nodes that the kernel covers, separated by spaces. The row `end_to_end` of each graph is the
    median of the timed (unprofiled) runs; `share` is the part of it that a kernel's time makes, in the row
    `all_kernels` that of their sum. `settings` tells apart the rows of a graph that was run several times: device,
    threads, passes, sizes, options.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(LATENCY_COLUMNS)
    for result in results:
        if result.timing is None:
            continue
        median_us = median_seconds(result.timing.samples_ns) * 1e6
        head, tail = [result.graph_id, result.graph], conditions(result)
        table.writerow([*head, "end_to_end", "", 1, f"{median_us:.3f}", f"{median_us:.3f}", "1.0000", tail])
        if result.kernels:
            total, calls = (
                sum(kernel.total_us for kernel in result.kernels),
                sum(kernel.calls for kernel in result.kernels),
            )
            table.writerow([*head, "all_kernels", "", calls, f"{total:.3f}", "", f"{total / median_us:.4f}", tail])
        for kernel in sorted(result.kernels, key=lambda kernel: -kernel.total_us):
            times = [f"{kernel.total_us:.3f}", f"{kernel.total_us / kernel.calls:.3f}"]
            share = f"{kernel.total_us / median_us:.4f}"
            table.writerow([*head, kernel.name, " ".join(kernel.nodes), kernel.calls, *times, share, tail])
    return text.getvalue()


def memory_log(results: Sequence[Result]) -> str:
    """Resident memory of each job's process: its settings, peak of each stage, what is resident after the timed runs.

    Then what the library's allocator tells, by its own names, and the time line.
    """
    lines = []
    for result in results:
        name = f"{result.graph_id or '-'} {result.graph} ({conditions(result)})"
        if result.memory is None:
            lines.append(f"{name} not measured: {result.verdict} {result.stage or ''} {result.message}".rstrip())
            continue
        memory = result.memory
        stages = (("load", memory.load_peak), ("compile", memory.compile_peak), ("run", memory.run_peak))
        peaks = " ".join(f"{stage}_peak={_mib(peak)}" for stage, peak in stages if peak)
        lines.append(f"{name} baseline={_mib(memory.baseline)} {peaks}".rstrip())
        lines += _parts(result, memory)
        lines.extend(f"  t={seconds:.3f}s rss={_mib(size)}" for seconds, size in memory.timeline)
    return "\n".join(lines) + "\n"


def _parts(result: Result, memory: Memory) -> list[str]:
    """Lines on the time after the timed runs; none for a job that did not come so far."""
    if not memory.steady:
        return []
    room = workspace(result)
    data = f"weights={_mib(memory.weights)} inputs={_mib(memory.inputs)} outputs={_mib(memory.outputs)}"
    lines = [f"  steady={_mib(memory.steady)} {data} workspace={'unknown' if room is None else _mib(room)}"]
    if memory.allocator:
        lines.append("  allocator: " + " ".join(f"{name}={size}B" for name, size in sorted(memory.allocator.items())))
    return lines


def _mib(size: int) -> str:
    return f"{size / MIB:.1f}MiB"
