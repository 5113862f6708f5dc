"""Comparisons and tests of single elements, and whether all of several tensors are finite: bool."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Array, is_sequence
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.ops.common.arguments import require_tensor
from tvmgraph.ops.common.pointwise import Formula, TirMath, pointwise, unary
from tvmgraph.ops.common.rows import LOW_PRECISION, binary_samples, extreme_values

__all__ = [
    "all_finite", "approximate_equal", "eq", "equal", "ge", "greater", "greater_equal", "gt",
    "is_complex", "is_floating_point", "is_tensor", "isclose", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "le", "less", "less_equal", "lt", "ne", "not_equal",
    "signbit", "tensor_ge", "tensor_gt", "tensor_le", "tensor_lt",
]  # fmt: skip

_NO_GRADIENT = Reason("the result is bool, which has no derivative")
_TIES = np.array([0, 1, 2, np.nan, np.inf, -0.0], np.float32)
_TIED = np.array([0, 2, 1, np.nan, np.inf, 0.0], np.float32)


def _comparison_samples() -> list[Sample]:
    return [
        *binary_samples(),
        sample((9,), (9,), dtype="int32", low=-1, high=1),
        sample((9,), (9,), dtype=("uint8", "int8"), low=0, high=2),
        sample((9,), (9,), dtype="bool"),
        sample((9,), (9,), dtype=("int64", "float16"), low=0, high=2),
        sample((9,), (9,), dtype="bfloat16"),
        sample(_TIES, _TIED),
    ]


def _onnx_comparison(op_type: str) -> Callable[..., OnnxNamed]:
    """ONNX compares no bool: as int32 the order is False < True."""

    def onnx(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
        if a.type.dtype is dtypes.bool_:
            number = O.dtype(dtypes.int32)
            a, b = O.Cast(a, to=number), O.Cast(b, to=number)
        if op_type == "NotEqual":
            return O.Not(O.Equal(a, b))
        return O.add(op_type, [a, b], 1, {})

    return onnx


def _comparison(
    eager: Callable[..., Array], name: str | None, formula: Formula, op_type: str
) -> RowDecorator:
    """Adds the row of a comparison, whose operands are promoted to one dtype.

    Args:
        eager: The NumPy function.
        name: The relax operator; it serves every dtype but bool.
        formula: The comparison, for bool or without a relax operator.
        op_type: The ONNX operator.
    """
    kernel = pointwise(eager.__name__, formula, out="bool")

    def lower(R: Builder, a: Expr, b: Expr) -> Expr:
        if name is None or R.type(a).dtype is dtypes.bool_:
            return kernel(R, a, b)
        return getattr(R.op, name)(a, b)

    return primitive(
        infer=rules.elementwise(dtypes.ALL, out=dtypes.bool_),
        traits=CHEAP,
        promote="common",
        eager=eager,
        lower=lower,
        vjp=_NO_GRADIENT,
        onnx=_onnx_comparison(op_type),
        samples=_comparison_samples(),
    )


@_comparison(np.equal, "equal", lambda m, a, b: a == b, "Equal")
def equal(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements are equal: :math:`out_i = (input_i = other_i)`; NaN equals nothing.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.equal(Tensor([1, 2]), Tensor([1, 3]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


def _not_equal(m: TirMath, a: Expr, b: Expr) -> Expr:
    differs = a != b
    return differs | m.isnan(a) | m.isnan(b) if m.dtype.startswith("float") else differs


@_comparison(np.not_equal, None, _not_equal, "NotEqual")
def not_equal(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements differ: :math:`out_i = (input_i \ne other_i)`; NaN differs from all.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.not_equal(Tensor([1, 2]), Tensor([1, 3]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    ...


@_comparison(np.greater, "greater", lambda m, a, b: a > b, "Greater")
def greater(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements are greater: :math:`out_i = (input_i > other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.greater(Tensor([1, 2]), Tensor([0, 3]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


@_comparison(np.greater_equal, "greater_equal", lambda m, a, b: a >= b, "GreaterOrEqual")
def greater_equal(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements are at least as great: :math:`out_i = (input_i \ge other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.greater_equal(Tensor([1, 2]), Tensor([1, 3]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


@_comparison(np.less, "less", lambda m, a, b: a < b, "Less")
def less(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements are less: :math:`out_i = (input_i < other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.less(Tensor([1, 2]), Tensor([2, 2]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


@_comparison(np.less_equal, "less_equal", lambda m, a, b: a <= b, "LessOrEqual")
def less_equal(input: Tensor, other: Tensor) -> Tensor:
    r"""Whether elements are at most as great: :math:`out_i = (input_i \le other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.less_equal(Tensor([1, 2]), Tensor([1, 1]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


eq, ne = equal, not_equal
gt, ge, lt, le = greater, greater_equal, less, less_equal
tensor_gt, tensor_ge, tensor_lt, tensor_le = greater, greater_equal, less, less_equal


def _test_samples() -> list[Sample]:
    return [
        sample((3, 4)), sample(()), sample((0, 2)), sample(extreme_values()),
        sample(extreme_values("float64")), sample((5,), dtype="float16"),
        sample(np.array([0, np.inf, -np.inf, np.nan, -1], np.float32)),
        sample((5,), dtype="bfloat16"), sample((5,), dtype="int32", low=-3, high=3),
        sample((5,), dtype="uint8", low=0, high=3), sample((5,), dtype="bool"),
    ]  # fmt: skip


def _test(
    eager: Callable[[np.ndarray], np.ndarray],
    name: str,
    onnx: Callable[[OnnxOps, OnnxNamed], OnnxNamed],
    *,
    of_whole: bool = False,
) -> RowDecorator:
    """Adds the row of a test of floats whose answer is the same for all integers and bool."""

    def numpy_test(x: np.ndarray) -> np.ndarray:
        return np.full(x.shape, of_whole) if x.dtype.kind in "biu" else eager(x)

    def lower(R: Builder, x: Expr) -> Expr:
        t = R.type(x)
        if not t.dtype.is_float:
            return R.op.full(R.shape(t.shape), R.const(of_whole, "bool"), "bool")
        x = R.emit(R.op.astype(x, "float32")) if t.dtype in LOW_PRECISION else x
        return getattr(R.op, name)(x)

    def onnx_test(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
        if not x.type.dtype.is_float:
            return O.Expand(O.const(of_whole, dtypes.bool_), O.Shape(x))
        return onnx(O, x)

    return unary(
        numpy_test, lower, _NO_GRADIENT, onnx_test,
        allowed=dtypes.ALL, promote=None, out=dtypes.bool_, samples=_test_samples(),
    )  # fmt: skip


@_test(np.isnan, "isnan", lambda O, x: O.IsNaN(x))
def isnan(input: Tensor) -> Tensor:
    """Whether elements are NaN.

    Args:
        input: Tensor of any shape; integers and bools are finite.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isnan(Tensor([1.0, float("nan")]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    ...


@_test(np.isinf, "isinf", lambda O, x: O.IsInf(x))
def isinf(input: Tensor) -> Tensor:
    """Whether elements are positive or negative infinity.

    Args:
        input: Tensor of any shape; integers and bools are finite.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isinf(Tensor([1.0, float("inf")]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    ...


@_test(np.isfinite, "isfinite", lambda O, x: O.Not(O.Or(O.IsInf(x), O.IsNaN(x))), of_whole=True)
def isfinite(input: Tensor) -> Tensor:
    """Whether elements are neither infinite nor NaN.

    Args:
        input: Tensor of any shape; integers and bools are finite.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isfinite(Tensor([1.0, float("inf")]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


def isposinf(input: Tensor) -> Tensor:
    """Whether elements are positive infinity.

    Args:
        input: Tensor of any shape.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isposinf(Tensor([1.0, float("inf")]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    return F.logical_and(isinf(input), greater(input, 0))


def isneginf(input: Tensor) -> Tensor:
    """Whether elements are negative infinity.

    Args:
        input: Tensor of any shape.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isneginf(Tensor([1.0, -float("inf")]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    return F.logical_and(isinf(input), less(input, 0))


def isreal(input: Tensor) -> Tensor:
    """Whether elements have no imaginary part: true for every real tensor.

    Args:
        input: Tensor of any shape.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.isreal(Tensor([1.0]))
        Tensor(shape=[1], dtype=Bool, value= [ True])
    """
    return F.equal(F.imag(require_tensor("isreal", input)), 0)


def signbit(input: Tensor) -> Tensor:
    r"""Whether elements are below zero: :math:`out_i = (input_i < 0)`, so -0.0 gives False.

    Args:
        input: Tensor of any shape.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.signbit(Tensor([0.3, -2.5]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    return less(input, 0)


def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    r"""Whether elements agree: :math:`|input_i - other_i| \le atol + rtol \cdot |other_i|`.

    Args:
        input: Tensor of any shape.
        other: Tensor; the two shapes broadcast and the dtypes are promoted.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN counts as equal to NaN.

    Returns:
        bool tensor of the broadcast shape; infinities agree with themselves only.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.isclose(Tensor([1.0, 2.0]), Tensor([1.0, 2.1]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    distance, bound = F.abs(input - other), F.abs(other) * rtol + atol
    near = F.logical_and(distance <= bound, isfinite(bound))
    same = F.logical_or(equal(input, other), near)
    if not equal_nan:
        return same
    return F.logical_or(same, F.logical_and(isnan(input), isnan(other)))


def approximate_equal(x: Tensor, y: Tensor, tolerance: float = 1e-05) -> Tensor:
    r"""Whether elements are closer than a tolerance: :math:`|x_i - y_i| < tolerance`.

    Args:
        x: Tensor of any shape.
        y: Tensor; the two shapes broadcast and the dtypes are promoted.
        tolerance: Largest difference, itself excluded.

    Returns:
        bool tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.approximate_equal(Tensor([1.0, 2.0]), Tensor([1.1, 4.0]), 0.5)
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    return less(F.abs(x - y), tolerance)


def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor.

    Args:
        obj: Anything.

    Returns:
        A Python bool.

    Example:
        >>> ops.is_tensor([1.0])
        False
    """
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether a tensor has a floating-point dtype.

    Args:
        input: Tensor of any shape.

    Returns:
        A Python bool.

    Example:
        >>> ops.is_floating_point(Tensor([1]))
        False
    """
    return input.dtype.is_float


def is_complex(input: Tensor) -> bool:
    """Whether a tensor has a complex dtype.

    Args:
        input: Tensor of any shape.

    Returns:
        A Python bool.

    Example:
        >>> ops.is_complex(Tensor([1.0]))
        False
    """
    return require_tensor("is_complex", input).dtype in dtypes.COMPLEX


# ---- of several tensors -------------------------------------------------------------------------


def _list(op: str, name: str, value: object) -> list[Tensor]:
    given = [value] if isinstance(value, Tensor) else value
    items = [v for v in given if isinstance(v, Tensor)] if is_sequence(given) else []
    if not is_sequence(given) or len(items) < len(given):
        reject(DTypeError, f"ops.{op}", f"{name} must be a Tensor or a tuple or list of Tensors",
               f"{name}: {type(value).__name__}")  # fmt: skip
    if not items:
        raise ArgumentError(f"{name} must not be empty", op=f"ops.{op}")
    return items


def all_finite(inputs: object) -> Tensor:
    """Whether no element of any tensor is infinite or NaN.

    Args:
        inputs: Tensor, or tuple or list of tensors of any shapes.

    Returns:
        Tensor of bool, 0-d.

    Raises:
        DTypeError: if ``inputs`` holds something else than tensors.

    Example:
        >>> bool(ops.all_finite((Tensor([1.0]), Tensor([float("inf")]))))
        False
    """
    items = _list("all_finite", "inputs", inputs)
    found = F.all(F.isfinite(items[0]))
    for t in items[1:]:
        found = F.logical_and(found, F.all(F.isfinite(t)))
    return found
