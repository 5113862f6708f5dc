; ModuleID = 'TVMMod'
source_filename = "TVMMod"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-conda-linux-gnu"

%closure_loop_parallel_v = type { ptr, ptr }

@__TVMBackendParallelLaunch = linkonce dllexport local_unnamed_addr global ptr null, align 8
@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer
@__truncsfhf2 = common hidden local_unnamed_addr global i32 0
@__extendhfsf2 = common hidden local_unnamed_addr global i32 0

define dllexport i32 @__tvm_ffi_fused_expand_dims_broadcast_to_reshape(ptr noalias readnone captures(none) %self_handle, ptr noalias readonly captures(none) %args, i32 %num_args, ptr noalias readnone captures(none) %result) local_unnamed_addr #0 !dbg !5 {
entry:
    #dbg_value(ptr %self_handle, !11, !DIExpression(), !15)
    #dbg_value(ptr %args, !12, !DIExpression(), !15)
    #dbg_value(i32 %num_args, !13, !DIExpression(), !15)
    #dbg_value(ptr %result, !14, !DIExpression(), !15)
  %p0_x.type_index = load i32, ptr %args, align 4, !dbg !15
    #dbg_value(i32 %p0_x.type_index, !16, !DIExpression(), !15)
    #dbg_value(i32 %p0_x.type_index, !16, !DIExpression(), !15)
  %0 = icmp eq i32 %p0_x.type_index, 70, !dbg !15
  %1 = getelementptr inbounds nuw i8, ptr %args, i64 8, !dbg !15
  %2 = load ptr, ptr %1, align 8, !dbg !15
  %p0_x.handle.idx = select i1 %0, i64 24, i64 0, !dbg !15
  %p0_x.handle = getelementptr inbounds nuw i8, ptr %2, i64 %p0_x.handle.idx, !dbg !15
    #dbg_declare(ptr %p0_x.handle, !17, !DIExpression(), !15)
    #dbg_declare(ptr %p0_x.handle, !17, !DIExpression(), !15)
  %3 = getelementptr inbounds nuw i8, ptr %args, i64 16, !dbg !15
  %T_reshape_intermediate.type_index = load i32, ptr %3, align 8, !dbg !15
    #dbg_value(i32 %T_reshape_intermediate.type_index, !18, !DIExpression(), !15)
    #dbg_value(i32 %T_reshape_intermediate.type_index, !18, !DIExpression(), !15)
  %4 = icmp eq i32 %T_reshape_intermediate.type_index, 70, !dbg !15
  %5 = getelementptr inbounds nuw i8, ptr %args, i64 24, !dbg !15
  %6 = load ptr, ptr %5, align 8, !dbg !15
  %T_reshape_intermediate.handle.idx = select i1 %4, i64 24, i64 0, !dbg !15
  %T_reshape_intermediate.handle = getelementptr inbounds nuw i8, ptr %6, i64 %T_reshape_intermediate.handle.idx, !dbg !15
    #dbg_declare(ptr %T_reshape_intermediate.handle, !19, !DIExpression(), !15)
    #dbg_declare(ptr %T_reshape_intermediate.handle, !19, !DIExpression(), !15)
    #dbg_declare(ptr poison, !20, !DIExpression(), !15)
    #dbg_declare(ptr poison, !20, !DIExpression(), !15)
    #dbg_declare(ptr poison, !23, !DIExpression(), !15)
    #dbg_declare(ptr poison, !23, !DIExpression(), !15)
    #dbg_value(i32 poison, !24, !DIExpression(), !15)
    #dbg_value(i32 poison, !24, !DIExpression(), !15)
    #dbg_declare(ptr poison, !25, !DIExpression(), !15)
    #dbg_declare(ptr poison, !25, !DIExpression(), !15)
    #dbg_declare(ptr poison, !26, !DIExpression(), !15)
    #dbg_declare(ptr poison, !26, !DIExpression(), !15)
  %7 = load ptr, ptr %p0_x.handle, align 8, !dbg !15
  %8 = getelementptr inbounds nuw i8, ptr %p0_x.handle, i64 40, !dbg !15
  %9 = load i64, ptr %8, align 8, !dbg !15
  %p0_x = getelementptr inbounds i8, ptr %7, i64 %9, !dbg !15
    #dbg_declare(ptr %p0_x, !27, !DIExpression(), !15)
  call void @llvm.assume(i1 true) [ "align"(ptr %p0_x, i64 64) ], !dbg !15
  %10 = load ptr, ptr %T_reshape_intermediate.handle, align 8, !dbg !15
  %11 = getelementptr inbounds nuw i8, ptr %T_reshape_intermediate.handle, i64 40, !dbg !15
  %12 = load i64, ptr %11, align 8, !dbg !15
  %T_reshape_intermediate = getelementptr inbounds i8, ptr %10, i64 %12, !dbg !15
    #dbg_declare(ptr %T_reshape_intermediate, !30, !DIExpression(), !15)
  call void @llvm.assume(i1 true) [ "align"(ptr %T_reshape_intermediate, i64 64) ], !dbg !15
  %13 = tail call fastcc i32 @fused_expand_dims_broadcast_to_reshape_compute_(ptr %p0_x, ptr %T_reshape_intermediate), !dbg !15
  ret i32 %13, !dbg !15
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #1

