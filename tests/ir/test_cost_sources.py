"""Costs of whole graphs against torch.utils.flop_counter, XLA's cost analysis and published totals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from onnx import defs

from graphnet.dataset import recipes
from graphnet.ir import cost
from graphnet.ir.cost_rules import FLOPS, UNCOUNTED
from graphnet.ir.graph import OPSET, Graph
from tests.ir.test_cost import graph_of

BENCHMARK = Path(__file__).parents[2] / "benchmark"
FILES = sorted(BENCHMARK.glob("*/*.json"))
PRODUCTS = ("MatMul", "Gemm", "Einsum", "Attention")
QUICK = ("resnet18", "distilbert", "mmoe")
UNUSED = {"conv_tasnet": 2 * 256 * 128 * 999, "wavenet": 2 * 64 * 64 * 4096}
"""FLOPs of the last block's residual convolution, which nothing reads: eager PyTorch runs it, the capture drops it."""


def torch_counts(name: str) -> tuple[int, int]:
    """FLOPs of the convolutions and of the matrix products of a recipe's module at its default sizes, by PyTorch."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from graphnet.frontends import torch_inputs, torch_weightless

    (recipe,) = recipes.load(names=[name])
    assert recipe.factory is not None
    module = torch_weightless.build(recipe.factory, weightless=True)
    fake = torch_weightless.fake_parameters(module)
    examples = torch_inputs.make(recipe.inputs, {key: dim.default for key, dim in recipe.dims.items()})
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), fake, sdpa_kernel(SDPBackend.MATH), counter:
        inputs = [fake.from_tensor(example, static_shapes=True) for example in examples]
        module(**{item.name: tensor for item, tensor in zip(recipe.inputs, inputs, strict=True)})
    counts = {str(op): int(count) for op, count in counter.get_flop_counts()["Global"].items()}
    convolutions = counts.pop("aten.convolution", 0)
    return convolutions, sum(counts.values())


def our_counts(name: str) -> tuple[int, int]:
    (file,) = BENCHMARK.glob(f"*/{name}.json")
    found: Counter[str] = Counter()
    for node, item in cost.node_costs(Graph.load(file)):
        found[node.op] += item.flops or 0
    return found["Conv"] + found["ConvTranspose"], sum(found[op] for op in PRODUCTS)


@pytest.mark.parametrize("name", QUICK)
def test_equal_to_torch_flop_counter(name: str) -> None:
    assert our_counts(name) == torch_counts(name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_core_set_is_equal_to_torch_flop_counter() -> None:
    """Every graph of the core set that was captured from PyTorch: convolutions and matrix products, each exactly."""
    names = [recipe.name for recipe in recipes.load() if recipe.factory is not None]
    assert len(names) >= 70
    wrong = {}
    for name in names:
        (convolutions, products), ours = torch_counts(name), our_counts(name)
        if ours != (convolutions - UNUSED.get(name, 0), products):
            wrong[name] = ours, (convolutions, products)
    assert wrong == {}


def test_core_set_has_no_unknown_costs() -> None:
    assert len(FILES) >= 90
    assert {file.name: unknown for file in FILES if (unknown := Graph.load(file).unknown_cost)} == {}


def test_every_operator_of_the_standard_has_a_rule_or_a_reason() -> None:
    names = {schema.name for schema in defs.get_all_schemas() if schema.domain == ""}
    current = {name for name in names if _in_opset(name)}
    assert current - FLOPS.keys() - UNCOUNTED.keys() == {"If", "Loop", "Scan"}
    assert FLOPS.keys() & UNCOUNTED.keys() == set()
    assert UNCOUNTED.keys() <= current


def _in_opset(name: str) -> bool:
    try:
        return not defs.get_schema(name, OPSET, "").deprecated
    except defs.SchemaError:
        return False


@pytest.mark.parametrize(
    ("name", "multiply_adds"),
    [("resnet50", 4.09), ("resnet18", 1.81), ("densenet121", 2.83), ("inception_v3", 5.71), ("vgg11_bn", 7.61)],
)
def test_published_totals(name: str, multiply_adds: float) -> None:
    """GMAC of convolutions and linear layers as PyTorch's documentation of its model zoo prints them (GFLOPS there)."""
    assert sum(our_counts(name)) / 2e9 == pytest.approx(multiply_adds, abs=0.01)


# -- XLA ---------------------------------------------------------------------------------------------------------------


