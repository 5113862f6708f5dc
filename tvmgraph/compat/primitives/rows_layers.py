"""Rows of the operator classes: layers, losses, creation, random numbers, optimizer steps."""

NN = """
AdaptiveAvgPool2D | output_size | x | F.adaptive_avg_pool2d(x, output_size)
AdaptiveAvgPool3D | output_size | x | F.adaptive_avg_pool3d(x, output_size)
AdaptiveMaxPool2D | output_size | input | F.adaptive_max_pool2d(input, output_size, True)
AdaptiveMaxPool3D | | x, output_size | F.adaptive_max_pool3d(x, H.ints(output_size), True)
AffineGrid | align_corners=False | theta, output_size | F.affine_grid(theta, H.ints(output_size),
  align_corners)
AvgPool | kernel_size: positive = 1, strides: positive = 1, pad_mode: same|valid = "VALID",
  data_format: NCHW|NHWC = "NCHW" | x | H.pool(H.avg_pool, x, kernel_size, strides, pad_mode,
  data_format)
AvgPool3D | kernel_size: positive = 1, strides: positive = 1, pad_mode: same|valid|pad = "valid",
  pad: ints = 0, ceil_mode=False, count_include_pad=True, divisor_override=0,
  data_format: NCDHW = "NCDHW" | input | H.avg_pool3d(input, kernel_size, strides, pad_mode, pad,
  ceil_mode, count_include_pad, divisor_override)
BatchNorm | is_training=False, epsilon=1e-05, momentum=0.1, data_format: NCHW|NHWC = "NCHW"
  | input_x, scale, bias, mean, variance | H.batch_norm(input_x, scale, bias, mean, variance,
  is_training, epsilon, momentum, data_format)
BoundingBoxDecode | max_shape: ints, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0),
  wh_ratio_clip=0.016 | anchor_box, deltas
  | F.bounding_box_decode(anchor_box, deltas, max_shape, means, stds, wh_ratio_clip)
BoundingBoxEncode | means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)
  | anchor_box, groundtruth_box | F.bounding_box_encode(anchor_box, groundtruth_box, means, stds)
Col2Im | kernel_size: ints, dilation: ints = 1, padding: ints = 0, stride: ints = 1 | x,
  output_size | F.col2im(x, output_size, kernel_size, dilation, padding, stride)
Conv2D | out_channel: positive, kernel_size: positive, mode=1, pad_mode: same|valid|pad = "valid",
  pad: ints = 0, stride: positive = 1, dilation: positive = 1, group: positive = 1,
  data_format: NCHW|NHWC = "NCHW" | x, weight | H.conv2d(x, weight, out_channel, kernel_size,
  pad_mode, pad, stride, dilation, group, data_format)
Conv2DTranspose | out_channel: positive, kernel_size: positive, pad_mode: same|valid|pad = "valid",
  pad: ints = 0, pad_list=None, mode=1, stride: positive = 1, dilation: positive = 1, group:
  positive = 1, data_format: NCHW = "NCHW" | dout, weight, input_size | H.conv2d_input_grad(...,
  pad_mode, pad, stride, dilation, group)
Conv2DBackpropInput | out_channel: positive, kernel_size: positive, pad_mode: same|valid|pad =
  "valid", pad: ints = 0, pad_list=None, mode=1, stride: positive = 1, dilation: positive = 1,
  group: positive = 1, data_format: NCHW = "NCHW" | dout, weight, input_size |
  H.conv2d_input_grad(..., pad_mode, pad, stride, dilation, group)
Conv3D | out_channel: positive, kernel_size: positive, mode=1, pad_mode: same|valid|pad = "valid",
  pad: ints = 0, stride: positive = 1, dilation: positive = 1, group: positive = 1, data_format:
  NCDHW = "NCDHW" | x, weight | F.conv3d(..., None, stride, pad_mode, pad, dilation, group)
Conv3DTranspose | in_channel: positive, out_channel: positive, kernel_size: positive, mode=1,
  pad_mode: same|valid|pad = "valid", pad: ints = 0, stride: positive = 1, dilation: positive = 1,
  group: positive = 1, output_padding: ints = 0, data_format: NCDHW = "NCDHW" | x, filter
  | F.conv3d_transpose(x, filter, pad_mode, pad, stride, dilation, group, output_padding)
CropAndResize | method: bilinear|nearest|bilinear_v2 = "bilinear", extrapolation_value=0.0 | x,
  boxes, box_index, crop_size | F.crop_and_resize(..., method, extrapolation_value)
DepthwiseConv2dNative | channel_multiplier: positive, kernel_size: positive, mode=3,
  pad_mode: same|valid|pad = "valid", pad: ints = 0, stride: positive = 1, dilation: positive = 1,
  group: positive = 1 | x, weight | H.depthwise_conv2d(x, weight, pad_mode, pad, stride, dilation)
Dropout | keep_prob=0.5, Seed0=0, Seed1=0 | x | H.dropout(x, keep_prob, Seed0, Seed1)
Dropout2D | keep_prob=0.5 | x | H.dropout_channels(x, keep_prob, 2)
Dropout3D | keep_prob=0.5 | x | H.dropout_channels(x, keep_prob, 3)
GridSampler2D | interpolation_mode: bilinear|nearest|bicubic = "bilinear",
  padding_mode: zeros|border|reflection = "zeros", align_corners=False | input_x, grid
  | F.grid_sample(input_x, grid, interpolation_mode, padding_mode, align_corners)
GridSampler3D | interpolation_mode: bilinear|nearest = "bilinear",
  padding_mode: zeros|border|reflection = "zeros", align_corners=False | input_x, grid
  | F.grid_sample(input_x, grid, interpolation_mode, padding_mode, align_corners)
IOU | mode: iou|iof = "iou" | anchor_boxes, gt_boxes | F.iou(anchor_boxes, gt_boxes, mode)
L2Normalize | axis: ints = 0, epsilon=1e-4 | x | H.l2_normalize(x, axis, epsilon)
LRN | depth_radius: int = 5, bias=1.0, alpha=1.0, beta=0.5, norm_region: across_channels =
  "ACROSS_CHANNELS" | x | F.lrn(..., depth_radius, bias, alpha, beta, norm_region)
LayerNorm | begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7 | input_x, gamma, beta
  | H.layer_norm(input_x, gamma, beta, begin_norm_axis, begin_params_axis, epsilon)
MaxPool | kernel_size: positive = 1, strides: positive = 1, pad_mode: same|valid = "valid",
  data_format: NCHW|NHWC = "NCHW" | x | H.pool(H.max_pool, x, kernel_size, strides, pad_mode,
  data_format)
MaxPool3D | kernel_size: positive = 1, strides: positive = 1, pad_mode: same|valid|pad = "VALID",
  pad_list: ints = 0, ceil_mode=None, data_format: NCDHW = "NCDHW" | x | H.max_pool3d(x,
  kernel_size, strides, pad_mode, pad_list, ceil_mode)
MaxPoolWithArgmaxV2 | kernel_size: positive, strides: positive = None, pads: ints = 0,
  dilation: positive = (1, 1), ceil_mode=False, argmax_type=int64 | x | H.max_pool_argmax(x,
  kernel_size, strides, pads, dilation, ceil_mode, argmax_type)
MaxUnpool2D | ksize: positive, strides: ints = 0, pads: ints = 0, output_shape: ints = (),
  data_format: NCHW = "NCHW" | x, argmax
  | F.max_unpool2d(x, argmax, ksize, strides or None, pads, output_shape or None)
MaxUnpool3D | ksize: positive, strides: ints = 0, pads: ints = 0, output_shape: ints = (),
  data_format: NCDHW = "NCDHW" | x, argmax
  | F.max_unpool3d(x, argmax, ksize, strides or None, pads, output_shape or None)
RmsNorm | epsilon=1e-06 | x, gamma | F.rms_norm(x, gamma, epsilon)
ResizeBilinear | size: ints, align_corners=False, half_pixel_centers=False | x | H.resize(x, size,
  "bilinear", align_corners, half_pixel_centers)
ResizeBilinearV2 | align_corners=False, half_pixel_centers=False | image, size | H.resize(image,
  size, "bilinear", align_corners, half_pixel_centers)
ResizeBicubic | align_corners=False, half_pixel_centers=False | image, size | H.resize(image,
  size, "bicubic", align_corners, half_pixel_centers)
ResizeLinear1D | coordinate_transformation_mode: align_corners|half_pixel|asymmetric =
  "align_corners" | x, size | F.interpolate(x, H.ints(size), mode="linear",
  align_corners=coordinate_transformation_mode == "align_corners")
ResizeNearestNeighbor | size: ints, align_corners=False, half_pixel_centers=False | input_x
  | H.resize(input_x, size, "nearest", align_corners, half_pixel_centers)
ResizeNearestNeighborV2 | align_corners=False, half_pixel_centers=False | image, size
  | H.resize(image, size, "nearest", align_corners, half_pixel_centers)
UpsampleNearest3D | | x, output_size=None, scales=None | F.interpolate(..., mode="nearest")
UpsampleTrilinear3D | align_corners=False | x, output_size=None, scales=None
  | F.interpolate(x, output_size, scales, mode="trilinear", align_corners=align_corners)
Im2Col | ksizes: ints, strides: ints = 1, dilations: ints = 1, pads: ints = 0 | x | H.im2col(x,
  ksizes, strides, dilations, pads)
"""

