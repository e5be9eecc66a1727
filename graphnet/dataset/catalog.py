"""Finding graphs: subset names, files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from graphnet.errors import UsageError
from graphnet.ir import fileio
from graphnet.ir.graph import Domain, Graph

SUBSETS: tuple[str, ...] = tuple(name for name in get_args(Domain) if name != "other")
SUFFIXES = (".json", ".json.zst")


def benchmark_folder() -> Path:
    """The collection: `GRAPHNET_BENCHMARK`, or `benchmark/` here, or beside the package. Raises UsageError."""
    named = os.environ.get("GRAPHNET_BENCHMARK")
    candidates = [Path(named)] if named else [Path("benchmark"), Path(__file__).parents[2] / "benchmark"]
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise UsageError(
        f"no benchmark folder at {' or '.join(map(str, candidates))}; run inside a checkout, or set GRAPHNET_BENCHMARK"
    )


def small_sample() -> list[Path]:
    """Six graphs of the collection, of unlike operators and sizes, each of which runs in milliseconds."""
    names = (
        "matmul/square_512", "vision/resnet18", "vision/deit_tiny", "graph/gcn", "science/deeponet",
        "recommender/wide_and_deep",
    )  # fmt: skip
    return [benchmark_folder() / f"{name}.json" for name in names]


def place(where: str | Path) -> Path:
    """The path that a subset name, a file or a folder stands for. Raises UsageError."""
    path = Path(where)
    return benchmark_folder() / str(where) if str(where) in SUBSETS and not path.is_file() else path


def graph_files(where: str | Path) -> list[Path]:
    """Graph files of a subset name, a file or a folder (searched recursively), sorted by path. Raises UsageError."""
    path = place(where)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"no graph at '{where}': give a file, a folder, or a subset ({', '.join(SUBSETS)})")
    found = sorted(file for file in path.rglob("*.json*") if file.name.endswith(SUFFIXES))
    if not found:
        raise UsageError(f"no graph files (*.json, *.json.zst) below '{path}'")
    return found


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """The graph in a `.json`, `.json.zst` or `.onnx` file. Raises GraphFormatError and OSError."""
    return Graph.from_onnx(path) if os.fspath(path).endswith(".onnx") else fileio.load(path)


def load_graphs(*where: str | Path) -> list[Graph]:
    """Graphs of subsets, files or folders; the whole collection without an argument.

    Raises UsageError (nothing there) and GraphFormatError (a bad file, named).
    """
    sources: Iterable[str | Path] = where or (benchmark_folder(),)
    return [load_graph(file) for source in sources for file in graph_files(source)]
