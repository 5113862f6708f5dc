"""Einstein summation, reduced to transposes, sums and batched matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError, TvmgraphError
from tvmgraph.ops.common.arguments import bad

__all__ = ["einsum"]

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
    inputs, output = _parse(str(equation), operands)
    _check_sizes(str(equation), inputs)
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
    if len(groups) != len(operands) or not all(isinstance(x, Tensor) for x in operands):
        raise _fail(equation, f"{len(groups)} label groups need as many Tensors")
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
        raise _fail(equation, f"{group!r} does not fit the {x.ndim} axes of {x.type}", ShapeError)
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
