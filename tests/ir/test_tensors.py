"""Materialised tensors: golden bytes, distributions against scipy, an independent Philox, exact fills."""

from __future__ import annotations

import hashlib
import time
from math import prod
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphnet.errors import GraphFormatError
from graphnet.ir import tensors
from graphnet.ir.fills import FLOAT_MAX, INTEGER_RANGES, ITEM_BYTES, pack
from graphnet.ir.graph import (
    Constant,
    Dim,
    DType,
    Fill,
    Graph,
    Input,
    Node,
    Normal,
    Uniform,
    Value,
    Values,
    Weight,
)  # fmt: skip
from graphnet.ir.tensors import fill_array, numpy_dtype

DTYPES: tuple[str, ...] = get_args(DType)


def philox(key: int, words: int) -> list[int]:
    """64-bit words of Philox4x64-10 (Salmon et al., SC 2011, section 4.3), in plain integers; counter from 1."""
    mask = 2**64 - 1
    out: list[int] = []
    counter = 1
    while len(out) < words:
        x = [counter & mask, counter >> 64, 0, 0]
        k = [key >> 64, key & mask]
        for _ in range(10):
            first, second = x[0] * 0xD2E7470EE14C6C93, x[2] * 0xCA5A826395121157
            x = [(second >> 64) ^ x[1] ^ k[0], second & mask, (first >> 64) ^ x[3] ^ k[1], first & mask]
            k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
        out += x
        counter += 1
    return out[:words]


def test_random_bits_are_philox() -> None:
    """Uniform int over all 64 bits shows the words themselves; over 32 bits their halves, low half first."""
    key = (7 << 64) + 12345
    words = philox(key, 9)
    full = fill_array(Uniform(low=0, high=2**64 - 1), "uint64", (9,), "w", key)
    assert full.tolist() == words
    halves = fill_array(Uniform(low=0, high=2**32 - 1), "uint32", (17,), "w", key)
    assert halves.tolist() == [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)][:17]


def test_normal_by_plain_arithmetic() -> None:
    """The documented transform with Python numbers: cell, place, one multiplication and one addition in float32."""
    key = 3
    ends = [float(x) for x in tensors.quantiles()]
    expected = []
    for word in philox(key, 32):
        for half in (word & 0xFFFFFFFF, word >> 32):
            cell, place = half >> 20, half & 0xFFFFF
            step = np.float32((ends[cell + 1] - ends[cell]) * 2.0**-20)
            expected.append(np.float32(np.float32(place) * step) + np.float32(ends[cell]))
    assert fill_array(Normal(), "float32", (64,), "w", key).tolist() == [float(x) for x in expected]


