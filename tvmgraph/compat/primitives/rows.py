"""Rows of the operator classes; the columns are explained in :mod:`.base`."""

ELEMENTWISE = """
ACos Abs Acosh Angle Asin Asinh Atan Atanh Ceil Conj Cos Cosh Digamma Erf Erfc Erfinv Exp Expm1
  Floor Imag Log Log1p LogicalNot Neg PopulationCount Real Reciprocal Rsqrt Sigmoid Sign Sin Sinc
  Sinh Square Tan Tanh Trunc | | input | F.*(...)
AccumulateNV2 | | x | F.accumulate_n(x)
Add Atan2 Div Equal FloorDiv Gcd Greater GreaterEqual Less LessEqual LogicalXor Maximum Minimum Mul
  NotEqual Xlogy | | input, other | F.*(...)
AddV2 | | x, y | F.add(x, y)
AddN | | x | F.addn(x)
Addcdiv Addcmul | | input, tensor1, tensor2, value | F.*(...)
ApproximateEqual | tolerance=1e-05 | x, y | F.approximate_equal(x, y, tolerance)
BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e
  BesselY0 BesselY1 FastGelu Inv Invert Lgamma Mish Softplus Softsign Sqrt | | x | F.*(...)
BitwiseAnd BitwiseOr BitwiseXor FloorMod LogicalAnd LogicalOr Sub TruncateDiv TruncateMod Xdivy
  | | x, y | F.*(...)
Bucketize | boundaries | input | F.bucketize(input, boundaries, right=True)
Cast | | input_x, dtype | H.cast(input_x, dtype)
CeLU | alpha=1.0 | x | F.celu(x, alpha)
Complex | | real, imag | F.complex(real, imag)
ComplexAbs | | x | F.abs(x)
DivNoNan | | x1, x2 | H.div_no_nan(x1, x2)
Elu | alpha=1.0 | input_x | F.elu(input_x, alpha)
FastGeLU | | x | F.fast_gelu(x)
Fmax Fmin Hypot Lcm | | x1, x2 | F.*(...)
GLU | axis=-1 | x | F.glu(x, axis)
GeLU | | input | F.gelu(input, approximate="tanh")
Gelu | | x | F.gelu(x, approximate="tanh")
HShrink | lambd=0.5 | input | F.hardshrink(input, lambd)
HSigmoid | | input | F.hardsigmoid(input)
HSwish | | input | F.hardswish(input)
Heaviside | | x, values | F.heaviside(x, values)
Identity | | input_x | F.identity(input_x)
IdentityN | | x | tuple(F.identity(t) for t in x)
Igamma Igammac Polygamma | | a, x | F.*(...)
IsClose | rtol=1e-05, atol=1e-08, equal_nan=False | input, other | F.isclose(input, other, rtol,
  atol, equal_nan)
FloatStatus | | x | F.expand_dims(F.cast(~F.isfinite(x).all(), float32), 0)
IsFinite | | input | F.isfinite(input)
IsInf | | input | F.isinf(input)
IsNan | | x | F.isnan(x)
LeftShift | | x1, x2 | F.bitwise_left_shift(x1, x2)
Lerp | | input, end, weight | F.lerp(input, end, weight)
LerpScalar | | input, end, weight | F.lerp(input, end, weight)
LogSoftmax | axis=-1 | logits | F.log_softmax(logits, axis)
LogSoftmaxExt | | input, dim=None, dtype=None
  | F.log_softmax(input if dtype is None else F.cast(input, dtype), -1 if dim is None else dim)
Logit | eps=-1.0 | input | F.logit(input, None if eps < 0 else eps)
Mod | | x, y | F.truncate_mod(x, y)
Morph | fn, infer_shape, infer_dtype, bprop_fn=None | *args, **kw | H.call(fn, bprop_fn, args, kw)
MulNoNan | | x, y | F.where(F.equal(y, 0), F.zeros_like(F.mul(x, y)), F.mul(x, y))
Mvlgamma | p: positive | x | F.mvlgamma(x, p)
NanToNum | nan=None, posinf=None, neginf=None | input | F.nan_to_num(input, nan, posinf, neginf)
NextAfter | | input, other | F.nextafter(input, other)
PReLU | | input, weight | F.prelu(input, weight)
Polar | | abs, angle | F.polar(abs, angle)
Pow | | input, exponent | F.pow(input, exponent)
ReLU | | input | F.relu(input)
ReLU6 | | x | F.relu6(x)
RealDiv | | x, y | H.real_div(x, y)
RightShift | | input_x, input_y | F.bitwise_right_shift(input_x, input_y)
Rint | | x | F.round(x)
Round | | input, decimals=0 | F.round(input, decimals=decimals)
SeLU | | input_x | F.selu(input_x)
Select | | condition, input, other | F.select(condition, input, other)
SoftShrink | lambd=0.5 | input | F.softshrink(input, lambd)
Softmax | axis: ints = -1 | input | H.softmax(input, axis)
SquareSumAll | | x, y | (F.sum(F.square(x)), F.sum(F.square(y)))
SquaredDifference | | x, y | F.mul(F.sub(x, y), F.conj(F.sub(x, y)))
StopGradient | | value | F.stop_gradient(value)
TensorAdd | | input, other | F.add(input, other)
Zeta | | x, q | F.zeta(x, q)
"""

