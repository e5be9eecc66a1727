"""The code of an XLA executable from a folder of its dumps: objects disassembled, each kernel under its HLO name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from graphnet.compilers import listing
from graphnet.compilers.base import KernelCode

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.$-]+) .*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.$-]+) = (\([^=]*?\)|\S+) ([\w-]+)\(([^()]*)\)(.*)$")
_NAME = re.compile(r"%([\w.$-]+)")
_METADATA = re.compile(r',? metadata=\{(?:[^{}"]|"[^"]*")*\}')
_INDEX = re.compile(r"/\*.*?\*/")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=\{?(%[\w.$-]+(?:, %[\w.$-]+)*)")
_CONTROL = ("while", "conditional", "call")
_NO_CODE = frozenset({
    "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "iota", "partition-id", *_CONTROL,
})  # fmt: skip
"""Instructions for which XLA runs nothing, or what their computations hold; an `iota` of its own is a constant."""
_FUSIONS = {"__ynn_fusion": "ynnpack", "__xnn_fusion": "xnnpack", "__onednn_fusion": "oneDNN"}
_OPERATIONS = {"dot": "Eigen", "convolution": "Eigen", "fft": "DUCC", "copy": "XLA runtime"}
"""Libraries behind instructions that became no code."""
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


class _Instruction(NamedTuple):
    name: str
    type: str
    operation: str
    operands: tuple[str, ...]
    arguments: str
    rest: str
    called: tuple[str, ...]


def emitted(folder: Path) -> list[KernelCode]:
    """Every instruction that XLA executes, in the order of the text: with its code, or the library that does it.

    XLA emits one function for instructions that are equal but for their names, and names it after one of them: they
    are found by their text, and each gets the same code. Raises ToolNotFound.

    Args:
        folder: what `--xla_dump_to` of one compilation left.
    """
    parts = {
        name: text for path in sorted(folder.glob("*.o")) for name, text in listing.disassemble(path).items()
    }  # fmt: skip
    ir = _ir(folder)
    found: dict[str, KernelCode] = {}
    for path in sorted(folder.glob("*.cpu_after_optimizations.txt")):
        module = _Module(path.read_text())
        symbols = _symbols(module, parts)
        for instruction in module.executed():
            symbol = symbols.get(instruction.name, "")
            found[instruction.name] = KernelCode(
                name=instruction.name, assembly=listing.gather(parts, symbol), ir=ir.get(symbol, ""),
                library="" if symbol else _library(instruction),
            )  # fmt: skip
    return list(found.values())


def _ir(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.ir-with-opt.ll")):
        found |= listing.ir_functions(path.read_text())
    return found


def _symbols(module: _Module, parts: Mapping[str, str]) -> dict[str, str]:
    """Function of each executed instruction that has one."""
    own: dict[str, str] = {}
    by_text: dict[str, str] = {}
    for instruction in module.executed():
        names = (instruction.name, f"{instruction.name}_kernel")
        symbol = next((name for name in names if name in parts), None)
        if symbol:
            own[instruction.name] = by_text[module.canonical(instruction)] = symbol
    for instruction in module.executed():
        twin = by_text.get(module.canonical(instruction))
        if instruction.name not in own and twin:
            own[instruction.name] = twin
    return own


def _library(instruction: _Instruction) -> str:
    if instruction.operation == "fusion":
        return next((library for kind, library in _FUSIONS.items() if kind in instruction.rest), "")
    if instruction.operation == "custom-call":
        target = _TARGET.search(instruction.rest)
        name = target[1] if target else "custom call"
        return "oneDNN" if "onednn" in name else name
    return _OPERATIONS.get(instruction.operation, "XLA runtime")


class _Module:
    """The instructions of an HLO module's text by computation."""

    def __init__(self, text: str) -> None:
        self._computations: dict[str, list[_Instruction]] = defaultdict(list)
        self._types: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._entry = computation = ""
        for line in text.splitlines():
            parsed = _INSTRUCTION.match(_INDEX.sub("", line))
            if parsed is None:
                start = _COMPUTATION.match(line)
                computation = start[2] if start else computation
                self._entry = computation if start and start[1] else self._entry
                continue
            name, kind, operation, arguments, rest = parsed.groups()
            called = tuple(target for group in _CALLED.findall(rest) for target in _NAME.findall(group))
            self._types[name] = kind
            self._computations[computation].append(
                _Instruction(name, kind, operation, tuple(_NAME.findall(arguments)), arguments, rest, called)
            )

    def executed(self) -> Iterator[_Instruction]:
        """Instructions for which XLA runs something, those of loops and branches included."""
        yield from self._executed(self._entry)

    def _executed(self, computation: str) -> Iterator[_Instruction]:
        for instruction in self._computations[computation]:
            if instruction.operation in _CONTROL:
                for inner in instruction.called:
                    yield from self._executed(inner)
            elif instruction.operation not in _NO_CODE:
                yield instruction

    def canonical(self, instruction: _Instruction) -> str:
        """Text that is equal for instructions which compute the same from operands of the same types."""
        operands = " ".join(self._types.get(name, "") for name in instruction.operands)
        return f"{instruction.type} {instruction.operation}({operands}){self._attributes(instruction)}"

    def _attributes(self, instruction: _Instruction) -> str:
        text = _METADATA.sub("", instruction.rest)
        for name in instruction.called:
            text = text.replace(f"%{name}", self._computation(name))
        return text

    def _computation(self, name: str) -> str:
        """A computation with its instructions numbered in place of names."""
        if name not in self._texts:
            numbers: dict[str, int] = {}
            lines = []
            for instruction in self._computations[name]:
                numbers[instruction.name] = len(numbers)
                operands = [str(numbers.get(operand, operand)) for operand in instruction.operands]
                given = " ".join(operands) if operands else instruction.arguments
                lines.append(f"{instruction.type} {instruction.operation}({given}){self._attributes(instruction)}")
            self._texts[name] = "{" + "; ".join(lines) + "}"
        return self._texts[name]
