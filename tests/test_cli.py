"""The command line, on small graphs: exit status, messages, files."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from rich.table import Table
from rich.text import Text

from graphnet import api, cli, evaluator
from graphnet.analyze.frame import frame
from graphnet.compilers import Target
from graphnet.dataset import catalog, manifest
from graphnet.evaluate import machine, peaks
from graphnet.evaluate.records import Floor, Peaks, Result, Timing
from graphnet.evaluate.store import Store
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph, Input, Node, Normal, Value, Weight
from tests.analyze import raced


def mlp() -> Graph:
    """relu(x @ W) of a 4x8 input."""
    graph = Graph(
        name="mlp", graph_id="GN-2026-SY-900", domain="synthetic",
        inputs=(Input(name="x", dtype="float32", shape=(4, 8)),), outputs=("y",),
        weights={"W": Weight(dtype="float32", shape=(8, 16), fill=Normal(std=0.3))},
        nodes=(
            Node(op="MatMul", name="product", inputs=("x", "W"), outputs=("h",)),
            Node(op="Relu", name="rectified", inputs=("h",), outputs=("y",)),
        ),
        values={"h": Value(dtype="float32", shape=(4, 16)), "y": Value(dtype="float32", shape=(4, 16))},
    )  # fmt: skip
    return finalize(graph)


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.json"
    mlp().save(path)
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Exit status of `graphnet ARGUMENTS`."""
    monkeypatch.setattr("sys.argv", ["graphnet", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def test_info_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path) -> None:
    assert run(monkeypatch, "info", graph_file, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["operator_distribution"] == {"matmul": 1, "relu": 1}
    assert told["flops"] == 2 * 4 * 8 * 16 + 4 * 16
    assert told["parameters"] == 128
    assert told["tier"] == "kernel"


def test_convert_to_onnx_and_back(monkeypatch: pytest.MonkeyPatch, graph_file: Path) -> None:
    model_file, again = graph_file.with_name("mlp.onnx"), graph_file.with_name("again.json.zst")
    assert run(monkeypatch, "convert", graph_file, "-o", model_file) == 0
    x = np.ones((4, 8), np.float32)
    [y] = ReferenceEvaluator(onnx.load(model_file)).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(y), np.maximum(x @ mlp().materialize(0)["W"], 0), rtol=1e-5)
    assert run(monkeypatch, "convert", model_file, "-o", again) == 0
    assert Graph.load(again).operator_distribution == {"matmul": 1, "relu": 1}


def test_verify_names_both_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    assert run(monkeypatch, "verify", graph_file) == 0
    lying = msgspec.structs.replace(mlp(), flops=5)
    lying.save(graph_file)
    capsys.readouterr()
    assert run(monkeypatch, "verify", graph_file) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "mlp.json" in said
    assert "5" in said
    assert str(mlp().flops) in said


@pytest.mark.parametrize("arguments", [["info", "absent.json"], ["score", "absent"], ["verify", "no-such-subset"]])
def test_absent_things_are_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("graphnet: ")
    assert said.count("\n") == 1
    assert arguments[1] in said


def test_unknown_compiler_lists_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    assert run(monkeypatch, "evaluate", "--compiler", "torch,tmv", "--graph", graph_file) == 2
    assert "unknown compiler 'tmv'; known: torch, inductor, jax, onnxruntime" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--compiler", "inductor:freezin"), "compiler 'inductor' has no variant 'freezin'; known: inductor:freezing"),
        (("--compiler", "torch", "--passes", "jax.fast-math"), "pass 'jax.fast-math' is of compiler 'jax'"),
        (("--compiler", "tvm", "--tune", "60"), "--tune is for variants that search, such as tvm:tuned"),
        (("--compiler", "torch", "--backend", "tpu"), "unknown backend 'tpu'; known: gpu, cpu, cuda, metal, intel-gpu"),
    ],
)
def test_requests_that_cannot_be_carried_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path,
    arguments: tuple[str, ...], words: str,
) -> None:  # fmt: skip
    assert run(monkeypatch, "evaluate", "--graph", graph_file, *arguments) == 2
    assert words in capsys.readouterr().err