REDUCTION = """
ArgMaxWithValue | axis=0, keep_dims=False | input | F.max(input, axis, keep_dims)[::-1]
ArgMinWithValue | axis=0, keep_dims=False | input | F.min(input, axis, keep_dims)[::-1]
Argmax | axis=-1, output_type=int32 | input_x | F.cast(F.argmax(input_x, axis), output_type)
Argmin | axis=-1, output_type=int32 | x | F.cast(F.argmin(x, axis), output_type)
Bincount | | array, size, weights | H.bincount(array, size, weights)
CountNonZero | dims: ints = None | x | F.count_nonzero(x, () if dims is None else dims)
CumProd | exclusive=False, reverse=False | x, axis | H.scan(F.cumprod, x, axis, exclusive,
  reverse, 1)
CumSum | exclusive=False, reverse=False | input, axis | H.scan(F.cumsum, input, axis, exclusive,
  reverse, 0)
Cummax Cummin | axis: int | input | F.*(..., axis)
CumulativeLogsumexp | exclusive=False, reverse=False | x, axis
  | H.scan(F.logcumsumexp, x, int(axis), exclusive, reverse, float(float_limits(x.dtype).min))
EqualCount | | x, y | F.reshape(F.cast(F.sum(F.cast(F.equal(x, y), int32)), x.dtype), (1,))
EuclideanNorm | keep_dims=False | x, axes | F.sqrt(F.sum(F.square(x), H.ints(axes), keep_dims))
Histogram | bins=100, min=0.0, max=0.0 | x | F.histc(x, bins, min, max)
L2Loss | | x | F.div(F.sum(F.square(x)), 2)
LpNorm | axis: ints, p=2, keep_dims=False, epsilon=1e-12 | input | H.lp_norm(input, axis, p,
  keep_dims, epsilon)
Median | global_median=False, axis=0, keep_dims=False, ignore_nan=False | x | H.median(x,
  global_median, axis, keep_dims, ignore_nan)
NuclearNorm | dim=None, keepdim=False | x | F.matrix_norm(x, "nuc", (-2,
  -1) if dim is None else dim, keepdim)
Quantile | dim=None, keep_dims=False, ignore_nan=False | input, q
  | (F.nanquantile if ignore_nan else F.quantile)(input, q, dim, keep_dims)
ReduceAll | keep_dims=False | input, axis=None | F.all(input, axis, keep_dims)
ReduceAny | keep_dims=False | x, axis=() | F.any(x, axis, keep_dims)
ReduceMax | keep_dims=False | x, axis=() | F.amax(x, axis, keep_dims)
ReduceMean | keep_dims=False | x, axis=() | F.mean(x, axis, keep_dims)
ReduceMin | keep_dims=False | x, axis=() | F.amin(x, axis, keep_dims)
ReduceProd | keep_dims=False | x, axis=() | F.prod(x, axis, keep_dims)
ReduceStd | axis: ints = (), unbiased=True, keep_dims=False | x | F.std_mean(x, axis,
  int(unbiased), keep_dims)
ReduceSum | keep_dims=False, skip_mode=False | x, axis=() | H.reduce_sum(..., keep_dims, skip_mode)
SearchSorted | dtype=int64, right=False | sorted_sequence, values, sorter=None
  | F.cast(F.searchsorted(sorted_sequence, values, right=right, sorter=sorter), dtype)
Sort | axis=-1, descending=False | x | F.sort(x, axis, descending)
TopK | sorted=True | input, k | F.topk(input, k, -1, True, sorted)
UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd
  | | x, segment_ids, num_segments | F.*(...)
UnsortedSegmentSum | | input_x, segment_ids, num_segments | F.unsorted_segment_sum(...)
"""

