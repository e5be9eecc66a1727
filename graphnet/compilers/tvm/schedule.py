"""Schedules of fused kernels for CPUs: one rule per kind of kernel, each falling back to a simpler one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import tvm
from tvm import s_tir, tirx

from graphnet.compilers.tvm.contract import ACCUMULATE, CONVOLVED, PACKED, PANEL, Registers

PARALLEL_ELEMENTS = 4096
"""A stage that writes fewer elements is not worth waking other threads."""
ORDERS = ("nhw", "hwn", "hnw")
"""Of the loops over column tiles (n), tile rows (h) and tile columns (w): the orders in which a search looks."""
_REDUCE = int(tirx.IterVar.CommReduce)
Rule = Callable[["_Kernel"], None]


class _Refused(Exception):
    """A rule does not fit the kernel."""


class _Kernel:
    """A schedule under way, and what rules ask of it."""

    def __init__(self, schedule: s_tir.Schedule, registers: Registers) -> None:
        self.registers = registers
        self.schedule = schedule

    @property
    def blocks(self) -> list[Any]:
        return list(self.schedule.get_child_blocks(self.schedule.get_sblock("root")))

    def name(self, block: Any) -> str:
        return str(self.schedule.get(block).name_hint)

    def outputs(self) -> list[str]:
        root = self.schedule.get_sblock("root")
        return [self.name(block) for block in self.schedule.get_output_blocks(root)]

    def extents(self, loops: list[Any]) -> list[int]:
        return [int(self.schedule.get(loop).extent) for loop in loops]

    def reductions(self, block: Any) -> int:
        return sum(int(axis.iter_type) == _REDUCE for axis in self.schedule.get(block).iter_vars)

    def inline(self, keep: tuple[str, ...] = ()) -> None:
        """Inline every spatial block that is no output and whose name does not begin like one of `keep`."""
        outputs = self.outputs()
        for block in self.blocks:
            name = self.name(block)
            if name in outputs or name.startswith(keep) or self.reductions(block):
                continue
            try:
                self.schedule.compute_inline(block)
            except Exception:  # a block that cannot be inlined is scheduled by itself
                continue


def schedule_module(module: tvm.IRModule, registers: Registers, counts: Counter[str]) -> tvm.IRModule:
    """The module with its kernels scheduled; adds the number of kernels by rule to `counts`."""
    found = dict(module.functions_items())
    for variable, function in found.items():
        if isinstance(function, tirx.PrimFunc) and not function.attrs.get("tirx.is_scheduled"):
            scheduled, rule = schedule(function, registers)
            module[variable] = scheduled
            counts[rule] += 1
    return module


def schedule(function: tirx.PrimFunc, registers: Registers) -> tuple[tirx.PrimFunc, str]:
    """The first rule that fits, and its name; `default` is TVM's own loops."""
    for name, rule in RULES.items():
        try:
            module = tvm.IRModule({"main": function})
            kernel = _Kernel(s_tir.Schedule(module, debug_mask="none", error_render_level="none"), registers)
            rule(kernel)
            done = kernel.schedule.mod["main"]
        except Exception:  # rules are tried in turn; the primitives raise errors of many kinds
            continue
        return done.with_attrs(dict(function.attrs) | {"tirx.is_scheduled": True}), name
    return function, "default"


def sampled_contraction(schedule: s_tir.Schedule, registers: Registers) -> list[s_tir.Schedule]:
    """Design spaces of a contraction: our rule, with tiles of tiles and the unrolling of the sum sampled."""
    spaces = []
    for order in ORDERS:
        kernel = _Kernel(schedule.copy(), registers)
        _contraction(kernel, order)
        spaces.append(kernel.schedule)
        if any(kernel.name(block).startswith(PANEL) for block in kernel.blocks):
            break  # the loops around a panel keep their order
    return spaces


