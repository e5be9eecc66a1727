"""Reads x86-64 assembly (AT&T syntax): functions, innermost loops, and what their instructions do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from graphnet.analyze.flow import innermost_loops, loop_blocks

_VECTOR = re.compile(r"%([xyz])mm\d+")
_BITS = {"x": 128, "y": 256, "z": 512}
_PREFIXES = ("lock", "rep", "repe", "repne", "repz", "repnz", "bnd", "notrack", "data16", "cs", "ds")
_FMA = re.compile(r"vfn?m(?:addsub|subadd|add|sub)(?:132|213|231|c)?([ps])([sdh])$")
_DOT = re.compile(r"vdpbf16(p)(s)$")
_FLOAT = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|max|min|rcp(?:14|28)?|rsqrt(?:14|28)?|addsub|hadd|hsub|dp|round|rndscale|reduce"
    r"|getexp|getmant|scalef|fixupimm|range|exp2|u?com(?:i|x)|cmp(?:eq|neq|lt|nlt|le|nle|gt|ngt|ge|nge|ord|unord"
    r"|false|true)?(?:_[a-z]+)?)([ps])([sdh])$"
)
_X87 = re.compile(r"f(?:add|sub|subr|mul|div|divr|iadd|imul|sqrt|u?comi?p{0,2}|abs|chs|sin|cos|scale|rndint)[pls]?$")
_ELEMENT_BITS = {"s": 32, "d": 64, "h": 16}
_STACK = re.compile(r"\((%rsp|%rbp)[,)]")
_FRAME = re.compile(r"^movq\s+%rsp,\s*%rbp$")
_NOT_ACCESS = re.compile(r"lea[lqw]?$|nop[wlq]?$|prefetch\w*$")


class Instruction(NamedTuple):
    """One instruction, with the line of its text (from 1)."""

    mnemonic: str
    operands: str
    line: int

    @property
    def text(self) -> str:
        """As the assembler reads it."""
        return f"{self.mnemonic}\t{self.operands}".rstrip()


class Function(NamedTuple):
    """A function: instructions in order, and for each label the index of the instruction that it stands before."""

    name: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    framed: bool
    """Whether %rbp points to its stack frame."""


class Loop(NamedTuple):
    """An innermost loop. Its instructions are in the order of the text; a branch in its body is followed both ways."""

    function: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """Labels inside, by index of the instruction that each stands before."""
    framed: bool

    @property
    def text(self) -> str:
        """Assembly that `llvm-mca` reads."""
        at = {index: label for label, index in self.labels.items()}
        lines = (
            f"{at[index]}:\n\t{item.text}" if index in at else f"\t{item.text}"
            for index, item in enumerate(self.instructions)
        )
        return "\n".join(lines) + "\n"


class Mix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many instructions there are of each kind. Moves, shuffles, conversions and bit operations are no floats."""

    instructions: int
    floats: int = 0
    """Floating-point arithmetic: add, multiply, divide, root, min, max, compare, round, multiply-add ..."""
    vector_floats: int = 0
    """Those that work on packed elements (`ps`, `pd`, `ph`), not on one (`ss`, `sd`, `sh`, x87)."""
    fused: int = 0
    """Multiply-adds, those that work on packed and on single elements."""
    work: int = 0
    """Operations that the floating-point ones do: elements of each, twice that for a multiply-add."""
    width: int | None = None
    """Most bits that a floating-point instruction works on (32 for `ss`); without any, widest vector register named.

    None where there is neither.
    """
    stack: int = 0
    """Instructions that read or write memory of the stack frame."""
    calls: int = 0


def parse(text: str) -> list[Function]:
    """Functions of a listing as the compilers' `code()` gives it: a label without indent, then its body."""
    found: list[Function] = []
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    name = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("\t"):
            instructions.append(_instruction(line, number))
        elif line.endswith(":"):
            label = line[:-1]
            if label.startswith(".L") and name and not _begins(text, label):
                labels[label] = len(instructions)
                continue
            if name:
                found.append(_function(name, instructions, labels))
            name, instructions, labels = label, [], {}
    return [*found, _function(name, instructions, labels)] if name else found


def _begins(text: str, label: str) -> bool:
    """Whether a local label names a function: a blank line is before it."""
    return f"\n\n{label}:" in text


def _function(name: str, instructions: Sequence[Instruction], labels: dict[str, int]) -> Function:
    framed = any(_FRAME.match(f"{item.mnemonic} {item.operands}") for item in instructions)
    return Function(name, tuple(instructions), labels, framed)


