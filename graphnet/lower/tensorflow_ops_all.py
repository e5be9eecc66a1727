"""The complete TensorFlow table: importing this module registers every family of rules."""

from __future__ import annotations

from graphnet.lower import (
    tensorflow_ops_control,
    tensorflow_ops_image,
    tensorflow_ops_index,
    tensorflow_ops_loss,
    tensorflow_ops_nn,
    tensorflow_ops_norm,
    tensorflow_ops_pool,
    tensorflow_ops_quant,
    tensorflow_ops_recurrent,
    tensorflow_ops_reduce,
    tensorflow_ops_shape,
    tensorflow_ops_signal,
)
from graphnet.lower.tensorflow_ops import TENSORFLOW

FAMILIES = (
    tensorflow_ops_control,
    tensorflow_ops_image,
    tensorflow_ops_index,
    tensorflow_ops_loss,
    tensorflow_ops_nn,
    tensorflow_ops_norm,
    tensorflow_ops_pool,
    tensorflow_ops_quant,
    tensorflow_ops_recurrent,
    tensorflow_ops_reduce,
    tensorflow_ops_shape,
    tensorflow_ops_signal,
)

__all__ = ["FAMILIES", "TENSORFLOW"]