LINALG = """
BatchMatMul | transpose_a=False, transpose_b=False | x, y | F.matmul(x, y, transpose_a, transpose_b)
BiasAdd | data_format: NCHW|NHWC|NCDHW = "NCHW" | input_x, bias | H.bias_add(..., data_format)
Cdist | p=2.0 | x1, x2 | F.cdist(x1, x2, p)
Cholesky CholeskyInverse | upper=False | input_x | F.*(..., upper)
CholeskySolve | upper=False | x1, x2 | F.cholesky_solve(x1, x2, upper)
Cross | dim=-65530 | input, other | F.cross(input, other, None if dim == -65530 else dim)
Dense | | input, weight, bias=None | F.dense(input, weight, bias)
Eig | compute_v=False | x | F.eig(x) if compute_v else (F.eigvals(x), F.zeros((0,), x.dtype))
Einsum | equation: str | x | F.einsum(equation, *x)
Geqrf MatrixExp Trace | | input | F.*(...)
Ger | | x1, x2 | F.ger(x1, x2)
LogMatrixDeterminant | | input | F.slogdet(input)
LuSolve | | x, lu_data, lu_pivots | F.lu_solve(x, lu_data, lu_pivots)
MatMul | transpose_a=False, transpose_b=False | input, mat2 | F.matmul(input, mat2, transpose_a,
  transpose_b)
MatrixDeterminant | | input | F.det(input)
Lstsq | fast=True, l2_regularizer=0.0 | x, a | F.lstsq(x, a)
MatrixDiagPartV3 | align: LEFT_RIGHT|RIGHT_LEFT|LEFT_LEFT|RIGHT_RIGHT = "RIGHT_LEFT"
  | x, k, padding_value | F.matrix_diag_part(x, k, padding_value, align)
MatrixDiagV3 | align: LEFT_RIGHT|RIGHT_LEFT|LEFT_LEFT|RIGHT_RIGHT = "RIGHT_LEFT" | x, k, num_rows,
  num_cols, padding_value | F.matrix_diag(x, k, int(num_rows), int(num_cols), padding_value, align)
MatrixSetDiagV3 | align: LEFT_RIGHT|RIGHT_LEFT|LEFT_LEFT|RIGHT_RIGHT = "RIGHT_LEFT"
  | x, diagonal, k | F.matrix_set_diag(x, diagonal, k, align)
MatrixInverse | adjoint=False | x | F.inverse(H.adjoint_if(x, adjoint))
MatrixPower | n: int | x | F.matrix_power(x, n)
MatrixSolve | adjoint=False | matrix, rhs | F.matrix_solve(matrix, rhs, adjoint)
Orgqr | | x, tau | F.orgqr(x, tau)
Ormqr | left=True, transpose=False | x, tau, other | F.ormqr(x, tau, other, left, transpose)
Pdist | p=2.0 | x | F.pdist(x, p)
Qr | full_matrices=False | x | F.qr(x, "complete" if full_matrices else "reduced")
Svd | full_matrices=False, compute_uv=True | input | F.svd(input, full_matrices, compute_uv)
"""