; Function Attrs: noinline
define internal fastcc i32 @fused_expand_dims_broadcast_to_reshape_compute_(ptr noalias align 64 %p0_x, ptr noalias align 64 %T_reshape_intermediate) unnamed_addr #2 !dbg !31 {
entry:
    #dbg_value(ptr %p0_x, !35, !DIExpression(), !37)
    #dbg_value(ptr %T_reshape_intermediate, !36, !DIExpression(), !37)
  %0 = alloca %closure_loop_parallel_v, align 8, !dbg !37
    #dbg_declare(ptr %p0_x, !38, !DIExpression(), !37)
  call void @llvm.assume(i1 true) [ "align"(ptr %p0_x, i64 64) ], !dbg !37
    #dbg_declare(ptr %T_reshape_intermediate, !39, !DIExpression(), !37)
  call void @llvm.assume(i1 true) [ "align"(ptr %T_reshape_intermediate, i64 64) ], !dbg !37
  %begin.i = ptrtoint ptr %T_reshape_intermediate to i64, !dbg !37
  %stop.i = add i64 %begin.i, 8000000, !dbg !37
  %up.i = add i64 %begin.i, 2097151, !dbg !37
  %first.i = and i64 %up.i, -2097152, !dbg !37
  %last.i = and i64 %stop.i, -2097152, !dbg !37
  %length.i = sub i64 %last.i, %first.i, !dbg !37
  %from.i = inttoptr i64 %first.i to ptr, !dbg !37
  %status.i = tail call i32 @madvise(ptr %from.i, i64 %length.i, i32 14), !dbg !37
  store ptr %T_reshape_intermediate, ptr %0, align 8, !dbg !37
  %1 = getelementptr inbounds nuw i8, ptr %0, i64 8, !dbg !37
  store ptr %p0_x, ptr %1, align 8, !dbg !37
  %2 = load ptr, ptr @__TVMBackendParallelLaunch, align 8, !dbg !37, !tbaa !40
  %3 = call i32 %2(ptr nonnull @__tvm_parallel_lambda, ptr nonnull %0, i32 0), !dbg !37
  ret i32 %3, !dbg !37
}

; Function Attrs: nofree norecurse nosync nounwind memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define private noundef i32 @__tvm_parallel_lambda(i32 %task_id, ptr readonly captures(none) %0, ptr readonly captures(none) %1) #3 {
parallel_closure_entry:
  %T_reshape_intermediate = load ptr, ptr %1, align 8, !dbg !37
  %2 = getelementptr inbounds nuw i8, ptr %1, i64 8, !dbg !37
  %p0_x = load ptr, ptr %2, align 8, !dbg !37
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 8, !dbg !37
  %num_task = load i32, ptr %3, align 4, !dbg !37
  %4 = add nsw i32 %num_task, 999, !dbg !37
  %5 = sdiv i32 %4, %num_task, !dbg !37
  %6 = add nsw i32 %task_id, 1, !dbg !37
  %7 = mul nsw i32 %5, %6, !dbg !37
  %8 = tail call i32 @llvm.smin.i32(i32 %7, i32 1000), !dbg !37
  %9 = mul nsw i32 %5, %task_id, !dbg !37
    #dbg_value(i32 poison, !43, !DIExpression(), !37)
  %10 = icmp slt i32 %9, %8, !dbg !37
  br i1 %10, label %for_begin_v1.preheader.preheader, label %for_end_v, !dbg !37, !prof !44

