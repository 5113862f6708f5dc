"""Types of arguments as users and rows write them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from tvmgraph.errors import DTypeError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from tvmgraph.dtypes import DType

#: What NumPy columns compute with, of whatever dtype.
Array: TypeAlias = np.ndarray
#: Attributes of a call by name.
Attributes: TypeAlias = Mapping[str, object]
#: Attributes of a row as its columns read them: of the types that its signature says.
Attrs: TypeAlias = Mapping[str, Any]
#: What names a dtype where users write one; see :func:`tvmgraph.dtypes.dtype_of`.
DTypeLike: TypeAlias = "DType | np.dtype | type | str"
#: One axis or several, counted from either end.
AxisLike: TypeAlias = int | Sequence[int]
#: A file or folder.
PathLike: TypeAlias = str | os.PathLike[str]
#: A setting of a window: one number for all spatial axes, or one per axis.
PerAxis: TypeAlias = int | Sequence[int]
#: How many threads work: at least one.
Workers: TypeAlias = int


@runtime_checkable
class Unknown(Protocol):
    """A tensor of a capture, or a number that one holds, whose value is not known yet."""

    def as_size(self) -> object:
        """Returns the integer that it is as a size."""
        ...

    def as_tensor(self) -> object:
        """Returns the tensor that holds it."""
        ...


_LONG = 2048  # bits: longer integers may have more digits than Python shows


def literal(value: object) -> str:
    """Returns what tells plain data from all others of its class, as Python writes it.

    Args:
        value: A number, text, bytes or a constant of Python.
    """
    if isinstance(value, int) and value.bit_length() > _LONG:
        return hex(value)
    return repr(value)


def is_tuple(value: object) -> TypeIs[tuple[object, ...]]:
    """Whether an argument is a tuple, of whatever.

    Args:
        value: Any object.
    """
    return isinstance(value, tuple)


class ReflectedError(DTypeError):
    """An operand is a tuple, but not of elements (``__array_ufunc__`` is None, as NumPy has it).

    Operators of a Tensor leave it to the other operand's, such as ``__radd__``.
    """


def is_sequence(value: object) -> TypeIs[list[object] | tuple[object, ...]]:
    """Whether an argument is a list or a tuple, of whatever.

    Args:
        value: Any object.
    """
    return isinstance(value, (list, tuple))


def is_dict(value: object) -> TypeIs[dict[object, object]]:
    """Whether an argument is a dictionary, of whatever.

    Args:
        value: Any object.
    """
    return isinstance(value, dict)
