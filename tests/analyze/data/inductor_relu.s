	.type	kernel, @function
kernel:
.LFB16665:
	.cfi_startproc
	.cfi_personality 0x9b,DW.ref.__gxx_personality_v0
	.cfi_lsda 0x1b,.LLSDA16665
	leaq	8(%rsp), %r10
	.cfi_def_cfa 10, 0
	andq	$-64, %rsp
	xorl	%edx, %edx
	xorl	%ecx, %ecx
	pushq	-8(%r10)
	pushq	%rbp
	xorl	%esi, %esi
	movq	%rsp, %rbp
	.cfi_escape 0x10,0x6,0x2,0x76,0
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%r10
	.cfi_escape 0xf,0x3,0x76,0x60,0x6
	.cfi_escape 0x10,0xe,0x2,0x76,0x78
	.cfi_escape 0x10,0xd,0x2,0x76,0x70
	.cfi_escape 0x10,0xc,0x2,0x76,0x68
	pushq	%rbx
	leaq	-80(%rbp), %r14
	.cfi_escape 0x10,0x3,0x2,0x76,0x58
	movq	%rdi, %rbx
	subq	$136, %rsp
	movq	inductor_cpu_integer_div_error_flag@GOTPCREL(%rip), %r12
	leaq	-136(%rbp), %rax
	movq	$0, -80(%rbp)
	movq	%r14, %r8
	leaq	.LC10(%rip), %rdi
	movl	$0, -136(%rbp)
	movq	%rax, (%r12)
.LEHB11:
	call	aoti_record_function_start@PLT
.LEHE11:
	movq	-80(%rbp), %r13
	movq	%rbx, %rax
	leaq	36864(%rbx), %rdx
	vxorps	%xmm1, %xmm1, %xmm1
	.p2align 4
	.p2align 3
.L125:
	vmaxps	(%rax), %zmm1, %zmm0
	addq	$64, %rax
	vmovups	%zmm0, -64(%rax)
	cmpq	%rdx, %rax
	jne	.L125
	movq	$0, (%r12)
	movl	-136(%rbp), %eax
	testl	%eax, %eax
	jne	.L144
	testq	%r13, %r13
	je	.L146
	movq	%r13, %rdi
	vzeroupper
	call	_ZN5torch12aot_inductor29delete_record_function_objectEPv@PLT
.L147:
	leaq	-40(%rbp), %rsp
	popq	%rbx
	popq	%r10
	.cfi_remember_state
	.cfi_def_cfa 10, 0
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%rbp
	leaq	-8(%r10), %rsp
	.cfi_def_cfa 7, 8
	ret
.L146:
	.cfi_restore_state
	vzeroupper
	jmp	.L147
	.section	.gcc_except_table
.LLSDA16665:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128 .LLSDACSE16665-.LLSDACSB16665
.LLSDACSB16665:
	.uleb128 .LEHB11-.LFB16665
	.uleb128 .LEHE11-.LEHB11
	.uleb128 0
	.uleb128 0
.LLSDACSE16665:
	.text
	.cfi_endproc
	.section	.text.unlikely
	.cfi_startproc
	.cfi_personality 0x9b,DW.ref.__gxx_personality_v0
	.cfi_lsda 0x1b,.LLSDAC16665
	.type	kernel.cold, @function
