"""Rows of the operator classes that look at boxes and sequences; see :mod:`.primitives`."""

SAMPLE_ROWS = """
AdamNoUpdateParam | use_locking=False, use_nesterov=False | m, v, beta1_power, beta2_power, lr,
  beta1, beta2, epsilon, gradient | H.adam_delta(..., use_nesterov)
AdjustHue | | image, delta | H.adjust_hsv(image, delta, 1.0, H.rgb_to_hsv, H.hsv_to_rgb)
AdjustSaturation | | image, scale | H.adjust_hsv(image, 0.0, scale, H.rgb_to_hsv, H.hsv_to_rgb)
ApplyKerasMomentum | use_locking=False, use_nesterov=False | var, accum, lr, grad, momentum
  | H.keras_momentum(var, accum, lr, grad, momentum, use_nesterov)
Betainc | | a, b, x | H.betainc(a, b, x)
BatchToSpace | block_size: positive, crops | input_x
  | F.batch_to_space_nd(input_x, (block_size, block_size), crops)
BatchToSpaceNDV2 | | input_x, block_shape, crops
  | F.batch_to_space_nd(input_x, H.ints_nested(block_shape), H.ints_nested(crops))
CTCGreedyDecoder | merge_repeated=True | inputs, sequence_length
  | H.ctc_greedy_decoder(inputs, sequence_length, merge_repeated)
CTCLoss | preprocess_collapse_repeated=False, ctc_merge_repeated=True,
  ignore_longer_outputs_than_inputs=False | x, labels_indices, labels_values, sequence_length
  | H.ctc_loss_and_gradient(x, labels_indices, labels_values, sequence_length, "CTCLoss",
  preprocess_collapse_repeated, ctc_merge_repeated, ignore_longer_outputs_than_inputs)
CTCLossV2 | blank=0, reduction="none", zero_infinity=False | log_probs, targets, input_lengths,
  target_lengths | F.ctc_loss(..., blank, reduction, zero_infinity)
CheckNumerics | | x | H.checked_numbers(x)
CombinedNonMaxSuppression | pad_per_class=False, clip_boxes=True | boxes, scores,
  max_output_size_per_class, max_total_size, iou_threshold, score_threshold | H.combined_nms(...,
  pad_per_class, clip_boxes)
CompareAndBitpack | | x, threshold | H.bitpack(x, threshold)
ComputeAccidentalHits | num_true: positive = 1 | true_classes, sampled_candidates
  | H.accidental_hits(true_classes, sampled_candidates)
ConfusionMatrix | num_classes: positive, dtype=int32 | labels, predictions, weights=None
  | H.confusion(labels, predictions, num_classes, weights, dtype)
Dilation2D | stride: positive, dilation: positive, pad_mode: same|valid = "SAME",
  data_format: NCHW = "NCHW" | x, filter | H.dilation2d(x, filter, stride, dilation, pad_mode)
EditDistance | normalize=True | hypothesis_indices, hypothesis_values, hypothesis_shape,
  truth_indices, truth_values, truth_shape | H.edit_distance((hypothesis_indices,
  hypothesis_values, hypothesis_shape), (truth_indices, truth_values, truth_shape), normalize)
ExtractImagePatches | ksizes: positive, strides: positive, rates: positive, padding: same|valid =
  "VALID" | input_x | H.extract_patches(..., ksizes, strides, rates, padding)
ExtractVolumePatches | kernel_size: positive, strides: positive, padding: same|valid | input_x
  | H.extract_patches(input_x, kernel_size, strides, 1, padding)
FFTWithSize | signal_ndim: positive, inverse, real, norm="backward", onesided=True, signal_sizes=()
  | x | H.fft_with_size(x, signal_ndim, inverse, real, norm, onesided, signal_sizes)
FractionalAvgPool | pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False,
  seed=0, seed2=0 | x | H.fractional_pool(x, pooling_ratio, pseudo_random, overlapping,
  deterministic, seed + seed2, True)
FractionalMaxPool | pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False,
  seed=0, seed2=0 | x | H.fractional_pool(x, pooling_ratio, pseudo_random, overlapping,
  deterministic, seed + seed2, False)
FractionalMaxPoolWithFixedKsize | ksize: positive, output_shape: positive, data_format: NCHW =
  "NCHW" | input_x, random_samples | H.fractional_max_pool(..., ksize, output_shape)
FractionalMaxPool3DWithFixedKsize | ksize: positive, output_shape: positive, data_format: NCDHW =
  "NCDHW" | x, random_samples | H.fractional_max_pool(..., ksize, output_shape)
HistogramFixedWidth | nbins: positive, dtype=int32 | x, range | H.fixed_histogram(..., nbins, dtype)
ListDiff | out_idx=int32 | x, y | H.list_diff(x, y, out_idx)
LSTM | input_size: positive, hidden_size: positive, num_layers: positive, has_bias: bool,
  bidirectional: bool, dropout, proj_size=0 | x, h, c, w | H.lstm(x, h, c, w, input_size,
  hidden_size, num_layers, has_bias, bidirectional, dropout)
LogUniformCandidateSampler | num_true: positive = 1, num_sampled: positive = 5, unique=True,
  range_max: positive = 5, seed=0 | true_classes | H.candidates(true_classes, num_sampled, unique,
  range_max, seed, True, "LogUniformCandidateSampler")
MatrixSolveLs | fast=True | matrix, rhs, l2_regularizer | H.least_squares(...)
MaxPool3DWithArgmax | ksize: positive, strides: positive, pads: ints, dilation: positive = (1, 1,
  1), ceil_mode=False, data_format: NCDHW = "NCDHW", argmax_type=int64 | x |
  H.max_pool3d_argmax(..., ksize, strides, pads, dilation, ceil_mode, argmax_type)
MaxPoolWithArgmax | kernel_size: positive = 1, strides: positive = 1,
  pad_mode: same|valid = "valid", data_format: NCHW|NHWC = "NCHW" | x
  | H.max_pool_with_argmax(x, kernel_size, strides, pad_mode, data_format)
MultinomialWithReplacement | numsamples: positive, replacement=False | x, seed, offset
  | F.multinomial_with_replacement(x, seed, offset, numsamples, replacement)
NMSWithMask | iou_threshold=0.5 | bboxes | H.nms_with_mask(bboxes, iou_threshold)
NoRepeatNGram | ngram_size: positive = 1 | state_seq, log_probs | H.no_repeat_ngram(..., ngram_size)
NonMaxSuppressionV3 | | boxes, scores, max_output_size, iou_threshold, score_threshold
  | H.non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)
NonMaxSuppressionWithOverlaps | | overlaps, scores, max_output_size, overlap_threshold,
  score_threshold | H.non_max_suppression(..., True)
ParallelConcat | | values | F.concat(values, 0)
ParameterizedTruncatedNormal | seed=0, seed2=0 | shape, mean, stdevs, min, max
  | H.truncated_normal_between(shape, mean, stdevs, min, max, self.stream)
DeformableOffsets | strides, pads, ksize, dilations=(1, 1, 1, 1), data_format="NCHW",
  deformable_groups=1, modulated=True | x, offsets | H.deformable_offsets(x, offsets, strides, pads,
  ksize, dilations, deformable_groups, modulated)
ExtractGlimpse | centered=True, normalized=True, uniform_noise=True, noise="uniform"
  | x, size, offsets | H.extract_glimpse(x, size, offsets, centered, normalized, noise)
MatrixLogarithm | | x | H.matrix_logarithm(x)
NonDeterministicInts | dtype=int64 | shape
  | F.randint(-(2**31), 2**31 - 1, H.ints(shape), dtype=dtype)
PSROIPooling | spatial_scale: float, group_size: positive, output_dim: positive | features, rois
  | H.position_sensitive_pool(features, rois, spatial_scale, output_dim, group_size)
Poisson | seed=0, seed2=0 | shape, mean | H.poisson_of(shape, mean, self.stream)
ROIAlign | pooled_height: positive, pooled_width: positive, spatial_scale, sample_num: int = 2,
  roi_end_mode: ints = 1 | features, rois | H.roi_align(features, rois, (pooled_height,
  pooled_width), spatial_scale, sample_num, roi_end_mode)
RaggedRange | Tsplits | starts, limits, deltas | H.ragged_range(starts, limits, deltas, Tsplits)
RandomPoisson | seed=0, seed2=0, dtype=int64 | shape, rate | H.poisson(..., dtype, self.stream)
Randperm | max_length: positive = 1, pad=-1, dtype=int32 | n
  | H.padded_permutation(n, max_length, pad, dtype)
ResizeArea | align_corners=False | images, size | H.resize_area(images, size, align_corners)
STFT | n_fft: positive, hop_length: positive, win_length: positive, normalized, onesided,
  return_complex | x, window | F.stft(x, n_fft, hop_length, win_length, window, False, "reflect",
  normalized, onesided, return_complex)
SampleDistortedBoundingBoxV2 | seed=0, seed2=0, aspect_ratio_range=(0.75, 1.33), area_range=(0.05,
  1.0), max_attempts: positive = 100, use_image_if_no_bounding_boxes=False | image_size,
  bounding_boxes, min_object_covered | H.distorted_box(..., aspect_ratio_range, area_range,
  max_attempts, use_image_if_no_bounding_boxes, seed + seed2)
ScaleAndTranslate
  | kernel_type: lanczos1|lanczos3|lanczos5|gaussian|box|triangle|keyscubic|mitchellcubic =
  "lanczos3", antialias=True | images, size, scale, translation | H.scale_and_translate(images,
  H.ints(size), scale, translation, kernel_type, antialias)
ScatterAddWithAxis | axis=0 | x, indices, updates | F.tensor_scatter_elements(..., axis, "add")
SpaceToBatch | block_size: positive, paddings | input_x
  | F.space_to_batch_nd(input_x, (block_size, block_size), paddings)
SparseTensorDenseMatmul | adjoint_st=False, adjoint_dt=False | indices, values, sparse_shape, dense
  | H.sparse_dense_matmul(indices, values, H.ints(sparse_shape), dense, adjoint_st, adjoint_dt)
SparseToDense | | indices, values, sparse_shape
  | F.scatter_nd(indices, values, H.ints(sparse_shape))
UniformCandidateSampler | num_true: positive, num_sampled: positive, unique, range_max: positive,
  seed=0, remove_accidental_hits=False | true_classes | H.candidates(true_classes, num_sampled,
  unique, range_max, seed, False, "UniformCandidateSampler", remove_accidental_hits)
"""
