"""The product with weights that are kept in a few bits, for layers that memory keeps waiting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError

__all__ = ["quantized_dense"]

#: Rows of the weight that lie side by side: the lanes of the longest vectors.
WIDTH = 16
#: Weights of 4 bits in a word of 32.
PER_WORD = 8


def quantize_rows(weight: np.ndarray, bits: int, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds a (N, K) matrix to integers with one factor for every ``group`` of a row.

    Args:
        weight: The matrix.
        bits: 8 or 4.
        group: Elements that share a factor; divides K, and is a multiple of 8 for 4 bits.

    Returns:
        Words and scales as :func:`quantized_dense` takes them.
    """
    columns, depth = weight.shape
    count = -(-columns // WIDTH)
    values = aligned_empty((count, depth, WIDTH), np.int8)
    scales = aligned_empty((count, depth // group, WIDTH), np.float16)
    most = (1 << (bits - 1)) - 1
    for panel in range(count):  # a whole matrix at once would take several times its memory
        part = np.zeros((WIDTH, depth // group, group), np.float32)
        rows = weight[panel * WIDTH : (panel + 1) * WIDTH].astype(np.float32)
        part[: len(rows)] = rows.reshape(len(rows), -1, group)
        factor = np.abs(part).max(-1, keepdims=True) / most
        factor = factor.astype(np.float16).astype(np.float32)
        whole = np.rint(part / np.where(factor == 0, 1, factor)).clip(-most - 1, most)
        values[panel] = whole.reshape(WIDTH, depth).T
        scales[panel] = factor[..., 0].T
    return (values if bits == 8 else _to_words(values)), scales


def _to_words(values: np.ndarray) -> np.ndarray:
    count, depth, width = values.shape
    words = aligned_empty((count, depth // PER_WORD, width), np.uint32)
    words[...] = 0
    for place in range(PER_WORD):
        words |= (values[:, place::PER_WORD] + 8).astype(np.uint32) << np.uint32(4 * place)
    return words.view(np.int32)


def dequantized(words: np.ndarray, scales: np.ndarray, columns: int) -> np.ndarray:
    """The (N, K) float32 matrix that words and scales stand for.

    Args:
        words: int8 or int32 panels of the weights.
        scales: Factors of shape (panels, groups, width).
        columns: Number N of rows of the result.
    """
    if words.dtype == np.int8:
        values = words.astype(np.float32)
    else:
        signed = [(words >> (4 * j) & 15) - 8 for j in range(PER_WORD)]
        values = np.stack(signed, 2).reshape(len(words), -1, WIDTH).astype(np.float32)
    values = values.reshape(len(words), scales.shape[1], -1, WIDTH)
    values *= scales.astype(np.float32)[:, :, None]
    return values.reshape(len(words), -1, WIDTH).swapaxes(1, 2).reshape(-1, _depth(words))[:columns]


def _depth(words: Any) -> np.ndarray:
    return words.shape[1] * (1 if words.dtype in (dtypes.int8, np.int8) else PER_WORD)


def _infer(input: TensorType, words: TensorType, scales: TensorType, *, columns: int) -> TensorType:
    rules.require_ndim(input, (2,))
    rules.require_ndim(words, (3,))
    rules.require_ndim(scales, (3,))
    rules.require_dtype(input, (dtypes.float32,))
    rules.require_dtype(words, (dtypes.int8, dtypes.int32))
    rules.require_dtype(scales, (dtypes.float16, dtypes.float32))
    depth, groups = _depth(words), scales.shape[1]
    if input.shape[1] != depth or (words.shape[0], words.shape[2]) != (-(-columns // WIDTH), WIDTH):
        raise ShapeError(f"these are no words of a matrix of {columns} x {input.shape[1]}")
    step = 1 if words.dtype is dtypes.int8 else PER_WORD
    if scales.shape[0] != words.shape[0] or scales.shape[2] != WIDTH or depth % (groups * step):
        raise ShapeError("the scales do not fit the words")
    return input.with_shape((input.shape[0], columns))


def _eager(input: np.ndarray, words: np.ndarray, scales: np.ndarray, *, columns: int) -> np.ndarray:
    return np.matmul(input, dequantized(words, scales, columns).T)


def _lower(R: Builder, input: Expr, words: Expr, scales: Expr, *, columns: int) -> Expr:
    """Plain loops, for what has no kernel of its own that reads the words."""

    def product(x: Expr, w: Expr, s: Expr) -> Expr:
        depth, i64 = x.shape[1], R.int64
        group = R.tir.floordiv(depth, s.shape[1])
        k = R.te.reduce_axis((0, depth), name="k")

        def element(row: Expr, column: Expr) -> Expr:
            panel, lane = R.tir.floordiv(column, i64(WIDTH)), R.tir.floormod(column, i64(WIDTH))
            if str(w.dtype) == "int8":
                value = w[panel, k, lane].astype("float32")
            else:
                word = w[panel, R.tir.floordiv(k, i64(PER_WORD)), lane]
                shift = (R.tir.floormod(k, i64(PER_WORD)) * 4).astype("int32")
                value = R.tir.bitwise_and(word >> shift, R.tir.const(15, "int32"))
                value = (value - R.tir.const(8, "int32")).astype("float32")
            scale = s[panel, R.tir.floordiv(k, group), lane].astype("float32")
            return R.te.sum(x[row, k] * (value * scale), axis=k)

        return R.te.compute((x.shape[0], i64(columns)), element, name="quantized_dense")

    return R.emit_te(product, input, words, scales, written_as=("quantized_dense", ""))


def _onnx(
    O: OnnxOps, input: OnnxNamed, words: OnnxNamed, scales: OnnxNamed, *, columns: int
) -> OnnxNamed:
    """Makes the matrix of them: runtimes read all of it, so that it is no faster than float32."""
    count, groups, depth = words.type.shape[0], scales.type.shape[1], input.type.shape[1]
    if words.type.dtype is dtypes.int32:
        sixteen, parts = np.asarray(16, np.int32), []
        for _ in range(PER_WORD):  # of whole numbers, which `Mod` and this quotient round down
            low = O.Mod(words, sixteen)
            words = O.Div(O.Sub(words, low), sixteen)
            parts.append(O.Unsqueeze(O.Sub(low, np.asarray(8, np.int32)), np.array([2])))
        words = O.Concat(*parts, axis=2)
    to = O.dtype(dtypes.float32)
    values = O.Reshape(O.Cast(words, to=to), np.array([count, groups, depth // groups, WIDTH]))
    values = O.Mul(values, O.Unsqueeze(O.Cast(scales, to=to), np.array([2])))
    panels = O.Reshape(values, np.array([count, depth, WIDTH]))
    matrix = O.Reshape(O.Transpose(panels, perm=[1, 0, 2]), np.array([depth, count * WIDTH]))
    kept = O.Slice(matrix, np.array([0]), np.array([columns]), np.array([1]))
    return O.MatMul(input, kept)


def _sample(shape: tuple[int, ...], bits: int, columns: int, group: int, **more: Any) -> Sample:
    weight = np.random.default_rng(columns).standard_normal((columns, shape[1]))
    return sample(shape, *quantize_rows(weight, bits, group), columns=columns, grad=False, **more)


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, "m ., . . ., . . . -> m ."),
    eager=_eager,
    lower=_lower,
    vjp=Reason("the weights are integers, which training does not change"),
    onnx=_onnx,
    samples=[
        _sample((1, 64), 4, 48, 32),
        _sample((1, 48), 8, 37, 48),
        _sample((2, 33), 8, 16, 33),
        _sample((3, 96), 4, 50, 16),
        _sample((11, 40), 4, 70, 40),
        _sample((9, 36), 8, 64, 12),
        _sample((2, 40), 4, 16, 8),
        _sample((2, 40), 4, 16, 5, raises=ShapeError),
    ],
)
def quantized_dense(input: Tensor, words: Tensor, scales: Tensor, *, columns: int) -> Tensor:
    r"""Product with a matrix of integers: :math:`y_{mn} = \sum_k x_{mk} s_{n, k / g} w_{nk}`.

    The sums are of float32; only the weights are rounded. ``nn.QuantizedDense`` makes the words.

    Args:
        input: float32 of shape (M, K).
        words: Weights in panels of 16 rows. 8 bits: int8 (P, K, 16). 4 bits: int32 (P, K / 8, 16),
            of which bits 4 j to 4 j + 3 are element j of 8 along K, plus 8.
        scales: float16 or float32 of shape (P, K / g, 16): one for every g elements of a row.
        columns: The number of rows N of the matrix, with P = N / 16 rounded up.

    Returns:
        float32 Tensor of shape (M, N).

    Raises:
        ShapeError: if the extents do not fit.
        DTypeError: if a type is another one.

    Example:
        >>> layer = nn.QuantizedDense.of(nn.Dense(64, 20), bits=4, group=32)
        >>> ops.quantized_dense(ops.ones((2, 64)), layer.words, layer.scales, columns=20).shape
        (2, 20)
    """
    ...
