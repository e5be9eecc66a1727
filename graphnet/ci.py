"""`python -m graphnet.ci`: the regression gate. Exit status 0 pass, 1 regression, 2 could not measure."""

from __future__ import annotations

import os
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphnet import evaluator
from graphnet.errors import GraphNetError, StoreError, UsageError

if TYPE_CHECKING:
    from graphnet.analyze.regression import Gate

COULD_NOT_MEASURE = 2
app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})


class Format(StrEnum):
    """Forms of the report."""

    text = "text"
    markdown = "markdown"
    junit = "junit"
    json = "json"


@app.command()
def gate(
    baseline: Annotated[str, typer.Option(help="Baseline (`graphnet baseline`), results or medians.")],
    current: Annotated[str, typer.Option(help="Results of the current build: folder, .db, .json or URL.")],
    threshold: Annotated[float, typer.Option(help="Least share of the baseline's performance that passes.")] = 0.95,
    per_graph: Annotated[Path | None, typer.Option(help="JSON or TOML file: other thresholds, by graph.")] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the report.")] = Format.text,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the report here, and print text.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Measure suspects again before they fail, both builds taking turns.")
    ] = False,
    baseline_python: Annotated[str, typer.Option(help="--live: interpreter that has the baseline build.")] = "",
    current_python: Annotated[str, typer.Option(help="--live: interpreter that has the current build; ours.")] = "",
    baseline_compiler: Annotated[
        list[str] | None,
        typer.Option(
            help="--live: compiler that stands for the baseline build, NAME or CURRENT=NAME; may be repeated."
        ),
    ] = None,
    graph: Annotated[
        list[str] | None, typer.Option(help="--live: graph file, folder or subset; the collection by itself.")
    ] = None,
    budget: Annotated[float, typer.Option(help="--live: seconds of timed runs of each build in a race.")] = 3.0,
    allow_environment_change: Annotated[
        bool, typer.Option("--allow-environment-change", help="Compare unlike CPUs, threads and versions all the same.")
    ] = False,
) -> None:
    """Compare current results with a baseline: exit status 0 pass, 1 regression, 2 could not measure."""
    from graphnet.analyze import regression
    from graphnet.analyze.baseline import load_baseline
    from graphnet.analyze.live import settle
    from graphnet.analyze.thresholds import read_thresholds
    from graphnet.evaluate.live import Live, builds
    from graphnet.evaluate.store import load_set

    console = evaluator.output_console()
    if not live and (baseline_python or current_python or baseline_compiler or graph):
        raise UsageError("--baseline-python, --current-python, --baseline-compiler and --graph are for --live")
    if not budget > 0:
        raise UsageError(f"budget {budget} is not a positive number of seconds")
    made = builds(baseline_python, current_python, baseline_compiler or []) if live else None
    before, after = load_baseline(baseline), load_set(current)
    found = regression.gate(
        before.found, after, threshold, per_graph=read_thresholds(per_graph) if per_graph else None,
        bare=before.bare, allow_environment_change=allow_environment_change,
    )  # fmt: skip
    if made:
        told = evaluator.tell_error if form is not Format.text and not output else console.print
        found = settle(found, Live(made, graph or ()), budget, told)
    _report(found, form, output)
    raise typer.Exit(found.outcome)


def _report(found: Gate, form: Format, output: Path | None) -> None:
    from graphnet.ir.fileio import write_atomic
    from graphnet.report.gate_markdown import gate_markdown
    from graphnet.report.gate_text import gate_report

    _summarize(gate_markdown(found))
    if form is Format.text or output:
        evaluator.output_console().print(gate_report(found))
    if output:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(output, _written(found, form))
        except OSError as error:
            raise StoreError(f"cannot write {output}: {error.strerror or error}; choose another place") from error
    elif form is not Format.text:
        typer.echo(_written(found, form), nl=False)


def _written(found: Gate, form: Format) -> bytes:
    from rich.text import Text

    from graphnet.report.gate_json import gate_json
    from graphnet.report.gate_junit import gate_junit
    from graphnet.report.gate_markdown import gate_markdown
    from graphnet.report.gate_text import gate_report

    if form is Format.markdown:
        return gate_markdown(found).encode()
    if form is Format.junit:
        return gate_junit(found)
    if form is Format.json:
        return gate_json(found)
    console = evaluator.output_console()
    with console.capture() as captured:
        console.print(gate_report(found))
    return (Text.from_ansi(captured.get()).plain + "\n").encode()


def _summarize(markdown: str) -> None:
    """Add to the summary of a GitHub step, if we run in one."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if place:
        with open(place, "a", encoding="utf-8") as stream:
            stream.write(markdown)


def main() -> None:
    """Entry point. What stops the gate is never taken for a regression, whose status Python's own errors have."""
    try:
        evaluator.run_app(_told)
    except Exception:
        traceback.print_exc()
        sys.exit(COULD_NOT_MEASURE)


def _told() -> None:
    """The command; its errors are in the step summary too."""
    from graphnet.report.gate_markdown import escaped

    try:
        app()
    except (GraphNetError, OSError) as error:
        _summarize(f"## ⚠️ Regression gate: could not measure\n\n{escaped(str(error))}\n")
        raise


if __name__ == "__main__":
    main()
