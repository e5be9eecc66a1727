"""`python -m tests.conformance.report torch`: the pass rate of a compiler and every case that it does not pass."""

from __future__ import annotations

import sys
from collections import defaultdict

from graphnet import compilers
from tests.conformance import harness
from tests.conformance.isolated import Isolated


def main(names: list[str]) -> None:
    cases = harness.cases()
    for name in names:
        compiler = Isolated(name, compilers.Target(threads=1))
        failures: dict[str, list[str]] = defaultdict(list)
        for case in cases.values():
            try:
                harness.check(case, compiler.run(case))
            except Exception as error:
                failures[f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"].append(case.name)
        compiler.close()
        failed = sum(map(len, failures.values()))
        print(f"{name}: {len(cases) - failed} of {len(cases)} node tests pass ({1 - failed / len(cases):.1%})")
        for message, tests in sorted(failures.items(), key=lambda item: -len(item[1])):
            print(f"  {len(tests):4} {message}")
            print(f"       {', '.join(tests[:6])}{' ...' if len(tests) > 6 else ''}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["torch"])
