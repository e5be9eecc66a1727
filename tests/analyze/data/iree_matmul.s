	.type	main$async_dispatch_0_matmul_like_96x96x96_f32,@function
main$async_dispatch_0_matmul_like_96x96x96_f32:
.Lfunc_begin0:
	.file	1 "-"
	.loc	1 1 0
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	.cfi_offset %rbx, -56
	.cfi_offset %r12, -48
	.cfi_offset %r13, -40
	.cfi_offset %r14, -32
	.cfi_offset %r15, -24
	.loc	1 1 0 prologue_end
	movl	(%rdx), %r11d
	movq	32(%rsi), %r10
	xorl	%edi, %edi
	movl	$48, %esi
	vxorps	%xmm0, %xmm0, %xmm0
	movl	%r11d, %edx
	andl	$-2, %edx
	movq	(%r10), %r9
	movq	16(%r10), %rax
	movq	24(%r10), %rcx
	shlq	$3, %rdx
	testb	$1, %r11b
	cmoveq	%rdi, %rsi
	shrl	%r11d
	leaq	(%r11,%r11,2), %r11
	leal	(,%rsi,4), %r8d
	addq	8(%r10), %r8
	shlq	$11, %r11
	leaq	2748(%r11,%r9), %r9
	movq	%r9, -48(%rbp)
	movb	$1, %r9b
	.loc	1 0 0 is_stmt 0
.Ltmp0:
	.p2align	4
.LBB0_1:
	leaq	(%rdi,%rdi,2), %rbx
	leaq	(%rdi,%rdx), %r10
	movq	%r8, %rdi
	xorl	%r15d, %r15d
	leaq	(%r10,%r10,2), %r11
	shlq	$7, %rbx
	addq	-48(%rbp), %rbx
	shlq	$7, %r11
	leaq	(%rcx,%r11), %r10
	leaq	384(%rcx,%r11), %r11
	.p2align	4
.LBB0_2:
	leaq	(%r15,%rsi), %r12
	movq	$-16, %r13
	movq	%rdi, %r14
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm7, %xmm7, %xmm7
	vxorps	%xmm8, %xmm8, %xmm8
	.p2align	4
