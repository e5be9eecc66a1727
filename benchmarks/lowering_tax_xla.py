"""Lowering tax on XLA: graphs lowered by GraphNet against the same nets written by hand in plain JAX.

    python -m benchmarks.lowering_tax_xla --models resnet50,bert_base --blocks 30

The hand-written nets are what a JAX user writes: channels last, HWIO kernels, [in, out] matrices, einsum attention.
Both take the graph's weights as run-time arguments and are compiled alike. Blocks of runs of the two alternate in one
process, in random order within each pair. Printed: ratio of the medians over blocks (lowered / by hand) with a
bootstrap 95 % interval, for wall and for CPU time. `--self` compares the hand-written net with a second copy of itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphnet.compilers import Program, Target
from graphnet.compilers.jax.compiler import Jax
from graphnet.ir.graph import Graph
from graphnet.ir.tensors import inputs

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmark"
BLOCK_SECONDS = 0.5
PAIRS_OF_WARM_UP = 2
Params = Mapping[str, Any]


def resnet50(params: Params, x: Any) -> tuple[Any, ...]:
    """ResNet-50 on NHWC images; `params` by the names of the timm model."""

    def conv(x: Any, name: str, stride: int = 1) -> Any:
        kernel = params[name + ".weight"]
        edge = kernel.shape[0] // 2
        return lax.conv_general_dilated(
            x, kernel, (stride, stride), [(edge, edge)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def norm(x: Any, name: str) -> Any:
        factor = lax.rsqrt(params[name + ".running_var"] + 1e-5) * params[name + ".weight"]
        return (x - params[name + ".running_mean"]) * factor + params[name + ".bias"]

    def bottleneck(x: Any, name: str, stride: int) -> Any:
        y = jax.nn.relu(norm(conv(x, name + ".conv1"), name + ".bn1"))
        y = jax.nn.relu(norm(conv(y, name + ".conv2", stride), name + ".bn2"))
        y = norm(conv(y, name + ".conv3"), name + ".bn3")
        if name + ".downsample.0.weight" in params:
            x = norm(conv(x, name + ".downsample.0", stride), name + ".downsample.1")
        return jax.nn.relu(y + x)

    x = jax.nn.relu(norm(conv(x, "conv1", 2), "bn1"))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        for block in range(blocks):
            x = bottleneck(x, f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1)
    return (x.mean((1, 2)) @ params["fc.weight"] + params["fc.bias"],)


def bert_base(params: Params, ids: Any, mask: Any) -> tuple[Any, ...]:
    """BERT-base's hidden states and pooled first token; `params` by the names of the transformers model."""

    def dense(x: Any, name: str) -> Any:
        return x @ params[name + ".weight"] + params[name + ".bias"]

    def norm(x: Any, name: str) -> Any:
        y = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-12)
        return y * params[name + ".weight"] + params[name + ".bias"]

    def attention(x: Any, name: str) -> Any:
        q, k, v = (dense(x, f"{name}.self.{part}").reshape(*x.shape[:2], 12, 64) for part in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q * 0.125, k)
        weights = jax.nn.softmax(jnp.where(mask[:, None, None, :] > 0, scores, -jnp.inf), -1)
        return dense(jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape), name + ".output.dense")

    def layer(x: Any, name: str) -> Any:
        x = norm(attention(x, name + ".attention") + x, name + ".attention.output.LayerNorm")
        y = jax.nn.gelu(dense(x, name + ".intermediate.dense"), approximate=False)
        return norm(dense(y, name + ".output.dense") + x, name + ".output.LayerNorm")

    words, positions = params["embeddings.word_embeddings.weight"], params["embeddings.position_embeddings.weight"]
    kinds = params["embeddings.token_type_embeddings.weight"]
    x = norm(words[ids] + kinds[0] + positions[: ids.shape[1]], "embeddings.LayerNorm")
    for index in range(12):
        x = layer(x, f"encoder.layer.{index}")
    return x, jnp.tanh(dense(x[:, 0], "pooler.dense"))


