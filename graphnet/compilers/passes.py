"""Passes of the compilers themselves: named settings, and the library's own passes, given beside GraphIR passes.

A pass `<compiler>.<name>` is a variant's settings (`onnxruntime.basic`, `jax.fast-math`) or else a pass of the library
by its own name (`tvm.FoldConstant`). `register_pass` gives settings or a function a name. A pass acts on jobs of its
compiler alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from graphnet.compilers import registry
from graphnet.compilers.base import DEFAULT_PASS, Option
from graphnet.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any] | str)


class NativePass(NamedTuple):
    """What a pass of a compiler comes to: settings, or a pass that its library runs."""

    compiler: str
    options: Mapping[str, Option] = {}
    library: str = ""
    """A name that the compiler's file knows, or `module:function` of a function that the library calls."""


_REGISTERED: dict[str, NativePass] = {}


@overload
def register_pass(name: str, *, compiler: str = "") -> Callable[[F], F]: ...
@overload
def register_pass(name: str, function: F, *, compiler: str = "") -> F: ...
@overload
def register_pass(name: str, *, compiler: str, options: Mapping[str, Option]) -> None: ...
def register_pass(
    name: str,
    function: Callable[..., Any] | str | None = None,
    *,
    compiler: str = "",
    options: Mapping[str, Option] | None = None,
) -> Any:
    """Make a pass known by `name`; a later one of that name replaces it.

    Without `compiler` it is a pass over GraphIR: `register_pass("name")` decorates a function that takes a valid graph
    and returns an equivalent valid graph with the same inputs and outputs.

    With `compiler` it is one of that compiler: `options` that it sets (`{"xla_flags": "--xla_..."}`), or a `function`
    that its library runs (a TVM pass, an OpenVINO transformation), which the compiler's own process must find again:
    it is importable, or given as `module:function`. Raises UsageError.
    """
    if name == DEFAULT_PASS:
        raise UsageError(f"the pass name '{DEFAULT_PASS}' stands for the compiler's own optimisations")
    if not compiler:
        from graphnet.rewrite import passes  # imports much

        if options is not None or isinstance(function, str):
            raise UsageError(f"pass '{name}': options and 'module:function' are for a pass of a compiler; name it")
        _REGISTERED.pop(name, None)
        return passes.register_pass(name, function) if function else passes.register_pass(name)
    registry.check_name(compiler)

    def register(function: Callable[..., Any] | str) -> Callable[..., Any] | str:
        _REGISTERED[name] = NativePass(compiler, library=_reference(name, function))
        return function

    if options is None:
        return register if function is None else register(function)
    if function is not None:
        raise UsageError(f"pass '{name}' of compiler '{compiler}' has either options or a function, not both")
    _REGISTERED[name] = NativePass(compiler, dict(options))
    return None


def find(name: str) -> NativePass | None:
    """The pass of that name, None if it is no compiler's; a library pass is only looked up when its compiler runs."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    compiler, dot, own = name.partition(".")
    if not dot or compiler not in registry.names():
        return None
    options = registry.variants(compiler).get(own)
    return NativePass(compiler, options) if options is not None else NativePass(compiler, library=own)


def known() -> list[str]:
    """Registered names and the compilers' named settings; a library's own passes are listed by its compiler."""
    settings = [f"{compiler}.{name}" for compiler in registry.BUILTIN for name in registry.variants(compiler)]
    return [*_REGISTERED, *settings]


def resolve(compiler: str, passes: Collection[str]) -> tuple[dict[str, Option], tuple[str, ...]]:
    """Options and library passes of `compiler` (no variant) that `passes` come to, later ones over earlier ones.

    Library passes keep their order, with `default` at its place among them; empty if there are none.
    """
    options: dict[str, Option] = {}
    library: list[str] = []
    for name in passes:
        found = find(name)
        if name == DEFAULT_PASS:
            library.append(name)
        elif found is not None and found.compiler == compiler:
            options.update(found.options)
            library += [found.library] if found.library else []
    return options, tuple(library) if set(library) - {DEFAULT_PASS} else ()


def _reference(name: str, function: Callable[..., Any] | str) -> str:
    if isinstance(function, str):
        return function
    module, qualified = getattr(function, "__module__", "__main__"), getattr(function, "__qualname__", "")
    if module == "__main__" or not qualified.isidentifier():
        raise UsageError(
            f"pass '{name}': the compiler's process must find the function again, so define it at the top of a module"
            f" that can be imported, not in {module}"
        )
    return f"{module}:{qualified}"
