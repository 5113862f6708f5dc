; Loads of elements and words. Their place in TVM's tree of aliases (tbaa) says that they never
; read what the kernel writes, so that the sums stay in registers. Where the kernel has written a
; copy of an operand, tvmgraph_written comes between.
define internal i32 @tvmgraph_written(ptr %at) alwaysinline {
  call void asm sideeffect "", "r,~{memory}"(ptr %at)
  ret i32 0
}
define internal i32 @tvmgraph_packed_lane(ptr %at) alwaysinline {
  %r = load i32, ptr %at, align 1, !tbaa !2
  ret i32 %r
}
define internal <16 x i32> @tvmgraph_packed_vector(ptr %at) alwaysinline {
  %r = load <16 x i32>, ptr %at, align 1, !tbaa !2
  ret <16 x i32> %r
}
define internal i32 @tvmgraph_element_bfloat16(ptr %at) alwaysinline {
  %v = load i16, ptr %at, align 1, !tbaa !2
  %r = zext i16 %v to i32
  ret i32 %r
}
define internal i32 @tvmgraph_element_int8(ptr %at) alwaysinline {
  %v = load i8, ptr %at, align 1, !tbaa !2
  %r = zext i8 %v to i32
  ret i32 %r
}
define internal <16 x i32> @tvmgraph_widen_bfloat16(ptr %at) alwaysinline {
  %v = load <16 x i16>, ptr %at, align 1, !tbaa !2
  %r = zext <16 x i16> %v to <16 x i32>
  ret <16 x i32> %r
}
define internal <16 x i32> @tvmgraph_widen_int8(ptr %at) alwaysinline {
  %v = load <16 x i8>, ptr %at, align 1, !tbaa !2
  %r = zext <16 x i8> %v to <16 x i32>
  ret <16 x i32> %r
}
define internal <16 x i32> @tvmgraph_packed_vector_int8_pairs(ptr %at) alwaysinline {
  %v = load <32 x i8>, ptr %at, align 1, !tbaa !2
  %w = sext <32 x i8> %v to <32 x i16>
  %r = bitcast <32 x i16> %w to <16 x i32>
  ret <16 x i32> %r
}
define internal i32 @tvmgraph_element_int8_pairs(ptr %at) alwaysinline {
  %v = load i8, ptr %at, align 1, !tbaa !2
  %w = sext i8 %v to i16
  %r = zext i16 %w to i32
  ret i32 %r
}
define internal <16 x i32> @tvmgraph_widen_int8_pairs(ptr %at) alwaysinline {
  %v = load <16 x i8>, ptr %at, align 1, !tbaa !2
  %w = sext <16 x i8> %v to <16 x i16>
  %r = zext <16 x i16> %w to <16 x i32>
  ret <16 x i32> %r
}
!0 = !{!"tvm-tbaa"}
!1 = !{!"operand", !0, i64 0}
!2 = !{!1, !1, i64 0}