kernel.cold:
.LFSB16665:
.L144:
	.cfi_escape 0xf,0x3,0x76,0x60,0x6
	.cfi_escape 0x10,0x3,0x2,0x76,0x58
	.cfi_escape 0x10,0x6,0x2,0x76,0
	.cfi_escape 0x10,0xc,0x2,0x76,0x68
	.cfi_escape 0x10,0xd,0x2,0x76,0x70
	.cfi_escape 0x10,0xe,0x2,0x76,0x78
	movl	$16, %edi
	vzeroupper
	call	__cxa_allocate_exception@PLT
	leaq	.LC13(%rip), %rcx
	movl	$827, -132(%rbp)
	leaq	-120(%rbp), %rdx
	movq	%rax, %r12
	leaq	.LC11(%rip), %rax
	movq	%rcx, -104(%rbp)
	movq	%rax, -88(%rbp)
	leaq	.LC12(%rip), %rax
	leaq	.LC14(%rip), %rcx
	leaq	-128(%rbp), %rsi
	movq	%rax, -96(%rbp)
	movq	%rax, -120(%rbp)
	leaq	.LC15(%rip), %rax
	movq	%rcx, -112(%rbp)
	movq	%rax, -128(%rbp)
	leaq	-88(%rbp), %rax
	leaq	-112(%rbp), %rcx
	leaq	-132(%rbp), %r9
	pushq	%rax
	leaq	-96(%rbp), %rax
	leaq	-104(%rbp), %r8
	movq	%r14, %rdi
	pushq	%rax
.LEHB12:
	.cfi_escape 0x2e,0x10
	call	_ZN3c106detail12_str_wrapperIJPKcS3_S3_S3_RKiS3_S3_EE4callB5cxx11ERKS3_S8_S8_S8_S5_S8_S8_@PLT
.LEHE12:
	popq	%rax
	popq	%rdx
	movq	%r14, %rsi
	movq	%r12, %rdi
.LEHB13:
	.cfi_escape 0x2e,0
	call	_ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE@PLT
.LEHE13:
	movq	-80(%rbp), %rdi
	leaq	-64(%rbp), %rax
	cmpq	%rax, %rdi
	je	.L127
	movq	-64(%rbp), %rax
	leaq	1(%rax), %rsi
	call	_ZdlPvm@PLT
.L127:
	movq	_ZNSt13runtime_errorD1Ev@GOTPCREL(%rip), %rdx
	movq	_ZTISt13runtime_error@GOTPCREL(%rip), %rsi
	movq	%r12, %rdi
.LEHB14:
	call	__cxa_throw@PLT
.LEHE14:
.L135:
	movq	%rax, %rbx
	vzeroupper
.L130:
	movq	%r12, %rdi
	call	__cxa_free_exception@PLT
.L131:
	testq	%r13, %r13
	je	.L133
	movq	%r13, %rdi
	call	_ZN5torch12aot_inductor29delete_record_function_objectEPv@PLT
.L133:
	movq	%rbx, %rdi
.LEHB15:
	call	_Unwind_Resume@PLT
.LEHE15:
.L136:
	movq	-80(%rbp), %rdi
	movq	%rax, %rbx
	leaq	-64(%rbp), %rax
	cmpq	%rax, %rdi
	je	.L145
	movq	-64(%rbp), %rax
	leaq	1(%rax), %rsi
	vzeroupper
	call	_ZdlPvm@PLT
	jmp	.L130
.L134:
	movq	%rax, %rbx
	vzeroupper
	jmp	.L131
.L145:
	vzeroupper
	jmp	.L130
	.cfi_endproc
.LFE16665:
	.section	.gcc_except_table
.LLSDAC16665:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128 .LLSDACSEC16665-.LLSDACSBC16665
.LLSDACSBC16665:
	.uleb128 .LEHB12-.LCOLDB16
	.uleb128 .LEHE12-.LEHB12
	.uleb128 .L135-.LCOLDB16
	.uleb128 0
	.uleb128 .LEHB13-.LCOLDB16
	.uleb128 .LEHE13-.LEHB13
	.uleb128 .L136-.LCOLDB16
	.uleb128 0
	.uleb128 .LEHB14-.LCOLDB16
	.uleb128 .LEHE14-.LEHB14
	.uleb128 .L134-.LCOLDB16
	.uleb128 0
	.uleb128 .LEHB15-.LCOLDB16
	.uleb128 .LEHE15-.LEHB15
	.uleb128 0
	.uleb128 0
.LLSDACSEC16665:
	.section	.text.unlikely
	.text
	.size	kernel, .-kernel
