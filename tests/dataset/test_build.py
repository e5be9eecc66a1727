"""Building the collection: recipes, children, resumption, determinism, and the files that are committed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest

from graphnet.dataset import build, build_child, catalog, manifest, recipes
from graphnet.dataset.recipe import Recipe
from graphnet.errors import CaptureError, UsageError
from graphnet.ir import finalize
from graphnet.ir.graph import Constant, Domain, Graph, Input, Node, Value, Weight

FOLDER = Path(__file__).parents[2] / "benchmark"
FILES = sorted(FOLDER.rglob("*.json*"))
CODES = {
    "vision": "CV", "transformer": "TR", "matmul": "MM", "recommender": "RS", "science": "SC", "audio": "AU",
    "graph": "GR", "diffusion": "DF", "synthetic": "SY",
}  # fmt: skip


def test_ids_names_and_subsets_are_consistent() -> None:
    every = recipes.load()
    assert max(Counter(recipe.graph_id for recipe in every).values()) == 1
    assert max(Counter(recipe.file_name for recipe in every).values()) == 1
    for recipe in every:
        assert recipe.subset in get_args(Domain)
        assert re.fullmatch(rf"GN-2026-{CODES[recipe.subset]}-\d{{3}}", recipe.graph_id), recipe.graph_id
        assert recipe.license
        assert (recipe.factory is None) != (recipe.graph is None)


def test_the_core_set_is_large_enough() -> None:
    subsets = Counter(recipe.subset for recipe in recipes.load())
    assert subsets.pop("matmul") >= 12
    assert sum(subsets.values()) >= 48
    assert len(subsets) >= 7


def test_every_recipe_has_its_file_and_no_file_is_without() -> None:
    assert {file.relative_to(FOLDER).as_posix() for file in FILES} == {recipe.file_name for recipe in recipes.load()}
    assert {"vision/resnet50.json", "transformer/bert_base.json"} <= {
        file.relative_to(FOLDER).as_posix() for file in FILES
    }
    assert sum(file.stat().st_size for file in FILES) < 25e6


def test_selection_by_subset_name_and_id() -> None:
    assert {recipe.subset for recipe in recipes.load(subsets=["audio"])} == {"audio"}
    assert [recipe.name for recipe in recipes.load(names=["GN-2026-CV-001"])] == ["resnet50"]
    with pytest.raises(UsageError, match="no recipe for nonesuch"):
        recipes.load(names=["nonesuch"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_committed_graphs_are_valid_and_their_metadata_true(file: Path) -> None:
    graph = Graph.load(file)
    finalize.check(graph)
    assert graph.domain == file.parent.name
    assert graph.name == file.name.partition(".json")[0]
    assert graph.source.license
    assert graph.source.package
    if graph.domain != "matmul":
        assert graph.source.max_error is not None


def test_structures_are_distinct() -> None:
    hashes = Counter(graph.stored_hash for graph in catalog.load_graphs(FOLDER))
    assert max(hashes.values()) == 1


def test_files_are_complete_kept_and_rebuilt_equal(tmp_path: Path) -> None:
    lines: list[str] = []
    assert build.build(tmp_path, names=["gemv_4096"], progress=lines.append) == []
    target = tmp_path / "matmul/gemv_4096.json"
    first = target.read_bytes()
    assert first == (FOLDER / "matmul/gemv_4096.json").read_bytes()
    target.write_bytes(b"kept")
    build.build(tmp_path, names=["gemv_4096"], progress=lines.append)
    assert target.read_bytes() == b"kept"
    assert lines[-1] == "[1/1] matmul/gemv_4096: there already"
    build.build(tmp_path, names=["gemv_4096"], rebuild=True)
    assert target.read_bytes() == first
    assert (tmp_path / manifest.NAME).read_text().endswith("  matmul/gemv_4096.json\n")
    assert manifest.problems(tmp_path) == []
    assert [file.name for file in target.parent.iterdir()] == ["gemv_4096.json"]


def test_a_failure_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    recipe = msgspec.structs.replace(recipes.load(names=["gemv_4096"])[0], graph_id="GN-2026-MM-999")
    assert "no recipe for GN-2026-MM-999" in build.build_one(recipe, tmp_path / "x.json")
    assert build.build_one(recipe, tmp_path / "x.json", time_limit=0.05) == "not done after 0.05 s"
    assert list(tmp_path.iterdir()) == []


def _constant(value: float) -> Recipe:
    def graph() -> Graph:
        return Graph(
            name="g",
            inputs=(Input(name="x", dtype="float32", shape=(2,)),),
            outputs=("y",),
            weights={"w": Weight(dtype="float32", shape=(2,), fill=Constant(value=value))},
            nodes=(
                Node(op="Sub", name="zero", inputs=("x", "x"), outputs=("z",)),
                Node(op="Add", name="sum", inputs=("z", "w"), outputs=("y",)),
            ),
            values={name: Value(dtype="float32", shape=(2,)) for name in "zy"},
        )

    return Recipe(
        graph_id="GN-2026-SY-001", name="g", subset="synthetic", package="own", model="m", license="MIT", graph=graph
    )


def test_dead_and_exploding_graphs_are_refused() -> None:
    with pytest.raises(CaptureError, match="g: outputs change by 0 at most when the inputs do"):
        build_child.capture(_constant(1.0))
    with pytest.raises(CaptureError, match=r"g: output 'y' reaches 1e\+05"):
        build_child.capture(_constant(1e5))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "graphsage", "electra_small"])
def test_captures_are_rebuilt_bit_for_bit(name: str, tmp_path: Path) -> None:
    assert build.build(tmp_path, names=[name]) == []
    (file,) = tmp_path.rglob("*.json")
    assert file.read_bytes() == (FOLDER / file.relative_to(tmp_path)).read_bytes()


def test_matmul_graphs_compute_the_product() -> None:
    from graphnet.frontends import check
    from graphnet.ir import tensors

    graph = Graph.load(FOLDER / "matmul/linear_128x768x3072.json")
    weights, inputs = tensors.weights(graph, 0), tensors.inputs(graph, 0)
    (got,) = check.run(graph, inputs, weights)
    expected = inputs["a"].astype(np.float64) @ weights["weight"].astype(np.float64).T + weights["bias"]
    assert check.relative_error(got, expected) < 1e-6
    assert graph.cost().flops == 2 * 128 * 768 * 3072
