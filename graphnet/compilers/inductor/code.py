"""The code of Inductor's kernels: its C++ sources and commands, noted while it compiles, run again for assembly."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torch._inductor import cpp_builder

from graphnet.compilers import KernelCode, listing

FUNCTION = "kernel"
"""What Inductor calls the function of every kernel in its C++."""
_MARK = re.compile(r'"graph_\d+_(cpp_\w+)"')
_SHOWN = 400


class Source(NamedTuple):
    """A kernel's C++ and the command that Inductor compiled it by."""

    text: str
    command: str


@contextmanager
def recorded_sources(sources: dict[str, Source]) -> Iterator[None]:
    """Fill `sources` by kernel from the compilations inside: their folder is gone when they end."""
    before = cpp_builder.run_compile_cmd

    def run(cmd_line: str, cwd: str) -> None:
        for word in shlex.split(cmd_line):
            if word.endswith(".cpp"):
                text = Path(word).read_text()
                sources.update(dict.fromkeys(_MARK.findall(text), Source(text, cmd_line)))
        before(cmd_line, cwd)

    cpp_builder.run_compile_cmd = run
    try:
        yield
    finally:
        cpp_builder.run_compile_cmd = before


def emitted(sources: dict[str, Source], calls: Iterable[str]) -> list[KernelCode]:
    """Assembly of the generated kernels by the compiler and flags that Inductor used, then the calls of libraries.

    Args:
        sources: of the generated kernels.
        calls: names of everything that the generated code runs, as the profile has them (`cpp_fused_relu_0`,
            `extern_kernels.addmm`).
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="graphnet-inductor-") as folder:
        for name in dict.fromkeys([*calls, *sources]):
            if name in sources:
                parts = listing.functions(assembly(sources[name], Path(folder)))
                found.append(KernelCode(name=name, assembly=listing.gather(parts, FUNCTION)))
            else:
                found.append(KernelCode(name=name, library=_library(name)))
    return found


def assembly(source: Source, folder: Path) -> str:
    """What the compiler prints with `-S` and without debug information. Raises RuntimeError with its complaint."""
    text, result = folder / "kernel.cpp", folder / "kernel.s"
    text.write_text(source.text)
    command = to_assembly(source.command, text, result)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{command[0]} -S ended with status {done.returncode}: {done.stderr.strip()[-_SHOWN:]}")
    return result.read_text()


def to_assembly(command: str, source: Path, result: Path) -> list[str]:
    """The command with another source and result, and with `-S` in place of all that concerns linking."""
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word in ("-o", "-include"):  # a precompiled header saves time only: the source includes it too
            next(words)
        elif word.endswith(".cpp"):
            kept.append(str(source))
        elif word != "-shared" and not word.startswith(("-l", "-L", "-Wl,")):
            kept.append(word)
    return [*kept, "-g0", "-S", "-o", str(result)]


def _library(name: str) -> str:
    if not name.startswith(("extern_kernels.", "torch.ops.", "aten.", "aoti_torch")):
        return ""
    return "oneDNN" if "mkldnn" in name or "onednn" in name else "MKL" if "mkl" in name else "ATen"
