	.file	"TVMMod"
	.text
	.globl	__tvm_ffi_fused_expand_dims_broadcast_to_reshape
	.p2align	4
	.type	__tvm_ffi_fused_expand_dims_broadcast_to_reshape,@function
__tvm_ffi_fused_expand_dims_broadcast_to_reshape:
.Lfunc_begin0:
	.file	1 "." "IRModule.CodeGenLLVM"
	.loc	1 0 0
	.cfi_startproc
	xorl	%eax, %eax
.Ltmp0:
	cmpl	$70, (%rsi)
	movl	$24, %edx
.Ltmp1:
	movl	$0, %r8d
	movq	8(%rsi), %rcx
.Ltmp2:
	movq	24(%rsi), %r9
	cmoveq	%rdx, %r8
.Ltmp3:
	cmpl	$70, 16(%rsi)
	movq	(%rcx,%r8), %rdi
.Ltmp4:
	cmoveq	%rdx, %rax
.Ltmp5:
	addq	40(%rcx,%r8), %rdi
.Ltmp6:
	movq	(%r9,%rax), %rsi
.Ltmp7:
	addq	40(%r9,%rax), %rsi
.Ltmp8:
	jmp	fused_expand_dims_broadcast_to_reshape_compute_
.Ltmp9:
.Lfunc_end0:
	.size	__tvm_ffi_fused_expand_dims_broadcast_to_reshape, .Lfunc_end0-__tvm_ffi_fused_expand_dims_broadcast_to_reshape
	.cfi_endproc

	.p2align	4
	.type	fused_expand_dims_broadcast_to_reshape_compute_,@function
fused_expand_dims_broadcast_to_reshape_compute_:
.Lfunc_begin1:
	.loc	1 0 0
	.cfi_startproc
	pushq	%r14
	.cfi_def_cfa_offset 16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	subq	$24, %rsp
	.cfi_def_cfa_offset 48
	.cfi_offset %rbx, -24
	.cfi_offset %r14, -16
.Ltmp10:
	movq	%rsi, %rbx
.Ltmp11:
	addq	$8000000, %rsi
.Ltmp12:
	movq	%rdi, %r14
.Ltmp13:
	leaq	2097151(%rbx), %rdi
	movl	$14, %edx
	andq	$-2097152, %rdi
	andq	$-2097152, %rsi
	subq	%rdi, %rsi
	callq	madvise@PLT
	movq	__TVMBackendParallelLaunch@GOTPCREL(%rip), %rax
	leaq	.L__tvm_parallel_lambda(%rip), %rdi
	leaq	8(%rsp), %rsi
	movq	%rbx, 8(%rsp)
	xorl	%edx, %edx
	movq	%r14, 16(%rsp)
	callq	*(%rax)
	addq	$24, %rsp
	.cfi_def_cfa_offset 24
	popq	%rbx
.Ltmp14:
	.cfi_def_cfa_offset 16
	popq	%r14
.Ltmp15:
	.cfi_def_cfa_offset 8
	retq
.Ltmp16:
.Lfunc_end1:
	.size	fused_expand_dims_broadcast_to_reshape_compute_, .Lfunc_end1-fused_expand_dims_broadcast_to_reshape_compute_
	.cfi_endproc

	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI2_0:
	.zero	4
	.zero	4
	.long	1
	.long	1
	.long	2
	.long	2
	.long	3
	.long	3
	.long	4
	.long	4
	.long	5
	.long	5
	.long	6
	.long	6
	.zero	4
	.zero	4
	.text
	.p2align	4
	.type	.L__tvm_parallel_lambda,@function
