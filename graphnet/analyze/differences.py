"""In what sets of results are unlike: machines, settings, versions. Ratios between them are not of programs alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from graphnet.evaluate.environment import FACTS
from graphnet.evaluate.records import Environment, Result

ABSENT = "-"
GIB = 1 << 30


class ResultsOf(msgspec.Struct, frozen=True, kw_only=True):
    """A set of results, by the name that the reader gave it."""

    label: str
    results: tuple[Result, ...]
    environments: tuple[Environment, ...] = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which the sets are unlike."""

    what: str
    values: tuple[str, ...]
    """One for each set, `-` where it has none; several values of one set are separated by commas."""


def differences(sets: Sequence[ResultsOf], told: Collection[str] = ()) -> tuple[Difference, ...]:
    """Machines, settings of the run, versions, then effective settings of each compiler that differ.

    A setting that differs as it was asked for is not told again for each compiler. `told` are settings by which results
    are told apart already. A compiler that a set has not is no difference.
    """
    facts = [_facts(found, told) for found in sets]
    found: list[Difference] = []
    for what in dict.fromkeys(name for each in facts for name in each):
        values = tuple(each.get(what, "") for each in facts)
        asked = what.partition(" of ")[0]
        if len(set(filter(None, values))) > 1 and asked not in {difference.what for difference in found}:
            found.append(Difference(what=what, values=tuple(value or ABSENT for value in values)))
    return tuple(found)


def _facts(found: ResultsOf, told: Collection[str]) -> dict[str, str]:
    facts = _machine(found)
    settings = {
        "device": (result.target.device for result in found.results),
        "threads": (str(result.target.threads) for result in found.results),
        "precision": (result.target.precision for result in found.results),
        "passes": ("+".join(result.passes) for result in found.results),
        "seed": (str(result.seed) for result in found.results),
    }
    facts |= {name: _joined(values) for name, values in settings.items() if name not in told}
    for package in dict.fromkeys(name for result in found.results for name in result.versions):
        facts[package] = _joined(result.versions.get(package, "") for result in found.results)
    compilers: dict[str, list[Result]] = {}
    for result in found.results:
        compilers.setdefault(result.compiler, []).append(result)
    for compiler, mine in compilers.items():
        facts |= _of_compiler(compiler, mine, told)
    return facts


def _machine(found: ResultsOf) -> dict[str, str]:
    """Facts of the machines that the results come from; their keys where the facts are not known."""
    keys = {result.environment for result in found.results if result.environment}
    known = sorted((item for item in found.environments if item.key in keys), key=lambda item: item.key)
    if len(known) < len(keys):
        return {"machine": ", ".join(sorted(keys))}
    described = [_described(environment) for environment in known]
    return {name: _joined(each[name] for each in described) for name in (described[0] if described else ())}


def _described(environment: Environment) -> Mapping[str, str]:
    return {
        "machine": environment.key,
        "CPU": environment.cpu_model,
        "CPUs": str(environment.cpu_count),
        "memory": f"{environment.memory_bytes / GIB:.0f} GiB",
        "system": environment.os,
        "Python": environment.python,
        "governor": environment.governor,
        "instruction sets": " ".join(environment.isa),
        **{name.replace("_", " "): environment.facts.get(name, "") for name in FACTS},
    }


def _of_compiler(compiler: str, results: Sequence[Result], told: Collection[str]) -> dict[str, str]:
    """Options and those effective settings that are the same for all of a compiler's graphs."""
    facts: dict[str, str] = {}
    if "options" not in told:
        facts[f"options of {compiler}"] = _joined(_options(result) or "none" for result in results)
    reporting = [result for result in results if result.settings]
    for name in dict.fromkeys(name for result in reporting for name in result.settings):
        values = {str(result.settings.get(name, "")) for result in reporting}
        if len(values) == 1 and name not in told:
            facts[f"{name} of {compiler}"] = values.pop()
    return facts


def _options(result: Result) -> str:
    options = (f"{name}={value}" for name, value in sorted(result.target.options.items()))
    return " ".join(filter(None, (result.target.spec, *options, ">".join(result.target.passes))))


def _joined(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, values)))
