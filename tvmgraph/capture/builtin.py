"""Python's functions of numbers, where tensors or sizes that the values decide take their place.

The result is that of Python: the first of equals, and NaN is neither larger nor smaller.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from tvmgraph import dtypes
from tvmgraph.capture.frame import Frame
from tvmgraph.capture.merge import as_tensor
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import NUMBERS, TracedNumber, kind_of, traced_number, wider
from tvmgraph.core.dispatch import at_least
from tvmgraph.core.op import F
from tvmgraph.core.sizes import proven
from tvmgraph.core.symbols import Symbol, is_number
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)
_BITWISE = (operator.and_, operator.or_, operator.xor)
#: Operators on numbers; in place they are the same.
_ARITHMETIC: dict[object, Callable[..., Tensor]] = {
    g: cast("Callable[..., Tensor]", f)
    for f in (operator.add, operator.sub, operator.mul, *_DIVISIONS, *_BITWISE)
    for g in (f, getattr(operator, f"i{f.__name__.rstrip('_')}"))
}


def call(
    interpreter: Interpreter,
    function: object,
    args: tuple[object, ...],
    node: ast.AST,
    frame: Frame,
) -> Any:
    """Calls ``max``, ``min``, ``sum``, ``any``, ``all``, ``abs``, ``int`` or ``float``.

    Args:
        interpreter: The interpreter of the capture.
        function: The function of Python's.
        args: Its arguments by position.
        node: The code that does it, for messages.
        frame: The frame in which that code runs.

    Returns:
        ``None`` if Python can do it itself, or must.
    """
    if function in (builtins.max, builtins.min):
        return _extreme(interpreter, function, args, node, frame)
    if len(args) != 1:
        return None
    (x,) = args
    if function in (int, float) and isinstance(x, TracedTensor):
        return number_in(interpreter, x, cast("type", function))
    if function in _OF_ITEMS:
        return _OF_ITEMS[function](interpreter, x) if _has_unknown_length(interpreter, x) else None
    if not isinstance(x, Dim) or not interpreter.recorder.is_bound(x):
        return None
    if function is abs and isinstance(x, Dim):
        return x if proven(">=", x, 0) else _size_of(F.abs(interpreter.recorder.size_as_tensor(x)))
    return (
        traced_number(interpreter.recorder.number(x, dtypes.float64)) if function is float else None
    )


def tensor_from(
    input_data: object = None, dtype: object = None, *more: object, **named: object
) -> Tensor | None:
    """Returns a tensor of another's elements, without its gradients, as ``Tensor(x)`` does.

    Args:
        input_data: A tensor whose elements are not known yet; None comes of any other.
        dtype: The type of the elements; that of ``input_data`` by default.
        *more, **named: What else is said of the tensor, with which Python makes it.
    """
    if more or named or not isinstance(input_data, TracedTensor):
        return None
    return F.stop_gradient(F.cast(input_data, dtype or input_data.dtype)).copy()


def number_in(interpreter: Interpreter, x: TracedTensor, kind: type | None = None) -> object:
    """Returns the one element of a tensor as a number of the graph, in strict code.

    It is a number of Python where constants alone decide it.

    Other code is left to Python, where what is no number raises.

    Args:
        interpreter: The interpreter of the capture.
        x: The tensor.
        kind: ``int`` or ``float``; that of the dtype by default.
    """
    if interpreter.settings.lax or x.size != 1 or x.dtype in dtypes.COMPLEX:
        return None
    kind = kind or (float if x.dtype.is_float else int if x.dtype.is_integer else bool)
    known = interpreter.recorder.known(x)
    if known is not None:
        return kind(known.item())
    number = F.cast(F.reshape(F.stop_gradient(x), ()), NUMBERS[kind])
    found = traced_number(interpreter.recorder.snapshot(number))
    if kind is int:
        interpreter.recorder.take_for_small(found.tensor)
    return found


def contains(
    interpreter: Interpreter, items: Sequence[object], value: object, absent: bool
) -> object:
    """Whether a value is one of some items: a tensor is one whose elements are all equal to it.

    Args:
        interpreter: The interpreter of the capture.
        items: The items; they, or the value, are symbolic.
        value: The value.
        absent: Whether it is asked if it is none of them.
    """
    found: Tensor | None = None
    for item in items:
        same = item is value or _equal(interpreter, item, value)
        if same is True:
            return not absent
        if isinstance(same, Tensor):
            found = same if found is None else F.logical_or(found, same)
    if found is None:
        return absent
    return interpreter.number_of(F.logical_not(found) if absent else found)


def _equal(interpreter: Interpreter, *pair: object) -> Tensor | bool:
    if not any(map(interpreter.is_symbolic, pair)):
        return interpreter.truth(operator.eq(*pair))
    if not all(isinstance(v, Tensor) or is_number(v) for v in pair):
        return False
    a, b = map(interpreter.recorder.size_as_tensor, pair)
    if getattr(a, "shape", ()) != getattr(b, "shape", ()):
        return False
    return F.all(F.equal(a, b))


def arithmetic(
    interpreter: Interpreter, operation: Callable[..., Tensor], left: object, right: object
) -> TracedNumber | None:
    """Computes with a size of values where the result is no size; ``None`` if it is one.

    Numbers that differ from call to call are no sizes. What raises for a divisor of 0 is computed
    again by Python in a call in which there are no elements.

    Args:
        interpreter: The interpreter of the capture.
        operation: The operator, such as ``ops.add``.
        left: The left operand, a size or a number.
        right: The right operand.
    """
    bound = any(isinstance(v, Dim) and interpreter.recorder.is_bound(v) for v in (left, right))
    does = _ARITHMETIC.get(operation)
    if not bound or does is None or not (is_number(left) and is_number(right)):
        return None
    if does in _DIVISIONS and not interpreter.recorder.is_bound(right) and not right:
        does(kind_of(left)(1), kind_of(right)(0))  # raises what Python does
    whole = [isinstance(v, (Dim, int)) for v in (left, right)]
    if all(whole) and does not in (operator.truediv, *_BITWISE):
        of_number = does not in _DIVISIONS or not isinstance(right, Dim)
        if of_number or not proven(">=", right, 0) or not proven(">=", left, 0):
            return None
    kind = float if does is operator.truediv else wider(int, kind_of(left), kind_of(right))
    if kind is float and does in _BITWISE:
        return None
    dtype = NUMBERS[kind]
    divisor = as_tensor(right, dtype)
    if does in _DIVISIONS:
        checked = _not_zero(interpreter, right, divisor)
        if checked is None:
            return None
        divisor = checked
    return traced_number(does(as_tensor(left, dtype), divisor))


def _not_zero(interpreter: Interpreter, divisor: object, tensor: Tensor) -> Tensor | None:
    """Returns a divisor that is checked when the graph runs; ``None`` if that is not possible."""
    if isinstance(divisor, TracedNumber):
        return None
    if not (isinstance(divisor, Dim) and interpreter.recorder.is_bound(divisor)):
        return tensor
    if proven(">", divisor, 0):
        return tensor
    if not proven(">=", divisor, 0):
        return None
    having = interpreter.recorder.having(divisor.roots)
    return F.at_least(tensor, *having, size=divisor, least=1)


def _has_unknown_length(interpreter: Interpreter, x: object) -> bool:
    return (
        isinstance(x, TracedTensor) and bool(x.shape) and interpreter.recorder.is_bound(x.shape[0])
    )


def _extreme(
    interpreter: Interpreter,
    function: object,
    args: tuple[object, ...],
    node: ast.AST,
    frame: Frame,
) -> object:
    if len(args) == 1 and isinstance(args[0], TracedTensor):
        return _of_tensor(function, args[0]) if args[0].ndim == 1 else None
    items = [*args[0]] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    varies = any(isinstance(v, Symbol) and not isinstance(v, Dim) for v in items)
    of_values = varies and any(map(interpreter.recorder.is_bound, items))
    if len(items) < 2 or not (of_values or any(map(interpreter.is_symbolic, items))):
        return _of_sizes(interpreter, function, items)
    compare = operator.gt if function is builtins.max else operator.lt
    best = items[0]
    for item in items[1:]:
        pair = map(interpreter.recorder.size_as_tensor, (item, best))
        truth = interpreter.truth(compare(*pair))
        if isinstance(truth, Tensor):
            best = interpreter.choose(truth, lambda v=item: v, lambda v=best: v, node, frame)
        else:
            best = item if truth else best
    return best


def _of_tensor(function: object, x: Tensor) -> Tensor | None:
    """The first of the largest or smallest elements."""
    largest = function is builtins.max
    given = x
    if x.dtype is dtypes.bool_:
        given = F.cast(x, dtypes.int32)
    elif x.dtype.is_float:
        given = F.where(F.isnan(x), -math.inf if largest else math.inf, x)
    elif not x.dtype.is_integer:
        return None
    at = F.arg_extreme(given, axis=0, keep_dims=False, largest=largest)
    if x.dtype.is_float:  # nothing is larger than NaN, if that comes first
        at = F.where(F.isnan(x[0]), 0, at)
    return x[at]


def _of_sizes(interpreter: Interpreter, function: object, items: Any) -> object:
    """The largest or smallest of sizes is a size as well."""
    whole = all(isinstance(v, Dim) or type(v) is int for v in items)
    if not whole or not any(map(interpreter.recorder.is_bound, items)):
        return None
    counts = any if function is builtins.max else all
    if not counts(proven(">=", v, 0) for v in items):
        return None
    combine = F.maximum if function is builtins.max else F.minimum
    best = items[0]
    for v in items[1:]:
        largest = proven(">=", best, v)
        if largest is not None:
            best = best if largest is (function is builtins.max) else v
            continue
        best = _size_of(combine(*[as_tensor(s, dtypes.int64) for s in (best, v)]))
    return best


def _size_of(count: Tensor) -> object:
    return F.count_up(count, "counted").aval.shape[0]


def _sum(interpreter: object, x: TracedTensor) -> Tensor:
    del interpreter
    least = {root: 1 for root in x.shape[0].roots}  # the sum of nothing is the number 0
    return F.reduce_sum(at_least(x, least), axis=(0,), keep_dims=False)


def _truth(name: str) -> Callable[..., object]:
    def found(interpreter: Interpreter, x: TracedTensor) -> object:
        if x.ndim != 1:
            return None
        return interpreter.number_of(getattr(x.astype(dtypes.bool_), name)())

    return found


_OF_ITEMS: dict[object, Callable[..., object]] = {sum: _sum, any: _truth("any"), all: _truth("all")}
#: What :func:`call` takes.
FUNCTIONS = frozenset({max, min, abs, int, float, *_OF_ITEMS})
