; Sums of products of words, per lane, of AVX2, which has an instruction for pairs of 16 bits.
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
define internal <16 x i32> @tvmgraph_dot_int8_pairs(<16 x i32> %c, <16 x i32> %a, <16 x i32> %b)
    alwaysinline {
  %x = bitcast <16 x i32> %a to <32 x i16>
  %y = bitcast <16 x i32> %b to <32 x i16>
  %x0 = shufflevector <32 x i16> %x, <32 x i16> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %x1 = shufflevector <32 x i16> %x, <32 x i16> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %y0 = shufflevector <32 x i16> %y, <32 x i16> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %y1 = shufflevector <32 x i16> %y, <32 x i16> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>

  %p0 = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x0, <16 x i16> %y0)
  %p1 = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x1, <16 x i16> %y1)
  %p = shufflevector <8 x i32> %p0, <8 x i32> %p1, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %r = add <16 x i32> %c, %p
  ret <16 x i32> %r
}
