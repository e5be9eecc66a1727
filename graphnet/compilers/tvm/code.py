"""The code of TVM's kernels: its one module of a program, cut by the names that the virtual machine calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphnet.compilers import KernelCode, listing

PREFIX = "__tvm_ffi_"
"""Of the function that the virtual machine calls for a kernel; the work is in functions that it calls."""


def emitted(executable: Any, kernels: Iterable[str]) -> list[KernelCode]:
    """Code of each kernel by name. A name that the module has no function for is a packed function of TVM's runtime.

    Args:
        executable: what `relax.build` made.
        kernels: names in the order of calls, with repetitions.
    """
    parts = listing.functions(source(executable, "asm"))
    definitions = listing.ir_functions(source(executable, "ll"))
    found = []
    for name in dict.fromkeys(kernels):
        entry = next((symbol for symbol in (f"{PREFIX}{name}", name) if symbol in parts), "")
        needed = listing.reachable(parts, entry)
        found.append(
            KernelCode(
                name=name, assembly=listing.gather(parts, entry), ir=listing.gather_ir(definitions, needed),
                library="" if entry else "TVM runtime",
            )
        )  # fmt: skip
    return found


def source(executable: Any, form: str) -> str:
    """The text of all modules: `asm` or, on CPUs, `ll` (LLVM IR)."""
    return "\n".join(str(module.inspect_source(form)) for module in executable.mod.imports)