def test_variants_have_folders_and_columns_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    names = "onnxruntime,onnxruntime:basic"
    arguments = (
        "--compiler",
        names,
        "--graph",
        graph_file,
        "--budget",
        "0.1",
        "--no-peaks",
        "-q",
        "-o",
        tmp_path / "r",
    )
    assert run(monkeypatch, "evaluate", *arguments) == 0
    assert (tmp_path / "r" / "onnxruntime" / "latency.csv").is_file()
    rows = list(csv.DictReader((tmp_path / "r" / "onnxruntime-basic" / "latency.csv").read_text().splitlines()))
    assert rows[0]["settings"].endswith("level=basic")
    told = capsys.readouterr().out
    assert "onnxruntime:basic" in told
    assert "Kernel times over end-to-end time" in told


def test_schema_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "schema") == 0
    assert "$defs" in json.loads(capsys.readouterr().out)


def test_evaluate_score_and_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    results = tmp_path / "results"
    options: list[str | Path] = [
        "--compiler",
        "torch,onnxruntime",
        "--graph",
        graph_file,
        "--budget",
        "0.2",
        "--no-peaks",
        "--output",
        results,
    ]
    assert run(monkeypatch, "evaluate", *options) == 0
    assert "[2/2] mlp onnxruntime ok" in capsys.readouterr().out
    with (results / "onnxruntime" / "latency.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {node for row in rows for node in row["nodes"].split()} == {"product", "rectified"}
    assert "run_peak=" in (results / "onnxruntime" / "memory_usage.log").read_text()
    assert run(monkeypatch, "evaluate", *options, "--resume") == 0
    assert "(resumed)" in capsys.readouterr().out
    assert run(monkeypatch, "score", results) == 0
    assert "onnxruntime" in capsys.readouterr().out
    assert "Noise floor of this machine (1 thread" in (results / "summary.md").read_text()


PEAKS = Peaks(
    threads=1, flops={"float32": 1e12}, bandwidth={"DRAM": 1e11}, sources={"float32": "a library"}, measured="today"
)  # fmt: skip


def test_peaks_are_measured_first_and_results_are_shares_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(peaks, "measure", lambda *_: PEAKS)
    results = tmp_path / "results"
    options: list[str | Path] = ["--compiler", "onnxruntime", "--graph", graph_file, "--budget", "0.2", "-o", results]
    assert run(monkeypatch, "evaluate", *options, "--no-peaks") == 0
    assert run(monkeypatch, "roofline", results) == 2
    assert "graphnet roofline --threads 1" in capsys.readouterr().err
    assert run(monkeypatch, "evaluate", *options) == 0
    assert capsys.readouterr().out.startswith("measuring what this machine does at best on cpu with 1 thread(s), once")
    assert api.load_environments(results)[0].peaks == (PEAKS,)
    assert run(monkeypatch, "roofline", results, "-o", tmp_path / "plot.html") == 0
    told = capsys.readouterr().out
    assert "1,000.0 GFLOP/s" in told
    assert "10 FLOP/byte" in told
    assert "a library" in told
    assert "Plotly.newPlot" in (tmp_path / "plot.html").read_text()
    (result,) = api.load_results(results)
    assert sum(kernel.flops or 0 for kernel in result.kernels) == result.flops == mlp().flops
    table = frame([result], api.load_environments(results))
    if result.verdict == "ok":
        assert 0 < table["flops_utilization"].iloc[0] < 1
        assert table["roofline_efficiency"].iloc[0] >= table["flops_utilization"].iloc[0]


def test_counters_need_a_gpu_that_has_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    assert run(monkeypatch, "counters", graph_file, "--backend", "metal") == 2
    assert "metal: timing only" in capsys.readouterr().err


def recorded(folder: Path, ms: float, threads: int = 1) -> Path:
    """A results folder with one result."""
    with Store(folder) as store:
        run_id = store.begin_run({})
        store.add(
            Result(
                run_id=run_id, job_key="k", graph_id="", graph="net", subset="vision", structure_hash="h",
                compiler="jax", target=Target(threads=threads), verdict="ok",
                timing=Timing(samples_ns=(round(ms * 1e6),) * 5),
            )
        )  # fmt: skip
    return folder


def test_every_table_tells_the_noise_floor_once_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    here, results = machine.known_here(), tmp_path / "results"
    with Store(results) as store:
        store.add_environment(here)
        store.add_all([raced.result([1000.0] * 8, run_id=store.begin_run({}), environment=here.key)])
    commands: list[list[str | Path]] = [
        ["score", results, "--baseline", "jax"], ["compare", results, results], ["efficiency", results],
    ]  # fmt: skip
    for command in commands:
        assert run(monkeypatch, *command) == 0
        assert "Noise floor of this machine (1 thread): not measured" in capsys.readouterr().out
    machine.remember_floor(
        Floor(threads=1, pairs=60, spread=0.01, sequential=0.1, median=0.004, p95=0.013, sequential_p95=0.3, covered=1)
    )
    for command in commands:
        assert run(monkeypatch, *command) == 0
        assert "Noise floor of this machine (1 thread, 60 pairs): median |ratio - 1| 0.4 %" in capsys.readouterr().out
    assert run(monkeypatch, "report", results, "--baseline", "jax") == 0
    assert '"sequential_p95":0.3' in (results / "report.html").read_text()


def test_compare(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    old, new = recorded(tmp_path / "old", 4), recorded(tmp_path / "new", 3, threads=2)
    page = tmp_path / "pages" / "page.html"
    assert run(monkeypatch, "compare", old, new, "-o", page) == 0
    told = capsys.readouterr().out
    assert "0.750 [0.750, 0.750]" in told
    assert "The sets are unlike" in told
    assert page.read_text().count("0.750 [0.750, 0.750]") == 1


def test_compare_names_what_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old = recorded(tmp_path / "old", 4)
    assert run(monkeypatch, "compare", old) == 2
    assert "at least two sets" in capsys.readouterr().err
    assert run(monkeypatch, "compare", old, tmp_path / "new") == 2
    assert f"no results at {tmp_path / 'new'}" in capsys.readouterr().err.replace("\n", "")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("3", 3), ("0.5", 0.5), ("fast", "fast")])
