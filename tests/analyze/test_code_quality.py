"""Figures of a job from its files: weights, what is unknown, what is stored."""

from __future__ import annotations

import platform
from pathlib import Path

import msgspec
import pytest

from graphnet.analyze import assembly, code_quality, mca
from graphnet.compilers import Kernel, KernelCode, Target, llvm_tools
from graphnet.errors import StoreError, ToolNotFound
from graphnet.evaluate import code_files
from graphnet.evaluate.code_files import CodeFile, CodeIndex
from graphnet.evaluate.records import Result
from tests.analyze.recorded import code

X86 = "x86_64"
INTEGERS = "f:\n.L1:\n\tdecq\t%rax\n\tjne\t.L1\n\tretq\n"
CALLS = "f:\n.L1:\n\tcallq\texpf\n\tvaddss\t%xmm0, %xmm1, %xmm1\n\tdecq\t%rax\n\tjne\t.L1\n\tretq\n"


def result(**times: float) -> Result:
    kernels = tuple(Kernel(name=name, calls=1, total_us=spent) for name, spent in times.items())
    return Result(
        run_id="r", job_key="k" * 32, graph_id="", graph="g", subset="s", structure_hash="h", compiler="c",
        target=Target(), verdict="ok", kernels=kernels, started="2026-12-03",
    )  # fmt: skip


