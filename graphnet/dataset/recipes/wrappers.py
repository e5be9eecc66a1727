"""Small modules around package models, where a model's own call takes or returns something other than tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import DynamicCache


class CachedStep(nn.Module):
    """One decoding step: new tokens and the key and value of each layer, to logits and the grown keys and values."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, **past: torch.Tensor) -> dict[str, torch.Tensor]:
        """`past` holds `past_key_<layer>` and `past_value_<layer>`, (batch, heads, past, width) each."""
        layers = len(past) // 2
        cache = DynamicCache([(past[f"past_key_{layer}"], past[f"past_value_{layer}"]) for layer in range(layers)])
        result = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        present = {"logits": result.logits}
        for index, layer in enumerate(result.past_key_values.layers):
            present |= {f"key_{index}": layer.keys, f"value_{index}": layer.values}
        return present


class NamedFeatures(nn.Module):
    """A model that takes a dictionary of feature columns, called with the columns by keyword."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **features: torch.Tensor) -> Any:
        """One tensor for each feature."""
        return self.model(features)


def without_weight_norm(module: nn.Module) -> nn.Module:
    """Replace weight-normalised weights by plain parameters of the same shape, in place."""
    for owner in module.modules():
        for name in list(getattr(owner, "parametrizations", {})):
            nn.utils.parametrize.remove_parametrizations(owner, name, leave_parametrized=True)
    return module
