"""What a loop carries for a value: a Python number is a 0-d tensor that remembers what it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvmgraph.capture import tree
from tvmgraph.capture.merge import as_tensor, zeros
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import NUMBERS, TracedNumber
from tvmgraph.core.arguments import literal
from tvmgraph.core.op import F
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor


def carried(value: object) -> object:
    """Returns a value with its numbers as 0-d tensors that remember that they are numbers.

    Args:
        value: Any object.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TracedNumber):
        return value.tensor
    if isinstance(value, Symbol):
        return marked(as_tensor(value), value.kind)
    if type(value) in NUMBERS:
        return CarriedNumber(value, type(value))
    if isinstance(value, dict):
        return type(value)((k, carried(v)) for k, v in value.items())
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(carried(v) for v in value)
    return value


class CarriedNumber(Tensor):
    """The initial value of a carried number."""

    __slots__ = ("kind",)

    def __init__(self, value: object, kind: type) -> None:
        super().__init__(as_tensor(value, NUMBERS[kind]))
        self.kind = kind


def same_number(a: object, b: object) -> bool:
    """Whether two values are one number.

    Args:
        a: A value.
        b: Another one.
    """
    if isinstance(a, TracedNumber) or isinstance(b, TracedNumber):
        return a is b
    if isinstance(a, Symbol):
        return isinstance(b, Symbol) and a.text == b.text
    return type(a) is type(b) and type(a) in NUMBERS and literal(a) == literal(b)


def marked(tensor: Tensor, number: type | None) -> Tensor:
    """Notes that a loop carries a 0-d tensor for a Python number.

    Args:
        tensor: A 0-d tensor.
        number: The class of the number that it stands for; None for none.
    """
    if isinstance(tensor, TracedTensor):
        tensor.number = number
    return tensor


def number_of(tensor: Tensor) -> type | None:
    """Returns the class of the number for which a loop carries a tensor, if it does that.

    Args:
        tensor: A tensor of the capture, or of the outside.
    """
    if isinstance(tensor, CarriedNumber):
        return tensor.kind
    return tensor.number if isinstance(tensor, TracedTensor) else None


def shown(value: object, tensors: Iterable[Tensor]) -> Any:
    """Returns what variables hold for a carried value: its numbers are numbers again.

    Args:
        value: The carried value.
        tensors: What comes instead of its tensors; numbers where those of ``value`` are.
    """
    pairs = zip(tree.tensors(value), tensors)
    kinds = ((t, number_of(old)) for old, t in pairs)
    return tree.replace(value, iter([t if k is None else TracedNumber(t, k) for t, k in kinds]))


def zeros_like_outside(t: Tensor) -> Tensor:
    """Returns zeros of a type, still marked where they stand for a number.

    Args:
        t: A tensor of the outside of the loop.
    """
    if isinstance(t, CarriedNumber):
        return CarriedNumber(t.kind(0), t.kind)
    return marked(zeros(t.aval), number_of(t))


def typed(o: CarriedNumber, n: Tensor) -> Tensor:
    """Returns an initial number in the type that an iteration makes of it.

    Args:
        o: The initial number.
        n: What an iteration makes of it.
    """
    kind = number_of(n)
    if kind is not None:
        return CarriedNumber(o.item(), kind)
    return F.cast(Tensor(o), n.dtype)


def fits(n: CarriedNumber, o: Tensor) -> bool:
    """Whether a number can be carried as a tensor of the type of ``o``.

    Args:
        n: The number.
        o: The tensor.
    """
    return o.shape == () and o.dtype.kind in {bool: "b", int: "iuf", float: "f"}[n.kind]


def structure(value: object) -> object:
    """Returns the structure of nested containers.

    Args:
        value: Lists, tuples and dicts, in one another.
    """
    if isinstance(value, Tensor):
        return Tensor
    if isinstance(value, dict):
        return (dict, [(k, structure(v)) for k, v in value.items()])
    if isinstance(value, (tuple, list)):
        return (type(value), [structure(v) for v in value])
    return literal(value)


def tensor_flag() -> Tensor:
    """Returns a false flag."""
    return as_tensor(False)
