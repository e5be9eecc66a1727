"""Which results may be compared: those of one graph under the same settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphnet.evaluate.records import Result


class Settings(NamedTuple):
    """What two results must have in common to be compared, the graph and its sizes apart.

    A compiler's own target string and options are left out: the same ones make no sense for two compilers.
    """

    device: str
    threads: int
    precision: str
    passes: tuple[str, ...]
    seed: int
    environment: str

    def __str__(self) -> str:
        return (
            f"{self.device}, {self.threads} thread(s), {self.precision}, passes {'+'.join(self.passes) or 'none'},"
            f" seed {self.seed}, machine {self.environment or 'unknown'}"
        )


Key = tuple[Settings, str, str, tuple[tuple[str, int], ...]]
"""Settings, structure hash, graph id (or name) and sizes: results of unlike keys are never compared."""


def settings(result: Result) -> Settings:
    """The settings that a result was measured under."""
    target = result.target
    return Settings(target.device, target.threads, target.precision, result.passes, result.seed, result.environment)


def key(result: Result) -> Key:
    """Equal for results that may be compared."""
    return (
        settings(result), result.structure_hash, result.graph_id or result.graph, tuple(sorted(result.dims.items())),
    )  # fmt: skip


def by_settings(results: Iterable[Result]) -> dict[Settings, list[Result]]:
    """Results grouped by settings, in the order in which each first appears."""
    groups: dict[Settings, list[Result]] = {}
    for result in results:
        groups.setdefault(settings(result), []).append(result)
    return groups


def by_column(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by compiler; one that was run with several target strings or options has a group for each of them."""
    variants: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        variants.setdefault(result.compiler, {}).setdefault(variant(result), []).append(result)
    return {
        f"{compiler} {name}".rstrip() if len(found) > 1 else compiler: mine
        for compiler, found in variants.items()
        for name, mine in found.items()
    }


def sizes(result: Result) -> str:
    """Sizes of the symbolic dimensions: `batch=8 sequence=128`."""
    return " ".join(f"{name}={size}" for name, size in sorted(result.dims.items()))


def conditions(result: Result) -> str:
    """Everything that tells this result from another of the same compiler and graph."""
    return ", ".join(filter(None, (str(settings(result)), sizes(result), variant(result))))


def variant(result: Result) -> str:
    """Target string, options and the library's own passes: `O3 level=basic`; empty without any."""
    options = (f"{name}={value}" for name, value in sorted(result.target.options.items()))
    return " ".join(filter(None, (result.target.spec, *options, ">".join(result.target.passes))))