LOSS = """
BCEWithLogitsLoss | reduction: none|mean|sum = "mean" | input, target, weight=None, posWeight=None
  | F.binary_cross_entropy_with_logits(input, target, weight, posWeight, reduction)
BinaryCrossEntropy | reduction: none|mean|sum = "mean" | input, target, weight=None
  | F.binary_cross_entropy(input, target, weight, reduction)
KLDivLoss | reduction: none|mean|batchmean|sum = "mean" | logits, labels | F.kl_div(..., reduction)
MultiMarginLoss | p=1, margin=1.0, reduction: none|mean|sum = "mean" | x, target, weight=None
  | F.multi_margin_loss(x, target, p, margin, weight, reduction)
NLLLoss | reduction: none|mean|sum = "mean", ignore_index=-100 | logits, labels, weight
  | H.nll_loss(logits, labels, weight, reduction, ignore_index)
SigmoidCrossEntropyWithLogits | | logits, label | F.binary_cross_entropy_with_logits(logits,
  label, None, None, "none")
SmoothL1Loss | beta=1.0, reduction: none|mean|sum = "none" | prediction, target
  | F.smooth_l1_loss(prediction, target, beta, reduction)
SoftMarginLoss | reduction: none|mean|sum = "mean" | input, target | F.soft_margin_loss(input,
  target, reduction)
SoftmaxCrossEntropyWithLogits | | logits, labels | H.softmax_cross_entropy(logits, labels)
SparseSoftmaxCrossEntropyWithLogits | is_grad=False | logits, labels
  | H.sparse_softmax_cross_entropy(logits, labels, is_grad)
TripletMarginLoss | p=2, swap=False, eps=1e-06, reduction: none|mean|sum = "mean" | x, positive,
  negative, margin | F.triplet_margin_loss(x, positive, negative, margin, p, eps, swap, reduction)
"""

