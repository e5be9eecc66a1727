"""Cells of the summary: what is resolved, and what only looks like a speed-up."""

from __future__ import annotations

import msgspec

from graphnet.evaluate.records import Environment, Floor, Result
from graphnet.report.grid import LEGEND, grid
from graphnet.report.summary import summary
from tests.analyze.raced import result

DRIFT = [1000.0, 1500.0, 800.0, 2000.0, 900.0, 1200.0, 3000.0, 1100.0]
FLOOR = Floor(threads=1, pairs=9, spread=0.02, sequential=0.05, median=0, p95=0, sequential_p95=0, covered=1)
MACHINE = Environment(key="m", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", floors=(FLOOR,))
BASE = result(DRIFT, compiler="torch")


def cell(other: Result, *environments: Environment) -> str:
    return grid([BASE, other], environments=environments).rows[0][1][1].text


def test_turns_resolve_what_drift_would_hide() -> None:
    paired = result([us / 1.03 for us in DRIFT])
    assert cell(paired) == "1.12 (1.03x)"
    assert cell(msgspec.structs.replace(paired, timing=result(DRIFT, race="y").timing)) == "1.15 (~1.00x)"


def test_a_speedup_within_the_floor_is_not_resolved() -> None:
    paired = result([us / 1.03 for us in DRIFT])
    assert cell(paired, MACHINE) == "1.12 (~1.03x)"
    assert cell(result([us / 1.05 for us in DRIFT]), MACHINE) == "1.1 (1.05x)"


def test_one_sample_resolves_nothing() -> None:
    base, other = result([1000.0], compiler="torch"), result([500.0])
    assert grid([base, other]).rows[0][1][1].text == "0.5 (~2.00x)"


def test_the_summary_tells_the_sign_and_the_floor() -> None:
    page = summary([BASE, result(DRIFT)], [MACHINE])
    assert f"\n\n{LEGEND}.\n\nNoise floor of this machine (1 thread, 9 pairs): median" in page
    assert "Noise floor of this machine (1 thread): not measured" in summary([BASE])
