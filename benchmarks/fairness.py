"""Whether GraphNet runs a library as its users do: `Program.run` against the library's own plain script, side by side.

    python -m benchmarks.fairness --compilers onnxruntime,openvino --models resnet50,bert_base --blocks 20

Both take the same ONNX file, weights, inputs, thread count and float32; where a library's importer lacks a composite
operator (Attention), the file has it written out. Blocks of runs of the two alternate, in random order within each
pair, so that drift of the machine hits both. IREE's block is a process of `iree-benchmark-module`, which reports its
own times; the others' are loops in this process. Printed: ratio of the medians over blocks (GraphNet / plain) with a
bootstrap 95 % interval, for wall and for CPU time, and the largest difference of the outputs. `--self` compares the
plain script with a second copy of itself: the noise of this benchmark.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from graphnet import compilers
from graphnet.compilers import Target
from graphnet.ir import onnx_bridge, tensors
from graphnet.ir.graph import Graph
from graphnet.rewrite.decompose import decompose

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmark"
MODELS = {"resnet50": "vision/resnet50.json", "bert_base": "transformer/bert_base.json"}
BLOCK_SECONDS = 0.5
PAIRS_OF_WARM_UP = 2
IREE_STACK = "--iree-llvmcpu-stack-allocation-limit=1048576"
"""Without it IREE refuses to compile bert_base: a kernel wants more of the stack than its default allows."""
Feed = Mapping[str, np.ndarray]


class Side(NamedTuple):
    """One of the two that are compared."""

    block: Callable[[int], tuple[float, float]]
    """Seconds of one run, wall and CPU, over so many runs."""
    outputs: Callable[[], Sequence[np.ndarray]]
    """Results of a run, in the order of the model's outputs."""


def looped(run: Callable[[], object], outputs: Callable[[], Sequence[np.ndarray]]) -> Side:
    """Runs in this process, timed from outside."""

    def block(repeats: int) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            run()
        return (time.perf_counter() - wall) / repeats, (time.process_time() - cpu) / repeats

    return Side(block, outputs)


def plain_onnxruntime(model: Path, feed: Feed, threads: int) -> Side:
    """`InferenceSession.run`, as in the library's examples."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return looped(lambda: session.run(None, dict(feed)), lambda: list(session.run(None, dict(feed))))


def plain_openvino(model: Path, feed: Feed, threads: int) -> Side:
    """What `benchmark_app -d CPU -api sync -hint latency -nthreads N -infer_precision f32` times.

    That fills the input tensors once, and then calls `infer` of one request over and over.
    """
    import openvino as ov

    asked = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    request = ov.Core().compile_model(str(model), "CPU", asked).create_infer_request()
    for name, array in feed.items():
        request.set_tensor(name, ov.Tensor(array))
    return looped(request.infer, lambda: list(request.infer().to_tuple()))


def plain_tvm(model: Path, feed: Feed, threads: int) -> Side:
    """`from_onnx`, `relax.build` with the default pipeline for this CPU, `VirtualMachine`, as in TVM's tutorials."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})
    executable = tvm.compile(from_onnx(onnx.load(model), keep_params_in_input=False), target)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    arguments = [tvm.runtime.tensor(array, tvm.cpu()) for array in feed.values()]

    def outputs() -> list[np.ndarray]:
        found = machine["main"](*arguments)
        return [found.numpy()] if isinstance(found, tvm.runtime.Tensor) else [item.numpy() for item in found]

    main = machine["main"]
    return looped(lambda: main(*arguments), outputs)


def plain_iree(model: Path, feed: Feed, threads: int) -> Side:
    """`iree-import-onnx`, `iree-compile` at its highest level for this CPU, `iree-benchmark-module`."""
    import onnx

    folder, results = model.parent, len(onnx.load(model, load_external_data=False).graph.output)
    source, module = folder / "model.mlir", folder / "model.vmfb"
    _tool("iree-import-onnx", str(model), "-o", str(source))
    _tool(
        "iree-compile", str(source), "-o", str(module), "--iree-input-type=onnx", "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3",
        IREE_STACK,
    )  # fmt: skip
    driver = "local-sync" if threads == 1 else "local-task"
    arguments = [f"--module={module}", f"--device={driver}", "--function=main"]
    if threads > 1:
        arguments += [f"--task_topology_group_count={threads}", "--task_worker_stack_size=2097152"]
    for name, array in feed.items():
        np.save(folder / f"{name}.npy", array)
        arguments.append(f"--input=@{folder / f'{name}.npy'}")

    def block(repeats: int) -> tuple[float, float]:
        measure = ("--benchmark_format=json", f"--benchmark_min_time={repeats}x", "--benchmark_min_warmup_time=0.2")
        found = json.loads(_tool("iree-benchmark-module", *arguments, *measure))["benchmarks"][0]
        unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[found["time_unit"]]
        return found["real_time"] * unit, found["cpu_time"] * unit

    def outputs() -> list[np.ndarray]:
        files = [folder / f"output-{index}.npy" for index in range(results)]
        _tool("iree-run-module", *arguments, *(f"--output=@{file}" for file in files))
        return [np.load(file) for file in files]

    return Side(block, outputs)


