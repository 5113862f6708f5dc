"""TracedNumber: stands for a Python number that a tensor decides while a function is captured."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.deciding import settled
from tvmgraph.capture.traced import OUTSIDE, TracedTensor, no_value
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.symbols import Symbol, is_number
from tvmgraph.core.tensor import Tensor

#: Classes of Python numbers with the dtype of the 0-d tensors that hold them.
NUMBERS: dict[type, dtypes.DType] = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}
_KINDS = {"b": bool, "i": int, "f": float}

_Operation = Callable[..., Tensor]
_Method = Callable[..., Any]


def wider(*kinds: type) -> type:
    """Returns the class of numbers in which others meet: ``bool``, ``int`` or ``float``.

    Args:
        *kinds: The classes.
    """
    order = tuple(NUMBERS)
    return max(kinds, key=order.index)


def kind_of(value: object) -> type:
    """Returns the class of a Python number, or of the one that a symbol stands for.

    Args:
        value: Any object.
    """
    return value.kind if isinstance(value, Symbol) else type(value)


def as_scalar(value: object, dtype: dtypes.DType) -> Tensor:
    """Returns a Python number or symbol as a 0-d tensor.

    Args:
        value: The number or symbol.
        dtype: The dtype.
    """
    if isinstance(value, TracedNumber):
        return value.as_tensor(dtype)
    if isinstance(value, Symbol):
        recorder: Any = state.interpreter
        return recorder.number(value, dtype)
    if dtype is dtypes.int64 and isinstance(value, int) and value.bit_length() > 63:
        no_value("an integer of more than 64 bits beside a number that a tensor decides", OUTSIDE)
    return Tensor(np.asarray(value, dtype.numpy))


def _operators(operation: _Operation) -> tuple[_Method, _Method]:
    """Returns the methods of a binary operator for a number on its left and on its right."""

    def method(self: TracedNumber, other: object) -> TracedNumber:
        return _combine(operation, self, other)

    def reflected(self: TracedNumber, other: object) -> TracedNumber:
        return _combine(operation, other, self)

    return method, reflected


def _shift(operation: _Operation) -> _Method:
    """Returns the method of a shift by a known number, which is an operation on a power of 2."""

    def method(self: TracedNumber, other: object) -> TracedNumber:
        if self.kind is float or not isinstance(other, int) or not 0 <= other < 63:
            no_value("a shift of a Python number", OUTSIDE)
        return _combine(operation, self, 2**other)

    return method


def _combine(operation: _Operation, a: object, b: object) -> TracedNumber:
    """Applies a binary operator to numbers as Python does."""
    others = [v for v in (a, b) if not is_number(v)]
    if others:
        if isinstance(others[0], (complex, np.ndarray, np.generic)):
            no_value(f"an operator on a Python number and a {type(others[0]).__name__}", OUTSIDE)
        return NotImplemented
    kind = wider(int, *map(kind_of, (a, b)))
    if operation is operator.truediv:
        kind = float
    elif operation in _BITWISE:
        kind = wider(*map(kind_of, (a, b)))
    result = traced_number(operation(*[as_scalar(v, NUMBERS[kind]) for v in (a, b)]))
    if kind is int:
        result.tensor.recorder.computed_whole(result.tensor)
    return result


_BITWISE = {operator.and_, operator.or_, operator.xor}
_DIVISIONS = {
    operator.truediv, operator.floordiv, operator.mod,
    operator.itruediv, operator.ifloordiv, operator.imod,
}  # fmt: skip
_POWERS = {operator.pow, operator.ipow}


def may_raise(operation: _Operation, a: object, b: object) -> bool:
    """Whether an operator on numbers raises, or gives a number of another class, for some values.

    Division by 0 raises, ``2 ** -1`` is no ``int``, and ``(-1) ** 0.5`` is complex.

    Args:
        operation: The operator of two numbers.
        a: The left operand.
        b: The right operand.
    """
    traced = isinstance(b, TracedNumber)
    if not (is_number(a) and is_number(b) and (traced or isinstance(a, TracedNumber))):
        return False
    if operation in _DIVISIONS:
        return traced or b == 0
    return operation in _POWERS and (traced or not isinstance(b, int) or b < 0)


class TracedNumber(Symbol):
    """A Python number that only the values of tensors decide.

    It takes part in arithmetic and comparisons with numbers, which give others of its kind, and
    with tensors, where it is as weak as any Python number. Whatever needs its value raises.

    Args:
        tensor: What holds it: a 0-d tensor of the dtype in :data:`NUMBERS`.
        kind: ``bool``, ``int`` or ``float``.
    """

    __slots__ = ("tensor",)

    tensor: TracedTensor
    traced = True

    def __init__(self, tensor: Tensor, kind: type) -> None:
        assert isinstance(tensor, TracedTensor)  # it is a node's result
        self._set(f"a Python {kind.__name__}", frozenset(), kind)
        self.tensor = tensor
        tensor.number = kind

    def as_tensor(self, dtype: dtypes.DType | None = None) -> Tensor:
        """Returns it as a 0-d tensor.

        Args:
            dtype: The dtype; that of its class by default.
        """
        return self.tensor if dtype in (None, self.tensor.dtype) else F.cast(self.tensor, dtype)

    def as_size(self) -> object:
        """Returns the integer as a size, which the graph binds when it runs."""
        return self.tensor.as_size()

    @property
    def shown_type(self) -> type:
        """The class of what it stands for."""
        return self.kind

    def converted(self, kind: type) -> TracedNumber | None:
        """Returns ``int(self)``, ``float(self)`` or ``bool(self)``.

        That is ``None`` where it may raise: infinity is no ``int``.

        Args:
            kind: ``int``, ``float`` or ``bool``.
        """
        if kind is int and self.kind is float:
            return None
        return traced_number(self.as_tensor(NUMBERS[kind]))

    def specialise(self) -> int | float:
        """Returns the number where small tensors of the call decide it, which then are constants.

        Raises:
            CaptureError: if the value is not known yet.
        """
        known = settled(self.tensor, by_operator=False)
        if known is None:
            no_value(f"this use of a Python {self.kind.__name__}", OUTSIDE)
        return self.kind(known.item())

    current = specialise

    def __bool__(self) -> bool:
        return bool(self.specialise())

    def __hash__(self) -> int:
        return hash(self.specialise())

    def __round__(self, ndigits: int | None = None) -> NoReturn:
        no_value("round()", OUTSIDE)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        no_value("a NumPy function", OUTSIDE)

    def __str__(self) -> str:
        no_value("the text of a Python number", "pass the number itself to print()")

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(self.kind(), name):
            no_value(f"{name!r} of a Python {self.kind.__name__}", OUTSIDE)
        raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")

    def __deepcopy__(self, memo: dict[int, object]) -> TracedNumber:
        return self

    def __copy__(self) -> TracedNumber:
        return self

    def __reduce__(self) -> NoReturn:
        no_value("pickle", OUTSIDE)

    __add__, __radd__ = _operators(operator.add)
    __sub__, __rsub__ = _operators(operator.sub)
    __mul__, __rmul__ = _operators(operator.mul)
    __truediv__, __rtruediv__ = _operators(operator.truediv)
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv)
    __mod__, __rmod__ = _operators(operator.mod)
    __pow__, __rpow__ = _operators(operator.pow)
    __and__, __rand__ = _operators(operator.and_)
    __or__, __ror__ = _operators(operator.or_)
    __xor__, __rxor__ = _operators(operator.xor)
    __lshift__, __rshift__ = _shift(operator.mul), _shift(operator.floordiv)
    __lt__, __gt__ = _operators(operator.lt)
    __le__, __ge__ = _operators(operator.le)
    __eq__, _ = _operators(operator.eq)
    __ne__, _ = _operators(operator.ne)

    def __neg__(self) -> TracedNumber:
        return 0 - self if self.kind is not float else traced_number(-self.tensor)

    def __pos__(self) -> TracedNumber:
        return self + 0 if self.kind is bool else self

    def __invert__(self) -> TracedNumber:
        if self.kind is not int:
            no_value("~ of a bool, which is deprecated,", OUTSIDE)
        return -1 - self

    def __abs__(self) -> TracedNumber:
        return traced_number(abs((self + 0 if self.kind is bool else self).tensor))


def traced_number(tensor: Tensor) -> TracedNumber:
    """Returns what a 0-d tensor holds as a Python number.

    Args:
        tensor: A 0-d tensor.
    """
    return TracedNumber(tensor, _KINDS[tensor.dtype.kind])


def positions(owner: object, index: object) -> object:
    """Returns an index of a tensor with integers that a tensor decides as 0-d tensors.

    Args:
        owner: What is indexed.
        index: The index.
    """
    if not isinstance(owner, Tensor):
        return index
    if isinstance(index, tuple):
        return tuple([positions(owner, i) for i in index])
    return index.tensor if isinstance(index, TracedNumber) and index.kind is int else index


def held(value: object) -> object:
    """Returns the tensor of a traced number, and anything else as it is.

    Args:
        value: Any object.
    """
    return value.tensor if isinstance(value, TracedNumber) else value