SHAPE = """
BatchToSpaceND | block_shape: ints, crops | input_x | F.batch_to_space_nd(..., block_shape, crops)
BroadcastTo | shape: ints | input | F.broadcast_to(input, shape)
ChannelShuffle | group: positive | x | F.channel_shuffle(x, group)
Concat | axis=0 | tensors | F.concat(tensors, axis)
ConjugateTranspose | | x, perm | F.conj(F.transpose(x, perm))
DepthToSpace | block_size: positive | x | H.depth_to_space(x, block_size)
Diag | | input | F.diag(input)
DiagPart | | input_x | H.diag_part(input_x)
Expand | | x, shape | F.broadcast_to(x, H.ints(shape))
ExpandDims | | input_x, axis | F.expand_dims(input_x, axis)
FillDiagonal | fill_value: float, wrap=False | input_x | input_x.fill_diagonal(fill_value, wrap)
Flatten | | input_x | F.flatten(input_x)
Meshgrid | indexing: xy|ij = "xy" | inputs | F.meshgrid(*inputs, indexing=indexing)
MirrorPad | mode: reflect|symmetric = "REFLECT" | x, paddings | F.mirror_pad(x, paddings, mode)
Pack | axis=0 | tensors | F.stack(tensors, axis)
Pad | paddings | x | H.pad(x, paddings)
PadV3 | mode: constant|reflect|edge|circular = "constant", paddings_contiguous=True | x, paddings,
  constant_value=0 | H.pad_v3(x, paddings, constant_value, mode, paddings_contiguous)
Padding | pad_dim_size: positive = 8 | x | F.padding(x, pad_dim_size)
Reshape | | input, shape | F.reshape(input, H.ints(shape))
ReverseSequence | seq_dim: int, batch_dim=0 | x, seq_lengths | F.reverse_sequence(x, seq_lengths,
  seq_dim, batch_dim)
ReverseV2 | axis: ints | input | F.flip(input, axis if isinstance(axis, tuple) else (axis,))
Roll | shifts: ints, dims: ints = None | input | F.roll(input, shifts, dims)
Slice | | input, begin, size | F.slice(input, begin, size)
SpaceToBatchND | block_shape: ints, paddings | input_x | F.space_to_batch_nd(input_x, block_shape,
  paddings)
SpaceToDepth | block_size: positive | x | H.space_to_depth(x, block_size)
Split | axis=0, output_num: positive = 1 | input_x | H.split(input_x, axis, output_num)
SplitV | size_splits: ints, split_dim: int, num_split: int = None | input_x | F.split(input_x,
  size_splits, split_dim)
Squeeze | axis: ints = () | input | F.squeeze(input, None if axis == () else axis)
Stack | axis=0 | x | F.stack(x, axis)
StridedSlice | begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
  | input_x, begin, end, strides | F.strided_slice(input_x, begin, end, strides, begin_mask,
  end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
Tile | | input, dims | F.tile(input, H.ints(dims))
Transpose | | input, dims | F.transpose(input, H.ints(dims))
Tril | diagonal=0 | x | F.tril(x, diagonal)
TrilIndices | row: int, col: int, offset=0, dtype=int32 | | F.tril_indices(row, col, offset,
  dtype=dtype)
Triu | diagonal=0 | input | F.triu(input, diagonal)
TriuIndices | row: int, col: int, offset=0, dtype=int32 | | F.triu_indices(row, col, offset,
  dtype=dtype)
Unpack | axis=0 | input_x | F.unstack(input_x, axis)
Unstack | axis=0, num=None | input_x | F.unstack(input_x, axis)
"""

