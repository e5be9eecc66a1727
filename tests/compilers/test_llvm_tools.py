"""Finding LLVM's tools among several releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphnet.compilers import llvm_tools
from graphnet.errors import ToolNotFound


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(llvm_tools, "_FOLDERS", ())
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    find = llvm_tools.find
    find.cache_clear()
    yield tmp_path
    find.cache_clear()


def _tool(path: Path, text: str, status: int = 0) -> None:
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    path.chmod(0o755)


def test_the_newest_release_wins_whatever_its_name(tools: Path) -> None:
    _tool(tools / "graphnet-mca", "LLVM version 9.0.1")
    _tool(tools / "graphnet-mca-19", "Debian LLVM version 19.1.7\n  Host CPU: znver4")
    _tool(tools / "graphnet-mca-99x", "LLVM version 99.0.0")  # another program
    (tools / "graphnet-mca-98").write_text("not executable")
    assert llvm_tools.find("graphnet-mca") == str(tools / "graphnet-mca-19")
    assert llvm_tools.release(llvm_tools.find("graphnet-mca")) == 19


def test_a_tool_that_tells_no_release_is_none(tools: Path) -> None:
    _tool(tools / "graphnet-mca", "something else")
    with pytest.raises(ToolNotFound, match="graphnet-mca is absent; install llvm"):
        llvm_tools.find("graphnet-mca")


@pytest.mark.parametrize(("said", "cpu"), [("Host CPU: znver4", "znver4"), ("Host CPU: generic", ""), ("", "")])
def test_the_host_cpu_is_what_llvm_mca_finds(
    tools: Path, monkeypatch: pytest.MonkeyPatch, said: str, cpu: str
) -> None:  # fmt: skip
    _tool(tools / "tool", f"LLVM version 19.1.7\n{said}")
    monkeypatch.setattr(llvm_tools, "find", lambda name: str(tools / "tool"))
    assert llvm_tools.host_cpu() == cpu
