from __future__ import annotations

import re

from graphnet.compilers.xla_kernels import kernels

HLO = """\
HloModule jit_f, is_scheduled=true

%fused (param_0: f32[8,8]) -> f32[8,8] {
  %param_0 = f32[8,8]{1,0} parameter(0)
  %add.1 = f32[8,8]{1,0} add(%param_0, %param_0), metadata={op_name="jit(f)/node0_a/add" stack_frame_id=2}
  ROOT %tanh.1 = f32[8,8]{1,0} tanh(%add.1), metadata={op_name="jit(f)/node1_b/tanh"}
}

%body (p: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %p = (s32[], f32[8,8]{1,0}) parameter(0)
  %element = f32[8,8]{1,0} get-tuple-element(%p), index=1
  %sine.1 = f32[8,8]{1,0} sine(%element), metadata={op_name="jit(f)/node4_e/while/body/sin"}
  ROOT %pair = (s32[], f32[8,8]{1,0}) tuple(%element, %sine.1)
}

ENTRY %main (x: f32[8,8]) -> f32[8,8] {
  %x = f32[8,8]{1,0} parameter(0)
  %fusion.1 = f32[8,8]{1,0} fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/node1_b/tanh"}
  %scaled = f32[8,8]{1,0} multiply(%fusion.1, %fusion.1), metadata={op_name="jit(f)/node2_c/mul"}
  %dot.5 = f32[8,8]{1,0} dot(%scaled, %fusion.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %soft = f32[8,8]{1,0} exponential(%dot.5), metadata={op_name="jit(f)/node2_c/exp"}
  %dot.6 = f32[8,8]{1,0} dot(%soft, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %out = f32[8,8]{1,0} negate(%dot.6), metadata={op_name="jit(f)/node3_d/neg"}
  %dot.7 = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %copy.7 = f32[8,8]{1,0} copy(%dot.7), metadata={op_name="jit(f)/node5_f/dot"}
  ROOT %while.1 = (s32[], f32[8,8]{1,0}) while(%out), condition=%body, body=%body
}
"""


def node_of(op_name: str) -> str:
    found = re.findall(r"node\d_(\w)", op_name)
    return found[-1] if found else ""


def test_nodes_of_fusions_and_of_instructions_without_metadata() -> None:
    names = ["fusion.1", "scaled", "dot.5", "dot.6", "dot.7"]
    found = kernels([(i, name, 1000.0) for i, name in enumerate(names)], HLO, node_of, runs=1)
    assert {kernel.name: kernel.nodes for kernel in found} == {
        "fusion.1": ("a", "b"), "scaled": ("c",), "dot.5": ("c",), "dot.6": ("c",), "dot.7": ("f",),
    }  # fmt: skip


def test_a_loop_counts_once() -> None:
    found = kernels([(0, "while.1", 9000.0), (1, "sine.1", 4000.0), (2, "sine.1", 3000.0)], HLO, node_of, runs=1)
    assert [(k.name, k.calls, k.total_us, k.nodes) for k in found] == [("sine.1", 2, 7.0, ("e",))]


def test_a_loop_whose_body_has_no_events_counts_itself() -> None:
    (kernel,) = kernels([(0, "while.1", 9000.0), (1, "while.1", 5000.0)], HLO, node_of, runs=2)
    assert (kernel.name, kernel.calls, kernel.total_us, kernel.nodes) == ("while.1", 1, 7.0, ("e",))
