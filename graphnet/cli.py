"""The `graphnet` command: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphnet import evaluator
from graphnet.errors import GraphNetError
from graphnet.evaluator import output_console

if TYPE_CHECKING:
    from graphnet.ir.graph import Graph

app = typer.Typer(
    name="graphnet",
    help="Computation graphs for tensor compilers, and a bench that runs the same graph through each of them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
dataset_app = typer.Typer(help="The collection of graphs.", no_args_is_help=True)
app.add_typer(dataset_app, name="dataset")
app.command("evaluate")(evaluator.evaluate)

GraphFile = Annotated[Path, typer.Argument(help="A graph file: .json, .json.zst or .onnx.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]


@app.command()
def capture(
    source: Annotated[str, typer.Argument(help="timm:NAME, transformers:NAME, a factory module:function, or x.onnx.")],
    output: Output,
    batch: Annotated[int, typer.Option(help="Default size of the batch dimension.")] = 1,
) -> None:
    """Capture a model as GraphIR, and compare the graph with its source before it is written."""
    from graphnet.frontends import registry

    if ":" in source and not source.startswith(("timm:", "transformers:")):
        evaluator.find_modules_here()
    graph = registry.capture_source(source, batch=batch)
    graph.save(output)
    _print_info(graph, output)


@app.command()
def info(graph: GraphFile, json: Annotated[bool, typer.Option(help="Print metadata as JSON.")] = False) -> None:
    """Print a graph's metadata, cost and most frequent operators."""
    import msgspec

    from graphnet.dataset import catalog
    from graphnet.ir.finalize import finalize

    found = finalize(catalog.load_graph(graph))
    if json:
        bare = msgspec.structs.replace(found, inputs=(), outputs=(), weights={}, nodes=(), values={})
        output_console().print_json(msgspec.json.encode(bare).decode())
    else:
        _print_info(found, graph)


@app.command()
def verify(graphs: Annotated[list[str], typer.Argument(help="Graph files, folders or subset names.")]) -> None:
    """Check files: format, operator standard, stored metadata; in a collection also that its manifest holds.

    Exit status 1 if any fails.
    """
    from graphnet.dataset import catalog, manifest
    from graphnet.ir import finalize

    console, bad, count, wrong = output_console(), 0, 0, 0
    for where in graphs:
        for file in catalog.graph_files(where):
            count += 1
            try:
                finalize.check(catalog.load_graph(file))
            except GraphNetError as error:
                bad += 1
                console.print("bad", style="red", end=" ")
                console.print(f"{file}: {error}", soft_wrap=True)
        for problem in manifest.problems(catalog.place(where)):
            wrong += 1
            console.print("manifest", style="red", end=" ")
            console.print(problem, soft_wrap=True)
    console.print(f"{count - bad} of {count} graphs are good")
    if bad or wrong:
        raise typer.Exit(1)


@app.command()
def convert(
    graph: GraphFile,
    output: Output,
    seed: Annotated[int, typer.Option(help="Seed of the weights written into an .onnx file.")] = 0,
) -> None:
    """Convert between .json, .json.zst and .onnx, by the file names."""
    from graphnet.dataset import catalog
    from graphnet.ir import onnx_bridge
    from graphnet.ir.finalize import finalize

    found = catalog.load_graph(graph)
    if output.suffix == ".onnx":
        onnx_bridge.save_onnx(found.to_onnx(found.materialize(seed)), output)
    else:
        finalize(found).save(output)


@app.command()
def score(
    results: Annotated[Path, typer.Argument(help="A results folder.")],
    baseline: Annotated[str, typer.Option(help="Compiler that speedups are taken over.")] = "torch",
    penalty: Annotated[float, typer.Option("-p", help="Slow-down penalty p.")] = 0.1,
    failure: Annotated[float, typer.Option("-b", help="Failure penalty b.")] = 0.1,
) -> None:
    """Speedup, correctness, S(t) and ES(t) of each compiler over the baseline."""
    from graphnet import api
    from graphnet.report import tables

    found, environments = api.load_results(results), api.load_environments(results)
    output_console().print(tables.score_table(found, baseline, penalty, failure, environments))