def index(folder: Path, texts: dict[str, str], machine: str = X86, **libraries: str) -> CodeIndex:
    for name, text in texts.items():
        (folder / f"{name}.s").write_text(text)
    files = [CodeFile(kernel=name, assembly=f"{name}.s") for name in texts]
    files += [CodeFile(kernel=name, library=library) for name, library in libraries.items()]
    return CodeIndex(
        job_key="k" * 32, graph="g", compiler="c", machine=machine, mcpu="znver4", vector_bits=512, kernels=tuple(files)
    )


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are not simulated: IPC is 3 of 6 for a loop of multiply-adds, 1.5 for any other."""

    def simulate(loop: str, cpu: str) -> mca.Throughput:
        ipc = 3.0 if "vfmadd" in loop else 1.5
        return mca.Throughput(
            cpu=cpu, release=19, instructions=1, ipc=ipc, dispatch_width=6, cycles=1.0, reciprocal_throughput=1.0
        )

    monkeypatch.setattr(mca, "simulate", simulate)
    monkeypatch.setattr(code_quality, "_release", lambda: 19)


def test_figures_are_weighted_by_kernel_time(tmp_path: Path) -> None:
    # tvm: 24 of 24 floats in vectors and fused, 512 bits; xla: 36 of 36 in vectors, none fused, 256 bits.
    found = code_quality.analyze(
        tmp_path, index(tmp_path, {"a": code("tvm"), "b": code("xla")}, lib="oneDNN"),
        result(a=30.0, b=10.0, lib=50.0, runtime=10.0),
    )  # fmt: skip
    assert found.saturation == pytest.approx((30 * 0.5 + 10 * 0.25) / 40)
    assert found.vector_share == 1.0
    assert found.fma_share == pytest.approx(30 / 40)
    assert found.width_share == pytest.approx((30 * 1.0 + 10 * 0.5) / 40)
    assert found.library_share == pytest.approx(0.5)
    assert found.saturation_time_share == pytest.approx(0.4)
    assert found.spills == 12
    library = found.kernels[-1]
    assert (library.library, library.saturation, library.vector_share, library.spills) == ("oneDNN", None, None, None)


def test_a_kernel_that_is_called_in_several_places_has_the_sum_of_their_times(tmp_path: Path) -> None:
    several = result(a=1.0)
    several = msgspec.structs.replace(several, kernels=several.kernels * 3)
    found = code_quality.analyze(tmp_path, index(tmp_path, {"a": code("tvm")}), several)
    assert found.kernels[0].time_us == 3.0


def test_integers_only_has_no_shares_but_a_saturation(tmp_path: Path) -> None:
    found = code_quality.analyze(tmp_path, index(tmp_path, {"i": INTEGERS}), result(i=1.0))
    assert (found.vector_share, found.fma_share, found.width_share) == (None, None, None)
    assert found.saturation == 0.25
    assert found.spills == 0


def test_code_without_a_loop_has_the_shares_of_the_whole_and_no_saturation(tmp_path: Path) -> None:
    text = "f:\n\tvaddps\t%ymm0, %ymm0, %ymm1\n\tvaddss\t%xmm0, %xmm0, %xmm1\n\tretq\n"
    found = code_quality.analyze(tmp_path, index(tmp_path, {"s": text}), result(s=1.0))
    assert (found.saturation, found.saturation_time_share, found.vector_share, found.width_share) == (None, 0, 0.5, 0.5)


def test_a_loop_with_calls_is_not_simulated(tmp_path: Path) -> None:
    (kernel,) = code_quality.analyze(tmp_path, index(tmp_path, {"e": CALLS}), result(e=1.0)).kernels
    assert kernel.saturation is None
    assert kernel.loop is not None
    assert "the loop calls functions" in kernel.loop.problem
    assert kernel.vector_share == 0.0


def test_without_a_profile_there_are_no_weights(tmp_path: Path) -> None:
    found = code_quality.analyze(tmp_path, index(tmp_path, {"a": code("tvm")}), result())
    assert (found.saturation, found.library_share) == (None, None)
    assert "--profile" in found.notes[0]
    assert found.kernels[0].saturation == 0.5


def test_another_machine_s_assembly_gets_no_figure(tmp_path: Path) -> None:
    text = "f:\n.L1:\n\tfmla\tv0.4s, v1.4s, v2.4s\n\tb.ne\t.L1\n\tret\n"
    found = code_quality.analyze(tmp_path, index(tmp_path, {"a": text}, machine="aarch64"), result(a=1.0))
    assert found.kernels[0].problem == "aarch64 assembly is not analysed"
    assert (found.saturation, found.vector_share, found.spills) == (None, None, None)


def test_without_llvm_mca_the_figures_of_the_text_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(loop: str, cpu: str) -> mca.Throughput:
        raise ToolNotFound("llvm-mca is absent")

    monkeypatch.setattr(mca, "simulate", absent)
    found = code_quality.analyze(tmp_path, index(tmp_path, {"a": code("tvm")}), result(a=1.0))
    assert (found.saturation, found.fma_share) == (None, 1.0)
    assert found.kernels[0].loop is not None
    assert found.kernels[0].loop.problem.startswith("unknown: llvm-mca is absent; install llvm")


def test_what_is_stored_is_read_back_and_renewed_for_a_new_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: X86)
    monkeypatch.setattr(llvm_tools, "host_cpu", lambda: "znver4")
    folder = code_files.folder_of(tmp_path, "c", "g", "k" * 32)
    code_files.write(folder, [KernelCode(name="a", assembly=code("tvm"))], job_key="k" * 32, graph="g", compiler="c")
    assert code_quality.load(tmp_path) == {}
    found = code_quality.update(tmp_path, [result(a=1.0)])
    assert code_quality.load(tmp_path) == found
    assert found["k" * 32].saturation == 0.5
    again = msgspec.structs.replace(result(b=1.0), started="2026-12-04")
    assert code_quality.update(tmp_path, [again])["k" * 32].saturation is None
    assert code_quality.update(tmp_path, [again], wanted=lambda _: False) == {}
    (folder / "quality.json").write_text('{"format": "graphnet-code-quality/9"}')
    with pytest.raises(StoreError, match="remove it and run `graphnet codegen`"):
        code_quality.load(tmp_path)


def test_a_lost_file_is_told(tmp_path: Path) -> None:
    place = index(tmp_path, {"a": code("tvm")})
    (tmp_path / "a.s").unlink()
    with pytest.raises(StoreError, match="evaluate with --code again"):
        code_quality.analyze(tmp_path, place, result(a=1.0))


def test_a_loop_in_two_places_names_both() -> None:
    text = (
        "f:\n\tjmp\t.L2\n.L1:\n\tdecq\t%rax\n\tjmp\t.L3\n.L2:\n\tincq\t%rbx\n"
        ".L3:\n\tjs\t.L4\n\tjmp\t.L1\n.L4:\n\tretq\n"
    )
    loop = assembly.hottest(assembly.parse(text))
    assert loop is not None
    assert [item.mnemonic for item in loop.instructions] == ["decq", "jmp", "js", "jmp"]
    assert list(code_quality._ranges(loop)) == [(4, 5), (9, 10)]