for_begin_v1.preheader.preheader:                 ; preds = %parallel_closure_entry
    #dbg_value(i32 %9, !43, !DIExpression(), !37)
  %11 = sext i32 %9 to i64, !dbg !37
  br label %for_begin_v1.preheader, !dbg !37

for_begin_v1.preheader:                           ; preds = %for_begin_v1.preheader.preheader, %for_end_v3
  %indvars.iv9 = phi i64 [ %11, %for_begin_v1.preheader.preheader ], [ %indvars.iv.next10, %for_end_v3 ]
    #dbg_value(i64 %indvars.iv9, !43, !DIExpression(), !37)
  %12 = mul nsw i64 %indvars.iv9, 1000
    #dbg_value(i32 0, !43, !DIExpression(), !37)
  %.idx13 = mul i64 %indvars.iv9, 8000
  %invariant.gep = getelementptr i8, ptr %T_reshape_intermediate, i64 %.idx13, !dbg !37
  br label %for_body_v2, !dbg !37

for_end_v:                                        ; preds = %for_end_v3, %parallel_closure_entry
  ret i32 0, !dbg !37

for_body_v2:                                      ; preds = %for_begin_v1.preheader, %for_body_v2
  %indvars.iv = phi i64 [ 0, %for_begin_v1.preheader ], [ %indvars.iv.next, %for_body_v2 ]
    #dbg_value(i64 %indvars.iv, !43, !DIExpression(), !37)
  %13 = shl nuw nsw i64 %indvars.iv, 3, !dbg !37
  %14 = add nsw i64 %13, %12, !dbg !37
  %15 = trunc nsw i64 %14 to i32, !dbg !37
  %16 = insertelement <16 x i32> poison, i32 %15, i64 0, !dbg !37
  %17 = shufflevector <16 x i32> %16, <16 x i32> poison, <16 x i32> <i32 poison, i32 poison, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 poison, i32 poison>, !dbg !37
  %18 = or disjoint <16 x i32> %17, <i32 poison, i32 poison, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4, i32 4, i32 5, i32 5, i32 6, i32 6, i32 poison, i32 poison>, !dbg !37
  %19 = getelementptr inbounds float, ptr %p0_x, i64 %14, !dbg !37
  %20 = load float, ptr %19, align 4, !dbg !37, !tbaa !45
  %21 = extractelement <16 x i32> %18, i64 2, !dbg !37
  %22 = sext i32 %21 to i64, !dbg !37
  %23 = getelementptr inbounds float, ptr %p0_x, i64 %22, !dbg !37
  %24 = load float, ptr %23, align 4, !dbg !37, !tbaa !45
  %25 = extractelement <16 x i32> %18, i64 3, !dbg !37
  %26 = sext i32 %25 to i64, !dbg !37
  %27 = getelementptr inbounds float, ptr %p0_x, i64 %26, !dbg !37
  %28 = load float, ptr %27, align 4, !dbg !37, !tbaa !45
  %29 = extractelement <16 x i32> %18, i64 4, !dbg !37
  %30 = sext i32 %29 to i64, !dbg !37
  %31 = getelementptr inbounds float, ptr %p0_x, i64 %30, !dbg !37
  %32 = load float, ptr %31, align 4, !dbg !37, !tbaa !45
  %33 = extractelement <16 x i32> %18, i64 5, !dbg !37
  %34 = sext i32 %33 to i64, !dbg !37
  %35 = getelementptr inbounds float, ptr %p0_x, i64 %34, !dbg !37
  %36 = load float, ptr %35, align 4, !dbg !37, !tbaa !45
  %37 = extractelement <16 x i32> %18, i64 6, !dbg !37
  %38 = sext i32 %37 to i64, !dbg !37
  %39 = getelementptr inbounds float, ptr %p0_x, i64 %38, !dbg !37
  %40 = load float, ptr %39, align 4, !dbg !37, !tbaa !45
  %41 = extractelement <16 x i32> %18, i64 7, !dbg !37
  %42 = sext i32 %41 to i64, !dbg !37
  %43 = getelementptr inbounds float, ptr %p0_x, i64 %42, !dbg !37
  %44 = load float, ptr %43, align 4, !dbg !37, !tbaa !45
  %45 = extractelement <16 x i32> %18, i64 8, !dbg !37
  %46 = sext i32 %45 to i64, !dbg !37
  %47 = getelementptr inbounds float, ptr %p0_x, i64 %46, !dbg !37
  %48 = load float, ptr %47, align 4, !dbg !37, !tbaa !45
  %49 = extractelement <16 x i32> %18, i64 9, !dbg !37
  %50 = sext i32 %49 to i64, !dbg !37
  %51 = getelementptr inbounds float, ptr %p0_x, i64 %50, !dbg !37
  %52 = load float, ptr %51, align 4, !dbg !37, !tbaa !45
  %53 = extractelement <16 x i32> %18, i64 10, !dbg !37
  %54 = sext i32 %53 to i64, !dbg !37
  %55 = getelementptr inbounds float, ptr %p0_x, i64 %54, !dbg !37
  %56 = load float, ptr %55, align 4, !dbg !37, !tbaa !45
  %57 = extractelement <16 x i32> %18, i64 11, !dbg !37
  %58 = sext i32 %57 to i64, !dbg !37
  %59 = getelementptr inbounds float, ptr %p0_x, i64 %58, !dbg !37
  %60 = load float, ptr %59, align 4, !dbg !37, !tbaa !45
  %61 = extractelement <16 x i32> %18, i64 12, !dbg !37
  %62 = sext i32 %61 to i64, !dbg !37
  %63 = getelementptr inbounds float, ptr %p0_x, i64 %62, !dbg !37
  %64 = load float, ptr %63, align 4, !dbg !37, !tbaa !45
  %65 = extractelement <16 x i32> %18, i64 13, !dbg !37
  %66 = sext i32 %65 to i64, !dbg !37
  %67 = getelementptr inbounds float, ptr %p0_x, i64 %66, !dbg !37
  %68 = load float, ptr %67, align 4, !dbg !37, !tbaa !45
  %69 = shufflevector <16 x i32> %16, <16 x i32> poison, <2 x i32> zeroinitializer, !dbg !37
  %70 = or disjoint <2 x i32> %69, splat (i32 7), !dbg !37
  %71 = extractelement <2 x i32> %70, i64 0, !dbg !37
  %72 = sext i32 %71 to i64, !dbg !37
  %73 = getelementptr inbounds float, ptr %p0_x, i64 %72, !dbg !37
  %74 = load float, ptr %73, align 4, !dbg !37, !tbaa !45
  %75 = extractelement <2 x i32> %70, i64 1, !dbg !37
  %76 = sext i32 %75 to i64, !dbg !37
  %77 = getelementptr inbounds float, ptr %p0_x, i64 %76, !dbg !37
  %78 = load float, ptr %77, align 4, !dbg !37, !tbaa !45
  %79 = insertelement <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float undef, float undef, float undef, float undef, float undef, float undef>, float %20, i64 0, !dbg !37
  %80 = insertelement <16 x float> %79, float %20, i64 1, !dbg !37
  %81 = insertelement <16 x float> %80, float %24, i64 2, !dbg !37
  %82 = insertelement <16 x float> %81, float %28, i64 3, !dbg !37
  %83 = insertelement <16 x float> %82, float %32, i64 4, !dbg !37
  %84 = insertelement <16 x float> %83, float %36, i64 5, !dbg !37
  %85 = insertelement <16 x float> %84, float %40, i64 6, !dbg !37
  %86 = insertelement <16 x float> %85, float %44, i64 7, !dbg !37
  %87 = insertelement <16 x float> %86, float %48, i64 8, !dbg !37
  %88 = insertelement <16 x float> %87, float %52, i64 9, !dbg !37
  %89 = insertelement <16 x float> %88, float %56, i64 10, !dbg !37
  %90 = insertelement <16 x float> %89, float %60, i64 11, !dbg !37
  %91 = insertelement <16 x float> %90, float %64, i64 12, !dbg !37
  %92 = insertelement <16 x float> %91, float %68, i64 13, !dbg !37
  %93 = insertelement <16 x float> %92, float %74, i64 14, !dbg !37
  %94 = insertelement <16 x float> %93, float %78, i64 15, !dbg !37
  %.idx = shl i64 %indvars.iv, 6, !dbg !37
  %gep = getelementptr i8, ptr %invariant.gep, i64 %.idx, !dbg !37
  store <16 x float> %94, ptr %gep, align 64, !dbg !37, !tbaa !47
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1, !dbg !37
    #dbg_value(i64 %indvars.iv.next, !43, !DIExpression(), !37)
  %exitcond.not = icmp eq i64 %indvars.iv.next, 125, !dbg !37
  br i1 %exitcond.not, label %for_end_v3, label %for_body_v2, !dbg !37, !prof !49

