"""Exact elements in and out of `bytes` fills, and ranges of dtypes against numpy and ml_dtypes."""

from __future__ import annotations

import base64
import random
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet.errors import GraphFormatError
from graphnet.ir import fills
from graphnet.ir.graph import Bytes
from graphnet.ir.tensors import numpy_dtype


@given(st.binary(max_size=200))
def test_pack_and_unpack(data: bytes) -> None:
    packed = fills.pack(data)
    assert fills.unpack(packed, "uint8", len(data)) == data
    assert packed == fills.pack(data)
    for count in (len(data) + 1, max(len(data) - 1, 0)):
        if count != len(data):
            with pytest.raises(GraphFormatError):
                fills.unpack(packed, "uint8", count)


def test_trailing_data_in_the_stream() -> None:
    twice = base64.b64encode(zlib.compress(b"a") + b"more").decode()
    with pytest.raises(GraphFormatError, match="other data than"):
        fills.unpack(Bytes(data=twice), "uint8", 1)
    truncated = base64.b64encode(zlib.compress(b"abc")[:-4]).decode()
    with pytest.raises(GraphFormatError, match="other data than"):
        fills.unpack(Bytes(data=truncated), "uint8", 3)


def test_a_huge_count_does_not_allocate() -> None:
    with pytest.raises(GraphFormatError, match="holds 3, not"):
        fills.unpack(fills.pack(b"abc"), "float64", 2**27)
    with pytest.raises(GraphFormatError, match=r"larger than 2,147,483,648 bytes"):
        fills.unpack(fills.pack(b"abc"), "float64", 2**62)


def test_large_elements_pass_in_pieces() -> None:
    for data in (random.Random(0).randbytes(5_000_000), bytes(5_000_000)):
        packed = fills.pack(data)
        assert fills.unpack(packed, "uint8", len(data)) == data
        for count in (len(data) - 1, len(data) + 1):
            with pytest.raises(GraphFormatError, match="holds"):
                fills.unpack(packed, "uint8", count)


def test_ranges_are_those_of_numpy() -> None:
    for dtype, (low, high) in fills.INTEGER_RANGES.items():
        integers: Any = ml_dtypes.iinfo(numpy_dtype(dtype))  # type: ignore[no-untyped-call]
        assert (int(integers.min), int(integers.max)) == (low, high)
    for dtype, largest in fills.FLOAT_MAX.items():
        part = np.empty(0, numpy_dtype(dtype)).real.dtype if dtype.startswith("complex") else numpy_dtype(dtype)
        floats: Any = ml_dtypes.finfo(part)  # type: ignore[no-untyped-call]
        assert float(floats.max) == largest


def test_every_dtype_has_a_size() -> None:
    assert {*fills.ITEM_BYTES, "string"} == fills.DTYPES
    assert {dtype: numpy_dtype(dtype).itemsize for dtype in fills.ITEM_BYTES} == fills.ITEM_BYTES
    assert fills.DTYPES - {"string", "bool"} == {*fills.INTEGER_RANGES, *fills.FLOAT_MAX}


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ((True, False), "bool"), ((0, 255), "uint8"), ((-8, 7), "int4"), ((0, 2**64 - 1), "uint64"),
        (("nan", "-inf", 1, 0.5), "bfloat16"),
        (("nan", 448), "float8e4m3fn"),
        (("inf", 57344.0), "float8e5m2"), ((6, -6.0), "float4e2m1"), (("", "é"), "string"),
        ((), "int8"),
    ],
)  # fmt: skip
def test_good_elements(data: tuple[object, ...], dtype: str) -> None:
    fills.check_elements(data, dtype, "$")


@pytest.mark.parametrize(
    ("data", "dtype", "cause"),
    [
        ((1,), "bool", "type int"),
        ((True,), "uint8", "type bool"),
        ((256,), "uint8", "256 is outside uint8"),
        ((-9,), "int4", "-9 is outside int4"),
        (("inf",), "float8e4m3fn", "has no inf"),
        (("nan",), "float4e2m1", "has no nan"),
        ((7,), "float4e2m1", "outside float4e2m1"),
        ((float("nan"),), "float32", "outside float32"),
        ((10**400,), "float64", "outside float64"),
        (("\ud800",), "string", "lone surrogates"),
        ((1,), "string", "type int"),
    ],
)
def test_bad_elements(data: tuple[object, ...], dtype: str, cause: str) -> None:
    with pytest.raises(GraphFormatError, match=cause):
        fills.check_elements(data, dtype, "$")
