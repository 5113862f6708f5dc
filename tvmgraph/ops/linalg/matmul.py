"""The matrix product, the layers built directly on it, and products of bytes, summed in 32 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.precision import widest
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern, Traits, equation
from tvmgraph.core.types import Dim, Shape, TensorType
from tvmgraph.errors import DTypeError, ShapeError, either
from tvmgraph.ops.common.arguments import bad, describe, require
from tvmgraph.ops.common.rows import LOW_PRECISION, sum_to, widen
from tvmgraph.ops.internal.rows import NO_ONNX

__all__ = ["bias_add", "bmm", "dense", "linear", "matmul", "matmul_integer", "mm", "mv"]

#: What products of narrow types are summed in; integers wrap around alike when they are cast back.
_SUMS = dict.fromkeys(LOW_PRECISION, dtypes.float32) | dict.fromkeys(
    (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16), dtypes.int32
)


def _matrix_shapes(
    a: Shape, b: Shape, transpose_a: bool, transpose_b: bool
) -> tuple[Shape, Shape, tuple[int | Dim, int | Dim], tuple[int | Dim, int | Dim]]:
    """Returns both batch shapes, and (M, K) and (K, N) after the transposes."""
    rows_a = a[-2:] if len(a) > 1 else (1, *a)
    rows_b = b[-2:] if len(b) > 1 else (*b, 1)
    first = rows_a[::-1] if transpose_a and len(a) > 1 else rows_a
    second = rows_b[::-1] if transpose_b and len(b) > 1 else rows_b
    return a[:-2], b[:-2], (first[0], first[1]), (second[0], second[1])


def infer_matmul(
    input: TensorType, other: TensorType, *, transpose_a: bool, transpose_b: bool
) -> TensorType:
    """The type of a matrix product.

    Args:
        input: Type of the left operand.
        other: Type of the right operand.
        transpose_a: Whether the left operand's last two axes are swapped.
        transpose_b: Whether the right operand's are.

    Raises:
        ShapeError: if the inner extents differ or the batches do not broadcast.
    """
    rules.require_dtype(input, dtypes.INTEGERS + dtypes.FLOATS)
    rules.require_same_dtype(input, other)
    if input.ndim == 0 or other.ndim == 0:
        raise either(ShapeError, TypeError)("a 0-d tensor has no matrix product", fix="use ops.mul")
    batch_a, batch_b, (m, k), (k2, n) = _matrix_shapes(
        input.shape, other.shape, transpose_a, transpose_b
    )
    if k != k2:
        raise ShapeError(
            f"inner dimensions differ ({k} and {k2})",
            fix="transpose an operand, or check the channels of the layer before",
        )
    shape = rules.broadcast_shapes(batch_a, batch_b)
    rows = (m,) if input.ndim > 1 else ()
    cols = (n,) if other.ndim > 1 else ()
    return input.with_shape((*shape, *rows, *cols))


def _eager_matmul(
    a: np.ndarray, b: np.ndarray, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    dtype = a.dtype
    a, b = widen(a), widen(b)
    if transpose_a and a.ndim > 1:
        a = np.swapaxes(a, -1, -2)
    if transpose_b and b.ndim > 1:
        b = np.swapaxes(b, -1, -2)
    if b.ndim == 2 and a.ndim > 2:  # one BLAS call instead of one per batch
        y = np.matmul(a.reshape(-1, a.shape[-1]) if a.size else a, b)
        y = y.reshape(*a.shape[:-1], b.shape[-1])
    else:
        y = np.matmul(a, b)
    return np.asarray(y).astype(dtype, copy=False)


def _lower_matmul(R: Builder, a: Expr, b: Expr, *, transpose_a: bool, transpose_b: bool) -> Expr:
    """One contraction: transposed operands are read in place, never copied."""
    ta, tb = R.type(a), R.type(b)
    out = infer_matmul(ta, tb, transpose_a=transpose_a, transpose_b=transpose_b)
    transpose_a, transpose_b = transpose_a and ta.ndim > 1, transpose_b and tb.ndim > 1
    if 0 in (*ta.shape, *tb.shape):  # a sum of nothing
        return R.op.full(R.shape(out.shape), R.const(0, out.dtype.name), out.dtype.name)
    wide = _SUMS.get(out.dtype, out.dtype).name
    if not (transpose_a or transpose_b):
        y = R.op.matmul(a, b, out_dtype=wide)
    else:
        y = R.emit_te(contraction(R, transpose_a, transpose_b, wide), a, b)
    return y if wide == out.dtype.name else R.op.astype(R.emit(y), out.dtype.name)


def contraction(R: Builder, transpose_a: bool, transpose_b: bool, wide: str) -> Callable[..., Expr]:
    """A tensor expression of a matrix product with transposes folded into the index.

    Args:
        R: The builder.
        transpose_a: Whether the left operand's last two axes are swapped.
        transpose_b: Whether the right operand's are.
        wide: Name of the dtype of factors and sums.
    """

    def matmul(a: Expr, b: Expr) -> Any:
        batch_a, batch_b, (m, k), (_, n) = _matrix_shapes(
            tuple(a.shape), tuple(b.shape), transpose_a, transpose_b
        )
        ndim = max(len(batch_a), len(batch_b))
        batch = [_wider(batch_a, batch_b, i) for i in range(-ndim, 0)]
        rows, cols = ([m] if len(a.shape) > 1 else []), ([n] if len(b.shape) > 1 else [])
        reduced = R.te.reduce_axis((0, k), name="k")

        def element(*index: Expr) -> Expr:
            lead, rest = index[:ndim], list(index[ndim:])
            row = [rest.pop(0)] if rows else []
            at_a = [*row, reduced] if not transpose_a else [reduced, *row]
            at_b = [reduced, *rest] if not transpose_b else [*rest, reduced]
            left = a(*_select(lead, batch_a), *at_a).astype(wide)
            right = b(*_select(lead, batch_b), *at_b).astype(wide)
            return R.te.sum(left * right, axis=reduced)

        return R.te.compute([*batch, *rows, *cols], element, name="matmul")

    return matmul


def _wider(a: Any, b: Any, axis: int) -> Expr:
    sizes = [s[axis] for s in (a, b) if len(s) >= -axis]
    return next((d for d in sizes if not _is_one(d)), sizes[0])


def _is_one(d: Any) -> bool:
    return hasattr(d, "value") and int(d) == 1


def _select(lead: Sequence[Expr], batch: Shape) -> list[Expr | int]:
    """Indexes a batch shape that broadcasts: 0 along axes of size 1."""
    tail = lead[len(lead) - len(batch) :]
    return [0 if _is_one(d) else i for i, d in zip(tail, batch)]


def _vjp_matmul(
    g: Tensor, y: Tensor, a: Tensor, b: Tensor, *, transpose_a: bool, transpose_b: bool
) -> tuple[Tensor, Tensor]:
    if a.ndim == 1 or b.ndim == 1:
        return _vjp_vector(g, a, b, transpose_a, transpose_b)
    if b.ndim == 2 and a.ndim > 2 and not transpose_a:
        return _vjp_weight(g, a, b, transpose_b)
    if not transpose_a:
        da = F.matmul(g, b, transpose_b=not transpose_b)
    else:
        da = F.matmul(b, g, transpose_a=transpose_b, transpose_b=True)
    if not transpose_b:
        db = F.matmul(a, g, transpose_a=not transpose_a)
    else:
        db = F.matmul(g, a, transpose_a=True, transpose_b=transpose_a)
    return sum_to(da, a), sum_to(db, b)


def _vjp_weight(g: Tensor, a: Tensor, b: Tensor, transpose_b: bool) -> tuple[Tensor, Tensor]:
    """A matrix shared by the batch: its cotangent is one product, not one per batch and a sum."""
    da = F.matmul(g, b, transpose_b=not transpose_b)
    flat_a, flat_g = _flat_rows(a), _flat_rows(g)
    if transpose_b:
        return da, F.matmul(flat_g, flat_a, transpose_a=True)
    return da, F.matmul(flat_a, flat_g, transpose_a=True)


def _flat_rows(x: Tensor) -> Tensor:
    *lead, last = x.aval.shape
    rows: int = -1 if any(isinstance(d, Dim) for d in lead) else math.prod(lead)  # pyright: ignore
    return F.reshape(x, (rows, last))


def _vjp_vector(
    g: Tensor, a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool
) -> tuple[Tensor, Tensor]:
    """Reduces a product with a vector to one with matrices."""
    a2 = F.expand_dims(a, 0) if a.ndim == 1 else a
    b2 = F.expand_dims(b, 1) if b.ndim == 1 else b
    g2 = F.expand_dims(g, -1) if b.ndim == 1 else g
    g2 = F.expand_dims(g2, -2) if a.ndim == 1 else g2
    da, db = _vjp_matmul(
        g2, g2, a2, b2, transpose_a=transpose_a and a.ndim > 1,
        transpose_b=transpose_b and b.ndim > 1,
    )  # fmt: skip
    return F.reshape(da, a.aval.shape), F.reshape(db, b.aval.shape)


def _onnx_matmul(
    O: OnnxOps, a: OnnxNamed, b: OnnxNamed, *, transpose_a: bool, transpose_b: bool
) -> OnnxNamed:
    dtype = a.type.dtype
    first = _onnx_transposed(O, a) if transpose_a and a.type.ndim > 1 else a
    second = _onnx_transposed(O, b) if transpose_b and b.type.ndim > 1 else b
    # ONNX multiplies no 8- and 16-bit integers
    through = {1: dtypes.int32, 2: dtypes.int32}.get(dtype.itemsize) if dtype.is_integer else None
    if through is None:
        return O.MatMul(first, second)
    first, second = (O.Cast(v, to=O.dtype(through)) for v in (first, second))
    return O.Cast(O.MatMul(first, second), to=O.dtype(dtype))


def _onnx_transposed(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    *lead, r, c = range(x.type.ndim)
    return O.Transpose(x, perm=[*lead, c, r])


def matmul_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The rows of one operand, the columns of the other, and the sums of products.

    Args:
        types: Types of the operands.
        attrs: ``transpose_a`` and ``transpose_b``.
    """
    a, b = types
    left = ["k", "m"] if attrs["transpose_a"] else ["m", "k"]
    right = ["n", "k"] if attrs["transpose_b"] else ["k", "n"]
    result = [*(["m"] if a.ndim > 1 else []), *(["n"] if b.ndim > 1 else [])]
    inputs = [["...", *w] if t.ndim > 1 else ["k"] for t, w in ((a, left), (b, right))]
    return equation(inputs, [["...", *result]])


