"""Names of compilers and variants, and what an absent package is called."""

from __future__ import annotations

import importlib.metadata
import sys
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from graphnet import compilers
from graphnet.compilers import registry
from graphnet.errors import CompilerNotFound, UsageError


class Plugin:
    name = "plugin"
    packages = ("numpy",)
    devices = ("cpu",)
    variants: ClassVar = {"fast": {"level": 3}}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A compiler of another package, as its entry point would announce it."""
    module = types.ModuleType("a_plugin")
    module.Plugin = Plugin  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_plugin", module)
    point = importlib.metadata.EntryPoint("plugin", "a_plugin:Plugin", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    registry._points.cache_clear()
    yield
    registry._points.cache_clear()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("inductor", ("inductor", "")),
        ("inductor:freezing", ("inductor", "freezing")),
        ("mine:Compiler", ("mine:Compiler", "")),
        ("pkg.sub:Compiler", ("pkg.sub:Compiler", "")),
    ],
)
def test_names_are_split(name: str, expected: tuple[str, str]) -> None:
    assert compilers.split(name) == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inducter", "unknown compiler 'inducter'; known: torch, inductor"),
        ("inductor:freeze", "'inductor' has no variant 'freeze'; known: inductor:freezing, inductor:max-autotune"),
        ("torch:fast", "'torch' has no variant 'fast'; known: it has none"),
        ("torch:", "'torch' has no variant ''"),
    ],
)
def test_unknown_names_list_the_known_ones(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compilers.check_name(name)


def test_every_builtin_variant_is_accepted() -> None:
    for base, entry in compilers.BUILTIN.items():
        for variant in entry.variants:
            compilers.check_name(f"{base}:{variant}")


@pytest.mark.usefixtures("plugin")
def test_a_compiler_of_another_package() -> None:
    assert "plugin" in compilers.names()
    assert compilers.split("plugin:fast") == ("plugin", "fast")
    compilers.check_name("plugin:fast")
    assert compilers.variants("plugin") == {"fast": {"level": 3}}
    assert compilers.get("plugin").packages == ("numpy",)
    with pytest.raises(UsageError, match="no variant 'slow'; known: plugin:fast"):
        compilers.check_name("plugin:slow")


def test_an_absent_module_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "graphnet.compilers.tvm.compiler":
                raise ModuleNotFoundError("No module named 'tvm'", name="tvm")

    monkeypatch.delitem(sys.modules, "graphnet.compilers.tvm.compiler", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(CompilerNotFound, match="compiler 'tvm' needs: pip install apache-tvm"):
        compilers.get("tvm")


def test_an_absent_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_installed", lambda package: "" if package == "onnx" else "1")
    with pytest.raises(CompilerNotFound, match=r"compiler 'onnxruntime' needs: pip install onnx$"):
        compilers.get("onnxruntime")
