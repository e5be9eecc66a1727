"""Quality of generated code for the terminal: a table by graph and compiler, and listings of hot loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from graphnet.analyze.code_quality import CodeQuality, KernelQuality
from graphnet.errors import UsageError
from graphnet.evaluate import code_files

LISTED = 3
"""Kernels of each job whose hot loop a listing shows."""
COLUMNS = (
    "graph", "compiler", "pipeline saturation", "of time", "vector share", "FMA share", "width used", "spills",
    "library share",
)  # fmt: skip


def quality_table(found: Sequence[CodeQuality]) -> Group:
    """One line per job, figures weighted by kernel time, then why figures are missing. Raises UsageError on none."""
    if not found:
        raise UsageError("no code of such results is here: run `graphnet evaluate --code` with this results folder")
    table = Table(title="Generated code, hot loops weighted by kernel time", title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("graph", "compiler") else "right")
    for quality in sorted(found, key=lambda quality: (quality.graph, quality.compiler)):
        table.add_row(*map(Text, _row(quality)))
    notes = [Text(f"{q.graph} on {q.compiler}: {note}") for q in found for note in _notes(q)]
    return Group(table, *notes)


def _row(quality: CodeQuality) -> tuple[str, ...]:
    names = (quality.graph, quality.compiler)
    if not any(kernel.file for kernel in quality.kernels) and (not quality.coded or quality.library_share):
        return (*names, "library call", *["-"] * 5, _percent(1.0 if not quality.coded else quality.library_share))
    width = _percent(quality.width_share)
    return (
        *names, "-" if quality.saturation is None else f"{quality.saturation:.2f}",
        _percent(quality.saturation_time_share), _percent(quality.vector_share), _percent(quality.fma_share),
        width if width == "-" else f"{width} of {quality.vector_bits}",
        "-" if quality.spills is None else str(quality.spills), _percent(quality.library_share),
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _notes(quality: CodeQuality) -> Iterator[str]:
    """Why figures are missing, each reason with the number of kernels that it concerns."""
    yield from quality.notes
    reasons: dict[str, int] = {}
    for kernel in quality.kernels:
        reason = kernel.problem or (kernel.loop.problem if kernel.loop else "")
        if not kernel.library and not reason and kernel.loop is None:
            reason = "no loop, so no saturation"
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        yield f"{count} kernel(s): {reason}"


def listings(results: Path, found: Iterable[CodeQuality]) -> Iterator[Text]:
    """The hot loops of the heaviest kernels of each job, with their figures."""
    for quality in found:
        folder = code_files.folder_of(results, quality.compiler, quality.graph, quality.job_key)
        with_loop = [kernel for kernel in quality.kernels if kernel.loop]
        for kernel in sorted(with_loop, key=lambda kernel: -(kernel.time_us or 0.0))[:LISTED]:
            yield _listing(folder, quality, kernel)


def _listing(folder: Path, quality: CodeQuality, kernel: KernelQuality) -> Text:
    assert kernel.loop
    lines = code_files.text_of(folder, kernel.file).splitlines()
    time = "time unknown" if kernel.time_us is None else f"{kernel.time_us:.1f} us"
    head = f"\n{quality.graph} on {quality.compiler}: {kernel.kernel}, {time} ({folder / kernel.file})"
    parts = [f"lines {first} to {last} of {kernel.loop.function}" for first, last in kernel.loop.lines]
    body = [line for first, last in kernel.loop.lines for line in lines[first - 1 : last]]
    return Text("\n".join([head, f"  {_figures(kernel)}", f"  {', '.join(parts)}", *body]))


def _figures(kernel: KernelQuality) -> str:
    assert kernel.loop
    found, mix = kernel.loop.throughput, kernel.loop.mix
    counts = f"{mix.vector_floats} of {mix.floats} floats in vectors, {mix.fused} multiply-adds, {mix.width} bits"
    if found is None:
        return f"{kernel.loop.problem}; {counts}"
    pressure = f", busiest {found.port} {found.pressure:g} cycles a pass" if found.pressure is not None else ""
    return (
        f"IPC {found.ipc:.2f} of {found.dispatch_width} (saturation {found.saturation:.2f}), block reciprocal"
        f" throughput {found.reciprocal_throughput:g} cycles{pressure}; {counts}"
    )
