"""JAX rules of recurrent layers: one product over the whole input, then a scan over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from graphnet.lower import gates
from graphnet.lower.jax.ops import JAX

Function = Callable[[Array], Array]
States = tuple[Array, ...]
Step = Callable[[Array, States], States]
"""Maps the input's share of the gates at one time, and the states, to the next states; the first is the output."""


@dataclass(frozen=True)
class _Layer:
    """What the three operators share. X is [time, batch, input] here, or [batch, time, input] with `layout` 1."""

    X: Array
    W: Array
    R: Array
    B: Array | None
    lengths: Array | None
    layout: int
    direction: str
    clip: float | None

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def sequence(self) -> Array:
        return jnp.swapaxes(self.X, 0, 1) if self.layout else self.X

    def initial(self, state: Array | None) -> Array:
        """[directions, batch, hidden], zeros where absent."""
        if state is None:
            return jnp.zeros((self.directions, self.sequence.shape[1], self.R.shape[-1]), self.X.dtype)
        return jnp.swapaxes(state, 0, 1) if self.layout else state

    def biases(self, d: int) -> tuple[Array | None, Array | None]:
        """Bias of the input's and of the recurrent product."""
        if self.B is None:
            return None, None
        first, second = jnp.split(self.B[d], 2)
        return first, second

    def clipped(self, x: Array) -> Array:
        return x if self.clip is None else jnp.clip(x, -self.clip, self.clip)

    def run(self, states: States, inputs: Callable[[int], Array], step: Callable[[int], Step]) -> tuple[Array, ...]:
        """Y and the final states; `inputs(d)` is [time, batch, gates] of direction d."""
        outputs, finals = [], []
        for d in range(self.directions):
            backward = self.direction == "reverse" or d == 1
            rows, final = self._scan(tuple(s[d] for s in states), inputs(d), step(d), backward)
            outputs.append(rows)
            finals.append(final)
        Y, last = jnp.stack(outputs, 1), tuple(jnp.stack(column) for column in zip(*finals, strict=True))
        if not self.layout:
            return (Y, *last)
        return (jnp.transpose(Y, (2, 0, 1, 3)), *(jnp.swapaxes(state, 0, 1) for state in last))

    def _scan(self, states: States, inputs: Array, step: Step, backward: bool) -> tuple[Array, States]:
        def advance(current: States, item: tuple[Array, Array]) -> tuple[States, Array]:
            gates, time = item
            following = step(gates, current)
            if self.lengths is None:
                return following, following[0]
            alive = (time < self.lengths)[:, None]
            kept = tuple(jnp.where(alive, new, old) for new, old in zip(following, current, strict=True))
            return kept, jnp.where(alive, following[0], 0)

        final, rows = lax.scan(advance, states, (inputs, jnp.arange(inputs.shape[0])), reverse=backward)
        return rows, final


def _linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """`x @ weight.T + bias`."""
    y = jnp.matmul(x, weight.T)
    return y if bias is None else y + bias


def _function(activation: gates.Activation) -> Function:
    name, a, b = activation
    table: dict[str, Function] = {
        "relu": jax.nn.relu,
        "tanh": jnp.tanh,
        "sigmoid": jax.nn.sigmoid,
        "softsign": jax.nn.soft_sign,
        "softplus": jax.nn.softplus,
        "affine": lambda x: x * a + b,
        "leakyrelu": lambda x: jax.nn.leaky_relu(x, a),
        "thresholdedrelu": lambda x: jnp.where(x > a, x, 0),
        "scaledtanh": lambda x: jnp.tanh(x * b) * a,
        "hardsigmoid": lambda x: jnp.clip(x * a + b, 0, 1),
        "elu": lambda x: jax.nn.elu(x, a),
    }
    return table[name]


def _functions(stated: list[list[gates.Activation]]) -> list[list[Function]]:
    return [[_function(activation) for activation in direction] for direction in stated]


def _joined(layer: _Layer, d: int) -> Array:
    """The input's share of all gates, both biases included."""
    first, second = layer.biases(d)
    bias = None if first is None or second is None else first + second
    return _linear(layer.sequence, layer.W[d], bias)


@JAX.op("RNN")
def rnn(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Array, ...]:
    del hidden_size
    layer = _Layer(X, W, R, B, sequence_lens, layout, direction, clip)
    names = activations[: layer.directions]
    functions = _functions(gates.activations(names, activation_alpha, activation_beta, ("Tanh",), layer.directions))

    def step(d: int) -> Step:
        return lambda x, states: (functions[d][0](layer.clipped(x + jnp.matmul(states[0], R[d].T))),)

    return layer.run((layer.initial(initial_h),), lambda d: _joined(layer, d), step)


@JAX.op("LSTM")
def lstm(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    P: Array | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Array, ...]:
    del hidden_size
    layer = _Layer(X, W, R, B, sequence_lens, layout, direction, clip)
    default = ("Sigmoid", "Tanh", "Tanh")
    functions = _functions(gates.activations(activations, activation_alpha, activation_beta, default, layer.directions))

    def step(d: int) -> Step:
        f, g, h = functions[d]
        peep: Any = (None, None, None) if P is None else jnp.split(P[d], 3)

        def run(x: Array, states: States) -> States:
            old, cell = states
            i, o, forget, c = jnp.split(layer.clipped(x + jnp.matmul(old, R[d].T)), 4, -1)
            i = f(i if P is None else i + peep[0] * cell)
            forget = 1 - i if input_forget else f(forget if P is None else forget + peep[2] * cell)
            cell = forget * cell + i * g(c)
            return f(o if P is None else o + peep[1] * cell) * h(cell), cell

        return run

    return layer.run((layer.initial(initial_h), layer.initial(initial_c)), lambda d: _joined(layer, d), step)


@JAX.op("GRU")
def gru(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Array, ...]:
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

        def run(x: Array, states: States) -> States:
            old = states[0]
            z, r = jnp.split(f(layer.clipped(x[:, : 2 * hidden] + _linear(old, R[d, : 2 * hidden], gates))), 2, -1)
            if linear_before_reset:
                recurrent = r * _linear(old, R[d, 2 * hidden :], new)
            else:
                recurrent = _linear(r * old, R[d, 2 * hidden :], new)
            candidate = g(layer.clipped(x[:, 2 * hidden :] + recurrent))
            return ((1 - z) * candidate + z * old,)

        return run

    inputs = lambda d: _linear(layer.sequence, W[d], layer.biases(d)[0])  # noqa: E731 - one expression, used once
    return layer.run((layer.initial(initial_h),), inputs, step)