.L__tvm_parallel_lambda:
.Lfunc_begin2:
	.cfi_startproc
	movl	8(%rsi), %esi
	movq	%rdx, %rcx
	leal	999(%rsi), %eax
	cltd
	idivl	%esi
	leal	1(%rdi), %esi
	movl	$1000, %edx
	imull	%eax, %esi
	cmpl	$1000, %esi
	cmovll	%esi, %edx
	imull	%edi, %eax
	cmpl	%edx, %eax
	jge	.LBB2_5
	vmovdqa64	.LCPI2_0(%rip), %zmm0
	movslq	%eax, %rdi
	movq	8(%rcx), %rsi
	imull	$1000, %eax, %eax
	imulq	$8000, %rdi, %r8
	addq	(%rcx), %r8
	imulq	$4000, %rdi, %rcx
	addq	%rsi, %rcx
	.p2align	4
.LBB2_2:
	xorl	%r9d, %r9d
	.p2align	4
.LBB2_3:
	leal	(%rax,%r9), %r10d
	vpbroadcastd	%r10d, %zmm1
	orl	$7, %r10d
	vpord	%zmm0, %zmm1, %zmm1
	movslq	%r10d, %r10
	vextracti32x4	$3, %zmm1, %xmm2
	vmovss	(%rsi,%r10,4), %xmm4
	vmovd	%xmm2, %r11d
	movslq	%r11d, %r11
	vmovss	(%rsi,%r11,4), %xmm3
	vpextrd	$1, %xmm2, %r11d
	movslq	%r11d, %r11
	vinsertps	$16, (%rsi,%r11,4), %xmm3, %xmm2
	vextracti32x4	$2, %zmm1, %xmm3
	vpextrd	$3, %xmm1, %r11d
	vmovd	%xmm3, %r10d
	movslq	%r10d, %r10
	vmovss	(%rsi,%r10,4), %xmm5
	vpextrd	$1, %xmm3, %r10d
	movslq	%r10d, %r10
	vinsertps	$16, (%rsi,%r10,4), %xmm5, %xmm5
	vpextrd	$2, %xmm3, %r10d
	movslq	%r10d, %r10
	vinsertps	$32, (%rsi,%r10,4), %xmm5, %xmm5
	vpextrd	$3, %xmm3, %r10d
	vextracti128	$1, %ymm1, %xmm3
	movslq	%r10d, %r10
	vshufps	$4, %xmm4, %xmm2, %xmm2
	vinsertps	$48, (%rsi,%r10,4), %xmm5, %xmm5
	vmovd	%xmm3, %r10d
	movslq	%r10d, %r10
	vmovss	(%rsi,%r10,4), %xmm6
	vpextrd	$1, %xmm3, %r10d
	movslq	%r10d, %r10
	vinsertps	$16, (%rsi,%r10,4), %xmm6, %xmm6
	vpextrd	$2, %xmm3, %r10d
	movslq	%r10d, %r10
	vinsertps	$32, (%rsi,%r10,4), %xmm6, %xmm6
	vpextrd	$3, %xmm3, %r10d
	movslq	%r10d, %r10
	vinsertps	$48, (%rsi,%r10,4), %xmm6, %xmm3
	vpextrd	$2, %xmm1, %r10d
	vbroadcastss	(%rcx,%r9,4), %xmm6
	vinsertf128	$1, %xmm2, %ymm5, %ymm2
	movslq	%r10d, %r10
	vinsertps	$32, (%rsi,%r10,4), %xmm6, %xmm6
	movslq	%r11d, %r10
	vinsertps	$48, (%rsi,%r10,4), %xmm6, %xmm1
	vinsertf128	$1, %xmm3, %ymm1, %ymm1
	vinsertf64x4	$1, %ymm2, %zmm1, %zmm1
	vmovaps	%zmm1, (%r8,%r9,8)
	addq	$8, %r9
	cmpq	$1000, %r9
	jne	.LBB2_3
	incq	%rdi
	addq	$8000, %r8
	addq	$4000, %rcx
	addq	$1000, %rax
	cmpl	%edi, %edx
	jne	.LBB2_2
.LBB2_5:
	xorl	%eax, %eax
	vzeroupper
	retq
.Lfunc_end2:
	.size	.L__tvm_parallel_lambda, .Lfunc_end2-.L__tvm_parallel_lambda
	.cfi_endproc

	.type	__TVMBackendParallelLaunch,@object
	.bss
	.weak	__TVMBackendParallelLaunch
	.p2align	3, 0x0
