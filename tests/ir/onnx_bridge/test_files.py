"""ONNX files that nobody vouches for: external data stays in the folder, limits hold, a crash is an error."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper, parser

from graphnet.errors import GraphFormatError
from graphnet.ir.graph import Graph, Normal
from graphnet.ir.onnx_bridge import files, from_onnx, save_onnx

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def external(name: str = "w", location: str = "w.bin", **entries: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def add_model(tensor: TensorProto | None = None) -> ModelProto:
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 23]> g (float[2, 3] x) => (float[2, 3] y) { y = Add(x, w) }'
    )
    if tensor is not None:
        proto.graph.initializer.append(tensor)
    return proto


def write(folder: Path, proto: ModelProto) -> Path:
    path = folder / "model" / "m.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.mark.parametrize("trusted", [True, False])
def test_external_data_beside_the_model(tmp_path: Path, trusted: bool) -> None:
    path = write(tmp_path, add_model(external(offset="8", length="24")))
    (path.parent / "w.bin").write_bytes(b"\0" * 8 + ARRAY.tobytes() + b"rest")
    graph = from_onnx(path, trusted=trusted)
    assert graph.name == "m"
    np.testing.assert_array_equal(graph.materialize()["w"], ARRAY)


def test_external_data_in_a_folder_below(tmp_path: Path) -> None:
    path = write(tmp_path, add_model(external(location="data/w.bin")))
    (path.parent / "data").mkdir()
    (path.parent / "data" / "w.bin").write_bytes(ARRAY.tobytes())
    np.testing.assert_array_equal(from_onnx(path, trusted=True).materialize()["w"], ARRAY)


def _link_parent(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "w.bin").write_bytes(ARRAY.tobytes())
    (folder / "model" / "link").symlink_to(folder / "elsewhere", target_is_directory=True)


def _link_file(folder: Path) -> None:
    (folder / "model" / "soft.bin").symlink_to(folder / "secret.bin")


def _hard_link(folder: Path) -> None:
    os.link(folder / "secret.bin", folder / "model" / "hard.bin")


def _nothing(folder: Path) -> None:
    pass


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "model" / "fifo")


@pytest.mark.parametrize(
    ("location", "prepare", "cause"),
    [
        ("../secret.bin", _nothing, "it may not leave the model's folder"),
        ("a/../../secret.bin", _nothing, "it may not leave the model's folder"),
        ("a/../w.bin", _nothing, "it may not leave the model's folder"),
        ("./w.bin", _nothing, "it may not leave the model's folder"),
        ("..\\secret.bin", _nothing, "it may not leave the model's folder"),
        ("/etc/hostname", _nothing, "only a path relative to the model's folder"),
        ("\\\\host\\share", _nothing, "only a path relative to the model's folder"),
        ("C:\\secret.bin", _nothing, "only a path relative to the model's folder"),
        ("C:secret.bin", _nothing, "only a path relative to the model's folder"),
        ("", _nothing, "only a path relative to the model's folder"),
        ("w\0.bin", _nothing, "only a path relative to the model's folder"),
        ("link/w.bin", _link_parent, "cannot be read"),
        ("soft.bin", _link_file, "cannot be read"),
        ("hard.bin", _hard_link, "no plain file, or a hard link"),
        ("fifo", _fifo, "no plain file, or a hard link"),
        ("absent.bin", _nothing, "cannot be read: No such file"),
        ("sub", lambda folder: (folder / "model" / "sub").mkdir(), "no plain file, or a hard link"),
    ],
)
def test_external_data_elsewhere_is_refused(
    tmp_path: Path, location: str, prepare: Callable[[Path], None], cause: str
) -> None:
    """CVE-2022-25882, CVE-2024-27318, CVE-2026-27489 and their kind."""
    (tmp_path / "secret.bin").write_bytes(ARRAY.tobytes())
    path = write(tmp_path, add_model(external(location=location)))
    prepare(tmp_path)
    with pytest.raises(GraphFormatError, match=cause) as caught:
        from_onnx(path, trusted=True)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        ({"offset": "-8"}, "has offset '-8'"),
        ({"offset": "1e3"}, "has offset '1e3'"),
        ({"length": "9" * 30}, "has length"),
        ({"offset": "25"}, "which has 24"),
        ({"length": "25"}, "which has 24"),
        ({"length": "23"}, r"tensor 'w' of \[2, 3\]"),
        ({"offset": "8", "length": "24"}, "which has 24"),
    ],
)
def test_external_data_has_its_bounds_checked(tmp_path: Path, entries: dict[str, str], cause: str) -> None:
    path = write(tmp_path, add_model(external(**entries)))
    (path.parent / "w.bin").write_bytes(ARRAY.tobytes())
    with pytest.raises(GraphFormatError, match=cause):
        from_onnx(path, trusted=True)


def _sparse(location: str) -> onnx.SparseTensorProto:
    sparse = onnx.SparseTensorProto(dims=[2, 3])
    sparse.values.CopyFrom(external(location=location))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.arange(6), "i"))
    return sparse


def _in_initializer(proto: ModelProto, location: str) -> None:
    proto.graph.initializer.append(external(location=location))


def _in_sparse_initializer(proto: ModelProto, location: str) -> None:
    proto.graph.sparse_initializer.append(_sparse(location))


def _in_sparse_indices(proto: ModelProto, location: str) -> None:
    sparse = onnx.SparseTensorProto(dims=[2, 3])
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(6, np.float32), "w"))
    sparse.indices.CopyFrom(external(location=location))
    proto.graph.sparse_initializer.append(sparse)


def _in_attribute(proto: ModelProto, location: str) -> None:
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(external(location=location))
    proto.graph.node.insert(0, node)


def _in_sparse_attribute(proto: ModelProto, location: str) -> None:
    node = helper.make_node("Constant", [], ["w"])
    attribute = node.attribute.add(name="sparse_value", type=AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.CopyFrom(_sparse(location))
    proto.graph.node.insert(0, node)


def _in_tensor_list(proto: ModelProto, location: str) -> None:
    proto.graph.node[0].attribute.add(name="list", type=AttributeProto.TENSORS).tensors.append(
        external(location=location)
    )


def _in_nested_graph(proto: ModelProto, location: str) -> None:
    graph = helper.make_graph([], "inner", [], [], [external(location=location)])
    proto.graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=graph))


def _in_function(proto: ModelProto, location: str) -> None:
    node = helper.make_node("Constant", [], ["w"])
    node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(external(location=location))
    proto.functions.append(helper.make_function("local", "f", [], ["w"], [node], [helper.make_opsetid("", 23)]))


def _in_training_info(proto: ModelProto, location: str) -> None:
    proto.training_info.add().algorithm.initializer.append(external(location=location))


@pytest.mark.parametrize(
    "carry",
    [
        _in_initializer, _in_sparse_initializer, _in_sparse_indices, _in_attribute, _in_sparse_attribute,
        _in_tensor_list, _in_nested_graph, _in_function, _in_training_info,
    ],
)  # fmt: skip
def test_every_carrier_of_tensors_is_walked(tmp_path: Path, carry: Callable[[ModelProto, str], None]) -> None:
    (tmp_path / "secret.bin").write_bytes(ARRAY.tobytes())
    proto = add_model()
    carry(proto, "../secret.bin")
    path = write(tmp_path, proto)
    with pytest.raises(GraphFormatError, match="it may not leave the model's folder"):
        from_onnx(path, trusted=True)


def test_external_data_of_a_model_in_memory_is_refused() -> None:
    with pytest.raises(GraphFormatError, match="tensor 'w' has its data in a file that was not loaded"):
        from_onnx(add_model(external()))


def test_size_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, add_model(external()))
    (path.parent / "w.bin").write_bytes(ARRAY.tobytes())
    size = path.stat().st_size
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", str(size + 23))
    with pytest.raises(GraphFormatError, match="external data beyond the limit"):
        from_onnx(path, trusted=True)
    monkeypatch.setenv("GRAPHNET_MAX_BYTES", str(size - 1))
    with pytest.raises(GraphFormatError, match=f"{size} bytes; at most {size - 1} are read"):
        from_onnx(path, trusted=True)


def test_a_sparse_bomb_is_refused() -> None:
    sparse = _sparse("x")
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(6, np.float32), "w"))
    sparse.dims[:] = [1 << 40]
    proto = add_model()
    proto.graph.sparse_initializer.append(sparse)
    with pytest.raises(GraphFormatError, match=r"sparse tensor .w. of .1099511627776. is too large"):
        from_onnx(proto)


@pytest.mark.parametrize("content", [b"", b"\xff\xff", b"not a model", b"\x08\x0a"])
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(GraphFormatError, match="not an ONNX model") as caught:
        from_onnx(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_errors_of_the_child_name_file_and_place(tmp_path: Path) -> None:
    path = write(tmp_path, add_model())
    with pytest.raises(GraphFormatError, match="'w' is used but not defined before") as caught:
        from_onnx(path)
    assert (caught.value.file, caught.value.where) == (str(path), "$.graph.node[0]")


def test_the_child_gets_every_option(tmp_path: Path) -> None:
    path = write(tmp_path, add_model(numpy_helper.from_array(ARRAY, "w")))
    graph = from_onnx(path, parameters=["w"], fills={"w": Normal(std=3.0)}, name="n", domain="vision")
    assert (graph.name, graph.domain) == ("n", "vision")
    assert graph.weights["w"].fill == Normal(std=3.0)


def test_a_missing_file_is_no_format_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        from_onnx(tmp_path / "absent.onnx")


@pytest.mark.parametrize(("code", "said"), [(-signal.SIGSEGV, "signal 11"), (3, "exit status 3")])
def test_a_crash_of_the_child_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    def crash(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, code, b"", b"terminate called")

    monkeypatch.setattr("graphnet.ir.onnx_bridge.files.subprocess.run", crash)
    path = write(tmp_path, add_model())
    with pytest.raises(GraphFormatError, match=f"ended its process .{said}.: terminate called") as caught:
        from_onnx(path)
    assert caught.value.file == str(path)


def test_a_child_that_takes_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHILD_SECONDS", 0.01)
    path = write(tmp_path, add_model())
    with pytest.raises(GraphFormatError, match=r"the import took more than 0\.01 s"):
        from_onnx(path)


def test_big_models_are_saved_with_external_data(tmp_path: Path) -> None:
    weight = np.arange(4096, dtype=np.float32).reshape(64, 64)
    proto = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 23]> g (float[n, 64] x) => (float[n, 64] y) { y = MatMul(x, w) }'
    )
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    graph = from_onnx(proto)
    save_onnx(graph, tmp_path / "big.onnx", graph.materialize())
    assert (tmp_path / "big.onnx").stat().st_size < 1024
    assert (tmp_path / "big.onnx.data").stat().st_size == weight.nbytes
    onnx.checker.check_model(tmp_path / "big.onnx", full_check=True)
    again = Graph.from_onnx(tmp_path / "big.onnx", name=graph.name)
    np.testing.assert_array_equal(again.materialize()["w"], weight)
    assert again.structure_hash() == graph.structure_hash()
