"""Which fills are legal for which dtype and shape, and the exact elements that `bytes` fills hold."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from math import prod
from typing import get_args

from graphnet.errors import GraphBindError, GraphFormatError
from graphnet.ir import dims
from graphnet.ir.graph import Bytes, Constant, DType, File, Fill, Normal, Uniform, Values
from graphnet.ir.limits import max_bytes, too_big
from graphnet.ir.sidecar import NAMES

DTYPES: frozenset[str] = frozenset(get_args(DType))
INTEGER_RANGES: Mapping[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (4, 8, 16, 32, 64)},
}
"""Smallest and largest element of the integer dtypes."""
FLOAT_MAX: Mapping[str, float] = {
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
    "complex64": (2 - 2**-23) * 2.0**127,
    "complex128": (2 - 2**-52) * 2.0**1023,
    "float8e4m3fn": 448.0,
    "float8e4m3fnuz": 240.0,
    "float8e5m2": 57344.0,
    "float8e5m2fnuz": 57344.0,
    "float4e2m1": 6.0,
}
"""Largest finite element of the floating dtypes (of each part of the complex ones)."""
ITEM_BYTES: Mapping[str, int] = {
    "bool": 1, "int4": 1, "uint4": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "float4e2m1": 1, "float8e4m3fn": 1, "float8e4m3fnuz": 1, "float8e5m2": 1,
    "float8e5m2fnuz": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Bytes of one element in a `bytes` fill and in memory (4-bit elements take one byte each)."""
FOUR_BIT = ("int4", "uint4", "float4e2m1")
_FEED, _PIECE = 1 << 16, 1 << 20
"""Bytes that go into and come out of the decompressor at once."""
_NONFINITE = ("nan", "inf", "-inf")
_LACKS_INFINITY = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1")


def check_fill(fill: Fill, dtype: str, shape: tuple[int, ...] | None, sizes: Mapping[str, int], where: str) -> None:
    """Raise GraphFormatError where `fill` is not legal for `dtype` and `shape` (None when it is symbolic).

    `sizes` are the default sizes of the symbols that `Uniform.high` may name.
    """
    if isinstance(fill, Normal):
        _check_normal(fill, dtype, where)
    elif isinstance(fill, Uniform):
        _check_uniform(fill, dtype, sizes, where)
    elif isinstance(fill, Constant):
        if dtype == "string":
            raise GraphFormatError("a string tensor takes fill 'values' only", where=where)
        check_elements((fill.value,), dtype, f"{where}.value")
    elif isinstance(fill, File):
        if dtype not in NAMES:
            raise GraphFormatError(f"dtype {dtype} cannot be in a safetensors file: use fill 'bytes'", where=where)
    elif shape is None:
        raise GraphFormatError("exact elements need a shape without symbols", where=where)
    elif isinstance(fill, Values):
        if len(fill.data) != prod(shape):
            raise GraphFormatError(
                f"{len(fill.data)} elements for shape {list(shape)}, which holds {prod(shape)}", where=f"{where}.data"
            )
        check_elements(fill.data, dtype, f"{where}.data")
    elif isinstance(fill, Bytes):
        for _ in _pieces(fill, dtype, prod(shape), where):
            pass
    else:
        raise GraphFormatError(f"unknown fill {type(fill).__name__}", where=where)


def unpack(fill: Bytes, dtype: str, count: int, where: str = "$") -> bytes:
    """The exact bytes of `count` elements, checked; never more memory than they need. Raises GraphFormatError."""
    return b"".join(_pieces(fill, dtype, count, where))


def _pieces(fill: Bytes, dtype: str, count: int, where: str) -> Iterator[bytes]:
    """The checked bytes of `count` elements, piece by piece."""
    if dtype not in ITEM_BYTES:
        raise GraphFormatError(f"dtype {dtype} cannot have fill 'bytes'", where=where)
    expected = count * ITEM_BYTES[dtype]
    if expected > max_bytes():
        raise GraphFormatError(too_big("tensor", max_bytes()), where=f"{where}.data")
    found, stream = 0, zlib.decompressobj()
    try:
        packed = memoryview(base64.b64decode(fill.data, validate=True))
        start, rest = 0, b""
        while found <= expected and not stream.eof and (rest or start < len(packed)):
            piece = stream.decompress(rest or packed[start : start + _FEED], _PIECE)
            start += 0 if rest else _FEED
            rest = stream.unconsumed_tail
            found += len(piece)
            _check_piece(piece, dtype, f"{where}.data")
            yield piece
    except (ValueError, zlib.error) as error:
        raise GraphFormatError(f"not base64 of zlib data: {error}", where=f"{where}.data") from None
    if found != expected or not stream.eof or stream.unused_data or start < len(packed):
        amount = "more than" if found > expected else "other data than" if found == expected else f"{found}, not"
        raise GraphFormatError(f"holds {amount} the {expected} bytes of {count} {dtype}", where=f"{where}.data")


