"""The complete JAX table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower import (
    jax_ops_control,
    jax_ops_image,
    jax_ops_index,
    jax_ops_loss,
    jax_ops_nn,
    jax_ops_norm,
    jax_ops_quant,
    jax_ops_recurrent,
    jax_ops_reduce,
    jax_ops_shape,
    jax_ops_signal,
)
from graphnet.lower.jax_ops import JAX

FAMILIES = (
    jax_ops_control,
    jax_ops_image,
    jax_ops_index,
    jax_ops_loss,
    jax_ops_nn,
    jax_ops_norm,
    jax_ops_quant,
    jax_ops_recurrent,
    jax_ops_reduce,
    jax_ops_shape,
    jax_ops_signal,
)

__all__ = ["FAMILIES", "JAX"]
