"""Matrix products and convolutions for CPUs: tiles that stay in registers, weights packed when compiled.

Every contraction is written as `accumulate[lead..., no, ho, wo, th, tw, ni]`: `nt` neighbouring output channels (or
columns) fill vectors, `th * tw` pixels (or rows) reuse each loaded vector. `schedule` finds it by its block names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.ir import Op

ACCUMULATE, PACKED = "graphnet_accumulate", "graphnet_packed"
"""Block names: the tiled sum, and operands copied to another layout (prefix)."""
PRODUCT, CONVOLVED = "graphnet_product", "graphnet_convolved"
"""Block names: the sum in the shape of a matrix product, of a convolution."""
PANEL = "graphnet_panel"
"""Block name: columns of the right operand, copied once per column tile."""
PANEL_BYTES = 1 << 18
"""A run-time right operand at least this large is copied to panels: its rows lie on too many pages."""
ALIASED = 256
"""Rows a multiple of so many floats apart share few cache sets."""
Legalize = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]


class Registers(NamedTuple):
    """Vector registers of a processor."""

    number: int
    lanes: int
    """float32 numbers in one."""

    def columns(self, size: int) -> int:
        """Width of a tile over `size` columns: two vectors, or one where that is all there is."""
        return self.lanes if size <= self.lanes else 2 * self.lanes

    def rows(self, columns: int) -> int:
        """Most rows of a tile of that many columns that leaves registers for the operands."""
        vectors = columns // self.lanes
        return (self.number - vectors - 2) // vectors


class Tile(NamedTuple):
    """Tile of pixels: `height` by `width`."""

    height: int
    width: int


def legalizations(registers: Registers) -> dict[str, Legalize]:
    """What `relax.transform.LegalizeOps` shall do with contractions; others than float32 keep TVM's own rule."""
    found: dict[str, Legalize] = {"relax.matmul": _guarded("relax.matmul", _matmul, registers)}
    for rank, letters in (("1d", "W"), ("2d", "HW"), ("3d", "DHW")):
        name = f"relax.nn.conv{rank}"
        found[name] = _guarded(name, _convolution(letters), registers)
    return found