CREATION = """
BartlettWindow | periodic=True, dtype=float32 | window_length
  | F.bartlett_window(int(window_length), periodic, dtype=dtype)
BlackmanWindow | periodic=True, dtype=float32 | window_length
  | F.blackman_window(int(window_length), periodic, dtype=dtype)
DType | | x | x.dtype
Depend | | value, expr | F.depend(value, expr)
DynamicShape | dtype=None | x | H.shape_tensor(x)
Eps OnesLike Rank Size ZerosLike | | x | F.*(...)
Eye | | n, m, dtype | F.eye(n, m, dtype)
Fill | | dtype, dims, x | F.fill(dtype, H.ints(dims), x)
FillV2 | | shape, value | H.fill_v2(shape, value)
Fills | | x, value | F.fills(x, value)
HammingWindow | periodic=True, alpha=0.54, beta=0.46, dtype=float32 | length
  | F.hamming_window(int(length), periodic, alpha, beta, dtype=dtype)
LinSpace | | start, stop, num | F.linspace(start, stop, num)
LogSpace | steps=10, base: int = 10, dtype=float32 | start, end | F.logspace(start, end, steps,
  base, dtype=dtype)
Ones | | shape, dtype=None | F.ones(shape, dtype)
Range | maxlen=1000000 | start, end, step | F.range(start, end, step, maxlen)
ScalarCast | | input_x, input_y | H.scalar_cast(input_x, input_y)
ScalarToArray | | input_x | F.scalar_to_tensor(input_x, None)
ScalarToTensor | | x, dtype=float32 | F.scalar_to_tensor(x, dtype)
Shape | | x | x.shape
TensorToTuple | | x | tuple(x.tolist())
TensorShape | | input_x | H.shape_tensor(input_x)
TupleToArray | | input_x | F.tuple_to_array(input_x)
Zeros | | size, dtype=None | F.zeros(size, dtype)
"""

