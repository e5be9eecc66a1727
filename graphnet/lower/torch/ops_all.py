"""The complete PyTorch table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower.torch import (
    ops_activation,
    ops_control,
    ops_image,
    ops_loss,
    ops_nn,
    ops_norm,
    ops_quant,
    ops_recurrent,
    ops_reduce,
    ops_shape,
    ops_signal,
)
from graphnet.lower.torch.ops import TORCH

FAMILIES = (
    ops_activation,
    ops_control,
    ops_image,
    ops_loss,
    ops_nn,
    ops_norm,
    ops_quant,
    ops_recurrent,
    ops_reduce,
    ops_shape,
    ops_signal,
)

__all__ = ["FAMILIES", "TORCH"]
