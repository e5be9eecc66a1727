"""Assembly as text: cut into functions, freed of directives, gathered by kernel; disassembly in the same form."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from graphnet.compilers import llvm_tools

_DECLARED = re.compile(r'^\s*\.type\s+"?([^",\s]+)"?\s*,\s*[@%]function', re.MULTILINE)
_LABEL = re.compile(r'^"?([^\s":]+)"?:')
_SIZE = re.compile(r'^\s*\.size\s+"?([^",\s]+)"?\s*,')
_COMMENT = re.compile(r"\s*(?:#\s|##|//).*$")
_NAME = re.compile(r"[\w.$]+")
_LOCAL = re.compile(r"^\.?L")
_DEFINE = re.compile(r'^define [^@]*@(?:"([^"]+)"|([^(\s]+))\(', re.MULTILINE)
_SYMBOL = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_DECODED = re.compile(r"^\s*([0-9a-f]+):\s+(\S.*)$")
_RELOCATION = re.compile(r"^\s*[0-9a-f]+:\s+R_\S+\s+([^\s+-]+)")
_TARGET = re.compile(r"^(j\w+|call\w*|loop\w*)(\s+)(?:0x)?([0-9a-f]+) <([^>+]+)[^>]*>")


def functions(text: str) -> dict[str, str]:
    """Functions of a listing by name: label, instructions and the labels that these jump to, a line each.

    Directives, comments and labels of debug information are left out. Where the text declares no functions (Mach-O),
    every label that is not local begins one.
    """
    declared = set(_DECLARED.findall(text))
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    name = ""
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            begins = label[1] in declared if declared else not _LOCAL.match(label[1])
            if begins:
                name, current = label[1], []
                found[name] = current
            elif current is not None:
                current.append(f"{label[1]}:")
            continue
        size = _SIZE.match(line)
        if size and size[1] == name:
            current = None
        statement = "" if line.startswith("#") else _COMMENT.sub("", line).strip()
        if current is not None and statement and not statement.startswith("."):
            current.append(f"\t{statement}")
    return {name: _tidy(name, lines) for name, lines in found.items() if lines}


def _tidy(name: str, lines: list[str]) -> str:
    """Without the labels that no instruction names."""
    named = {token for line in lines if line.startswith("\t") for token in _NAME.findall(line)}
    kept = [line for line in lines if line.startswith("\t") or line.rstrip(":") in named]
    return "\n".join([f"{name}:", *kept]) + "\n"


def reachable(parts: Mapping[str, str], entry: str) -> list[str]:
    """Names of `entry` and of every other function of `parts` that it calls or passes on, to any depth."""
    found: dict[str, None] = {}
    stack = [entry]
    while stack:
        name = stack.pop()
        if name in parts and name not in found:
            found[name] = None
            stack.extend(_NAME.findall(parts[name]))
    return list(found)


def gather(parts: Mapping[str, str], entry: str) -> str:
    """The text of `entry` and all that it needs; `""` when there is no such function."""
    return "\n".join(parts[name] for name in reachable(parts, entry))


def ir_functions(text: str) -> dict[str, str]:
    """Definitions of a module in LLVM IR by name."""
    found = {}
    for start in _DEFINE.finditer(text):
        end = text.find("\n}", start.start())
        found[start[1] or start[2]] = text[start.start() : end + 3]
    return found


def gather_ir(definitions: Mapping[str, str], names: list[str]) -> str:
    """Definitions of the functions of those names (private ones have a prefix in the assembly)."""
    plain = (name if name in definitions else name.removeprefix(".L") for name in names)
    return "\n".join(definitions[name] for name in plain if name in definitions)


def disassemble(path: Path) -> dict[str, str]:
    """Functions of an object file by name, as `functions` gives them. Raises ToolNotFound, RuntimeError."""
    command = [llvm_tools.find("llvm-objdump"), "--disassemble", "--reloc", "--no-show-raw-insn", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
    return from_disassembly(done.stdout)


def from_disassembly(text: str) -> dict[str, str]:
    """Functions of what `objdump -dr` prints: addresses of jumps become labels, relocated calls name their function."""
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.splitlines():
        symbol, relocation, decoded = _SYMBOL.match(line), _RELOCATION.match(line), _DECODED.match(line)
        if symbol:
            current = found.setdefault(symbol[1], [])
        elif relocation and current:
            address, statement = current[-1]
            if statement.startswith("call"):
                current[-1] = address, f"{statement.split()[0]}\t{relocation[1]}"
        elif decoded:
            current.append((decoded[1], _COMMENT.sub("", decoded[2]).strip()))
    return {name: _labelled(name, lines) for name, lines in found.items() if lines}


def _labelled(name: str, lines: list[tuple[str, str]]) -> str:
    addresses = {address for address, _ in lines}
    result = []
    for address, statement in lines:
        jump = _TARGET.match(statement)
        if jump:
            statement = f"{jump[1]}{jump[2]}{f'.L{jump[3]}' if jump[3] in addresses else jump[4]}"
        result += [f".L{address}:", f"\t{statement}"]
    return _tidy(name, result)
