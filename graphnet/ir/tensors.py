"""Arrays from fills: deterministic weights and inputs, the same bit for bit on every machine.

Random bits are those of the counter-based generator Philox4x64-10, keyed by (seed, stream): a tensor is made alone, in
any order. What turns bits into numbers is specified here, and not left to `numpy.random.Generator`, whose methods may
change between versions and call the machine's `exp` and `log`. Only integer operations and single IEEE additions and
multiplications are used, each exactly rounded and so the same everywhere:

* float dtypes of up to 32 bits take 32 bits an element (the low half of a 64-bit word first), float64 takes 64;
* normal: the upper 12 bits choose one of 4,096 cells of equal probability, the rest a place in it. The cells' ends are
  the normal quantiles, rounded to float32; each outermost cell ends where its mean is that of the normal's tail. The
  distribution function differs from the normal's by less than 3e-5, and no sample is beyond 3.9914 standard deviations;
* uniform: the upper 24 (53) bits over 2**24 (2**53), times (high - low), plus low, and below high;
* integers: floor(bits * count / 2**32) + low of 32 bits where there are at most 2**32 integers, else 64 bits modulo
  count, plus low.

A weight's stream is its position in `Graph.weights`, an input's its position plus 2**63, unless `stream`
states another. Random weights of nested graphs are rare; they have stream 0 of seed 0, whatever the graph's seed.

float16, bfloat16, float8 and float4 are rounded (to nearest even) from float32 and saturate at their largest number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import exp, pi, prod, sqrt
from statistics import NormalDist
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from graphnet.errors import GraphFormatError
from graphnet.ir import dims, sidecar
from graphnet.ir.fills import FLOAT_MAX, check_fill, unpack
from graphnet.ir.graph import Bytes, Constant, File, Fill, Graph, Normal, Shape, Uniform, Values

CELL_BITS = 12
INPUT_STREAMS = 2**63
"""Streams of inputs begin here, so that none is that of a weight."""
_CHUNK = 1 << 16
"""Elements made at once, so that temporaries stay in the cache. Even: a chunk takes whole 64-bit words."""

_ML_DTYPES = {
    "bfloat16": ml_dtypes.bfloat16, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn, "string": np.object_,
}  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy dtype of a GraphIR dtype (ml_dtypes for bfloat16, float8, float4 and int4; `string` is object)."""
    found: np.dtype[Any] = np.dtype(_ML_DTYPES.get(dtype, dtype))
    return found