@app.command()
def codegen(
    results: Annotated[Path, typer.Argument(help="A results folder of `graphnet evaluate --code`.")],
    graph: Annotated[list[str] | None, typer.Option(help="Only this graph, by name or id; may be repeated.")] = None,
    compiler: Annotated[list[str] | None, typer.Option(help="Only this compiler; may be repeated.")] = None,
    listing: Annotated[bool, typer.Option("--listing", help="Print the hot loops of the heaviest kernels.")] = False,
) -> None:
    """Quality of the generated code: how full its hot loops keep the pipeline, vectors, multiply-adds, spills."""
    from graphnet import api
    from graphnet.analyze import code_quality
    from graphnet.report import code_tables

    found = code_quality.update(
        results, api.load_results(results),
        lambda result: (not graph or result.graph in graph or result.graph_id in graph)
        and (not compiler or result.compiler in compiler),
    )  # fmt: skip
    console = output_console()
    console.print(code_tables.quality_table(list(found.values())))
    if listing:
        for text in code_tables.listings(results, found.values()):
            console.print(text, soft_wrap=True)


@app.command()
def efficiency(
    results: Annotated[Path, typer.Argument(help="A results folder of `graphnet evaluate`, best with --warm --code.")],
) -> None:
    """One table of latency, shares of the machine's peaks, compile time, memory and code quality."""
    from graphnet import api
    from graphnet.analyze import code_quality
    from graphnet.report import efficiency_table, tables

    found, environments = api.load_results(results), api.load_environments(results)
    qualities = code_quality.update(results, found)
    console = output_console()
    console.print(efficiency_table.efficiency_table(found, environments, qualities))
    console.print(tables.floor_text(found, environments))


@app.command()
def compare(
    results: Annotated[list[str], typer.Argument(help="Two or more results folders (or .db, .json files, URLs).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write a page, page.html.")] = None,
) -> None:
    """Sets of results side by side: time over that in the first set, changed verdicts, what is missing or unlike."""
    from graphnet import api
    from graphnet.report import compare_tables

    found = api.compare(results)
    output_console().print(compare_tables.comparison(found))
    if output:
        from graphnet.report import compare_page

        compare_page.write(found, output)
        output_console().print(f"page: {output}")


@app.command()
def report(
    results: Annotated[str, typer.Argument(help="A results folder or database URL.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; report.html in the results folder by itself.")
    ] = None,
    baseline: Annotated[str, typer.Option(help="Compiler that speedups are taken over.")] = "torch",
    lang: Annotated[str, typer.Option(help="Language that the page opens in: en or zh.")] = "en",
    graph: Annotated[
        list[str] | None, typer.Option(help="Graph files or folders to take tiers and operators from; the collection.")
    ] = None,
) -> None:
    """One HTML page of a results folder that needs nothing beside it: open it in a browser, print it, send it."""
    from graphnet.report.html import command

    path = command.report(results, output, baseline=baseline, language=lang, graphs=graph or ())
    output_console().print(str(path), soft_wrap=True, markup=False)


@app.command()
def compilers(name: Annotated[list[str] | None, typer.Argument(help="Only these.")] = None) -> None:
    """Compilers and variants that are known, with the versions and devices that are here (each is loaded to see)."""
    from graphnet.compilers import names
    from graphnet.evaluate.probe import probe
    from graphnet.report import tables

    output_console().print(tables.compiler_table(probe(name or names())))


@app.command()
def roofline(
    results: Annotated[Path | None, typer.Argument(help="A results folder: its graphs against the peaks.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that the peaks are of.")] = 1,
    backend: Annotated[str, typer.Option(help="Device: cpu, gpu (cuda), metal.")] = "cpu",
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure again; higher figures replace older ones.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the plot as one HTML page.")] = None,
) -> None:
    """Print what this machine does at best (measured once), and how near the graphs of a results folder come to it."""
    from graphnet import api
    from graphnet.evaluate import peaks
    from graphnet.report import roofline_plot, roofline_table

    console, device = output_console(), evaluator.device_of(backend)
    if measure:
        peaks.update(device, threads)
    elif results is None:
        peaks.ensure(device, threads, told=console.print)
    for number, (machine, found, mine) in enumerate(api.rooflines(results, device, threads)):
        console.print(roofline_table.peaks_table(machine, found))
        table = roofline_table.results_table(mine, found)
        if table:
            console.print(table)
        elif results:
            console.print(f"none of the results is of {device} with {threads} thread(s): choose --threads or --backend")
        if output:
            file = output if not number else output.with_stem(f"{output.stem}-{machine.key}")
            roofline_plot.write(roofline_plot.figure(found, mine), file)
            console.print(f"plot: {file}", soft_wrap=True)


