"""Pass rates of compilers on ONNX's node tests, and the cases that do not pass.

python -m tests.conformance.report torch jax          # the first few names of each kind of failure
python -m tests.conformance.report torch --all        # every name
python -m tests.conformance.report torch --case 'test_gru_*'    # the whole message of each of these cases
python -m tests.conformance.report torch --gaps       # against the gap table: what fails or passes unexpectedly
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase

from graphnet import compilers
from tests.conformance import harness
from tests.conformance.isolated import Isolated

SHOWN, MESSAGE = 6, 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compilers", nargs="+")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--case", default="*")
    parser.add_argument("--gaps", action="store_true")
    options = parser.parse_args()
    for name in options.compilers:
        found = messages(name, options.case)
        failed = {case: message for case, message in found.items() if message}
        passed = len(found) - len(failed)
        print(f"{name}: {passed} of {len(found)} node tests pass ({passed / len(found):.1%})")
        if options.gaps:
            _compare(name, found)
        elif options.case == "*":
            _print_groups(failed, None if options.all else SHOWN)
        else:
            for case, message in found.items():
                print(f"{case}: {message or 'passes'}")


def messages(name: str, pattern: str = "*") -> dict[str, str]:
    """For each case what went wrong, `""` if it passes."""
    compiler = Isolated(name, compilers.Target(threads=1))
    found = {}
    for case in harness.cases().values():
        if not fnmatchcase(case.name, pattern):
            continue
        try:
            harness.check(case, compiler.run(case))
            found[case.name] = ""
        except Exception as error:
            found[case.name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    compiler.close()
    return found


def _compare(name: str, found: Mapping[str, str]) -> None:
    for case, message in found.items():
        gap = harness.gap_of(name, case)
        if message and gap is None:
            print(f"  no gap for {case}: {message[:MESSAGE]}")
        if not message and gap is not None:
            print(f"  passes, yet has gap '{gap.pattern}': {case}")


def _print_groups(failed: Mapping[str, str], shown: int | None) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    for case, message in failed.items():
        groups[message[:MESSAGE]].append(case)
    for message, cases in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"  {len(cases):4} {message}")
        print(f"       {', '.join(cases[:shown])}{' ...' if shown and len(cases) > shown else ''}")


if __name__ == "__main__":
    main()
