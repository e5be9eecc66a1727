"""The lowering tax, counted instead of timed: Inductor makes the same kernels of a model and of its lowered graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch._inductor.utils import run_and_get_code

from graphnet.compilers import Target
from graphnet.compilers.inductor.compiler import Inductor
from graphnet.frontends.registry import timm_model, transformers_model
from graphnet.frontends.torch import capture
from graphnet.lower.torch.graph import lower

CALL = re.compile(r"^\s+(?:\w+ = )?(extern_kernels\.\w+|torch\.ops[\w.]+|cpp_fused)\w*\(", re.MULTILINE)
IMAGE = (torch.randn(1, 3, 64, 64),)
TOKENS = (torch.randint(0, 500, (1, 16)), torch.ones(1, 16, dtype=torch.int64))


class _TextModel(nn.Module):
    def __init__(self, name: str, **config: Any) -> None:
        super().__init__()
        self.model = transformers_model(name, **config)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
        return states


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "resnet": (lambda: timm_model("resnet10t"), IMAGE),
    "mobilenet": (lambda: timm_model("mobilenetv3_small_050"), IMAGE),
    "vit": (lambda: timm_model("vit_tiny_patch16_224", depth=2, img_size=64), IMAGE),
    "bert": (
        lambda: _TextModel("bert", num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128),
        TOKENS,
    ),
    "gpt2": (lambda: _TextModel("gpt2", n_layer=2, n_embd=64, n_head=4), TOKENS),
}


def kernels(model: Callable[..., Any], arguments: tuple[torch.Tensor, ...]) -> Counter[str]:
    """Library calls by name and the number of generated kernels in the code that Inductor writes."""
    torch._dynamo.reset()
    with torch.inference_mode():
        _, (code, *rest) = run_and_get_code(torch.compile(model, fullgraph=True, dynamic=False), *arguments)
    assert not rest
    return Counter(CALL.findall(code[code.index("class Runner") :]))


@pytest.mark.slow
@pytest.mark.parametrize("freezing", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_inductor_makes_the_same_kernels(name: str, freezing: bool) -> None:
    build, arguments = MODELS[name]
    torch.manual_seed(0)
    model = build().eval().requires_grad_(False)
    Inductor().configure(Target(options={"freezing": freezing}))
    graph = capture(model, arguments, name=name, check=False)
    found = kernels(lower(graph, graph.materialize()), arguments)
    expected = kernels(model, arguments)
    assert sum(expected.values()) > 3
    assert found == expected
