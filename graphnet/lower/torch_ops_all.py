"""The complete PyTorch table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower import torch_ops_nn, torch_ops_norm, torch_ops_reduce, torch_ops_shape
from graphnet.lower.torch_ops import TORCH

FAMILIES = (torch_ops_nn, torch_ops_norm, torch_ops_reduce, torch_ops_shape)

__all__ = ["FAMILIES", "TORCH"]
