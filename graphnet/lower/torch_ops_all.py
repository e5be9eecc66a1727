"""The complete PyTorch table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower import (
    torch_ops_activation,
    torch_ops_control,
    torch_ops_image,
    torch_ops_loss,
    torch_ops_nn,
    torch_ops_norm,
    torch_ops_quant,
    torch_ops_recurrent,
    torch_ops_reduce,
    torch_ops_shape,
    torch_ops_signal,
)
from graphnet.lower.torch_ops import TORCH

FAMILIES = (
    torch_ops_activation,
    torch_ops_control,
    torch_ops_image,
    torch_ops_loss,
    torch_ops_nn,
    torch_ops_norm,
    torch_ops_quant,
    torch_ops_recurrent,
    torch_ops_reduce,
    torch_ops_shape,
    torch_ops_signal,
)

__all__ = ["FAMILIES", "TORCH"]
