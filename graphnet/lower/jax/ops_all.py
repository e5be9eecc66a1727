"""The complete JAX table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower.jax import (
    ops_control,
    ops_image,
    ops_index,
    ops_loss,
    ops_nn,
    ops_norm,
    ops_quant,
    ops_recurrent,
    ops_reduce,
    ops_shape,
    ops_signal,
)
from graphnet.lower.jax.ops import JAX

FAMILIES = (
    ops_control,
    ops_image,
    ops_index,
    ops_loss,
    ops_nn,
    ops_norm,
    ops_quant,
    ops_recurrent,
    ops_reduce,
    ops_shape,
    ops_signal,
)

__all__ = ["FAMILIES", "JAX"]
