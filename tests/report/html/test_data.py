"""The data that the page embeds, against hand calculation."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from graphnet.analyze.score import scores
from graphnet.compilers import Kernel
from graphnet.evaluate.records import CompileTime, Environment, Floor, Result
from graphnet.report.html.data import LEVELS, Cell, Overview, overview
from graphnet.report.html.details import KERNELS, OPERATORS, details
from graphnet.report.html.graphs import OTHER, GraphFacts
from graphnet.report.html.text import visible
from tests.analyze import raced
from tests.report.html.samples import HOSTILE, MIB, record


def cell(found: Overview, row: int, column: int) -> Cell:
    it = found.groups[0].rows[row].cells[column]
    assert it is not None
    return it


@pytest.fixture
def found(results: list[Result], environment: Environment) -> Overview:
    known = GraphFacts(tier="micro", operators=120, parameters=None, weights={})
    return overview(results, [environment], "torch", {"alpha": known})


def test_unlike_settings_are_in_groups_of_their_own(found: Overview) -> None:
    assert [(group.settings["threads"], len(group.rows)) for group in found.groups] == [(1, 3), (2, 1)]
    second = found.groups[1].rows[0].cells
    assert [it.speedup for it in second if it] == [1.0, 3.0]


def test_rows_by_subset_and_columns_with_the_baseline_first(results: list[Result]) -> None:
    found = overview(results[::-1], [], "torch", {}).groups[1]
    assert found.columns == ("torch", visible(HOSTILE), "jax")
    assert found.baseline_columns == (0,)
    assert [row.label for row in found.rows] == ["beta", visible(HOSTILE), "alpha"]


def test_cells(found: Overview) -> None:
    jax = cell(found, 0, 1)
    assert (jax.verdict, jax.runs) == ("ok", 5)
    assert jax.speedup == pytest.approx(3.0)
    assert jax.median == jax.low == jax.high == pytest.approx(0.003)
    assert jax.payback == 100  # (1.6 - 1.0) s over (9 - 3) ms
    assert jax.memory["own"] == 80 * MIB
    crashed = cell(found, 0, 2)
    assert (crashed.verdict, crashed.stage, crashed.median, crashed.speedup, crashed.payback) == (
        "crashed", "compile", None, None, None,
    )  # fmt: skip
    assert cell(found, 2, 2).payback is None  # slower
    assert cell(found, 0, 0).payback is None  # the baseline itself


def test_graph_facts_and_the_machine(found: Overview) -> None:
    rows = {row.label: row for row in found.groups[0].rows}
    assert (rows["alpha"].tier, rows["alpha"].operators, rows["alpha"].parameters) == ("micro", 120, None)
    assert rows["beta"].tier == ""
    group = found.groups[0]
    assert group.environment["cpu_model"] == "EPYC <b>"
    assert group.environment["turbo"] == "off <b>"
    assert group.noise == (0.08, 0.08)
    assert group.verdicts[2] == {"ok": 2, "crashed": 1}


def test_scores_are_those_of_the_paper(found: Overview) -> None:
    score = found.groups[0].scores[2]
    assert score is not None
    samples = [(0.5, -5, None), (None, None, 3), (2.0, -5, None)]
    assert list(score.S) == [pytest.approx(scores(samples, t).S) for t in LEVELS]
    assert list(score.ES) == [pytest.approx(scores(samples, t).ES) for t in LEVELS]
    assert (score.graphs, score.left_out) == (3, 0)
    assert score.correct == pytest.approx(2 / 3)
    assert score.speedup == pytest.approx(1.0)


def test_warm_compilation_pays_back_sooner() -> None:
    warm = CompileTime(compile_s=1.057)
    base = msgspec.structs.replace(record("a", "torch", 9.0), warm_compile=CompileTime(compile_s=1.0))
    mine = msgspec.structs.replace(record("a", "jax", 3.0, compile_s=7.0), warm_compile=warm)
    found = cell(overview([base, mine], [], "torch", {}), 0, 1)
    assert (found.payback, found.warm_payback) == (1000, 10)
    assert found.warm_compile == pytest.approx(1.057)


def test_addresses_are_unique() -> None:
    twice = [record("a", "torch", 1.0), msgspec.structs.replace(record("a", "torch", 1.0), dims={"batch": 8})]
    other = msgspec.structs.replace(record("b", "torch", 1.0), graph_id="GN-c")
    same_id = msgspec.structs.replace(other, structure_hash="another")
    rows = overview([*twice, other, same_id], [], "torch", {}).groups[0].rows
    assert [row.slug for row in rows] == ["GN-a", "GN-a batch=8", "GN-c", "GN-c ~2"]


def test_details_are_in_the_order_of_the_overview(results: list[Result], found: Overview) -> None:
    embedded = details(results, "torch", {}, {})
    jobs = [[it.job if it else None for it in row] for row in embedded.groups[0]]
    assert jobs[0] == ["beta|torch|1", "beta|jax|1", visible(f"beta|{HOSTILE}|1")]
    assert [len(group) for group in embedded.groups] == [len(group.rows) for group in found.groups]
    first = embedded.groups[0][0][0]
    assert first is not None
    assert first.operators == {"k0": 5400.0, "k1": 2700.0}
    assert first.compile == (0.25, 0.5, 0.25)
    assert embedded.settings[first.settings] == {"device": "cpu", "fused": "true"}
    assert len(embedded.settings) == 1


def test_what_is_left_out_of_long_lists_is_summed() -> None:
    kernels = tuple(Kernel(name=f"k{i}", calls=1, total_us=float(i)) for i in range(1, 101))
    result = msgspec.structs.replace(record("a", "torch", 9.0), kernels=kernels)
    found = details([result], "torch", {}, {}).groups[0][0][0]
    assert found is not None
    assert [kernel.microseconds for kernel in found.kernels] == [float(100 - i) for i in range(KERNELS)]
    assert found.more_kernels == 100 - KERNELS
    assert found.more_microseconds == sum(range(1, 101 - KERNELS))
    assert found.operators[OTHER] == sum(range(1, 101 - OPERATORS))


def test_code_quality_is_joined_by_job() -> None:
    quality = SimpleNamespace(
        saturation=0.5, vector_share=None, fma_share=0.25, width_share=1.0, spills=0, library_share=None
    )
    found = details([record("a", "torch", 1.0)], "torch", {}, {"a|torch|1": quality}).groups[0][0][0]
    assert found is not None
    assert found.quality == {"saturation": 0.5, "fma_share": 0.25, "width_share": 1.0, "spills": 0}


def test_speedups_have_intervals_that_the_floor_widens() -> None:
    drift = [100.0, 150.0, 80.0, 200.0, 90.0, 120.0, 300.0, 110.0]
    base, other = raced.result(drift, compiler="torch"), raced.result([us / 1.03 for us in drift])
    floor = Floor(threads=1, pairs=9, spread=0.02, sequential=0.05, median=0, p95=0, sequential_p95=0, covered=1)
    machine = Environment(
        key="m", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", floors=(floor,)
    )  # fmt: skip
    found = overview([base, other], [machine], "torch", {})
    mine = cell(found, 0, 1)
    assert mine.speedup == pytest.approx(1.03, abs=1e-4), "samples are whole nanoseconds"
    assert (mine.speedup_low, mine.speedup_high) == pytest.approx((0.9904, 1.0712), abs=1e-3)
    assert (mine.rounds, mine.unresolved) == (8, True)
    assert found.groups[0].floor == floor
    plain = overview([base, other], [], "torch", {})
    assert (cell(plain, 0, 1).unresolved, plain.groups[0].floor) == (False, None)
    own = cell(found, 0, 0)
    assert (own.speedup, own.speedup_low, own.unresolved) == (1.0, None, False)
