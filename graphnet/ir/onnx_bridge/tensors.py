"""Tensors between ONNX's TensorProto, numpy and GraphIR's fills, exactly."""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from graphnet.errors import GraphFormatError
from graphnet.ir import fills, tensors
from graphnet.ir.graph import Bytes, Constant, DType, File, Fill, Normal, Scalar, TensorAttr, Uniform, Values, Weight

VALUES_LIMIT = 64
"""Elements up to which exact data is spelled out."""

_PACKED_WELL = 1 << 20
"""Bytes up to which compression is always tried; larger tensors are mostly weights, which hardly shrink."""
_SAMPLE = 1 << 16
ROLE_KEY = "graphnet.role"
"""Metadata of a TensorProto: the role of the weight, where its dtype does not tell."""

Role = Literal["parameter", "buffer", "constant"]
ROLES: dict[str, Role] = {"parameter": "parameter", "buffer": "buffer", "constant": "constant"}

_CODES: dict[str, int] = {
    "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE, "complex64": TensorProto.COMPLEX64, "complex128": TensorProto.COMPLEX128,
    "int4": TensorProto.INT4, "int8": TensorProto.INT8, "int16": TensorProto.INT16, "int32": TensorProto.INT32,
    "int64": TensorProto.INT64, "uint4": TensorProto.UINT4, "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32, "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL, "string": TensorProto.STRING,
    "float8e4m3fn": TensorProto.FLOAT8E4M3FN, "float8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8e5m2": TensorProto.FLOAT8E5M2, "float8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "float4e2m1": TensorProto.FLOAT4E2M1,
}  # fmt: skip
_NAMES: dict[int, DType] = {code: name for name, code in _CODES.items()}  # type: ignore[misc]


def tensor_type(dtype: str) -> int:
    """ONNX's `TensorProto.DataType` code of a dtype name."""
    return _CODES[dtype]


def dtype_name(code: int, where: str = "$") -> DType:
    """The dtype of an ONNX element type. Raises GraphFormatError for one that GraphIR does not have."""
    try:
        return _NAMES[code]
    except KeyError:
        known = dict(zip(TensorProto.DataType.values(), TensorProto.DataType.keys(), strict=True))
        raise GraphFormatError(f"element type {known.get(code, code)} is not supported", where=where) from None


def default_role(dtype: str) -> Role:
    """The role of an initializer of which nothing else is known: floats are parameters."""
    return "parameter" if dtype.startswith(("float", "bfloat", "complex")) else "constant"


def to_array(proto: TensorProto, where: str) -> np.ndarray:
    """The tensor's elements with GraphIR's numpy dtype. Raises GraphFormatError."""
    dtype = dtype_name(proto.data_type, where)
    if any(size < 0 for size in proto.dims):
        raise GraphFormatError(f"tensor '{proto.name}' has a negative dimension {list(proto.dims)}", where=where)
    if proto.data_location == TensorProto.EXTERNAL:
        raise GraphFormatError(f"tensor '{proto.name}' has its data in a file that was not loaded", where=where)
    try:
        array = numpy_helper.to_array(proto)
    except (ValueError, TypeError, OverflowError, MemoryError, UnicodeDecodeError) as error:
        raise GraphFormatError(f"tensor '{proto.name}' of {list(proto.dims)}: {error}", where=where) from error
    if dtype == "string":
        return np.array([_text(item, where) for item in proto.string_data], object).reshape(tuple(proto.dims))
    wanted = tensors.numpy_dtype(dtype)
    return np.asarray(array if array.dtype == wanted else array.astype(wanted))


def dense(proto: onnx.SparseTensorProto, limit: int, where: str) -> np.ndarray:
    """A sparse initializer as a dense array (at most `limit` bytes). Raises GraphFormatError."""
    values, indices = to_array(proto.values, where), to_array(proto.indices, where)
    shape = tuple(int(size) for size in proto.dims)
    if any(size < 0 for size in shape) or math.prod(shape) * max(1, values.dtype.itemsize) > limit:
        raise GraphFormatError(f"sparse tensor '{proto.values.name}' of {list(shape)} is too large", where=where)
    flat = np.zeros(math.prod(shape), values.dtype)
    try:
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T.astype(np.int64)), shape)
        if places.size and (places.min() < 0 or places.shape != values.shape):
            raise ValueError("indices do not match the values")
        flat[places] = values
    except (ValueError, IndexError, TypeError) as error:
        raise GraphFormatError(f"sparse tensor '{proto.values.name}': {error}", where=where) from error
    return flat.reshape(shape)


def to_proto(array: np.ndarray, dtype: str, name: str = "") -> TensorProto:
    """A TensorProto with the elements as raw data."""
    if dtype == "string":
        proto = TensorProto(name=name, data_type=TensorProto.STRING, dims=array.shape)
        proto.string_data.extend(str(item).encode() for item in array.reshape(-1))
        return proto
    wanted = tensors.numpy_dtype(dtype)
    return numpy_helper.from_array(np.ascontiguousarray(array, wanted).reshape(array.shape), name)


def fill_of(array: np.ndarray, dtype: str) -> Constant | Values | Bytes:
    """The exact fill of an array: spelled out when small, one number when uniform, compressed bytes otherwise."""
    flat = array.reshape(-1)
    if dtype == "string":
        return Values(data=tuple(str(item) for item in flat))
    if not dtype.startswith("complex"):
        if flat.size <= VALUES_LIMIT:
            return Values(data=tuple(scalar(item) for item in flat))
        if flat.view(_bits(flat)).min() == flat.view(_bits(flat)).max():
            return Constant(value=scalar(flat[0]))
    raw = np.ascontiguousarray(flat)
    little = raw.astype(raw.dtype.newbyteorder("<"), copy=False)
    data = little.tobytes()
    if len(data) <= _PACKED_WELL:
        return fills.pack(data)
    shrinks = len(zlib.compress(data[:_SAMPLE], 1)) < 0.8 * _SAMPLE
    return Bytes(data=base64.b64encode(zlib.compress(data, 6 if shrinks else 0)).decode())


def scalar(item: Any) -> Scalar:
    """One element as JSON spells it."""
    kind = np.asarray(item).dtype.kind
    if kind == "b":
        return bool(item)
    if kind in "iu" or np.asarray(item).dtype.name in ("int4", "uint4"):
        return int(item)
    value = float(item)
    if math.isnan(value):
        return "nan"
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def random_fill(array: np.ndarray) -> Fill:
    """A recipe with the statistics of the array: normal, clipped to its range (floats only)."""
    wide = array.astype(np.float64).reshape(-1)
    if not wide.size or not np.isfinite(wide).all():
        return Normal()
    return Normal(mean=float(wide.mean()), std=float(wide.std()), min=float(wide.min()), max=float(wide.max()))


def exact(fill: Fill) -> bool:
    """Whether the fill states its elements itself, without random numbers or a file beside the graph."""
    return not isinstance(fill, Normal | Uniform | File)


def literal(item: Weight | TensorAttr, name: str) -> np.ndarray:
    """Elements of a weight or attribute with an exact fill."""
    return tensors.fill_array(item.fill, item.dtype, item.shape, name)


def _bits(flat: np.ndarray) -> np.dtype[Any]:
    return np.dtype(f"u{flat.dtype.itemsize}")


def _text(item: bytes, where: str) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError as error:
        raise GraphFormatError(f"a string element is not UTF-8: {error}", where=where) from error
