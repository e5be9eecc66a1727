"""The code of IREE's dispatches: the assembly and LLVM IR that `iree-compile` leaves of each executable."""

from __future__ import annotations

import re
from pathlib import Path

from graphnet.compilers import KernelCode, listing

FLAG = "--iree-hal-dump-executable-intermediates-to"
_TABLE = re.compile(r"^iree_hal_executable_library_query_v0_funcs:\n((?:\s+\.(?:quad|xword)\s+.*\n)+)", re.MULTILINE)
_ENTRY = re.compile(r'\.\w+\s+"?([^"\s]+)"?')


def emitted(folder: Path) -> list[KernelCode]:
    """Code of each dispatch function, under the name that `iree-profile` gives it.

    An executable holds one dispatch or several, listed in a table, and the mathematical functions that they call.

    Args:
        folder: what a compilation with `FLAG` left.
    """
    found = []
    for path in sorted(folder.glob("*.s"), key=lambda path: _number(path.name)):
        text = path.read_text()
        parts = listing.functions(text)
        optimized = path.with_name(f"{path.stem}.optimized.ll")
        definitions = listing.ir_functions(optimized.read_text()) if optimized.is_file() else {}
        for name in entries(text):
            ir = listing.gather_ir(definitions, listing.reachable(parts, name))
            found.append(KernelCode(name=name, assembly=listing.gather(parts, name), ir=ir))
    return found


def entries(text: str) -> list[str]:
    """Names of the dispatch functions of an executable's assembly."""
    table = _TABLE.search(text)
    return _ENTRY.findall(table[1]) if table else []


def _number(name: str) -> tuple[int, str]:
    found = re.search(r"dispatch_(\d+)", name)
    return int(found[1]) if found else 0, name
