"""Sidecars that must be refused: they leave the folder, are malformed, or do not agree with the graph."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from graphnet.errors import GraphFormatError
from graphnet.ir import fileio
from graphnet.ir.graph import File, Graph, Input, Node, Value, Weight

VALUE = Value(dtype="float32", shape=(2,))
GRAPH = Graph(
    name="g",
    inputs=(Input(name="x", dtype="float32", shape=(2,)),),
    outputs=("y",),
    weights={"w": Weight(dtype="float32", shape=(2,), fill=File())},
    nodes=(Node(op="Add", name="add", inputs=("x", "w"), outputs=("y",)),),
    values={"y": VALUE},
)
GOOD = {"w": np.ones(2, np.float32)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "g.json").write_bytes(fileio.dumps(GRAPH))
    return folder


def refused(folder: Path, cause: str) -> None:
    with pytest.raises(GraphFormatError, match=cause) as caught:
        fileio.load(folder / "g.json").materialize()
    assert "g.json" in str(caught.value)


def test_links_out_of_the_folder(folder: Path) -> None:
    save_file(GOOD, folder.parent / "outside.safetensors")
    for target in ("../outside.safetensors", folder.parent / "outside.safetensors", "../graphs/../outside.safetensors"):
        (folder / "g.safetensors").symlink_to(target)
        refused(folder, "leaves its folder")
        (folder / "g.safetensors").unlink()


def test_links_within_the_folder_and_to_it_are_fine(folder: Path) -> None:
    save_file(GOOD, folder / "shared.safetensors")
    (folder / "g.safetensors").symlink_to("shared.safetensors")
    (folder.parent / "alias").symlink_to(folder)
    for place in (folder, folder.parent / "alias"):
        np.testing.assert_array_equal(fileio.load(place / "g.json").materialize()["w"], GOOD["w"])


def test_absent_or_no_file(folder: Path) -> None:
    refused(folder, "need the sidecar 'g.safetensors'")
    os.mkfifo(folder / "g.safetensors")
    refused(folder, "not a regular file")


@pytest.mark.parametrize(
    ("tensors", "cause"),
    [
        ({"v": np.ones(2, np.float32)}, "no tensor 'w'"),
        ({"w": np.ones(2, np.float64)}, r"has F64\[2\], the weight is float32\[2\]"),
        ({"w": np.ones((1, 2), np.float32)}, r"has F32\[1, 2\], the weight is float32\[2\]"),
    ],
)
def test_disagreement(tensors: dict[str, np.ndarray], cause: str, folder: Path) -> None:
    save_file(tensors, folder / "g.safetensors")
    refused(folder, cause)


def header(entry: object) -> bytes:
    text = msgspec.json.encode({"w": entry})
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "truncated"),
        (b"\xff" * 8, "truncated"),
        (b"\x02" + b"\0" * 7 + b"[]", "bad safetensors header"),
        (b"\x02" + b"\0" * 7 + b"{}", "no tensor 'w'"),
        (header({"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}), "outside the file"),
        (header({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}) + b"1234", "wrong number of bytes"),
        (header({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}) + b"12345678", "outside the file"),
        (header({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}) + b"12345678", r"F32\[-2\]"),
        (header({"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}) + b"12345678", "bad safetensors header"),
    ],
)
def test_malformed(data: bytes, cause: str, folder: Path) -> None:
    (folder / "g.safetensors").write_bytes(data)
    refused(folder, cause)


def test_swapped_after_loading(folder: Path) -> None:
    save_file(GOOD, folder / "g.safetensors")
    graph = fileio.load(folder / "g.json")
    save_file({"w": np.ones(3, np.float32)}, folder / "g.safetensors")
    with pytest.raises(GraphFormatError, match=r"F32\[3\]"):
        graph.materialize()
    (folder / "g.safetensors").unlink()
    with pytest.raises(GraphFormatError, match="No such file"):
        graph.materialize()


def test_given_elements_must_agree(folder: Path) -> None:
    with pytest.raises(GraphFormatError, match=r"given elements are float64\[2\]"):
        fileio.save(GRAPH, folder / "h.json", tensors={"w": np.ones(2)})
    assert not (folder / "h.json").exists()
