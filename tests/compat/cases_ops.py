"""Calls of operators; see :mod:`.cases`. Optimizers are given parameters of their own."""

from tests.compat.cases import calls

_FOURIER = [
    f"ops.{name}(x{more})"
    for name in ("fft", "ifft", "rfft", "ihfft")
    for more in ("", ", 5", ", 2, 0, 'ortho'", ", norm='forward'")
] + [
    f"ops.{name}(ops.fft(x){more})"
    for name in ("fft", "ifft", "irfft", "hfft")
    for more in ("", ", 5", ", 6, 1, 'ortho'", ", norm='forward'")
] + [
    f"ops.{name}(c3{more})"
    for name in ("fftn", "fft2", "ifftn", "ifft2", "rfftn", "rfft2", "ihfftn", "ihfft2")
    for more in ("", ", (2, 3), (0, 2)")
] + [
    f"ops.{name}(ops.fft(c3){more})"
    for name in ("irfftn", "irfft2", "hfftn", "hfft2")
    for more in ("", ", (2, 4), (0, 2), 'ortho'")
]  # fmt: skip

_ONE = """square exp log log1p expm1 sqrt rsqrt reciprocal sin cos tan sinh cosh tanh asin acos atan
    asinh acosh atanh sigmoid silu logsigmoid sinc neg conj real imag angle isreal
    any all sum mean logical_not adjoint ones_like unbind"""
_COMPLEX = [f"ops.{name}(cx)" for name in _ONE.split()] + calls("""
cx + cy
cx - 2
cx * cy
cx / cy
cx ** 2
cx ** -3
2.0 ** cx
cx == cy
cx != cx
cx[0, 1:]
cx.T
ops.cumsum(cx, 0)
ops.cumprod(cx, 1)
ops.prod(cx, 1)
ops.pow(cx, cy)
ops.float_power(cx, cy)
ops.matmul(cx, cs)
ops.inverse(cs)
!ops.det(cs)
ops.where(b, cx, cy)
ops.concat((cx, cy), 1)
ops.stack([cx, cy])
ops.addn([cx, cy])
ops.flip(cx, (0,))
ops.tile(cx, (1, 2))
ops.gather(cx, h, 0)
ops.cast(cx, ms.complex128)
ops.cast(cx, ms.float32)
ops.vecdot(cx, cy)
ops.xlogy(cx, cy)
ops.SquaredDifference()(cx, cy)
ops.ComplexAbs()(cx)
ops.outer(cs[0], cs[1])
""")

