"""The manifest of a collection, `manifest.sha256`: the digest of every file, as `sha256sum -c` reads it."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from graphnet.errors import UsageError
from graphnet.ir import fileio

NAME = "manifest.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def write(folder: str | os.PathLike[str]) -> Path:
    """Write the manifest of all that is in `folder` now, sidecars and pages beside the graphs included."""
    root = Path(folder)
    lines = [f"{_digest(root / name)}  {name}\n" for name in _files(root)]
    fileio.write_atomic(root / NAME, "".join(lines).encode())
    return root / NAME


def problems(where: Path) -> list[str]:
    """What of a collection, one of its subsets or one of its files is missing, extra or altered, in words.

    The manifest is in the (file's) folder or in the one above it; where there is none, nothing is known to be wrong.
    Raises UsageError for a manifest that is damaged.
    """
    path = where.resolve()
    folder = path.parent if path.is_file() else path
    root = next((place for place in (folder, folder.parent) if (place / NAME).is_file()), None)
    if root is None:
        return []
    listed = {name: digest for name, digest in _read(root / NAME).items() if (root / name).is_relative_to(path)}
    present = {name for name in _files(root) if (root / name).is_relative_to(path)}
    found = {name: "missing" for name in listed.keys() - present}
    found |= {name: "not in the manifest" for name in present - listed.keys()}
    found |= {name: "altered" for name in listed.keys() & present if _digest(root / name) != listed[name]}
    return [f"{root / name}: {problem}" for name, problem in sorted(found.items())]


def _files(root: Path) -> list[str]:
    """Every file below `root` but the manifest, relative and sorted; a link counts as the file that it names."""
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(name for name in found if name != NAME)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(file: Path) -> dict[str, str]:
    listed: dict[str, str] = {}
    for line in file.read_text().splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            raise UsageError(f"{file}: '{line[:80]}' is no line of sha256sum; `graphnet dataset build` writes it anew")
        listed[match[2]] = match[1]
    return listed