def _contraction(kernel: _Kernel, order: str = "") -> None:
    """Register tiles of a matrix product or convolution, with what follows it computed on the tile.

    With an `order` (of column tiles, tile rows and tile columns) the choices are sampled.
    """
    schedule = kernel.schedule
    names = [kernel.name(block) for block in kernel.blocks]
    if ACCUMULATE not in names:
        raise _Refused("no contraction")
    kernel.inline((ACCUMULATE, PACKED, PANEL))
    [output] = kernel.outputs()
    left = {kernel.name(block) for block in kernel.blocks}
    if any(name not in (ACCUMULATE, output) and not name.startswith((PACKED, PANEL)) for name in left):
        raise _Refused("something beside the contraction is not inlined")
    total, result = schedule.get_sblock(ACCUMULATE), schedule.get_sblock(output)
    shape = [int(dim) for dim in schedule.get(total).writes[0].source.shape]
    is_convolution = CONVOLVED in names
    outer, inner = _tile_loops(kernel, result, shape, is_convolution)
    if order and PANEL not in left:
        outer = _sampled_tiles(schedule, outer, order)
    schedule.reorder(*outer, *inner)
    schedule.compute_at(total, outer[-1], preserve_unit_loops=True)
    _registers(kernel, total, shape, len(outer))
    if PANEL in left:
        panel = schedule.get_sblock(PANEL)
        schedule.compute_at(panel, outer[-3])
        _vectorize_last(kernel, schedule.get_loops(panel))
        schedule.parallel(schedule.fuse(*outer[:-2]))
    else:
        schedule.parallel(schedule.fuse(*outer))
    if is_convolution:
        # A second tensor of the result's shape (a residual) in vectors of odd length makes LLVM go number by number.
        (schedule.unroll if _has_residual(schedule.get(result)) else schedule.vectorize)(inner[-1])
    else:
        _vectorize_last(kernel, inner)
    schedule.decompose_reduction(total, schedule.get_loops(total)[_first_reduction(kernel, total)])
    if order:
        last = schedule.get_loops(total)[-4]
        _, step = schedule.split(last, schedule.sample_perfect_tile(last, 2, max_innermost_factor=8))
        schedule.unroll(step)
    for name in left:
        if name.startswith(PACKED):
            _spatial_stage(kernel, schedule.get_sblock(name))


def _sampled_tiles(schedule: s_tir.Schedule, loops: list[Any], order: str) -> list[Any]:
    """The last three loops in two levels, each level in `order`."""
    levels = {
        letter: schedule.split(loop, schedule.sample_perfect_tile(loop, 2, max_innermost_factor=64))
        for letter, loop in zip("nhw", loops[-3:], strict=True)
    }
    return [*loops[:-3], *(levels[letter][level] for level in (0, 1) for letter in order)]


def _has_residual(block: Any) -> bool:
    shape = list(block.writes[0].source.shape)
    return any(list(read.source.shape) == shape for read in block.reads)


def _tile_loops(kernel: _Kernel, block: Any, shape: list[int], is_convolution: bool) -> tuple[list[Any], list[Any]]:
    """Loops over tiles (lead..., column tile, tile row, tile column), and loops in a tile."""
    schedule = kernel.schedule
    lead, (height, width, columns) = shape[:-6], shape[-3:]
    loops = schedule.get_loops(block)
    if is_convolution:
        batch, channel, *pixel = loops
        group, channel = schedule.split(channel, [lead[1], None])
        n, ni = schedule.split(channel, [None, columns])
        lead_loops = [batch, group, *pixel[: len(lead) - 2]]
        pixel = pixel[len(lead) - 2 :]
    else:
        lead_loops, pixel = loops[: len(lead)], loops[len(lead) : -1]
        n, ni = schedule.split(loops[-1], [None, columns])
    if len(pixel) not in (1, 2):
        raise _Refused("another shape than the contraction's")
    wo, wi = schedule.split(pixel[-1], [None, width])
    if len(pixel) == 1:
        tiles, inner = [n, schedule.add_unit_loop(wo), wo], [wi]
    else:
        ho, hi = schedule.split(pixel[0], [None, height])
        tiles, inner = [n, ho, wo], [hi, wi]
    return [*lead_loops, *tiles], [ni, *inner] if is_convolution else [*inner, ni]


def _registers(kernel: _Kernel, total: Any, shape: list[int], depth: int) -> None:
    """Reduction outermost, the tile unrolled and vectorised, its sums in a buffer that becomes registers."""
    schedule = kernel.schedule
    schedule.set_scope(total, 0, "local")
    inner = schedule.get_loops(total)[depth:]
    spatial, reductions = inner[: len(shape)], inner[len(shape) :]
    *units, th, tw, ni = spatial
    schedule.reorder(*units, *reductions, th, tw, ni)
    schedule.unroll(th)
    schedule.unroll(tw)
    schedule.vectorize(ni)