INDEXING = """
EmbeddingLookup | | params, indices, offset | H.embedding_lookup(params, indices, offset)
Gather | batch_dims=0 | input_params, input_indices, axis | F.gather(..., batch_dims)
GatherD | | x, dim, index | F.gather_elements(x, dim, index)
GatherNd | | input_x, indices | F.gather_nd(input_x, indices)
GatherV2 | | params, indices, axis | F.gather(params, indices, axis)
InTopK | k: int | x1, x2 | F.intopk(x1, x2, k)
IndexAdd | axis: int, use_lock=True, check_index_bound=True | input_x, indices, input_y
  | F.index_add(input_x, indices, input_y, axis)
IndexFill | | x, dim, index, value | F.index_fill(x, int(dim), index, value)
IndexPut | accumulate: int = 0 | x1, x2, indices | x1.index_put(indices, x2, bool(accumulate))
InplaceAdd InplaceSub InplaceUpdate | indices: ints | x, v | F.*(..., indices)
InplaceIndexAdd | axis: int | var, indices, updates | F.inplace_index_add(..., axis)
InplaceUpdateV2 | | x, indices, v | F.inplace_update(x, v, indices)
InvertPermutation | | input_x | H.invert_permutation(input_x)
MaskedFill | | input_x, mask, value | F.masked_fill(input_x, mask, value)
MaskedScatter | | input, mask, source | F.masked_scatter(input, mask, source)
MaskedSelect | | input, mask | F.masked_select(input, mask)
NonZero | | input | F.nonzero(input)
OneHot | axis=-1 | indices, depth, on_value, off_value | F.one_hot(..., axis)
Renorm | p: float, dim: int, maxnorm: float | x | F.renorm(x, p, dim, maxnorm)
ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdDiv ScatterNdMax
  ScatterNdMin ScatterNdMul ScatterNdSub ScatterSub
  | use_locking=False | input_x, indices, updates | F.*(...)
ScatterNd | | indices, updates, shape | F.scatter_nd(indices, updates, H.ints(shape))
ScatterNdUpdate ScatterUpdate | use_locking=True | input_x, indices, updates | F.*(...)
SparseGatherV2 | | input_params, input_indices, axis | F.gather(...)
TensorScatterAdd TensorScatterDiv TensorScatterMax TensorScatterMin TensorScatterMul
  TensorScatterSub TensorScatterUpdate | | input_x, indices, updates | F.*(...)
TensorScatterElements | axis=0, reduction: none|add|mul|max|min = "none" | data, indices, updates
  | F.tensor_scatter_elements(data, indices, updates, axis, reduction)
UnravelIndex | | indices, dims | H.unravel_index(indices, dims)
Unique | | x | F.unique(x)
UniqueConsecutive | return_inverse=False, return_counts=False, dim=None | input
  | F.unique_consecutive(input, return_inverse, return_counts, dim)
UniqueWithPad | | x, pad_num | F.unique_with_pad(x, pad_num)
"""

