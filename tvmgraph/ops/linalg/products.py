"""Products built on the matrix product: addmm and its relatives, outer, dot, tensor_dot, einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    ShapeError,
    TvmgraphError,
    TypeOrValueError,
    either,
)
from tvmgraph.ops.common.arguments import as_tensor, bad, describe, int_tuple, require

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "batch_dot", "dot", "einsum", "ger", "inner",
    "outer", "tensor_dot", "tensordot", "vecdot",
]  # fmt: skip


# ---- scaled sums --------------------------------------------------------------------------------


def _scaled(op: str, input: Tensor, product: Tensor, beta: NumberLike, alpha: NumberLike) -> Tensor:
    for name, value in (("beta", beta), ("alpha", alpha)):
        if not isinstance(value, (int, float)):
            raise bad(DTypeError, f"{name} must be a number, not {type(value).__name__}", op,
                      f"{name}={value!r}")  # fmt: skip
    result = product if alpha == 1 else product * alpha
    shape = result.aval.shape
    try:
        fits = rules.broadcast_shapes(input.aval.shape, shape) == shape
    except TvmgraphError:
        fits = False
    require(fits, "input does not broadcast to the product", op, input=input, product=product)
    if beta == 0:
        return result
    return (input if beta == 1 else input * beta) + result


def addmm(
    input: NumberLike, mat1: Tensor, mat2: Tensor, *, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    r"""Scaled sum of a tensor and a matrix product: :math:`\beta input + \alpha mat1 \cdot mat2`.

    Args:
        input: Tensor that broadcasts to :math:`(M, N)`; ignored if ``beta`` is 0.
        mat1: Tensor of shape :math:`(M, K)`.
        mat2: Tensor of shape :math:`(K, N)`.
        beta: Factor of ``input``.
        alpha: Factor of the product.

    Returns:
        Tensor of shape :math:`(M, N)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.addmm(ops.ones((2, 2)), ops.ones((2, 3)), ops.ones((3, 2)))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 4.00000000e+00,  4.00000000e+00],
         [ 4.00000000e+00,  4.00000000e+00]])
    """
    require(mat1.ndim == 2 == mat2.ndim, "mat1 and mat2 must have 2 axes", "addmm", mat1=mat1,
            mat2=mat2)  # fmt: skip
    return _scaled("addmm", as_tensor(input), F.matmul(mat1, mat2), beta, alpha)


def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    r"""Scaled sum with a matrix-vector product: :math:`\beta input + \alpha mat \cdot vec`.

    Args:
        input: Tensor that broadcasts to :math:`(N,)`; ignored if ``beta`` is 0.
        mat: Tensor of shape :math:`(N, M)`.
        vec: Tensor of shape :math:`(M,)`.
        beta: Factor of ``input``.
        alpha: Factor of the product.

    Returns:
        Tensor of shape :math:`(N,)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.addmv(ops.ones(2), ops.ones((2, 3)), ops.ones(3))
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  4.00000000e+00])
    """
    return _scaled("addmv", input, F.mv(mat, vec), beta, alpha)


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    r"""Scaled sum of a tensor and a batched product: :math:`\beta input + \alpha b1_i \cdot b2_i`.

    Args:
        input: Tensor that broadcasts to :math:`(C, M, N)`; ignored if ``beta`` is 0.
        batch1: Tensor of shape :math:`(C, M, K)`.
        batch2: Tensor of shape :math:`(C, K, N)`.
        beta: Factor of ``input``.
        alpha: Factor of the product.

    Returns:
        Tensor of shape :math:`(C, M, N)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.baddbmm(ops.ones((1, 2, 2)), ops.ones((1, 2, 3)), ops.ones((1, 3, 2)))
        Tensor(shape=[1, 2, 2], dtype=Float32, value=
        [[[ 4.00000000e+00,  4.00000000e+00],
          [ 4.00000000e+00,  4.00000000e+00]]])
    """
    _require_batches("baddbmm", batch1, batch2)
    return _scaled("baddbmm", input, F.matmul(batch1, batch2), beta, alpha)


def _require_batches(op: str, batch1: Tensor, batch2: Tensor) -> None:
    # single matrices are MindSpore's own example
    shapes = [t.aval.shape for t in (batch1, batch2)]
    fits = batch1.ndim == batch2.ndim in (2, 3) and shapes[0][:-2] == shapes[1][:-2]
    require(fits, "batch1 and batch2 must have 3 axes and as many matrices", op, batch1=batch1,
            batch2=batch2)  # fmt: skip


def addbmm(
    input: NumberLike,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: NumberLike = 1,
    alpha: NumberLike = 1,
) -> Tensor:
    r"""Scaled sum with summed products: :math:`\beta input + \alpha \sum_i b1_i \cdot b2_i`.

    Args:
        input: Tensor that broadcasts to :math:`(M, N)`; ignored if ``beta`` is 0.
        batch1: Tensor of shape :math:`(C, M, K)`.
        batch2: Tensor of shape :math:`(C, K, N)`.
        beta: Factor of ``input``.
        alpha: Factor of the sum.

    Returns:
        Tensor of shape :math:`(M, N)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.addbmm(ops.ones((2, 2)), ops.ones((4, 2, 3)), ops.ones((4, 3, 2)))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.30000000e+01,  1.30000000e+01],
         [ 1.30000000e+01,  1.30000000e+01]])
    """
    input = as_tensor(input)
    _require_batches("addbmm", batch1, batch2)
    if batch1.ndim == 2:
        product = F.broadcast_to(F.sum(F.matmul(batch1, batch2), 0), input.shape)
        return _scaled("addbmm", input, product, beta, alpha)
    c, m, k = batch1.shape
    _, k2, n = batch2.shape
    require(k == k2, f"inner dimensions differ ({k} and {k2})", "addbmm", batch1=batch1,
            batch2=batch2)  # fmt: skip
    # the sum over the batch is part of one contraction
    flat = F.reshape(F.transpose(batch1, (1, 0, 2)), (m, c * k))
    return _scaled("addbmm", input, F.matmul(flat, F.reshape(batch2, (c * k, n))), beta, alpha)


def addr(
    x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: NumberLike = 1, alpha: NumberLike = 1
) -> Tensor:
    r"""Scaled sum of a tensor and an outer product: :math:`\beta x + \alpha vec1 \otimes vec2`.

    Args:
        x: Tensor that broadcasts to :math:`(N, M)`; ignored if ``beta`` is 0.
        vec1: Tensor of shape :math:`(N,)`.
        vec2: Tensor of shape :math:`(M,)`.
        beta: Factor of ``x``.
        alpha: Factor of the product.

    Returns:
        Tensor of shape :math:`(N, M)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.addr(ops.ones((2, 3)), ops.ones(2), ops.ones(3))
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 2.00000000e+00,  2.00000000e+00,  2.00000000e+00],
         [ 2.00000000e+00,  2.00000000e+00,  2.00000000e+00]])
    """
    return _plus_outer(x, vec1, vec2, beta, alpha)


@fusible
def _plus_outer(
    x: Tensor, vec1: Tensor, vec2: Tensor, beta: NumberLike, alpha: NumberLike
) -> Tensor:
    return _scaled("addr", x, outer(vec1, vec2), beta, alpha)


# ---- dot products -------------------------------------------------------------------------------


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    r"""Outer product of two vectors: :math:`out_{ij} = input_i \cdot vec2_j`.

    Args:
        input: Tensor of shape :math:`(N,)`.
        vec2: Tensor of shape :math:`(M,)`.

    Returns:
        Tensor of shape :math:`(N, M)`.

    Raises:
        ShapeError: if an operand is no vector.

    Example:
        >>> ops.outer(Tensor([1, 2]), Tensor([3, 4]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[3, 4],
         [6, 8]])
    """
    require(input.ndim == 1 == vec2.ndim, "both operands must have 1 axis", "outer", input=input,
            vec2=vec2)  # fmt: skip
    return F.expand_dims(input, 1) * F.expand_dims(vec2, 0)


ger = outer


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Contracts the last axis of one tensor with the last but one of another.

    Args:
        input: Tensor of shape :math:`(..., K)` with at least two axes.
        other: Tensor of shape :math:`(..., K, N)`.

    Returns:
        Tensor of shape :math:`(input\\_shape[:-1], other\\_shape[:-2], N)`.

    Raises:
        ShapeError: if the contracted axes differ or an operand has fewer than two axes.

    Example:
        >>> ops.dot(ops.ones((2, 3)), ops.ones((4, 3, 5))).shape
        (2, 4, 5)
    """
    require(input.ndim > 1 and other.ndim > 1, "both operands must have at least 2 axes", "dot",
            input=input, other=other)  # fmt: skip
    return _contract("dot", input, other, (input.ndim - 1,), (other.ndim - 2,))


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Contracts the last axes of two tensors; a 0-d operand multiplies.

    Args:
        input: Tensor of shape :math:`(..., K)`.
        other: Tensor of shape :math:`(..., K)`.

    Returns:
        Tensor of shape :math:`(input\\_shape[:-1], other\\_shape[:-1])`.

    Raises:
        ShapeError: if the last axes differ.

    Example:
        >>> ops.inner(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 11)
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    return _contract("inner", input, other, (input.ndim - 1,), (other.ndim - 1,))


def vecdot(x: Tensor, y: Tensor, *, axis: int = -1) -> Tensor:
    r"""Dot products along an axis of two tensors that broadcast: :math:`\sum_i \bar{x}_i y_i`.

    Args:
        x: Tensor with at least one axis.
        y: Tensor that broadcasts with ``x``.
        axis: The axis to sum over.

    Returns:
        Tensor of the broadcast shape without ``axis``; int64 where it holds integers.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.vecdot(Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.10000000e+01])
    """
    product = F.conj(x) * y
    if not -product.ndim <= axis < product.ndim:
        raise bad(OutOfRangeError, f"axis {axis} is outside [{-product.ndim}, {product.ndim})",
                  "vecdot", describe(x=x, y=y))  # fmt: skip
    product = F.cast(product, dtypes.int64) if product.dtype.is_integer else product
    return F.reduce_sum(product, axis=(axis % product.ndim,), keep_dims=False)


def _contract(
    op: str, a: Tensor, b: Tensor, axes_a: tuple[int, ...], axes_b: tuple[int, ...]
) -> Tensor:
    """Sums over pairs of axes with one matrix product, transposing only where the order asks."""
    sizes_a = [a.shape[i] for i in axes_a]
    sizes_b = [b.shape[i] for i in axes_b]
    require(sizes_a == sizes_b, f"contracted sizes differ ({sizes_a} and {sizes_b})", op, a=a, b=b)
    free_a = [i for i in range(a.ndim) if i not in axes_a]
    free_b = [i for i in range(b.ndim) if i not in axes_b]
    k = math.prod(sizes_a)
    left = _ordered(a, [*free_a, *axes_a])
    if not free_a and not free_b:
        return F.matmul(_flattened(left), _flattened(_ordered(b, list(axes_b))))
    rows, cols = [a.shape[i] for i in free_a], [b.shape[i] for i in free_b]
    left = F.reshape(left, (math.prod(rows), k))
    if list(axes_b) == list(range(b.ndim - len(axes_b), b.ndim)):
        right = F.reshape(b, (math.prod(cols), k))  # already row by row: read transposed in place
        y = F.matmul(left, right, False, True)
    else:
        right = F.reshape(_ordered(b, [*axes_b, *free_b]), (k, math.prod(cols)))
        y = F.matmul(left, right)
    return F.reshape(y, (*rows, *cols))


def _flattened(x: Tensor) -> Tensor:
    return x if x.ndim == 1 else F.reshape(x, (-1,))


def _ordered(x: Tensor, order: list[int]) -> Tensor:
    return x if order == sorted(order) else F.transpose(x, tuple(order))


def tensor_dot(x1: Tensor, x2: Tensor, axes: object) -> Tensor:
    """Sums the product of two tensors over pairs of axes.

    Args:
        x1: First tensor.
        x2: Second tensor.
        axes: An int :math:`k`: the last :math:`k` axes of ``x1`` with the first of ``x2``; or two
            sequences of axes that are contracted pairwise.

    Returns:
        Tensor with the free axes of ``x1`` and then those of ``x2``.

    Raises:
        ShapeError: if the sizes of contracted axes differ.
        ArgumentError: if ``axes`` cannot be read.

    Example:
        >>> ops.tensor_dot(ops.ones((2, 3, 4)), ops.ones((4, 3)), ((2, 1), (0, 1))).shape
        (2,)
    """
    got = describe(x1=x1, x2=x2, axes=axes)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise bad(ArgumentError, "axes exceeds the number of axes", "tensor_dot", got)
        first, second = range(x1.ndim - axes, x1.ndim), range(axes)
        return _contract("tensor_dot", x1, x2, tuple(first), tuple(second))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise bad(ArgumentError, "axes must be an int or a pair", "tensor_dot", got)
    pair = [int_tuple(a, "tensor_dot", "axes") for a in axes]
    for side, x in zip(pair, (x1, x2)):
        if any(not -x.ndim <= a < x.ndim for a in side):
            raise bad(either(OutOfRangeError, ValueError), "axes names an axis that does not exist",
                      "tensor_dot", got)  # fmt: skip
    first, second = (tuple(a % x.ndim for a in side) for side, x in zip(pair, (x1, x2)))
    if len(first) != len(second) or len(set(first)) < len(first) or len(set(second)) < len(second):
        raise bad(ArgumentError, "axes must pair different axes", "tensor_dot", got)
    return _contract("tensor_dot", x1, x2, first, second)


def tensordot(x1: Tensor, x2: Tensor, axes: object = 2) -> Tensor:
    """Sums the product of two tensors over pairs of axes; NumPy's name of :func:`tensor_dot`.

    Args:
        x1: First tensor.
        x2: Second tensor.
        axes: See :func:`tensor_dot`.

    Returns:
        Tensor with the free axes of both.

    Example:
        >>> ops.tensordot(ops.ones((2, 3)), ops.ones((3, 4)), 1).shape
        (2, 4)
    """
    return tensor_dot(x1, x2, axes)


def batch_dot(x1: Tensor, x2: Tensor, axes: AxisLike | None = None) -> Tensor:
    """Contracts one axis of two tensors for every entry of a common batch axis.

    Args:
        x1: Tensor of shape :math:`(B, ...)`.
        x2: Tensor of shape :math:`(B, ...)`.
        axes: The axis of each operand to contract, one int for both, or ``None`` for the last
            axis of ``x1`` and the last but one of ``x2`` (its last if it has two axes).

    Returns:
        Tensor with the batch, the free axes of ``x1`` and those of ``x2``; with one more axis of
        size 1 where both operands have two axes.

    Raises:
        ShapeError: if the batch or the contracted sizes differ.

    Example:
        >>> ops.batch_dot(ops.ones((2, 3, 4)), ops.ones((2, 4, 5))).shape
        (2, 3, 5)
    """
    require(x1.ndim > 1 and x2.ndim > 1, "both operands need at least 2 axes", "batch_dot", x1=x1,
            x2=x2)  # fmt: skip
    pair = (x1.ndim - 1, max(x2.ndim - 2, 1)) if axes is None else axes
    first, second = int_tuple(pair, "batch_dot", "axes") * (2 if isinstance(pair, int) else 1)
    first, second = first % x1.ndim, second % x2.ndim
    require(0 not in (first, second), "axis 0 is the batch", "batch_dot", x1=x1, x2=x2)
    require(x1.shape[0] == x2.shape[0], "the batch sizes differ", "batch_dot", x1=x1, x2=x2)
    k = x1.shape[first]
    require(k == x2.shape[second], f"contracted sizes differ ({k} and {x2.shape[second]})",
            "batch_dot", x1=x1, x2=x2)  # fmt: skip
    free1 = [i for i in range(1, x1.ndim) if i != first]
    free2 = [i for i in range(1, x2.ndim) if i != second]
    rows, cols = [x1.shape[i] for i in free1], [x2.shape[i] for i in free2]
    batch = x1.shape[0]
    left = F.reshape(_ordered(x1, [0, *free1, first]), (batch, math.prod(rows), k))
    right = F.reshape(_ordered(x2, [0, second, *free2]), (batch, k, math.prod(cols)))
    shape = (batch, *rows, *cols)
    return F.reshape(F.matmul(left, right), shape if len(shape) > 1 else (batch, 1))


# ---- Einstein summation, reduced to transposes, sums and batched matrix products -----------------

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# An operand with one label per axis; the axes of an ellipsis are labelled by numbers.
Labelled = tuple[Tensor, list[object]]


def einsum(equation: object, *operands: object) -> Tensor:
    r"""Sums products of elements over labelled axes, in Einstein's notation.

    Args:
        equation: Labels per operand and of the result, such as ``"bij,bjk->bik"``; ``...`` stands
            for further axes, which broadcast. Without ``->`` the result has the labels that occur
            once, in alphabetical order.
        operands: One tensor per label group (or one tuple of them). Lists of ints may follow each
            operand, and then no equation is given.

    Returns:
        Tensor with the axes the result names.

    Raises:
        ArgumentError: if the equation cannot be read.
        ShapeError: if the labels do not fit the shapes.

    Note:
        Operands are combined from left to right, every step being one matrix product.

    Example:
        >>> ops.einsum("ij,jk->ik", ops.ones((2, 3)), ops.ones((3, 4))).shape
        (2, 4)
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_lists(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        raise _fail(repr(equation)[:60], "the equation must be a string", TypeOrValueError)
    inputs, output = _parse(equation, operands)
    _check_sizes(equation, inputs)
    pending = [_take_diagonals(x, labels) for x, labels in inputs]
    current = pending.pop(0)
    while pending:
        later = {label for _, labels in pending[1:] for label in labels} | set(output)
        current = _combine(current, pending.pop(0), later)
    x, labels = _sum_out(*current, set(output))
    order = tuple(labels.index(label) for label in output)
    return x if order == tuple(range(len(order))) else F.transpose(x, order)


def _fail(equation: str, message: str, error: type[TvmgraphError] = ArgumentError) -> TvmgraphError:
    return bad(error, message, "einsum", f"equation={equation!r}")


def _from_lists(*items: Any) -> tuple[str, tuple[Tensor, ...]]:
    """Reads the form ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""

    def text(labels: Any) -> str:
        return "".join("..." if v is Ellipsis else _LETTERS[v] for v in labels)

    count = len(items) // 2
    equation = ",".join(text(items[2 * i + 1]) for i in range(count))
    if len(items) % 2:
        equation += "->" + text(items[-1])
    return equation, tuple(items[2 * i] for i in range(count))


def _parse(equation: str, operands: tuple[Any, ...]) -> tuple[list[Labelled], list[Any]]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    groups = left.split(",")
    are_tensors = all(isinstance(x, Tensor) for x in operands)
    if len(groups) != len(operands) or not are_tensors:
        error = ArgumentError if are_tensors else TypeOrValueError
        raise _fail(equation, f"{len(groups)} label groups need as many Tensors", error)
    inputs = [(x, _labels(equation, group, x)) for group, x in zip(groups, operands)]
    hidden = max((sum(isinstance(v, int) for v in ls) for _, ls in inputs), default=0)
    free = list(range(-hidden, 0))
    if arrow:
        output = _expand(equation, right, free)
    else:
        letters = left.replace(".", "").replace(",", "")
        output = [*free, *sorted(c for c in set(letters) if letters.count(c) == 1)]
    known = {label for _, labels in inputs for label in labels}
    if len(set(output)) < len(output) or not set(output) <= known:
        raise _fail(equation, "the result repeats a label or has one that no operand has")
    return inputs, output


def _labels(equation: str, group: str, x: Tensor) -> list[object]:
    hidden = x.ndim - len(group.replace("...", ""))
    labels = _expand(equation, group, list(range(-hidden, 0)))
    if len(labels) != x.ndim:
        raise _fail(equation, f"{group!r} does not fit the {x.ndim} axes of {x.aval}", ShapeError)
    return labels


def _expand(equation: str, group: str, free: list[int]) -> list[object]:
    """Replaces the ellipsis by the axes it stands for, numbered from the last one."""
    before, dots, after = group.partition("...")
    if not all(c in _LETTERS for c in before + after):
        raise _fail(equation, f"{group!r} may hold letters and one '...' only")
    return [*before, *(free if dots else []), *after]


def _check_sizes(equation: str, inputs: list[Labelled]) -> None:
    sizes: dict[object, int] = {}
    for x, labels in inputs:
        for label, d in zip(labels, x.shape):
            known = sizes.setdefault(label, d)
            if known == 1:
                sizes[label] = d
            elif d not in (known, 1):
                raise _fail(equation, f"label {label!r} has sizes {known} and {d}", ShapeError)


def _take_diagonals(x: Tensor, labels: list[object]) -> Labelled:
    """A label that occurs twice in one operand stands for the diagonal."""
    labels = list(labels)
    while len(set(labels)) < len(labels):
        twice = next(v for v in labels if labels.count(v) > 1)
        first = labels.index(twice)
        second = labels.index(twice, first + 1)
        x = F.diagonal(x, 0, first, second)
        labels = [v for i, v in enumerate(labels) if i not in (first, second)] + [twice]
    return x, labels


def _sum_out(x: Tensor, labels: list[object], keep: set[object]) -> Labelled:
    axes = tuple(i for i, v in enumerate(labels) if v not in keep)
    if not axes:
        return x, labels
    return F.reduce_sum(x, axis=axes, keep_dims=False), [v for v in labels if v in keep]


def _combine(a: Labelled, b: Labelled, later: set[object]) -> Labelled:
    """Multiplies two operands and sums over the labels that are not needed later."""
    x, xs = _sum_out(*a, later | set(b[1]))
    y, ys = _sum_out(*b, later | set(xs))
    shared = [v for v in xs if v in ys]
    # an axis of size 1 that broadcasts cannot be contracted
    uneven = any(x.shape[xs.index(v)] != y.shape[ys.index(v)] for v in shared)
    summed = [v for v in shared if v not in later]
    if uneven or not summed:
        return _multiply(x, xs, y, ys, later)
    batch = [v for v in shared if v in later]
    rows = [v for v in xs if v not in ys]
    cols = [v for v in ys if v not in xs]
    left = _grouped(x, xs, batch, rows, summed)
    right = _grouped(y, ys, batch, cols, summed)
    shape = [x.shape[xs.index(v)] for v in (*batch, *rows)] + [y.shape[ys.index(v)] for v in cols]
    return F.reshape(F.matmul(left, right, False, True), tuple(shape)), [*batch, *rows, *cols]


def _grouped(
    x: Tensor,
    labels: Sequence[object],
    batch: Sequence[object],
    free: Sequence[object],
    summed: Sequence[object],
) -> Tensor:
    """Brings an operand into the form (batch..., free, summed)."""
    order = tuple(labels.index(v) for v in (*batch, *free, *summed))
    if order != tuple(range(len(order))):
        x = F.transpose(x, order)
    sizes = x.shape
    n, m = len(batch), len(free)
    return F.reshape(x, (*sizes[:n], math.prod(sizes[n : n + m]), math.prod(sizes[n + m :])))


def _multiply(
    x: Tensor, xs: Sequence[object], y: Tensor, ys: Sequence[object], later: set[object]
) -> Labelled:
    labels = [*xs, *(v for v in ys if v not in xs)]
    x = F.reshape(x, (*x.shape, *(1,) * (len(labels) - len(xs))))
    order = tuple(ys.index(v) for v in labels if v in ys)
    if order != tuple(range(len(order))):
        y = F.transpose(y, order)
    sizes = iter(y.shape)
    y = F.reshape(y, tuple(next(sizes) if v in ys else 1 for v in labels))
    return _sum_out(x * y, labels, later)
