"""Embedding tables and one-hot encoding."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, integer, positive, real, reject
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.cell import Cell


def _require_ids(op: str, ids: Tensor) -> None:
    if not isinstance(ids, Tensor) or not ids.dtype.is_integer:
        got = str(ids.aval) if isinstance(ids, Tensor) else type(ids).__name__
        reject(DTypeError, op, "the indices must be an integer tensor", f"ids={got}",
               "cast them: ids.astype(ms.int32)")  # fmt: skip


class Embedding(Cell):
    r"""Looks rows of a table up: :math:`y = table[ids]`.

    Args:
        vocab_size: Number of rows.
        embedding_size: Size of a row.
        use_one_hot: Whether the look-up is a product with one-hot vectors.
        embedding_table: Initial table: name, number, Initializer or Tensor.
        dtype: Type of the table.
        padding_idx: A row that starts as zeros.

    Inputs:
        - **ids** (Tensor) - Any shape, int32 or int64, in :math:`[-vocab, vocab)`.

    Outputs:
        Tensor of shape :math:`(*ids.shape, embedding\_size)`.

    Raises:
        DTypeError: if an argument or the dtype of the indices is wrong.
        ArgumentError: if a size is not positive or ``padding_idx`` out of range.

    Example:
        >>> nn.Embedding(10, 4)(Tensor([1, 2])).shape
        (2, 4)
    """

    _shown = "vocab_size embedding_size use_one_hot embedding_table dtype padding_idx"

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: object = "normal",
        dtype: DTypeLike = dtypes.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = positive("Embedding", "vocab_size", vocab_size)
        self.embedding_size = positive("Embedding", "embedding_size", embedding_size)
        self.use_one_hot = boolean("Embedding", "use_one_hot", use_one_hot)
        self.dtype = float_dtype("Embedding", dtype)
        self.padding_idx = padding_idx
        shape = (vocab_size, embedding_size)
        table = new_parameter("Embedding", "embedding_table", embedding_table, shape, self.dtype)
        if padding_idx is not None:
            self.padding_idx = integer("Embedding", "padding_idx", padding_idx, 0)
            if padding_idx >= vocab_size:
                rule = f"padding_idx={padding_idx} must be below vocab_size={vocab_size}"
                reject(ArgumentError, "Embedding", rule)
            rows = np.array(table.array)
            rows[padding_idx] = 0
            table.set_data(Tensor(rows))
        self.embedding_table = table

    def construct(self, ids: Tensor) -> Tensor:
        _require_ids("Embedding", ids)
        table = self.compute(self.embedding_table)
        if not self.use_one_hot:
            return F.gather(table, ids, 0)
        flat = F.reshape(ids, (ids.size,))
        return F.reshape(
            F.matmul(F.cast(F.one_hot(flat, self.vocab_size), table.dtype), table),
            (*ids.shape, self.embedding_size),
        )


class EmbeddingLookup(Cell):
    r"""Looks rows of a table up, optionally with a limit on their length.

    Args:
        vocab_size: Number of rows.
        embedding_size: Size of a row.
        param_init: Initial table: name, number, Initializer or Tensor.
        target: Kept for MindSpore programs; the table lives on the computing device.
        slice_mode: Kept for MindSpore programs; used by distributed training only.
        manual_shapes: Kept for MindSpore programs; used by distributed training only.
        max_norm: Longer rows are scaled to this L2 norm.
        sparse: Kept for MindSpore programs; gradients are dense.
        dtype: Type of the table.

    Inputs:
        - **indices** (Tensor) - Any shape, int32 or int64.

    Outputs:
        Tensor of shape :math:`(*indices.shape, embedding\_size)`.

    Raises:
        DTypeError: if an argument or the dtype of the indices is wrong.
        ArgumentError: if a size is not positive.

    Note:
        An index out of range is an error; MindSpore returns zeros for it.

    Example:
        >>> nn.EmbeddingLookup(10, 4)(Tensor([1, 2])).shape
        (2, 4)
    """

    BATCH_SLICE, FIELD_SLICE = "batch_slice", "field_slice"
    TABLE_ROW_SLICE, TABLE_COLUMN_SLICE = "table_row_slice", "table_column_slice"

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: object = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: object = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.vocab_size = positive("EmbeddingLookup", "vocab_size", vocab_size)
        self.embedding_size = positive("EmbeddingLookup", "embedding_size", embedding_size)
        self.target = choice("EmbeddingLookup", "target", target, ("CPU", "DEVICE"))
        self.max_norm = max_norm
        if max_norm is not None:
            self.max_norm = real("EmbeddingLookup", "max_norm", max_norm, 0, bounds="(]")
        kind = float_dtype("EmbeddingLookup", dtype)
        shape = (vocab_size, embedding_size)
        self.embedding_table = new_parameter(
            "EmbeddingLookup", "embedding_table", param_init, shape, kind
        )

    def construct(self, indices: Tensor) -> Tensor:
        _require_ids("EmbeddingLookup", indices)
        rows = F.gather(self.compute(self.embedding_table), indices, 0)
        if self.max_norm is None:
            return rows
        length = F.sqrt(F.sum(rows * rows, -1, True))
        return rows * (self.max_norm / F.maximum(length, self.max_norm))


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    r"""Looks rows up and combines those of one field, weighted by their values.

    Args:
        vocab_size: Number of rows.
        embedding_size: Size of a row.
        field_size: Number of fields.
        param_init: Initial table: name, number, Initializer or Tensor.
        target: Kept for MindSpore programs; the table lives on the computing device.
        slice_mode: Kept for MindSpore programs; used by distributed training only.
        feature_num_list: Kept for MindSpore programs; used by distributed training only.
        max_norm: Longer rows are scaled to this L2 norm.
        sparse: Kept for MindSpore programs; gradients are dense.
        operator: ``"SUM"``, ``"MEAN"`` (of the absolute values' sum) or ``"MAX"``.
        dtype: Type of the table.

    Inputs:
        - **input_indices** (Tensor) - Rows, shape :math:`(N, S)`, integers.
        - **input_values** (Tensor) - Their weights, float32; 0 for rows that do not count.
        - **field_ids** (Tensor) - The field of every row, int32.

    Outputs:
        Tensor of shape :math:`(N, field\_size, embedding\_size)`, 0 for fields without weight.

    Raises:
        DTypeError: if an argument or the dtype of the indices is wrong.
        ArgumentError: if a size is not positive or the operator unknown.
        ShapeError: if the inputs do not have one shape of two axes.

    Example:
        >>> ids = Tensor([[1, 2, 2]])
        >>> nn.MultiFieldEmbeddingLookup(5, 4, 2)(ids, ops.ones((1, 3)), Tensor([[0, 0, 1]])).shape
        (1, 2, 4)
    """

    def __init__(
        self, vocab_size: int, embedding_size: int, field_size: int, param_init: object = "normal",
        target: str = "CPU", slice_mode: str = "batch_slice", feature_num_list: object = None,
        max_norm: float | None = None, sparse: bool = True, operator: str = "SUM",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:  # fmt: skip
        super().__init__(vocab_size, embedding_size, param_init, target, slice_mode, None,
                         max_norm, sparse, dtype)  # fmt: skip
        op = "MultiFieldEmbeddingLookup"
        self.field_size = positive(op, "field_size", field_size)
        self.operator = choice(op, "operator", operator, ("SUM", "MAX", "MEAN"))

    def construct(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input_indices: Tensor, input_values: Tensor, field_ids: Tensor
    ) -> Tensor:
        inputs = (input_indices, input_values, field_ids)
        if input_indices.ndim != 2 or any(t.shape != input_indices.shape for t in inputs):
            reject(ShapeError, "MultiFieldEmbeddingLookup", "inputs must have one shape (N, S)",
                   ", ".join(str(t.aval) for t in inputs))  # fmt: skip
        rows = super().construct(input_indices) * F.expand_dims(input_values, -1)
        fields = F.expand_dims(field_ids, 1) == F.reshape(F.arange(self.field_size), (1, -1, 1))
        member = F.cast(fields, rows.dtype)  # [N, fields, S]
        weight = F.matmul(member, F.expand_dims(F.abs(input_values), -1))
        if self.operator == "MAX":
            counted = F.logical_and(fields, F.expand_dims(input_values != 0, 1))
            among = F.where(F.expand_dims(counted, -1), F.expand_dims(rows, 1), -np.inf)
            return F.where(weight != 0, F.amax(among, 2), 0.0)
        merged = F.matmul(member, rows)
        if self.operator == "SUM":
            return merged
        return F.where(weight != 0, merged / F.where(weight != 0, weight, 1.0), 0.0)


class OneHot(Cell):
    r"""Encodes indices: ``on_value`` at the index, ``off_value`` elsewhere.

    Args:
        axis: Where the new axis goes; -1 is the end.
        depth: Size of the new axis.
        on_value: Value at the index.
        off_value: Value elsewhere.
        dtype: Type of the result.

    Inputs:
        - **indices** (Tensor) - Any shape, an integer dtype; out of range means all off.

    Outputs:
        Tensor with one more axis.

    Raises:
        DTypeError: if an argument has the wrong class.

    Example:
        >>> nn.OneHot(depth=3)(Tensor([0, 2])).asnumpy().tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        axis: int = -1,
        depth: int = 1,
        on_value: float = 1.0,
        off_value: float = 0.0,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.axis = integer("OneHot", "axis", axis)
        self.depth = integer("OneHot", "depth", depth, 0)
        self.dtype = dtypes.dtype_of(dtype)
        self.on_value = Tensor(on_value, self.dtype)
        self.off_value = Tensor(off_value, self.dtype)

    def construct(self, indices: Tensor) -> Tensor:
        return F.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


__all__ = ["Embedding", "EmbeddingLookup", "MultiFieldEmbeddingLookup", "OneHot"]
