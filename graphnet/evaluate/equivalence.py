"""Is a rewritten graph the same function? Both are evaluated in float64 on the same weights and inputs.

Elements agree when |x - r| <= 1e-9 (|r| + max |r|): round-off of float64 in another order of the sums is far below
that, and any other difference far above. Integers, bool and strings must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from graphnet.compilers import Compiler, Target
from graphnet.ir import tensors
from graphnet.ir.graph import Graph

TOLERANCE = 1e-9
CHUNK_BYTES = 1 << 30
"""Of intermediate values that are held at once while the first difference is looked for."""
Arrays = Sequence[np.ndarray]


def first_difference(
    reference: Compiler, states: Sequence[Graph], names: Sequence[str], target: Target, seed: int
) -> str:
    """What is wrong with the first rewrite that changes the results, `""` if none does.

    `states` are the bound graphs before, between and after the passes `names`; `reference` evaluates in float64. Names
    the pass, and the first node whose value differs among those that both graphs know by the same name.
    """
    before = _evaluate(reference, states[0], states[0].outputs, target, seed)
    for index, name in enumerate(names):
        old, new = states[index], states[index + 1]
        after = _evaluate(reference, new, new.outputs, target, seed)
        problem = _worst(zip(new.outputs, after, before, strict=True))
        if problem:
            return f"pass '{name}' changes the results: {_origin(reference, old, new, target, seed) or problem}"
    return ""


def difference(value: np.ndarray, expected: np.ndarray) -> str:
    """How two arrays differ beyond the round-off of float64, `""` if they do not."""
    if value.dtype != expected.dtype or value.shape != expected.shape:
        return f"is {value.dtype}{list(value.shape)}, was {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind not in "fc":
        count = int(np.count_nonzero(value != expected))
        return f"has {count} of {expected.size} elements changed" if count else ""
    finite = np.isfinite(expected)
    if not np.array_equal(value[~finite], expected[~finite], equal_nan=True) or not np.isfinite(value[finite]).all():
        return "is NaN or infinite in other places"
    error, size = np.abs(value[finite] - expected[finite]), np.abs(expected[finite])
    largest = float(size.max(initial=0.0))
    if (error <= TOLERANCE * (size + largest)).all():
        return ""
    return f"differs by up to {float(error.max()):.3g}, its largest element was {largest:.3g}"


def _evaluate(reference: Compiler, graph: Graph, outputs: Sequence[str], target: Target, seed: int) -> Arrays:
    asked = msgspec.structs.replace(graph, outputs=tuple(outputs))
    program = reference.compile(asked, tensors.weights(asked, seed), target)
    program.bind(tensors.inputs(asked, seed))
    program.run()
    return program.outputs()


def _worst(pairs: Iterator[tuple[str, np.ndarray, np.ndarray]]) -> str:
    for name, value, expected in pairs:
        found = difference(value, expected)
        if found:
            return f"output '{name}' {found}"
    return ""


def _origin(reference: Compiler, old: Graph, new: Graph, target: Target, seed: int) -> str:
    """The first value, in the new graph's order, that both graphs know by one name and that differs, with its node."""
    producers = {output: node for node in new.nodes for output in node.outputs if output}
    for names in _chunks(new, [name for name in producers if name in old.values]):
        values = _evaluate(reference, new, names, target, seed)
        expected = _evaluate(reference, old, names, target, seed)
        for name, value, former in zip(names, values, expected, strict=True):
            found = difference(value, former)
            if found:
                return f"value '{name}' of node '{producers[name].name}' ({producers[name].op}) {found}"
    return ""


def _chunks(graph: Graph, names: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    held = 0
    for name in names:
        size = 8 * math.prod(dim if isinstance(dim, int) else 1 for dim in graph.type_of(name).shape)
        if chunk and held + size > CHUNK_BYTES:
            yield chunk
            chunk, held = [], 0
        chunk.append(name)
        held += size
    if chunk:
        yield chunk
