"""Reading what llvm-mca printed, and running it where it is installed."""

from __future__ import annotations

import pytest

from graphnet.analyze import mca
from graphnet.compilers import llvm_tools
from graphnet.errors import ToolNotFound
from tests.analyze.recorded import DATA

LOOP = (
    "l:\n\tvmaxps\t(%rax), %zmm1, %zmm0\n\taddq\t$64, %rax\n\tvmovups\t%zmm0, -64(%rax)\n\tcmpq\t%rdx, %rax\n\tjne\tl\n"
)


def _absent() -> bool:
    try:
        return llvm_tools.release(llvm_tools.find("llvm-mca")) < 16
    except ToolNotFound:
        return True


needs_llvm_mca = pytest.mark.skipif(_absent(), reason="needs llvm-mca of LLVM 16 or newer (apt-get install llvm-19)")


def test_recorded_output_is_read_as_the_tool_s_own_summary_says() -> None:
    # The same run in words: "Total Cycles: 112, Dispatch Width: 6, IPC: 4.46, Block RThroughput: 1.0", port FP0 1.00.
    found = mca.read((DATA / "llvm_mca_19_relu.json").read_text(), 19)
    assert (found.cpu, found.release, found.instructions, found.dispatch_width) == ("znver4", 19, 5, 6)
    assert found.ipc == pytest.approx(500 / 112)
    assert found.saturation == pytest.approx(500 / 112 / 6)
    assert (found.cycles, found.reciprocal_throughput) == (1.12, 1.0)
    assert (found.port, found.pressure) == ("Zn4FP0", 1.0)


@pytest.mark.parametrize("text", ["", "{}", '{"CodeRegions": [], "TargetInfo": {"CPUName": "x", "Resources": []}}'])
def test_output_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(mca.McaError, match="LLVM 23"):
        mca.read(text, 23)


@needs_llvm_mca
def test_a_loop_is_simulated_as_recorded() -> None:
    found = mca.simulate(LOOP, "znver4")
    assert (found.cpu, found.instructions, found.dispatch_width) == ("znver4", 5, 6)
    assert 1 <= found.ipc <= 6
    assert found.ipc == pytest.approx(found.instructions / found.cycles, rel=1e-3)


@needs_llvm_mca
def test_what_the_tool_cannot_read_or_does_not_know_is_told() -> None:
    with pytest.raises(mca.McaError, match="invalid instruction mnemonic 'foo'"):
        mca.simulate("\tfoo\t%rax\n", "znver4")
    with pytest.raises(mca.McaError, match="does not know CPU 'znver99'"):
        mca.simulate(LOOP, "znver99")


def test_an_absent_tool_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_tools, "_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nonexistent")
    llvm_tools.find.cache_clear()
    try:
        with pytest.raises(ToolNotFound, match=r"llvm-mca is absent; install .*apt-get install llvm-19"):
            mca.simulate(LOOP, "znver4")
        assert llvm_tools.host_cpu() == ""
    finally:
        llvm_tools.find.cache_clear()
