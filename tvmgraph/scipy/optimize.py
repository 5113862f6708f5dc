"""Minimization with SciPy's names: BFGS, L-BFGS and a line search by the strong Wolfe conditions.

The loops are Python's, since how often they run depends on values; the function may be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tvmgraph.autodiff import value_and_grad
from tvmgraph.compat.absent import not_found
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError


class OptimizeResults(NamedTuple):
    """What :func:`minimize` found.

    Attributes:
        x: Where.
        success: Whether the gradient is small enough there.
        status: 0, 1 after ``maxiter`` iterations, or 3 where no step makes progress.
        fun: The value there.
        jac: The gradient there.
        hess_inv: The estimated inverse of the second derivative; None by L-BFGS.
        nfev: How often the function was called.
        njev: How often the gradient was.
        nit: Number of iterations.
    """

    x: Tensor
    success: bool
    status: int
    fun: float
    jac: Tensor
    hess_inv: Tensor | None
    nfev: int
    njev: int
    nit: int


class LineSearchResults(NamedTuple):
    """What :func:`line_search` found.

    Attributes:
        failed: Whether no step fulfils the conditions.
        nit: Number of iterations.
        nfev: How often the function was called.
        ngev: How often the gradient was.
        k: The same as ``nit``.
        a_k: The step.
        f_k: The value there.
        g_k: The gradient there.
        status: 0, or 1 if it failed.
    """

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: float
    f_k: float
    g_k: Tensor
    status: int


Point = tuple[float, np.ndarray]


class _Counted:
    """A function with its gradient over arrays of float64; counts its calls."""

    def __init__(self, f: Callable[..., Tensor], like: Tensor, args: tuple[object, ...]) -> None:
        self._f, self._like, self._args = value_and_grad(f), like, args
        self.calls = 0

    def __call__(self, x: np.ndarray) -> Point:
        self.calls += 1
        value, gradient = self._f(Tensor(x, self._like.dtype), *self._args)
        if value.size != 1:
            raise DTypeError("the function must return one number", op="scipy.optimize",
                             got=str(value.shape))  # fmt: skip
        return float(value.asnumpy()), gradient.asnumpy().astype(np.float64)


def _step(
    f: _Counted, x: np.ndarray, p: np.ndarray, start: Point, c1: float, c2: float, maxiter: int,
    first: float = 1.0,
) -> tuple[float, Point, bool, int]:  # fmt: skip
    """Returns a step by the strong Wolfe conditions, the point there, success, iterations.

    Source: Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with bisection.
    """
    f0, slope = start[0], float(start[1] @ p)
    low, high, low_value = 0.0, np.inf, f0
    best = (0.0, start)
    step = first
    for count in range(1, maxiter + 1):
        point = f(x + step * p)
        inclination = float(point[1] @ p)
        if not point[0] <= f0 + c1 * step * slope or (low > 0 and point[0] >= low_value):
            high = step
        elif abs(inclination) <= -c2 * slope:
            return step, point, True, count
        else:
            if point[0] < best[1][0]:
                best = (step, point)
            if inclination >= 0:
                high = step
            else:
                low, low_value = step, point[0]
        step = 2 * step if high == np.inf else 0.5 * (low + high)
    return *best, False, maxiter


def line_search(
    f: Callable[..., Tensor], xk: Tensor, pk: Tensor, jac: object = None,
    gfk: Tensor | None = None, old_fval: float | None = None, old_old_fval: float | None = None,
    c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20,
) -> LineSearchResults:  # fmt: skip
    """Finds a step along a direction that fulfils the strong Wolfe conditions.

    Args:
        f: Function of a vector.
        xk: Where the search begins.
        pk: The direction.
        jac: Kept for SciPy programs; gradients come from ``f``.
        gfk: The gradient at ``xk`` if it is known.
        old_fval: The value at ``xk`` if it is known.
        old_old_fval: Kept for SciPy programs.
        c1: Share of the slope by which the value must sink.
        c2: Share to which the slope must sink.
        maxiter: Steps that are tried at most.

    Example:
        >>> found = ms.scipy.optimize.line_search(
        ...     lambda x: (x * x).sum(), Tensor([1.8, 1.7]), Tensor([-1.0, -1.0]))
        >>> found.a_k, found.failed
        (1.0, False)
    """
    counted = _Counted(f, xk, ())
    x, p = xk.asnumpy().astype(np.float64), pk.asnumpy().astype(np.float64)
    if gfk is None or old_fval is None:
        start = counted(x)
    else:
        start = (float(old_fval), gfk.asnumpy().astype(np.float64))
    step, point, success, count = _step(counted, x, p, start, c1, c2, maxiter)
    calls = counted.calls
    gradient = Tensor(point[1], xk.dtype)
    return LineSearchResults(not success, count, calls, calls, count, step, point[0], gradient,
                             int(not success))  # fmt: skip


def _along(gradient: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Returns the gradient times the estimated inverse of the second derivative (two loops)."""
    q, shares = gradient.copy(), []
    for s, y in reversed(pairs):
        shares.append(float(s @ q) / float(y @ s))
        q -= shares[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= float(s @ y) / float(y @ y)
    for (s, y), share in zip(pairs, reversed(shares)):
        q += s * (share - float(y @ q) / float(y @ s))
    return q


def _updated(inverse: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the estimate of BFGS after a step ``s`` that changed the gradient by ``y``."""
    share = 1 / float(y @ s)
    turn = np.eye(len(s)) - share * np.outer(s, y)
    return turn @ inverse @ turn.T + share * np.outer(s, s)


def _descend(
    f: _Counted, x0: Tensor, kind: str, gtol: float, limit: int, tries: int, kept: int
) -> OptimizeResults:
    """Runs the iterations of :func:`minimize`."""
    x = x0.asnumpy().astype(np.float64)
    point, inverse = f(x), np.eye(x.size)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    count, status = 0, 0
    while np.abs(point[1]).max() > gtol:
        if count == limit:
            status = 1
            break
        gradient = point[1]
        p = -(inverse @ gradient if kind == "BFGS" else _along(gradient, pairs))
        first = 1.0 if count else min(1.0, 1 / float(np.abs(gradient).sum()))
        step, new, success, _ = _step(f, x, p, point, 1e-4, 0.9, tries, first)
        if not success and step == 0.0:
            status = 3
            break
        s, y = step * p, new[1] - gradient
        x, point, count = x + s, new, count + 1
        if float(s @ y) > 1e-12:
            inverse = _updated(inverse, s, y) if kind == "BFGS" else inverse
            pairs = [*pairs, (s, y)][-kept:]
    estimate = Tensor(inverse, x0.dtype) if kind == "BFGS" else None
    return OptimizeResults(
        Tensor(x, x0.dtype), status == 0, status, point[0], Tensor(point[1], x0.dtype), estimate,
        f.calls, f.calls, count,
    )  # fmt: skip


def minimize(
    func: Callable[..., Tensor], x0: Tensor, args: tuple[object, ...] = (),
    method: str | None = None, jac: object = None, hess: object = None, hessp: object = None,
    bounds: object = None, constraints: object = (), tol: float | None = None,
    callback: object = None, options: Mapping[str, object] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Minimizes a function of a vector.

    Args:
        func: The function; its gradient is computed.
        x0: Where the search begins.
        args: Further arguments of the function.
        method: ``"BFGS"``, or ``"LBFGS"``, which keeps the last steps instead of a matrix.
        jac: Only None, as the arguments up to ``constraints``.
        hess: Only None.
        hessp: Only None.
        bounds: Only None.
        constraints: Only ``()`` or None.
        tol: Largest element of a gradient that counts as none, unless ``options`` say it.
        callback: Only None.
        options: ``maxiter`` (200 per element by default), ``gtol`` (1e-5), ``line_search_maxiter``
            (20), ``maxcor``: how many steps L-BFGS keeps (10).

    Raises:
        ArgumentError: for another method, or an argument that it does not take.

    Example:
        >>> found = ms.scipy.optimize.minimize(
        ...     lambda x: ((x - 2.0) ** 2.0).sum(), Tensor([0.0, 5.0]), method="BFGS")
        >>> found.x.asnumpy().round(3).tolist(), found.success
        ([2.0, 2.0], True)
    """
    op = "scipy.optimize.minimize"
    kind = str(method).upper()
    if kind not in ("BFGS", "LBFGS"):
        raise ArgumentError(f"method cannot be {method!r}", op=op, fix='use "BFGS" or "LBFGS"')
    given = {"jac": jac, "hess": hess, "hessp": hessp, "bounds": bounds,
             "constraints": constraints or None, "callback": callback}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"{name} is not taken by {kind}", op=op)
    setting = {k: v for k, v in (options or {}).items() if v is not None}
    gtol = float(str(setting.get("gtol", 1e-5 if tol is None else tol)))
    limit = int(str(setting.get("maxiter", 200 * x0.size)))
    tries = int(str(setting.get("line_search_maxiter", 20)))
    kept = int(str(setting.get("maxcor", 10)))
    return _descend(_Counted(func, x0, tuple(args)), x0, kind, gtol, limit, tries, kept)


def __getattr__(name: str) -> object:
    raise not_found("tvmgraph.scipy.optimize", name, __all__)


# ---- the assignment of rows to columns that costs least ------------------------------------------

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


__all__ = [
    "LineSearchResults", "OptimizeResults", "line_search", "linear_sum_assignment", "minimize",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)


_guard_module(globals(), "scipy.optimize")
