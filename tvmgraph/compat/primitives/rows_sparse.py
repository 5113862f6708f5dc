"""Operator classes of sparse matrices: ``from tvmgraph.ops.operations import sparse_ops``.

The columns are those of :mod:`.base`.
"""

SPARSE_ROWS = """
CSRSparseMatrixToDense
  | | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
  | H.dense_of((x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values))
DenseToCSRSparseMatrix | | dense_input, indices | H.rows_of(indices.asnumpy(),
  F.gather_nd(dense_input, indices), Tensor(dense_input.shape, indices.dtype), indices.dtype)
SparseAdd | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape, thresh
  | H.sparse_add((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape), thresh)
SparseAddmm | | indices, values, sparse_shape, x2_dense, x3_dense, alpha, beta
  | H.sparse_product(indices, values, sparse_shape, x2_dense) * alpha + x3_dense * beta
SparseCountSparseOutput | binary_output=False, minlength=-1, maxlength=-1
  | indices, values, dense_shape, weights | H.count_sparse(indices, values, dense_shape, weights,
  binary_output, minlength, maxlength)
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
SparseMatrixSoftmax | dtype: dtype
  | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
  | H.matrix_softmax((x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices,
  F.cast(x_values, dtype)))
SparseMatrixTranspose | conjugate=False
  | x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices, x_values
  | H.matrix_transpose((x_dense_shape, x_batch_pointers, x_row_pointers, x_col_indices,
  F.conj(x_values) if conjugate else x_values))
SparseReorder | | indices, values, shape | H.sparse_reorder(indices, values)
SparseReshape | | indices, shape, new_shape | H.sparse_reshape(indices, shape, new_shape)
SparseSegmentMeanWithNumSegments | | x, indices, segment_ids, num_segments
  | H.sparse_segment("mean", x, indices, segment_ids, num_segments)
SparseSegmentSqrtN | | x, indices, segment_ids
  | H.sparse_segment("sqrtn", x, indices, segment_ids)
SparseSegmentSqrtNWithNumSegments | | x, indices, segment_ids, num_segemnts
  | H.sparse_segment("sqrtn", x, indices, segment_ids, num_segemnts)
SparseSegmentSum | | x, indices, segment_ids | H.sparse_segment("sum", x, indices, segment_ids)
SparseSegmentSumWithNumSegments | | x, indices, segment_ids, num_segments
  | H.sparse_segment("sum", x, indices, segment_ids, num_segments)
SparseSparseMaximum | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape
  | H.sparse_extreme((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape),
  F.maximum)
SparseSparseMinimum | | x1_indices, x1_values, x1_shape, x2_indices, x2_values, x2_shape
  | H.sparse_extreme((x1_indices, x1_values, x1_shape), (x2_indices, x2_values, x2_shape),
  F.minimum)
SparseTensorDenseAdd | | x1_indices, x1_values, x1_shape, x2
  | F.tensor_scatter_add(x2, x1_indices, x1_values)
SparseTensorToCSRSparseMatrix | | x_indices, x_values, x_dense_shape
  | H.rows_of(x_indices.asnumpy(), x_values, x_dense_shape, x_indices.dtype)
"""
