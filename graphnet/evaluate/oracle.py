"""Reference outputs, computed once per graph in float64 by the `reference` compiler, and kept in a cache on disk."""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

CACHE_VERSION = 1
"""Part of every key: raise it when the reference compiler or the making of inputs changes."""
DEFAULT_CACHE_BYTES = 4 << 30
COMPILER = "reference"


def check_seed(seed: int) -> int:
    """Seed of the inputs that are checked: not those that were timed, so outputs kept from the timed runs show."""
    return seed + 1


def cache_folder() -> Path:
    """`$GRAPHNET_CACHE/reference`, or `~/.cache/graphnet/reference`; made if absent. Raises OSError."""
    root = os.environ.get("GRAPHNET_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "graphnet"
    )
    folder = Path(root, "reference")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cache_file(digest: str, dims: dict[str, int], seed: int) -> Path:
    """Where the reference outputs of a graph (by `plan.graph_digest`) are, or will be."""
    parts = [CACHE_VERSION, digest, sorted(dims.items()), seed]
    key = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]
    return cache_folder() / f"{key}.npz"


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
            file.unlink(missing_ok=True)
            total -= size