def test_option_values(text: str, value: object) -> None:
    assert evaluator._pairs([f"key={text}"], evaluator._value) == {"key": value}


def graphnet(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """The console script in a process of its own, as a user starts it: the current folder is not on `sys.path`."""
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("graphnet")), *arguments],
        cwd=folder,
        env=os.environ | {"GRAPHNET_CACHE": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_interrupt_says_how_to_go_on_and_keeps_records(graph_file: Path) -> None:
    folder = graph_file.parent
    msgspec.structs.replace(mlp(), name="second", graph_id="GN-2026-SY-901").save(folder / "second.json")
    (folder / "sleepy.py").write_text(
        textwrap.dedent("""
            import time
            from graphnet.compilers.null import Null

            class Sleepy(Null):
                def compile(self, graph, tensors, target):
                    if graph.name == "second":
                        time.sleep(600)
                    return super().compile(graph, tensors, target)
        """)
    )
    options = ["--graph", "mlp.json", "--graph", "second.json", "--output", "r", "--budget", "0.05", "--no-peaks"]
    process = graphnet("evaluate", "--compiler", "null,sleepy:Sleepy", *options, folder=folder)
    assert process.stdout
    assert process.stdout.readline().startswith("[1/4] mlp null wrong")
    assert process.stdout.readline().startswith("[2/4] mlp sleepy:Sleepy wrong")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors == "graphnet: interrupted; the records made so far are kept in r, go on with --resume\n"
    assert process.returncode == 130
    assert "wrong (check)" in (folder / "r" / "summary.md").read_text()


def test_noise_of_programs_that_do_not_run_right_is_no_floor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPHNET_CACHE", str(tmp_path / "cache"))
    assert run(monkeypatch, "noise", "--graph", graph_file, "--compiler", "null", "--budget", "0.05") == 2
    assert "a noise floor takes pairs of results that are right; there is none" in capsys.readouterr().err
    assert not list((tmp_path / "cache").glob("floors/*.json"))


def test_the_sample_for_noise_is_there() -> None:
    assert all(file.is_file() for file in catalog.small_sample())


def test_compiler_of_the_current_folder(graph_file: Path) -> None:
    folder = graph_file.parent
    (folder / "mine.py").write_text("from graphnet.compilers.null import Null as Mine\n")
    options = ["--graph", "mlp.json", "--output", "r", "--budget", "0.05", "--no-peaks"]
    process = graphnet("evaluate", "--compiler", "mine:Mine", *options, folder=folder)
    printed, errors = process.communicate(timeout=120)
    assert "[1/1] mlp mine:Mine wrong in check" in printed, errors


def test_capture_of_a_factory_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mymodel.py").write_text(
        textwrap.dedent("""
            import torch

            def small():
                return torch.nn.Linear(8, 4), (torch.ones(2, 8),)
        """)
    )
    process = graphnet("capture", "mymodel:small", "-o", "small.json", folder=tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert Graph.load(tmp_path / "small.json").name == "small"


def test_current_folder_is_not_searched_for_other_names(tmp_path: Path) -> None:
    (tmp_path / "timm.py").write_text("raise SystemExit('the wrong timm')")
    process = graphnet("capture", "timm:no_such_model", "-o", "x.json", folder=tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "timm has no model 'no_such_model'" in errors


def test_python_m_graphnet() -> None:
    done = subprocess.run([sys.executable, "-m", "graphnet", "--help"], capture_output=True, text=True, check=True)
    assert "evaluate" in done.stdout


def test_codegen_tells_of_the_code_that_evaluate_wrote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path, tmp_path: Path
) -> None:
    results = tmp_path / "r"
    asked = ("--compiler", "jax,torch", "--graph", graph_file, "--output", results, "--budget", "0.05", "-q")
    assert run(monkeypatch, "evaluate", *asked) == 0
    capsys.readouterr()
    assert run(monkeypatch, "codegen", results) == 2
    assert "run `graphnet evaluate --code`" in capsys.readouterr().err
    assert run(monkeypatch, "evaluate", *asked, "--code") == 0
    capsys.readouterr()
    assert run(monkeypatch, "codegen", results, "--graph", "mlp", "--listing") == 0
    printed = capsys.readouterr().out
    rows = {cells[2].strip(): cells for line in printed.splitlines() if len(cells := line.split("│")) > 3}
    assert rows["torch"][3].strip() == "library call"
    assert rows["jax"][9].strip().endswith("%")
    assert "max" in printed.partition("lines ")[2], "the loop of its relu"
    (stored,) = (results / "jax" / "code").glob("*/quality.json")
    assert json.loads(stored.read_text())["compiler"] == "jax"


def test_errors_are_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    odd = tmp_path / "a[" / "w] [red]b :heart:.json"
    odd.parent.mkdir()
    odd.write_text("{")
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "verify", odd.relative_to(tmp_path)) == 1
    assert "bad a[/w] [red]b :heart:.json: " in capsys.readouterr().out
    assert run(monkeypatch, "info", "no[/w] [red]such :heart:.json") == 2
    assert "no[/w] [red]such :heart:.json" in capsys.readouterr().err


