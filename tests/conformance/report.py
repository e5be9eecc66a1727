"""`python -m tests.conformance.report torch [--all]`: the pass rate of compilers and the cases that do not pass."""

from __future__ import annotations

import sys
from collections import defaultdict

from graphnet import compilers
from tests.conformance import harness
from tests.conformance.isolated import Isolated

SHOWN = 6


def main(arguments: list[str]) -> None:
    """With `--all` every case is named, not the first few of each kind."""
    names = [name for name in arguments if name != "--all"] or ["torch"]
    shown = None if "--all" in arguments else SHOWN
    for name in names:
        failures = failing(name)
        count, total = sum(map(len, failures.values())), len(harness.cases())
        print(f"{name}: {total - count} of {total} node tests pass ({1 - count / total:.1%})")
        for message, tests in sorted(failures.items(), key=lambda item: -len(item[1])):
            print(f"  {len(tests):4} {message}")
            print(f"       {', '.join(tests[:shown])}{' ...' if shown and len(tests) > shown else ''}")


def failing(name: str) -> dict[str, list[str]]:
    """Cases that a compiler does not pass, by what went wrong."""
    compiler = Isolated(name, compilers.Target(threads=1))
    failures: dict[str, list[str]] = defaultdict(list)
    for case in harness.cases().values():
        try:
            harness.check(case, compiler.run(case))
        except Exception as error:
            failures[f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"].append(case.name)
    compiler.close()
    return failures


if __name__ == "__main__":
    main(sys.argv[1:])
