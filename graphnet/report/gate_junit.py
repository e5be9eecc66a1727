"""The regression gate's report as JUnit XML: a suite for each compiler, a case for each graph."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from graphnet.analyze.regression import Gate, Row
from graphnet.report.gate_words import advice, graph_name, headline, milliseconds, q_text, ratio
from graphnet.report.html.text import visible

SKIPPED = frozenset({"unstable", "still failing", "added"})
"""Neither passed nor failed."""
_NO_XML = re.compile("[\ufffe\uffff]")


def gate_junit(found: Gate) -> bytes:
    """A document that the schema of Jenkins accepts. What could not be measured at all is one error."""
    root = Element("testsuites", name="graphnet gate")
    for compiler in sorted({row.pair.known.compiler for row in found.rows}):
        _suite(root, compiler, [row for row in found.rows if row.pair.known.compiler == compiler])
    if found.outcome == 2:
        suite = SubElement(root, "testsuite", name="gate", tests="1", failures="0", errors="1", skipped="0")
        case = SubElement(suite, "testcase", classname="graphnet.gate", name="measured")
        SubElement(case, "error", type="could not measure", message=_safe(headline(found))).text = _safe(
            "; ".join(advice(found))
        )
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(root: Element, compiler: str, rows: list[Row]) -> None:
    failed, skipped = sum(row.failed for row in rows), sum(row.status in SKIPPED for row in rows)
    suite = SubElement(
        root, "testsuite", name=_safe(compiler), tests=str(len(rows)), failures=str(failed), errors="0",
        skipped=str(skipped),
    )  # fmt: skip
    for row in rows:
        case = SubElement(suite, "testcase", classname=f"graphnet.{_safe(compiler)}", name=_safe(graph_name(row)))
        if row.after_s is not None:
            case.set("time", f"{row.after_s:.9f}")
        if row.failed:
            SubElement(case, "failure", type=row.status, message=_safe(_message(row)))
        elif row.status in SKIPPED:
            SubElement(case, "skipped", message=_safe(_message(row)))
        else:
            SubElement(case, "system-out").text = _safe(_message(row))


def _message(row: Row) -> str:
    parts = [row.status, row.note]
    if row.change:
        times = f"{milliseconds(row.before_s)} ms before, {milliseconds(row.after_s)} ms now"
        parts.append(f"ratio {ratio(row.change)}, threshold {row.threshold:g}, q {q_text(row)}, {times}")
    if row.live and row.live.ratio is not None:
        parts.append(f"taking turns {ratio(row.live)} in {row.live.races} races, {row.live.rounds} rounds")
    return "; ".join(filter(None, parts))


def _safe(text: str) -> str:
    """Without what XML has no way to write."""
    return _NO_XML.sub(lambda found: f"[U+{ord(found[0]):04X}]", visible(text))
