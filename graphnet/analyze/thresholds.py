"""The threshold of each pair of the regression gate: one for all, and those of a file by graph and compiler."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from graphnet.errors import UsageError
from graphnet.evaluate.records import Result


def check_threshold(value: float, where: str = "threshold") -> float:
    """`value`. Raises UsageError unless 0 < value <= 1."""
    if not 0 < value <= 1:
        raise UsageError(
            f"{where} {value} is not in 0..1: it is the least share of the baseline's performance that passes,"
            " such as 0.95"
        )
    return value


def read_thresholds(path: str | os.PathLike[str]) -> dict[str, float]:
    """Thresholds by pattern from a JSON or (by its name, `.toml`) TOML file. Raises UsageError."""
    file = Path(path)
    try:
        data = file.read_bytes()
        if file.suffix == ".toml":
            found = msgspec.convert(tomllib.loads(data.decode()), dict[str, float])
        else:
            found = msgspec.json.decode(data, type=dict[str, float])
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise UsageError(
            f'{file}: not a mapping of graphs to thresholds, such as {{"resnet50": 0.9}}: {error}'
        ) from error
    for pattern, value in found.items():
        check_threshold(value, f"{file}: '{pattern}':")
    return found


def threshold_of(result: Result, default: float, per_graph: Mapping[str, float]) -> float:
    """That of the last matching pattern, else the default."""
    return next((value for name, value in reversed(list(per_graph.items())) if _matches(name, result)), default)


def require_used(per_graph: Mapping[str, float], results: Iterable[Result]) -> None:
    """Raises UsageError naming the patterns that match no result: a misspelt one would go unnoticed."""
    known = list(results)
    unused = [name for name in per_graph if not any(_matches(name, result) for result in known)]
    if unused:
        graphs = ", ".join(sorted({result.graph for result in known})) or "none"
        raise UsageError(
            f"thresholds for what neither set has: {', '.join(unused)}; the graphs are: {graphs}."
            " A pattern is a name or an id, with * and ? if wanted, and may end in /COMPILER"
        )


def _matches(pattern: str, result: Result) -> bool:
    names = [name for name in (result.graph, result.graph_id) if name]
    names += [f"{name}/{result.compiler}" for name in names]
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)