def _check_piece(data: bytes, dtype: str, where: str) -> None:
    if dtype == "bool" and data.translate(None, b"\0\1"):
        raise GraphFormatError("a bool is one byte, 0 or 1", where=where)
    if dtype in FOUR_BIT and data.translate(None, bytes(range(16))):
        raise GraphFormatError("a 4-bit element is one byte, 0 to 15", where=where)


def pack(data: bytes) -> Bytes:
    """The `bytes` fill of row-major little-endian elements. Equal bytes give equal fills."""
    return Bytes(data=base64.b64encode(zlib.compress(data, 9)).decode())


def check_elements(data: tuple[object, ...], dtype: str, where: str) -> None:
    """Raise GraphFormatError where readable elements are not all of `dtype` and in its range."""
    kinds = set(map(type, data))
    if dtype == "bool":
        _require_kinds(kinds, {bool}, dtype, where)
    elif dtype == "string":
        _require_kinds(kinds, {str}, dtype, where)
        if not all(_encodable(item) for item in data):
            raise GraphFormatError("a string has lone surrogates", where=where)
    elif dtype in INTEGER_RANGES:
        _require_kinds(kinds, {int}, dtype, where)
        low, high = INTEGER_RANGES[dtype]
        if data and not (low <= min(data) and max(data) <= high):  # type: ignore[type-var, operator]
            bad = next(item for item in data if not low <= item <= high)  # type: ignore[operator]
            raise GraphFormatError(f"{bad} is outside {dtype}, which is {low} to {high}", where=where)
    else:
        _check_floats(data, kinds, dtype, where)


def _check_floats(data: tuple[object, ...], kinds: set[type], dtype: str, where: str) -> None:
    _require_kinds(kinds, {int, float, str}, dtype, where)
    limit = FLOAT_MAX[dtype]
    for item in data:
        if isinstance(item, str):
            if item not in _NONFINITE:
                raise GraphFormatError(f"'{item[:40]}' is no number; legal words are nan, inf, -inf", where=where)
            if dtype == "float4e2m1" or (dtype in _LACKS_INFINITY and item != "nan"):
                raise GraphFormatError(f"{dtype} has no {item}", where=where)
        elif not abs(item) <= limit:  # type: ignore[arg-type]
            raise GraphFormatError(f"{item} is outside {dtype}, whose largest number is {limit}", where=where)


def _require_kinds(kinds: set[type], legal: set[type], dtype: str, where: str) -> None:
    wrong = kinds - legal
    if wrong:
        names = ", ".join(sorted(kind.__name__ for kind in wrong))
        raise GraphFormatError(f"elements of type {names} in a {dtype} tensor", where=where)


def _encodable(text: object) -> bool:
    try:
        str(text).encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_normal(fill: Normal, dtype: str, where: str) -> None:
    if dtype not in FLOAT_MAX:
        raise GraphFormatError(f"fill 'normal' is for floating dtypes, this is {dtype}: use 'uniform'", where=where)
    for key in ("mean", "std", "min", "max"):
        number = getattr(fill, key)
        if number is not None and not (isinstance(number, (int, float)) and abs(number) <= FLOAT_MAX[dtype]):
            raise GraphFormatError(f"{number} is no finite {dtype}", where=f"{where}.{key}")
    if fill.std < 0:
        raise GraphFormatError(f"the standard deviation {fill.std} is negative", where=f"{where}.std")
    if fill.min is not None and fill.max is not None and fill.min > fill.max:
        raise GraphFormatError(f"min {fill.min} is above max {fill.max}", where=f"{where}.min")


def _check_uniform(fill: Uniform, dtype: str, sizes: Mapping[str, int], where: str) -> None:
    if dtype == "string":
        raise GraphFormatError("a string tensor takes fill 'values' only", where=where)
    if isinstance(fill.high, str):
        if dtype in FLOAT_MAX:
            raise GraphFormatError("an expression is for integer dtypes only", where=f"{where}.high")
        try:
            high: int | float = dims.evaluate(fill.high, sizes)
        except GraphBindError as error:
            raise GraphFormatError(str(error), where=f"{where}.high") from None
        except GraphFormatError as error:
            raise GraphFormatError(error.cause, where=f"{where}.high") from None
    else:
        high = fill.high
    for key, number in (("low", fill.low), ("high", high)):
        _check_bound(number, dtype, f"{where}.{key}")
    if fill.low > high:
        raise GraphFormatError(f"low {fill.low} is above high {high}", where=f"{where}.low")
    if dtype in FLOAT_MAX and not high - fill.low <= FLOAT_MAX[dtype]:
        raise GraphFormatError(f"high - low = {high - fill.low} is outside {dtype}", where=f"{where}.high")


def _check_bound(number: int | float, dtype: str, where: str) -> None:
    if dtype in FLOAT_MAX:
        if not abs(number) <= FLOAT_MAX[dtype]:
            raise GraphFormatError(f"{number} is no finite {dtype}", where=where)
        return
    low, high = (0, 1) if dtype == "bool" else INTEGER_RANGES[dtype]
    if not low <= number <= high or number != int(number):
        raise GraphFormatError(f"{number} is no {dtype}, which is {low} to {high}", where=where)
