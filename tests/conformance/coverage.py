"""`python -m tests.conformance.coverage` writes `docs/coverage.md`: compilers by operators, out of the gap tables.

The tables are strict (a case that passes against its gap fails the tests), so they say what was measured.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

from tests.conformance import harness
from tests.conformance.test_conformance import COMPILERS

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
WORDS = {"notimpl": "ours to do", "notyet": "the compiler's to do", "never": "not meant to pass"}
HEAD = """# Which operators which compiler runs

Written by `python -m tests.conformance.coverage` from the gap tables in `tests/conformance/`, which the tests hold
exact: every one of ONNX's own node tests (default domain, without training, sequence and string operators) passes with
its values, shapes and dtypes, or stands in its compiler's table and fails. `inductor` runs the lowering of `torch`.
"""
LEGEND = """
## Operators

Cases that pass of all cases of that operator; `all` where none is missing. Cases that an operator's function body makes
(`..._expanded`) are counted with the operators of the body.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The text of the page."""
    return "\n".join([HEAD, *_totals(), LEGEND, *_operators(), "", "## Gaps", "", *_gaps()]).rstrip() + "\n"


def _totals() -> list[str]:
    cases = list(harness.cases())
    rows = ["| compiler | node tests | pass | share | " + " | ".join(WORDS.values()) + " |", "| --- |" + " ---: |" * 6]
    for name in COMPILERS:
        found = [harness.gap_of(name, case) for case in cases]
        words = Counter(gap.word for gap in found if gap)
        passed = len(cases) - words.total()
        numbers = " | ".join(str(words[word]) for word in WORDS)
        rows.append(f"| {name} | {len(cases)} | {passed} | {passed / len(cases):.1%} | {numbers} |")
    return rows


def _operators() -> list[str]:
    by_operator: dict[str, list[str]] = defaultdict(list)
    for name, case in harness.cases().items():
        for operator in {node.op for node in case.graph.nodes}:
            by_operator[operator].append(name)
    rows = ["| operator | cases | " + " | ".join(COMPILERS) + " |", "| --- | ---: |" + " ---: |" * len(COMPILERS)]
    for operator, cases in sorted(by_operator.items()):
        passed = [sum(harness.gap_of(name, case) is None for case in cases) for name in COMPILERS]
        cells = ("all" if count == len(cases) else str(count) for count in passed)
        rows.append(f"| {operator} | {len(cases)} | {' | '.join(cells)} |")
    return rows


def _gaps() -> list[str]:
    lines = []
    for name in COMPILERS:
        by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
        for gap in harness.gaps(name):
            by_reason[WORDS[gap.word], gap.reason].append(gap.pattern)
        lines += [f"### {name}", ""]
        for (word, reason), patterns in by_reason.items():
            shown = ", ".join(f"`{pattern}`" for pattern in patterns[:4])
            more = f" and {len(patterns) - 4} more" if len(patterns) > 4 else ""
            lines.append(f"* {reason} ({word}): {shown}{more}")
        lines.append("")
    return lines


if __name__ == "__main__":
    main()
