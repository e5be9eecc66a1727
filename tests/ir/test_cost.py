"""Costs against the operator standard, torch.utils.flop_counter, public totals and hand calculations."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from graphnet.ir import cost
from graphnet.ir.fold import clean
from graphnet.ir.graph import Body, Dim, Graph, Input, Node, Normal, Value, Values, Weight
from graphnet.ir.onnx_bridge import from_onnx


def graph_of(text: str, **weights: tuple[int, ...]) -> Graph:
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]>\n{text}')
    for name, shape in weights.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
    return from_onnx(proto)


def flops(text: str, **weights: tuple[int, ...]) -> int:
    found = cost.graph_cost(graph_of(text, **weights))
    assert found.unknown == {}
    return found.flops


# -- FLOPs -------------------------------------------------------------------------------------------------------------


def test_conv_transpose() -> None:
    """fvcore#78: ConvTranspose2d(32, 1, 3) on [1, 32, 1, 1] is 288 multiply-adds."""
    text = "g (float[1, 32, 1, 1] x) => (float[1, 1, 3, 3] y) { y = ConvTranspose(x, w) }"
    assert flops(text, w=(32, 1, 3, 3)) == 2 * 288


def test_attention() -> None:
    """pytorch#195460: q = k = v of [1, 12, 64, 64]."""
    text = "g (float[1, 12, 64, 64] x) => (float[1, 12, 64, 64] y) { y = Attention(x, x, x) }"
    assert flops(text) == 12_582_912
    flat = """g (float[1, 64, 768] x) => (float[1, 64, 768] y) {
        y = Attention <q_num_heads = 12, kv_num_heads = 12> (x, x, x)
    }"""
    assert flops(flat) == 12_582_912


def test_grouped_attention_with_past() -> None:
    text = """g (float[2, 8, 1, 64] q, float[2, 2, 1, 64] k, float[2, 2, 1, 32] v, float[2, 2, 9, 64] pk,
        float[2, 2, 9, 32] pv) => (float[2, 8, 1, 32] y, float[2, 2, 10, 64] a, float[2, 2, 10, 32] b)
    { y, a, b = Attention(q, k, v, , pk, pv) }"""
    assert flops(text) == 2 * 2 * 8 * 1 * 10 * (64 + 32)


def test_matmul() -> None:
    """tensorflow#899: [25, 16] x [16, 9]."""
    assert flops("g (float[25, 16] x) => (float[25, 9] y) { y = MatMul(x, w) }", w=(16, 9)) == 7_200
    assert flops("g (float[2, 5, 25, 16] x) => (float[2, 5, 25, 9] y) { y = MatMul(x, w) }", w=(16, 9)) == 72_000
    assert flops("g (float[16] x) => (float[9] y) { y = MatMul(x, w) }", w=(16, 9)) == 288
    transposed = "g (float[16, 25] x) => (float[25, 9] y) { y = Gemm <transA = 1, transB = 1> (x, w, b) }"
    assert flops(transposed, w=(9, 16), b=(9,)) == 7_200


def test_grouped_convolution() -> None:
    """iree#17944's shape: Conv1d of 16 groups, kernel 128."""
    text = "g (float[1, 1024, 39] x) => (float[1, 1024, 40] y) { y = Conv <group = 16, pads = [64, 64]> (x, w) }"
    assert flops(text, w=(1024, 64, 128)) == 2 * 1024 * 40 * 64 * 128


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }", 6),
        ("g (float[2, 3] x, float[3] z) => (float[2, 3] y) { y = Add(x, z) }", 6),
        ("g (float[2, 3] x) => (float[3, 2] y) { y = Transpose(x) }", 0),
        ("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }", 6),
        ("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }", 8),
        ("g (float[2, 3] x) => (float[2, 3] y) { y = Softmax(x) }", 30),
        ("g (float[1, 2, 4, 4] x) => (float[1, 2, 3, 3] y) { y = MaxPool <kernel_shape = [2, 2]> (x) }", 72),
        ("g (float[3, 4] x, float[4, 5] z) => (float[3, 5] y) { y = Einsum <equation = \"ij,jk->ik\"> (x, z) }", 120),
        ("g (float[3, 4] x, float[3, 4] z) => (float[3, 4] y) { y = Einsum <equation = \"ij,ij->ij\"> (x, z) }", 12),
        ("g (float[3, 4] x) => (float[4] y) { y = Einsum <equation = \"ij->j\"> (x) }", 12),
        ("g (float[3, 4] x) => (float[4, 3] y) { y = Einsum <equation = \"ij->ji\"> (x) }", 0),
        ("g (float[7, 3, 4] x, float[4, 5] z) => (float[7, 3, 5] y) {"
         " y = Einsum <equation = \"...j,jk->...k\"> (x, z) }", 840),
    ],
)  # fmt: skip
def test_formulas(text: str, expected: int) -> None:
    assert flops(text) == expected


