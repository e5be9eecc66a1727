"""`python -m graphnet.evaluator` and `graphnet evaluate`: the main job from the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.segment import Segment

from graphnet.errors import GraphNetError, UsageError

if TYPE_CHECKING:
    from graphnet.evaluate.runner import Progress

T = TypeVar("T")
app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})

DEVICES = ("cpu", "cuda", "metal", "intel-gpu", "tensorrt", "coreml", "openvino", "directml")
BACKENDS = {"gpu": "cuda"} | {name: name for name in DEVICES}
INTERRUPTED = 130
PLAIN_WIDTH = 140


@app.command()
def evaluate(
    compiler: Annotated[
        str, typer.Option(help="Compilers, by commas, each with a variant or without: jax,inductor:freezing.")
    ],
    graph: Annotated[list[str], typer.Option(help="Graph file, folder or subset name; may be repeated.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Results folder.")] = Path("results"),
    target: Annotated[str, typer.Option(help="The compiler's own target string, passed through.")] = "",
    backend: Annotated[
        str, typer.Option(help="Device (`graphnet compilers` shows them): cpu, gpu (cuda), metal, intel-gpu ...")
    ] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Threads of every compiler.")] = 1,
    budget: Annotated[float, typer.Option(help="Seconds of timed runs per job (ends them before 100).")] = 10.0,
    dim: Annotated[list[str] | None, typer.Option(help="Size of a symbolic dimension, NAME=SIZE.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Compiler option, [COMPILER.]KEY=VALUE.")] = None,
    tune: Annotated[
        float, typer.Option(min=0, help="Seconds per graph that tvm:tuned searches for faster kernels (60 by itself).")
    ] = 0.0,
    passes: Annotated[
        str, typer.Option(help="Passes in order, by commas: of GraphIR, or of a compiler (tvm.FoldConstant).")
    ] = "default",
    seed: Annotated[int, typer.Option(help="Seed of weights and inputs.")] = 0,
    tolerance: Annotated[int, typer.Option(help="Largest tolerance level t that counts as ok.")] = -3,
    compile_timeout: Annotated[float, typer.Option(help="Seconds allowed for a compilation.")] = 1800.0,
    run_timeout: Annotated[float, typer.Option(help="Seconds allowed for all runs of a job.")] = 900.0,
    memory_limit: Annotated[float, typer.Option(help="GiB a job may use; 0 for 90 % of the machine.")] = 0.0,
    resume: Annotated[bool, typer.Option(help="Go on with the newest run in the results folder.")] = False,
    profile: Annotated[bool, typer.Option(help="Measure the time of each kernel, in a run of its own.")] = True,
    code: Annotated[
        bool, typer.Option("--code", help="Write the code of each kernel, for `graphnet codegen` (compiles again).")
    ] = False,
    peaks: Annotated[
        bool, typer.Option(help="Measure first what this machine does at best, if it never was (half a minute, once).")
    ] = True,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile a second time, with the caches that the first compilation left.")
    ] = False,
    pairwise: Annotated[
        bool, typer.Option("--pairwise", help="Also print the ratio of each two compilers or variants, with intervals.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar: one plain line per job.")] = False,
) -> None:
    """Run graphs on compilers and record latency, compile time, memory and error of each pair."""
    from graphnet import api, compilers
    from graphnet.dataset import catalog
    from graphnet.evaluate.plan import Limits
    from graphnet.report import tables

    console = output_console()
    files = [file for where in graph for file in catalog.graph_files(where)]
    names, options = compiler_names(compiler), _pairs(option or [], _value)
    if tune:
        options |= _tuning(names, tune)
    spec = compilers.Target(device=device_of(backend), spec=target, threads=threads, options=options)
    limits = Limits(
        compile_s=compile_timeout + tune,
        run_s=run_timeout,
        memory_bytes=int(memory_limit * 2**30) if memory_limit else None,
    )
    try:
        with _progress(console, plain=quiet or not console.is_terminal) as report:
            results = api.evaluate(
                files, names, target=spec, dims=_pairs(dim or [], int), seed=seed, budget=budget,
                passes=tuple(filter(None, passes.split(","))), tolerance=tolerance, profile=profile, code=code,
                warm=warm, limits=limits, output=output, resume=resume, progress=report, measure_peaks=peaks,
                told=console.print,
            )  # fmt: skip
    except KeyboardInterrupt:  # caught here, since typer would end without a word
        tell_error(f"interrupted; the records made so far are kept in {output}, go on with --resume")
        raise typer.Exit(INTERRUPTED) from None
    console.print(tables.summary_table(results, environments=api.load_environments(output)))
    console.print(tables.verdict_table(results))
    if pairwise:
        from graphnet.report import pairwise_table

        console.print(pairwise_table.pairwise_table(results, api.load_environments(output)))
    coverage = tables.coverage_table(results)
    if coverage:
        console.print(coverage)
    console.print(f"records: {output}/results.db; per compiler: {output}/<compiler>/latency.csv, memory_usage.log")


def _tuning(names: list[str], seconds: float) -> dict[str, float]:
    """Option `tune` of the variants that search. Raises UsageError if there is none among them."""
    from graphnet import compilers
    from graphnet.errors import UsageError

    found = {}
    for name in names:
        base, variant = compilers.split(name)
        if "tune" in compilers.variants(base).get(variant, {}):
            found[f"{name}.tune"] = seconds
    if not found:
        raise UsageError("--tune is for variants that search, such as tvm:tuned; none is among the compilers")
    return found


def run_app(command: Callable[[], None]) -> None:
    """Run a command line: GraphNet's own errors, and those of the file system, become one line and exit status 2."""
    try:
        command()
    except (GraphNetError, OSError) as error:
        tell_error(str(error))
        sys.exit(2)


