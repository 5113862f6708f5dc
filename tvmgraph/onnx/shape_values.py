"""Shapes as values of a model: integers, some of which are sizes that differ from call to call.

ONNX computes shapes by its operators on tensors: the size of a batch is taken out of a ``Shape``,
multiplied, put beside others, and decides about a ``Reshape``. Captured for one size these are
constants; captured for all they are expressions of sizes, which NumPy computes element by element.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim

if TYPE_CHECKING:
    from tvmgraph.onnx.table import NodeCall

#: Ends of slices that mean the end of an axis, however long it is.
NO_END = 2**31 - 1


class Sizes:
    """An array of integers, at least one of which is a symbolic size.

    Args:
        array: The array, of objects.
        dtype: What the model takes the elements for: an integer, or a float that is one.
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: np.ndarray, dtype: dtypes.DType = dtypes.int64) -> None:
        self.array = array
        self.dtype = dtype

    def as_tensor(self) -> Tensor:
        """Returns the elements as a tensor, which the graph computes of the sizes."""
        one = F.ones((), dtypes.int64)
        parts = [F.cast(one * v, dtypes.int64) for v in self.array.reshape(-1).tolist()]
        return F.cast(F.reshape(F.stack(parts, 0), self.array.shape), self.dtype)


def values_of_sizes(values: Any, dtype: dtypes.DType = dtypes.int64) -> np.ndarray | Sizes:
    """Returns integers as a constant if they are known, else as :class:`Sizes`.

    Args:
        values: A size, a sequence of them, or an array of objects.
        dtype: What the model takes them for.
    """
    if not isinstance(values, np.ndarray):
        flat = values if isinstance(values, Sequence) else [values]
        array = np.empty(len(flat), object)
        array[:] = flat
        values = array if isinstance(values, Sequence) else array.reshape(())
    if any(isinstance(v, Dim) for v in values.reshape(-1).tolist()):
        return Sizes(values, dtype)
    return values.astype(dtype.numpy)


def has_sizes(shape: Sequence[object]) -> bool:
    """Whether a shape has symbolic sizes.

    Args:
        shape: The sizes.
    """
    return any(isinstance(d, Dim) for d in shape)


def compute_sizes(n: NodeCall) -> object:
    """Returns the result of a node that computes with shapes, ``None`` where it has no rule here.

    Args:
        n: The call; its values are arrays and :class:`Sizes`.
    """
    rule = _RULES.get(n.node.op_type)
    if n.node.op_type in _MOVES and not isinstance(n.values[0], Sizes):
        return None  # sizes say which elements of a tensor
    arrays = [v.array if isinstance(v, Sizes) else v for v in n.values]
    if rule is None or not all(v is None or isinstance(v, np.ndarray) for v in arrays):
        return None
    whole = [_whole(a) if isinstance(a, np.ndarray) else None for a in arrays]
    found = None if any(a is not None and a.dtype.kind == "f" for a in whole) else rule(n, *whole)
    if found is None:
        return None
    dtype = n.dtype("to") if n.node.op_type == "Cast" else _dtype(n)
    many = isinstance(found, list)
    results = [
        r if r.dtype == np.bool_ else values_of_sizes(np.asarray(r, object), dtype)
        for r in (found if many else [found])
    ]
    return tuple(results) if many else results[0]


def _dtype(n: NodeCall) -> dtypes.DType:
    return next(v.dtype for v in n.values if isinstance(v, Sizes))


def _whole(array: np.ndarray) -> np.ndarray:
    """Floats that are integers become such, so that they go together with sizes."""
    whole = array.astype(np.int64) if array.dtype.kind == "f" else array
    return whole if np.array_equal(whole, array) else array


def _each(function: Callable[..., object], kind: type = object) -> Callable[..., np.ndarray]:
    """Returns a rule that applies a function of two Python numbers to every element."""
    made = np.frompyfunc(function, 2, 1)

    def rule(n: NodeCall, *xs: np.ndarray) -> np.ndarray:
        return np.asarray(functools.reduce(made, xs)).astype(kind)

    return rule


