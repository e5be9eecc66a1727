from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from graphnet.lower.jax.layout import arrange
from graphnet.lower.jax.layout_rules import axis_groups, places

X = np.random.default_rng(0).standard_normal((2, 8, 6, 5), np.float32)
PARAMS = {
    "kernel": np.random.default_rng(1).standard_normal((8, 8, 3, 3), np.float32),
    "depthwise": np.random.default_rng(2).standard_normal((8, 1, 3, 3), np.float32),
    "vector": np.random.default_rng(3).standard_normal(8, np.float32),
    "matrix": np.random.default_rng(4).standard_normal((4, 240), np.float32),
}
Params = dict[str, Any]


def conv(p: Params, x: Any, name: str = "kernel") -> Any:
    return lax.conv_general_dilated(x, p[name], (1, 1), "SAME", feature_group_count=8 if name == "depthwise" else 1)


def channel(v: Any) -> Any:
    return v.reshape(-1, 1, 1)


def residual(p: Params, x: Any) -> Any:
    y = jax.nn.relu(conv(p, x) * channel(p["vector"]) + channel(p["vector"]))
    return jax.nn.gelu(conv(p, y) + x)


def pools(p: Params, x: Any) -> Any:
    y = conv(p, x)
    pads = [(0, 0), (0, 0), (1, 1), (0, 1)]
    top = lax.reduce_window(y, np.float32(-np.inf), lax.max, (1, 1, 3, 2), (1, 1, 2, 1), pads)
    total = lax.reduce_window(y, np.float32(0), lax.add, (1, 1, 2, 2), (1, 1, 2, 1), "VALID")
    return top.mean((2, 3), keepdims=True), total.max((1, 3)), jnp.sum(y, 1)


def group_norm(p: Params, x: Any) -> Any:
    y = conv(p, x)
    split = y.reshape(2, 4, 2, 6, 5)
    mean, var = split.mean((2, 3, 4), keepdims=True), split.var((2, 3, 4), keepdims=True)
    return ((split - mean) * lax.rsqrt(var + 1e-5)).reshape(y.shape) * channel(p["vector"])


def moves(p: Params, x: Any) -> Any:
    y = conv(p, x)
    padded = jnp.pad(y, [(0, 0), (1, 0), (0, 2), (3, 1)])
    joined = jnp.concatenate([y, jnp.flip(y, (1, 3)), jnp.zeros_like(y)], 1)
    return padded, joined, y[:, 2:7, ::2, 1:], *jnp.split(y, [3, 5], 1), jnp.squeeze(y[:, :1], 1)


def attention(p: Params, x: Any) -> Any:
    y = conv(p, x).reshape(2, 8, 30).swapaxes(1, 2)
    weights = jax.nn.softmax(jnp.einsum("bic,bjc->bij", y, y), -1)
    return conv(p, jnp.einsum("bij,bjc->bic", weights, y).swapaxes(1, 2).reshape(2, 8, 6, 5))


def classifier(p: Params, x: Any) -> Any:
    return conv(p, x).reshape(2, -1) @ p["matrix"].T


def one_by_one(p: Params, x: Any) -> Any:
    y = conv(p, x).mean((2, 3), keepdims=True)
    scale = jax.nn.sigmoid(y * channel(p["vector"]))
    return conv(p, x) * scale, y.reshape(2, 8)


def upsample(p: Params, x: Any) -> Any:
    y = conv(p, x)
    index = np.arange(12) // 2
    return jnp.take(y, index, axis=2), y[:, :, index], y[:, index % 8, index % 6]


def upsample_by_two(p: Params, x: Any) -> Any:
    y = jnp.broadcast_to(conv(p, x)[:, :, :, None, :, None], (2, 8, 6, 2, 5, 2)).reshape(2, 8, 12, 10)
    return conv(p, y)


def along_channels(p: Params, x: Any) -> Any:
    y = conv(p, x)
    return (
        jax.nn.softmax(y, 1),
        jnp.argmax(y, 1),
        jnp.cumsum(y, 1),
        jnp.sort(y, 1),
        jnp.einsum("nchw,cd->ndhw", y, y[0, :, 0]),
    )


def control(p: Params, x: Any) -> Any:
    y = conv(p, x)
    y = lax.cond(y.sum() > 0, lambda v: v + 1, lambda v: v - 1, y)
    return lax.fori_loop(0, 3, lambda i, v: conv(p, v) * 0.1 + i, y)


def channels_last_block(p: Params, x: Any) -> Any:
    """As ConvNeXt and Swin have it: layer normalisation and matrices between two transposes."""
    y = conv(p, x, "depthwise").transpose(0, 2, 3, 1)
    y = jax.nn.gelu((y - y.mean(-1, keepdims=True)) * p["vector"])
    return conv(p, x + y.transpose(0, 3, 1, 2))


def select(p: Params, x: Any) -> Any:
    y = conv(p, x)
    return jnp.where(y > 0, y, -1.0), jnp.where(channel(p["vector"]) > 0, y, x), jnp.clip(y, -1, 1).astype(jnp.int8)


