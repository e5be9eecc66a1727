"""PyTorch rules of recurrent layers: `torch.lstm`, `torch.gru`, `torch.rnn_tanh` where they fit, else step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower import gates
from graphnet.lower.table import Context
from graphnet.lower.torch.ops import TORCH, prearranged

Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Layer:
    """Inputs that the three operators share, with time first: X [time, batch, input]."""

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

    def initial(self, state: Tensor | None) -> Tensor:
        """[directions, batch, hidden], zeros where absent."""
        if state is None:
            return torch.zeros((self.directions, self.X.shape[1], self.R.shape[-1]), dtype=self.X.dtype)
        return state.transpose(0, 1) if self.layout else state

    def outputs(self, Y: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Y [time, directions, batch, hidden] and final states, batch first where the layout says so."""
        if not self.layout:
            return (Y, *states)
        return (Y.permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in states))


def _time_first(X: Tensor, layout: int) -> Tensor:
    return X.transpose(0, 1) if layout else X


def _function(activation: gates.Activation) -> Function:
    name, a, b = activation
    table: dict[str, Function] = {
        "relu": F.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softsign": F.softsign,
        "softplus": F.softplus,
        "affine": lambda x: x * a + b,
        "leakyrelu": lambda x: F.leaky_relu(x, a),
        "thresholdedrelu": lambda x: F.threshold(x, a, 0.0),
        "scaledtanh": lambda x: torch.tanh(x * b) * a,
        "hardsigmoid": lambda x: torch.clamp(x * a + b, 0.0, 1.0),
        "elu": lambda x: F.elu(x, a),
    }
    return table[name]


def _functions(stated: list[list[gates.Activation]]) -> list[list[Function]]:
    return [[_function(activation) for activation in direction] for direction in stated]


def _plain(layer: _Layer, names: tuple[str, ...] | None, default: tuple[str, ...]) -> bool:
    """Whether PyTorch's own layer computes this."""
    standard = (
        not names or tuple(name.lower() for name in names) == tuple(n.lower() for n in default) * layer.directions
    )
    return standard and layer.lengths is None and layer.clip is None and layer.direction != "reverse"


