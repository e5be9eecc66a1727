"""Reading and writing: round trips, canonical bytes, limits, atomic replacement."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
import zstandard
from safetensors.numpy import load_file, save_file

from graphnet.errors import GraphFormatError
from graphnet.ir import fileio, tensors
from graphnet.ir.graph import (
    Body,
    Bytes,
    Constant,
    Dim,
    File,
    FloatAttr,
    Graph,
    Input,
    Node,
    Normal,
    Source,
    TensorAttr,
    Uniform,
    Value,
    Values,
    Weight,
)  # fmt: skip

F32 = Value(dtype="float32", shape=("n", 2))
GRAPH = Graph(
    name="étude",
    source=Source(package="own", config={"layers": 2, "bias": True, "eps": 1e-5}),
    dims={"n": Dim(min=1, max=9, default=3)},
    inputs=(Input(name="x", dtype="float32", shape=("n", 2)),),
    outputs=("y",),
    weights={
        'quo"ted': Weight(dtype="float32", shape=(2, 2), fill=Normal(std=0.5, min=-1.0)),
        "ids": Weight(dtype="int64", shape=(3,), fill=Values(data=(0, -1, 2**62)), role="constant"),
        "raw": Weight(dtype="int8", shape=(0,), fill=Bytes(data="eJwDAAAAAAE="), role="buffer"),
    },
    nodes=(
        Node(op="MatMul", name="", inputs=("x", 'quo"ted'), outputs=("v",)),
        Node(
            op="Odd",
            name="odd\u2020",
            domain="own",
            inputs=("v", "", "ids"),
            outputs=("", "y"),
            attrs={
                "i": -3, "f": 1.0, "s": "line\nbreak", "is": (1, 2), "fs": (0.5,), "none": (),
                "inf": FloatAttr(value="inf"),
                "t": TensorAttr(dtype="float64", shape=(), fill=Constant(value="nan")),
                "b": Body(outputs=("v",)),
            },
        ),
    ),
    values={"v": F32, "y": F32},
)  # fmt: skip


@pytest.mark.parametrize("suffix", [".json", ".json.zst"])
def test_round_trip(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"g{suffix}"
    GRAPH.save(path)
    assert Graph.load(path) == GRAPH
    assert os.listdir(tmp_path) == [path.name]
    assert fileio.dumps(Graph.load(path)) == fileio.dumps(GRAPH)


def test_equal_to_what_msgspec_and_json_make_of_it() -> None:
    assert json.loads(fileio.dumps(GRAPH)) == json.loads(msgspec.json.encode(GRAPH))
    assert fileio.loads(json.dumps(json.loads(fileio.dumps(GRAPH)), indent=3).encode()) == GRAPH


def test_one_line_for_each_item() -> None:
    lines = fileio.dumps(GRAPH).decode().splitlines()
    assert '{"op":"MatMul","name":"","inputs":["x","quo\\"ted"],"outputs":["v"]},' in lines
    assert '"y":{"dtype":"float32","shape":["n",2]}' in lines


def test_decode_errors_name_the_key_behind_msgspecs_dots() -> None:
    many = {f"w{i}": {"dtype": "float32", "shape": [1], "fill": {"kind": "normal"}} for i in range(100)}
    for place in (0, 57, 99):
        bad = {**many, f"w{place}": {**many["w0"], "shape": ["k"]}, "w_last": {"dtype": "?"}}
        text = json.dumps({"format": "graphnet/1", "name": "x", "nodes": 3, "weights": bad}).encode()
        with pytest.raises(GraphFormatError) as caught:
            fileio.loads(text.replace(b'"nodes": 3, ', b""), file="many.json")
        assert str(caught.value) == f"many.json: $.weights.w{place}.shape[0]: Expected `int`, got `str`"


def test_a_lost_weight_is_never_silent_whatever_the_spelling() -> None:
    text = fileio.dumps(GRAPH).replace(
        b'"ids":', b'"i\\u0064s":{"dtype":"bool","shape":[],"fill":{"kind":"normal"}},"ids":'
    )
    with pytest.raises(GraphFormatError, match=r"\$\.weights: key 'ids' is there twice"):
        fileio.loads(text)


def test_size_limit_holds_for_plain_and_decompressed_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = fileio.dumps(GRAPH)
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", str(len(data)))
    assert fileio.loads(zstandard.compress(data)) == GRAPH
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", str(len(data) - 1))
    for bytes_ in (data, zstandard.compress(data)):
        with pytest.raises(GraphFormatError, match="larger than"):
            fileio.loads(bytes_)
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", "2G")
    with pytest.raises(GraphFormatError, match="number of bytes"):
        fileio.loads(data)


def test_a_window_that_needs_much_memory_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    with pytest.raises(GraphFormatError, match="zstd"):
        fileio.loads(zstandard.ZstdCompressor(compression_params=parameters).compressobj().compress(b"x" * (1 << 20)))


def test_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path, tmp_path / "pipe.json"):
        with pytest.raises(GraphFormatError, match="not a regular file"):
            fileio.load(path)
    with pytest.raises(FileNotFoundError):
        fileio.load(tmp_path / "absent.json")


def test_an_invalid_graph_is_not_written(tmp_path: Path) -> None:
    bad = msgspec.structs.replace(GRAPH, outputs=("nowhere",))
    with pytest.raises(GraphFormatError, match="nowhere"):
        fileio.save(bad, tmp_path / "g.json")
    for spoilt in ({"framework": "\ud800"}, {"arithmetic_intensity": float("nan")}):
        with pytest.raises(GraphFormatError):
            fileio.save(msgspec.structs.replace(GRAPH, **spoilt), tmp_path / "g.json")
    with pytest.raises(GraphFormatError, match=r"\.json or \.json\.zst"):
        fileio.save(GRAPH, tmp_path / "g.onnx")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.json"
    path.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fileio.write_atomic(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["g.json"]


def test_readers_see_whole_files_only(tmp_path: Path) -> None:
    path, sizes = tmp_path / "g", {1 << 10, 1 << 20}
    fileio.write_atomic(path, b"a" * (1 << 10))
    stop = threading.Event()
    seen: set[int] = set()

    def watch() -> None:
        while not stop.is_set():
            seen.add(len(path.read_bytes()))

    reader = threading.Thread(target=watch)
    reader.start()
    for size in [*sizes] * 5:
        fileio.write_atomic(path, [b"a" * (size // 2)] * 2)
    stop.set()
    reader.join()
    assert seen <= sizes


def test_written_files_obey_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        fileio.write_atomic(tmp_path / "g", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "g").stat().st_mode) == 0o640


def with_file() -> Graph:
    weights = {
        "w": Weight(dtype="float32", shape=(2, 2), fill=File()),
        "e": Weight(dtype="bfloat16", shape=(3,), fill=File(), role="buffer"),
        "r": Weight(dtype="float32", shape=(2,), fill=Uniform()),
    }
    node = Node(op="MatMul", name="m", inputs=("x", "w"), outputs=("y",))
    return msgspec.structs.replace(GRAPH, weights=weights, nodes=(node,), values={"y": F32})


def elements() -> dict[str, np.ndarray]:
    return {
        "w": np.array([[1.5, -2.0], [0.0, 1e-30]], np.float32),
        "e": np.array([0.25, 0.5, 3.0], tensors.numpy_dtype("bfloat16")),
    }


def test_sidecar_round_trip_and_other_reader(tmp_path: Path) -> None:
    fileio.save(with_file(), tmp_path / "g.json.zst", tensors=elements())
    assert sorted(os.listdir(tmp_path)) == ["g.json.zst", "g.safetensors"]
    graph = fileio.load(tmp_path / "g.json.zst")
    for name, array in elements().items():
        found = graph.materialize()[name]
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()
    np.testing.assert_array_equal(load_file(tmp_path / "g.safetensors")["w"], elements()["w"])
    assert fileio.dumps(graph) == fileio.dumps(with_file())


def test_sidecar_is_copied_with_the_graph(tmp_path: Path) -> None:
    fileio.save(with_file(), tmp_path / "g.json", tensors=elements())
    (tmp_path / "sub").mkdir()
    fileio.save(fileio.load(tmp_path / "g.json"), tmp_path / "sub" / "other.json")
    assert (tmp_path / "sub" / "other.safetensors").read_bytes() == (tmp_path / "g.safetensors").read_bytes()
    fileio.save(fileio.load(tmp_path / "g.json"), tmp_path / "g.json")
    assert fileio.load(tmp_path / "g.json").materialize()["w"].tobytes() == elements()["w"].tobytes()


def test_sidecar_by_the_safetensors_library(tmp_path: Path) -> None:
    graph = with_file()
    graph = msgspec.structs.replace(graph, weights={name: w for name, w in graph.weights.items() if name != "e"})
    (tmp_path / "g.json").write_bytes(fileio.dumps(graph))
    save_file({"w": elements()["w"], "more": np.zeros(3)}, tmp_path / "g.safetensors", metadata={"by": "them"})
    np.testing.assert_array_equal(fileio.load(tmp_path / "g.json").materialize()["w"], elements()["w"])


def test_graph_without_its_file_says_so() -> None:
    with pytest.raises(GraphFormatError, match="not loaded from a file"):
        fileio.loads(fileio.dumps(with_file())).materialize()
    with pytest.raises(GraphFormatError, match="not loaded from a file"):
        fileio.save(with_file(), "never-written.json")