OPTIMIZERS = """
ApplyAdagradDA | use_locking=False | var, gradient_accumulator, gradient_squared_accumulator, grad,
  lr, l1, l2, global_step | H.apply_adagrad_da(...)
ApplyAdamWithAmsgrad | beta1=0.9, beta2=0.999, epsilon=1e-08, use_locking=False
  | var, m, v, vhat, beta1_power, beta2_power, lr, grad
  | H.apply_amsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
ApplyAdamWithAmsgradV2 | use_locking=False | var, m, v, vhat, beta1_power, beta2_power, lr, beta1,
  beta2, epsilon, grad | H.apply_amsgrad(...)
ApplyAddSign | | var, m, lr, alpha, sign_decay, beta, grad | H.apply_sign(var, m, lr, beta, grad,
  lambda s: alpha + sign_decay * s)
ApplyFtrl | use_locking=False | var, accum, linear, grad, lr, l1, l2, lr_power | H.apply_ftrl(...)
ApplyPowerSign | | var, m, lr, logbase, sign_decay, beta, grad | H.apply_sign(var, m, lr, beta,
  grad, lambda s: F.exp(s * (logbase * sign_decay)))
ApplyProximalAdagrad | use_locking=False | var, accum, lr, l1, l2, grad
  | H.apply_proximal_adagrad(var, accum, lr, l1, l2, grad)
ApplyProximalGradientDescent | | var, alpha, l1, l2, delta
  | F.assign(var, H.proximal(var - delta * alpha, alpha, l1, l2))
FusedSparseAdam | use_locking=False, use_nesterov=False | var, m, v, beta1_power, beta2_power, lr,
  beta1, beta2, epsilon, grad, indices | H.sparse_adam(..., use_nesterov)
FusedSparseFtrl | lr: float, l1: float, l2: float, lr_power: float, use_locking=False
  | var, accum, linear, grad, indices | H.on_rows(lambda v, a, z, g: H.apply_ftrl(v, a, z, g, lr,
  l1, l2, lr_power), (var, accum, linear), grad, indices)
FusedSparseLazyAdam | use_locking=False, use_nesterov=False | var, m, v, beta1_power, beta2_power,
  lr, beta1, beta2, epsilon, grad, indices | H.on_rows(lambda x, a, b, g: H.adam(x, a, b,
  beta1_power, beta2_power, lr, beta1, beta2, epsilon, g, use_nesterov), (var, m, v), grad, indices)
FusedSparseProximalAdagrad | use_locking=False | var, accum, lr, l1, l2, grad, indices
  | H.on_rows(lambda v, a, g: H.apply_proximal_adagrad(v, a, lr, l1, l2, g), (var, accum), grad,
  indices)
SparseApplyAdadelta | epsilon: float, use_locking=False
  | var, accum, accum_update, lr, rho, grad, indices | H.on_rows(lambda v, a, u, g:
  H.apply_adadelta(v, a, u, lr, rho, epsilon, g), (var, accum, accum_update), grad, indices)
SparseApplyAdagrad | lr: float, update_slots=True, use_locking=False | var, accum, grad, indices |
  H.on_rows(lambda v, a, g: H.apply_adagrad(v, a, lr, g, update_slots), (var, accum), grad, indices)
SparseApplyAdagradDA | use_locking=False | var, grad_accum, grad_square_accum, grad, indices, lr,
  l1, l2, global_step | H.on_rows(lambda v, a, s, g: H.apply_adagrad_da(v, a, s, g, lr, l1, l2,
  global_step), (var, grad_accum, grad_square_accum), grad, indices)[0]
SparseApplyAdagradV2 | lr: float, epsilon: float, use_locking=False, update_slots=True
  | var, accum, grad, indices | H.on_rows(lambda v, a, g: F.assign_sub(v, g * lr / F.sqrt(epsilon +
  (F.assign_add(a, F.square(g)) if update_slots else a))), (var, accum), grad, indices)
SparseApplyCenteredRMSProp | use_locking=False | var, mg, ms, mom, lr, rho, momentum, epsilon, grad,
  indices | H.on_rows(lambda v, a, s, m, g: H.apply_centered_rms_prop(v, a, s, m, g, lr, rho,
  momentum, epsilon), (var, mg, ms, mom), grad, indices)[0]
SparseApplyFtrl | lr: float, l1: float, l2: float, lr_power: float, use_locking=False
  | var, accum, linear, grad, indices | H.on_rows(lambda v, a, z, g: H.apply_ftrl(v, a, z, g, lr,
  l1, l2, lr_power), (var, accum, linear), grad, indices)
SparseApplyMomentum | use_locking=False, use_nesterov=False
  | var, accum, lr, grad, indices, momentum | H.on_rows(lambda v, a, g: H.apply_momentum(v, a, lr,
  g, momentum, use_nesterov, 1.0), (var, accum), grad, indices)[0]
SparseApplyProximalAdagrad | use_locking=False | var, accum, lr, l1, l2, grad, indices
  | H.on_rows(lambda v, a, g: H.apply_proximal_adagrad(v, a, lr, l1, l2, g), (var, accum), grad,
  indices)
SparseApplyProximalGradientDescent | use_locking=False | var, alpha, l1, l2, grad, indices
  | H.on_rows(lambda v, g: F.assign(v, H.proximal(v - g * alpha, alpha, l1, l2)), (var,), grad,
  indices)
SparseApplyRMSProp | rho: float, momentum: float, epsilon: float, use_locking=False
  | var, ms, mom, lr, grad, indices | H.on_rows(lambda v, s, m, g: H.apply_rms_prop(v, s, m, lr, g,
  rho, momentum, epsilon), (var, ms, mom), grad, indices)
"""