def _instruction(line: str, number: int) -> Instruction:
    words = line.strip().split(None, 1)
    while words[0] in _PREFIXES and len(words) > 1:
        words = words[1].split(None, 1)
    return Instruction(words[0], words[1] if len(words) > 1 else "", number)


def innermost(function: Function) -> list[Loop]:
    """The loops that hold no other, in the order of the text."""
    starts, edges = _blocks(function)
    found = []
    for blocks in innermost_loops(edges):
        found.append(_cut(function, starts, blocks))
    return sorted(found, key=lambda loop: loop.instructions[0].line)


def in_loops(function: Function) -> list[Instruction]:
    """Instructions of all loops, each once."""
    starts, edges = _blocks(function)
    blocks = sorted(loop_blocks(edges))
    return [function.instructions[index] for block in blocks for index in _range(starts, block, function)]


def hottest(functions: Iterable[Function]) -> Loop | None:
    """The hot loop: the innermost one with most floating-point work in a pass of its body.

    Where no loop has any, the one with most instructions; of equal ones the first. None without a loop.
    """
    loops = [loop for function in functions for loop in innermost(function)]
    return max(loops, key=lambda loop: _weight(mix(loop.instructions, loop.framed)), default=None)


def _weight(found: Mix) -> tuple[int, int]:
    return found.work, 0 if found.work else found.instructions


def mix(instructions: Iterable[Instruction], framed: bool = False) -> Mix:
    """Counts by kind; `framed` says that %rbp points to the stack frame."""
    count = floats = vector = fused = work = stack = calls = 0
    widest = register = 0
    for item in instructions:
        count += 1
        calls += item.mnemonic.startswith("call")
        stack += _touches_stack(item, framed)
        width = _register_bits(item)
        register = max(register, width)
        kind = _FMA.match(item.mnemonic) or _DOT.match(item.mnemonic) or _FLOAT.match(item.mnemonic)
        if kind:
            packed, element = kind[1] == "p", _ELEMENT_BITS[kind[2]]
            used = width if packed else element
            multiplies = item.mnemonic.startswith(("vfm", "vfn", "vdp"))
            floats, vector, fused = floats + 1, vector + packed, fused + multiplies
            work += (used // element) * (2 if multiplies else 1)
            widest = max(widest, used)
        elif _X87.match(item.mnemonic):
            floats, work, widest = floats + 1, work + 1, max(widest, 80)
    return Mix(
        instructions=count, floats=floats, vector_floats=vector, fused=fused, work=work,
        width=(widest if floats else register) or None, stack=stack, calls=calls,
    )  # fmt: skip


def _register_bits(item: Instruction) -> int:
    return max((_BITS[letter] for letter in _VECTOR.findall(item.operands)), default=0)


def _touches_stack(item: Instruction, framed: bool) -> bool:
    if _NOT_ACCESS.match(item.mnemonic) or item.mnemonic.startswith(("call", "j")):
        return False
    return any(base == "%rsp" or framed for base in _STACK.findall(item.operands))


def _blocks(function: Function) -> tuple[list[int], list[list[int]]]:
    """Index of each basic block's first instruction, and for each block the blocks that may come next."""
    starts = {0, *(index for index in function.labels.values() if index < len(function.instructions))}
    for index, item in enumerate(function.instructions[:-1]):
        if item.mnemonic.startswith(("j", "loop", "ret")):
            starts.add(index + 1)
    order = sorted(starts) if function.instructions else []
    number = {start: block for block, start in enumerate(order)}
    edges: list[list[int]] = []
    for block in range(len(order)):
        last = function.instructions[_range(order, block, function)[-1]]
        following = [block + 1] if block + 1 < len(order) else []
        if last.mnemonic.startswith(("j", "loop")):
            target = function.labels.get(last.operands.strip())
            jumped = [number[target]] if target in number else []
            edges.append(jumped + (following if not last.mnemonic.startswith("jmp") else []))
        else:
            edges.append([] if last.mnemonic.startswith(("ret", "ud2", "hlt")) else following)
    return order, edges


def _range(starts: Sequence[int], block: int, function: Function) -> range:
    end = starts[block + 1] if block + 1 < len(starts) else len(function.instructions)
    return range(starts[block], end)


def _cut(function: Function, starts: Sequence[int], blocks: Iterable[int]) -> Loop:
    indices = [index for block in sorted(blocks) for index in _range(starts, block, function)]
    place = {index: position for position, index in enumerate(indices)}
    labels = {label: place[index] for label, index in function.labels.items() if index in place}
    return Loop(function.name, tuple(function.instructions[index] for index in indices), labels, function.framed)
