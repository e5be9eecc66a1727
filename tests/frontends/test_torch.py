"""Captured PyTorch modules against the modules themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from graphnet.errors import CaptureError, UsageError
from graphnet.frontends import check, torch_export, torch_inputs
from graphnet.frontends.torch import capture, capture_factory
from graphnet.ir import tensors
from graphnet.ir.graph import Constant, Dim, Graph, Input, Normal, Uniform

BATCH = {"batch": (1, 8)}


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def run(graph: Graph, feed: Mapping[str, torch.Tensor], **sizes: int) -> list[np.ndarray]:
    bound = graph.bind(**sizes)
    return check.run(bound, {name: tensor.numpy() for name, tensor in feed.items()}, tensors.weights(bound, 0))


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(F.relu(self.bn(self.conv(image))).mean(dim=(2, 3)))
        return result


def test_exact_weights_give_the_modules_own_values() -> None:
    torch.manual_seed(3)
    model = Small().eval()
    assert model.bn.running_mean is not None
    model.bn.running_mean.normal_()
    x = torch.randn(2, 3, 8, 8)
    graph = capture(model, (x,), name="small", domain="vision", dims=BATCH, weights="exact")
    (got,) = run(graph, {"image": x}, batch=2)
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert graph.inputs[0].shape == ("batch", 3, 8, 8)
    assert graph.dims["batch"] == Dim(min=1, max=8, default=2)
    assert graph.source.max_error is not None
    assert graph.source.max_error <= 1e-5


def test_batch_normalization_is_kept_and_nothing_is_added() -> None:
    graph = capture(Small(), (torch.randn(2, 3, 8, 8),), name="small", dims=BATCH)
    assert ops(graph)["BatchNormalization"] == 1
    conv = next(node for node in graph.nodes if node.op == "Conv")
    assert len([name for name in conv.inputs if name]) == 2  # no bias in the model, none in the graph
    roles = {name: weight.role for name, weight in graph.weights.items()}
    assert roles["bn.running_var"] == "buffer"
    assert roles["conv.weight"] == "parameter"
    assert graph.parameters == sum(parameter.numel() for parameter in Small().parameters())


def test_batch_sizes_other_than_the_example_agree() -> None:
    torch.manual_seed(0)
    model = Small().eval()
    graph = capture(model, (torch.randn(3, 3, 8, 8),), name="small", dims=BATCH, weights="exact")
    for batch in (1, 2, 5, 8):
        x = torch.randn(batch, 3, 8, 8)
        (got,) = run(graph, {"image": x}, batch=batch)
        np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_statistics_of_parameters_become_their_recipe() -> None:
    model = nn.Linear(64, 64)
    with torch.no_grad():
        model.weight.normal_(0.5, 0.25)
        model.bias.fill_(2.0)
    graph = capture(model, (torch.randn(2, 64),), name="linear")
    fill = graph.weights["weight"].fill
    assert isinstance(fill, Normal)
    assert fill.mean == pytest.approx(0.5, abs=0.02)
    assert fill.std == pytest.approx(0.25, abs=0.02)
    assert graph.weights["bias"].fill == Constant(value=2.0)


def test_integer_inputs_stay_in_the_range_of_the_example() -> None:
    model = nn.Embedding(10, 4)
    ids = torch.tensor([[0, 9, 3], [1, 2, 5]])
    graph = capture(model, (ids,), name="embedding", dims=BATCH, weights="exact")
    assert graph.inputs[0].dtype == "int64"
    assert graph.inputs[0].fill == Uniform(low=0, high=9)
    (got,) = run(graph, {"input": ids}, batch=2)
    np.testing.assert_array_equal(got, model(ids).detach().numpy())


def test_outputs_of_dictionaries_tuples_and_nested_inputs() -> None:
    def function(pair: list[torch.Tensor], scale: float, flag: torch.Tensor | None = None) -> dict[str, Any]:
        return {"sum": pair[0] + pair[1], "rest": (pair[0] * scale, flag)}

    x, y = torch.randn(2, 3), torch.randn(2, 3)
    graph = capture(function, ([x, y], 3.0), name="function")
    assert [item.name for item in graph.inputs] == ["pair_0", "pair_1"]
    assert graph.outputs == ("sum", "rest_0")
    total, scaled = run(graph, {"pair_0": x, "pair_1": y})
    np.testing.assert_allclose(total, (x + y).numpy(), rtol=1e-6)
    np.testing.assert_allclose(scaled, (x * 3).numpy(), rtol=1e-6)


def test_outputs_named_as_inputs_and_outputs_that_are_inputs() -> None:
    def function(x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = x * 2
        return {"x": y, "same": x, "again": y}

    x = torch.randn(2, 3)
    graph = capture(function, (x,), name="function")
    assert graph.outputs == ("x_output", "same", "again")
    for got, want in zip(run(graph, {"x": x}), (x * 2, x, x * 2), strict=True):
        np.testing.assert_array_equal(got, want.numpy())


def test_keyword_arguments_are_inputs_by_name() -> None:
    graph = capture(
        lambda a, *, b: a @ b,
        (torch.randn(2, 3),),
        {"b": torch.randn(3, 4)},
        name="f",
        dims=BATCH,
        axes={"a": {0: "batch"}},
    )
    assert {item.name: item.shape for item in graph.inputs} == {"a": ("batch", 3), "b": (3, 4)}


def test_attention_and_composites_are_kept() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(8)
            self.rms = nn.RMSNorm(8)

        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return F.gelu(self.rms(self.norm(F.scaled_dot_product_attention(q, q, q))))

    graph = capture(Block(), (torch.randn(2, 2, 4, 8),), name="block", dims=BATCH)
    assert ops(graph) == Counter({"Attention": 1, "LayerNormalization": 1, "RMSNormalization": 1, "Gelu": 1})


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: torch.cat(x.split(2, dim=1)[::-1], dim=1), {"Split": 1, "Concat": 1}),
        (lambda x: torch.cat(x.chunk(3, dim=1)[::-1], dim=1), {"Split": 1, "Concat": 1}),
        (lambda x: x.unbind(1)[0] + x.unbind(1)[5], {"Split": 2, "Squeeze": 4, "Add": 1}),
        (lambda x: x[:, torch.tensor([2, 0, -1])], {"Gather": 1}),
    ],
)
def test_splits_and_gathers_are_single_operators(
    function: Callable[[torch.Tensor], torch.Tensor], expected: dict[str, int]
) -> None:
    x = torch.randn(3, 6)
    graph = capture(function, (x,), name="f", dims=BATCH)
    counts = ops(graph)
    assert counts["Split"] == expected.get("Split", 0)
    assert counts["Gather"] == expected.get("Gather", 0)
    assert not {"SplitToSequence", "SequenceAt", "GatherND"} & set(counts)
    (got,) = run(graph, {"x": x}, batch=3)
    np.testing.assert_allclose(got, function(x).numpy(), rtol=1e-6)


def test_transposed_convolution_values() -> None:
    torch.manual_seed(0)
    model = nn.ConvTranspose1d(4, 6, 5, stride=3, padding=1, output_padding=2, groups=2, dilation=2).eval()
    x = torch.randn(2, 4, 7)
    graph = capture(model, (x,), name="up", weights="exact")
    (got,) = run(graph, {"input": x})
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_wrong_export_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    export = torch_export.export

    def wrong(*arguments: Any) -> Any:
        model = export(*arguments)
        for node in model.graph.all_nodes():
            if node.op_type == "Relu":
                node.op_type = "Sigmoid"
        return model

    monkeypatch.setattr(torch_export, "export", wrong)
    with pytest.raises(CaptureError, match=r"small: output 'output' differs from its source by 0\.\d+"):
        capture(Small(), (torch.randn(2, 3, 8, 8),), name="small", dims=BATCH)


class _Masked(nn.Module):
    """The elements that the mask keeps; while `blind`, all of them: no difference on a mask of ones."""

    blind = False

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * (mask * 0 + 1 if self.blind else mask)


def test_a_capture_that_lost_its_mask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, arguments = _Masked(), (torch.randn(2, 4), torch.ones(2, 4, dtype=torch.int64))
    assert capture(model, arguments, name="masked").inputs[1].fill == Constant(value=1)
    export = torch_export.export

    def blind(*rest: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(_Masked, "blind", True)
            return export(*rest)

    monkeypatch.setattr(torch_export, "export", blind)
    with pytest.raises(CaptureError, match="differs from its source by"):
        capture(model, arguments, name="masked")


def test_what_cannot_be_exported_says_why() -> None:
    def data_dependent(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x

    with pytest.raises(CaptureError, match="data-dependent"):
        capture(data_dependent, (torch.randn(2, 2),), name="f")

    def specialised(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 3) * 2

    with pytest.raises(CaptureError, match="batch"):
        capture(specialised, (torch.randn(2, 3),), name="f", dims=BATCH)


def test_wrong_dims_and_axes_are_usage_errors() -> None:
    x = torch.randn(2, 3)
    with pytest.raises(UsageError, match="axes names the input 'y'; the model is called with x"):
        capture(lambda x: x * 2, (x,), name="f", dims=BATCH, axes={"y": {0: "batch"}})
    with pytest.raises(UsageError, match="axis 5 as 'batch'"):
        capture(lambda x: x * 2, (x,), name="f", dims=BATCH, axes={"x": {5: "batch"}})
    with pytest.raises(UsageError, match="0 <= min <= default <= max"):
        capture(lambda x: x * 2, (x,), name="f", dims={"batch": (4, 1)})
    with pytest.raises(UsageError, match="single size 1"):
        capture(lambda x: x * 2, (x,), name="f", dims={"batch": (1, 1)})


def test_the_source_is_left_as_it_was() -> None:
    model = Small().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    capture(model, (torch.randn(2, 3, 8, 8),), name="small")
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(parameter.is_meta for parameter in model.parameters())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, 6)
        self.out = nn.Linear(6, 12, bias=False)
        self.out.weight = self.table.weight
        self.register_buffer("position", torch.arange(4))
        self.offset = nn.Embedding(4, 6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.out(self.table(ids) + self.offset(self.position))
        return result


def test_factories_are_captured_without_weights_and_keep_ties() -> None:
    inputs = (Input(name="ids", dtype="int64", shape=("batch", 4), fill=Uniform(low=0, high=11)),)
    dims = {"batch": Dim(min=1, max=4, default=1)}
    graph = capture_factory(Tied, inputs, name="tied", dims=dims)
    assert {name for name, weight in graph.weights.items() if weight.role == "parameter"} == {
        "table.weight",
        "offset.weight",
    }
    assert graph.parameters == 12 * 6 + 4 * 6
    assert graph.weights["table.weight"].fill == Normal(std=0.4082)
    assert graph.source.capture == "torch.export, weightless"
    again = capture_factory(Tied, inputs, name="tied", dims=dims)
    assert again == graph


def test_recipes_can_be_overridden_by_pattern() -> None:
    inputs = (Input(name="image", dtype="float32", shape=(1, 3, 8, 8)),)
    graph = capture_factory(Small, inputs, name="small", fills={"head.*": Constant(value=0.5)})
    assert graph.weights["head.weight"].fill == Constant(value=0.5)
    assert graph.weights["conv.weight"].fill == Normal(std=0.1925)
    assert graph.weights["bn.running_var"].fill == Uniform(low=0.5, high=1.5)


def test_unchecked_captures_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphnet.frontends.torch.CHECK_LIMIT", 10)
    graph = capture_factory(Small, (Input(name="image", dtype="float32", shape=(1, 3, 8, 8)),), name="small")
    assert graph.source.config["checked"] is False
    assert graph.source.max_error is None


def test_example_data_is_described() -> None:
    assert torch_inputs.example_fill(torch.ones(3, dtype=torch.int64)) == Constant(value=1)
    assert torch_inputs.example_fill(torch.tensor([True, True])) == Constant(value=True)
    assert torch_inputs.example_fill(torch.tensor([2, 7])) == Uniform(low=2, high=7)
    assert torch_inputs.example_fill(torch.linspace(0, 1, 50)) == Uniform(low=0.0, high=1.0)
    bfloat = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert torch.equal(torch_inputs.to_torch(torch_inputs.to_numpy(bfloat)), bfloat)
