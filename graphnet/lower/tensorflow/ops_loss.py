"""TensorFlow rules of losses and random numbers (`seed` absent means 0: the generators have no state of their own)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower.table import Context
from graphnet.lower.tensorflow.ops import TENSORFLOW, tensorflow_dtype


@TENSORFLOW.op("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Classes are axis 1 of `input`; ignored targets count neither in the sum nor in the mean."""
    kept = None if ignore_index is None else tf.not_equal(target, ignore_index)
    place = target if kept is None else tf.where(kept, target, tf.zeros((), target.dtype))
    last = tf.transpose(input, (0, *range(2, len(input.shape)), 1))
    loss = -tf.gather(last, place, axis=-1, batch_dims=len(target.shape))
    weights = None if weight is None else tf.gather(weight, place)
    if kept is not None:
        mask = tf.cast(kept, input.dtype)
        weights = mask if weights is None else weights * mask
    loss = loss if weights is None else loss * weights
    if reduction == "none":
        return loss
    if reduction == "sum":
        return tf.reduce_sum(loss)
    return tf.reduce_mean(loss) if weights is None else tf.reduce_sum(loss) / tf.reduce_sum(weights)


@TENSORFLOW.op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Tensor, Tensor]:
    logarithms = tf.nn.log_softmax(scores, 1)
    loss = negative_log_likelihood_loss(logarithms, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss, logarithms


def _seed(seed: float | None) -> tuple[int, int]:
    return int(seed or 0), 0


def _normal(shape: tuple[int, ...], dtype: Any, mean: float, scale: float, seed: float | None) -> Tensor:
    return tf.random.stateless_normal(shape, _seed(seed), mean, scale, dtype)


def _uniform(shape: tuple[int, ...], dtype: Any, low: float, high: float, seed: float | None) -> Tensor:
    return tf.random.stateless_uniform(shape, _seed(seed), low, high, dtype)


@TENSORFLOW.op("RandomNormal")
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: tuple[int, ...]
) -> Tensor:
    return _normal(shape, tensorflow_dtype(dtype), mean, scale, seed)


@TENSORFLOW.op("RandomNormalLike")
def random_normal_like(
    input: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    wanted = input.dtype if dtype is None else tensorflow_dtype(dtype)
    return _normal(tuple(input.shape), wanted, mean, scale, seed)


@TENSORFLOW.op("RandomUniform")
def random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: tuple[int, ...]
) -> Tensor:
    return _uniform(shape, tensorflow_dtype(dtype), low, high, seed)


@TENSORFLOW.op("RandomUniformLike")
def random_uniform_like(
    input: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    wanted = input.dtype if dtype is None else tensorflow_dtype(dtype)
    return _uniform(tuple(input.shape), wanted, low, high, seed)


@TENSORFLOW.op("Bernoulli")
def bernoulli(input: Tensor, *, dtype: int | None = None, seed: float | None = None, context: Context) -> Tensor:
    drawn = _uniform(tuple(input.shape), input.dtype, 0, 1, seed) < input
    return tf.cast(drawn, tensorflow_dtype(context.type_of(context.node.outputs[0]).dtype if dtype is None else dtype))


@TENSORFLOW.op("Multinomial")
def multinomial(input: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """Rows of unnormalised log-probabilities to class numbers [batch, sample_size]."""
    return tf.random.stateless_categorical(input, sample_size, _seed(seed), tensorflow_dtype(dtype))