def test_lstm() -> None:
    text = "g (float[5, 2, 3] x) => (float[5, 1, 2, 4] y) { y = LSTM <hidden_size = 4> (x, w, r) }"
    steps, gates, size, hidden = 10, 16, 3, 4
    assert flops(text, w=(1, 16, 3), r=(1, 16, 4)) == steps * (2 * gates * (size + hidden) + 9 * hidden)


# -- against torch -----------------------------------------------------------------------------------------------------


def torch_modules() -> tuple[Any, tuple[Any, ...]]:
    """One module that applies linear layers, products, convolutions and attention, each to an input of its own."""
    import torch
    from torch import nn
    from torch.nn.functional import scaled_dot_product_attention

    layers = [
        (nn.Linear(16, 9), (25, 16)),
        (nn.Linear(16, 9, bias=False), (4, 25, 16)),
        (nn.Conv1d(4, 8, 5, padding=2, stride=2), (2, 4, 33)),
        (nn.Conv2d(4, 8, 3, padding=1, groups=2), (2, 4, 17, 19)),
        (nn.Conv2d(4, 8, 3, dilation=2), (1, 4, 17, 19)),
        (nn.Conv3d(2, 4, 3), (1, 2, 7, 8, 9)),
        (nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1), (2, 8, 9, 7)),
        (nn.ConvTranspose1d(8, 4, 4, stride=2), (2, 8, 9)),
    ]

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(layer for layer, _ in layers)

        def forward(self, matrix: Any, heads: Any, *inputs: Any) -> Any:
            results = [layer(x) for layer, x in zip(self.layers, inputs, strict=True)]
            attended = scaled_dot_product_attention(heads, heads, heads)
            return *results, torch.matmul(matrix, matrix.transpose(-1, -2)), attended

    shapes = [(3, 2, 25, 16), (2, 12, 64, 64), *(shape for _, shape in layers)]
    return Module().eval(), tuple(torch.zeros(shape) for shape in shapes)


