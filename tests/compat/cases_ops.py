"""Calls of operators; see :mod:`.cases`. Optimizers are given parameters of their own.

Complex tensors exist eagerly only, so calls with them are not compiled.
"""

from tests.compat.cases import calls

_FOURIER = [
    f"!ops.{name}(x{more})"
    for name in ("fft", "ifft", "rfft", "ihfft")
    for more in ("", ", 5", ", 2, 0, 'ortho'", ", norm='forward'")
] + [
    f"!ops.{name}(ops.fft(x){more})"
    for name in ("fft", "ifft", "irfft", "hfft")
    for more in ("", ", 5", ", 6, 1, 'ortho'", ", norm='forward'")
] + [
    f"!ops.{name}(c3{more})"
    for name in ("fftn", "fft2", "ifftn", "ifft2", "rfftn", "rfft2", "ihfftn", "ihfft2")
    for more in ("", ", (2, 3), (0, 2)")
] + [
    f"!ops.{name}(ops.fft(c3){more})"
    for name in ("irfftn", "irfft2", "hfftn", "hfft2")
    for more in ("", ", (2, 4), (0, 2), 'ortho'")
]  # fmt: skip

OPS = _FOURIER + calls("""
!ops.view_as_real(ops.fft(x))
ops.derivative(ops.sin, x, 2)
!ops.ApplyFtrl()(P(x), P(p), P(y), y, 0.1, 0.2, 0.3, -0.5)
!ops.ApplyAddSign()(P(x), P(p), 0.1, 0.9, 0.99, 0.9, y)
!ops.ApplyPowerSign()(P(x), P(p), 0.1, 0.7, 0.99, 0.9, y)
!ops.ApplyProximalAdagrad()(P(x), P(p), 0.1, 0.2, 0.3, y)
!ops.ApplyProximalGradientDescent()(P(x), 0.1, 0.2, 0.3, y)
!ops.ApplyAdagradDA()(P(x), P(y), P(p), y, 0.1, 0.2, 0.3, 2)
!ops.ApplyAdamWithAmsgrad()(P(x), P(y), P(p), P(p), T(0.9), T(0.99), T(0.1), y)
ops.CheckValid()(T([[0., 0, 2, 3], [0, 0, 9, 9]]), T([5., 5, 1]))
ops.LowerBound()(c3[0], T([[0.1], [0.2], [-0.5]], ms.float32))
ops.UpperBound()(c3[0], T([[0.1], [0.2], [-0.5]], ms.float32))
ops.MatrixBandPart()(s, 1, 0)
ops.MatrixTriangularSolve()(s, s)
ops.MatrixTriangularSolve(lower=False, adjoint=True)(s, s)
ops.NthElement()(x, 1)
ops.NthElement(reverse=True)(x, 0)
ops.RGBToHSV()(p)
ops.HSVToRGB()(T(numpy.linspace(0, 1, 12).reshape(1, 2, 2, 3).astype('float32')))
!ops.SegmentSum()(s, T([0, 0, 2]))
!ops.SegmentMean()(s, T([0, 0, 2]))
!ops.SegmentMax()(s, T([0, 0, 2]))
!ops.SegmentMin()(s, T([0, 0, 2]))
!ops.SegmentProd()(s, T([0, 0, 2]))
ops.DataFormatDimMap()(T([0, 1, 2, 3], ms.int32))
ops.DataFormatVecPermute()(T([7, 8, 9, 10], ms.int32))
ops.TridiagonalMatMul()(w.reshape((1, 3)), w.reshape((1, 3)) * 2, w.reshape((1, 3)) * 3, s)
ops.lu_unpack(s, T([3, 3, 3], ms.int32))
""")