RANDOM = """
Bernoulli | seed: int = -1, offset: int = 0 | x, p | F.bernoulli(x, p, self.stream)
Cauchy | size: ints, median=0.0, sigma=1.0 | | F.zeros(size, float32).cauchy(median, sigma)
Gamma | seed=0, seed2=0 | shape, alpha, beta | H.gamma(shape, alpha, beta, self.stream)
LogNormalReverse | mean=1.0, std=2.0 | input | input.log_normal(mean, std)
Multinomial | seed=0, seed2=0, dtype=int32 | x, num_samples | F.cast(F.multinomial(x,
  num_samples, True, self.stream), dtype)
RandomCategorical | dtype=int64 | logits, num_samples, seed=0 | F.random_categorical(..., dtype)
RandomChoiceWithMask | count: int = 256, seed=0, seed2=0 | input_x | F.choice_with_mask(input_x,
  count, self.stream)
RandomCauchy | size: ints, median=0.0, sigma=1.0 | | F.zeros(size, float32).cauchy(median, sigma)
RandomGamma | seed=0, seed2=0 | shape, alpha | F.random_gamma(H.ints(shape), alpha, self.stream)
RandomShuffle | seed=0, seed2=0 | input_x | F.shuffle(input_x, self.stream)
RandpermV2 | seed=0, offset=0, dtype=int64 | n | F.randperm(n, seed, offset, dtype)
StandardLaplace | seed=0, seed2=0 | shape | F.standard_laplace(H.ints(...), self.stream)
StandardNormal | seed=0, seed2=0 | shape | F.standard_normal(H.ints(shape), self.stream)
TruncatedNormal | dtype=float32, seed=0, seed2=0 | shape | H.truncated_normal(shape, dtype,
  self.stream)
Uniform | minval=0.0, maxval=1.0, seed=0, offset=0 | x | F.cast(minval + (maxval - minval)
  * F.rand(*x.shape, dtype=float32, seed=self.stream), x.dtype)
UniformInt | seed=0, seed2=0 | shape, minval, maxval | F.randint(int(minval), int(maxval),
  H.ints(shape), self.stream, dtype=int32)
UniformReal | seed=0, seed2=0 | shape | F.rand(*H.ints(...), dtype=float32, seed=self.stream)
"""

