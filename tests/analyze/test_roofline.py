"""Utilizations and efficiency, worked out by hand on round figures."""

from __future__ import annotations

import msgspec
import pytest

from graphnet.analyze import roofline
from graphnet.compilers import Kernel, Target
from graphnet.evaluate.records import Environment, Memory, OutputError, Peaks, Result, Timing

PEAKS = Peaks(
    threads=1,
    flops={"float32": 100e9, "float64": 50e9},
    bandwidth={"L1": 200e9, "L2": 100e9, "DRAM": 10e9},
    sizes={"L1": 32_000, "L2": 1_000_000},
)
MACHINE = Environment(
    key="k", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3", peaks=(PEAKS,)
)  # fmt: skip


def result(**fields: object) -> Result:
    plain = Result(
        run_id="r", graph_id="g", graph="net", subset="vision", structure_hash="h", compiler="c", target=Target(),
        verdict="ok", flops=1_000_000_000, bytes=50_000_000, timing=Timing(samples_ns=(20_000_000,) * 5),
        environment="k",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def test_compute_bound_by_hand() -> None:
    """1 GFLOP and 50 MB in 20 ms: 50 of 100 GFLOP/s, 2.5 of 10 GB/s; at best it takes 10 ms."""
    found = roofline.of_result(result(), PEAKS)
    assert found.flops_utilization == pytest.approx(0.5)
    assert found.bandwidth_utilization == pytest.approx(0.25)
    assert found.roofline_efficiency == pytest.approx(0.5)
    assert found.intensity == pytest.approx(20.0)
    assert (found.bound, found.level, found.flags) == ("compute", "DRAM", ())


def test_memory_bound_by_hand() -> None:
    found = roofline.of_result(result(flops=10_000_000, bytes=160_000_000), PEAKS)
    assert found.bound == "memory"
    assert found.flops_utilization == pytest.approx(0.005)
    assert found.roofline_efficiency == found.bandwidth_utilization == pytest.approx(0.8)


def test_unknown_stays_unknown() -> None:
    found = roofline.of_result(result(flops=None), PEAKS)
    assert (found.flops_utilization, found.roofline_efficiency, found.intensity, found.bound) == (None,) * 4
    assert found.bandwidth_utilization == pytest.approx(0.25)
    found = roofline.of_result(result(bytes=None), PEAKS)
    assert (found.bandwidth_utilization, found.roofline_efficiency) == (None, None)
    assert found.flops_utilization == pytest.approx(0.5)
    for nothing in (roofline.of_result(result(), None), roofline.of_result(result(verdict="wrong"), PEAKS)):
        assert nothing == roofline.Roofline()
    assert roofline.of_result(result(), Peaks(threads=1)).roofline_efficiency is None


def test_a_graph_without_arithmetic_has_a_roofline_too() -> None:
    found = roofline.of_result(result(flops=0, bytes=100_000_000), PEAKS)
    assert found.flops_utilization == 0
    assert found.roofline_efficiency == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("size", "level"),
    [(1, "L1"), (32_000, "L1"), (32_001, "L2"), (1_000_000, "L2"), (1_000_001, "DRAM")],
)
def test_level_by_working_set(size: int, level: str) -> None:
    assert roofline.level_of(size, PEAKS) == level


def test_small_data_is_compared_with_its_cache() -> None:
    """500 kB in 10 us are 50 GB/s: five times DRAM, half of the L2 that holds them."""
    small = result(flops=1000, bytes=500_000, timing=Timing(samples_ns=(10_000,)))
    found = roofline.of_result(small, PEAKS)
    assert (found.level, found.flags) == ("L2", ())
    assert found.bandwidth_utilization == pytest.approx(0.5)
    large = msgspec.structs.replace(small, memory=Memory(weights=1_500_000, inputs=10, outputs=10))
    found = roofline.of_result(large, PEAKS)
    assert (found.level, found.flags) == ("DRAM", ("above peak",)), "its weights do not fit"
    assert found.bandwidth_utilization == pytest.approx(5.0)


def test_above_the_peak_is_flagged() -> None:
    found = roofline.of_result(result(timing=Timing(samples_ns=(9_000_000,))), PEAKS)
    assert found.flops_utilization == pytest.approx(10 / 9)
    assert found.roofline_efficiency == pytest.approx(10 / 9)
    assert found.flags == ("above peak",)
    exact = roofline.of_result(result(timing=Timing(samples_ns=(10_000_000,))), PEAKS)
    assert exact.flags == ()


def test_peak_of_the_dtype() -> None:
    double = result(outputs=(OutputError(name="y", dtype="float64", level=-9),))
    assert roofline.of_result(double, PEAKS).flops_utilization == pytest.approx(1.0)
    mixed = result(outputs=(*double.outputs, OutputError(name="z", dtype="float32", level=-9)))
    assert roofline.of_result(mixed, PEAKS).dtype == "float32"
    reduced = result(target=Target(precision="bfloat16"), outputs=(OutputError(name="z", dtype="float32", level=-3),))
    assert roofline.of_result(reduced, PEAKS).flops_utilization is None, "no bfloat16 peak was measured"


def test_kernels_by_their_border() -> None:
    kernels = (
        Kernel(name="a", calls=1, total_us=10.0, flops=500_000, bytes=20_000),
        Kernel(name="b", calls=1, total_us=1.0),
        Kernel(name="c", calls=1, total_us=0.0, flops=1, bytes=1),
    )
    a, b, c = (found for _, found in roofline.of_kernels(result(kernels=kernels), PEAKS))
    assert a.level == "L1"
    assert a.flops_utilization == pytest.approx(0.5)
    assert a.bandwidth_utilization == pytest.approx(0.01)
    assert (b.flops_utilization, b.bandwidth_utilization, b.roofline_efficiency) == (None, None, None)
    assert c.flops_utilization is None, "shorter than the profiler's clock"
    assert [found for _, found in roofline.of_kernels(result(kernels=kernels), None)] == [roofline.Roofline()] * 3


def test_peaks_are_those_of_machine_device_and_threads() -> None:
    assert roofline.peaks_of(result(), [MACHINE]) == PEAKS
    assert roofline.peaks_of(result(environment="other"), [MACHINE]) is None
    assert roofline.peaks_of(result(target=Target(threads=2)), [MACHINE]) is None
    assert roofline.peaks_of(result(target=Target(device="cuda")), [MACHINE]) is None


def test_balance_point() -> None:
    assert roofline.balance(PEAKS) == pytest.approx(10.0)
    assert roofline.balance(PEAKS, "float64", "L2") == pytest.approx(0.5)
    assert roofline.balance(PEAKS, "int8") is None
