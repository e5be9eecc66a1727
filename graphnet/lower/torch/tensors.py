"""Arrays to PyTorch tensors and back, and the dtype names of GraphIR in PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from graphnet.errors import UnsupportedOp
from graphnet.ir.graph import DType
from graphnet.lower.table import ONNX_DTYPES

TORCH_DTYPES: dict[str, torch.dtype] = {
    "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
    "complex64": torch.complex64, "complex128": torch.complex128, "bool": torch.bool,
    "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "uint8": torch.uint8, "uint16": torch.uint16, "uint32": torch.uint32, "uint64": torch.uint64,
    "float8e4m3fn": torch.float8_e4m3fn, "float8e4m3fnuz": torch.float8_e4m3fnuz,
    "float8e5m2": torch.float8_e5m2, "float8e5m2fnuz": torch.float8_e5m2fnuz,
    "int4": torch.int8, "uint4": torch.uint8,
}  # fmt: skip
"""4-bit integers live one to a byte."""

_VIEWS: dict[np.dtype[Any], tuple[type, torch.dtype]] = {
    np.dtype(ml_dtypes.bfloat16): (np.int16, torch.bfloat16),
    np.dtype(ml_dtypes.float8_e4m3fn): (np.uint8, torch.float8_e4m3fn),
    np.dtype(ml_dtypes.float8_e4m3fnuz): (np.uint8, torch.float8_e4m3fnuz),
    np.dtype(ml_dtypes.float8_e5m2): (np.uint8, torch.float8_e5m2),
    np.dtype(ml_dtypes.float8_e5m2fnuz): (np.uint8, torch.float8_e5m2fnuz),
}
_NUMPY_VIEWS = {dtype: (view, array_dtype) for array_dtype, (view, dtype) in _VIEWS.items()}
_BYTES = {np.dtype(ml_dtypes.int4): np.int8, np.dtype(ml_dtypes.uint4): np.uint8}


def torch_dtype(dtype: DType | int) -> torch.dtype:
    """PyTorch dtype of a GraphIR name or an ONNX type number. Raises UnsupportedOp."""
    name = ONNX_DTYPES.get(dtype, "undefined") if isinstance(dtype, int) else dtype
    found = TORCH_DTYPES.get(name)
    if found is None:
        raise UnsupportedOp(f"dtype {name} does not exist in PyTorch")
    return found


def dtype_of(array: np.ndarray) -> torch.dtype:
    """PyTorch dtype of an array. Raises UnsupportedOp."""
    found = TORCH_DTYPES.get(array.dtype.name.replace("_", ""))
    if found is None:
        raise UnsupportedOp(f"dtype {array.dtype} does not exist in PyTorch")
    return found


def to_torch(array: np.ndarray) -> torch.Tensor:
    """The array as a tensor: memory is shared where the array is writable, copied where it is not."""
    if not array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C", copy=True)
    if array.dtype in _BYTES:
        array = array.astype(_BYTES[array.dtype])
    if array.dtype in _VIEWS:
        view, dtype = _VIEWS[array.dtype]
        return torch.from_numpy(array.view(view)).view(dtype)
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise UnsupportedOp(f"dtype {array.dtype} does not exist in PyTorch") from error


def to_numpy(tensor: torch.Tensor, dtype: np.dtype[Any] | None = None) -> np.ndarray:
    """A copy of the tensor as an array; `dtype` names a 4-bit type that PyTorch keeps in bytes."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype in _NUMPY_VIEWS:
        view, array_dtype = _NUMPY_VIEWS[tensor.dtype]
        raw = tensor.view(torch.int16 if view is np.int16 else torch.uint8).numpy()
        return raw.view(array_dtype).copy()
    array: np.ndarray = tensor.numpy().copy()
    if dtype in _BYTES:
        return array.astype(dtype)
    return array
