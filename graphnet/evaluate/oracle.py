"""Reference outputs, computed once per graph in float64 by the `reference` compiler, and kept in a cache on disk."""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import numpy as np

DEFAULT_CACHE_BYTES = 4 << 30
COMPILER = "reference"
_PACKAGE = Path(__file__).parent.parent
_SOURCES = (
    "ir/**/*.py", "lower/*.py", "lower/torch/*.py", "compilers/reference.py", "compilers/torch_program.py",
)  # fmt: skip
"""What decides the reference outputs: binding, the making of tensors, and the lowering that the oracle runs."""


def check_seed(seed: int) -> int:
    """Seed of the inputs that are checked: not those that were timed, so outputs kept from the timed runs show."""
    return seed + 1


def cache_folder(part: str = "reference") -> Path:
    """`$GRAPHNET_CACHE/<part>`, or `~/.cache/graphnet/<part>`; made if absent.

    The path is absolute, since children run in folders of their own. Raises OSError: it cannot be made or written to.
    """
    root = os.environ.get("GRAPHNET_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "graphnet"
    )
    folder = Path(root, part).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written to")
    return folder


def file_name(digest: str, dims: Mapping[str, int], seed: int) -> str:
    """Name in the cache of the reference outputs of a graph (by `plan.graph_digest`), as this code makes them."""
    parts = [code_digest(), digest, sorted(dims.items()), seed]
    return f"{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}.npz"


@cache
def code_digest(package: Path = _PACKAGE) -> str:
    """Of the sources that make the reference, and PyTorch's version: outputs of other code are not taken for ours."""
    try:
        digest = hashlib.sha256(version("torch").encode())
    except PackageNotFoundError:  # then there is no reference either
        digest = hashlib.sha256()
    for file in sorted(file for pattern in _SOURCES for file in package.glob(pattern)):
        digest.update(f"{file.relative_to(package)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def write(path: Path, outputs: Sequence[np.ndarray]) -> None:
    """Store outputs in the order of the graph's, as a whole or not at all. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    plain = [array.astype(str) if array.dtype.hasobject else np.asarray(array) for array in outputs]
    try:
        with open(temporary, "xb") as stream:
            np.savez(stream, *plain)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> list[np.ndarray]:
    """Outputs that `write` stored. Raises OSError, ValueError (no such file format)."""
    with np.load(path, allow_pickle=False) as archive:
        return [archive[f"arr_{index}"] for index in range(len(archive.files))]


def touch(path: Path) -> bool:
    """Whether whole outputs are there; marks them as used, so that they are dropped last."""
    if not zipfile.is_zipfile(path):  # absent, or cut off by a power failure: it is written again
        return False
    with suppress(OSError):  # of another user
        os.utime(path)
    return True


def evict(folder: Path, keep: Path, limit: int | None = None) -> None:
    """Drop what was used longest ago until the cache is within its limit (`GRAPHNET_CACHE_BYTES`, 4 GiB).

    `keep` stays whatever its size.
    """
    if limit is None:
        limit = int(os.environ.get("GRAPHNET_CACHE_BYTES") or DEFAULT_CACHE_BYTES)
    files = []
    for file in folder.glob("*.npz"):
        try:
            found = file.stat()
        except FileNotFoundError:
            continue  # another run dropped it
        files.append((found.st_mtime_ns, found.st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= limit:
            return
        if file != keep:
            with suppress(OSError):  # of another user, or dropped by another run
                file.unlink()
                total -= size