OTHERS = """
CheckValid | | bboxes, img_metas | F.check_valid(bboxes, img_metas)
DataFormatDimMap | src_format="NHWC", dst_format="NCHW" | input_x
  | H.data_format_dim_map(input_x, src_format, dst_format)
DataFormatVecPermute | src_format="NHWC", dst_format="NCHW" | input_x
  | F.gather(input_x, Tensor([src_format.index(c) for c in dst_format]), 0)
HSVToRGB | | image | H.hsv_to_rgb(image)
LowerBound | out_type=int32 | sorted_x, values | F.cast(F.searchsorted(...), out_type)
LuUnpack | unpack_data=True, unpack_pivots=True | LU_data, LU_pivots
  | F.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
MatrixBandPart | | x, lower, upper | F.matrix_band_part(x, lower, upper)
MatrixTriangularSolve | lower=True, adjoint=False | matrix, rhs
  | F.triangular_solve(rhs, H.adjoint_if(matrix, adjoint), lower == adjoint)[0]
MultilabelMarginLoss | reduction="mean" | x, target | H.multilabel_margin(..., reduction)
CudnnGRU | input_size, hidden_size, num_layers, has_bias, bidirectional, dropout
  | input, h, w | H.refuse("CudnnGRU", "NVIDIA's processors", "nn.GRU")
FlashAttentionScore | head_num, keep_prob=1.0, scale_value=1.0, pre_tokens=2147483647,
  next_tokens=2147483647, inner_precise=0, input_layout="BSH", sparse_mode=0
  | query, key, value, real_shift=None, drop_mask=None, padding_mask=None, attn_mask=None,
  prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None
  | H.refuse("FlashAttentionScore", "Ascend processors", "ops.flash_attention_score")
NPUAllocFloatStatus | | | H.float_status("NPUAllocFloatStatus")
NPUClearFloatStatus | | addr | H.float_status("NPUClearFloatStatus")
NPUGetFloatStatus | | addr | H.float_status("NPUGetFloatStatus")
NthElement | reverse=False | input, n | F.sort(input, -1, reverse)[0][..., int(n)]
RGBToHSV | | images | H.rgb_to_hsv(images)
SegmentMax | | input_x, segment_ids | H.segment("max", input_x, segment_ids)
SegmentMean | | input_x, segment_ids | H.segment("mean", input_x, segment_ids)
SegmentMin | | input_x, segment_ids | H.segment("min", input_x, segment_ids)
SegmentProd | | input_x, segment_ids | H.segment("prod", input_x, segment_ids)
SegmentSum | | input_x, segment_ids | H.segment("sum", input_x, segment_ids)
TridiagonalMatMul | | superdiag, maindiag, subdiag, rhs | H.tridiagonal_product(...)
UpperBound | out_type=int32 | sorted_x, values | F.cast(F.searchsorted(..., right=True), out_type)
"""

MATH_ROWS = ELEMENTWISE + REDUCTION + LINALG + SHAPE + INDEXING + OPTIMIZERS + OTHERS


# ---- operator classes of sparse matrices: ``from tvmgraph.ops.operations import sparse_ops`` -----
# The columns are those of :mod:`.base`.