def test_verify_checks_the_manifest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], graph_file: Path
) -> None:
    sidecar = graph_file.with_name("other.safetensors")
    sidecar.write_bytes(b"weights")
    manifest.write(graph_file.parent)
    assert run(monkeypatch, "verify", graph_file.parent) == 0
    sidecar.write_bytes(b"weighty")
    graph_file.with_name("extra.json.txt").write_text("")
    assert run(monkeypatch, "verify", graph_file.parent) == 1
    said = capsys.readouterr().out
    assert f"manifest {sidecar.resolve()}: altered" in said
    assert "extra.json.txt: not in the manifest" in said
    assert "1 of 1 graphs are good" in said


def test_dataset_build_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["dataset", "build", "--name", "gemv_4096", "-o", str(tmp_path)]
    file = tmp_path / "matmul" / "gemv_4096.json"
    file.parent.mkdir()
    file.write_text("old")
    assert run(monkeypatch, *arguments) == 0
    assert file.read_text() == "old"
    assert "there already" in capsys.readouterr().out
    assert run(monkeypatch, *arguments, "--rebuild") == 0
    assert Graph.load(file).name == "gemv_4096"


def test_names_of_others_are_no_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = evaluator.output_console()
    table = Table()
    table.add_column("kernel \x1b[31m")
    table.add_row(Text("turned \u202e round"))
    console.print(table)
    console.print("图 is text, \x1b]0;title\x07 is not")
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "kernel [U+001B][31m" in told
    assert "turned [U+202E] round" in told
    assert "图 is text, [U+001B]]0;title" in told
