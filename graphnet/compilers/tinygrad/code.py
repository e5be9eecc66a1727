"""The code of tinygrad's kernels: the objects of the captured JIT, disassembled."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from tinygrad.uop import Ops
from tinygrad.uop.ops import UOp

from graphnet.compilers import KernelCode, listing


def emitted(calls: Iterable[tuple[str, UOp]]) -> list[KernelCode]:
    """Code of each kernel, under the name that the profile gives it; copies have none. Raises ToolNotFound.

    Args:
        calls: names and calls, as `profile.named_calls` finds them.
    """
    found: dict[str, KernelCode] = {}
    with tempfile.TemporaryDirectory(prefix="graphnet-tinygrad-") as folder:
        path = Path(folder, "kernel.o")
        for name, call in calls:
            binary = next((part.arg for part in call.src[0].src if part.op is Ops.BINARY), None)
            if binary is None or name in found:
                continue
            path.write_bytes(binary)
            found[name] = KernelCode(name=name, assembly="\n".join(listing.disassemble(path).values()))
    return list(found.values())