def _image(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _weight(name: str, array: np.ndarray) -> np.ndarray:
    """As a JAX user stores it: kernels HWIO, matrices [in, out], tables as they are."""
    if array.ndim == 4:
        return np.ascontiguousarray(array.transpose(2, 3, 1, 0))
    return np.ascontiguousarray(array.T) if array.ndim == 2 and "embeddings" not in name else array


MODELS: dict[str, tuple[str, Callable[..., tuple[Any, ...]], Callable[[np.ndarray], np.ndarray]]] = {
    "resnet50": ("vision/resnet50.json", resnet50, _image),
    "bert_base": ("transformer/bert_base.json", bert_base, lambda x: x),
}
"""Graph file, net by hand, and how its inputs differ from the graph's."""


class _ByHand:
    """The net by hand, compiled and run as `JaxProgram` does it."""

    def __init__(
        self, function: Callable[..., tuple[Any, ...]], params: Params, arguments: Sequence[np.ndarray]
    ) -> None:
        self.params, self.arguments = jax.device_put(dict(params)), jax.device_put(tuple(arguments))
        self.compiled = jax.jit(function).lower(self.params, *self.arguments).compile()
        self.results: Sequence[jax.Array] = ()

    def run(self) -> None:
        self.results = self.compiled(self.params, *self.arguments)
        jax.block_until_ready(self.results)  # type: ignore[no-untyped-call]

    def outputs(self) -> Sequence[np.ndarray]:
        return [np.asarray(result) for result in self.results]


def compare(programs: Sequence[Any], blocks: int, seed: int) -> np.ndarray:
    """[pairs, 2 programs, 2 clocks]: seconds per run of each block, wall and CPU."""
    start = time.perf_counter()
    programs[0].run()
    runs = max(1, round(BLOCK_SECONDS / (time.perf_counter() - start)))
    order = np.random.default_rng(seed)
    pairs = np.empty((blocks + PAIRS_OF_WARM_UP, 2, 2))
    for pair in pairs:
        for which in order.permutation(2):
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(runs):
                programs[which].run()
            pair[which] = (time.perf_counter() - wall) / runs, (time.process_time() - cpu) / runs
    return pairs[PAIRS_OF_WARM_UP:]


def ratio_of_medians(pairs: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Median of the second column over that of the first, and a bootstrap 95 % interval (pairs are resampled)."""
    chosen = np.random.default_rng(seed).integers(0, len(pairs), (2000, len(pairs)))
    samples = np.median(pairs[chosen, 1], 1) / np.median(pairs[chosen, 0], 1)
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(np.median(pairs[:, 1]) / np.median(pairs[:, 0])), float(low), float(high)


def measure(name: str, options: argparse.Namespace) -> None:
    """Print one line."""
    path, function, view = MODELS[name]
    graph = Graph.load(BENCHMARK / path).bind()
    tensors, data = graph.materialize(), inputs(graph)
    params = {key: _weight(key, array) for key, array in tensors.items()}
    arguments = [view(data[item.name]) for item in graph.inputs]
    first: Program | _ByHand = _ByHand(function, params, arguments)
    second: Program | _ByHand = _ByHand(function, params, arguments)
    if not options.self:
        second = Jax().compile(graph, tensors, Target(threads=options.threads))
        second.bind(data)
    first.run()
    second.run()
    error = max(
        float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(first.outputs(), second.outputs(), strict=True)
    )
    pairs = compare((first, second), options.blocks, options.seed)
    wall, cpu = (ratio_of_medians(pairs[:, :, clock], options.seed) for clock in (0, 1))
    print(
        f"{name:10} by hand {np.median(pairs[:, 0, 0]) * 1e3:7.2f} ms"
        f"   lowered {np.median(pairs[:, 1, 0]) * 1e3:7.2f} ms"
        f"   wall {wall[0]:.3f} [{wall[1]:.3f}, {wall[2]:.3f}]   cpu {cpu[0]:.3f} [{cpu[1]:.3f}, {cpu[2]:.3f}]"
        f"   difference {error:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--self", action="store_true")
    options = parser.parse_args()
    Jax().configure(Target(threads=options.threads))
    for name in options.models.split(","):
        measure(name, options)


if __name__ == "__main__":
    main()