SPARSE_ROWS = """
CSRSparseMatrixToDense | | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
  | H.dense_of((...))
DenseToCSRSparseMatrix | | dense_input, indices | H.rows_of(indices.asnumpy(),
  F.gather_nd(dense_input, indices), Tensor(dense_input.shape, indices.dtype), indices.dtype)
SparseAdd | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, thresh
  | H.sparse_add((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), thresh)
SparseAddmm | | indices, values, sparse_shape, x2_dense, x3_dense, alpha, beta
  | H.sparse_product(indices, values, sparse_shape, x2_dense) * alpha + x3_dense * beta
SparseCountSparseOutput | binary_output=False, minlength=-1, maxlength=-1 | indices, values,
  dense_shape, weights | H.count_sparse(..., binary_output, minlength, maxlength)
SparseDenseCwiseAdd | | x1_indices, x1_values, x1_shape, x2
  | x1_values + H.beside_dense(x1_indices, x1_shape, x2)
SparseDenseCwiseDiv | | x1_indices, x1_values, x1_shape, x2
  | F.cast(F.div(x1_values, H.beside_dense(x1_indices, x1_shape, x2)), x1_values.dtype)
SparseDenseCwiseMul | | x1_indices, x1_values, x1_shape, x2
  | x1_values * H.beside_dense(x1_indices, x1_shape, x2)
SparseMatrixAdd | | x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values,
  x2_dense_shape, x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values, alpha, beta
  | H.matrix_sum((x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values),
  (x2_dense_shape, x2_batch_pointers, x2_row_pointers, x2_col_indices, x2_values), alpha, beta)
SparseMatrixMatMul | transpose_x1=False, transpose_x2=False, adjoint_x1=False, adjoint_x2=False,
  transpose_output=False, conjugate_output=False
  | x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices, x1_values, x2_dense
  | H.matrix_product((x1_dense_shape, x1_batch_pointers, x1_row_pointers, x1_col_indices,
  x1_values), x2_dense, transpose_x1 or adjoint_x1, transpose_x2 or adjoint_x2, transpose_output)
SparseMatrixNNZ | | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
  | x_batch_pointers[1:] - x_batch_pointers[:-1]
SparseMatrixSoftmax | dtype: dtype | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices,
  x_values | H.matrix_softmax((x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices,
  F.cast(x_values, dtype)))
SparseMatrixTranspose | conjugate=False | x_dense_shape, x_batch_pointers, x_row_pointers,
  x_col_indices, x_values | H.matrix_transpose((x_dense_shape, x_batch_pointers, x_row_pointers,
  x_col_indices, F.conj(x_values) if conjugate else x_values))
SparseReorder | | indices, values, shape | H.sparse_reorder(indices, values)
SparseReshape | | indices, shape, new_shape | H.sparse_reshape(indices, shape, new_shape)
SparseSegmentMeanWithNumSegments | | x, indices, segment_ids, num_segments
  | H.sparse_segment("mean", x, indices, segment_ids, num_segments)
SparseSegmentSqrtN | | x, indices, segment_ids | H.sparse_segment("sqrtn", x, indices, segment_ids)
SparseSegmentSqrtNWithNumSegments | | x, indices, segment_ids, num_segemnts
  | H.sparse_segment("sqrtn", x, indices, segment_ids, num_segemnts)
SparseSegmentSum | | x, indices, segment_ids | H.sparse_segment("sum", x, indices, segment_ids)
SparseSegmentSumWithNumSegments | | x, indices, segment_ids, num_segments
  | H.sparse_segment("sum", x, indices, segment_ids, num_segments)
SparseSparseMaximum | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape |
  H.sparse_extreme((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), F.maximum)
SparseSparseMinimum | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape |
  H.sparse_extreme((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), F.minimum)
SparseTensorDenseAdd | | x1_indices, x1_values, x1_shape, x2
  | F.tensor_scatter_add(x2, x1_indices, x1_values)
SparseTensorToCSRSparseMatrix | | x_indices, x_values, x_dense_shape
  | H.rows_of(x_indices.asnumpy(), x_values, x_dense_shape, x_indices.dtype)
"""
