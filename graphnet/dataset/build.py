"""Building the collection from its recipes: a child process for each graph, resumable, the same bytes every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from graphnet.dataset import manifest, recipes
from graphnet.dataset.recipe import Recipe

TIME_LIMIT = 900.0
"""Seconds for one graph, its comparison with the source included."""


class Failure(msgspec.Struct, frozen=True):
    """A graph that was not built, and why."""

    name: str
    reason: str


def build(
    output: str | os.PathLike[str],
    *,
    subsets: Collection[str] | None = None,
    names: Collection[str] | None = None,
    progress: Callable[[str], object] = lambda _: None,
    time_limit: float = TIME_LIMIT,
    rebuild: bool = False,
) -> list[Failure]:
    """Write `<output>/<subset>/<name>.json` for every recipe chosen; files that are there are kept unless `rebuild`.

    The manifest is written anew. Each file is complete or absent. Returns what failed; one failure does not stop the
    rest. Raises UsageError for an unknown subset or name.
    """
    chosen = recipes.load(subsets, names)
    failures: list[Failure] = []
    for number, recipe in enumerate(chosen, 1):
        target = Path(output, recipe.file_name)
        label = f"[{number}/{len(chosen)}] {recipe.subset}/{recipe.name}"
        if target.exists() and not rebuild:
            progress(f"{label}: there already")
            continue
        reason = build_one(recipe, target, time_limit)
        progress(f"{label}: {reason or f'{target.stat().st_size} bytes'}")
        if reason:
            failures.append(Failure(recipe.name, reason))
    if Path(output).is_dir():
        manifest.write(output)
    return failures


def build_one(recipe: Recipe, target: Path, time_limit: float = TIME_LIMIT) -> str:
    """Build one graph in a child process of its own session. Returns the reason of a failure, or an empty string."""
    command = [sys.executable, "-m", "graphnet.dataset.build_child", recipe.graph_id, str(target)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = child.communicate(timeout=time_limit)
    except BaseException as error:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return f"not done after {time_limit:g} s"
    if child.returncode == 0:
        return ""
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1] if lines else f"the child ended with status {child.returncode}"