__TVMBackendParallelLaunch:
	.quad	0
	.size	__TVMBackendParallelLaunch, 8

	.hidden	__truncsfhf2
	.type	__truncsfhf2,@object
	.comm	__truncsfhf2,4,4
	.hidden	__extendhfsf2
	.type	__extendhfsf2,@object
	.comm	__extendhfsf2,4,4
	.section	.debug_loc,"",@progbits
.Ldebug_loc0:
	.quad	.Ltmp6-.Lfunc_begin0
	.quad	.Ltmp9-.Lfunc_begin0
	.short	2
	.byte	117
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc1:
	.quad	.Ltmp8-.Lfunc_begin0
	.quad	.Ltmp9-.Lfunc_begin0
	.short	2
	.byte	116
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc2:
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp4-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp4-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	85
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc3:
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp7-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp7-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc4:
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp1-.Lfunc_begin0
	.short	1
	.byte	81
	.quad	.Ltmp1-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	81
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc5:
	.quad	.Lfunc_begin0-.Lfunc_begin0
	.quad	.Ltmp2-.Lfunc_begin0
	.short	1
	.byte	82
	.quad	.Ltmp2-.Lfunc_begin0
	.quad	.Lfunc_end0-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	82
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc6:
	.quad	.Lfunc_begin1-.Lfunc_begin0
	.quad	.Ltmp13-.Lfunc_begin0
	.short	1
	.byte	85
	.quad	.Ltmp13-.Lfunc_begin0
	.quad	.Ltmp15-.Lfunc_begin0
	.short	1
	.byte	94
	.quad	.Ltmp15-.Lfunc_begin0
	.quad	.Lfunc_end1-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	85
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc7:
	.quad	.Lfunc_begin1-.Lfunc_begin0
	.quad	.Ltmp12-.Lfunc_begin0
	.short	1
	.byte	84
	.quad	.Ltmp12-.Lfunc_begin0
	.quad	.Ltmp14-.Lfunc_begin0
	.short	1
	.byte	83
	.quad	.Ltmp14-.Lfunc_begin0
	.quad	.Lfunc_end1-.Lfunc_begin0
	.short	4
	.byte	243
	.byte	1
	.byte	84
	.byte	159
	.quad	0
	.quad	0
.Ldebug_loc8:
	.quad	.Ltmp10-.Lfunc_begin0
	.quad	.Ltmp13-.Lfunc_begin0
	.short	2
	.byte	117
	.byte	0
	.quad	.Ltmp13-.Lfunc_begin0
	.quad	.Ltmp15-.Lfunc_begin0
	.short	2
	.byte	126
	.byte	0
	.quad	0
	.quad	0
