"""The assignment of rows to columns that costs least."""

from __future__ import annotations

import sys

import numpy as np

from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

_OP = "scipy.optimize.linear_sum_assignment"
_ALL = Tensor(sys.maxsize)


def linear_sum_assignment(
    cost_matrix: Tensor, maximize: bool, dimension_limit: Tensor | int = _ALL
) -> tuple[Tensor, Tensor]:
    r"""Gives every row a column of its own, so that the sum of their costs is least.

    .. math:: \min_X \sum_{ij} C_{ij} X_{ij}, \quad X_{ij} \in \{0, 1\}

    with at most one 1 in every row and column. Values of the costs decide: there is no gradient.

    Args:
        cost_matrix: Costs :math:`C`, shape :math:`(M, N)`, of integers, floats or bools.
        maximize: Whether the sum shall be greatest instead.
        dimension_limit: How many columns count, from the first one on.

    Returns:
        Rows and their columns, of :math:`\min(M, N)` int64 elements, in the order of rows. Where
        fewer columns count, -1 follows.

    Raises:
        DTypeError: if ``cost_matrix`` is no tensor of numbers, or ``maximize`` no bool.
        ShapeError: if ``cost_matrix`` has not two dimensions.
        ArgumentError: if a cost is not finite.

    Reference:
        D. F. Crouse, On implementing 2D rectangular assignment algorithms, IEEE Transactions on
        Aerospace and Electronic Systems 52 (2016), the method of SciPy.

    Example:
        >>> rows, columns = ms.scipy.optimize.linear_sum_assignment(
        ...     Tensor([[4, 1, 3], [2, 0, 5], [3, 2, 2]]), False)
        >>> rows.asnumpy().tolist(), columns.asnumpy().tolist()
        ([0, 1, 2], [1, 0, 2])
    """
    if not isinstance(cost_matrix, Tensor) or cost_matrix.dtype.kind == "c":
        raise DTypeError("cost_matrix must be a Tensor of real numbers", op=_OP,
                         got=repr(cost_matrix)[:80])  # fmt: skip
    if not isinstance(maximize, bool):
        raise DTypeError(f"maximize must be a bool, not {type(maximize).__name__}", op=_OP)
    if cost_matrix.ndim != 2:
        raise ShapeError("cost_matrix must have two dimensions", op=_OP, got=str(cost_matrix.shape))
    costs = cost_matrix.asnumpy()[:, : int(dimension_limit)].astype(np.float64)
    if not np.isfinite(costs).all():
        raise ArgumentError("every cost must be finite", op=_OP)
    rows, columns = _assigned(-costs if maximize else costs)
    found = np.full((2, min(cost_matrix.shape)), -1, np.int64)
    found[:, : len(rows)] = rows, columns
    return Tensor(found[0]), Tensor(found[1])


def _assigned(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows in order and their columns."""
    if costs.shape[0] > costs.shape[1]:
        columns, rows = _assigned(costs.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    u, v = np.zeros(costs.shape[0]), np.zeros(costs.shape[1])
    column_of, row_of = np.full(len(u), -1), np.full(len(v), -1)
    for row in range(len(u)):
        _augment(costs, row, u, v, column_of, row_of)
    return np.arange(len(u)), column_of


def _augment(
    costs: np.ndarray, start: int, u: np.ndarray, v: np.ndarray, column_of: np.ndarray,
    row_of: np.ndarray,
) -> None:  # fmt: skip
    """Assigns one more row along the shortest path of changes, and updates the dual variables."""
    shortest, path = np.full(len(v), np.inf), np.full(len(v), -1)
    left = np.arange(len(v))[::-1]
    rows: list[int] = [start]
    columns: list[int] = []
    row, least = start, 0.0
    while True:
        lengths = least + costs[row, left] - u[row] - v[left]
        nearer = lengths < shortest[left]
        path[left[nearer]] = row
        shortest[left[nearer]] = lengths[nearer]
        least = shortest[left].min()
        nearest = np.flatnonzero(shortest[left] == least)
        free = nearest[row_of[left[nearest]] < 0]
        chosen = free[-1] if len(free) else nearest[0]
        column = int(left[chosen])
        left = np.delete(left, chosen)
        columns.append(column)
        if row_of[column] < 0:
            break
        row = int(row_of[column])
        rows.append(row)
    u[start] += least
    others = rows[1:]
    u[others] += least - shortest[column_of[others]]
    v[columns] -= least - shortest[columns]
    while True:  # back along the path
        row = path[column]
        row_of[column] = row
        column_of[row], column = column, column_of[row]
        if row == start:
            return