OPS = (
    _FOURIER
    + _COMPLEX
    + calls("""
ops.view_as_real(ops.fft(x))
ops.derivative(ops.sin, x, 2)
!ops.ApplyFtrl()(P(x), P(p), P(y), y, 0.1, 0.2, 0.3, -0.5)
!ops.ApplyAddSign()(P(x), P(p), 0.1, 0.9, 0.99, 0.9, y)
!ops.ApplyPowerSign()(P(x), P(p), 0.1, 0.7, 0.99, 0.9, y)
!ops.ApplyProximalAdagrad()(P(x), P(p), 0.1, 0.2, 0.3, y)
!ops.ApplyProximalGradientDescent()(P(x), 0.1, 0.2, 0.3, y)
!ops.ApplyAdagradDA()(P(x), P(y), P(p), y, 0.1, 0.2, 0.3, 2)
!ops.ApplyAdamWithAmsgrad()(P(x), P(y), P(p), P(p), T(0.9), T(0.99), T(0.1), y)
![q := P(x), ops.FusedSparseAdam()(q, P(y), P(p), T(0.9), T(0.99), T(0.1), T(0.9), T(0.99), T(1e-8), s[:2], h * 0 + 1)][0]
![q := P(x), ops.FusedSparseLazyAdam()(q, P(y), P(p), T(0.9), T(0.99), T(0.1), T(0.9), T(0.99), T(1e-8), s[:2], h * 0 + 1)][0]
![q := P(x), ops.FusedSparseFtrl(0.1, 0.2, 0.3, -0.5)(q, P(p), P(y), s[:2], h * 0)][0]
![q := P(x), ops.FusedSparseProximalAdagrad()(q, P(p), T(0.1), T(0.2), T(0.3), s[:2], h)][0]
!ops.SparseApplyAdagrad(0.1)(P(x), P(p), s[:1], h[:1])
!ops.SparseApplyAdagradV2(0.1, 0.01)(P(x), P(p), s[:1], h[:1])
!ops.SparseApplyAdagradV2(0.1, 0.01, update_slots=False)(P(x), P(p), s[:1], h[:1])
!ops.SparseApplyFtrl(0.1, 0.2, 0.3, -0.5)(P(x), P(p), P(y), s[:1], h[:1])
!ops.SparseApplyRMSProp(0.2, 0.9, 0.01)(P(x), P(p), P(y), 0.1, y, h)
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
!ops.AdamNoUpdateParam()(P(x), P(p), T(0.9), T(0.99), T(0.1), T(0.9), T(0.99), T(1e-8), y)
ops.AdjustHue()(T(numpy.linspace(0, 1, 12).reshape(1, 2, 2, 3).astype('float32')), T(0.2, ms.float32))
ops.AdjustSaturation()(T(numpy.linspace(0, 1, 12).reshape(1, 2, 2, 3).astype('float32')), T(0.5, ms.float32))
!ops.CTCGreedyDecoder()(c3, T([2, 1, 2], ms.int32))
!ops.CTCGreedyDecoder(False)(c3, T([2, 2, 2], ms.int32))
!ops.ctc_greedy_decoder(c3, T([2, 1, 2], ms.int32))
!ops.CTCLoss()(c3, T([[0, 0], [1, 0], [2, 0]], ms.int64), T([1, 2, 0], ms.int32), T([2, 2, 2], ms.int32))
!ops.CTCLoss()(T(numpy.sin(numpy.arange(30)).reshape(5, 2, 3).astype('float32')), T([[0, 0], [0, 1], [1, 0]], ms.int64), T([0, 1, 1], ms.int32), T([5, 4], ms.int32))
!ops.CheckNumerics()(x)
ops.CompareAndBitpack()(T(numpy.arange(16).reshape(2, 8).astype('float32')), T(5.0, ms.float32))
!ops.EditDistance()(T([[0, 0, 0], [1, 0, 1], [1, 1, 1]]), T([1., 2, 3], ms.float32), T([1, 1, 2]), T([[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]), T([1., 2, 3, 1], ms.float32), T([2, 2, 2]))
!ops.EditDistance(False)(T([[0, 0], [1, 0], [1, 1]]), T([1., 2, 3], ms.float32), T([2, 2]), T([[0, 0], [0, 1], [1, 0], [1, 1]]), T([1., 2, 2, 2], ms.float32), T([2, 2]))
ops.ExtractVolumePatches([1, 1, 2, 2, 2], [1, 1, 1, 2, 2], 'VALID')(vol)
ops.ExtractVolumePatches([1, 1, 3, 2, 3], [1, 1, 2, 2, 2], 'SAME')(vol)
!ops.FFTWithSize(1, False, True)(x)
!ops.FFTWithSize(2, False, True, 'ortho', False)(x)
!ops.FFTWithSize(1, False, False)(ops.fft(x))
!ops.FFTWithSize(2, True, False, 'forward')(ops.fft(x))
!ops.FFTWithSize(1, True, True, 'backward', True, (3,))(ops.rfft(x))
ops.FractionalMaxPoolWithFixedKsize(2, (3, 4))(img, T([[[0.1, 0.9], [0.5, 0.4], [0.7, 0.2]]] * 2, ms.float32))
ops.FractionalMaxPool3DWithFixedKsize((2, 2, 3), (2, 3, 2))(vol, T([[[0.1, 0.9, 0.3], [0.5, 0.4, 0.8]]], ms.float32))
ops.fractional_max_pool2d(img, (2, 3), (3, 2), _random_samples=T([[[0.1, 0.9], [0.5, 0.4], [0.7, 0.2]]] * 2, ms.float32))
ops.fractional_max_pool2d(img, 2, output_ratio=(0.5, 0.5), return_indices=True, _random_samples=T([[[0.3, 0.6]] * 3] * 2, ms.float32))
ops.fractional_max_pool3d(vol, (2, 2, 2), (2, 3, 3), _random_samples=T([[[0.1, 0.9, 0.3], [0.5, 0.4, 0.8]]], ms.float32))
!ops.ListDiff()(n, T([5, 9], ms.int32))
ops.MatrixSolveLs()(c3, c3, T(0.3, ms.float64))
ops.MaxPool3DWithArgmax(2, 2, 0)(vol)
ops.MaxPool3DWithArgmax((2, 3, 2), (1, 2, 2), (1, 1, 0))(vol)
ops.MaxPoolWithArgmax(2, 2)(img)
ops.MaxPoolWithArgmax(3, 2, 'same')(img)
ops.MaxPoolWithArgmax((2, 3), (1, 2), 'same')(img)
!ops.NMSWithMask(0.3)(T([[100, 100, 50, 68, 0.63], [150, 75, 165, 115, 0.55], [12, 190, 288, 200, 0.9], [28, 130, 106, 172, 0.3]], ms.float32))
!ops.NMSWithMask(0.5)(T([[0, 0, 10, 10, 0.6], [1, 1, 11, 11, 0.9], [0, 0, 9, 9, 0.7], [20, 20, 30, 30, 0.5], [21, 20, 30, 31, 0.4]], ms.float32))
ops.NoRepeatNGram(2)(T([[[1, 2, 1, 2, 3, 1], [0, 1, 2, 3, 4, 0]]], ms.int32), T(numpy.linspace(-1, 0, 10).reshape(1, 2, 5).astype('float32')))
ops.NoRepeatNGram(1)(T([[[1, 2, 1], [0, 1, 2]]], ms.int32), T(numpy.linspace(-1, 0, 10).reshape(1, 2, 5).astype('float32')))
!ops.NonMaxSuppressionWithOverlaps()(T([[0.6, 0.9, 0.2], [0.9, 0.6, 0.1], [0.2, 0.1, 0.6]], ms.float32), T([0.5, 0.9, 0.6], ms.float32), T(3, ms.int32), T(0.5, ms.float32), T(0.0, ms.float32))
ops.ParallelConcat()((c3[:1], c3[1:]))
ops.ROIAlign(2, 2, 0.5, 2)(img, T([[0, 1, 2, 9, 10], [1, 0, 0, 4, 4]], ms.float32))
ops.ROIAlign(3, 2, 1.0, 1, 0)(img, T([[1, -3, 1, 4.5, 4.2], [0, 2, 2, 8, 9]], ms.float32))
ops.ROIAlign(2, 3, 0.5, 3, 1)(img, T([[0, 3, 2, 2, 1]], ms.float32))
!ops.RaggedRange(Tsplits=ms.int64)(T([2, 5, 8]), T([3, 5, 12]), T([1, 1, 2]))
ops.ResizeArea()(T(numpy.sin(numpy.arange(60)).reshape(1, 4, 5, 3).astype('float32')), T([2, 3], ms.int32))
ops.ResizeArea()(T(numpy.sin(numpy.arange(60)).reshape(1, 4, 5, 3).astype('float32')), T([6, 7], ms.int32))
ops.ResizeArea(True)(T(numpy.sin(numpy.arange(60)).reshape(1, 4, 5, 3).astype('float32')), T([2, 3], ms.int32))
ops.ScatterAddWithAxis(0)(x, T([[1, 0, 1]], ms.int32), T([[1., 2, 3]], ms.float32))
ops.ScatterAddWithAxis(1)(x, T([[1, 0, 1], [2, 2, 2]], ms.int32), y)
!ops.CombinedNonMaxSuppression()(c3[:1, :, None], c3[1:, :, :2], T(2, ms.int32), T(3, ms.int32), T(0.5, ms.float32), T(0.0, ms.float32))
!ops.CombinedNonMaxSuppression(True, False)(c3[:1, :, None], c3[1:, :, :2], T(2, ms.int32), T(9, ms.int32), T(0.1, ms.float32), T(-0.5, ms.float32))
ops.FractionalAvgPool([1.0, 1.5, 2.0, 1.0], False, False, True, 3, 4)(img)
ops.FractionalAvgPool([1.0, 1.0, 3.0, 1.0], True, True, True, 3, 4)(img)
ops.FractionalMaxPool([1.0, 1.5, 2.0, 1.0], False, True, True, 3, 4)(img)[0]
ops.FractionalMaxPool([1.0, 1.0, 3.0, 1.0], False, False, True, 3, 4)(img)
ops.LSTM(3, 1, 1, True, False, 0.0)(c3[:, :, :3], c3[:1, :, :1], c3[1:, :, :1], ops.concat((x, y, x, y, x)).reshape(-1, 1, 1)[:20])[:3]
ops.LSTM(3, 1, 1, False, True, 0.0)(c3[:, :, :3], c3[:, :, :1], c3[:, :, 1:2], ops.concat((x, y, x, y, y, x)).reshape(-1, 1, 1)[:32])[:3]
ops.SoftmaxCrossEntropyWithLogits()(y, ops.softmax(y))[1]
ops.SoftmaxCrossEntropyWithLogits()(x, ops.softmax(y))[0]
ops.full((2, 3), 1.2)
ops.full([2], True)
ops.full((2, 3), 1.2, dtype=ms.float16)
ops.ScaleAndTranslate('lanczos1', True)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('lanczos3', False)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('lanczos5', True)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('gaussian', False)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('box', True)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('box', False)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('triangle', True)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('keyscubic', False)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
ops.ScaleAndTranslate('mitchellcubic', True)(img, T([3, 7], ms.int32), T([0.7, 1.3], ms.float32), T([0.13, 0.41], ms.float32))
!ops.UniformCandidateSampler(1, 3, False, 4, 1)(T([[1], [3], [0]]))[1:]
!ops.UniformCandidateSampler(1, 3, True, 5, 1)(T([[1], [3], [0]]))[1:]
!ops.LogUniformCandidateSampler(2, 3, False, 9)(T([[1, 2], [0, 4], [3, 3]]))[1]
ops.linearize(ops.sin, x)[1](y)
ops.Betainc()(T([0.5, 2, 30], ms.float32), T([0.7, 9, 20], ms.float32), T([0.3, 0.1, 0.7], ms.float32))
!ops.MatrixLogarithm()(cs)
ops.ExtractGlimpse()(T(numpy.arange(16, dtype='float32').reshape(1, 4, 4, 1)), T([2, 2], ms.int32), T([[0., 0.5]], ms.float32))
ops.ExtractGlimpse(True, False, False, 'zero')(T(numpy.arange(16, dtype='float32').reshape(1, 4, 4, 1)), T([3, 3], ms.int32), T([[1.5, 2.]], ms.float32))
ops.deformable_conv2d(img[:, :2], c3[:, :2].reshape((2, 2, 2, 2)), vol.reshape((2, 12, 3, 5))[..., :3], (2, 2), (1, 1, 2, 2), (0, 0, 0, 0))
ops.reshape_(x, (3, 2))
""")
)
