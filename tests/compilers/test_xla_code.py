"""Which code each instruction of an HLO module runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet.compilers import listing, xla_code

HLO = """HloModule m

%fused (p.0: f32[8]) -> f32[8] {
  %p.0 = f32[8]{0} parameter(0)
  %c.0 = f32[] constant(2)
  %b.0 = f32[8]{0} broadcast(%c.0), dimensions={}
  ROOT %m.0 = f32[8]{0} multiply(%p.0, %b.0), metadata={op_name="jit(f)/node1_{x}/mul" stack_frame_id=3}
}

%fused.1 (p.1: f32[8]) -> f32[8] {
  %p.1 = f32[8]{0} parameter(0)
  %c.1 = f32[] constant(2)
  %b.1 = f32[8]{0} broadcast(%c.1), dimensions={}
  ROOT %m.1 = f32[8]{0} multiply(%p.1, %b.1), metadata={op_name="jit(f)/node7/mul"}
}

%fused.2 (p.2: f32[8]) -> f32[8] {
  %p.2 = f32[8]{0} parameter(0)
  %c.2 = f32[] constant(3)
  %b.2 = f32[8]{0} broadcast(%c.2), dimensions={}
  ROOT %m.2 = f32[8]{0} multiply(%p.2, %b.2)
}

%ynn (q.0: f32[8]) -> f32[8] {
  ROOT %q.0 = f32[8]{0} parameter(0)
}

%body (s.0: (f32[8])) -> (f32[8]) {
  %s.0 = (f32[8]{0}) parameter(0)
  %g.0 = f32[8]{0} get-tuple-element(%s.0), index=0
  %looped = f32[8]{0} fusion(%g.0), kind=kLoop, calls=%fused.1
  ROOT %t.0 = (f32[8]{0}) tuple(%looped)
}

%condition (s.1: (f32[8])) -> pred[] {
  %s.1 = (f32[8]{0}) parameter(0)
  ROOT %test = pred[] constant(false)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %first = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="a"}
  %lost = f32[8]{0} fusion(%first), kind=kLoop, calls=%fused.2
  %ynn_fusion = f32[8]{0} fusion(%lost), kind=kCustom, calls=%ynn, backend_config={"kind":"__ynn_fusion"}
  %dot.3 = f32[8]{0} dot(%ynn_fusion, /*index=1*/%x), lhs_contracting_dims={}
  %dot.4 = f32[] dot(%dot.3, %x), lhs_contracting_dims={0}
  %call.1 = f32[8]{0} custom-call(%dot.3), custom_call_target="__onednn$matmul"
  %state = (f32[8]{0}) tuple(%call.1)
  %while.1 = (f32[8]{0}) while(%state), condition=%condition, body=%body
  ROOT %out = f32[8]{0} get-tuple-element(%while.1), index=0
}
"""


def test_each_executed_instruction_has_its_code_that_of_a_twin_or_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.cpu_after_optimizations.txt").write_text(HLO)
    (tmp_path / "m.kernels.ir-with-opt.ll").write_text("define ptr @first(ptr %0) {\n}\n")
    (tmp_path / "m.o").write_bytes(b"")
    parts = {"first": "first:\n\tretq\n", "dot.4_kernel": "dot.4_kernel:\n\tret\n"}
    monkeypatch.setattr(listing, "disassemble", lambda _: parts)
    found = {code.name: (code.assembly, code.ir, code.library) for code in xla_code.emitted(tmp_path)}
    ir = "define ptr @first(ptr %0) {\n}\n"
    assert found == {
        "first": ("first:\n\tretq\n", ir, ""),
        "lost": ("", "", ""),  # a fusion that is no library call: its code is unknown, not nothing
        "ynn_fusion": ("", "", "ynnpack"),
        "dot.3": ("", "", "Eigen"),
        "dot.4": ("dot.4_kernel:\n\tret\n", "", ""),
        "call.1": ("", "", "oneDNN"),
        "looped": ("first:\n\tretq\n", ir, ""),  # the same but for names: XLA emitted it once
    }