def _native(
    function: Callable[..., tuple[Tensor, ...]], layer: _Layer, state: Any, order: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """Call PyTorch's layer; its gates come in another `order` than ONNX's."""
    weights: list[Tensor] = []
    for d in range(layer.directions):
        weights += [prearranged(_rows(order, d), layer.W), prearranged(_rows(order, d), layer.R)]
        if layer.B is not None:
            weights += [prearranged(_rows(order, d, half=h), layer.B) for h in (0, 1)]
    has_bias = layer.B is not None
    output, *finals = function(layer.X, state, weights, has_bias, 1, 0.0, False, layer.directions == 2, False)
    length, batch, _ = output.shape
    Y = output.reshape(length, batch, layer.directions, -1).transpose(1, 2)
    return layer.outputs(Y, *finals)


def _rows(order: tuple[int, ...], direction: int, half: int | None = None) -> Callable[[Tensor], Tensor]:
    """Take one direction of W, R or B (whose input and recurrent halves are joined) with its gates reordered."""

    def arrange(tensor: Tensor) -> Tensor:
        taken = tensor[direction] if half is None else tensor[direction].chunk(2)[half]
        gates = taken.chunk(len(order))
        return torch.cat([gates[i] for i in order])

    return arrange


def _stepwise(layer: _Layer, states: tuple[Tensor, ...], steps: list[Step]) -> tuple[Tensor, ...]:
    """Unroll over time; `steps[d]` maps (x_t, states) to the next states, of which the first is the output."""
    outputs, finals = [], []
    times = range(layer.X.shape[0])
    for d, step in enumerate(steps):
        current = tuple(state[d] for state in states)
        rows: dict[int, Tensor] = {}
        backward = layer.direction == "reverse" or d == 1
        for t in reversed(times) if backward else times:
            following = step(layer.X[t], current)
            row = following[0]
            if layer.lengths is not None:
                alive = (layer.lengths > t).unsqueeze(-1)
                following = tuple(torch.where(alive, new, old) for new, old in zip(following, current, strict=True))
                row = torch.where(alive, row, 0.0)
            current, rows[t] = following, row
        outputs.append(torch.stack([rows[t] for t in times]))
        finals.append(current)
    return layer.outputs(torch.stack(outputs, 1), *(torch.stack(column) for column in zip(*finals, strict=True)))


def _gates(layer: _Layer, d: int, x: Tensor, h: Tensor) -> Tensor:
    bias = None if layer.B is None else sum(layer.B[d].chunk(2))
    return _clip(F.linear(x, layer.W[d], bias) + F.linear(h, layer.R[d]), layer.clip)  # type: ignore[arg-type]


def _clip(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else torch.clamp(x, -limit, limit)


@TORCH.op("RNN")
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
    layer = _Layer(_time_first(X, layout), W, R, B, sequence_lens, layout, direction, clip)
    names = activations[: layer.directions]
    if _plain(layer, names, ("Tanh",)):
        return _native(torch.rnn_tanh, layer, layer.initial(initial_h), (0,))
    functions = _functions(gates.activations(names, activation_alpha, activation_beta, ("Tanh",), layer.directions))

    def step(d: int) -> Step:
        return lambda x, states: (functions[d][0](_gates(layer, d, x, states[0])),)

    return _stepwise(layer, (layer.initial(initial_h),), [step(d) for d in range(layer.directions)])


@TORCH.op("LSTM")
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
    layer = _Layer(_time_first(X, layout), W, R, B, sequence_lens, layout, direction, clip)
    state = (layer.initial(initial_h), layer.initial(initial_c))
    default = ("Sigmoid", "Tanh", "Tanh")
    if _plain(layer, activations, default) and P is None and not input_forget:
        return _native(torch.lstm, layer, state, (0, 2, 3, 1))
    functions = _functions(gates.activations(activations, activation_alpha, activation_beta, default, layer.directions))

    def step(d: int) -> Step:
        f, g, h = functions[d]
        peep_i, peep_o, peep_f = P[d].chunk(3) if P is not None else (None, None, None)

        def run(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            cell = states[1]
            i, o, forget, c = _gates(layer, d, x, states[0]).chunk(4, -1)
            i = f(i if peep_i is None else i + peep_i * cell)
            forget = 1.0 - i if input_forget else f(forget if peep_f is None else forget + peep_f * cell)
            cell = forget * cell + i * g(c)
            return f(o if peep_o is None else o + peep_o * cell) * h(cell), cell

        return run

    return _stepwise(layer, state, [step(d) for d in range(layer.directions)])


@TORCH.op("GRU")
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
    context: Context,
) -> tuple[Tensor, ...]:
    del hidden_size, context
    layer = _Layer(_time_first(X, layout), W, R, B, sequence_lens, layout, direction, clip)
    default = ("Sigmoid", "Tanh")
    if _plain(layer, activations, default) and linear_before_reset:
        return _native(torch.gru, layer, layer.initial(initial_h), (1, 0, 2))
    functions = _functions(gates.activations(activations, activation_alpha, activation_beta, default, layer.directions))

    def step(d: int) -> Step:
        f, g = functions[d]
        w_gates, w_new = W[d].split((2 * R.shape[-1], R.shape[-1]))
        r_gates, r_new = R[d].split((2 * R.shape[-1], R.shape[-1]))
        wb_gates, wb_new, rb_gates, rb_new = _gru_bias(B, d, R.shape[-1])

        def run(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            old = states[0]
            joint = F.linear(x, w_gates, wb_gates) + F.linear(old, r_gates, rb_gates)
            z, r = f(_clip(joint, clip)).chunk(2, -1)
            recurrent = r * F.linear(old, r_new, rb_new) if linear_before_reset else F.linear(r * old, r_new, rb_new)
            new = g(_clip(F.linear(x, w_new, wb_new) + recurrent, clip))
            return ((1.0 - z) * new + z * old,)

        return run

    return _stepwise(layer, (layer.initial(initial_h),), [step(d) for d in range(layer.directions)])


def _gru_bias(B: Tensor | None, d: int, hidden: int) -> tuple[Tensor | None, ...]:
    if B is None:
        return None, None, None, None
    return tuple(B[d].split((2 * hidden, hidden, 2 * hidden, hidden)))
