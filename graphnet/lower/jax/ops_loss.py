"""JAX rules of losses and random numbers (`seed` absent means 0: XLA's generator has no state of its own)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from graphnet.lower.jax.ops import JAX, jax_dtype
from graphnet.lower.table import Context


@JAX.op("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Classes are axis 1 of `input`; ignored targets count neither in the sum nor in the mean."""
    kept = None if ignore_index is None else target != ignore_index
    place = target if kept is None else jnp.where(kept, target, 0)
    loss = -jnp.squeeze(jnp.take_along_axis(input, place[:, None], 1), 1)
    weights = None if weight is None else weight[place]
    if kept is not None:
        weights = kept.astype(input.dtype) if weights is None else jnp.where(kept, weights, 0)
    loss = loss if weights is None else loss * weights
    if reduction == "none":
        return loss
    if reduction == "sum":
        return jnp.sum(loss)
    return jnp.mean(loss) if weights is None else jnp.sum(loss) / jnp.sum(weights)


@JAX.op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Array, Array]:
    logarithms = jax.nn.log_softmax(scores, 1)
    loss = negative_log_likelihood_loss(logarithms, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss, logarithms


def _key(seed: float | None) -> Array:
    return jax.random.key(int(seed or 0))


def _normal(shape: tuple[int, ...], dtype: Any, mean: float, scale: float, seed: float | None) -> Array:
    return jax.random.normal(_key(seed), shape, dtype) * scale + mean


@JAX.op("RandomNormal")
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: tuple[int, ...]
) -> Array:
    return _normal(shape, jax_dtype(dtype), mean, scale, seed)


@JAX.op("RandomNormalLike")
def random_normal_like(
    input: Array, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Array:
    return _normal(input.shape, input.dtype if dtype is None else jax_dtype(dtype), mean, scale, seed)


@JAX.op("RandomUniform")
def random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: tuple[int, ...]
) -> Array:
    return jax.random.uniform(_key(seed), shape, jax_dtype(dtype), low, high)


@JAX.op("RandomUniformLike")
def random_uniform_like(
    input: Array, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Array:
    return jax.random.uniform(_key(seed), input.shape, input.dtype if dtype is None else jax_dtype(dtype), low, high)


@JAX.op("Bernoulli")
def bernoulli(input: Array, *, dtype: int | None = None, seed: float | None = None, context: Context) -> Array:
    drawn = jax.random.bernoulli(_key(seed), input)
    return drawn.astype(
        jax_dtype(context.type_of(context.node.outputs[0]).dtype) if dtype is None else jax_dtype(dtype)
    )


@JAX.op("Multinomial")
def multinomial(input: Array, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Array:
    """Rows of unnormalised log-probabilities to class numbers [batch, sample_size]."""
    drawn = jax.random.categorical(_key(seed), input[:, None], shape=(input.shape[0], sample_size))
    return drawn.astype(jax_dtype(dtype))
