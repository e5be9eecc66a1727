"""PyTorch rules that contract: matrix products, reductions, scans over an axis, ordering."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from graphnet.lower.table import Ints
from graphnet.lower.torch.linear import DOMAIN
from graphnet.lower.torch.ops import TORCH, unsigned


@TORCH.op("MatMul")
def matmul(A: Tensor, B: Tensor) -> Tensor:
    return torch.matmul(A, B)


@TORCH.op("Linear", domain=DOMAIN)
def linear(X: Tensor, W: Tensor, B: Tensor | None = None) -> Tensor:
    return F.linear(X, W, B)


@TORCH.op("Gemm")
def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    A = A.t() if transA else A
    if not A.is_floating_point():
        product = torch.matmul(A, B.t() if transB else B)
        return product if C is None else product + C
    if alpha == 1.0 and beta == 1.0 and transB and (C is None or C.ndim == 1):
        return F.linear(A, B, C)
    B = B.t() if transB else B
    if C is None:
        product = torch.mm(A, B)
        return product if alpha == 1.0 else product * alpha
    return torch.addmm(C, A, B, beta=beta, alpha=alpha)


@TORCH.op("Einsum")
def einsum(*Inputs: Tensor, equation: str) -> Tensor:
    return torch.einsum(equation, *Inputs)


Reduction = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _reduce(
    function: Reduction, data: Tensor, axes: tuple[int, ...] | None, keepdims: int, noop: int
) -> tuple[Tensor, bool]:
    """The reduced tensor, and whether anything was reduced: no axes mean all, or none where `noop` says so."""
    if not axes and noop:
        return data, False
    return function(data, axes or tuple(range(data.ndim)), bool(keepdims)), True


def _register(name: str, function: Reduction, elementwise: Callable[[Tensor], Tensor] | None = None) -> None:
    def rule(data: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        reduced, done = _reduce(function, data, axes, keepdims, noop_with_empty_axes)
        return reduced if done or elementwise is None else elementwise(reduced)

    TORCH.op(name)(rule)


def _sum(data: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return torch.sum(data, dims, keep) if data.is_floating_point() else torch.sum(data, dims, keep, dtype=data.dtype)


def _mean(data: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    if data.is_floating_point():
        return torch.mean(data, dims, keep)
    count = 1
    for dim in dims:
        count *= data.shape[dim]
    return torch.div(_sum(data, dims, keep), count, rounding_mode="trunc")


def _extreme(data: Tensor, dims: tuple[int, ...], keep: bool, *, largest: bool) -> Tensor:
    if any(data.shape[dim] == 0 for dim in dims):
        return torch.full(_reduced_shape(data, dims, keep), _identity(data.dtype, largest), dtype=data.dtype)
    if data.dtype == torch.bool:
        reduced = (
            torch.amax(data.to(torch.uint8), dims, keep) if largest else torch.amin(data.to(torch.uint8), dims, keep)
        )
        return reduced.to(torch.bool)
    return torch.amax(data, dims, keep) if largest else torch.amin(data, dims, keep)


def _reduced_shape(data: Tensor, dims: tuple[int, ...], keep: bool) -> list[int]:
    reduced = {dim % data.ndim for dim in dims}
    return [1 if i in reduced else n for i, n in enumerate(data.shape) if keep or i not in reduced]


def _identity(dtype: torch.dtype, largest: bool) -> float | int | bool:
    if dtype == torch.bool:
        return not largest
    if dtype.is_floating_point:
        return float("-inf") if largest else float("inf")
    return torch.iinfo(dtype).min if largest else torch.iinfo(dtype).max


def _prod(data: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    for dim in sorted((d % data.ndim for d in dims), reverse=True):
        data = torch.prod(data, dim, keep, dtype=data.dtype)
    return data


def _norm(data: Tensor, dims: tuple[int, ...], keep: bool, order: int) -> Tensor:
    if data.is_floating_point():
        norm: Tensor = torch.linalg.vector_norm(data, order, dims, keep)
        return norm
    if order == 1:
        return _sum(torch.abs(data), dims, keep)
    return torch.sqrt(_sum(data * data, dims, keep).to(torch.float64)).to(data.dtype)


def _log_sum_exp(data: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    if data.numel() == 0:
        return torch.log(_sum(torch.exp(data), dims, keep))
    return torch.logsumexp(data, dims, keep)


_register("ReduceSum", _sum)
_register("ReduceMean", _mean)
_register("ReduceMax", lambda data, dims, keep: _extreme(data, dims, keep, largest=True))
_register("ReduceMin", lambda data, dims, keep: _extreme(data, dims, keep, largest=False))
_register("ReduceProd", _prod)
_register("ReduceL1", lambda data, dims, keep: _norm(data, dims, keep, 1), torch.abs)
_register("ReduceL2", lambda data, dims, keep: _norm(data, dims, keep, 2), torch.abs)
_register("ReduceLogSum", lambda data, dims, keep: torch.log(_sum(data, dims, keep)), torch.log)
_register("ReduceLogSumExp", _log_sum_exp)
_register("ReduceSumSquare", lambda data, dims, keep: _sum(data * data, dims, keep), torch.square)


@TORCH.op("ArgMax")
def argmax(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(torch.argmax, data, axis, bool(keepdims), bool(select_last_index))


@TORCH.op("ArgMin")
def argmin(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(torch.argmin, data, axis, bool(keepdims), bool(select_last_index))


def _arg(function: Callable[..., Tensor], data: Tensor, axis: int, keep: bool, last: bool) -> Tensor:
    if last:
        return data.shape[axis] - 1 - function(torch.flip(data, (axis,)), axis, keep)
    return function(data, axis, keep)


@TORCH.op("CumSum")
def cumsum(x: Tensor, axis: Ints, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    dim = axis[0]
    data = torch.flip(x, (dim,)) if reverse else x
    total = torch.cumsum(data, dim, dtype=x.dtype)
    total = total - data if exclusive else total
    return torch.flip(total, (dim,)) if reverse else total


@TORCH.op("TopK")
@unsigned("ordered")
def topk(X: Tensor, K: Ints, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, ...]:
    values, indices = torch.topk(X, K[0], axis, bool(largest), bool(sorted))
    return values, indices


@TORCH.op("Unique")
def unique(X: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, ...]:
    values, inverse, counts = torch.unique(X, True, True, True, dim=axis)
    inverse = inverse.reshape(-1)
    positions = torch.arange(inverse.shape[0])
    first = torch.full_like(counts, inverse.shape[0]).scatter_reduce(0, inverse, positions, "amin")
    if sorted:
        return values, first, inverse, counts
    order = torch.argsort(first)
    rank = torch.argsort(order)
    return torch.index_select(values, axis or 0, order), first[order], rank[inverse], counts[order]