for_end_v3:                                       ; preds = %for_body_v2
  %indvars.iv.next10 = add nsw i64 %indvars.iv9, 1, !dbg !37
    #dbg_value(i64 %indvars.iv.next10, !43, !DIExpression(), !37)
  %lftr.wideiv = trunc i64 %indvars.iv.next10 to i32, !dbg !37
  %exitcond11.not = icmp eq i32 %8, %lftr.wideiv, !dbg !37
  br i1 %exitcond11.not, label %for_end_v, label %for_begin_v1.preheader, !dbg !37, !prof !50
}

; Function Attrs: alwaysinline
declare i32 @madvise(ptr, i64, i32) local_unnamed_addr #4

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smin.i32(i32, i32) #5

attributes #0 = { "target-cpu"="znver4" "target-features"="+64bit,+adx,+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+clflushopt,+clwb,+clzero,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+gfni,+invpcid,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+prfchw,+rdpid,+rdrnd,+rdseed,+sahf,+sha,+shstk,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+sse4a,+ssse3,+vaes,+vpclmulqdq,+xsave,+xsavec,+xsaveopt,+xsaves,-prefer-256-bit" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #2 = { noinline "target-cpu"="znver4" "target-features"="+64bit,+adx,+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+clflushopt,+clwb,+clzero,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+gfni,+invpcid,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+prfchw,+rdpid,+rdrnd,+rdseed,+sahf,+sha,+shstk,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+sse4a,+ssse3,+vaes,+vpclmulqdq,+xsave,+xsavec,+xsaveopt,+xsaves,-prefer-256-bit" }
attributes #3 = { nofree norecurse nosync nounwind memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) "target-cpu"="znver4" "target-features"="+64bit,+adx,+aes,+avx,+avx2,+avx512bf16,+avx512bitalg,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vl,+avx512vnni,+avx512vpopcntdq,+bmi,+bmi2,+clflushopt,+clwb,+clzero,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+gfni,+invpcid,+lzcnt,+mmx,+movbe,+pclmul,+popcnt,+prfchw,+rdpid,+rdrnd,+rdseed,+sahf,+sha,+shstk,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+sse4a,+ssse3,+vaes,+vpclmulqdq,+xsave,+xsavec,+xsaveopt,+xsaves,-prefer-256-bit" }
attributes #4 = { alwaysinline }
attributes #5 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3, !4}

