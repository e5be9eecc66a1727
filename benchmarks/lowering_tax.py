"""What going through GraphIR costs: the original PyTorch model against its lowered graph, side by side in one process.

    python -m benchmarks.lowering_tax --models resnet50,bert --modes eager,inductor,freezing --blocks 30

Blocks of runs of the two programs alternate, in random order within each pair, so that drift of the machine hits both.
Printed per model and mode: the geometric mean over pairs of lowered / original latency, with a bootstrap 95 % interval,
for wall and for CPU time. `--self` compares the original with a second copy of itself: the noise of this benchmark.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch._dynamo
from torch import nn

from graphnet.compilers import Program, Target
from graphnet.compilers.inductor.compiler import Inductor
from graphnet.compilers.torch_eager import TorchEager
from graphnet.frontends.registry import timm_model, transformers_model
from graphnet.frontends.torch import capture

MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "resnet50": lambda: (timm_model("resnet50"), (torch.randn(1, 3, 224, 224),)),
    "mobilenetv3": lambda: (timm_model("mobilenetv3_large_100"), (torch.randn(1, 3, 224, 224),)),
    "vit_b": lambda: (timm_model("vit_base_patch16_224"), (torch.randn(1, 3, 224, 224),)),
    "bert": lambda: (_TextModel("bert"), (torch.randint(0, 30000, (1, 128)), torch.ones(1, 128, dtype=torch.int64))),
    "gpt2": lambda: (_TextModel("gpt2"), (torch.randint(0, 30000, (1, 128)), torch.ones(1, 128, dtype=torch.int64))),
}
MODES = ("eager", "inductor", "freezing")
BLOCK_SECONDS = 0.3
PAIRS_OF_WARM_UP = 3


class _TextModel(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.model = transformers_model(name)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
        return states


class _Original:
    """The model as its author wrote it, run as `TorchProgram` runs the lowered graph."""

    def __init__(self, model: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.model, self.arguments = model, arguments
        self.results: Any = None
        self.run()

    def run(self) -> None:
        with torch.inference_mode():
            self.results = self.model(*self.arguments)


def original(model: nn.Module, arguments: tuple[Any, ...], mode: str) -> _Original:
    torch._dynamo.reset()
    return _Original(model if mode == "eager" else torch.compile(model, fullgraph=True, dynamic=False), arguments)


def lowered(name: str, model: nn.Module, arguments: tuple[Any, ...], mode: str) -> Program:
    """The captured graph, with the model's own parameters where it keeps them by name."""
    graph = capture(model, arguments, name=name, check=False)
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tensors = {
        key: state[key].detach().numpy() if key in state else array for key, array in graph.materialize().items()
    }
    compiler = TorchEager() if mode == "eager" else Inductor()
    program = compiler.compile(graph, tensors, _target(mode))
    program.bind({item.name: tensor.numpy() for item, tensor in zip(graph.inputs, arguments, strict=True)})
    program.run()
    return program


def _target(mode: str) -> Target:
    return Target(threads=1, options={"freezing": True} if mode == "freezing" else {})


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


def interval(ratios: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Geometric mean of the ratios and a bootstrap 95 % interval of it."""
    logs = np.log(ratios)
    samples = np.random.default_rng(seed).choice(logs, (2000, len(logs))).mean(1)
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def measure(name: str, mode: str, options: argparse.Namespace) -> tuple[float, float]:
    """Print one line; returns the ratios of wall and CPU time."""
    torch.manual_seed(options.seed)
    model, arguments = MODELS[name]()
    model = model.eval().requires_grad_(False)
    (TorchEager() if mode == "eager" else Inductor()).configure(_target(mode))
    second = original(model, arguments, mode) if options.self else lowered(name, model, arguments, mode)
    first = original(model, arguments, mode)
    expected = first.results.numpy()
    error = 0.0 if options.self else float(np.abs(second.outputs()[0] - expected).max() / np.abs(expected).max())  # type: ignore[union-attr]
    pairs = compare((first, second), options.blocks, options.seed)
    ratios = pairs[:, 1] / pairs[:, 0]
    wall, cpu = interval(ratios[:, 0], options.seed), interval(ratios[:, 1], options.seed)
    print(
        f"{name:12} {mode:9} original {np.median(pairs[:, 0, 0]) * 1e3:8.2f} ms"
        f"   lowered {np.median(pairs[:, 1, 0]) * 1e3:8.2f} ms"
        f"   wall {wall[0]:.3f} [{wall[1]:.3f}, {wall[2]:.3f}]   cpu {cpu[0]:.3f} [{cpu[1]:.3f}, {cpu[2]:.3f}]"
        f"   error {error:.1e}",
        flush=True,
    )
    return wall[0], cpu[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--modes", default="eager")
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--self", action="store_true")
    options = parser.parse_args()
    for mode in options.modes.split(","):
        results = np.array([measure(name, mode, options) for name in options.models.split(",")])
        means = np.exp(np.log(results).mean(0))
        print(
            f"geometric mean, {mode}: wall {means[0]:.3f}, cpu {means[1]:.3f}; largest {results.max():.3f}", flush=True
        )


if __name__ == "__main__":
    main()
