"""The tile registers of AMX in software: the functions of ``gemm_tiles`` over eight arrays.

Every function does what Intel's Software Developer's Manual says of its instruction, element by
element, so a kernel that is compiled with them computes on any processor what it would on one with
AMX. There is one set of registers, so such a kernel must run on one thread.
"""

_COMMON = """
@tvmgraph_tiles = internal global [8 x [1024 x i8]] zeroinitializer, align 64
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal ptr @tvmgraph_model_tile(i64 %t) {
  %p = getelementptr [8 x [1024 x i8]], ptr @tvmgraph_tiles, i64 0, i64 %t
  ret ptr %p
}
define internal i32 @tvmgraph_model_rows(ptr %to, i64 %to_step, ptr %from, i64 %from_step) {
entry:
  br label %row
row:
  %r = phi i64 [0, %entry], [%next, %row]
  %a = mul i64 %r, %to_step
  %b = mul i64 %r, %from_step
  %pa = getelementptr i8, ptr %to, i64 %a
  %pb = getelementptr i8, ptr %from, i64 %b
  call void @llvm.memcpy.p0.p0.i64(ptr %pa, ptr %pb, i64 64, i1 false)
  %next = add i64 %r, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %row, label %done
done:
  ret i32 0
}
define internal float @tvmgraph_model_wide(ptr %p) {
  %h = load i16, ptr %p, align 1
  %w = zext i16 %h to i32
  %s = shl i32 %w, 16
  %f = bitcast i32 %s to float
  ret float %f
}
define internal i32 @tvmgraph_tile_begin() { ret i32 0 }
define internal i32 @tvmgraph_tile_end() {
  call void @llvm.memset.p0.i64(ptr @tvmgraph_tiles, i8 119, i64 8192, i1 false)
  ret i32 0
}
"""

#: c[m][n] += the sum over the members of group k of a[m][k] and b[k][n].
_DOT = """
define internal i32 @tvmgraph_model_dot_{dtype}(i64 %tc, i64 %ta, i64 %tb) {{
entry:
  %c = call ptr @tvmgraph_model_tile(i64 %tc)
  %a = call ptr @tvmgraph_model_tile(i64 %ta)
  %b = call ptr @tvmgraph_model_tile(i64 %tb)
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %body]
  %m = lshr i64 %i, 10
  %n0 = lshr i64 %i, 6
  %n = and i64 %n0, 15
  %k0 = lshr i64 %i, 2
  %k = and i64 %k0, 15
  %p = and i64 %i, 3
  %m64 = shl i64 %m, 6
  %n4 = shl i64 %n, 2
  %k4 = shl i64 %k, 2
  %k64 = shl i64 %k, 6
  %pc0 = add i64 %m64, %n4
  %pc = getelementptr i8, ptr %c, i64 %pc0
  %pa0 = add i64 %m64, %k4
  %pb0 = add i64 %k64, %n4
  {product}
  %next = add i64 %i, {step}
  %more = icmp ult i64 %next, 16384
  br i1 %more, label %body, label %done
done:
  ret i32 0
}}
"""

_PRODUCTS = {
    "bfloat16": """
  %pa1 = add i64 %pa0, %p
  %pb1 = add i64 %pb0, %p
  %pa = getelementptr i8, ptr %a, i64 %pa1
  %pb = getelementptr i8, ptr %b, i64 %pb1
  %x = call float @tvmgraph_model_wide(ptr %pa)
  %y = call float @tvmgraph_model_wide(ptr %pb)
  %old = load float, ptr %pc
  %xy = fmul float %x, %y
  %new = fadd float %old, %xy
  store float %new, ptr %pc""",
    "int8": """
  %pa1 = add i64 %pa0, %p
  %pb1 = add i64 %pb0, %p
  %pa = getelementptr i8, ptr %a, i64 %pa1
  %pb = getelementptr i8, ptr %b, i64 %pb1
  %xb = load i8, ptr %pa
  %yb = load i8, ptr %pb
  %x = sext i8 %xb to i32
  %y = sext i8 %yb to i32
  %old = load i32, ptr %pc
  %xy = mul i32 %x, %y
  %new = add i32 %old, %xy
  store i32 %new, ptr %pc""",
}


def _function(signature: str, *body: str) -> str:
    lines = "\n  ".join((*body, "ret i32 0"))
    return f"define internal i32 @tvmgraph_{signature} {{\n  {lines}\n}}"


def _numbered() -> list[str]:
    found = []
    for tile in range(8):
        own = f"%t = call ptr @tvmgraph_model_tile(i64 {tile})"
        for name, order in (("load", "ptr %t, i64 64, ptr %at, i64 %step"),
                            ("store", "ptr %at, i64 %step, ptr %t, i64 64")):  # fmt: skip
            call = f"%x = call i32 @tvmgraph_model_rows({order})"
            found.append(_function(f"tile_{name}{tile}(ptr %at, i64 %step)", own, call))
    for tile in range(4):
        own = f"%t = call ptr @tvmgraph_model_tile(i64 {tile})"
        zero = "call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 1024, i1 false)"
        found.append(_function(f"tile_zero{tile}()", own, zero))
        numbers = f"i64 {tile}, i64 {4 + tile // 2}, i64 {6 + tile % 2}"
        for dtype in _PRODUCTS:
            call = f"%x = call i32 @tvmgraph_model_dot_{dtype}({numbers})"
            found.append(_function(f"tile_dot_{dtype}{tile}()", call))
    return found


LLVM = "\n".join([
    _COMMON,
    *(_DOT.format(dtype=dtype, product=product, step=2 if dtype == "bfloat16" else 1)
      for dtype, product in _PRODUCTS.items()),
    *_numbered(),
])  # fmt: skip
