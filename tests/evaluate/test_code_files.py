"""Files of a job's code, and the worker that writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from graphnet.compilers import KernelCode
from graphnet.errors import StoreError
from graphnet.evaluate import code_files
from graphnet.evaluate.plan import Job, Limits
from graphnet.evaluate.runner import run

TOLD = {"job_key": "0123456789abcdef", "graph": "g", "compiler": "jax"}


def test_files_are_named_after_kernels_and_equal_code_is_written_once(tmp_path: Path) -> None:
    codes = [
        KernelCode(name="main$a/b", assembly="one", ir="ir"),
        KernelCode(name="main$a:b", assembly="two"),
        KernelCode(name="twin", assembly="one"),
        KernelCode(name="dot", library="Eigen"),
    ]
    index = code_files.write(tmp_path, codes, **TOLD)
    assert [(file.kernel, file.assembly, file.ir, file.library) for file in index.kernels] == [
        ("main$a/b", "main$a_b.s", "main$a_b.ll", ""),
        ("main$a:b", "main$a_b-2.s", "", ""),
        ("twin", "main$a_b.s", "", ""),
        ("dot", "", "", "Eigen"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "index.json", "main$a_b-2.s", "main$a_b.ll", "main$a_b.s",
    ]  # fmt: skip
    assert (tmp_path / "main$a_b.s").read_text() == "one"
    assert code_files.read(tmp_path / "index.json") == index
    assert index.coded


def test_what_is_too_big_is_left_out_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_files, "FILE_BYTES", 10)
    monkeypatch.setattr(code_files, "TOTAL_BYTES", 12)
    names = {"big": "x" * 11, "first": "a" * 8, "second": "b" * 8}
    codes = [KernelCode(name=name, assembly=text) for name, text in names.items()]
    big, first, second = code_files.write(tmp_path, codes, **TOLD).kernels
    assert (big.assembly, big.left_out) == ("", ".s of 11 bytes is over the limit of a file")
    assert (first.assembly, first.left_out) == ("first.s", "")
    assert (second.assembly, second.left_out) == ("", ".s of 8 bytes is over the limit of the job")


def test_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = code_files.folder_of(tmp_path, "my:Class/x", "../../g", "0123456789")
    assert folder == tmp_path / "my-Class-x" / "code" / "_.._g-01234567"
    (file,) = code_files.write(folder, [KernelCode(name="../../x", assembly="a")], **TOLD).kernels
    assert (folder / file.assembly).resolve().parent == folder.resolve()


@pytest.mark.parametrize("name", ["../secret.s", "/etc/hostname", "sub/a.s", "", "linked.s", "gone.s"])
def test_files_outside_of_the_folder_are_not_read(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "job"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path / "secret.s", folder / "sub" / "a.s", folder / "own.s"):
        place.write_text("text")
    (folder / "linked.s").symlink_to(tmp_path / "secret.s")
    assert code_files.text_of(folder, "own.s") == "text"
    with pytest.raises(StoreError, match="evaluate with --code again"):
        code_files.text_of(folder, name)


def test_a_damaged_index_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(StoreError, match="no code index"):
        code_files.read(tmp_path / "index.json")


@pytest.mark.parametrize("fault", ["", "code"])
def test_the_worker_writes_code_last_and_failing_costs_only_a_note(
    make_job: Callable[..., Job], limits: Limits, tmp_path: Path, fault: str
) -> None:
    job = msgspec.structs.replace(make_job(compiler="coded:Coded", fault=fault), code=str(tmp_path / "results"))
    (result,) = run([job], limits=limits)
    assert result.verdict == "ok", result.message
    found = code_files.indexes(tmp_path / "results")
    if fault:
        assert found == []
        assert result.notes[-1:] == ("getting the code failed: ValueError: no code today",)
    else:
        (path,) = found
        index = code_files.read(path)
        assert (index.job_key, index.graph, index.compiler) == (result.job_key, "g", "coded:Coded")
        assert path.parent.name == f"g-{result.job_key[:8]}"
        assert [file.kernel for file in index.kernels] == ["double"]
        assert (path.parent / "double.s").read_text() == "double:\n\tretq\n"


def test_a_program_without_code_is_told_apart(make_job: Callable[..., Job], limits: Limits, tmp_path: Path) -> None:
    (result,) = run([msgspec.structs.replace(make_job(), code=str(tmp_path))], limits=limits)
    assert result.verdict == "ok"
    (path,) = code_files.indexes(tmp_path)
    assert not code_files.read(path).coded
