"""Rows of operator classes for optimizers, images, segments and samples."""

OPTIMIZERS = """
ApplyAdagradDA | use_locking=False | var, gradient_accumulator, gradient_squared_accumulator, grad,
  lr, l1, l2, global_step | H.apply_adagrad_da(var, gradient_accumulator,
  gradient_squared_accumulator, grad, lr, l1, l2, global_step)
ApplyAdamWithAmsgrad | beta1=0.9, beta2=0.999, epsilon=1e-08, use_locking=False
  | var, m, v, vhat, beta1_power, beta2_power, lr, grad
  | H.apply_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
ApplyAdamWithAmsgradV2 | use_locking=False
  | var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
  | H.apply_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
ApplyAddSign | | var, m, lr, alpha, sign_decay, beta, grad | H.apply_sign(var, m, lr, beta, grad,
  lambda s: alpha + sign_decay * s)
ApplyFtrl | use_locking=False | var, accum, linear, grad, lr, l1, l2, lr_power
  | H.apply_ftrl(var, accum, linear, grad, lr, l1, l2, lr_power)
ApplyPowerSign | | var, m, lr, logbase, sign_decay, beta, grad | H.apply_sign(var, m, lr, beta,
  grad, lambda s: F.exp(s * (logbase * sign_decay)))
ApplyProximalAdagrad | use_locking=False | var, accum, lr, l1, l2, grad
  | H.apply_proximal_adagrad(var, accum, lr, l1, l2, grad)
ApplyProximalGradientDescent | | var, alpha, l1, l2, delta
  | F.assign(var, H.proximal(var - delta * alpha, alpha, l1, l2))
"""

OTHERS = """
CheckValid | | bboxes, img_metas | F.check_valid(bboxes, img_metas)
DataFormatDimMap | src_format="NHWC", dst_format="NCHW" | input_x
  | H.data_format_dim_map(input_x, src_format, dst_format)
DataFormatVecPermute | src_format="NHWC", dst_format="NCHW" | input_x
  | F.gather(input_x, Tensor([src_format.index(c) for c in dst_format]), 0)
HSVToRGB | | image | H.hsv_to_rgb(image)
LowerBound | out_type=int32 | sorted_x, values
  | F.cast(F.searchsorted(sorted_x, values), out_type)
LuUnpack | unpack_data=True, unpack_pivots=True | LU_data, LU_pivots
  | F.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
MatrixBandPart | | x, lower, upper | F.matrix_band_part(x, lower, upper)
MatrixTriangularSolve | lower=True, adjoint=False | matrix, rhs
  | F.triangular_solve(rhs, matrix, not lower, adjoint)[0]
MultilabelMarginLoss | reduction="mean" | x, target
  | F.multilabel_margin_loss(x, target, reduction)
NthElement | reverse=False | input, n | F.sort(input, -1, reverse)[0][..., int(n)]
RGBToHSV | | images | H.rgb_to_hsv(images)
SegmentMax | | input_x, segment_ids | H.segment("max", input_x, segment_ids)
SegmentMean | | input_x, segment_ids | H.segment("mean", input_x, segment_ids)
SegmentMin | | input_x, segment_ids | H.segment("min", input_x, segment_ids)
SegmentProd | | input_x, segment_ids | H.segment("prod", input_x, segment_ids)
SegmentSum | | input_x, segment_ids | H.segment("sum", input_x, segment_ids)
TridiagonalMatMul | | superdiag, maindiag, subdiag, rhs
  | H.tridiagonal_product(superdiag, maindiag, subdiag, rhs)
UpperBound | out_type=int32 | sorted_x, values
  | F.cast(F.searchsorted(sorted_x, values, right=True), out_type)
"""

MORE_ROWS = OPTIMIZERS + OTHERS