.LBB0_3:
	vmovaps	(%r14), %zmm22
	vmovaps	384(%r14), %zmm23
	vmovaps	768(%r14), %zmm24
	vmovaps	1152(%r14), %zmm21
	vmovaps	1536(%r14), %zmm20
	vmovaps	1920(%r14), %zmm19
	vmovaps	2304(%r14), %zmm18
	vmovaps	2688(%r14), %zmm17
	vmovaps	3072(%r14), %zmm16
	vmovaps	3456(%r14), %zmm15
	vmovaps	3840(%r14), %zmm14
	vmovaps	4224(%r14), %zmm13
	vmovaps	4608(%r14), %zmm12
	vmovaps	4992(%r14), %zmm11
	vmovaps	5376(%r14), %zmm10
	vmovaps	5760(%r14), %zmm9
	addq	$6144, %r14
	vfmadd231ps	-2684(%rbx,%r13,4){1to16}, %zmm22, %zmm1
	vfmadd231ps	-2300(%rbx,%r13,4){1to16}, %zmm22, %zmm2
	vfmadd231ps	-1916(%rbx,%r13,4){1to16}, %zmm22, %zmm3
	vfmadd231ps	-1532(%rbx,%r13,4){1to16}, %zmm22, %zmm4
	vfmadd231ps	-1148(%rbx,%r13,4){1to16}, %zmm22, %zmm5
	vfmadd231ps	-764(%rbx,%r13,4){1to16}, %zmm22, %zmm6
	vfmadd231ps	-380(%rbx,%r13,4){1to16}, %zmm22, %zmm7
	vfmadd231ps	4(%rbx,%r13,4){1to16}, %zmm22, %zmm8
	vfmadd231ps	-2680(%rbx,%r13,4){1to16}, %zmm23, %zmm1
	vfmadd231ps	-2296(%rbx,%r13,4){1to16}, %zmm23, %zmm2
	vfmadd231ps	-1912(%rbx,%r13,4){1to16}, %zmm23, %zmm3
	vfmadd231ps	-1528(%rbx,%r13,4){1to16}, %zmm23, %zmm4
	vfmadd231ps	-1144(%rbx,%r13,4){1to16}, %zmm23, %zmm5
	vfmadd231ps	-760(%rbx,%r13,4){1to16}, %zmm23, %zmm6
	vfmadd231ps	-376(%rbx,%r13,4){1to16}, %zmm23, %zmm7
	vfmadd231ps	8(%rbx,%r13,4){1to16}, %zmm23, %zmm8
	vfmadd231ps	-2676(%rbx,%r13,4){1to16}, %zmm24, %zmm1
	vfmadd231ps	-2292(%rbx,%r13,4){1to16}, %zmm24, %zmm2
	vfmadd231ps	-1908(%rbx,%r13,4){1to16}, %zmm24, %zmm3
	vfmadd231ps	-1524(%rbx,%r13,4){1to16}, %zmm24, %zmm4
	vfmadd231ps	-1140(%rbx,%r13,4){1to16}, %zmm24, %zmm5
	vfmadd231ps	-756(%rbx,%r13,4){1to16}, %zmm24, %zmm6
	vfmadd231ps	-372(%rbx,%r13,4){1to16}, %zmm24, %zmm7
	vfmadd231ps	12(%rbx,%r13,4){1to16}, %zmm24, %zmm8
	vfmadd231ps	-2672(%rbx,%r13,4){1to16}, %zmm21, %zmm1
	vfmadd231ps	-2288(%rbx,%r13,4){1to16}, %zmm21, %zmm2
	vfmadd231ps	-1904(%rbx,%r13,4){1to16}, %zmm21, %zmm3
	vfmadd231ps	-1520(%rbx,%r13,4){1to16}, %zmm21, %zmm4
	vfmadd231ps	-1136(%rbx,%r13,4){1to16}, %zmm21, %zmm5
	vfmadd231ps	-752(%rbx,%r13,4){1to16}, %zmm21, %zmm6
	vfmadd231ps	-368(%rbx,%r13,4){1to16}, %zmm21, %zmm7
	vfmadd231ps	16(%rbx,%r13,4){1to16}, %zmm21, %zmm8
	vfmadd231ps	-2668(%rbx,%r13,4){1to16}, %zmm20, %zmm1
	vfmadd231ps	-2284(%rbx,%r13,4){1to16}, %zmm20, %zmm2
	vfmadd231ps	-1900(%rbx,%r13,4){1to16}, %zmm20, %zmm3
	vfmadd231ps	-1516(%rbx,%r13,4){1to16}, %zmm20, %zmm4
	vfmadd231ps	-1132(%rbx,%r13,4){1to16}, %zmm20, %zmm5
	vfmadd231ps	-748(%rbx,%r13,4){1to16}, %zmm20, %zmm6
	vfmadd231ps	-364(%rbx,%r13,4){1to16}, %zmm20, %zmm7
	vfmadd231ps	20(%rbx,%r13,4){1to16}, %zmm20, %zmm8
	vfmadd231ps	-2664(%rbx,%r13,4){1to16}, %zmm19, %zmm1
	vfmadd231ps	-2280(%rbx,%r13,4){1to16}, %zmm19, %zmm2
	vfmadd231ps	-1896(%rbx,%r13,4){1to16}, %zmm19, %zmm3
	vfmadd231ps	-1512(%rbx,%r13,4){1to16}, %zmm19, %zmm4
	vfmadd231ps	-1128(%rbx,%r13,4){1to16}, %zmm19, %zmm5
	vfmadd231ps	-744(%rbx,%r13,4){1to16}, %zmm19, %zmm6
	vfmadd231ps	-360(%rbx,%r13,4){1to16}, %zmm19, %zmm7
	vfmadd231ps	24(%rbx,%r13,4){1to16}, %zmm19, %zmm8
	vfmadd231ps	-2660(%rbx,%r13,4){1to16}, %zmm18, %zmm1
	vfmadd231ps	-2276(%rbx,%r13,4){1to16}, %zmm18, %zmm2
	vfmadd231ps	-1892(%rbx,%r13,4){1to16}, %zmm18, %zmm3
	vfmadd231ps	-1508(%rbx,%r13,4){1to16}, %zmm18, %zmm4
	vfmadd231ps	-1124(%rbx,%r13,4){1to16}, %zmm18, %zmm5
	vfmadd231ps	-740(%rbx,%r13,4){1to16}, %zmm18, %zmm6
	vfmadd231ps	-356(%rbx,%r13,4){1to16}, %zmm18, %zmm7
	vfmadd231ps	28(%rbx,%r13,4){1to16}, %zmm18, %zmm8
	vfmadd231ps	-2656(%rbx,%r13,4){1to16}, %zmm17, %zmm1
	vfmadd231ps	-2272(%rbx,%r13,4){1to16}, %zmm17, %zmm2
	vfmadd231ps	-1888(%rbx,%r13,4){1to16}, %zmm17, %zmm3
	vfmadd231ps	-1504(%rbx,%r13,4){1to16}, %zmm17, %zmm4
	vfmadd231ps	-1120(%rbx,%r13,4){1to16}, %zmm17, %zmm5
	vfmadd231ps	-736(%rbx,%r13,4){1to16}, %zmm17, %zmm6
	vfmadd231ps	-352(%rbx,%r13,4){1to16}, %zmm17, %zmm7
	vfmadd231ps	32(%rbx,%r13,4){1to16}, %zmm17, %zmm8
	vfmadd231ps	-2652(%rbx,%r13,4){1to16}, %zmm16, %zmm1
	vfmadd231ps	-2268(%rbx,%r13,4){1to16}, %zmm16, %zmm2
	vfmadd231ps	-1884(%rbx,%r13,4){1to16}, %zmm16, %zmm3
	vfmadd231ps	-1500(%rbx,%r13,4){1to16}, %zmm16, %zmm4
	vfmadd231ps	-1116(%rbx,%r13,4){1to16}, %zmm16, %zmm5
	vfmadd231ps	-732(%rbx,%r13,4){1to16}, %zmm16, %zmm6
	vfmadd231ps	-348(%rbx,%r13,4){1to16}, %zmm16, %zmm7
	vfmadd231ps	36(%rbx,%r13,4){1to16}, %zmm16, %zmm8
	vfmadd231ps	-2648(%rbx,%r13,4){1to16}, %zmm15, %zmm1
	vfmadd231ps	-2264(%rbx,%r13,4){1to16}, %zmm15, %zmm2
	vfmadd231ps	-1880(%rbx,%r13,4){1to16}, %zmm15, %zmm3
	vfmadd231ps	-1496(%rbx,%r13,4){1to16}, %zmm15, %zmm4
	vfmadd231ps	-1112(%rbx,%r13,4){1to16}, %zmm15, %zmm5
	vfmadd231ps	-728(%rbx,%r13,4){1to16}, %zmm15, %zmm6
	vfmadd231ps	-344(%rbx,%r13,4){1to16}, %zmm15, %zmm7
	vfmadd231ps	40(%rbx,%r13,4){1to16}, %zmm15, %zmm8
	vfmadd231ps	-2644(%rbx,%r13,4){1to16}, %zmm14, %zmm1
	vfmadd231ps	-2260(%rbx,%r13,4){1to16}, %zmm14, %zmm2
	vfmadd231ps	-1876(%rbx,%r13,4){1to16}, %zmm14, %zmm3
	vfmadd231ps	-1492(%rbx,%r13,4){1to16}, %zmm14, %zmm4
	vfmadd231ps	-1108(%rbx,%r13,4){1to16}, %zmm14, %zmm5
	vfmadd231ps	-724(%rbx,%r13,4){1to16}, %zmm14, %zmm6
	vfmadd231ps	-340(%rbx,%r13,4){1to16}, %zmm14, %zmm7
	vfmadd231ps	44(%rbx,%r13,4){1to16}, %zmm14, %zmm8
	vfmadd231ps	-2640(%rbx,%r13,4){1to16}, %zmm13, %zmm1
	vfmadd231ps	-2256(%rbx,%r13,4){1to16}, %zmm13, %zmm2
	vfmadd231ps	-1872(%rbx,%r13,4){1to16}, %zmm13, %zmm3
	vfmadd231ps	-1488(%rbx,%r13,4){1to16}, %zmm13, %zmm4
	vfmadd231ps	-1104(%rbx,%r13,4){1to16}, %zmm13, %zmm5
	vfmadd231ps	-720(%rbx,%r13,4){1to16}, %zmm13, %zmm6
	vfmadd231ps	-336(%rbx,%r13,4){1to16}, %zmm13, %zmm7
	vfmadd231ps	48(%rbx,%r13,4){1to16}, %zmm13, %zmm8
	vfmadd231ps	-2636(%rbx,%r13,4){1to16}, %zmm12, %zmm1
	vfmadd231ps	-2252(%rbx,%r13,4){1to16}, %zmm12, %zmm2
	vfmadd231ps	-1868(%rbx,%r13,4){1to16}, %zmm12, %zmm3
	vfmadd231ps	-1484(%rbx,%r13,4){1to16}, %zmm12, %zmm4
	vfmadd231ps	-1100(%rbx,%r13,4){1to16}, %zmm12, %zmm5
	vfmadd231ps	-716(%rbx,%r13,4){1to16}, %zmm12, %zmm6
	vfmadd231ps	-332(%rbx,%r13,4){1to16}, %zmm12, %zmm7
	vfmadd231ps	52(%rbx,%r13,4){1to16}, %zmm12, %zmm8
	vfmadd231ps	-2632(%rbx,%r13,4){1to16}, %zmm11, %zmm1
	vfmadd231ps	-2248(%rbx,%r13,4){1to16}, %zmm11, %zmm2
	vfmadd231ps	-1864(%rbx,%r13,4){1to16}, %zmm11, %zmm3
	vfmadd231ps	-1480(%rbx,%r13,4){1to16}, %zmm11, %zmm4
	vfmadd231ps	-1096(%rbx,%r13,4){1to16}, %zmm11, %zmm5
	vfmadd231ps	-712(%rbx,%r13,4){1to16}, %zmm11, %zmm6
	vfmadd231ps	-328(%rbx,%r13,4){1to16}, %zmm11, %zmm7
	vfmadd231ps	56(%rbx,%r13,4){1to16}, %zmm11, %zmm8
	vfmadd231ps	-2628(%rbx,%r13,4){1to16}, %zmm10, %zmm1
	vfmadd231ps	-2244(%rbx,%r13,4){1to16}, %zmm10, %zmm2
	vfmadd231ps	-1860(%rbx,%r13,4){1to16}, %zmm10, %zmm3
	vfmadd231ps	-1476(%rbx,%r13,4){1to16}, %zmm10, %zmm4
	vfmadd231ps	-1092(%rbx,%r13,4){1to16}, %zmm10, %zmm5
	vfmadd231ps	-708(%rbx,%r13,4){1to16}, %zmm10, %zmm6
	vfmadd231ps	-324(%rbx,%r13,4){1to16}, %zmm10, %zmm7
	vfmadd231ps	60(%rbx,%r13,4){1to16}, %zmm10, %zmm8
	vfmadd231ps	-2624(%rbx,%r13,4){1to16}, %zmm9, %zmm1
	vfmadd231ps	-2240(%rbx,%r13,4){1to16}, %zmm9, %zmm2
	vfmadd231ps	-1856(%rbx,%r13,4){1to16}, %zmm9, %zmm3
	vfmadd231ps	-1472(%rbx,%r13,4){1to16}, %zmm9, %zmm4
	vfmadd231ps	-1088(%rbx,%r13,4){1to16}, %zmm9, %zmm5
	vfmadd231ps	-704(%rbx,%r13,4){1to16}, %zmm9, %zmm6
	vfmadd231ps	-320(%rbx,%r13,4){1to16}, %zmm9, %zmm7
	vfmadd231ps	64(%rbx,%r13,4){1to16}, %zmm9, %zmm8
	addq	$16, %r13
	cmpq	$80, %r13
	jb	.LBB0_3
	vmovaps	(%rax,%r12,4), %zmm9
	addq	$64, %rdi
	vaddps	%zmm9, %zmm1, %zmm1
	vaddps	%zmm9, %zmm2, %zmm2
	vaddps	%zmm9, %zmm3, %zmm3
	vaddps	%zmm9, %zmm4, %zmm4
	vaddps	%zmm9, %zmm5, %zmm5
	vaddps	%zmm9, %zmm6, %zmm6
	vaddps	%zmm9, %zmm7, %zmm7
	vaddps	%zmm9, %zmm8, %zmm8
	vcmpnleps	%zmm0, %zmm1, %k1
	vmovaps	%zmm1, %zmm1 {%k1} {z}
	vcmpnleps	%zmm0, %zmm2, %k1
	vmovaps	%zmm1, (%r10,%r12,4)
	vmovaps	%zmm2, %zmm2 {%k1} {z}
	vcmpnleps	%zmm0, %zmm3, %k1
	vmovaps	%zmm2, (%r11,%r12,4)
	vmovaps	%zmm3, %zmm3 {%k1} {z}
	vcmpnleps	%zmm0, %zmm4, %k1
	vmovaps	%zmm3, 384(%r11,%r12,4)
	vmovaps	%zmm4, %zmm4 {%k1} {z}
	vcmpnleps	%zmm0, %zmm5, %k1
	vmovaps	%zmm4, 768(%r11,%r12,4)
	vmovaps	%zmm5, %zmm5 {%k1} {z}
	vcmpnleps	%zmm0, %zmm6, %k1
	vmovaps	%zmm5, 1152(%r11,%r12,4)
	vmovaps	%zmm6, %zmm6 {%k1} {z}
	vcmpnleps	%zmm0, %zmm7, %k1
	vmovaps	%zmm6, 1536(%r11,%r12,4)
	vmovaps	%zmm7, %zmm7 {%k1} {z}
	vcmpnleps	%zmm0, %zmm8, %k1
	vmovaps	%zmm7, 1920(%r11,%r12,4)
	vmovaps	%zmm8, %zmm8 {%k1} {z}
	vmovaps	%zmm8, 2304(%r11,%r12,4)
	cmpq	$32, %r15
	leaq	16(%r15), %r15
	jb	.LBB0_2
	movl	$8, %edi
	testb	$1, %r9b
	movl	$0, %r9d
	jne	.LBB0_1
	xorl	%eax, %eax
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	vzeroupper
	retq
.Lfunc_end0:
	.size	main$async_dispatch_0_matmul_like_96x96x96_f32, .Lfunc_end0-main$async_dispatch_0_matmul_like_96x96x96_f32
