"""``mutable``: numbers that vary from the first call on."""

from __future__ import annotations

from typing import Any

from tvmgraph.capture.promotion import CONTAINERS, MutableFloat, MutableInt
from tvmgraph.capture.tree import tensors
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, either, reject

_KINDS = "bool, int, float, Tensor, tuple, list, dict"


def mutable(input_data: object, dynamic_len: bool = False) -> Any:
    """Marks numbers as varying, so that no value of them is compiled into a graph.

    A jitted function takes a marked ``int`` or ``float`` as an input of its graph from the first
    call on, where the code allows it; an unmarked one becomes an input when a second value is
    seen. Tensors are inputs anyway, and a ``bool`` is always part of the code.

    Args:
        input_data: A number, a Tensor, or a (nested) tuple, list or dict of them.
        dynamic_len: Whether the length of a tuple or list varies too; every length is compiled
            once.

    Returns:
        The same value, with its numbers marked; containers are copied, and those of tensors are
        inputs for ``GradOperation(get_all=True)``, which passes over others.

    Raises:
        DTypeError: if something else is passed or ``dynamic_len`` is no bool.
        ArgumentError: if ``dynamic_len`` is set for something that has no length.

    Example:
        >>> @ms.jit
        ... def scale(x, k):
        ...     return x * k
        >>> scale(Tensor([2.0]), ms.mutable(1.5)).item()
        3.0
    """
    if not isinstance(dynamic_len, bool):
        reject(DTypeError, "mutable",
               f"dynamic_len must be a bool, not {type(dynamic_len).__name__}")  # fmt: skip
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        reject(either(ArgumentError, TypeError), "mutable",
               f"dynamic_len=True needs a tuple or list, not {type(input_data).__name__}",
               fix="leave dynamic_len out")  # fmt: skip
    value = _marked(input_data, ())
    kind = CONTAINERS.get(type(value))
    return value if kind is None or not tensors(value) else kind(value)


def _marked(value: object, outer: tuple[int, ...]) -> Any:
    if isinstance(value, (bool, Tensor)):
        return value
    if isinstance(value, int):
        return MutableInt(value)
    if isinstance(value, float):
        return MutableFloat(value)
    if isinstance(value, (tuple, list, dict)) and id(value) not in outer:
        inside = (*outer, id(value))
        if isinstance(value, dict):
            return {k: _marked(v, inside) for k, v in value.items()}
        items = [_marked(v, inside) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    reject(DTypeError, "mutable",
           f"input_data must be one of {_KINDS}, or nested ones that do not hold themselves, "
           f"not {type(value).__name__}", f"{value!r:.60}")  # fmt: skip
