from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import graphnet
from graphnet.evaluate import oracle


def test_outputs_come_back(tmp_path: Path) -> None:
    outputs = [
        np.array([1.5, np.nan]),
        np.array(3, np.int64),
        np.zeros((0, 2)),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array(["a", "bc"], object),
        *(np.array([float(i)]) for i in range(6)),
    ]
    oracle.write(tmp_path / "x.npz", outputs)
    back = oracle.read(tmp_path / "x.npz")
    assert len(back) == 12
    for ours, theirs in zip(outputs[:5] + outputs[6:], back[:5] + back[6:], strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert back[5].tolist() == ["a", "bc"]
    assert os.listdir(tmp_path) == ["x.npz"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        oracle.write(tmp_path / "x.npz", [np.zeros(2)])
    assert os.listdir(tmp_path) == []


def test_pickled_objects_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", np.array([{}], object))
    with pytest.raises(ValueError, match="allow_pickle"):
        oracle.read(tmp_path / "x.npz")


def test_key_tells_apart_graph_sizes_and_seed() -> None:
    names = {
        oracle.file_name("a", {}, 0),
        oracle.file_name("b", {}, 0),
        oracle.file_name("a", {"batch": 2}, 0),
        oracle.file_name("a", {}, 1),
    }
    assert len(names) == 4
    assert oracle.file_name("a", {"x": 1, "y": 2}, 0) == oracle.file_name("a", {"y": 2, "x": 1}, 0)


def test_key_tells_apart_what_made_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    before = oracle.file_name("a", {}, 0)
    monkeypatch.setattr(oracle, "code_digest", lambda: "other code")
    assert oracle.file_name("a", {}, 0) != before


def test_code_digest_is_of_the_oracle_and_not_of_other_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = oracle.code_digest.__wrapped__
    package = tmp_path / "graphnet"
    shutil.copytree(Path(graphnet.__file__).parent, package)
    before = digest(package)
    assert before == oracle.code_digest()
    (package / "lower" / "jax" / "ops.py").write_text("")
    (package / "evaluate" / "timing.py").write_text("")
    assert digest(package) == before
    seen = {before}
    for file in ("lower/torch/ops_nn.py", "lower/spectral.py", "compilers/reference.py", "ir/tensors.py"):
        (package / file).write_text("")
        seen.add(digest(package))
    monkeypatch.setattr(oracle, "version", lambda _: "0.0")
    seen.add(digest(package))
    assert len(seen) == 6


def test_cache_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHNET_CACHE", "here")
    assert oracle.cache_folder() == tmp_path / "here" / "reference"


def test_cache_is_in_the_home_folder_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHNET_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert oracle.cache_folder() == tmp_path / ".cache" / "graphnet" / "reference"


def test_longest_unused_are_dropped(tmp_path: Path) -> None:
    for index in range(4):
        file = tmp_path / f"{index}.npz"
        oracle.write(file, [np.zeros(10)])
        os.utime(file, (index, index))
    assert oracle.touch(tmp_path / "0.npz"), "used again"
    size = (tmp_path / "0.npz").stat().st_size
    oracle.evict(tmp_path, keep=tmp_path / "1.npz", limit=5 * size // 2)
    assert sorted(os.listdir(tmp_path)) == ["0.npz", "1.npz"]
    assert not oracle.touch(tmp_path / "3.npz")


def test_a_file_that_was_cut_off_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    oracle.write(file, [np.zeros(1000)])
    assert oracle.touch(file)
    file.write_bytes(file.read_bytes()[:-100])
    assert not oracle.touch(file)


def test_other_inputs_are_checked_than_timed() -> None:
    assert oracle.check_seed(7) != 7