def tell_error(message: str) -> None:
    """One line on standard error."""
    console = _console(stderr=True, soft_wrap=True)
    console.print("graphnet:", style="red", end=" ")
    console.print(message)


def output_console() -> Console:
    """Standard output, wide enough for tables where it is no terminal."""
    console = _console()
    return console if console.is_terminal else _console(width=PLAIN_WIDTH)


def find_modules_here() -> None:
    """Let `module:name` name a module of the current folder, as `python -m` does; children get our `sys.path`."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)


def _console(*, stderr: bool = False, soft_wrap: bool = False, width: int | None = None) -> Console:
    """Prints text as it is: what we print are names and messages of others, never markup or a terminal's commands."""
    console = Console(stderr=stderr, soft_wrap=soft_wrap, width=width, markup=False, emoji=False, highlight=False)
    console.push_render_hook(_InertText())
    return console


class _InertText(RenderHook):
    """Writes characters that a terminal obeys, or a reader does not see, as `[U+001B]`."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Inert(item) for item in renderables]


class _Inert:
    def __init__(self, item: ConsoleRenderable) -> None:
        self._item = item

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        from graphnet.report.html.text import visible

        for segment in console.render(self._item, options):
            if segment.control or (segment.text.isascii() and segment.text.isprintable()):
                yield segment
            else:
                lines = segment.text.split("\n")
                yield Segment("\n".join(visible(line, len(line)) for line in lines), segment.style)


def compiler_names(text: str) -> list[str]:
    """Names separated by commas, each checked. Raises UsageError, CompilerNotFound."""
    from graphnet import compilers

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        compilers.check_name(name)
        if ":" in name:
            find_modules_here()
    return names


def device_of(name: str) -> str:
    """Device that a `--backend` means. Raises UsageError."""
    if name not in BACKENDS:
        raise UsageError(f"unknown backend '{name}'; known: {', '.join(BACKENDS)}")
    return BACKENDS[name]


def _pairs(texts: list[str], read: Callable[[str], T]) -> dict[str, T]:
    pairs: dict[str, T] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        try:
            if not (key and equals):
                raise ValueError
            pairs[key] = read(value)
        except ValueError:
            raise UsageError(f"'{text}' is not NAME=VALUE with a value of the right kind") from None
    return pairs


def _value(text: str) -> str | int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


@contextmanager
def _progress(console: Console, plain: bool) -> Iterator[Callable[[Progress], None]]:
    """What the runner tells, as a bar with the time left, or as one line per finished job for logs."""
    if plain:
        yield lambda told: print_line(console, told)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task("")

        def show(told: Progress) -> None:
            left = "" if told.remaining_s is None else f", {_duration(told.remaining_s)} left"
            bar.update(
                task, total=told.total, completed=told.index + (told.result is not None),
                description=f"{told.graph} on {told.compiler}{left}",
            )  # fmt: skip

        yield show


def print_line(console: Console, told: Progress) -> None:
    """One line for a finished job."""
    result = told.result
    if result is None:
        return
    stage = f" in {result.stage}: {result.message}" if result.stage else ""
    again = " (resumed)" if told.resumed else ""
    line = f"[{told.index + 1}/{told.total}] {told.graph} {told.compiler} {result.verdict}{stage}{again}"
    console.print(line, soft_wrap=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


if __name__ == "__main__":
    run_app(app)
