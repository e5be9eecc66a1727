"""Building the collection from its recipes: a child process for each graph, resumable, the same bytes every time."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from graphnet.dataset import recipes
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

    Each file is complete or absent. Returns what failed; one failure does not stop the rest. Raises UsageError for an
    unknown subset or name.
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


def main(arguments: list[str] | None = None) -> int:
    """`python -m graphnet.dataset.build --subset vision -o benchmark/`; the exit status is 1 when a graph failed."""
    parser = argparse.ArgumentParser(prog="graphnet.dataset.build", description=main.__doc__)
    parser.add_argument("-o", "--output", required=True, help="folder to write to")
    parser.add_argument("--subset", action="append", help="only this subset (may be repeated)")
    parser.add_argument("--name", action="append", help="only this graph, by name or id (may be repeated)")
    parser.add_argument("--rebuild", action="store_true", help="build again what is there")
    options = parser.parse_args(arguments)
    failures = build(
        options.output,
        subsets=options.subset,
        names=options.name,
        progress=lambda line: sys.stderr.write(line + "\n"),
        rebuild=options.rebuild,
    )
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
