"""Finding graphs by subset, folder and file."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet.dataset import catalog
from graphnet.errors import UsageError
from graphnet.ir.finalize import finalize
from graphnet.ir.graph import Graph, Input, Node, Value


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in ("vision/b.json", "vision/a.json.zst", "matmul/c.json"):
        file = tmp_path / "benchmark" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        node = Node(op="Relu", name="n", inputs=("x",), outputs=("y",))
        graph = Graph(
            name=file.name[0], inputs=(Input(name="x", dtype="float32", shape=(1,)),), outputs=("y",), nodes=(node,),
            values={"y": Value(dtype="float32", shape=(1,))},
        )  # fmt: skip
        finalize(graph).save(file)
    (tmp_path / "benchmark" / "vision" / "notes.txt").write_text("not a graph")
    monkeypatch.setenv("GRAPHNET_BENCHMARK", str(tmp_path / "benchmark"))
    return tmp_path / "benchmark"


def test_subset_folder_file_and_all(collection: Path) -> None:
    assert [graph.name for graph in catalog.load_graphs("vision")] == ["a", "b"]
    assert [graph.name for graph in catalog.load_graphs(collection / "matmul")] == ["c"]
    assert [graph.name for graph in catalog.load_graphs(collection / "vision" / "b.json")] == ["b"]
    assert [graph.name for graph in catalog.load_graphs()] == ["c", "a", "b"]


def test_unknown_place_lists_the_subsets(collection: Path) -> None:
    with pytest.raises(UsageError, match="'visions': give a file, a folder, or a subset \\(vision, transformer"):
        catalog.load_graphs("visions")


def test_folder_without_graphs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no graph files"):
        catalog.graph_files(tmp_path)


def test_absent_collection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHNET_BENCHMARK", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="set GRAPHNET_BENCHMARK"):
        catalog.load_graphs()
