"""Sources by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet.errors import CaptureError, UsageError
from graphnet.frontends import registry
from graphnet.ir.graph import Constant, Uniform

FACTORY = """
import torch

def ready():
    return torch.nn.Linear(3, 2), (torch.ones(2, 3),)

def bad():
    return torch.nn.Linear(3, 2)
"""


@pytest.mark.parametrize("source", ["resnet50", "timm:", ":x", ""])
def test_a_name_without_scheme_lists_what_is_legal(source: str) -> None:
    with pytest.raises(UsageError, match=r"use timm:NAME, transformers:TYPE, .* \.onnx file"):
        registry.capture_source(source)


def test_unknown_models_and_packages_are_named() -> None:
    with pytest.raises(UsageError, match="timm has no model 'resnet5x'"):
        registry.timm_model("resnet5x")
    with pytest.raises(UsageError, match="no model type or model class 'NoSuchModel'"):
        registry.transformers_model("NoSuchModel")
    with pytest.raises(UsageError, match="package 'no_such_package' is not installed"):
        registry.capture_source("no_such_package:factory")


def test_a_timm_entry_has_the_resolution_of_its_configuration() -> None:
    entry = registry.timm_entry("inception_v3")
    assert entry.inputs[0].shape == ("batch", 3, 299, 299)
    assert entry.domain == "vision"
    assert entry.source.license == "Apache-2.0"
    assert entry.source.package.startswith("timm ")


@pytest.mark.parametrize(
    ("name", "domain", "shapes"),
    [
        ("bert", "transformer", {"input_ids": ("batch", 128), "attention_mask": ("batch", 128)}),
        ("vit", "vision", {"pixel_values": ("batch", 3, 224, 224)}),
        ("hubert", "audio", {"input_values": ("batch", 16000)}),
    ],
)
def test_transformers_inputs_follow_the_modality(name: str, domain: str, shapes: dict[str, Any]) -> None:
    entry = registry.transformers_entry(name)
    assert entry.domain == domain
    assert {item.name: item.shape for item in entry.inputs} == shapes


def test_token_ids_stay_inside_the_vocabulary_and_masks_are_ones() -> None:
    ids, mask = registry.transformers_entry("distilbert").inputs
    assert ids.fill == Uniform(low=0, high=30521)
    assert mask.fill == Constant(value=1)


def test_a_model_of_other_inputs_is_refused_with_advice() -> None:
    class Odd:
        config = None

        def forward(self, graph: object) -> None: ...

    with pytest.raises(CaptureError, match="Odd takes graph: no input builder"):
        registry.modality_inputs(Odd())


def test_a_small_timm_model_is_captured_whole() -> None:
    graph = registry.capture_source("timm:test_resnet", batch=2)
    assert graph.dims["batch"].default == 2
    assert graph.operator_distribution["batch_normalization"] > 0
    assert graph.source.max_error is not None


def test_a_users_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(tmp_path, "own_models_for_test.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    graph = registry.capture_source("own_models_for_test:ready")
    assert graph.operator_distribution == {"matmul": 1}
    assert graph.source.package == "own_models_for_test"
    with pytest.raises(UsageError, match=r"bad must return \(model, args\)"):
        registry.capture_source("own_models_for_test:bad")
    with pytest.raises(UsageError, match="no callable 'absent'"):
        registry.capture_source("own_models_for_test:absent")
