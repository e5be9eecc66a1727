"""Orders of axes worked out in numbers: permutations, channels last, reshapes of tensors that lie in another order."""

from __future__ import annotations

from collections.abc import Sequence

Order = tuple[int, ...]
"""`order[i]` is the ONNX axis that lies at place `i`."""
Groups = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Runs of old axes and the runs of new axes that take their place."""


def places(order: Order) -> Order:
    """Where each ONNX axis lies: the inverse permutation."""
    where = [0] * len(order)
    for place, axis in enumerate(order):
        where[axis] = place
    return tuple(where)


def plain(rank: int) -> Order:
    """ONNX's order."""
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """[batch, *spatial, channels] of ONNX's [batch, channels, *spatial]."""
    return (0, *range(2, rank), 1)


def kernel_order(rank: int) -> Order:
    """[*spatial, in, out] of ONNX's [out, in, *spatial]."""
    return (*range(2, rank), 1, 0)


def without(order: Order, gone: Sequence[int]) -> Order:
    """The order that is left when some ONNX axes have gone."""
    kept = [axis for axis in range(len(order)) if axis not in gone]
    return tuple(kept.index(axis) for axis in order if axis in kept)


def reshaped(old: Sequence[int], new: Sequence[int], order: Order) -> Order | None:
    """The order in which a reshape from `old` to `new` (both in ONNX's order) leaves a tensor that lies in `order`.

    None where it would have to move elements: merged axes must lie side by side, in order.
    """
    groups = axis_groups(old, new)
    if groups is None:
        return None
    group_of = {axis: group for group in groups for axis in group[0]}
    result: list[int] = []
    queue = [axis for axis in order if old[axis] != 1]
    while queue:
        before, after = group_of[queue[0]]
        real = [axis for axis in before if old[axis] != 1]
        if queue[: len(real)] != real:
            return None
        result.extend(after)
        del queue[: len(real)]
    result.extend(axis for before, after in groups if all(old[a] == 1 for a in before) for axis in after)
    return tuple(result)


def axis_groups(old: Sequence[int], new: Sequence[int]) -> Groups | None:
    """The finest runs of old axes and new axes of equal product, in order; None where there are no elements."""
    if 0 in old:
        return None
    groups: Groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second = i, j
        left = right = 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new) and (left != 1 or new[j] == 1 or first == i):
            right, j = new[j], j + 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        groups.append((tuple(range(first, i)), tuple(range(second, j))))
    return groups
