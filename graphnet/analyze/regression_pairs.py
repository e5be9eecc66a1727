"""Which results of a baseline and of a current run are a pair, and in what the environments of pairs are unlike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from graphnet.analyze.differences import ABSENT, Difference
from graphnet.analyze.groups import sizes, variant
from graphnet.errors import UsageError
from graphnet.evaluate.records import Environment, Result

Key = tuple[str, ...]
"""Graph and compiler, then what else must be equal in a pair."""


class Pair(NamedTuple):
    """A graph on a compiler in both sets; one side is None where that set has no such result."""

    base: Result | None
    current: Result | None
    conditions: str = ""
    """Sizes and settings, where they tell this pair from another of the same graph and compiler."""

    @property
    def known(self) -> Result:
        """The current result, else that of the baseline."""
        found = self.current or self.base
        assert found is not None
        return found


def pairs(baseline: Sequence[Result], current: Sequence[Result], *, bare: bool = False) -> tuple[list[Pair], int]:
    """Every pair, those of the baseline first; and how many results gave way to newer ones of the same pair.

    Paired are results of the same graph (by name), compiler, sizes, device, precision, passes, seed and options. Thread
    counts and graph ids must be equal only where a set has several: elsewhere unlike threads are told by `unlike`.
    A `bare` baseline knows graph and compiler alone. Raises UsageError where such a one could mean several results.
    """
    telling = () if bare else [name for name in _TELLING if _several(name, baseline) or _several(name, current)]
    if bare:
        _require_single(current)
    before, after = _newest(baseline, telling, bare), _newest(current, telling, bare)
    keys = list(dict.fromkeys([*before, *after]))
    told = _conditions(keys)
    found = [Pair(before.get(key), after.get(key), told[key]) for key in keys]
    return found, len(baseline) + len(current) - len(before) - len(after)


_TELLING = ("id", "threads")


def _told(name: str, result: Result) -> str:
    return f"id {result.graph_id or 'none'}" if name == "id" else f"{result.target.threads} thread(s)"


def _key(result: Result, telling: Iterable[str] = ()) -> Key:
    target = result.target
    return (
        result.graph, result.compiler, sizes(result) or "no dimensions", target.device, target.precision,
        f"passes {'+'.join(result.passes) or 'none'}", f"seed {result.seed}", variant(result) or "no options",
        *(_told(name, result) for name in telling),
    )  # fmt: skip


def _several(name: str, results: Iterable[Result]) -> bool:
    seen: dict[Key, str] = {}
    return any(seen.setdefault(_key(result), _told(name, result)) != _told(name, result) for result in results)


def _newest(results: Iterable[Result], telling: Iterable[str], bare: bool) -> dict[Key, Result]:
    """By key, in the order in which each key first appears."""
    found: dict[Key, Result] = {}
    for result in results:
        key = _key(result)[:2] if bare else _key(result, telling)
        if key not in found or result.started >= found[key].started:
            found[key] = result
    return found


def _require_single(results: Iterable[Result]) -> None:
    seen: dict[Key, Key] = {}
    for result in results:
        key = _key(result, _TELLING)
        if seen.setdefault(key[:2], key) != key:
            raise UsageError(
                f"several results of {result.graph} on {result.compiler}, at unlike sizes or settings: a baseline of"
                " bare medians does not say which one it means. Make it with `graphnet baseline`"
            )


def _conditions(keys: Iterable[Key]) -> Mapping[Key, str]:
    groups: dict[Key, list[Key]] = {}
    for key in keys:
        groups.setdefault(key[:2], []).append(key)
    told: dict[Key, str] = {}
    for group in groups.values():
        differing = [index for index, values in enumerate(zip(*group, strict=True)) if len(set(values)) > 1]
        told |= {key: ", ".join(filter(None, (key[index] for index in differing))) for key in group}
    return told


def unlike(
    found: Iterable[Pair], baseline: Iterable[Environment], current: Iterable[Environment]
) -> tuple[Difference, ...]:  # fmt: skip
    """CPU model, threads and versions of the compilers' packages, where the two sides of some pair differ.

    What a side does not say is not compared. A machine whose facts are not known is told by its key.
    """
    before, after = ({item.key: item.cpu_model for item in side} for side in (baseline, current))
    seen: dict[str, dict[tuple[str, str], None]] = {}
    for base, new, _ in found:
        if base is not None and new is not None:
            for what, *values in _facts(base, new, before, after):
                if all(values) and values[0] != values[1]:
                    seen.setdefault(what, {})[values[0], values[1]] = None
    return tuple(Difference(what=what, values=_columns(values)) for what, values in seen.items())


def _facts(
    base: Result, current: Result, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:  # fmt: skip
    one, two = base.environment, current.environment
    if one in before and two in after:
        yield "CPU", before[one], after[two]
    else:
        yield "machine", one, two
    if base.versions or one:  # bare medians have no threads
        yield "threads", str(base.target.threads), str(current.target.threads)
    for package in [*base.versions, *(name for name in current.versions if name not in base.versions)]:
        if base.versions and current.versions:
            yield package, base.versions.get(package) or ABSENT, current.versions.get(package) or ABSENT


def _columns(values: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(", ".join(dict.fromkeys(column)) for column in zip(*values, strict=True))