.Ldebug_loc9:
	.quad	.Ltmp10-.Lfunc_begin0
	.quad	.Ltmp12-.Lfunc_begin0
	.short	2
	.byte	116
	.byte	0
	.quad	.Ltmp12-.Lfunc_begin0
	.quad	.Ltmp14-.Lfunc_begin0
	.short	2
	.byte	115
	.byte	0
	.quad	0
	.quad	0
	.section	.debug_abbrev,"",@progbits
	.byte	1
	.byte	17
	.byte	1
	.byte	37
	.byte	14
	.byte	19
	.byte	5
	.byte	3
	.byte	14
	.byte	16
	.byte	23
	.byte	27
	.byte	14
	.ascii	"\264B"
	.byte	25
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	0
	.byte	0
	.byte	2
	.byte	46
	.byte	1
	.byte	17
	.byte	1
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	3
	.byte	14
	.byte	39
	.byte	25
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	3
	.byte	5
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	4
	.byte	52
	.byte	0
	.byte	2
	.byte	23
	.byte	3
	.byte	14
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	5
	.byte	36
	.byte	0
	.byte	3
	.byte	14
	.byte	62
	.byte	11
	.byte	11
	.byte	11
	.byte	0
	.byte	0
	.byte	6
	.byte	15
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	7
	.byte	15
	.byte	0
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.long	.Ldebug_info_end0-.Ldebug_info_start0
.Ldebug_info_start0:
	.short	4
	.long	.debug_abbrev
	.byte	8
	.byte	1
	.long	.Linfo_string0
	.short	2
	.long	.Linfo_string1
	.long	.Lline_table_start0
	.long	.Linfo_string2

	.quad	.Lfunc_begin0
	.long	.Lfunc_end1-.Lfunc_begin0
	.byte	2
	.quad	.Lfunc_begin0
	.long	.Lfunc_end0-.Lfunc_begin0
	.byte	1
	.byte	87
	.long	.Linfo_string3

	.long	220
	.byte	3
	.long	.Ldebug_loc2
	.long	.Linfo_string9
	.long	239
	.byte	3
	.long	.Ldebug_loc3
	.long	.Linfo_string10
	.long	239
	.byte	3
	.long	.Ldebug_loc4
	.long	.Linfo_string11
	.long	220
	.byte	3
	.long	.Ldebug_loc5
	.long	.Linfo_string12
	.long	239
	.byte	4
	.long	.Ldebug_loc0
	.long	.Linfo_string6
	.long	227
	.byte	4
	.long	.Ldebug_loc1
	.long	.Linfo_string8
	.long	227
	.byte	0
	.byte	2
	.quad	.Lfunc_begin1
	.long	.Lfunc_end1-.Lfunc_begin1
	.byte	1
	.byte	87
	.long	.Linfo_string5

	.long	220
	.byte	3
	.long	.Ldebug_loc6
	.long	.Linfo_string6
	.long	227
	.byte	3
	.long	.Ldebug_loc7
	.long	.Linfo_string8
	.long	227
	.byte	4
	.long	.Ldebug_loc8
	.long	.Linfo_string6
	.long	227
	.byte	4
	.long	.Ldebug_loc9
	.long	.Linfo_string8
	.long	227
	.byte	0
	.byte	5
	.long	.Linfo_string4
	.byte	5
	.byte	4
	.byte	6
	.long	232
	.byte	5
	.long	.Linfo_string7
	.byte	4
	.byte	4
	.byte	7
	.byte	0
.Ldebug_info_end0:
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.asciz	"TVM"
.Linfo_string1:
	.asciz	"IRModule.CodeGenLLVM"
.Linfo_string2:
	.asciz	"."
.Linfo_string3:
	.asciz	"__tvm_ffi_fused_expand_dims_broadcast_to_reshape"
.Linfo_string4:
	.asciz	"int32"
.Linfo_string5:
	.asciz	"fused_expand_dims_broadcast_to_reshape_compute_"
.Linfo_string6:
	.asciz	"p0_x"
.Linfo_string7:
	.asciz	"float32"
.Linfo_string8:
	.asciz	"T_reshape_intermediate"
.Linfo_string9:
	.asciz	"self_handle"
.Linfo_string10:
	.asciz	"args"
.Linfo_string11:
	.asciz	"num_args"
.Linfo_string12:
	.asciz	"result"
	.section	.debug_pubnames,"",@progbits
	.long	.LpubNames_end0-.LpubNames_start0
.LpubNames_start0:
	.short	2
	.long	.Lcu_begin0
	.long	241
	.long	42
	.asciz	"__tvm_ffi_fused_expand_dims_broadcast_to_reshape"
	.long	144
	.asciz	"fused_expand_dims_broadcast_to_reshape_compute_"
	.long	0
.LpubNames_end0:
	.section	.debug_pubtypes,"",@progbits
	.long	.LpubTypes_end0-.LpubTypes_start0
.LpubTypes_start0:
	.short	2
	.long	.Lcu_begin0
	.long	241
	.long	220
	.asciz	"int32"
	.long	232
	.asciz	"float32"
	.long	0
.LpubTypes_end0:
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