FUNCTIONS = [
    residual, pools, group_norm, moves, attention, classifier, one_by_one, upsample, upsample_by_two, along_channels,
    control, channels_last_block, select,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_arranged_function_equals_the_original(function: Callable[..., Any]) -> None:
    arranged, params = arrange(lambda p, x: tuple(jax.tree.leaves(function(p, x))), PARAMS, [jax.typeof(X)])
    with jax.default_matmul_precision("highest"):
        expected = jax.tree.leaves(jax.jit(function)(PARAMS, X))
        actual = jax.jit(arranged)(params, X)
    assert len(expected) == len(actual)
    for a, b in zip(expected, actual, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=2e-4, atol=2e-4)


def transposes(function: Callable[..., Any], rank: int) -> int:
    arranged, params = arrange(function, PARAMS, [jax.typeof(X)])
    equations = jax.make_jaxpr(arranged)(params, X).jaxpr.eqns
    return sum(e.primitive is lax.transpose_p and len(e.outvars[0].aval.shape) == rank for e in equations)


@pytest.mark.parametrize(
    "function", [residual, group_norm, upsample_by_two, channels_last_block], ids=lambda f: f.__name__
)
def test_only_input_and_output_are_transposed(function: Callable[..., Any]) -> None:
    # The input is asked for twice: by a convolution and by the residual connection.
    assert transposes(lambda p, x: (function(p, x),), 4) <= 3


def test_kernels_and_transposed_matrices_are_laid_out_when_loaded() -> None:
    _, params = arrange(lambda p, x: (classifier(p, x),), PARAMS, [jax.typeof(X)])
    np.testing.assert_array_equal(params["kernel"], PARAMS["kernel"].transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(params["matrix"], PARAMS["matrix"].T)
    np.testing.assert_array_equal(params["vector"], PARAMS["vector"])
    assert params["kernel"].flags.c_contiguous


def test_a_kernel_with_another_reader_keeps_its_order() -> None:
    arranged, params = arrange(lambda p, x: (conv(p, x), p["kernel"]), PARAMS, [jax.typeof(X)])
    np.testing.assert_array_equal(params["kernel"], PARAMS["kernel"])
    np.testing.assert_array_equal(arranged(params, X)[1], PARAMS["kernel"])


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rank: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 4, *(5, 6, 7)[:rank])).astype(np.float32)
    kernel = {"kernel": rng.standard_normal((6, 2, *(3,) * rank)).astype(np.float32)}

    def function(p: Params, x: Any) -> tuple[Any]:
        dilation = (2,) * rank
        y = lax.conv_general_dilated(
            x, p["kernel"], (1,) * rank, [(1, 2)] * rank, lhs_dilation=dilation, feature_group_count=2
        )
        return (y,)

    arranged, params = arrange(function, kernel, [jax.typeof(x)])
    assert params["kernel"].shape == (*(3,) * rank, 2, 6)
    np.testing.assert_allclose(arranged(params, x)[0], function(kernel, x)[0], rtol=1e-4, atol=1e-4)


def test_scopes_survive() -> None:
    def function(p: Params, x: Any) -> tuple[Any]:
        with jax.named_scope("node7_act"):
            return (jax.nn.silu(conv(p, x)),)

    arranged, params = arrange(function, PARAMS, [jax.typeof(X)])
    text = jax.jit(arranged).lower(params, X).compile().as_text()
    assert text is not None
    assert "node7_act" in text


@pytest.mark.parametrize(
    ("old", "new", "groups"),
    [
        ((2, 8, 6), (2, 4, 2, 6), [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]),
        ((2, 3, 4), (6, 4), [((0, 1), (0,)), ((2,), (1,))]),
        ((6, 4), (4, 6), [((0, 1), (0, 1))]),
        ((1, 5, 1, 1), (1, 5), [((0,), (0,)), ((1,), (1,)), ((2,), ()), ((3,), ())]),
        ((5,), (1, 5), [((), (0,)), ((0,), (1,))]),
        ((0, 3), (3, 0), None),
    ],
)
def test_axis_groups(old: tuple[int, ...], new: tuple[int, ...], groups: Any) -> None:
    found = axis_groups(old, new)
    if groups is None or old != (5,):
        assert found == groups
    else:
        assert found is not None
        assert [axis for group in found for axis in group[1]] == [0, 1]


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_reshape_of_any_order(data: st.DataObject) -> None:
    """A value in another order, reshaped, split over or merged: the logical result never changes."""
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=3, max_size=4))
    factors = [f for n in shape for f in ((2, 2) if n == 4 else (n,))]
    cuts = data.draw(st.lists(st.booleans(), min_size=len(factors), max_size=len(factors)))
    target: list[int] = []
    for factor, cut in zip(factors, cuts, strict=True):
        target = [*target, factor] if cut or not target else [*target[:-1], target[-1] * factor]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    kernel = {"kernel": np.ones((shape[1], 1, *(1,) * (len(shape) - 2)), np.float32)}

    def function(p: Params, x: Any) -> tuple[Any]:
        y = lax.conv_general_dilated(x, p["kernel"], (1,) * (x.ndim - 2), "VALID", feature_group_count=x.shape[1])
        return (y.reshape(target),)

    arranged, params = arrange(function, kernel, [jax.typeof(x)])
    np.testing.assert_array_equal(arranged(params, x)[0], x.reshape(target))


def test_places_is_the_inverse_permutation() -> None:
    for order in itertools.permutations(range(4)):
        assert tuple(order[place] for place in places(order)) == (0, 1, 2, 3)