@app.command()
def counters(
    graph: GraphFile,
    compiler: Annotated[str, typer.Option(help="Compiler to run it on.")] = "torch",
    backend: Annotated[str, typer.Option(help="Device; counters are read on gpu (cuda) only.")] = "gpu",
) -> None:
    """Print Nsight Compute's counters of each kernel of one inference; needs an NVIDIA GPU and `ncu`."""
    from graphnet.compilers import Target
    from graphnet.evaluate import ncu
    from graphnet.report import roofline_table

    found = ncu.profile(graph, compiler, Target(device=evaluator.device_of(backend)))
    output_console().print(roofline_table.counters_table(found))


@app.command()
def history(
    places: Annotated[list[str], typer.Argument(help="Results folders, .db or .json files, URLs; folders of such.")],
    graph: Annotated[list[str] | None, typer.Option(help="Only this graph, by name or id; may be repeated.")] = None,
    compiler: Annotated[list[str] | None, typer.Option(help="Only this compiler; may be repeated.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write a page, history.html.")] = None,
) -> None:
    """Every stored run in the order of time: where a graph became slower or faster for good, and what changed then."""
    from graphnet import api
    from graphnet.report import history_page, history_table

    found = api.history(places, graphs=graph or (), compilers=compiler or ())
    output_console().print(history_table.steps(found))
    if output:
        history_page.write(found, output)
        output_console().print(f"page: {output}", soft_wrap=True)


@app.command()
def noise(
    graph: Annotated[
        list[str] | None, typer.Option(help="Graph file, folder or subset; six graphs of the collection by itself.")
    ] = None,
    compiler: Annotated[str, typer.Option(help="Compilers, by commas.")] = "torch,onnxruntime",
    threads: Annotated[int, typer.Option(min=1, help="Threads that the floor is of.")] = 1,
    budget: Annotated[float, typer.Option(help="Seconds of timed runs per program.")] = 2.0,
) -> None:
    """Compare programs with themselves: below what a difference means nothing on this machine. Kept for its reports."""
    from graphnet import api
    from graphnet.dataset import catalog
    from graphnet.report import floor_text, noise_table

    files = [file for where in graph or catalog.small_sample() for file in catalog.graph_files(where)]
    console = output_console()
    floor, pairs = api.measure_noise(
        files, evaluator.compiler_names(compiler), threads=threads, budget=budget,
        progress=lambda told: evaluator.print_line(console, told),
    )  # fmt: skip
    console.print(noise_table.noise_table(pairs))
    console.print(floor_text.of_floor(floor))


@app.command()
def schema() -> None:
    """Print the JSON Schema of the graph format."""
    from graphnet.ir.schema import json_schema

    output_console().print_json(data=json_schema())


@app.command()
def baseline(
    results: Annotated[str, typer.Argument(help="A results folder (or .db, .json file, URL).")],
    output: Output,
) -> None:
    """Write the newest results as a baseline for the regression gate (`python -m graphnet.ci`)."""
    from graphnet.analyze.baseline import write_baseline

    count = write_baseline(results, output)
    output_console().print(f"baseline of {count} results: {output} ({output.stat().st_size:,} bytes)", soft_wrap=True)


@dataset_app.command("list")
def dataset_list(where: Annotated[str | None, typer.Argument(help="Subset, folder or file.")] = None) -> None:
    """One line per graph of the collection."""
    from graphnet.dataset import catalog
    from graphnet.report import tables

    output_console().print(tables.graph_table(catalog.load_graphs(*([where] if where else []))))


@dataset_app.command("build")
def dataset_build(
    output: Output,
    subset: Annotated[list[str] | None, typer.Option(help="Only these subsets.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Only these graphs, by name or id.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build again what is there.")] = False,
) -> None:
    """Capture the collection again from its recipes; graphs that are already there are kept unless --rebuild."""
    from graphnet.dataset import build

    failures = build.build(output, subsets=subset, names=name, progress=output_console().print, rebuild=rebuild)
    if failures:
        raise typer.Exit(1)


def main() -> None:
    """Entry point: GraphNet's own errors become one line and exit status 2."""
    evaluator.run_app(app)


def _print_info(graph: Graph, path: Path) -> None:
    from graphnet.report import tables

    output_console().print(tables.graph_card(graph, path))
