"""Matrix products made directly in GraphIR: square, tall, skinny, batched, matrix-vector."""

from __future__ import annotations

from functools import partial

from graphnet.dataset.recipe import Recipe, floats
from graphnet.ir.graph import DType, Graph, Input, Node, Normal, Shape, Value, Weight

_SHAPES: tuple[tuple[int, str, tuple[int, ...], int, int, int], ...] = (
    # number, name, batch axes, M, K, N: (batch, M, K) x (batch, K, N)
    (1, "square_256", (), 256, 256, 256),
    (2, "square_512", (), 512, 512, 512),
    (3, "square_1024", (), 1024, 1024, 1024),
    (4, "square_2048", (), 2048, 2048, 2048),
    (5, "tall_16384x256x256", (), 16384, 256, 256),
    (6, "wide_256x256x16384", (), 256, 256, 16384),
    (7, "skinny_4096x64x4096", (), 4096, 64, 4096),
    (8, "deep_128x16384x128", (), 128, 16384, 128),
    (9, "gemv_4096", (), 1, 4096, 4096),
    (10, "gemv_1024x16384", (), 1, 16384, 1024),
    (11, "odd_1000x999x1001", (), 1000, 999, 1001),
    (12, "prime_257x509x1021", (), 257, 509, 1021),
    (13, "batched_12x512x64x512", (12,), 512, 64, 512),
    (14, "batched_64x128x128x128", (64,), 128, 128, 128),
    (15, "batched_1024x16x16x16", (1024,), 16, 16, 16),
    (16, "outer_4096x1x4096", (), 4096, 1, 4096),
)
_LAYERS: tuple[tuple[int, str, int, int, int], ...] = (
    # number, name, rows, K, N: rows x weight, bias, as a fully connected layer (Gemm)
    (17, "linear_128x768x3072", 128, 768, 3072),
    (18, "linear_128x3072x768", 128, 3072, 768),
)
_FLOAT: DType = "float32"


def _product(batch: tuple[int, ...], m: int, k: int, n: int) -> Graph:
    """Both operands are inputs, so that no compiler can pack or fold one of them ahead."""
    left, right, out = (*batch, m, k), (*batch, k, n), (*batch, m, n)
    scale = float(f"{k**-0.5:.6g}")
    return _graph(
        inputs=(floats("a", *left), floats("b", *right, fill=Normal(std=scale))),
        weights={},
        node=Node(op="MatMul", name="matmul", inputs=("a", "b"), outputs=("c",)),
        shape=out,
    )


def _layer(rows: int, k: int, n: int) -> Graph:
    """The weight is a parameter, stored (N, K) as frameworks do: compilers may pack it ahead."""
    weights = {
        "weight": Weight(dtype=_FLOAT, shape=(n, k), fill=Normal(std=float(f"{k**-0.5:.6g}"))),
        "bias": Weight(dtype=_FLOAT, shape=(n,), fill=Normal(std=0.02)),
    }
    node = Node(op="Gemm", name="linear", inputs=("a", "weight", "bias"), outputs=("c",), attrs={"transB": 1})
    return _graph(inputs=(floats("a", rows, k),), weights=weights, node=node, shape=(rows, n))


def _graph(inputs: tuple[Input, ...], weights: dict[str, Weight], node: Node, shape: Shape) -> Graph:
    return Graph(
        name=node.name,
        domain="matmul",
        framework="GraphIR",
        inputs=inputs,
        outputs=("c",),
        weights=weights,
        nodes=(node,),
        values={"c": Value(dtype=_FLOAT, shape=shape)},
    )


RECIPES = tuple(
    Recipe(
        graph_id=f"GN-2026-MM-{number:03d}",
        name=name,
        subset="matmul",
        package="own implementation",
        model=model,
        license="Apache-2.0",
        graph=make,
    )
    for number, name, model, make in (
        *((number, name, "matrix product", partial(_product, b, m, k, n)) for number, name, b, m, k, n in _SHAPES),
        *((number, name, "fully connected layer", partial(_layer, m, k, n)) for number, name, m, k, n in _LAYERS),
    )
)
