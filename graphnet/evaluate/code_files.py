"""Files of the code that a program runs: assembly and LLVM IR of each kernel in a folder, and the index of them."""

from __future__ import annotations

import errno
import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from graphnet.compilers import KernelCode, llvm_tools
from graphnet.errors import StoreError
from graphnet.evaluate import environment
from graphnet.ir.fileio import write_atomic

INDEX_FORMAT = "graphnet-code/1"
INDEX = "index.json"
FOLDER = "code"
KEY_DIGITS = 8
"""Of the job key, in the name of a job's folder."""
FILE_BYTES = 4 << 20
TOTAL_BYTES = 64 << 20
"""Limits of one file and of one job's; what does not fit is left out, and the index says so."""
_NAME_LENGTH = 80
_UNSAFE = re.compile(r"[^\w.$-]+")
_VECTOR_BITS = (("avx512f", 512), ("avx", 256), ("sse4_2", 128), ("asimd", 128))


class CodeFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the code of one kernel is."""

    kernel: str
    """Name in the profile (`Kernel.name`)."""
    assembly: str = ""
    """File in the folder of the index; kernels with the same code share one."""
    ir: str = ""
    library: str = ""
    """The library that is called instead."""
    left_out: str = ""
    """Why a file is missing."""


class CodeIndex(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag=INDEX_FORMAT, tag_field="format"):
    """What is known of one job's code."""

    job_key: str
    graph: str
    compiler: str
    machine: str
    """`x86_64`, `aarch64`: what the assembly is for."""
    mcpu: str = ""
    """LLVM's name of the CPU that the job ran on; `""` where no `llvm-mca` was there to tell."""
    vector_bits: int | None = None
    """Width of the widest vector registers of that CPU."""
    coded: bool = True
    """False for a compiler that runs kernels of a library only."""
    kernels: tuple[CodeFile, ...] = ()


def folder_of(results: str | os.PathLike[str], compiler: str, graph: str, job_key: str) -> Path:
    """`results/<compiler>/code/<graph>-<first digits of the job key>`."""
    home = Path(results, compiler.replace(":", "-").replace("/", "-"), FOLDER)
    return home / f"{_safe(graph)}-{job_key[:KEY_DIGITS]}"


def write(folder: Path, codes: Sequence[KernelCode] | None, *, job_key: str, graph: str, compiler: str) -> CodeIndex:
    """Write the files, then the index that names them; `codes` is None for a program that shows no code.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writer = _Writer(folder)
    index = CodeIndex(
        job_key=job_key, graph=graph, compiler=compiler, machine=platform.machine(), mcpu=llvm_tools.host_cpu(),
        vector_bits=_vector_bits(environment.detect().isa), coded=codes is not None,
        kernels=tuple(writer.add(code) for code in codes or ()),
    )  # fmt: skip
    write_atomic(folder / INDEX, msgspec.json.format(msgspec.json.encode(index)))
    return index


def read(path: Path) -> CodeIndex:
    """The index in a file. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=CodeIndex)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreError(f"{path} is no code index of this version ({INDEX_FORMAT}): {error}") from error


def text_of(folder: Path, name: str) -> str:
    """Text of a file of a job's folder. Raises StoreError: it is elsewhere, a link, absent, or cannot be read."""
    if not name or name != Path(name).name:
        raise StoreError(f"{folder} names the file '{name}', which is not in it; evaluate with --code again")
    path = folder / name
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        cause = "it is a link" if error.errno == errno.ELOOP else error.strerror or error
        raise StoreError(f"cannot read {path}: {cause}; evaluate with --code again") from error


def indexes(results: str | os.PathLike[str]) -> list[Path]:
    """Index files of a results folder, in the order of their names."""
    return sorted(Path(results).glob(f"*/{FOLDER}/*/{INDEX}"))


class _Writer:
    """Writes files of one folder, equal texts once, until the limit is reached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()
        self._left = TOTAL_BYTES

    def add(self, code: KernelCode) -> CodeFile:
        assembly, missing = self._file(code.name, ".s", code.assembly)
        ir, missing_ir = self._file(code.name, ".ll", code.ir)
        left_out = "; ".join(filter(None, (missing, missing_ir)))
        return CodeFile(kernel=code.name, assembly=assembly, ir=ir, library=code.library, left_out=left_out)

    def _file(self, kernel: str, suffix: str, text: str) -> tuple[str, str]:
        """Name of the file, or why there is none."""
        if not text or (suffix, text) in self._files:
            return self._files.get((suffix, text), ""), ""
        data = text.encode()
        if len(data) > min(FILE_BYTES, self._left):
            limit = "a file" if len(data) > FILE_BYTES else "the job"
            return "", f"{suffix} of {len(data)} bytes is over the limit of {limit}"
        name = _unused(f"{_safe(kernel)}{suffix}", self._names)
        write_atomic(self._folder / name, data)
        self._left -= len(data)
        self._files[suffix, text] = name
        return name, ""


def _unused(name: str, taken: set[str]) -> str:
    stem, dot, suffix = name.rpartition(".")
    number = 2
    while name.lower() in taken:  # some file systems do not tell upper from lower case
        name, number = f"{stem}-{number}{dot}{suffix}", number + 1
    taken.add(name.lower())
    return name


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name).lstrip(".-")[:_NAME_LENGTH] or "kernel"


def _vector_bits(isa: Iterable[str]) -> int | None:
    return next((bits for flag, bits in _VECTOR_BITS if flag in isa), None)
