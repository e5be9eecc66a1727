"""Peaks: what is kept of several measurements, where, and that each way of measuring counts what it moves."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from graphnet.compilers import Target
from graphnet.errors import UsageError
from graphnet.evaluate import bandwidth, caches, environment, machine, oracle, peaks, triad
from graphnet.evaluate.bandwidth import Figure
from graphnet.evaluate.records import Environment, Peaks, Result, Timing
from graphnet.evaluate.store import Store
from graphnet.ir.cost import graph_cost

OLD = Peaks(
    threads=2, flops={"float32": 90.0, "float64": 45.0}, bandwidth={"DRAM": 20.0}, sizes={"L1": 32},
    sources={"float32": "a", "float64": "a", "DRAM": "a"}, measured="2026-01-01",
)  # fmt: skip
NEW = Peaks(
    threads=2, flops={"float32": 95.0, "float64": 40.0}, bandwidth={"DRAM": 21.0, "L1": 99.0},
    sources={"float32": "b", "float64": "b", "DRAM": "b", "L1": "b"}, measured="2026-02-02",
)  # fmt: skip
BEST = Peaks(
    threads=2, flops={"float32": 95.0, "float64": 45.0}, bandwidth={"DRAM": 21.0, "L1": 99.0}, sizes={"L1": 32},
    sources={"float32": "b", "float64": "a", "DRAM": "b", "L1": "b"}, measured="2026-02-02",
)  # fmt: skip
MACHINE = Environment(key="k", cpu_model="c", cpu_count=2, memory_bytes=1, os="Linux", python="3")


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_highest_of_each_figure_is_kept_with_its_source() -> None:
    assert environment.merged_peaks((OLD,), (NEW,)) == (BEST,)
    assert environment.merged_peaks((NEW,), (OLD,)) == (BEST,)
    other = msgspec.structs.replace(OLD, threads=1)
    assert environment.merged_peaks((OLD,), (other,)) == (other, OLD)
    assert environment.merged_peaks((), (OLD,)) == (OLD,)


def test_a_store_keeps_the_highest_ever_told(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add_environment(MACHINE)
        for found in (OLD, NEW, OLD):
            store.add_environment(msgspec.structs.replace(MACHINE, peaks=(found,)))
        store.add_environment(MACHINE)
        assert store.environments() == [msgspec.structs.replace(MACHINE, peaks=(BEST,))]


def test_measured_once_then_read(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([OLD, NEW])
    monkeypatch.setattr(peaks, "measure", lambda *_: next(measured))
    told: list[str] = []
    assert machine.known_here().peaks == ()
    assert peaks.ensure("cpu", 2, told.append) == OLD
    assert peaks.ensure("cpu", 2, told.append) == OLD
    assert told == ["measuring what this machine does at best on cpu with 2 thread(s), once ..."]
    assert machine.known_here().peaks == (OLD,)
    assert peaks.update("cpu", 2) == BEST
    assert peaks.ensure("cpu", 2) == BEST
    key = environment.detect().key
    assert peaks.cached(key, "cpu", 1) is None
    assert peaks.cached("other machine", "cpu", 2) is None
    assert [file.name for file in (own_cache / "peaks").iterdir()] == [f"{key}-cpu-2.json"]


def test_an_absent_device_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "measure", lambda device, threads: Peaks(device=device, threads=threads))
    assert peaks.ensure("cuda", 1).flops == {}
    assert list((own_cache / "peaks").iterdir()) == []


def test_a_damaged_file_is_measured_anew(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "measure", lambda *_: NEW)
    file = oracle.cache_folder("peaks") / f"{environment.detect().key}-cpu-2.json"
    file.write_text('{"threads": ')
    assert peaks.ensure("cpu", 2) == NEW
    assert machine.known_here().peaks == (NEW,)


def test_best_library_of_each_figure_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    products = [Figure(name="float32", rate=80.0, source="a"), Figure(name="float32", rate=90.0, source="b")]
    memory = [
        Figure(name="L1", rate=9.0, source="t", size=32), Figure(name="DRAM", rate=5.0, source="t"),
        Figure(name="float32", rate=85.0, source="n"),
    ]  # fmt: skip
    monkeypatch.setattr(peaks, "_products", lambda *_: iter(products))
    monkeypatch.setattr(peaks, "_cpu_figures", lambda _: memory)
    found = peaks.measure("cpu", 2)
    assert (found.flops, found.bandwidth, found.sizes) == ({"float32": 90.0}, {"L1": 9.0, "DRAM": 5.0}, {"L1": 32})
    assert found.sources == {"float32": "b", "L1": "t", "DRAM": "t"}
    assert found.measured


# -- products ----------------------------------------------------------------------------------------------------------


def test_a_product_counts_two_operations_for_each_multiply_add() -> None:
    for dtype in peaks.LEVELS:
        graph = peaks._product(dtype, 64)
        graph.validate()
        assert graph_cost(graph).flops == 2 * 64**3


def test_wrong_and_failed_products_are_no_peaks() -> None:
    plain = Result(
        run_id="r", graph_id="", graph="g", subset="other", structure_hash="", compiler="torch", target=Target(),
        verdict="ok", timing=Timing(samples_ns=(4_000, 2_000, 8_000)), versions={"torch": "2.13.0"},
    )  # fmt: skip
    assert peaks._rate(plain, 1_000) == pytest.approx(5e8), "by the fastest run: 2 us"
    assert peaks._library(plain) == "torch 2.13.0"
    assert peaks._rate(msgspec.structs.replace(plain, verdict="wrong"), 1_000) is None
    assert peaks._rate(msgspec.structs.replace(plain, verdict="unsupported", timing=None), 1_000) is None


@pytest.mark.slow
def test_measured_figures_are_in_the_order_of_the_hardware() -> None:
    """Nearer memory is not slower by much, float64 not faster than float32, and every figure names its source."""
    found = peaks.measure("cpu", 1)
    assert found.sources.keys() == found.flops.keys() | found.bandwidth.keys()
    assert found.flops["float64"] < 1.2 * found.flops["float32"]
    assert found.flops["float32"] > 1e9
    if {"L1", "DRAM"} <= found.bandwidth.keys():
        assert found.bandwidth["L1"] > 1.5 * found.bandwidth["DRAM"]


# -- memory ------------------------------------------------------------------------------------------------------------


def test_triad_computes_what_it_says(tmp_path: Path) -> None:
    compiled = triad.load(tmp_path)
    if compiled is None:
        pytest.skip("no C compiler here: install gcc or clang")
    a, b, c = bandwidth._arrays(64)
    b[:], c[:] = np.arange(64), np.arange(64)[::-1]
    for streaming in (False, True):
        a.fill(-1)
        if compiled.run((a, b, c), 2, streaming=streaming) or not streaming:  # not every machine has streaming stores
            np.testing.assert_array_equal(a, b + 3 * c)
    assert [file.suffix for file in tmp_path.iterdir()] == [".so"]
    before = next(tmp_path.iterdir()).stat().st_mtime_ns
    assert triad.load(tmp_path) is not None
    assert next(tmp_path.iterdir()).stat().st_mtime_ns == before, "built once"


def test_without_a_c_compiler_only_dram_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert triad.load(tmp_path) is None
    monkeypatch.setattr(caches, "read", lambda _: [])
    monkeypatch.setattr(bandwidth, "ASSUMED_CACHE", 1 << 16)
    monkeypatch.setattr(bandwidth, "BLOCK_S", 0.0)
    (found,) = bandwidth.measure(1, tmp_path)
    assert found.name == "DRAM"
    assert found.source.startswith("numpy")
    assert found.rate > 0


def test_a_compiler_that_fails_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert triad.load(tmp_path) is None
    assert [file.name for file in tmp_path.iterdir()] == ["cc"]


def test_arrays_of_a_thread_are_aligned_and_apart() -> None:
    a, b, c = bandwidth._arrays(16)
    assert [array.ctypes.data % 64 for array in (a, b, c)] == [0, 0, 0]
    assert b.ctypes.data - a.ctypes.data == c.ctypes.data - b.ctypes.data == 16 * 8 + bandwidth.GAP
    assert (a[0], b[0], c[0]) == (0.0, 1.0, 2.0)


def test_rate_is_all_threads_bytes_over_the_common_span() -> None:
    calls: list[int] = []

    def loop(arrays: tuple[np.ndarray, ...], passes: int) -> int:
        calls.append(passes)
        return 3 * arrays[0].nbytes

    team = bandwidth._Team(loop, [next(iter(os.sched_getaffinity(0)))] * 2, 8)
    seconds, moved = team.block(5)
    assert moved == 2 * 3 * 64
    assert sorted(calls) == [1, 1, 5, 5]
    assert seconds > 0


def test_numpy_counts_five_arrays() -> None:
    arrays = bandwidth._arrays(8)
    assert bandwidth._numpy_triad(arrays, 1) == 5 * 64
    np.testing.assert_array_equal(arrays[0], arrays[1] + 3 * arrays[2])


# -- caches ------------------------------------------------------------------------------------------------------------


def sys_folder(folder: Path, cpus: int, siblings: dict[int, str] | None = None) -> Path:
    """A /sys of `cpus` CPUs with a private L1 and a shared L2."""
    for cpu in range(cpus):
        entries = {
            0: ("1", "Data", "48K", str(cpu)), 1: ("1", "Instruction", "32K", str(cpu)),
            2: ("2", "Unified", "2M", f"0-{cpus - 1}"),
        }  # fmt: skip
        for index, values in entries.items():
            place = folder / f"cpu{cpu}" / "cache" / f"index{index}"
            place.mkdir(parents=True)
            for name, text in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
                (place / name).write_text(text + "\n")
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir()
        (topology / "thread_siblings_list").write_text((siblings or {}).get(cpu, str(cpu)))
    return folder


def test_caches_of_data_each_once(tmp_path: Path) -> None:
    found = caches.read([0, 1], sys_folder(tmp_path, 4))
    assert [(cache.level, cache.size, cache.cpus) for cache in found] == [
        (1, 48 << 10, (0,)), (1, 48 << 10, (1,)), (2, 2 << 20, (0, 1, 2, 3)),
    ]  # fmt: skip
    assert caches.read([0], tmp_path / "absent") == []


def test_threads_share_a_cache_in_equal_parts(tmp_path: Path) -> None:
    known = caches.read([0, 1], sys_folder(tmp_path, 4))
    nearest, shared = known[:2], known[2:]
    assert [bandwidth._share(nearest, cpu, [0, 1]) for cpu in (0, 1)] == [48 << 10, 48 << 10]
    assert [bandwidth._share(shared, cpu, [0, 1]) for cpu in (0, 1)] == [1 << 20, 1 << 20]
    assert bandwidth._share(nearest, 0, [0, 0]) == 24 << 10, "two threads on one core"
    assert bandwidth._share(nearest, 3, [3]) == 0


def test_one_cpu_of_each_core_first(tmp_path: Path) -> None:
    siblings = {0: "0-1", 1: "0-1", 2: "2,3", 3: "2,3"}
    assert caches.one_per_core([0, 1, 2, 3], sys_folder(tmp_path, 4, siblings)) == [0, 2, 1, 3]
    assert caches.one_per_core([5, 4], tmp_path) == [4, 5]


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 32), ("float64", 64)])
def test_chains_count_two_for_each_element_of_twelve_vectors(tmp_path: Path, dtype: str, bits: int) -> None:
    """The loop checks itself that each chain came to 1."""
    compiled = triad.load(tmp_path)
    assert compiled is not None, "needs a C compiler, as PyTorch's Inductor does"
    isa = environment.detect().isa
    width = 512 if "avx512f" in isa else 256 if "avx" in isa else 128
    assert compiled.multiply_add(dtype, 1000) == 2 * triad.CHAINS * width // bits


def test_more_threads_than_cpus_have_no_peaks(own_cache: Path) -> None:
    told: list[str] = []
    assert peaks.ensure("cpu", 5000, told.append).flops == {}
    assert told == ["5000 threads are more than this machine has CPUs for us: there are no peaks to compare with"]
    with pytest.raises(UsageError, match="peaks of 5000 threads cannot be measured"):
        peaks.update("cpu", 5000)
