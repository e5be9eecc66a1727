"""Whether GraphNet runs a library as its users do: `Program.run` against the library's own plain script, side by side.

    python -m benchmarks.fairness --compilers onnxruntime,openvino --models resnet50,bert_base --blocks 20

Both take the same ONNX file, weights, inputs, thread count and float32. Blocks of runs of the two alternate in one
process, in random order within each pair, so that drift of the machine hits both. Printed: ratio of the medians over
blocks (GraphNet / plain) with a bootstrap 95 % interval, for wall and for CPU time, and the largest difference of the
outputs. `--self` compares the plain script with a second copy of itself: the noise of this benchmark.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from graphnet import compilers
from graphnet.compilers import Program, Target
from graphnet.ir import onnx_bridge, tensors
from graphnet.ir.graph import Graph

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmark"
MODELS = {"resnet50": "vision/resnet50.json", "bert_base": "transformer/bert_base.json"}
BLOCK_SECONDS = 0.5
PAIRS_OF_WARM_UP = 2
Feed = Mapping[str, np.ndarray]
Run = Callable[[], Sequence[np.ndarray]]
"""One inference; returns the outputs in the order of the model's."""


def plain_onnxruntime(model: Path, feed: Feed, threads: int) -> Run:
    """`InferenceSession.run`, as in the library's examples."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, dict(feed)))


def plain_openvino(model: Path, feed: Feed, threads: int) -> Run:
    """What `benchmark_app -d CPU -api sync -hint latency -nthreads N -infer_precision f32` times.

    That fills the input tensors once, and then calls `infer` of one request over and over.
    """
    import openvino as ov

    asked = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    request = ov.Core().compile_model(str(model), "CPU", asked).create_infer_request()
    for name, array in feed.items():
        request.set_tensor(name, ov.Tensor(array))
    return lambda: list(request.infer().to_tuple())


PLAIN: dict[str, Callable[[Path, Feed, int], Run]] = {
    "onnxruntime": plain_onnxruntime,
    "openvino": plain_openvino,
}
"""By compiler: from ONNX file, inputs and threads to a run that is ready to be timed."""


def bound(compiler: str, graph: Graph, weights: Feed, feed: Feed, threads: int) -> Program:
    """GraphNet's program, ready to be timed."""
    found, target = compilers.get(compiler), Target(threads=threads)
    found.configure(target)
    program = found.compile(graph, weights, target)
    program.bind(feed)
    program.run()
    return program


def compare(runs: Sequence[Callable[[], object]], blocks: int, seed: int) -> np.ndarray:
    """[pairs, 2 runs, 2 clocks]: seconds per run of each block, wall and CPU."""
    start = time.perf_counter()
    runs[0]()
    repeats = max(1, round(BLOCK_SECONDS / (time.perf_counter() - start)))
    order = np.random.default_rng(seed)
    pairs = np.empty((blocks + PAIRS_OF_WARM_UP, 2, 2))
    for pair in pairs:
        for which in order.permutation(2):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                runs[which]()
            pair[which] = (time.perf_counter() - wall) / repeats, (time.process_time() - cpu) / repeats
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
    compilers.get(compiler).preload()
    with tempfile.TemporaryDirectory(prefix="graphnet-fairness-") as folder:
        path = Path(folder, f"{name}.onnx")
        onnx_bridge.save_onnx(graph, path, weights)
        first = PLAIN[compiler](path, feed, options.threads)
        if options.self:
            second: Callable[[], object] = PLAIN[compiler](path, feed, options.threads)
            apart = 0.0
        else:
            program = bound(compiler, graph, weights, feed, options.threads)
            second, apart = program.run, difference(first(), program.outputs())
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