!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "TVM", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "IRModule.CodeGenLLVM", directory: ".")
!2 = !{i32 2, !"tvm_target", !"{\22kind\22:\22llvm\22,\22mtriple\22:\22x86_64-conda-linux-gnu\22,\22mcpu\22:\22znver4\22,\22mattr\22:[\22+64bit\22,\22+adx\22,\22+aes\22,\22+avx\22,\22+avx2\22,\22+avx512bf16\22,\22+avx512bitalg\22,\22+avx512bw\22,\22+avx512cd\22,\22+avx512dq\22,\22+avx512f\22,\22+avx512ifma\22,\22+avx512vbmi\22,\22+avx512vbmi2\22,\22+avx512vl\22,\22+avx512vnni\22,\22+avx512vpopcntdq\22,\22+bmi\22,\22+bmi2\22,\22+clflushopt\22,\22+clwb\22,\22+clzero\22,\22+cmov\22,\22+crc32\22,\22+cx16\22,\22+cx8\22,\22+f16c\22,\22+fma\22,\22+fsgsbase\22,\22+fxsr\22,\22+gfni\22,\22+invpcid\22,\22+lzcnt\22,\22+mmx\22,\22+movbe\22,\22+pclmul\22,\22+popcnt\22,\22+prfchw\22,\22+rdpid\22,\22+rdrnd\22,\22+rdseed\22,\22+sahf\22,\22+sha\22,\22+shstk\22,\22+sse\22,\22+sse2\22,\22+sse3\22,\22+sse4.1\22,\22+sse4.2\22,\22+sse4a\22,\22+ssse3\22,\22+vaes\22,\22+vpclmulqdq\22,\22+xsave\22,\22+xsavec\22,\22+xsaveopt\22,\22+xsaves\22,\22-prefer-256-bit\22]}"}
!3 = !{i32 4, !"Debug Info Version", i32 3}
!4 = !{i32 4, !"Dwarf Version", i32 4}
!5 = distinct !DISubprogram(name: "__tvm_ffi_fused_expand_dims_broadcast_to_reshape", scope: !1, file: !1, type: !6, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, unit: !0, retainedNodes: !10)
!6 = !DISubroutineType(types: !7)
!7 = !{!8, !9, !9, !8, !9}
!8 = !DIBasicType(name: "int32", size: 32, encoding: DW_ATE_signed)
!9 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: null)
!10 = !{!11, !12, !13, !14}
!11 = !DILocalVariable(name: "self_handle", arg: 1, scope: !5, file: !1, type: !9)
!12 = !DILocalVariable(name: "args", arg: 2, scope: !5, file: !1, type: !9)
!13 = !DILocalVariable(name: "num_args", arg: 3, scope: !5, file: !1, type: !8)
!14 = !DILocalVariable(name: "result", arg: 4, scope: !5, file: !1, type: !9)
!15 = !DILocation(line: 0, scope: !5)
!16 = !DILocalVariable(name: "p0_x.type_index", scope: !5, file: !1, type: !8)
!17 = !DILocalVariable(name: "p0_x.handle", scope: !5, file: !1, type: !9)
!18 = !DILocalVariable(name: "T_reshape_intermediate.type_index", scope: !5, file: !1, type: !8)
!19 = !DILocalVariable(name: "T_reshape_intermediate.handle", scope: !5, file: !1, type: !9)
!20 = !DILocalVariable(name: "fused_expand_dims_broadcast_to_reshape.p0_x_shape", scope: !5, file: !1, type: !21)
!21 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !22)
!22 = !DIBasicType(name: "int64", size: 64, encoding: DW_ATE_signed)
!23 = !DILocalVariable(name: "fused_expand_dims_broadcast_to_reshape.p0_x_strides", scope: !5, file: !1, type: !21)
!24 = !DILocalVariable(name: "dev_id", scope: !5, file: !1, type: !8)
!25 = !DILocalVariable(name: "fused_expand_dims_broadcast_to_reshape.T_reshape_intermediate_shape", scope: !5, file: !1, type: !21)
!26 = !DILocalVariable(name: "fused_expand_dims_broadcast_to_reshape.T_reshape_intermediate_strides", scope: !5, file: !1, type: !21)
!27 = !DILocalVariable(name: "p0_x", scope: !5, file: !1, type: !28)
!28 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !29)
!29 = !DIBasicType(name: "float32", size: 32, encoding: DW_ATE_float)
!30 = !DILocalVariable(name: "T_reshape_intermediate", scope: !5, file: !1, type: !28)
!31 = distinct !DISubprogram(name: "fused_expand_dims_broadcast_to_reshape_compute_", scope: !1, file: !1, type: !32, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition | DISPFlagOptimized, unit: !0, retainedNodes: !34)
!32 = !DISubroutineType(types: !33)
!33 = !{!8, !28, !28}
!34 = !{!35, !36}
!35 = !DILocalVariable(name: "p0_x", arg: 1, scope: !31, file: !1, type: !28)
!36 = !DILocalVariable(name: "T_reshape_intermediate", arg: 2, scope: !31, file: !1, type: !28)
!37 = !DILocation(line: 0, scope: !31)
!38 = !DILocalVariable(name: "p0_x", scope: !31, file: !1, type: !28)
!39 = !DILocalVariable(name: "T_reshape_intermediate", scope: !31, file: !1, type: !28)
!40 = !{!41, !41, i64 0}
!41 = !{!"ctx_ptr", !42, i64 0}
!42 = !{!"tvm-tbaa"}
!43 = !DILocalVariable(name: "v", scope: !31, file: !1, type: !8)
!44 = !{!"branch_weights", i32 127, i32 1}
!45 = !{!46, !46, i64 0}
!46 = !{!"0x556e5f6c9110", !42, i64 0}
!47 = !{!48, !48, i64 0}
!48 = !{!"0x556e5f6ca920", !42, i64 0}
!49 = !{!"branch_weights", i32 1, i32 1048575}
!50 = !{!"branch_weights", i32 127, i32 134217601}