def xla_analysis(graph: Graph) -> dict[str, float]:
    """XLA's counts of the graph as we lower it, before it is optimised."""
    import jax

    from graphnet.lower.jax.graph import lower

    lowered = lower(graph, graph.materialize(0))
    analysis: Any = jax.jit(lowered.function).lower(lowered.params, *lowered.inputs).cost_analysis()
    return dict(analysis)


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("g (float[25, 16] x) => (float[25, 9] y) { y = MatMul(x, w) }", {"w": (16, 9)}),
        ("g (float[7, 25, 16] x) => (float[7, 25, 9] y) { y = MatMul(x, w) }", {"w": (7, 16, 9)}),
        ("g (float[25, 16] x) => (float[25, 9] y) { h = MatMul(x, w) y = Relu(h) }", {"w": (16, 9)}),
        ("g (float[25, 16] x) => (float[25, 9] y) { h = MatMul(x, w) s = Add(h, b) y = Tanh(s) }",
         {"w": (16, 9), "b": (9,)}),
        ("g (float[2, 4, 17, 19] x) => (float[2, 8, 15, 17] y) { y = Conv(x, w) }", {"w": (8, 4, 3, 3)}),
        ("g (float[2, 4, 17, 19] x) => (float[2, 8, 15, 17] y) { y = Conv <group = 2> (x, w) }", {"w": (8, 2, 3, 3)}),
        ("g (float[1, 8, 9, 7] x) => (float[1, 4, 19, 15] y) { y = ConvTranspose <strides = [2, 2]> (x, w) }",
         {"w": (8, 4, 3, 3)}),
    ],
)  # fmt: skip
def test_equal_to_xla(text: str, weights: dict[str, tuple[int, ...]]) -> None:
    """XLA counts transcendental functions apart; we count each as one operation."""
    graph = graph_of(text, **weights)
    found = xla_analysis(graph)
    assert cost.graph_cost(graph).flops == found["flops"] + found.get("transcendentals", 0)


def test_bytes_of_one_operator_are_equal_to_xla() -> None:
    graph = graph_of("g (float[2, 4, 17, 19] x) => (float[2, 8, 17, 19] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
                     w=(8, 4, 3, 3))  # fmt: skip
    assert cost.graph_cost(graph).bytes == xla_analysis(graph)["bytes accessed"]


def test_where_xla_counts_otherwise() -> None:
    """XLA leaves out the multiply-adds with padding, and counts a bias and the softmax inside of attention."""
    padded = graph_of("g (float[2, 4, 17, 19] x) => (float[2, 8, 17, 19] y) { y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
                      w=(8, 4, 3, 3))  # fmt: skip
    rows, columns = 3 * 17 - 2, 3 * 19 - 2  # of each axis, taps that meet the image
    assert xla_analysis(padded)["flops"] == 2 * 2 * 8 * 4 * rows * columns
    assert cost.graph_cost(padded).flops == 2 * 2 * 8 * 4 * (3 * 17) * (3 * 19)
    biased = graph_of("g (float[25, 16] x) => (float[25, 9] y) { y = Gemm(x, w, b) }", w=(16, 9), b=(9,))
    assert xla_analysis(biased)["flops"] - cost.graph_cost(biased).flops == 25 * 9
    attention = graph_of("g (float[1, 12, 64, 64] x) => (float[1, 12, 64, 64] y) { y = Attention(x, x, x) }")
    scores = 12 * 64 * 64
    found = xla_analysis(attention)
    assert found["transcendentals"] == scores
    assert 4 * scores < found["flops"] - cost.graph_cost(attention).flops <= 6 * scores


# -- rules by hand -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[2, 3] a, float[2, 3] b, float[2, 3] c) => (float[2, 3] y) { y = Mean(a, b, c) }", 2 * 6 + 6),
        ("""g (float[1, 2, 8, 8] x, float[5, 4] r, int64[5] i) => (float[5, 2, 3, 3] y) {
            y = RoiAlign <output_height = 3, output_width = 3, sampling_ratio = 2> (x, r, i) }""", 5 * 2 * 9 * 4 * 9),
    ],
)  # fmt: skip
def test_formulas(text: str, expected: int) -> None:
    assert cost.graph_cost(graph_of(text)).flops == expected


def test_points_that_boxes_decide_are_unknown() -> None:
    text = "g (float[1, 2, 8, 8] x, float[5, 4] r, int64[5] i) => (float[5, 2, 1, 1] y) { y = RoiAlign(x, r, i) }"
    assert cost.graph_cost(graph_of(text)).unknown == {"RoiAlign": 1}
