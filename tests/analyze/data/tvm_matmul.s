	.type	fused_matmul_add_relu_compute_,@function
fused_matmul_add_relu_compute_:
.Lfunc_begin3:
	.loc	1 0 0
	.cfi_startproc
	subq	$40, %rsp
	.cfi_def_cfa_offset 48
.Ltmp194:
	movq	__TVMBackendParallelLaunch@GOTPCREL(%rip), %rax
	movl	%r8d, (%rsp)
	movq	%rdi, 8(%rsp)
	leaq	.L__tvm_parallel_lambda(%rip), %rdi
.Ltmp195:
	movq	%rsi, 16(%rsp)
	movq	%rcx, 24(%rsp)
	movq	%rdx, 32(%rsp)
	movq	%rsp, %rsi
.Ltmp196:
	xorl	%edx, %edx
.Ltmp197:
	callq	*(%rax)
.Ltmp198:
	addq	$40, %rsp
	.cfi_def_cfa_offset 8
	retq
.Ltmp199:
.Lfunc_end3:
	.size	fused_matmul_add_relu_compute_, .Lfunc_end3-fused_matmul_add_relu_compute_
	.cfi_endproc

	.p2align	4
	.type	.L__tvm_parallel_lambda,@function
.L__tvm_parallel_lambda:
.Lfunc_begin4:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	pushq	%r15
	.cfi_def_cfa_offset 24
	pushq	%r14
	.cfi_def_cfa_offset 32
	pushq	%r13
	.cfi_def_cfa_offset 40
	pushq	%r12
	.cfi_def_cfa_offset 48
	pushq	%rbx
	.cfi_def_cfa_offset 56
	subq	$56, %rsp
	.cfi_def_cfa_offset 112
	.cfi_offset %rbx, -56
	.cfi_offset %r12, -48
	.cfi_offset %r13, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.cfi_offset %rbp, -16
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	movl	$24, %r14d
	leal	23(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %edx
	movl	%eax, %ebx
	imull	%ebx, %edx
	cmpl	$24, %edx
	cmovll	%edx, %r14d
	imull	%edi, %ebx
	cmpl	%r14d, %ebx
	jge	.LBB4_1
	movq	24(%rcx), %rax
	movq	8(%rcx), %r15
	movl	(%rcx), %ebp
	movq	16(%rcx), %r12
	movq	32(%rcx), %r13
	movq	%rax, 48(%rsp)
	movq	__TVMBackendAllocWorkspace@GOTPCREL(%rip), %rax
	addq	$4224, %r15
.LBB4_4:
	movl	$1536, %edx
	movl	$1, %edi
	movl	$2, %ecx
	movl	$32, %r8d
	movl	%ebp, %esi
	callq	*(%rax)
	movl	$-1, %ecx
	testq	%rax, %rax
	je	.LBB4_8
	movl	%ebx, %ecx
	andl	$7, %ecx
	movq	%r12, 16(%rsp)
	movl	%ebx, %edx
	sarl	$3, %edx
	movq	%rax, 40(%rsp)
	movq	%rax, %rdi
	xorl	%esi, %esi
	leaq	(%rcx,%rcx,8), %r12
	shll	$7, %ecx
	movl	%edx, 12(%rsp)
	leal	(%rcx,%rcx,8), %ecx
	shll	$9, %r12d
	movq	%rcx, 32(%rsp)
	movl	%edx, %ecx
	shll	$10, %ecx
	movl	$1536, %edx
	addq	%r15, %r12
	leal	(%rcx,%rcx,2), %ecx
	movslq	%ecx, %rcx
	movq	%rcx, 24(%rsp)
	callq	memset@PLT
	movq	16(%rsp), %rax
	movq	24(%rsp), %rcx
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm22, %xmm22, %xmm22
	vxorps	%xmm23, %xmm23, %xmm23
	vxorps	%xmm20, %xmm20, %xmm20
	vxorps	%xmm21, %xmm21, %xmm21
	vxorps	%xmm18, %xmm18, %xmm18
	vxorps	%xmm19, %xmm19, %xmm19
	vxorps	%xmm16, %xmm16, %xmm16
	vxorps	%xmm17, %xmm17, %xmm17
	vxorps	%xmm14, %xmm14, %xmm14
	vxorps	%xmm15, %xmm15, %xmm15
	vxorps	%xmm12, %xmm12, %xmm12
	vxorps	%xmm13, %xmm13, %xmm13
	vxorps	%xmm10, %xmm10, %xmm10
	vxorps	%xmm11, %xmm11, %xmm11
	vxorps	%xmm8, %xmm8, %xmm8
	vxorps	%xmm9, %xmm9, %xmm9
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm7, %xmm7, %xmm7
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm1, %xmm1, %xmm1
	leaq	(%rax,%rcx,4), %rax
	movq	$-384, %rcx
	.p2align	4
.LBB4_6:
	vbroadcastss	-3456(%r12,%rcx), %zmm27
	vmovaps	(%rax), %zmm24
	vmovaps	64(%rax), %zmm26
	vbroadcastss	-3072(%r12,%rcx), %zmm28
	vbroadcastss	-3840(%r12,%rcx), %zmm25
	vbroadcastss	-2304(%r12,%rcx), %zmm29
	subq	$-128, %rax
	vfmadd231ps	%zmm26, %zmm27, %zmm21
	vfmadd231ps	%zmm27, %zmm24, %zmm20
	vbroadcastss	-2688(%r12,%rcx), %zmm27
	vfmadd231ps	%zmm26, %zmm28, %zmm19
	vfmadd231ps	%zmm28, %zmm24, %zmm18
	vbroadcastss	-1536(%r12,%rcx), %zmm28
	vfmadd231ps	%zmm26, %zmm25, %zmm23
	vfmadd231ps	%zmm25, %zmm24, %zmm22
	vfmadd231ps	%zmm26, %zmm29, %zmm15
	vfmadd231ps	%zmm29, %zmm24, %zmm14
	vfmadd231ps	%zmm26, %zmm27, %zmm17
	vfmadd231ps	%zmm27, %zmm24, %zmm16
	vbroadcastss	-1920(%r12,%rcx), %zmm27
	vfmadd231ps	%zmm26, %zmm28, %zmm11
	vfmadd231ps	%zmm28, %zmm24, %zmm10
	vbroadcastss	-768(%r12,%rcx), %zmm28
	vfmadd231ps	%zmm26, %zmm27, %zmm13
	vfmadd231ps	%zmm27, %zmm24, %zmm12
	vbroadcastss	-1152(%r12,%rcx), %zmm27
	vfmadd231ps	%zmm26, %zmm28, %zmm7
	vfmadd231ps	%zmm28, %zmm24, %zmm6
	vbroadcastss	(%r12,%rcx), %zmm28
	vfmadd231ps	%zmm26, %zmm27, %zmm9
	vfmadd231ps	%zmm27, %zmm24, %zmm8
	vbroadcastss	-384(%r12,%rcx), %zmm27
	vfmadd231ps	%zmm26, %zmm28, %zmm3
	vfmadd231ps	%zmm28, %zmm24, %zmm2
	vfmadd231ps	%zmm26, %zmm27, %zmm5
	vfmadd231ps	%zmm27, %zmm24, %zmm4
	vbroadcastss	384(%r12,%rcx), %zmm27
	addq	$4, %rcx
	vfmadd231ps	%zmm26, %zmm27, %zmm0
	vfmadd231ps	%zmm24, %zmm27, %zmm1
	jne	.LBB4_6
	movl	12(%rsp), %eax
	movq	40(%rsp), %rdx
	movq	32(%rsp), %rdi
	movq	48(%rsp), %rsi
	vxorps	%xmm26, %xmm26, %xmm26
	shll	$5, %eax
	vmovups	%zmm22, (%rdx)
	vmovups	%zmm23, 64(%rdx)
	vmovups	%zmm20, 128(%rdx)
	vmovups	%zmm21, 192(%rdx)
	vmovups	%zmm18, 256(%rdx)
	vmovups	%zmm19, 320(%rdx)
	vmovups	%zmm16, 384(%rdx)
	vmovups	%zmm17, 448(%rdx)
	vmovups	%zmm14, 512(%rdx)
	vmovups	%zmm15, 576(%rdx)
	vmovups	%zmm12, 640(%rdx)
	vmovups	%zmm13, 704(%rdx)
	vmovups	%zmm10, 768(%rdx)
	vmovups	%zmm11, 832(%rdx)
	vmovups	%zmm8, 896(%rdx)
	vmovups	%zmm9, 960(%rdx)
	vmovups	%zmm6, 1024(%rdx)
	vmovups	%zmm7, 1088(%rdx)
	vmovups	%zmm4, 1152(%rdx)
	vmovups	%zmm5, 1216(%rdx)
	vmovups	%zmm2, 1280(%rdx)
	vmovups	%zmm3, 1344(%rdx)
	vmovups	%zmm1, 1408(%rdx)
	vmovups	%zmm0, 1472(%rdx)
	cltq
	vmovaps	(%r13,%rax,4), %zmm24
	vmovaps	64(%r13,%rax,4), %zmm25
	leal	(%rax,%rdi), %ecx
	leal	96(%rax,%rdi), %r9d
	leal	192(%rax,%rdi), %r8d
	movslq	%ecx, %rcx
	vaddps	%zmm23, %zmm25, %zmm23
	vaddps	%zmm22, %zmm24, %zmm22
	vaddps	%zmm21, %zmm25, %zmm21
	vaddps	%zmm20, %zmm24, %zmm20
	vaddps	%zmm19, %zmm25, %zmm19
	vaddps	%zmm18, %zmm24, %zmm18
	vaddps	%zmm17, %zmm25, %zmm17
	vaddps	%zmm16, %zmm24, %zmm16
	vaddps	%zmm15, %zmm25, %zmm15
	vaddps	%zmm14, %zmm24, %zmm14
	vaddps	%zmm13, %zmm25, %zmm13
	vaddps	%zmm12, %zmm24, %zmm12
	vaddps	%zmm11, %zmm25, %zmm11
	vaddps	%zmm10, %zmm24, %zmm10
	vaddps	%zmm9, %zmm25, %zmm9
	vaddps	%zmm8, %zmm24, %zmm8
	vaddps	%zmm7, %zmm25, %zmm7
	vaddps	%zmm6, %zmm24, %zmm6
	vaddps	%zmm5, %zmm25, %zmm5
	vaddps	%zmm4, %zmm24, %zmm4
	vaddps	%zmm3, %zmm25, %zmm3
	vaddps	%zmm2, %zmm24, %zmm2
	vaddps	%zmm0, %zmm25, %zmm0
	vaddps	%zmm1, %zmm24, %zmm1
	vmaxps	%zmm26, %zmm22, %zmm22
	vmaxps	%zmm26, %zmm23, %zmm23
	vmaxps	%zmm26, %zmm20, %zmm20
	vmaxps	%zmm26, %zmm21, %zmm21
	vmaxps	%zmm26, %zmm18, %zmm18
	vmaxps	%zmm26, %zmm19, %zmm19
	vmaxps	%zmm26, %zmm16, %zmm16
	vmaxps	%zmm26, %zmm17, %zmm17
	vmaxps	%zmm26, %zmm14, %zmm14
	vmaxps	%zmm26, %zmm15, %zmm15
	vmaxps	%zmm26, %zmm12, %zmm12
	vmaxps	%zmm26, %zmm13, %zmm13
	vmaxps	%zmm26, %zmm10, %zmm10
	vmaxps	%zmm26, %zmm11, %zmm11
	vmaxps	%zmm26, %zmm8, %zmm8
	vmaxps	%zmm26, %zmm9, %zmm9
	vmaxps	%zmm26, %zmm6, %zmm6
	vmaxps	%zmm26, %zmm7, %zmm7
	vmaxps	%zmm26, %zmm4, %zmm4
	vmaxps	%zmm26, %zmm5, %zmm5
	vmaxps	%zmm26, %zmm2, %zmm2
	vmaxps	%zmm26, %zmm3, %zmm3
	vmaxps	%zmm26, %zmm1, %zmm1
	vmaxps	%zmm26, %zmm0, %zmm0
	vmovaps	%zmm23, 64(%rsi,%rcx,4)
	vmovaps	%zmm22, (%rsi,%rcx,4)
	movslq	%r9d, %rcx
	leal	288(%rax,%rdi), %r9d
	vmovaps	%zmm21, 64(%rsi,%rcx,4)
	vmovaps	%zmm20, (%rsi,%rcx,4)
	movslq	%r8d, %rcx
	leal	384(%rax,%rdi), %r8d
	vmovaps	%zmm19, 64(%rsi,%rcx,4)
	vmovaps	%zmm18, (%rsi,%rcx,4)
	movslq	%r9d, %rcx
	leal	480(%rax,%rdi), %r9d
	vmovaps	%zmm17, 64(%rsi,%rcx,4)
	vmovaps	%zmm16, (%rsi,%rcx,4)
	movslq	%r8d, %rcx
	leal	576(%rax,%rdi), %r8d
	vmovaps	%zmm15, 64(%rsi,%rcx,4)
	vmovaps	%zmm14, (%rsi,%rcx,4)
	movslq	%r9d, %rcx
	leal	672(%rax,%rdi), %r9d
	vmovaps	%zmm13, 64(%rsi,%rcx,4)
	vmovaps	%zmm12, (%rsi,%rcx,4)
	movslq	%r8d, %rcx
	leal	768(%rax,%rdi), %r8d
	vmovaps	%zmm11, 64(%rsi,%rcx,4)
	vmovaps	%zmm10, (%rsi,%rcx,4)
	movslq	%r9d, %rcx
	leal	864(%rax,%rdi), %r9d
	vmovaps	%zmm9, 64(%rsi,%rcx,4)
	vmovaps	%zmm8, (%rsi,%rcx,4)
	movslq	%r8d, %rcx
	leal	960(%rax,%rdi), %r8d
	leal	1056(%rax,%rdi), %eax
	movl	$1, %edi
	vmovaps	%zmm7, 64(%rsi,%rcx,4)
	vmovaps	%zmm6, (%rsi,%rcx,4)
	movslq	%r9d, %rcx
	vmovaps	%zmm5, 64(%rsi,%rcx,4)
	vmovaps	%zmm4, (%rsi,%rcx,4)
	movslq	%r8d, %rcx
	cltq
	vmovaps	%zmm3, 64(%rsi,%rcx,4)
	vmovaps	%zmm2, (%rsi,%rcx,4)
	vmovaps	%zmm0, 64(%rsi,%rax,4)
	vmovaps	%zmm1, (%rsi,%rax,4)
	movq	__TVMBackendFreeWorkspace@GOTPCREL(%rip), %rax
	movl	%ebp, %esi
	vzeroupper
	callq	*(%rax)
	movl	$-1, %ecx
	movq	16(%rsp), %r12
	testl	%eax, %eax
	movq	__TVMBackendAllocWorkspace@GOTPCREL(%rip), %rax
	jne	.LBB4_8
	incl	%ebx
	xorl	%ecx, %ecx
	cmpl	%r14d, %ebx
	jne	.LBB4_4
	jmp	.LBB4_8
.LBB4_1:
	xorl	%ecx, %ecx
.LBB4_8:
	movl	%ecx, %eax
	addq	$56, %rsp
	.cfi_def_cfa_offset 56
	popq	%rbx
	.cfi_def_cfa_offset 48
	popq	%r12
	.cfi_def_cfa_offset 40
	popq	%r13
	.cfi_def_cfa_offset 32
	popq	%r14
	.cfi_def_cfa_offset 24
	popq	%r15
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	retq
.Lfunc_end4:
	.size	.L__tvm_parallel_lambda, .Lfunc_end4-.L__tvm_parallel_lambda
	.cfi_endproc

	.weak	__tvm_ffi_main
	.p2align	4