def test_quantiles_do_not_depend_on_the_machines_logarithm() -> None:
    """Every double before rounding is so far from a float32 rounding boundary that 64 ulp change nothing."""
    from statistics import NormalDist

    cells = 1 << tensors.CELL_BITS
    for index in range(1, cells // 2):
        exact = NormalDist().inv_cdf(0.5 + index / cells)
        rounded = np.float32(exact)
        assert rounded == tensors.quantiles()[cells // 2 + index]
        middle = (float(rounded) + float(np.nextafter(rounded, np.float32(np.inf if exact > rounded else -np.inf)))) / 2
        assert abs(exact - middle) > 64 * np.spacing(exact)
    np.testing.assert_allclose(tensors.quantiles()[1:-1], stats.norm.ppf(np.arange(1, cells) / cells), rtol=6e-8)
    digest = hashlib.sha256(tensors.quantiles().astype("<f4").tobytes()).hexdigest()
    assert digest == QUANTILES


CASES: list[tuple[str, Fill]] = [
    *((dtype, Normal(mean=0.5, std=2.0)) for dtype in FLOAT_MAX),
    ("float32", Normal(std=0.02, min=-0.03, max=0.01)),
    ("float32", Uniform(low=-1.5, high=2.5)),
    ("float64", Uniform(low=-1.5, high=2.5)),
    ("float16", Uniform(low=0, high=1)),
    *((dtype, Uniform(low=low, high=high)) for dtype, (low, high) in INTEGER_RANGES.items()),
    ("bool", Uniform(low=0, high=1)),
    ("int64", Uniform(low=-5, high=30521)),
    ("int64", Uniform(low=-(2**40), high=2**41)),
]


@pytest.mark.parametrize(
    ("dtype", "fill"), CASES, ids=lambda item: item if isinstance(item, str) else type(item).__name__
)
def test_golden_bytes(dtype: str, fill: Fill) -> None:
    """Stored figures rest on these bits: they may never change."""
    array = fill_array(fill, dtype, (3, 67), "w", key=(42 << 64) + 9)
    assert (array.shape, array.dtype) == ((3, 67), numpy_dtype(dtype))
    index = CASES.index((dtype, fill))
    assert hashlib.sha256(array.tobytes()).hexdigest()[:16] == GOLDEN[index]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_distribution(dtype: str) -> None:
    array = fill_array(Normal(mean=3, std=0.5), dtype, (2_000_000,), "w", key=11)
    assert stats.kstest(array, "norm", (3, 0.5)).pvalue > 0.001
    z = (array.astype(np.float64) - 3) / 0.5
    assert abs(z.mean()) < 0.003
    assert abs(z.std() - 1) < 0.002
    assert abs(stats.kurtosis(z)) < 0.02
    assert np.abs(z).max() < 4
    assert np.corrcoef(z[:-1], z[1:])[0, 1] == pytest.approx(0, abs=0.004)


def test_uniform_distributions() -> None:
    reals = fill_array(Uniform(low=-2, high=6), "float32", (1_000_000,), "w", key=1)
    assert stats.kstest(reals, "uniform", (-2, 8)).pvalue > 0.001
    assert reals.min() >= -2
    assert reals.max() < 6
    whole = fill_array(Uniform(low=-3, high=6), "int64", (1_000_000,), "w", key=2)
    values, counts = np.unique(whole, return_counts=True)
    assert values.tolist() == list(range(-3, 7))
    assert stats.chisquare(counts).pvalue > 0.001


def test_small_integer_tensors_of_every_size_stay_in_range() -> None:
    """Also tensors of 64 and more elements, 0-d ones, and the ends of each dtype."""
    for dtype, (low, high) in INTEGER_RANGES.items():
        for shape in ((), (1,), (64,), (1000,)):
            array = fill_array(Uniform(low=low, high=high), dtype, shape, "w", key=5).astype(object)
            assert all(low <= item <= high for item in array.reshape(-1))
            assert (fill_array(Uniform(low=high, high=high), dtype, shape, "w").astype(object) == high).all()


def test_streams_are_independent_of_seed_neighbours() -> None:
    arrays = [fill_array(Normal(), "float32", (10_000,), "w", key=(seed << 64) + s) for seed in (0, 1) for s in (0, 1)]
    for index, first in enumerate(arrays):
        for second in arrays[:index]:
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.05


@given(st.integers(0, 300_000))
def test_a_shorter_tensor_is_a_prefix(count: int) -> None:
    """So the result cannot depend on how the work is cut into chunks."""
    longest = _longest()
    assert np.array_equal(fill_array(Normal(), "float32", (count,), "w", key=77), longest[:count])


def _longest() -> tensors.Array:
    if not _CACHE:
        _CACHE.append(fill_array(Normal(), "float32", (300_000,), "w", key=77))
    return _CACHE[0]


_CACHE: list[tensors.Array] = []


def small_graph() -> Graph:
    return Graph(
        name="g",
        dims={"n": Dim(min=1, max=9, default=5)},
        inputs=(
            Input(name="ids", dtype="int64", shape=("n", 2), fill=Uniform(low=0, high="n-1")),
            Input(name="x", dtype="float32", shape=("2*n",)),
            Input(name="x2", dtype="float32", shape=("2*n",)),
        ),
        outputs=("y",),
        weights={
            "var": Weight(dtype="float32", shape=(1000,), fill=Normal(mean=0, std=1, min=0.1)),
            "a": Weight(dtype="float32", shape=(8,), fill=Normal()),
            "b": Weight(dtype="float32", shape=(8,), fill=Normal()),
        },
        nodes=(Node(op="Relu", name="r", inputs=("x",), outputs=("y",)),),
        values={"y": Value(dtype="float32", shape=("2*n",))},
    )


def test_weights_and_inputs() -> None:
    graph = small_graph()
    made = tensors.inputs(graph, seed=1)
    assert made["ids"].shape == (5, 2)
    assert set(made["ids"].reshape(-1).tolist()) <= set(range(5))
    assert made["x"].shape == (10,)
    weights = tensors.weights(graph, seed=1)
    assert weights["var"].min() == np.float32(0.1)
    different = [weights["a"], weights["b"], made["x"][:8], made["x2"][:8], tensors.weights(graph, 2)["a"]]
    assert len({array.tobytes() for array in different}) == len(different)
    assert weights["a"].tobytes() == tensors.weights(graph, 1)["a"].tobytes()
    alone = fill_array(graph.weights["b"].fill, "float32", (8,), "b", key=(1 << 64) + 2)
    assert alone.tobytes() == weights["b"].tobytes()


def test_pinned_streams_survive_a_rewrite() -> None:
    graph = small_graph()
    pinned = tensors.pin_streams(graph)
    pinned.validate()
    shuffled = msgspec.structs.replace(
        pinned,
        weights={"new": graph.weights["a"], **dict(reversed(pinned.weights.items()))},
        inputs=pinned.inputs[::-1],
    )
    for make in (tensors.weights, tensors.inputs):
        before = make(graph, 3)
        assert all(np.array_equal(before[name], array) for name, array in make(pinned, 3).items())
        after = make(shuffled, 3)
        assert all(np.array_equal(after[name], array) for name, array in before.items())
    assert tensors.pin_streams(shuffled).weights["a"].stream == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_fills_of_every_dtype(dtype: str) -> None:
    """Values, bytes and constants against arrays that numpy makes from the same numbers."""
    if dtype == "string":
        array = fill_array(Values(data=("a", "", "é")), dtype, (3, 1), "w")
        assert array.tolist() == [["a"], [""], ["é"]]
        return
    numbers: list[Any] = [True, False, True] if dtype == "bool" else [0, 1, 3]
    wanted = np.array(numbers, numpy_dtype(dtype)).reshape(3, 1)
    assert wanted.itemsize == ITEM_BYTES[dtype]
    fills: list[Fill] = [Values(data=tuple(numbers)), pack(wanted.tobytes())]
    for fill in fills:
        array = fill_array(fill, dtype, (3, 1), "w")
        assert array.dtype == wanted.dtype
        assert array.tobytes() == wanted.tobytes()
        assert array.flags.writeable
    same = fill_array(Constant(value=numbers[0]), dtype, (2, 0, 3), "w")
    assert same.shape == (2, 0, 3)
    assert fill_array(Constant(value=numbers[1]), dtype, (), "w").tobytes() == wanted[1].tobytes()


def test_exact_bfloat16() -> None:
    """[[.25, .5], [1, 2]] as bytes and as values."""
    bits = np.array([0x3E80, 0x3F00, 0x3F80, 0x4000], "<u2")
    for fill in (pack(bits.tobytes()), Values(data=(0.25, 0.5, 1, 2))):
        array = fill_array(fill, "bfloat16", (2, 2), "w")
        assert array.astype(np.float64).tolist() == [[0.25, 0.5], [1, 2]]


def test_non_finite_words() -> None:
    array = fill_array(Values(data=("nan", "inf", "-inf", 1)), "float16", (4,), "w")
    np.testing.assert_array_equal(array, np.array([np.nan, np.inf, -np.inf, 1], np.float16))


def test_narrow_floats_saturate() -> None:
    for dtype in ("float16", "float8e4m3fn", "float8e5m2", "float4e2m1"):
        array = fill_array(Normal(std=FLOAT_MAX[dtype]), dtype, (1000,), "w").astype(np.float64)
        assert np.abs(array).max() == FLOAT_MAX[dtype]


def test_errors_name_the_tensor() -> None:
    with pytest.raises(GraphFormatError, match=r"tensor 'w': shape .* has symbols"):
        fill_array(Normal(), "float32", ("n",), "w")
    with pytest.raises(GraphFormatError, match="tensor 'w': 1 elements for shape"):
        fill_array(Values(data=(1,)), "float32", (2,), "w")


def test_a_hundred_million_elements_are_quick() -> None:
    """CPU seconds; 0.7 on one quiet core, the bound leaves room for a busy one. A quarter is made, to spare memory."""
    began = time.process_time()
    array = fill_array(Normal(std=0.02), "float32", (25_000_000,), "w")
    assert time.process_time() - began < 2
    assert prod(array.shape) == 25_000_000


QUANTILES = "94d52fb8e8b5d9664f52c15ceb0b680997006c54a1860a08add16a01ba3a0e22"
GOLDEN = [
    "167592500927c251",
    "b14464655229a98e",
    "db65d5a91e9971b9",
    "e674a5589f766370",
    "13f9cc94655eda3d",
    "95360d16c566aa2d",
    "2450da302b8151ff",
    "23ceda5f9c84e397",
    "f384b44710df589b",
    "2a03b59fb5a4f51c",
    "3e3df9ba09c5152f",
    "1cf8bc9d8fcc3502",
    "01a4f54fe9a43428",
    "fe55f6c05b490cdc",
    "3a1e3cdd4fdd48f9",
    "13da691a1cfed139",
    "18203a75fe0902b0",
    "5bd7623c696a1782",
    "d0dac1c1f9dd4810",
    "63c86dd47d70cced",
    "92bc77e8148142fd",
    "8c52ffe630947e04",
    "7f94542a9d872e35",
    "6521683d0bbf8c59",
    "f11eafd4610488f7",
    "3b2e5d4a47f42a2a",
    "496cf5b2f968f9e0",
    "1b0bde048813521a",
]