def pixel_tile(height: int, width: int, rows: int) -> Tile:
    """The tile of at most `rows` pixels that computes fewest pixels for nothing, then the largest."""
    if width <= rows // 2:
        tall = min(rows // width, height)
        return min(
            (Tile(tile, width) for tile in range(1, tall + 1)), key=lambda tile: (_waste(height, tile[0]), -tile[0])
        )
    return min(
        (Tile(1, tile) for tile in range(1, min(rows, width) + 1)),
        key=lambda tile: (_cost(width, tile[1], rows), -tile[1]),
    )


def _waste(size: int, tile: int) -> float:
    return -(-size // tile) * tile / size


def _cost(size: int, tile: int, rows: int) -> float:
    """Relative time: pixels computed, and a small tile reloads its weights more often."""
    return _waste(size, tile) * (1 + 0.5 * rows / tile / 14)


def _guarded(name: str, rule: Callable[..., relax.Expr | None], registers: Registers) -> Legalize:
    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        types = [argument.ty for argument in call.args]
        if all(_is_static_float32(found) for found in (*types, call.ty)):
            result = rule(builder, call, registers)
            if result is not None:
                return result
        return Op.get(name).get_attr("FLegalize")(builder, call)

    return legalize


def _is_static_float32(found: Any) -> bool:
    if not isinstance(found, relax.TensorType) or str(found.dtype) != "float32" or found.shape is None:
        return False
    return all(isinstance(dim, tirx.IntImm) for dim in found.shape) and all(int(dim) > 0 for dim in found.shape)


def _shape(expression: relax.Expr) -> tuple[int, ...]:
    return tuple(int(dim) for dim in expression.ty.shape)


def _clamped(index: Any, size: int, tiled: int) -> Any:
    """An index of a tile that reaches over the edge: what is computed there is not stored."""
    return index if tiled <= size else tirx.min(index, size - 1)


class _Tiling(NamedTuple):
    """Extents of the tiled sum."""

    lead: tuple[int, ...]
    height: int
    width: int
    size: int
    """Columns, or output channels of a group."""
    tile: Tile
    columns: int

    @property
    def blocks(self) -> tuple[int, int, int]:
        return -(-self.size // self.columns), -(-self.height // self.tile.height), -(-self.width // self.tile.width)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, *self.blocks, *self.tile, self.columns)

    def pixel(self, ho: Any, wo: Any, th: Any, tw: Any) -> tuple[Any, Any]:
        _, high, wide = self.blocks
        height, width = self.tile
        return (
            _clamped(ho * height + th, self.height, high * height),
            _clamped(wo * width + tw, self.width, wide * width),
        )

    def element(self, lead: Sequence[Any], n: Any, h: Any, w: Any) -> tuple[Any, ...]:
        """Where the sum for a column and pixel is."""
        height, width = self.tile
        outer = (n // self.columns, h // height, w // width)
        return (*lead, *outer, h % height, w % width, n % self.columns)


def _tiling(registers: Registers, lead: Sequence[int], height: int, width: int, size: int) -> _Tiling:
    columns = registers.columns(size)
    if height * width < 4 and size >= 4 * registers.lanes:  # a product with a vector: more sums in flight
        columns = 4 * registers.lanes
    tile = pixel_tile(height, width, registers.rows(columns))
    return _Tiling(tuple(lead), height, width, size, tile, columns)


def _matmul(builder: relax.BlockBuilder, call: relax.Call, registers: Registers) -> relax.Expr | None:
    left, right = call.args
    a, b, out = _shape(left), _shape(right), _shape(call)
    if len(a) < 2 or len(b) < 2 or out[-1] < registers.lanes // 2:
        return None
    if isinstance(right, tvm.ir.GenericConst) and math.prod(b[:-2]) == 1:
        lead, height = out[:-3], out[-3] if len(out) > 2 else 1
        tiling = _tiling(registers, lead, height, out[-2], out[-1])
        weights = relax.const(packed_matrix(right.value.numpy().reshape(b[-2:]), tiling.columns))
        return builder.call_te(lambda x, w: _product(x, w, tiling, out), left, weights, primfunc_name_hint="matmul")
    tiling = _tiling(registers, out[:-2], 1, out[-2], out[-1])
    return builder.call_te(lambda x, w: _batched(x, w, tiling, out), left, right, primfunc_name_hint="matmul")


def packed_matrix(matrix: np.ndarray, columns: int) -> np.ndarray:
    """[K, N] as [N / columns, K, columns], the last panel filled up with zeros."""
    depth, size = matrix.shape
    blocks = -(-size // columns)
    wide = np.zeros((depth, blocks * columns), matrix.dtype)
    wide[:, :size] = matrix
    return np.ascontiguousarray(wide.reshape(depth, blocks, columns).transpose(1, 0, 2))


def _broadcast(tensor: te.Tensor, lead: Sequence[Any]) -> tuple[Any, ...]:
    """Leading indices of an operand whose leading dimensions may be fewer, or 1."""
    dims = [int(dim) for dim in tensor.shape[:-2]]
    return tuple(0 if dim == 1 else index for dim, index in zip(dims, lead[len(lead) - len(dims) :], strict=True))


def _rows(x: te.Tensor, tiling: _Tiling) -> tuple[list[te.IterVar], Callable[..., Any], Any]:
    """Reduction axes, the left operand's element by leading indices and row, and the depth it is at.

    Rows whose distance makes them share cache sets are copied first, 16 numbers of each row side by side.
    """
    rows, depth = (int(dim) for dim in x.shape[-2:])
    if depth % ALIASED or tiling.size < 4 * tiling.columns or rows * tiling.height < tiling.tile.width * 2:
        k = te.reduce_axis((0, depth), "k")
        return [k], lambda lead, row: x[(*lead, row, k)], k
    lead_shape = tuple(int(dim) for dim in x.shape[:-2])
    count = len(lead_shape)
    copied = te.compute(
        (*lead_shape, depth // 16, rows, 16),
        lambda *i: x[(*i[:count], i[count + 1], i[count] * 16 + i[count + 2])],
        name=f"{PACKED}_rows",
    )
    outer, inner = te.reduce_axis((0, depth // 16), "ko"), te.reduce_axis((0, 16), "ki")
    return [outer, inner], lambda lead, row: copied[(*lead, outer, row, inner)], outer * 16 + inner


def _product(x: te.Tensor, w: te.Tensor, tiling: _Tiling, out: tuple[int, ...]) -> te.Tensor:
    """Rows (of the last two leading dimensions) times packed weights."""
    axes, element, depth = _rows(x, tiling)
    count, has_height = len(tiling.lead), len(out) > 2

    def summed(*index: Any) -> Any:
        lead, (no, ho, wo, th, tw, ni) = index[:count], index[count:]
        h, row = tiling.pixel(ho, wo, th, tw)
        return te.sum(element(_broadcast(x, (*lead, h) if has_height else lead), row) * w[no, depth, ni], axis=axes)

    total = te.compute(tiling.shape, summed, name=ACCUMULATE)
    if not has_height:
        return te.compute(out, lambda m, n: total[tiling.element((), n, 0, m)], name=PRODUCT)
    return te.compute(out, lambda *i: total[tiling.element(i[:count], i[-1], i[-3], i[-2])], name=PRODUCT)


def _batched(x: te.Tensor, w: te.Tensor, tiling: _Tiling, out: tuple[int, ...]) -> te.Tensor:
    """Both operands come at run time."""
    axes, element, depth = _rows(x, tiling)
    count = len(tiling.lead)
    column = _columns(w, tiling)

    def summed(*index: Any) -> Any:
        lead, (no, ho, wo, th, tw, ni) = index[:count], index[count:]
        _, row = tiling.pixel(ho, wo, th, tw)
        return te.sum(element(_broadcast(x, lead), row) * column(_broadcast(w, lead), no, depth, ni), axis=axes)

    total = te.compute(tiling.shape, summed, name=ACCUMULATE)
    return te.compute(out, lambda *i: total[tiling.element(i[:count], i[-1], 0, i[-2])], name=PRODUCT)


def _columns(w: te.Tensor, tiling: _Tiling) -> Callable[..., Any]:
    """Element of the right operand by leading indices, column tile, depth and column in the tile."""
    depth, size = (int(dim) for dim in w.shape[-2:])
    columns, blocks = tiling.columns, tiling.blocks[0]
    ragged = size % columns != 0
    if not ragged and (tiling.width < 4 * tiling.tile.width or depth * size * 4 < PANEL_BYTES):
        return lambda lead, no, k, ni: w[(*lead, k, no * columns + ni)]
    lead_shape = tuple(int(dim) for dim in w.shape[:-2])
    count = len(lead_shape)
    panel = te.compute(
        (*lead_shape, blocks, depth, columns),
        lambda *i: w[(*i[:count], i[-2], _clamped(i[-3] * columns + i[-1], size, blocks * columns))],
        name=PANEL,
    )
    return lambda lead, no, k, ni: panel[(*lead, no, k, ni)]


def _convolution(letters: str) -> Callable[..., relax.Expr | None]:
    def rule(builder: relax.BlockBuilder, call: relax.Call, registers: Registers) -> relax.Expr | None:
        data, weight = call.args
        attributes, out = call.attrs, _shape(call)
        group = int(attributes.groups)
        if str(attributes.data_layout) != f"NC{letters}" or not isinstance(weight, tvm.ir.GenericConst):
            return None
        size = out[1] // group
        if size < registers.lanes // 2:
            return None
        spatial = (1,) * (2 - len(letters)) + out[2:]
        tiling = _tiling(registers, (out[0], group, *spatial[:-2]), spatial[-2], spatial[-1], size)
        weights = relax.const(packed_filters(weight.value.numpy(), group, tiling.columns))
        window = _Window(
            tuple(map(int, attributes.strides)), tuple(map(int, attributes.dilation)),
            tuple(map(int, attributes.padding)), group,
        )  # fmt: skip
        return builder.call_te(
            lambda x, w: _convolve(x, w, tiling, window, out), data, weights, primfunc_name_hint="conv"
        )

    return rule


class _Window(NamedTuple):
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    """Before each axis, then after each."""
    group: int


def packed_filters(filters: np.ndarray, group: int, columns: int) -> np.ndarray:
    """[O, I, window...] as [group, O / group / columns, I, window..., columns], filled up with zeros."""
    size = filters.shape[0] // group
    blocks = -(-size // columns)
    wide = np.zeros((group, blocks * columns, *filters.shape[1:]), filters.dtype)
    wide[:, :size] = filters.reshape(group, size, *filters.shape[1:])
    split = wide.reshape(group, blocks, columns, *filters.shape[1:])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))


def _convolve(x: te.Tensor, w: te.Tensor, tiling: _Tiling, window: _Window, out: tuple[int, ...]) -> te.Tensor:
    rank = len(window.strides)
    source = _padded(x, window) if any(window.padding) else x
    depth = te.reduce_axis((0, int(w.shape[2])), "ci")
    taps = [te.reduce_axis((0, int(extent)), f"r{axis}") for axis, extent in enumerate(w.shape[3:-1])]
    per_group = int(x.shape[1]) // window.group

    def summed(*index: Any) -> Any:
        (batch, group, *outer), (no, ho, wo, th, tw, ni) = index[:-6], index[-6:]
        pixel = [*outer, *tiling.pixel(ho, wo, th, tw)][-rank:]
        position = [
            at * stride + tap * dilation
            for at, stride, tap, dilation in zip(pixel, window.strides, taps, window.dilation, strict=True)
        ]
        return te.sum(
            source[(batch, group * per_group + depth, *position)] * w[(group, no, depth, *taps, ni)],
            axis=[depth, *taps],
        )

    total = te.compute(tiling.shape, summed, name=ACCUMULATE)

    def result(batch: Any, channel: Any, *pixel: Any) -> Any:
        outer, (h, w_) = pixel[:-2], ((0,) if rank == 1 else ()) + pixel[-2:]
        lead = (batch, channel // tiling.size, *outer)
        return total[tiling.element(lead, channel % tiling.size, h, w_)]

    return te.compute(out, result, name=CONVOLVED)


def _padded(x: te.Tensor, window: _Window) -> te.Tensor:
    rank = len(window.strides)
    before, after = window.padding[:rank], window.padding[rank:]
    dims = [int(dim) for dim in x.shape]
    shape = (*dims[:2], *(b + dim + a for b, dim, a in zip(before, dims[2:], after, strict=True)))

    def value(batch: Any, channel: Any, *at: Any) -> Any:
        inside = [
            test
            for index, pad, dim, end in zip(at, before, dims[2:], after, strict=True)
            for test in ([index >= pad] if pad else []) + ([index < pad + dim] if end else [])
        ]
        source = x[(batch, channel, *(index - pad for index, pad in zip(at, before, strict=True)))]
        return tirx.if_then_else(tirx.all(*inside), source, tirx.const(0.0, "float32"))

    return te.compute(shape, value, name=f"{PACKED}_padded")