def _first_reduction(kernel: _Kernel, total: Any) -> int:
    return len(kernel.schedule.get_loops(total)) - 3 - kernel.reductions(total)


def _vectorize_last(kernel: _Kernel, loops: list[Any]) -> None:
    """Vectors of at most two registers; loops that do not divide evenly are left to LLVM."""
    [extent] = kernel.extents(loops[-1:])
    lanes = kernel.registers.lanes
    if extent <= 2 * lanes:
        if extent > 1 and extent & (extent - 1) == 0:
            kernel.schedule.vectorize(loops[-1])
    elif extent % lanes == 0:
        _, vector = kernel.schedule.split(loops[-1], [None, lanes])
        kernel.schedule.vectorize(vector)


def _spatial_stage(kernel: _Kernel, block: Any) -> None:
    """Outer loops in parallel, the last one in vectors."""
    schedule, loops = kernel.schedule, kernel.schedule.get_loops(block)
    if not loops:
        return
    extents = kernel.extents(loops)
    if len(loops) == 1:
        if extents[0] < PARALLEL_ELEMENTS:
            return
        loops = list(schedule.split(loops[0], [None, 1024]))
    outer = schedule.fuse(*loops[:-1]) if len(loops) > 2 else loops[0]
    if math.prod(extents) >= PARALLEL_ELEMENTS:
        schedule.parallel(outer)
    if "if_then_else" not in str(schedule.get(block).body):
        _vectorize_last(kernel, [loops[-1]])


def _elementwise(kernel: _Kernel) -> None:
    """One stage without reductions, or several that do not inline."""
    if any(kernel.reductions(block) for block in kernel.blocks):
        raise _Refused("it reduces")
    kernel.inline()
    for block in kernel.blocks:
        _spatial_stage(kernel, block)


def _reduction(kernel: _Kernel) -> None:
    """Each stage by itself: rows in parallel; sums along the last axis in as many partial sums as a vector has."""
    kernel.inline()
    for block in kernel.blocks:
        if kernel.reductions(block):
            _reduction_stage(kernel, block)
        else:
            _spatial_stage(kernel, block)


def _reduction_stage(kernel: _Kernel, block: Any) -> None:
    schedule, count = kernel.schedule, kernel.reductions(block)
    loops = schedule.get_loops(block)
    spatial, reductions = loops[:-count], loops[-count:]
    if not spatial:
        raise _Refused("a reduction to one number")
    extents, work = kernel.extents(spatial), math.prod(kernel.extents(loops))
    inner = spatial[-1] if _is_contiguous(kernel, block) and extents[-1] > 1 and len(spatial) > 1 else None
    outer = spatial[:-1] if inner is not None else spatial
    if inner is not None:
        schedule.reorder(*outer, *reductions, inner)
    fused = schedule.fuse(*outer) if len(outer) > 1 else outer[0]
    if work >= PARALLEL_ELEMENTS:
        schedule.parallel(fused)
    if inner is not None:
        _vectorize_last(kernel, [inner])
        schedule.decompose_reduction(block, reductions[0])
        return
    [extent] = kernel.extents(reductions[-1:])
    lanes = kernel.registers.lanes
    if extent >= 2 * lanes and extent % lanes == 0:
        _, lane = schedule.split(reductions[-1], [None, lanes])
        partial = schedule.rfactor(lane, len(spatial))
        schedule.set_scope(partial, 0, "local")
        schedule.compute_at(partial, fused)
        inner_loops = schedule.get_loops(partial)
        schedule.reorder(*inner_loops[2:], inner_loops[1])
        schedule.vectorize(schedule.get_loops(partial)[-1])
        schedule.decompose_reduction(partial, schedule.get_loops(partial)[1])


def _is_contiguous(kernel: _Kernel, block: Any) -> bool:
    """Whether the last spatial axis also is the last of some operand that the reduction reads."""
    found = kernel.schedule.get(block)
    last = [axis.var for axis in found.iter_vars if int(axis.iter_type) != _REDUCE][-1]
    for read in found.reads:
        if read.region and tirx.analysis.undefined_vars(read.region[-1].min):
            variables = list(tirx.analysis.undefined_vars(read.region[-1].min))
            if any(variable.same_as(last) for variable in variables):
                return True
    return False


RULES: dict[str, Rule] = {"contraction": _contraction, "elementwise": _elementwise, "reduction": _reduction}
"""In the order in which they are tried."""