def weights(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """All weights of the outermost graph by name. Raises GraphFormatError (a sidecar that is absent or disagrees)."""
    return {
        name: fill_array(w.fill, w.dtype, w.shape, name, key=_key(seed, w.stream, position))
        for position, (name, w) in enumerate(graph.weights.items())
    }


def completed(graph: Graph, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """All weights of a rewritten graph: those of `tensors`, and exact ones that the rewrite added.

    Raises GraphFormatError.
    """
    return {
        name: tensors[name] if name in tensors else fill_array(w.fill, w.dtype, w.shape, name)
        for name, w in graph.weights.items()
    }


def inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Data for all inputs by name; symbols have their default sizes. Raises GraphBindError, GraphFormatError."""
    sizes = {name: dim.default for name, dim in graph.dims.items()}
    made = {}
    for position, item in enumerate(graph.inputs):
        fill = item.fill
        if isinstance(fill, Uniform) and isinstance(fill.high, str):
            fill = msgspec.structs.replace(fill, high=dims.evaluate(fill.high, sizes))
        key = _key(seed, item.stream, position, INPUT_STREAMS)
        made[item.name] = fill_array(fill, item.dtype, dims.shape_at(item.shape, sizes), item.name, key=key)
    return made


def pin_streams(graph: Graph) -> Graph:
    """The same graph with every weight's and input's stream written down: a rewrite then keeps their data.

    Where two weights would share a stream (one was pinned before), they already share it in the data they get.
    """
    pinned_weights = {
        name: w if w.stream is not None else msgspec.structs.replace(w, stream=position)
        for position, (name, w) in enumerate(graph.weights.items())
    }
    pinned_inputs = tuple(
        item if item.stream is not None else msgspec.structs.replace(item, stream=position)
        for position, item in enumerate(graph.inputs)
    )
    return msgspec.structs.replace(graph, weights=pinned_weights, inputs=pinned_inputs)


def fill_array(fill: Fill, dtype: str, shape: Shape, name: str, key: int = 0) -> Array:
    """One tensor, row-major and writable. `key` is `seed * 2**64 + stream`.

    Raises GraphFormatError (naming the tensor): the fill is illegal for dtype and shape, or its sidecar disagrees.
    """
    static = tuple(dim for dim in shape if isinstance(dim, int))
    if len(static) != len(shape):
        raise GraphFormatError(f"tensor '{name}': shape {list(shape)} has symbols; bind the graph first")
    try:
        if isinstance(fill, Bytes):
            data = bytearray(unpack(fill, dtype, prod(static)))
            return np.frombuffer(data, numpy_dtype(dtype)).reshape(static)
        check_fill(fill, dtype, static, {}, "$")
    except GraphFormatError as error:
        raise GraphFormatError(f"tensor '{name}': {error.cause}", where=error.where) from None
    if isinstance(fill, (Normal, Uniform)):
        return _random(fill, dtype, static, key)
    if isinstance(fill, Constant):
        return np.full(static, _element(fill.value), numpy_dtype(dtype))
    if isinstance(fill, Values):
        return np.array([_element(item) for item in fill.data], numpy_dtype(dtype)).reshape(static)
    return sidecar.read(fill if isinstance(fill, File) else File(), dtype, static, name)


def _key(seed: int, stream: int | None, position: int, first: int = 0) -> int:
    return (seed % 2**64 << 64) + first + (position if stream is None else stream)


def _element(value: object) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") and isinstance(value, str) else value


def _random(fill: Normal | Uniform, dtype: str, shape: tuple[int, ...], key: int) -> Array:
    bits = _Bits(key)
    count = prod(shape)
    if dtype not in FLOAT_MAX:
        return _integers(fill, dtype, count, bits).reshape(shape)
    parts = 2 if dtype.startswith("complex") else 1
    wide = dtype in ("float64", "complex128")
    number: np.dtype[Any] = np.dtype(np.float64 if wide else np.float32)
    narrow = numpy_dtype(dtype) if parts == 1 else number
    out = np.empty(count * parts, narrow)
    limit = number.type(FLOAT_MAX[dtype])
    for chunk, word in bits.chunks(out, 64 if wide else 32):
        samples = _normal(fill, word, number) if isinstance(fill, Normal) else _uniform(fill, word, number)
        if narrow != number:
            np.clip(samples, -limit, limit, out=samples)
        chunk[:] = samples
    return out.view(numpy_dtype(dtype)).reshape(shape)


class _Bits:
    """The words of one Philox stream, chunk by chunk."""

    def __init__(self, key: int) -> None:
        words = np.array([key >> 64, key % 2**64], np.uint64)
        self.generator = np.random.Philox(key=words)

    def chunks(self, out: Array, width: int) -> Iterator[tuple[Array, Array]]:
        """Pieces of `out`, each with as many unsigned words of `width` bits."""
        for start in range(0, out.size, _CHUNK):
            chunk = out[start : start + _CHUNK]
            raw = self.generator.random_raw((chunk.size * width + 63) // 64)
            words = raw if width == 64 else raw.astype("<u8", copy=False).view("<u4")[: chunk.size]
            yield chunk, words


@cache
def quantiles() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Ends of the cells in standard deviations, rising: 4,097 numbers."""
    cells = 1 << CELL_BITS
    upper = [NormalDist().inv_cdf(0.5 + index / cells) for index in range(1, cells // 2)]
    last = upper[-1]
    tail_mean = exp(-last * last / 2) / sqrt(2 * pi) * cells
    upper.append(2 * tail_mean - last)
    half = np.array(upper, np.float32)
    return np.concatenate([-half[::-1], np.zeros(1, np.float32), half])


@cache
def _cells(double: bool) -> tuple[Array, Array]:
    """Start of each cell, and its width over the number of places in it."""
    ends = quantiles().astype(np.float64)
    places = 2.0 ** -((64 if double else 32) - CELL_BITS)
    number = np.float64 if double else np.float32
    return ends[:-1].astype(number), (np.diff(ends) * places).astype(number)


def _normal(fill: Normal, words: Array, number: np.dtype[Any]) -> Array:
    starts, steps = _cells(number == np.float64)
    place_bits = words.dtype.itemsize * 8 - CELL_BITS
    cell = (words >> place_bits).astype(np.intp)
    samples = (words & ((1 << place_bits) - 1)).astype(number)
    samples *= steps.take(cell)
    samples += starts.take(cell)
    if fill.std != 1:
        samples *= number.type(fill.std)
    if fill.mean:
        samples += number.type(fill.mean)
    if fill.min is not None:
        np.maximum(samples, number.type(fill.min), out=samples)
    if fill.max is not None:
        np.minimum(samples, number.type(fill.max), out=samples)
    return samples


def _uniform(fill: Uniform, words: Array, number: np.dtype[Any]) -> Array:
    digits = 53 if number == np.float64 else 24
    low, high = number.type(fill.low), number.type(fill.high)
    samples = (words >> (words.dtype.itemsize * 8 - digits)).astype(number)
    samples *= number.type((float(fill.high) - float(fill.low)) * 2.0**-digits)
    samples += low
    np.minimum(samples, np.nextafter(high, low), out=samples)  # rounding may reach high
    return samples


def _integers(fill: Normal | Uniform, dtype: str, count: int, bits: _Bits) -> Array:
    assert isinstance(fill, Uniform)  # check_fill refuses the others
    low, high = int(fill.low), int(fill.high)
    span = high - low + 1
    out = np.empty(count, numpy_dtype(dtype))
    for chunk, words in bits.chunks(out, 32 if span <= 2**32 else 64):
        if span <= 2**32:
            offset = words.astype(np.uint64) * np.uint64(span) >> np.uint64(32)
        else:
            offset = words if span == 2**64 else words % np.uint64(span)
        offset += np.uint64(low % 2**64)  # modulo 2**64, as two's complement has it
        chunk[:] = offset.view(np.int64) if low < 0 else offset
    return out
