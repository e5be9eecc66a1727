"""The complete JAX table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower import jax_ops_index, jax_ops_nn, jax_ops_norm, jax_ops_reduce, jax_ops_shape
from graphnet.lower.jax_ops import JAX

FAMILIES = (jax_ops_index, jax_ops_nn, jax_ops_norm, jax_ops_reduce, jax_ops_shape)

__all__ = ["FAMILIES", "JAX"]