@primitive(
    infer=infer_matmul,
    traits=Traits(Pattern.CONTRACTION, matmul_factors, batch=Batch.MATRICES),
    eager=_eager_matmul,
    lower=_lower_matmul,
    vjp=_vjp_matmul,
    onnx=_onnx_matmul,
    samples=[
        sample((3, 4), (4, 5)),
        sample((3, 4), (5, 4), transpose_b=True),
        sample((4, 3), (4, 5), transpose_a=True),
        sample((4, 3), (5, 4), transpose_a=True, transpose_b=True),
        sample((4,), (4,)),
        sample((4,), (4, 5)),
        sample((3, 4), (4,)),
        sample((2, 3, 4), (4,), transpose_b=True),
        sample((4,), (2, 5, 4), transpose_b=True),
        sample((2, 3, 4), (4, 5)),
        sample((2, 3, 4), (5, 4), transpose_b=True),
        sample((2, 1, 3, 4), (5, 4, 2)),
        sample((2, 1, 3, 4), (5, 2, 4), transpose_b=True),
        sample((17, 1), (1, 3)),
        sample((0, 4), (4, 5), grad=False),
        sample((3, 0), (0, 5), grad=False),
        sample((2, 0, 3), (3, 4), grad=False),
        sample((5, 3000), (3000, 4), dtype="float16", low=0, high=0.2, grad=False),
        sample((5, 300), (4, 300), dtype="bfloat16", low=0, high=1, transpose_b=True, grad=False),
        sample((3, 4), (4, 5), dtype="float64"),
        sample((3, 4), (4, 5), dtype="int32", low=-9, high=9),
        sample((3, 4), (5, 4), dtype="int8", low=-9, high=9, transpose_b=True),
        sample((2, 3), (2, 3), raises=ShapeError),
        sample((), (3,), raises=ShapeError),
        sample((2, 3), (3, 2), dtype=("float32", "float64"), raises=DTypeError),
    ],
)
def matmul(
    input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    r"""Matrix product: :math:`out_{...ij} = \sum_k input_{...ik} \cdot other_{...kj}`.

    Leading axes broadcast; a tensor with one axis counts as a row on the left and as a column on
    the right, and that axis is dropped from the result. float16 and bfloat16 accumulate in float32.

    Args:
        input: Tensor of shape :math:`(..., M, K)` or :math:`(K,)`.
        other: Tensor of ``input``'s dtype and shape :math:`(..., K, N)` or :math:`(K,)`.
        transpose_a: Whether the last two axes of ``input`` are exchanged first (without a copy).
        transpose_b: Whether the last two axes of ``other`` are exchanged first (without a copy).

    Returns:
        Tensor of shape :math:`(..., M, N)`.

    Raises:
        ShapeError: if the inner dimensions differ or the leading axes do not broadcast.
        DTypeError: if the dtypes differ.

    Example:
        >>> ops.matmul(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 1.10000000e+01]])
    """
    ...


def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """Batched matrix product.

    Args:
        input_x: Tensor of shape :math:`(..., M, K)` with at least 3 axes.
        mat2: Tensor of shape :math:`(..., K, N)`.

    Returns:
        Tensor of shape :math:`(..., M, N)`.

    Raises:
        ShapeError: if ``input_x`` has fewer than 3 axes or ``mat2`` fewer than 2.

    Example:
        >>> ops.bmm(ops.ones((2, 3, 4)), ops.ones((2, 4, 5))).shape
        (2, 3, 5)
    """
    require(input_x.ndim >= 3 and mat2.ndim >= 2,
            "input_x must have at least 3 axes and mat2 at least 2", "bmm", input_x=input_x,
            mat2=mat2)  # fmt: skip
    return matmul(input_x, mat2)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices, without broadcasting.

    Args:
        input: Tensor of shape :math:`(M, K)`.
        mat2: Tensor of shape :math:`(K, N)`.

    Returns:
        Tensor of shape :math:`(M, N)`.

    Raises:
        ShapeError: if an operand is no matrix or the inner dimensions differ.

    Example:
        >>> ops.mm(ops.ones((2, 3)), ops.ones((3, 4))).shape
        (2, 4)
    """
    require(input.ndim == 2 == mat2.ndim, "both operands must have 2 axes", "mm", input=input,
            mat2=mat2)  # fmt: skip
    return matmul(input, mat2)


def mv(mat: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector.

    Args:
        mat: Tensor of shape :math:`(N, M)`.
        vec: Tensor of shape :math:`(M,)`.

    Returns:
        Tensor of shape :math:`(N,)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.mv(ops.ones((2, 3)), ops.ones((3,)))
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  3.00000000e+00])
    """
    require(mat.ndim == 2 and vec.ndim == 1, "mat must have 2 axes and vec 1", "mv", mat=mat,
            vec=vec)  # fmt: skip
    return matmul(mat, vec)


def dense(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Fully connected layer: :math:`out = input \cdot weight^T + bias`.

    Args:
        input: Tensor of shape :math:`(..., in)`.
        weight: Tensor of shape :math:`(out, in)` or :math:`(in,)`.
        bias: Tensor of shape :math:`(out,)` or :math:`()`.

    Returns:
        Tensor of shape :math:`(..., out)`.

    Raises:
        ShapeError: if the last axes of ``input`` and ``weight`` differ.

    Example:
        >>> ops.dense(ops.ones((2, 3)), ops.ones((4, 3)), ops.zeros(4)).shape
        (2, 4)
    """
    if bias is None:
        return matmul(input, weight, False, weight.ndim > 1)
    return _affine(input, weight, bias)


@fusible
def _affine(input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.add(matmul(input, weight, False, weight.ndim > 1), bias)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Fully connected layer; another name of :func:`dense`.

    Args:
        input: Tensor of shape :math:`(..., in)`.
        weight: Tensor of shape :math:`(out, in)`.
        bias: Tensor of shape :math:`(out,)`.

    Returns:
        Tensor of shape :math:`(..., out)`.

    Example:
        >>> ops.linear(ops.ones((2, 3)), ops.ones((4, 3))).shape
        (2, 4)
    """
    return dense(input, weight, bias)


@widest
def bias_add(input_x: Tensor, bias: Tensor) -> Tensor:
    """Adds a vector along axis 1, the channels.

    Args:
        input_x: Tensor of shape :math:`(N, C, ...)` with 2 to 5 axes.
        bias: Tensor of shape :math:`(C,)` and the same dtype.

    Returns:
        Tensor of ``input_x``'s type.

    Raises:
        ShapeError: if ``bias`` does not have :math:`C` elements.
        DTypeError: if the dtypes differ.

    Example:
        >>> ops.bias_add(ops.ones((2, 3)), ops.ones(3)).shape
        (2, 3)
    """
    shapes = describe(input_x=input_x, bias=bias)
    if not 2 <= input_x.ndim <= 5 or bias.ndim != 1 or bias.shape[0] != input_x.shape[1]:
        raise bad(ShapeError, "bias must have one element per channel (axis 1) of input_x",
                  "bias_add", shapes)  # fmt: skip
    if bias.dtype is not input_x.dtype:
        raise bad(DTypeError, "dtypes differ", "bias_add", shapes)
    shape = (bias.aval.shape[0], *(1,) * (input_x.ndim - 2))
    return F.add(input_x, F.reshape(bias, shape))


# ---- products of integers -----------------------------------------------------------------------


def _infer(
    input: TensorType, other: TensorType, *, transpose_a: bool, transpose_b: bool
) -> TensorType:
    rules.require_dtype(input, (dtypes.int8,))
    result = infer_matmul(input, other, transpose_a=transpose_a, transpose_b=transpose_b)
    return result.with_dtype(dtypes.int32)


def _eager(
    input: np.ndarray, other: np.ndarray, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    a, b = input.astype(np.int32), other.astype(np.int32)
    a = np.swapaxes(a, -1, -2) if transpose_a and a.ndim > 1 else a
    b = np.swapaxes(b, -1, -2) if transpose_b and b.ndim > 1 else b
    return np.asarray(np.matmul(a, b))


def _lower(R: Builder, input: Expr, other: Expr, *, transpose_a: bool, transpose_b: bool) -> Expr:
    a, b = R.type(input), R.type(other)
    flags = transpose_a and a.ndim > 1, transpose_b and b.ndim > 1
    if 0 in (*a.shape, *b.shape):  # a sum of nothing
        out = _infer(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return R.op.full(R.shape(out.shape), R.const(0, "int32"), "int32")
    return R.emit_te(contraction(R, *flags, "int32"), input, other)


@primitive(
    infer=_infer,
    traits=Traits(Pattern.CONTRACTION, matmul_factors),
    eager=_eager,
    lower=_lower,
    vjp=Reason("integers have no derivative"),
    onnx=NO_ONNX,
    samples=[
        sample((9, 8), (8, 17), dtype="int8", low=-128, high=128,
               transpose_a=False, transpose_b=False, grad=False),
        sample((2, 9, 6), (20, 6), dtype="int8", low=-128, high=128,
               transpose_a=False, transpose_b=True, grad=False),
        sample((5, 3), (5, 4), dtype="int8", transpose_a=True, transpose_b=False, grad=False),
    ],
)  # fmt: skip
def matmul_integer(
    input: Tensor, other: Tensor, *, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    r"""Matrix product of int8 tensors with sums in int32, :math:`y_{ij} = \sum_k x_{ik} w_{kj}`.

    Compiled graphs use it for products of operands that were cast from int8 to int32; processors
    have instructions for it.

    Args:
        input: int8, (..., M, K).
        other: int8, (..., K, N).
        transpose_a: Whether the last two axes of ``input`` are swapped first.
        transpose_b: Whether those of ``other`` are.

    Returns:
        int32 Tensor of shape (..., M, N).

    Raises:
        DTypeError: if an operand is not int8.
        ShapeError: if the inner extents differ.

    Example:
        >>> x = ops.ones((2, 3), ms.int8)
        >>> ops.matmul_integer(x, x, transpose_b=True).asnumpy()
        array([[3, 3],
               [3, 3]], dtype=int32)
    """
    ...