def test_equal_to_torch_flop_counter() -> None:
    """Convolutions and matrix products, exactly; attention is counted as the two products that it is."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    module, inputs = torch_modules()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        module(*inputs)
    expected = {str(op).partition(".")[2]: count for op, count in counter.get_flop_counts()["Global"].items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, inputs, dynamo=True, optimize=False, opset_version=23, verbose=False)
    assert program is not None
    graph = clean(from_onnx(program.model_proto))
    found: Counter[str] = Counter()
    for node, item in cost.node_costs(graph):
        found[node.op] += item.flops or 0
    assert found["Attention"] == 4 * 2 * 12 * 64 * 64 * 64
    assert found["Conv"] + found["ConvTranspose"] == expected.pop("convolution")
    assert found["MatMul"] + found["Gemm"] + found["Attention"] == sum(expected.values())


# -- bytes and intensities ---------------------------------------------------------------------------------------------


def test_each_input_is_read_once_and_each_output_written_once() -> None:
    graph = graph_of("g (float[2, 3] x) => (float[2, 3] y) { h = Mul(x, x) y = MatMul(h, w) }", w=(3, 3))
    assert [c.bytes for _, c in cost.node_costs(graph)] == [24 + 24, 24 + 36 + 24]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[2, 3] x) => (float[6] y) <int64[1] s = {6}> { y = Reshape(x, s) }", 0),
        ("g (float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }", 0),
        ("g (float[2, 3] x) => (int64[2] y) { y = Shape(x) }", 0),
        ("g (float[2, 3] x) => (float[3, 2] y) { y = Transpose(x) }", 48),
        ("g (float[1000, 4] x, int64[2] i) => (float[2, 4] y) { y = Gather(x, i) }", 32 + 16 + 32),
        ("g (float[2, 4] x, int64[1000] i) => (float[1000, 4] y) { y = Gather(x, i) }", 32 + 8000 + 16000),
        ("g (float16[2, 3] x) => (float16[2, 3] y) { y = Relu(x) }", 24),
        ("g (double[2, 3] x) => (bool[2, 3] y) { y = IsNaN(x) }", 54),
    ],
)
def test_bytes(text: str, expected: int) -> None:
    assert cost.graph_cost(graph_of(text)).bytes == expected


def test_intensities_by_hand() -> None:
    """A matmul of 64 (2 * 64^3 FLOP over 3 * 64^2 * 4 bytes) is compute-bound, the addition after it is not."""
    graph = graph_of("g (float[64, 64] x) => (float[64, 64] y) { h = MatMul(x, w) y = Add(h, x) }", w=(64, 64))
    work, moved, square = 2 * 64**3, 3 * 64**2 * 4, 64**2
    found = cost.graph_cost(graph)
    assert (found.flops, found.bytes) == (work + square, 2 * moved)
    assert found.arithmetic_intensity == pytest.approx((work + square) / (2 * moved))
    longest = max(work / 10, moved)
    assert found.compute_intensity == pytest.approx(longest / (longest + moved))


def test_nothing_moved_is_no_division_by_zero() -> None:
    found = cost.graph_cost(graph_of("g (float[2] x) => (float[2] y) { y = Identity(x) }"))
    assert (found.arithmetic_intensity, found.compute_intensity) == (0.0, 0.0)


# -- unknown operators, control flow, symbols --------------------------------------------------------------------------


def one_node(op: str, domain: str = "") -> Graph:
    return Graph(
        name="g",
        inputs=(Input(name="x", dtype="float32", shape=(2, 3)),),
        outputs=("y",),
        nodes=(Node(op=op, name="n", inputs=("x",), outputs=("y",), domain=domain),),
        values={"y": Value(dtype="float32", shape=(2, 3))},
    )


def test_an_operator_without_a_rule_is_unknown_never_zero() -> None:
    """thop PR 166."""
    for graph, name in ((one_node("NonMaxSuppression"), "NonMaxSuppression"), (one_node("F", "com.x"), "com.x::F")):
        assert cost.node_cost(graph, graph.nodes[0]).flops is None
        found = cost.graph_cost(graph)
        assert found.unknown == {name: 1}
        assert (found.flops, found.bytes) == (0, 48)


def loop(trips: int | None) -> Graph:
    head = "int64 trips" if trips is None else ""
    literal = "" if trips is None else f"<int64 trips = {{{trips}}}>"
    return graph_of(f"""g (float[2] x{", " + head if head else ""}) => (float[2] y) {literal} {{
        y = Loop (trips, , x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t) {{
            c2 = Identity(c) t = Add(s, s) }}>
    }}""")


def test_loops_count_their_trips() -> None:
    found = cost.graph_cost(loop(5))
    assert (found.flops, found.unknown) == (10, {})
    found = cost.graph_cost(loop(None))
    assert (found.flops, found.unknown) == (2, {"Loop": 1}), "trips that a run decides make it a lower bound"


def test_if_counts_the_dearer_branch() -> None:
    graph = graph_of("""g (float[4] x, bool c) => (float[4] y) {
        y = If (c) <then_branch = t () => (float[4] a) { a = Relu(x) },
                    else_branch = e () => (float[4] b) { u = Relu(x) b = Sigmoid(u) }>
    }""")
    assert cost.graph_cost(graph).flops == 4 + 16
    assert cost.operator_count(graph) == 4
    assert cost.distribution(graph) == {"relu": 2, "if": 1, "sigmoid": 1}


def test_symbols_have_their_defaults() -> None:
    graph = graph_of("g (float[batch, 16] x) => (float[batch, 9] y) { y = MatMul(x, w) }", w=(16, 9))
    assert cost.graph_cost(graph).flops == 288
    dims = {"batch": Dim(min=1, max=64, default=25)}
    graph = Graph(
        name="g", dims=dims, inputs=graph.inputs, outputs=graph.outputs, weights=graph.weights, nodes=graph.nodes,
        values=graph.values,
    )  # fmt: skip
    assert cost.graph_cost(graph).flops == 7_200


# -- counts and names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "rank", "name"),
    [
        ("Conv", 3, "conv1d"), ("Conv", 4, "conv2d"), ("Conv", 5, "conv3d"), ("MatMul", None, "matmul"),
        ("Gemm", None, "matmul"), ("LayerNormalization", None, "layer_normalization"), ("Relu", None, "relu"),
        ("RMSNormalization", None, "rms_normalization"), ("GatherND", None, "gather_nd"), ("IsNaN", None, "is_nan"),
        ("LSTM", None, "lstm"), ("ReduceL2", None, "reduce_l2"), ("ConvTranspose", None, "conv_transpose"),
        ("GlobalAveragePool", None, "global_average_pool"), ("PRelu", None, "p_relu"),
    ],
)  # fmt: skip
def test_operator_names(op: str, rank: int | None, name: str) -> None:
    assert cost.operator_name(op, rank=rank) == name


def test_distribution_is_ordered_by_count() -> None:
    graph = graph_of(
        "g (float[1, 2, 4, 4] x) => (float[1, 2, 4, 4] y) { a = Relu(x) b = Conv(a, w) c = Relu(b) y = Add(c, x) }",
        w=(2, 2, 1, 1),
    )
    assert list(cost.distribution(graph).items()) == [("relu", 2), ("add", 1), ("conv2d", 1)]


@pytest.mark.parametrize(
    ("count", "tier"),
    [
        (0, "kernel"), (99, "kernel"), (100, "micro"), (500, "micro"), (501, "block"), (4_999, "block"),
        (5_000, "model"), (50_000, "model"), (50_001, "industrial"),
    ],
)  # fmt: skip
def test_tiers(count: int, tier: str) -> None:
    assert cost.tier(count) == tier


def test_parameters_are_those_with_the_role() -> None:
    def weight(role: Any, size: int) -> Weight:
        return Weight(dtype="float32", shape=(size,), fill=Normal(), role=role)

    inner = Body(outputs=("k",), weights={"k": weight("parameter", 7)})
    node = Node(op="If", name="n", inputs=("c",), outputs=("y",), attrs={"then_branch": inner, "else_branch": inner})
    graph = Graph(
        name="g",
        inputs=(Input(name="c", dtype="bool", shape=(), fill=Values(data=(True,))),),
        outputs=("y",),
        weights={"a": weight("parameter", 5), "b": weight("buffer", 50), "c2": weight("constant", 500)},
        nodes=(node,),
        values={"y": Value(dtype="float32", shape=(7,))},
    )
    assert cost.parameters(graph) == 5 + 7 + 7


# -- real networks and speed -------------------------------------------------------------------------------------------


def resnet50() -> Graph:
    """ResNet-50 v1.5 at 224 x 224: bottlenecks of 3, 4, 6, 3, stride in the 3 x 3 convolution."""
    lines: list[str] = []
    weights: dict[str, tuple[int, ...]] = {}

    def conv(x: str, channels: int, filters: int, kernel: int, stride: int) -> str:
        out, pad = f"v{len(lines)}", kernel // 2
        weights[f"w_{out}"] = (filters, channels, kernel, kernel)
        lines.append(
            f"{out} = Conv <strides = [{stride}, {stride}], pads = [{pad}, {pad}, {pad}, {pad}]> ({x}, w_{out})"
        )
        return out

    x = conv("x", 3, 64, 7, 2)
    lines.append(f"pooled = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> ({x})")
    x, channels = "pooled", 64
    for width, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            inner = conv(conv(conv(x, channels, width, 1, 1), width, width, 3, stride), width, 4 * width, 1, 1)
            short = conv(x, channels, 4 * width, 1, stride) if block == 0 else x
            lines.append(f"s{len(lines)} = Add({inner}, {short})")
            x, channels = f"s{len(lines) - 1}", 4 * width
    lines.append(f"mean = GlobalAveragePool({x}) flat = Flatten(mean) y = Gemm <transB = 1> (flat, fc)")
    weights["fc"] = (1000, 2048)
    body = "\n".join(lines)
    return graph_of(f"g (float[1, 3, 224, 224] x) => (float[1, 1000] y) {{ {body} }}", **weights)


def test_resnet50_is_4_09_giga_multiply_adds() -> None:
    graph = resnet50()
    counted = sum(c.flops or 0 for node, c in cost.node_costs(graph) if node.op in ("Conv", "Gemm"))
    assert counted == 8_178_368_512
    assert round(counted / 2e9, 2) == 4.09
    assert cost.distribution(graph)["conv2d"] == 53


def test_fifty_thousand_nodes_in_half_a_second() -> None:
    nodes, values = [], {}
    for i in range(25_000):
        source = f"b{i - 1}" if i else "x"
        nodes.append(Node(op="MatMul", name=f"m{i}", inputs=(source, "w"), outputs=(f"a{i}",)))
        nodes.append(Node(op="Add", name=f"s{i}", inputs=(f"a{i}", source), outputs=(f"b{i}",)))
        values[f"a{i}"] = values[f"b{i}"] = Value(dtype="float32", shape=("batch", 16))
    graph = Graph(
        name="g",
        dims={"batch": Dim(min=1, max=8, default=2)},
        inputs=(Input(name="x", dtype="float32", shape=("batch", 16)),),
        outputs=("b24999",),
        weights={"w": Weight(dtype="float32", shape=(16, 16), fill=Normal())},
        nodes=tuple(nodes),
        values=values,
    )
    start = time.process_time()
    found = cost.graph_cost(graph)
    assert time.process_time() - start < 0.5
    assert found.flops == 25_000 * (2 * 2 * 16 * 16 + 32)
