"""Activation functions of ONNX's recurrent operators: which ones, with which parameters."""

from __future__ import annotations

from typing import NamedTuple

from graphnet.errors import UnsupportedOp

_DEFAULTS: dict[str, tuple[float, ...]] = {
    "relu": (), "tanh": (), "sigmoid": (), "softsign": (), "softplus": (), "affine": (1.0, 0.0), "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5), "elu": (1.0,),
}  # fmt: skip
"""The parameters (alpha, beta) of each function, so many as it has."""


class Activation(NamedTuple):
    """A function's name in lower case and its parameters, 0 where it has none."""

    name: str
    alpha: float
    beta: float


def activations(
    names: tuple[str, ...] | None,
    alphas: tuple[float, ...] | None,
    betas: tuple[float, ...] | None,
    default: tuple[str, ...],
    directions: int,
) -> list[list[Activation]]:
    """Functions for each direction. Parameters are consumed in order by the functions that have any.

    Raises UnsupportedOp.
    """
    alpha, beta = iter(alphas or ()), iter(betas or ())
    found = []
    for name in names or default * directions:
        if name.lower() not in _DEFAULTS:
            raise UnsupportedOp(f"activation {name} is unknown")
        own = _DEFAULTS[name.lower()]
        first = next(alpha, own[0]) if own else 0.0
        second = next(beta, own[1]) if len(own) > 1 else 0.0
        found.append(Activation(name.lower(), first, second))
    size = len(default)
    return [found[i * size : (i + 1) * size] for i in range(directions)]
