"""Assembly as text: what compilers and disassemblers print becomes one form."""

from __future__ import annotations

from graphnet.compilers import listing

CLANG = """
	.text
	.type	__tvm_ffi_k,@function
__tvm_ffi_k:                            # @__tvm_ffi_k
.Lfunc_begin0:
	.cfi_startproc
# %bb.0:
	leaq	.Llambda(%rip), %rdi            # the closure
	callq	*(%rax)
.Ltmp1:
	retq
.Lfunc_end0:
	.size	__tvm_ffi_k, .Lfunc_end0-__tvm_ffi_k
	.type	.Llambda,@function
.Llambda:
.LBB1_1:
	vaddps	.LCPI1_0(%rip), %ymm0, %ymm0
	jne	.LBB1_1
	retq
	.size	.Llambda, 4
	.type	other,@function
other:
	retq
	.size	other, 1
	.type	table,@object
table:
	.long	7
"""
GCC = """
	.type	kernel, @function
kernel:
.LFB1:
	.cfi_startproc
.L3:
	.loc 1 5 1
#APP
	call	sinf@PLT
	jne	.L3
	ret
	.section	.text.unlikely
	.type	kernel.cold, @function
kernel.cold:
.L9:
	ud2
	.text
	.size	kernel, .-kernel
	.section	.text.unlikely
	.size	kernel.cold, .-kernel.cold
"""
AARCH64 = '\t.type\t"f g",%function\n"fg":\n\t.type\tf,%function\nf:\n\tadd\tx0, x0, #16 // one\n\tret\n'
OBJDUMP = """
kernel.o:	file format elf64-x86-64

Disassembly of section .ltext:

0000000000000000 <add_fusion>:
       0:      	movl	$0x160, %ecx            # imm = 0x160
       5:      	vaddps	(%rax,%rcx), %ymm0, %ymm1
       c:      	callq	0x11 <add_fusion+0x11>
		000000000000000d:  R_X86_64_PLT32	expf-0x4
      11:      	jne	0x5 <add_fusion+0x5>
      13:      	jmp	0x20 <other>
      15:      	retq

0000000000000020 <other>:
      20:      	retq
"""


def test_functions_of_clang_lose_directives_comments_and_idle_labels() -> None:
    assert listing.functions(CLANG) == {
        "__tvm_ffi_k": "__tvm_ffi_k:\n\tleaq\t.Llambda(%rip), %rdi\n\tcallq\t*(%rax)\n\tretq\n",
        ".Llambda": ".Llambda:\n.LBB1_1:\n\tvaddps\t.LCPI1_0(%rip), %ymm0, %ymm0\n\tjne\t.LBB1_1\n\tretq\n",
        "other": "other:\n\tretq\n",
    }


def test_a_kernel_has_the_closures_that_it_passes_on_and_nothing_else() -> None:
    parts = listing.functions(CLANG)
    assert listing.reachable(parts, "__tvm_ffi_k") == ["__tvm_ffi_k", ".Llambda"]
    assert listing.gather(parts, "__tvm_ffi_k") == f"{parts['__tvm_ffi_k']}\n{parts['.Llambda']}"
    assert listing.gather(parts, "absent") == ""


def test_cold_parts_of_gcc_are_functions_of_their_own() -> None:
    assert listing.functions(GCC) == {
        "kernel": "kernel:\n.L3:\n\tcall\tsinf@PLT\n\tjne\t.L3\n\tret\n",
        "kernel.cold": "kernel.cold:\n\tud2\n",
    }


def test_immediates_of_aarch64_are_no_comments() -> None:
    assert listing.functions(AARCH64)["f"] == "f:\n\tadd\tx0, x0, #16\n\tret\n"


def test_without_declarations_every_label_that_is_not_local_begins_a_function() -> None:
    assert listing.functions("_f:\nLtmp0:\n\tretq\n_g:\n\tretq\n") == {"_f": "_f:\n\tretq\n", "_g": "_g:\n\tretq\n"}


def test_disassembly_gets_labels_for_addresses_and_names_for_relocated_calls() -> None:
    assert listing.from_disassembly(OBJDUMP) == {
        "add_fusion": (
            "add_fusion:\n\tmovl\t$0x160, %ecx\n.L5:\n\tvaddps\t(%rax,%rcx), %ymm0, %ymm1\n\tcallq\texpf\n"
            "\tjne\t.L5\n\tjmp\tother\n\tretq\n"
        ),
        "other": "other:\n\tretq\n",
    }


def test_ir_is_cut_by_definition() -> None:
    text = 'declare void @x()\ndefine i32 @f(i32 %a) #0 {\n  ret i32 %a\n}\n\ndefine internal void @"g h$1"() {\n}\n'
    parts = listing.ir_functions(text)
    assert parts == {
        "f": "define i32 @f(i32 %a) #0 {\n  ret i32 %a\n}\n",
        "g h$1": 'define internal void @"g h$1"() {\n}\n',
    }
    assert listing.gather_ir({"lambda": "L"}, ["absent", ".Llambda"]) == "L"
