"""TensorFlow rules of recurrent layers: one product over the whole input, then a loop over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from graphnet.lower import gates
from graphnet.lower.tensorflow.ops import TENSORFLOW, elu
from graphnet.lower.tensorflow.ops_control import repeated

Function = Callable[[Tensor], Tensor]
States = tuple[Tensor, ...]
Step = Callable[[Tensor, States], States]
"""Maps the input's share of the gates at one time, and the states, to the next states; the first is the output."""


@dataclass(frozen=True)
class _Layer:
    """What the three operators share. X is [time, batch, input] here, or [batch, time, input] with `layout` 1."""

    X: Tensor
    W: Tensor
    R: Tensor
    B: Tensor | None
    lengths: Tensor | None
    layout: int
    direction: str
    clip: float | None

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def sequence(self) -> Tensor:
        return tf.transpose(self.X, (1, 0, 2)) if self.layout else self.X

    def initial(self, state: Tensor | None) -> Tensor:
        """[directions, batch, hidden], zeros where absent."""
        if state is None:
            batch = self.X.shape[0 if self.layout else 1]
            return tf.zeros((self.directions, batch, self.R.shape[-1]), self.X.dtype)
        return tf.transpose(state, (1, 0, 2)) if self.layout else state

    def biases(self, d: int) -> tuple[Tensor | None, Tensor | None]:
        """Bias of the input's and of the recurrent product."""
        if self.B is None:
            return None, None
        first, second = tf.split(self.B[d], 2)
        return first, second

    def clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else tf.clip_by_value(x, -self.clip, self.clip)

    def run(self, states: States, inputs: Callable[[int], Tensor], step: Callable[[int], Step]) -> tuple[Tensor, ...]:
        """Y and the final states; `inputs(d)` is [time, batch, gates] of direction d."""
        outputs, finals = [], []
        for d in range(self.directions):
            backward = self.direction == "reverse" or d == 1
            rows, final = self._scan(tuple(s[d] for s in states), inputs(d), step(d), backward)
            outputs.append(rows)
            finals.append(final)
        Y, last = tf.stack(outputs, 1), tuple(tf.stack(column) for column in zip(*finals, strict=True))
        if not self.layout:
            return (Y, *last)
        return (tf.transpose(Y, (2, 0, 1, 3)), *(tf.transpose(state, (1, 0, 2)) for state in last))

    def _scan(self, states: States, inputs: Tensor, step: Step, backward: bool) -> tuple[Tensor, States]:
        count = inputs.shape[0]

        def advance(index: Tensor, current: States) -> tuple[States, tuple[Tensor]]:
            time = count - 1 - index if backward else index
            following = step(inputs[time], current)
            if self.lengths is None:
                return following, (following[0],)
            alive = (tf.cast(time, self.lengths.dtype) < self.lengths)[:, None]
            kept = tuple(tf.where(alive, new, old) for new, old in zip(following, current, strict=True))
            return kept, (tf.where(alive, following[0], tf.zeros((), following[0].dtype)),)

        *final, rows = repeated(count, states, 1, advance)
        return tf.reverse(rows, [0]) if backward else rows, tuple(final)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`x @ weight.T + bias`."""
    rows = tf.reshape(x, (-1, x.shape[-1]))
    y = tf.reshape(tf.linalg.matmul(rows, weight, transpose_b=True), (*x.shape[:-1], weight.shape[0]))
    return y if bias is None else y + bias


def _function(activation: gates.Activation) -> Function:
    name, a, b = activation
    table: dict[str, Function] = {
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "sigmoid": tf.sigmoid,
        "softsign": tf.nn.softsign,
        "softplus": tf.nn.softplus,
        "affine": lambda x: x * a + b,
        "leakyrelu": lambda x: tf.nn.leaky_relu(x, a),
        "thresholdedrelu": lambda x: tf.where(x > a, x, tf.zeros((), x.dtype)),
        "scaledtanh": lambda x: tf.tanh(x * b) * a,
        "hardsigmoid": lambda x: tf.clip_by_value(x * a + b, 0, 1),
        "elu": lambda x: elu(x, alpha=a),
    }
    return table[name]


def _functions(stated: list[list[gates.Activation]]) -> list[list[Function]]:
    return [[_function(activation) for activation in direction] for direction in stated]


def _joined(layer: _Layer, d: int) -> Tensor:
    """The input's share of all gates, both biases included."""
    first, second = layer.biases(d)
    bias = None if first is None or second is None else first + second
    return _linear(layer.sequence, layer.W[d], bias)


@TENSORFLOW.op("RNN")
def rnn(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    del hidden_size
    layer = _Layer(X, W, R, B, sequence_lens, layout, direction, clip)
    names = activations[: layer.directions]
    functions = _functions(gates.activations(names, activation_alpha, activation_beta, ("Tanh",), layer.directions))

    def step(d: int) -> Step:
        return lambda x, states: (functions[d][0](layer.clipped(x + _linear(states[0], R[d], None))),)

    return layer.run((layer.initial(initial_h),), lambda d: _joined(layer, d), step)


@TENSORFLOW.op("LSTM")
def lstm(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    P: Tensor | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    del hidden_size
    layer = _Layer(X, W, R, B, sequence_lens, layout, direction, clip)
    default = ("Sigmoid", "Tanh", "Tanh")
    functions = _functions(gates.activations(activations, activation_alpha, activation_beta, default, layer.directions))

    def step(d: int) -> Step:
        f, g, h = functions[d]
        peep: Any = (None, None, None) if P is None else tf.split(P[d], 3)

        def run(x: Tensor, states: States) -> States:
            old, cell = states
            i, o, forget, c = tf.split(layer.clipped(x + _linear(old, R[d], None)), 4, -1)
            i = f(i if P is None else i + peep[0] * cell)
            forget = 1 - i if input_forget else f(forget if P is None else forget + peep[2] * cell)
            cell = forget * cell + i * g(c)
            return f(o if P is None else o + peep[1] * cell) * h(cell), cell

        return run

    return layer.run((layer.initial(initial_h), layer.initial(initial_c)), lambda d: _joined(layer, d), step)


@TENSORFLOW.op("GRU")
def gru(
    X: Tensor,
    W: Tensor,
    R: Tensor,
    B: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    del hidden_size
    layer = _Layer(X, W, R, B, sequence_lens, layout, direction, clip)
    functions = _functions(
        gates.activations(activations, activation_alpha, activation_beta, ("Sigmoid", "Tanh"), layer.directions)
    )
    hidden = R.shape[-1]

    def step(d: int) -> Step:
        f, g = functions[d]
        bias = layer.biases(d)[1]
        gates, new = (None, None) if bias is None else (bias[: 2 * hidden], bias[2 * hidden :])

        def run(x: Tensor, states: States) -> States:
            old = states[0]
            z, r = tf.split(f(layer.clipped(x[:, : 2 * hidden] + _linear(old, R[d, : 2 * hidden], gates))), 2, -1)
            if linear_before_reset:
                recurrent = r * _linear(old, R[d, 2 * hidden :], new)
            else:
                recurrent = _linear(r * old, R[d, 2 * hidden :], new)
            candidate = g(layer.clipped(x[:, 2 * hidden :] + recurrent))
            return ((1 - z) * candidate + z * old,)

        return run

    inputs = lambda d: _linear(layer.sequence, W[d], layer.biases(d)[0])  # noqa: E731 - one expression, used once
    return layer.run((layer.initial(initial_h),), inputs, step)
