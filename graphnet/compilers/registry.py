"""The registry of compilers: one line each, their variants, and how a name such as `inductor:freezing` is read."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, NamedTuple

from graphnet.compilers.base import Compiler, Option
from graphnet.errors import CompilerNotFound, UsageError

GROUP = "graphnet.compilers"
"""Entry-point group of compilers that other packages bring."""
Options = Mapping[str, Option]


class Entry(NamedTuple):
    """Where a compiler is, and its named settings."""

    path: str
    """`module:Class`."""
    variants: Mapping[str, Options] = {}
    """Options that each variant stands for."""


BUILTIN: Mapping[str, Entry] = {
    "torch": Entry("graphnet.compilers.torch_eager:TorchEager"),
    "inductor": Entry(
        "graphnet.compilers.inductor.compiler:Inductor",
        {"freezing": {"freezing": True}, "max-autotune": {"mode": "max-autotune"}},
    ),
    "jax": Entry("graphnet.compilers.jax.compiler:Jax", {"fast-math": {"fast_math": True}}),
    "onnxruntime": Entry(
        "graphnet.compilers.onnxruntime:OnnxRuntime",
        {level: {"level": level} for level in ("disable", "basic", "extended")},
    ),
    "openvino": Entry("graphnet.compilers.openvino.compiler:OpenVino"),
    "tvm": Entry("graphnet.compilers.tvm.compiler:Tvm", {"untuned": {"schedule": "none"}, "tuned": {"tune": 60}}),
    "iree": Entry("graphnet.compilers.iree.compiler:Iree"),
    "tensorflow": Entry("graphnet.compilers.tensorflow.compiler:TensorFlow", {"grappler": {"jit": False}}),
    "tinygrad": Entry("graphnet.compilers.tinygrad.compiler:Tinygrad", {"beam": {"beam": 2}}),
    "tensorrt": Entry("graphnet.compilers.tensorrt:TensorRt"),
    "reference": Entry("graphnet.compilers.reference:Reference"),
    "null": Entry("graphnet.compilers.null:Null"),
}


def names() -> list[str]:
    """Every known compiler, built in or of the entry-point group; variants apart."""
    return [*BUILTIN, *(name for name in _points() if name not in BUILTIN)]


def split(name: str) -> tuple[str, str]:
    """Compiler and variant of `inductor:freezing`; `module:Class`, whose first part is no compiler, has none."""
    base, colon, variant = name.partition(":")
    return (base, variant) if colon and base in names() else (name, "")


def variants(base: str) -> Mapping[str, Options]:
    """Named settings of a compiler, with the options that each stands for; `base` has passed `check_name`.

    A compiler of another package has them in its attribute `variants`.
    """
    if base in BUILTIN:
        return BUILTIN[base].variants
    point = _points().get(base)
    found: Mapping[str, Options] = getattr(point.load(), "variants", {}) if point else {}
    return found


def check_name(name: str) -> None:
    """Raises UsageError for a name that is no known compiler, no known variant of one and no `module:Class`."""
    base, variant = split(name)
    if ":" in base:
        return
    if base not in names():
        raise UsageError(f"unknown compiler '{base}'; known: {', '.join(names())}")
    if variant not in ("", *variants(base)) or name.endswith(":"):
        known = ", ".join(f"{base}:{known}" for known in variants(base)) or "it has none"
        raise UsageError(f"compiler '{base}' has no variant '{variant}'; known: {known}")


def get(name: str) -> Compiler:
    """The compiler of that name (without a variant), or `module:Class` of an importable module.

    Raises UsageError (unknown) or CompilerNotFound (package missing).
    """
    point = None if name in BUILTIN else _points().get(name)
    if name not in BUILTIN and ":" not in name and point is None:
        raise UsageError(f"unknown compiler '{name}'; known: {', '.join(names())}")
    try:
        found: Compiler = (point.load() if point else _load(BUILTIN[name].path if name in BUILTIN else name))()
    except ModuleNotFoundError as error:
        raise CompilerNotFound(f"compiler '{name}' needs: pip install {_distribution(error.name)}") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise CompilerNotFound(f"compiler '{name}' cannot be imported: {error}") from error
    missing = [package for package, installed in versions(found).items() if not installed]
    if missing:
        raise CompilerNotFound(f"compiler '{name}' needs: pip install {' '.join(missing)}")
    return found


def versions(compiler: Compiler) -> dict[str, str]:
    """Installed version of each package of a compiler; `""` where it is missing."""
    return {package: _installed(package) for package in compiler.packages}


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


@cache
def _points() -> dict[str, EntryPoint]:
    """Compilers of other packages; to look for them reads the metadata of every installed one."""
    return {point.name: point for point in entry_points(group=GROUP)}


_DISTRIBUTIONS = {
    "tvm": "apache-tvm", "iree": "iree-base-compiler iree-base-runtime", "tensorflow": "tensorflow-cpu",
}  # fmt: skip
"""Where a module's distribution has another name."""


def _distribution(module: str | None) -> str:
    return _DISTRIBUTIONS.get(str(module).partition(".")[0], str(module))


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
