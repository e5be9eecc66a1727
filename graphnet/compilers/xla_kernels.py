"""Kernels of an XLA executable from its profile and its text: each with the GraphIR nodes it covers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from graphnet.compilers.base import Kernel

Event = tuple[float, str, float]
"""Start and, after the HLO instruction's name, duration in nanoseconds."""
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.$-]+) .*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.$-]+) = (?:\([^=]*?\)|\S+) [\w-]+\(([^()]*)\)(.*)$")
_NAME = re.compile(r"%([\w.$-]+)")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=\{?(%[\w.$-]+(?:, %[\w.$-]+)*)")


def kernels(found: Iterable[Event], hlo: str, node_of: Callable[[str], str], runs: int) -> list[Kernel]:
    """Events by instruction. A loop or branch encloses what it runs, which has events of its own: only these count."""
    module = _Module(hlo, node_of)
    covered = module.covered()
    times: dict[str, list[float]] = defaultdict(list)
    for _, name, nanoseconds in found:
        times[name].append(nanoseconds)
    return [
        Kernel(
            name=name,
            nodes=covered.get(name, ()),
            calls=max(1, round(len(spent) / runs)),
            total_us=sum(spent) / runs / 1e3,
        )
        for name, spent in times.items()
        if not any(inner in times for inner in module.inside(name))
    ]


class _Module:
    """What the text of an HLO module says of each instruction: operands, users, what it calls, nodes it names."""

    def __init__(self, hlo: str, node_of: Callable[[str], str]) -> None:
        self._own: dict[str, list[str]] = {}
        self._called: dict[str, list[str]] = {}
        self._computations: dict[str, list[str]] = defaultdict(list)
        self._users: dict[str, list[str]] = defaultdict(list)
        self._operands: dict[str, list[str]] = {}
        computation = ""
        for text in hlo.splitlines():
            instruction = _INSTRUCTION.match(text)
            if instruction is None:
                start = _COMPUTATION.match(text)
                computation = start.group(1) if start else computation
                continue
            name, operands, rest = instruction.groups()
            self._computations[computation].append(name)
            self._own[name] = [node for node in map(node_of, _OP_NAME.findall(rest)) if node]
            self._called[name] = [target for group in _CALLED.findall(rest) for target in _NAME.findall(group)]
            self._operands[name] = _NAME.findall(operands)
            for operand in self._operands[name]:
                self._users[operand].append(name)

    def covered(self) -> dict[str, tuple[str, ...]]:
        """GraphIR nodes by instruction: those that its metadata and that of what it calls name.

        XLA drops the metadata of some instructions that it rewrites (batched dots, for one): such a one belongs to a
        node that both an operand and a user of it belong to, else to the last node of its first operand that has any,
        else to the one that its users belong to.
        """
        named = {
            name: tuple(dict.fromkeys(node for part in (*self.inside(name), name) for node in self._own[part]))
            for name in self._operands
        }
        return {name: nodes or self._neighbours(name, named) for name, nodes in named.items()}

    def inside(self, name: str) -> Iterator[str]:
        """Instructions of the computations that an instruction calls, to any depth."""
        for target in self._called.get(name, ()):
            for inner in self._computations[target]:
                yield from self.inside(inner)
                yield inner

    def _neighbours(self, name: str, named: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        before = [node for operand in self._operands[name] for node in named[operand]]
        after = {node for user in self._users[name] for node in named[user]}
        shared = [node for node in before if node in after]
        first = next((named[operand][-1:] for operand in self._operands[name] if named[operand]), ())
        return (shared[0],) if shared else first or (tuple(after) if len(after) == 1 else ())
