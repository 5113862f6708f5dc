; Sums of products of bytes with and without a sign, two per lane of 16 bits; sums of two such lanes.
declare <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8>, <32 x i8>)
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
define internal <16 x i16> @tvmgraph_add_pairs(<16 x i16> %c, <8 x i32> %a, <8 x i32> %b)
    alwaysinline {
  %x = bitcast <8 x i32> %a to <32 x i8>
  %y = bitcast <8 x i32> %b to <32 x i8>
  %p = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> %x, <32 x i8> %y)
  %r = add <16 x i16> %c, %p
  ret <16 x i16> %r
}
define internal <8 x i32> @tvmgraph_sum_pairs(<16 x i16> %c) alwaysinline {
  %r = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %c, <16 x i16> splat (i16 1))
  ret <8 x i32> %r
}