def _quotient(n: NodeCall, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """ONNX rounds quotients of integers towards zero: downwards, if none is negative."""
    if not _dtype(n).is_integer or not all(v >= 0 for x in (a, b) for v in x.reshape(-1).tolist()):
        return None
    return np.asarray(a.astype(object) // b)


def _axes(n: NodeCall, rank: int, since: int) -> tuple[int, ...] | None:
    chosen = n.ints(1) if n.opset >= since else n.get("axes")
    return None if chosen is None else tuple(a % rank for a in chosen)


def _gather(n: NodeCall, x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.asarray(np.take(x, index.astype(np.int64), n.get("axis", 0)), object)


def _unsqueeze(n: NodeCall, x: np.ndarray, *_: object) -> np.ndarray:
    chosen = n.ints(1) if n.opset >= 13 else n.get("axes")
    return np.expand_dims(x, chosen)


def _squeeze(n: NodeCall, x: np.ndarray, *_: object) -> np.ndarray:
    return np.squeeze(x, _axes(n, max(x.ndim, 1), 13))


def _slice(n: NodeCall, x: np.ndarray, *_: object) -> np.ndarray | None:
    if n.opset < 10:
        return None
    starts, ends, axes, steps = n.ints(1), n.ints(2), n.ints(3), n.ints(4)
    key = [slice(None)] * x.ndim
    for i, axis in enumerate(range(len(starts)) if axes is None else axes):
        step = 1 if steps is None else steps[i]
        key[axis] = slice(starts[i], None if ends[i] >= NO_END else ends[i], step)
    return x[tuple(key)]


def _reduced(function: Callable[..., Any], since: int) -> Callable[..., np.ndarray]:
    def rule(n: NodeCall, x: np.ndarray, *_: object) -> np.ndarray:
        axes = _axes(n, max(x.ndim, 1), since)
        keep = bool(n.get("keepdims", 1))
        return np.asarray(function(x.astype(object), axis=axes, keepdims=keep), object)

    return rule


def _split(n: NodeCall, x: np.ndarray, *_: object) -> list[np.ndarray]:
    parts = n.ints(1) if n.opset >= 13 else n.get("split")
    parts = parts or [x.shape[0] // n.count] * n.count
    return np.split(x, np.cumsum(parts)[:-1].tolist())


#: What moves or joins the elements of its first operand; the others say how.
_MOVES = {
    "Expand", "Gather", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Slice",
    "Split", "Squeeze", "Unsqueeze",
}  # fmt: skip
_RULES: dict[str, Callable[..., Any]] = {
    "Add": _each(operator.add),
    "Cast": lambda n, x: x if n.dtype("to").kind in "iuf" else None,
    "Ceil": lambda n, x: x,
    "Concat": lambda n, *xs: np.concatenate([x.astype(object) for x in xs], n.get("axis")),
    "Div": _quotient,
    "Equal": _each(operator.eq, np.bool_),
    "Expand": lambda n, x, _: np.broadcast_to(x, np.broadcast_shapes(x.shape, n.ints(1))),
    "Floor": lambda n, x: x,
    "Gather": _gather,
    "Greater": _each(operator.gt, np.bool_),
    "GreaterOrEqual": _each(operator.ge, np.bool_),
    "Identity": lambda n, x: x,
    "Less": _each(operator.lt, np.bool_),
    "LessOrEqual": _each(operator.le, np.bool_),
    "Max": _each(max),
    "Min": _each(min),
    "Mod": _each(operator.mod),
    "Mul": _each(operator.mul),
    "Neg": lambda n, x: np.asarray(-x.astype(object), object),
    "ReduceMax": _reduced(np.max, 18),
    "ReduceMin": _reduced(np.min, 18),
    "ReduceProd": _reduced(np.prod, 18),
    "ReduceSum": _reduced(np.sum, 13),
    "Reshape": lambda n, x, _: x.reshape(n.ints(1)),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _each(operator.sub),
    "Unsqueeze": _unsqueeze,
    "Where": lambda n, c, x, y: np.where(c, x.astype(object), y.astype(object)),
}