def _tool(name: str, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Plain(NamedTuple):
    """The plain script of a compiler."""

    make: Callable[[Path, Feed, int], Side]
    """From ONNX file, inputs and threads."""
    lacks: frozenset[str] = frozenset()
    """Operators that its importer cannot read."""


PLAIN = {
    "onnxruntime": Plain(plain_onnxruntime),
    "openvino": Plain(plain_openvino),
    "tvm:untuned": Plain(plain_tvm, frozenset({"Attention"})),
    "iree": Plain(plain_iree, frozenset({"Attention"})),
}
"""By compiler and variant."""


def ours(name: str, graph: Graph, weights: Feed, feed: Feed, threads: int) -> Side:
    """GraphNet's program."""
    compiler, variant = compilers.split(name)
    found = compilers.get(compiler)
    target = Target(threads=threads, options=dict(compilers.variants(compiler).get(variant, {})))
    found.configure(target)
    program = found.compile(graph, weights, target)
    program.bind(feed)

    def outputs() -> Sequence[np.ndarray]:
        program.run()
        return program.outputs()

    return looped(program.run, outputs)


def compare(sides: Sequence[Side], blocks: int, seed: int) -> np.ndarray:
    """[pairs, 2 sides, 2 clocks]: seconds of a run in each block, wall and CPU."""
    repeats = max(1, round(BLOCK_SECONDS / sides[1].block(1)[0]))
    order = np.random.default_rng(seed)
    pairs = np.empty((blocks + PAIRS_OF_WARM_UP, 2, 2))
    for pair in pairs:
        for which in order.permutation(2):
            pair[which] = sides[which].block(repeats)
    return pairs[PAIRS_OF_WARM_UP:]


def ratio_of_medians(pairs: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Median of the second column over that of the first, and a bootstrap 95 % interval (pairs are resampled)."""
    chosen = np.random.default_rng(seed).integers(0, len(pairs), (2000, len(pairs)))
    samples = np.median(pairs[chosen, 1], 1) / np.median(pairs[chosen, 0], 1)
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(np.median(pairs[:, 1]) / np.median(pairs[:, 0])), float(low), float(high)


def difference(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float:
    """Largest absolute difference of an output, relative to its largest number."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(first, second, strict=True))


def measure(compiler: str, name: str, options: argparse.Namespace) -> None:
    """Print one line."""
    graph = Graph.load(BENCHMARK / MODELS[name]).bind()
    weights, feed = tensors.weights(graph, options.seed), tensors.inputs(graph, options.seed)
    plain = PLAIN[compiler]
    compilers.get(compilers.split(compiler)[0]).preload()
    with tempfile.TemporaryDirectory(prefix="graphnet-fairness-") as folder:
        path = Path(folder, f"{name}.onnx")
        written = msgspec.structs.replace(decompose(graph, plain.lacks), name="main")
        onnx_bridge.save_onnx(written, path, tensors.completed(written, weights))
        first = plain.make(path, feed, options.threads)
        second = (
            plain.make(path, feed, options.threads)
            if options.self
            else ours(compiler, graph, weights, feed, options.threads)
        )
        apart = difference(first.outputs(), second.outputs())
        pairs = compare((first, second), options.blocks, options.seed)
    wall, cpu = (ratio_of_medians(pairs[:, :, clock], options.seed) for clock in (0, 1))
    print(
        f"{compiler:12} {name:10} plain {np.median(pairs[:, 0, 0]) * 1e3:8.2f} ms"
        f"   graphnet {np.median(pairs[:, 1, 0]) * 1e3:8.2f} ms"
        f"   wall {wall[0]:.3f} [{wall[1]:.3f}, {wall[2]:.3f}]   cpu {cpu[0]:.3f} [{cpu[1]:.3f}, {cpu[2]:.3f}]"
        f"   difference {apart:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compilers", default=",".join(PLAIN))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--self", action="store_true")
    options = parser.parse_args()
    for compiler in options.compilers.split(","):
        for name in options.models.split(","):
            measure(compiler, name, options)


if __name__ == "__main__":
    main()