STATE = """
Adam | use_locking=False, use_nesterov=False | var, m, v, beta1_power, beta2_power, lr, beta1,
  beta2, epsilon, gradient | H.adam(..., use_nesterov)
AdamWeightDecay | use_locking=False | var, m, v, lr, beta1, beta2, epsilon, decay, gradient
  | H.adam_weight_decay(var, m, v, lr, beta1, beta2, epsilon, decay, gradient)
ApplyAdaMax | | var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad | H.apply_ada_max(...)
ApplyAdadelta | | var, accum, accum_update, lr, rho, epsilon, grad | H.apply_adadelta(...)
ApplyAdagrad | update_slots=True | var, accum, lr, grad | H.apply_adagrad(..., update_slots)
ApplyAdagradV2 | epsilon: float, update_slots=True | var, accum, lr, grad
  | H.apply_adagrad(var, accum, lr, grad, update_slots, epsilon)
ApplyCenteredRMSProp | use_locking=False | var, mean_gradient, mean_square, moment, grad,
  learning_rate, decay, momentum, epsilon | H.apply_centered_rms_prop(...)
ApplyGradientDescent | | var, alpha, delta | F.assign_sub(var, delta * alpha)
ApplyMomentum | use_nesterov=False, use_locking=False, gradient_scale=1.0 | variable, accumulation,
  learning_rate, gradient, momentum | H.apply_momentum(..., use_nesterov, gradient_scale)
ApplyRMSProp | use_locking=False | var, mean_square, moment, learning_rate, grad, rho, momentum,
  epsilon | H.apply_rms_prop(...)
Assert | summarize: int = 3 | condition, input_data | H.assert_(condition, input_data)
Assign AssignAdd AssignSub | | variable, value | F.*(...)
InplaceAddExt | | input, other, alpha=1 | input.add_(other, alpha=alpha)
ForiLoop | | lower, upper, loop_func, init_val, unroll=True
  | H.fori_loop(lower, upper, loop_func, init_val)
MoveTo | | input, to="CPU", blocking=True | F.move_to(input, to, blocking)
Print | | *input_x | F.print_(*input_x)
SGD | dampening=0.0, weight_decay=0.0, nesterov=False | parameters, gradient, learning_rate, accum,
  momentum, stat | H.sgd(..., dampening, weight_decay, nesterov)
Scan | | loop_func, init, xs, length=None, unroll=True | H.scan_loop(loop_func, init, xs, length)
WhileLoop | | cond_func, loop_func, init_val | H.while_loop(cond_func, loop_func, init_val)
"""

COLLECTIVE = """
AllGather | group="hccl_world_group" | input_x | D.all_gather(input_x, group)
AllGatherV | group="hccl_world_group" | input_x, output_split_sizes | D.all_gather_v(..., group)
AllReduce | op="sum", group="hccl_world_group" | input_x | D.all_reduce(input_x, op, group)
AlltoAll | split_count: int, split_dim: int, concat_dim: int, group="hccl_world_group" | input_x
  | D.all_to_all(input_x, split_count, split_dim, concat_dim, group)
AlltoAllV | group="hccl_world_group", block_size=1 | input_x, send_numel_list, recv_numel_list
  | D.all_to_all_v(input_x, send_numel_list, recv_numel_list, block_size, group)
BatchISendIRecv
  | op_types, remote_ranks, receive_shapes=None, receive_dtypes=None, group="hccl_world_group"
  | input_x | D.batch(input_x, op_types, remote_ranks, receive_shapes, receive_dtypes, group)
Barrier | group="hccl_world_group" | | D.barrier(group)
Broadcast | root_rank: int, group="hccl_world_group" | input_x
  | D.broadcast_all(input_x, root_rank, group)
CollectiveGather | dest_rank: int, group="hccl_world_group" | input_x
  | D.gather(input_x, dest_rank, group)
CollectiveScatter | src_rank=0, group="hccl_world_group" | input_x | D.scatter(..., src_rank, group)
NeighborExchange
  | send_rank_ids, recv_rank_ids, recv_shapes, send_shapes, recv_type, group="hccl_world_group"
  | tensor | D.exchange(tensor, send_rank_ids, recv_rank_ids, recv_shapes, group)
Receive | sr_tag: int, src_rank: int, shape, dtype, group="hccl_world_group",
  group_back="hccl_world_group" | input_x=None
  | D.receive_tensor(shape, dtype, src_rank, sr_tag, group)
Reduce | dest_rank: int, op="sum", group="hccl_world_group" | input_x
  | D.reduce(input_x, dest_rank, op, group)
ReduceScatter | op="sum", group="hccl_world_group" | input_x | D.reduce_scatter(input_x, op, group)
ReduceScatterV | op="sum", group="hccl_world_group" | input_x, input_split_sizes
  | D.reduce_scatter_v(input_x, input_split_sizes, op, group)
Send | sr_tag: int, dest_rank: int, group="hccl_world_group", group_back="hccl_world_group"
  | input_x | D.send_tensor(input_x, dest_rank, sr_tag, group)
"""

NN_ROWS = NN + LOSS + CREATION + RANDOM + STATE + COLLECTIVE
