"""LLVM's command-line tools on this machine: where they are, of which release, what CPU they find."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from graphnet.errors import ToolNotFound

PACKAGE = "llvm (Debian and Ubuntu: apt-get install llvm-19; macOS: brew install llvm)"
"""What brings the tools."""
_FOLDERS = ("/usr/lib/llvm-*/bin", "/opt/homebrew/opt/llvm/bin", "/usr/local/opt/llvm/bin")
_RELEASE = re.compile(r"LLVM version (\d+)")
_HOST = re.compile(r"Host CPU: (\S+)")


@cache
def find(name: str) -> str:
    """Path of the newest release of a tool: `llvm-mca`, `llvm-mca-19` ... Raises ToolNotFound."""
    numbered = re.compile(re.escape(name) + r"(-\d+)?")
    places = [Path(place) for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    places += [found for pattern in _FOLDERS for found in Path("/").glob(pattern.lstrip("/"))]
    candidates = [
        str(file) for place in places if place.is_dir() for file in place.iterdir()
        if numbered.fullmatch(file.name) and os.access(file, os.X_OK)
    ]  # fmt: skip
    working = [(release(path), path) for path in dict.fromkeys(candidates)]
    if not any(number for number, _ in working):
        raise ToolNotFound(f"{name} is absent; install {PACKAGE}")
    return max(working, key=lambda item: item[0])[1]


@cache
def version(path: str) -> str:
    """What a tool says of itself with `--version`; `""` where it cannot be run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def release(path: str) -> int:
    """Number of the LLVM release that a tool is of; 0 where it does not say."""
    found = _RELEASE.search(version(path))
    return int(found[1]) if found else 0


def host_cpu() -> str:
    """LLVM's name of this machine's CPU (`znver4`), by the newest `llvm-mca`; `""` where there is none."""
    try:
        found = _HOST.search(version(find("llvm-mca")))
    except ToolNotFound:
        return ""
    return found[1] if found and found[1] not in ("generic", "(unknown)") else ""
