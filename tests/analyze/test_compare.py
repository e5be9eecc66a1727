"""Sets of results side by side, on records whose ratios are worked out by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from graphnet.analyze.compare import compare
from graphnet.analyze.differences import ResultsOf
from graphnet.analyze.stats import median_ratio, ratio_interval
from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate.records import Environment, Floor, Result, Timing
from tests.analyze import raced

MACHINE = Environment(key="m1", cpu_model="EPYC", cpu_count=2, memory_bytes=8 << 30, os="Linux", python="3.11")
OTHER = Environment(key="m2", cpu_model="Xeon", cpu_count=2, memory_bytes=8 << 30, os="Linux", python="3.11")


def record(graph: str, compiler: str, ms: float = 0, **fields: object) -> Result:
    plain = Result(
        run_id="r", graph_id="", graph=graph, subset="vision", structure_hash=graph, compiler=compiler,
        target=Target(), verdict="ok" if ms else "timeout", stage=None if ms else "compile", environment="m1",
        timing=Timing(samples_ns=(round(ms * 1e6),) * 5) if ms else None, versions={compiler: "1.0"},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def of(*results: Result, label: str = "set", environments: tuple[Environment, ...] = (MACHINE,)) -> ResultsOf:
    return ResultsOf(label=label, results=results, environments=environments)


def test_ratio_is_time_over_time_in_the_first_set() -> None:
    found = compare([of(record("a", "jax", 4)), of(record("a", "jax", 3)), of(record("a", "jax", 8))])
    (row,) = found.rows
    assert [cell and cell.ratio for cell in row.cells] == [None, 0.75, 2.0]
    assert [cell and cell.seconds for cell in row.cells] == pytest.approx([0.004, 0.003, 0.008])
    assert [(cell.low, cell.high) for cell in row.cells[1:] if cell] == [(0.75, 0.75), (2.0, 2.0)], "no spread"
    assert (row.changed, row.missing, found.differences) == (False, False, ())


def test_mean_is_over_what_is_ok_in_every_set() -> None:
    first = of(record("a", "jax", 4), record("b", "jax", 4), record("c", "jax", 4), record("a", "tvm", 1))
    second = of(record("a", "jax", 2), record("b", "jax", 8), record("c", "jax", 1), record("a", "tvm", 9))
    third = of(record("a", "jax", 4), record("b", "jax", 1), record("c", "jax"), record("a", "tvm", 1))
    by_compiler = {mean.compiler: mean for mean in compare([first, second, third]).means}
    assert by_compiler["jax"].count == 2, "c has no time in the third set"
    assert by_compiler["jax"].ratios == pytest.approx((1.0, 0.5))  # sqrt(1/2 * 2), sqrt(1 * 1/4)
    assert by_compiler[""].count == 3
    assert by_compiler[""].ratios == pytest.approx((9 ** (1 / 3), 0.25 ** (1 / 3)))


def test_missing_and_changed_are_rows_too() -> None:
    found = compare(
        [
            of(record("a", "jax", 4), record("b", "jax", 4), record("c", "jax")),
            of(record("a", "jax"), record("c", "jax"), record("d", "jax", 1)),
        ]
    )
    assert [(row.graph, row.changed, row.missing) for row in found.rows] == [
        ("a", True, False),
        ("b", False, True),
        ("c", False, False),
        ("d", False, True),
    ]
    assert [cell and cell.outcome for cell in found.rows[0].cells] == ["ok", "timeout (compile)"]
    assert found.means[0].count == 0
    assert found.means[0].ratios == ()


def test_unlike_machines_threads_and_versions_are_named() -> None:
    second = record("a", "jax", 4, environment="m2", target=Target(threads=2), versions={"jax": "1.1"})
    found = compare([of(record("a", "jax", 4)), of(second, environments=(OTHER,))])
    assert {difference.what: difference.values for difference in found.differences} == {
        "machine": ("m1", "m2"),
        "CPU": ("EPYC", "Xeon"),
        "threads": ("1", "2"),
        "jax": ("1.0", "1.1"),
    }
    assert found.rows[0].cells[1] is not None
    assert found.rows[0].cells[1].ratio == 1.0, "compared all the same"


def test_settings_of_the_system_are_named_where_both_tell_them() -> None:
    def on(environment: Environment, **facts: str) -> ResultsOf:
        return of(
            record("a", "jax", 4, environment=environment.key),
            environments=(msgspec.structs.replace(environment, facts=facts),),
        )

    found = compare([on(MACHINE, turbo="on", huge_pages="always"), on(MACHINE, turbo="off", smt="on")])
    assert [(item.what, item.values) for item in found.differences] == [("turbo", ("on", "off"))]


def test_machines_without_facts_are_told_by_their_keys() -> None:
    found = compare([of(record("a", "jax", 4)), of(record("a", "jax", 4, environment="m2"), environments=())])
    assert [(item.what, item.values) for item in found.differences] == [("machine", ("m1", "m2"))]


def test_a_compiler_that_one_set_has_not_is_no_difference() -> None:
    found = compare([of(record("a", "jax", 4), record("a", "tvm", 4)), of(record("a", "jax", 4))])
    assert found.differences == ()


def test_effective_settings_are_compared_where_they_are_the_same_for_all_graphs() -> None:
    def ours(precision: str) -> ResultsOf:
        return of(
            record("a", "ov", 4, settings={"precision": precision, "kernels": 7}),
            record("b", "ov", 4, settings={"precision": precision, "kernels": len(precision)}),
        )

    found = compare([ours("f32"), ours("bf16")])
    assert [(item.what, item.values) for item in found.differences] == [("precision of ov", ("f32", "bf16"))]


def test_what_varies_in_a_set_tells_its_rows_apart() -> None:
    def both(factor: float) -> ResultsOf:
        return of(record("a", "jax", 4 * factor), record("a", "jax", 3 * factor, target=Target(threads=2)))

    found = compare([both(1), both(0.5)])
    assert [row.graph for row in found.rows] == ["a, threads 1", "a, threads 2"]
    assert [cell.ratio for row in found.rows for cell in row.cells[1:] if cell] == [0.5, 0.5]
    one = compare([both(1), of(record("a", "jax", 9, target=Target(threads=2)))])
    assert [row.missing for row in one.rows] == [True, False], "never the time of 2 threads over that of 1"


def test_sizes_are_never_mixed() -> None:
    found = compare([of(record("a", "jax", 4, dims={"batch": 1})), of(record("a", "jax", 4, dims={"batch": 8}))])
    assert [(row.graph, row.missing) for row in found.rows] == [("a batch=1", True), ("a batch=8", True)]


def test_another_graph_of_the_same_name_is_not_compared() -> None:
    found = compare([of(record("a", "jax", 4)), of(record("a", "jax", 2, structure_hash="other"))])
    (row,) = found.rows
    assert row.graph_changed
    assert row.cells[1] is not None
    assert row.cells[1].ratio is None
    assert found.means[0].count == 0


def test_one_set_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="at least two"):
        compare([of(record("a", "jax", 4))])


def test_interval_agrees_with_a_bootstrap_of_its_own() -> None:
    generator = np.random.default_rng(7)
    base, other = generator.normal(1000, 50, 60), generator.normal(1200, 50, 40)
    low, high = ratio_interval(list(map(int, base)), list(map(int, other))) or (0, 0)
    medians = [
        np.median(generator.choice(other, other.size)) / np.median(generator.choice(base, base.size))
        for _ in range(4000)
    ]
    assert (low, high) == pytest.approx(np.quantile(medians, (0.025, 0.975)), rel=0.01)
    assert low < (median_ratio(list(map(int, base)), list(map(int, other))) or 0) < high
    assert ratio_interval(list(map(int, base)), list(map(int, other))) == (low, high), "it repeats"


@pytest.mark.parametrize(("base", "other"), [([5], [5, 6]), ([5, 6], [5]), ([0, 0, 0], [1, 2, 3])])
def test_no_interval_of_too_few_samples(base: list[int], other: list[int]) -> None:
    assert ratio_interval(base, other) is None
    assert median_ratio([0, 0, 0], [1]) is None


def test_results_of_one_race_are_compared_by_rounds_and_floors_are_told() -> None:
    drift = [100.0, 150.0, 80.0, 200.0, 90.0, 120.0, 300.0, 110.0]
    floor = Floor(threads=1, pairs=9, spread=0.02, sequential=0.05, median=0, p95=0, sequential_p95=0, covered=1)
    machine = msgspec.structs.replace(MACHINE, key="m", floors=(floor,))
    first = of(raced.result(drift), environments=(machine,))
    second = of(raced.result([1.03 * us for us in drift]), raced.result(drift, environment="n", compiler="tvm"))
    found = compare([first, second])
    cell = found.rows[0].cells[1]
    assert cell is not None
    assert cell.ratio == pytest.approx(1.03)
    assert cell.rounds == 8
    assert (cell.low, cell.high) == pytest.approx((1.03 * np.exp(-0.0392), 1.03 * np.exp(0.0392)))
    assert [(item.machine, item.floor) for item in found.floors] == [("m", floor), ("n", None)]
