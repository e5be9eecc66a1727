"""Loops and instruction kinds, counted by hand in recorded code of four compilers and in small listings."""

from __future__ import annotations

import pytest

from graphnet.analyze import assembly
from graphnet.analyze.assembly import Mix
from tests.analyze.recorded import code


def mix_of(*lines: str, framed: bool = False) -> Mix:
    (function,) = assembly.parse("f:\n" + "".join(f"\t{line}\n" for line in lines))
    return assembly.mix(function.instructions, framed)


@pytest.mark.parametrize(
    ("name", "expected", "stack"),
    [
        # 11 vbroadcastss and 2 vmovaps feed 2 columns of 12 rows; subq, addq, jne.
        ("tvm", Mix(instructions=41, floats=24, vector_floats=24, fused=24, work=24 * 16 * 2, width=512), 12),
        ("iree", Mix(instructions=148, floats=128, vector_floats=128, fused=128, work=128 * 16 * 2, width=512), 1),
        # 12 times vaddps, vmaxps, vcmpunordps, a masked vmovaps and a store; addq, cmpq, jne.
        ("xla", Mix(instructions=63, floats=36, vector_floats=36, work=36 * 8, width=256), 0),
        ("inductor", Mix(instructions=5, floats=1, vector_floats=1, work=16, width=512), 0),
    ],
)
def test_hot_loops_of_four_compilers(name: str, expected: Mix, stack: int) -> None:
    functions = assembly.parse(code(name))
    loop = assembly.hottest(functions)
    assert loop is not None
    assert assembly.mix(loop.instructions, loop.framed) == expected
    assert sum(assembly.mix(assembly.in_loops(f), f.framed).stack for f in functions) == stack


def test_the_text_of_a_loop_is_that_of_the_compiler() -> None:
    loop = assembly.hottest(assembly.parse(code("inductor")))
    assert loop is not None
    label = loop.text.partition(":")[0]
    assert loop.text == (
        f"{label}:\n\tvmaxps\t(%rax), %zmm1, %zmm0\n\taddq\t$64, %rax\n\tvmovups\t%zmm0, -64(%rax)\n"
        f"\tcmpq\t%rdx, %rax\n\tjne\t{label}\n"
    )
    listed = code("inductor").splitlines()
    assert [listed[item.line - 1].split() for item in loop.instructions] == [
        item.text.replace("\t", " ").split() for item in loop.instructions
    ]


@pytest.mark.parametrize(
    ("line", "floats", "vector", "fused", "work", "width"),
    [
        ("addss %xmm0, %xmm1", 1, 0, 0, 1, 32),  # SSE, one element
        ("mulpd %xmm0, %xmm1", 1, 1, 0, 2, 128),  # SSE, packed
        ("vsqrtsd %xmm0, %xmm1, %xmm2", 1, 0, 0, 1, 64),
        ("vfmadd231ss (%rax), %xmm0, %xmm1", 1, 0, 1, 2, 32),
        ("vfnmsub213pd %ymm0, %ymm1, %ymm2", 1, 1, 1, 8, 256),
        ("vfmaddsub132ps %zmm0, %zmm1, %zmm2", 1, 1, 1, 32, 512),
        ("vaddps (%rax){1to16}, %zmm0, %zmm1 {%k1} {z}", 1, 1, 0, 16, 512),  # EVEX: broadcast, mask
        ("vmaxph %zmm0, %zmm1, %zmm2", 1, 1, 0, 32, 512),
        ("vcmpnle_uqps %zmm0, %zmm1, %k1", 1, 1, 0, 16, 512),
        ("vcmpps $14, %ymm0, %ymm1, %k1", 1, 1, 0, 8, 256),
        ("ucomiss %xmm0, %xmm1", 1, 0, 0, 1, 32),
        ("vrndscaleps $9, %zmm0, %zmm1", 1, 1, 0, 16, 512),
        ("vdpbf16ps %zmm0, %zmm1, %zmm2", 1, 1, 1, 32, 512),
        ("fmuls (%rax)", 1, 0, 0, 1, 80),  # x87
        ("vmovaps %zmm0, %zmm1", 0, 0, 0, 0, 512),  # no arithmetic: moves, shuffles, bits, conversions
        ("vxorps %xmm0, %xmm0, %xmm0", 0, 0, 0, 0, 128),
        ("vshufps $1, %ymm0, %ymm1, %ymm2", 0, 0, 0, 0, 256),
        ("vcvtdq2ps %ymm0, %ymm1", 0, 0, 0, 0, 256),
        ("vpmaxsd %ymm0, %ymm1, %ymm2", 0, 0, 0, 0, 256),  # integers, though it ends in "sd"
        ("vpaddd %zmm0, %zmm1, %zmm2", 0, 0, 0, 0, 512),
        ("addq $1, %rax", 0, 0, 0, 0, None),
    ],
)
def test_kinds_of_instructions(
    line: str, floats: int, vector: int, fused: int, work: int, width: int | None
) -> None:  # fmt: skip
    found = mix_of(line)
    assert (found.floats, found.vector_floats, found.fused, found.work, found.width) == (
        floats, vector, fused, work, width,
    )  # fmt: skip


def test_only_accesses_of_the_frame_are_spills() -> None:
    lines = (
        "vmovups 64(%rsp), %zmm0", "vmovups %zmm0, (%rsp,%rax)", "addl $1, -8(%rbp)",
        "leaq 8(%rsp), %rax", "callq *8(%rsp)", "vmovups 64(%rax), %zmm0", "pushq %rax",
    )  # fmt: skip
    assert mix_of(*lines).stack == 2
    assert mix_of(*lines, framed=True).stack == 3


def test_a_loop_over_integers_has_no_floats() -> None:
    text = "f:\n\txorl\t%eax, %eax\n.L1:\n\taddq\t(%rdi,%rax,8), %rcx\n\tincq\t%rax\n\tjne\t.L1\n\tretq\n"
    loop = assembly.hottest(assembly.parse(text))
    assert loop is not None
    assert assembly.mix(loop.instructions) == Mix(instructions=3)


def test_the_hot_loop_is_the_innermost_with_most_floating_point_work() -> None:
    text = (
        "f:\n.L1:\n\tvmulps\t%zmm0, %zmm1, %zmm2\n\tvmulps\t%zmm0, %zmm1, %zmm2\n"
        ".L2:\n\tvfmadd231ps\t%ymm0, %ymm1, %ymm2\n\tjne\t.L2\n\tjne\t.L1\n"
        ".L3:\n\tvaddss\t%xmm0, %xmm1, %xmm2\n\tvaddss\t%xmm0, %xmm1, %xmm2\n\tjne\t.L3\n\tretq\n"
    )
    (function,) = assembly.parse(text)
    assert [loop.instructions[0].line for loop in assembly.innermost(function)] == [6, 10]
    hot = assembly.hottest([function])
    assert hot is not None
    assert hot.instructions[0].mnemonic == "vfmadd231ps"


def test_a_tail_that_does_not_return_to_the_loop_is_not_in_it() -> None:
    text = "f:\n.L1:\n\tdecq\t%rax\n\tjs\t.L2\n\tjmp\t.L1\n.L2:\n\tvaddps\t%ymm0, %ymm0, %ymm0\n\tretq\n"
    (function,) = assembly.parse(text)
    (loop,) = assembly.innermost(function)
    assert [item.mnemonic for item in loop.instructions] == ["decq", "js", "jmp"]


def test_functions_without_loops_and_texts_without_functions() -> None:
    assert assembly.hottest(assembly.parse("f:\n\tretq\n")) is None
    assert assembly.parse("") == []
