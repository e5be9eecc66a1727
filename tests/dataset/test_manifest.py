"""The manifest: every file of a collection by its digest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from graphnet.dataset import manifest
from graphnet.errors import UsageError

FOLDER = Path(__file__).parents[2] / "benchmark"
FILES = ("vision/a.json", "vision/a.safetensors", "matmul/b.json.zst", "README.md")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / "c" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    manifest.write(tmp_path / "c")
    return tmp_path / "c"


def found(where: Path, root: Path) -> list[str]:
    return [problem.removeprefix(f"{root.resolve()}/") for problem in manifest.problems(where)]


def test_the_committed_collection_is_as_its_manifest_says() -> None:
    assert manifest.problems(FOLDER) == []
    assert len((FOLDER / manifest.NAME).read_text().splitlines()) >= 60


def test_sha256sum_reads_it(collection: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "-c", manifest.NAME], cwd=collection, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == sorted(f"{name}: OK" for name in FILES)


def test_missing_extra_and_altered_files(collection: Path) -> None:
    assert found(collection, collection) == []
    (collection / "matmul/b.json.zst").unlink()
    (collection / "vision/a.safetensors").write_text("vision/a.safetensorz")
    (collection / "vision/notes.txt").write_text("")
    assert found(collection, collection) == [
        "matmul/b.json.zst: missing",
        "vision/a.safetensors: altered",
        "vision/notes.txt: not in the manifest",
    ]


def test_a_subset_and_a_file_are_checked_alone(collection: Path) -> None:
    (collection / "matmul/b.json.zst").unlink()
    (collection / "vision/a.json").write_text("")
    assert found(collection / "vision", collection) == ["vision/a.json: altered"]
    assert found(collection / "vision/a.json", collection) == ["vision/a.json: altered"]


def test_without_a_manifest_nothing_is_wrong(collection: Path) -> None:
    (collection / manifest.NAME).unlink()
    assert manifest.problems(collection) == []


def test_a_damaged_manifest_is_named(collection: Path) -> None:
    (collection / manifest.NAME).write_text("no digest\n")
    with pytest.raises(UsageError, match=r"manifest\.sha256: 'no digest' is no line of sha256sum"):
        manifest.problems(collection)
