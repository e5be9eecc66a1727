from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx.parser
import pytest
import torch
import torch._dynamo
from torch import fx

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import Graph
from graphnet.lower.torch.graph import NODE_KEY, covered_nodes, lower

rng = np.random.default_rng(0)


def graph_of(text: str, **metadata: Any) -> Graph:
    return Graph.from_onnx(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {text}'), **metadata)


def lowered(text: str, **weights: np.ndarray) -> fx.GraphModule:
    """The module of a model whose initializers are `weights`: parameters, but for those whose name starts with `c`."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    parameters = [name for name in weights if not name.startswith("c")]
    graph = Graph.from_onnx(model, parameters=parameters)
    return lower(graph, {**graph.materialize(), **weights})


def operators(module: fx.GraphModule) -> list[str]:
    return [
        node.target if isinstance(node.target, str) else node.target.__name__
        for node in module.graph.nodes
        if node.op in ("call_function", "call_method")
    ]


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def weight(module: fx.GraphModule, name: str) -> torch.Tensor:
    """A parameter or buffer; zero where no output needs it."""
    return getattr(module, name, torch.zeros(()))


def test_a_linear_layer_of_the_exporter_is_one_operator() -> None:
    module = lowered(
        """g (float[2,5,8] x) => (float[2,5,4] y) {
            wt = Transpose <perm = [1, 0]> (w)
            xw = MatMul (x, wt)
            y = Add (b, xw)
        }""",
        w=floats(4, 8),
        b=floats(4),
    )
    assert operators(module) == ["linear"]
    (node,) = [n for n in module.graph.nodes if n.op == "call_function"]
    assert len(covered_nodes(node)) == 3
    x = torch.randn(2, 5, 8)
    expected = torch.nn.functional.linear(x, weight(module, "w"), weight(module, "b"))
    torch.testing.assert_close(module(x)[0], expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "body",
    [
        "wt = Transpose <perm = [1, 0]> (w) xw = MatMul (x, wt) y = Add (xw, d)",  # a bias of another length
        "wt = Transpose <perm = [1, 0]> (w) xw = MatMul (x, wt) z = Relu (xw) y = Add (xw, z)",  # no weight
        "wt = Transpose <perm = [1, 0]> (w) xw = MatMul (x, wt) s = Add (xw, b) y = Add (s, xw)",  # used twice
    ],
)
def test_what_only_resembles_a_linear_layer_keeps_its_addition(body: str) -> None:
    module = lowered(f"g (float[2,5,8] x) => (float[2,5,4] y) {{ {body} }}", w=floats(4, 8), b=floats(4), d=floats(1))
    assert "linear" in operators(module)
    assert "add" in operators(module)
    x = torch.randn(2, 5, 8)
    product = x @ weight(module, "w").T
    expected = {
        0: product + weight(module, "d"),
        1: product + product.relu(),
        2: product + weight(module, "b") + product,
    }
    case = 0 if "d)" in body else 1 if "Relu" in body else 2
    torch.testing.assert_close(module(x)[0], expected[case])


def test_gemm_is_linear_or_addmm() -> None:
    text = "g (float[3,8] x) => (float[3,4] y) {{ y = Gemm <transB = {}, alpha = {}> (x, w, b) }}"
    assert operators(lowered(text.format(1, 1.0), w=floats(4, 8), b=floats(4))) == ["linear"]
    assert operators(lowered(text.format(0, 1.0), w=floats(8, 4), b=floats(4))) == ["addmm"]
    assert operators(lowered(text.format(1, 0.5), w=floats(4, 8), b=floats(4))) == ["t", "addmm"]


def test_composite_operators_stay_whole() -> None:
    module = lowered(
        """g (float[1,6,8] x, float[1,2,6,4] q) => (float[1,6,8] y, float[1,2,6,4] a) {
            n = LayerNormalization <axis = -1> (x, s, b)
            y = Gelu (n)
            a = Attention <is_causal = 1> (q, q, q)
        }""",
        s=floats(8),
        b=floats(8),
    )
    assert operators(module) == ["layer_norm", "gelu", "scaled_dot_product_attention"]


def test_literals_are_python_numbers_and_weights_are_not() -> None:
    module = lowered(
        """g (float[2,3] x) => (float[2,3] y) {
            half = Mul (x, chalf)
            low = Max (half, czero)
            y = Add (low, bias)
        }""",
        chalf=np.array(0.5, np.float32),
        czero=np.array([0.0], np.float32),
        bias=np.array([1.0], np.float32),
    )
    assert dict(module.named_parameters()).keys() == {"bias"}
    assert not dict(module.named_buffers())
    mul = next(n for n in module.graph.nodes if n.target == "mul")
    assert mul.args[1] == 0.5
    assert operators(module) == ["mul", "clamp", "add"]


def test_nothing_redundant_is_emitted() -> None:
    module = lowered(
        """g (float[2,3] x) => (float[2,3] y) {
            a = Identity (x)
            b = Cast <to = 1> (a)
            c = Reshape (b, cshape)
            d = Expand (c, cshape)
            e = Slice (d, cstart, cend)
            y = Relu (e)
        }""",
        cshape=np.array([2, 3]),
        cstart=np.array([0, 0]),
        cend=np.array([2, 9]),
    )
    assert operators(module) == ["relu"]


def test_weights_are_parameters_and_buffers_under_legal_names() -> None:
    module = lowered("g (float[2] x) => (float[2] y) { y = Add (x, w) }", w=floats(2))
    assert isinstance(module.w, torch.nn.Parameter)
    assert not module.w.requires_grad
    graph = Graph.from_onnx(
        onnx.helper.make_model(
            onnx.helper.make_graph(
                [
                    onnx.helper.make_node("Add", ["x", "layer.0/weight"], ["s"]),
                    onnx.helper.make_node("Add", ["s", "layer_0.weight"], ["y"]),
                ],
                "g",
                [onnx.helper.make_tensor_value_info("x", 1, [2])],
                [onnx.helper.make_tensor_value_info("y", 1, [2])],
                [
                    onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "layer.0/weight"),
                    onnx.numpy_helper.from_array(np.array([10, 20], np.float32), "layer_0.weight"),
                ],
            ),
            opset_imports=[onnx.helper.make_opsetid("", 23)],
            ir_version=10,
        )
    )
    (y,) = lower(graph, graph.materialize())(torch.zeros(2))
    assert y.tolist() == [11, 22]


def test_read_only_weights_are_copied_without_a_warning() -> None:
    weight = floats(2)
    weight.flags.writeable = False
    (y,) = lowered("g (float[2] x) => (float[2] y) { y = Add (x, w) }", w=weight)(torch.zeros(2))
    np.testing.assert_array_equal(y, weight)


BLOCK = """g (float[1,3,8,8] x, bool[1] flag) => (float[1,4] y) {
    c = Conv <pads = [1, 1, 1, 1]> (x, w)
    n = BatchNormalization (c, s, b, m, v)
    r = Relu (n)
    p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
    g = GlobalAveragePool (p)
    f = Flatten (g)
    z = Where (flag, f, f)
    k, i = TopK <axis = 1> (z, cone)
    q, t = Split <num_outputs = 2, axis = 1> (z)
    o = Concat <axis = 1> (q, t)
    y = Softmax <axis = -1> (o)
}"""
BLOCK_WEIGHTS = {
    "w": floats(4, 3, 3, 3),
    "s": floats(4),
    "b": floats(4),
    "m": floats(4),
    "v": np.abs(floats(4)),
    "cone": np.array([1]),
}


def test_one_graph_without_breaks() -> None:
    module = lowered(BLOCK, **BLOCK_WEIGHTS)
    arguments = (torch.randn(1, 3, 8, 8), torch.ones(1, dtype=torch.bool))
    torch._dynamo.reset()
    explained = torch._dynamo.explain(module)(*arguments)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    compiled = torch.compile(module, backend="eager", fullgraph=True)(*arguments)
    torch.testing.assert_close(compiled[0], module(*arguments)[0])


def test_every_node_of_the_graph_is_covered() -> None:
    module = lowered(BLOCK, **BLOCK_WEIGHTS)
    calls = [node for node in module.graph.nodes if node.op.startswith("call")]
    assert all(node.meta[NODE_KEY] for node in calls)
    assert Counter(type(name) for node in calls for name in covered_nodes(node)) == {str: len(calls)}


IF = """g (bool cond, float[3] x) => (float[3] y) {
    y = If (cond) <
        then_branch = t () => (float[3] a) { a = Add (x, x) },
        else_branch = e () => (float[3] a) { a = Identity (x) }
    >
}"""


def test_a_condition_of_the_run_becomes_one_graph_with_both_branches() -> None:
    module = lowered(IF)
    x = torch.tensor([1.0, 2.0, 3.0])
    for compiled in (module, torch.compile(module, backend="eager", fullgraph=True)):
        assert compiled(torch.tensor(True), x)[0].tolist() == [2, 4, 6]
        assert compiled(torch.tensor(False), x)[0].tolist() == [1, 2, 3]


def test_branches_of_different_shapes_are_refused() -> None:
    text = IF.replace("a = Identity (x)", "a = Concat <axis = 0> (x, x)").replace("=> (float[3] y)", "=> (float[n] y)")
    with pytest.raises(UnsupportedOp, match=r"If: its branches give different types.*node"):
        lowered(text.replace("e () => (float[3] a)", "e () => (float[6] a)"))


def test_sizes_that_only_the_run_determines_flow_through() -> None:
    module = lowered("g (float[4] x) => (int64[1,n] y) { y = NonZero (x) }")
    assert module(torch.tensor([0.0, 1.0, 0.0, 2.0]))[0].tolist() == [[1, 3]]


def test_an_unbound_graph_is_refused() -> None:
    graph = graph_of("g (float[n] x) => (float[n] y) { y = Relu (x) }")
    with pytest.raises(UnsupportedOp, match="symbolic shape"):
        lower(graph, {})


def test_a_loop_that_data_ends_is_refused() -> None:
    text = """g (int64 m, float[2] x) => (float[2] y) {
        y = Loop (m, , x) <body = b (int64 i, bool go, float[2] s) => (bool more, float[2] t) {
            more = Identity (go)
            t = Add (s, s)
        }>
    }"""
    with pytest.raises(UnsupportedOp, match=r"Loop needs a value that only the run determines \(node"):
        lowered(text)
