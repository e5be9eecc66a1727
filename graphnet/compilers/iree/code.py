"""The code of IREE's dispatches: the assembly and LLVM IR that `iree-compile` leaves of each executable."""

from __future__ import annotations

import re
from pathlib import Path

from graphnet.compilers import KernelCode, listing

FLAG = "--iree-hal-dump-executable-intermediates-to"
_FILE = re.compile(r"module_(.+)_embedded_elf_\w+\.s")


def emitted(folder: Path) -> list[KernelCode]:
    """Code of each dispatch function, under the name that `iree-profile` gives it.

    An executable holds one dispatch, named after it, with the functions of IREE's mathematical library that it needs.

    Args:
        folder: what a compilation with `FLAG` left.
    """
    found = []
    for path in sorted(folder.glob("*.s"), key=lambda path: _number(path.name)):
        executable = _FILE.fullmatch(path.name)
        parts = listing.functions(path.read_text())
        optimized = path.with_name(f"{path.stem}.optimized.ll")
        definitions = listing.ir_functions(optimized.read_text()) if optimized.is_file() else {}
        for name in parts:
            if executable and (name == executable[1] or name.startswith(f"{executable[1]}_")):
                needed = listing.reachable(parts, name)
                ir = listing.gather_ir(definitions, needed)
                found.append(KernelCode(name=name, assembly=listing.gather(parts, name), ir=ir))
    return found


def _number(name: str) -> tuple[int, str]:
    found = re.search(r"dispatch_(\d+)", name)
    return int(found[1]) if found else 0, name
