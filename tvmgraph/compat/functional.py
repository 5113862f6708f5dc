"""All operator functions: ``from tvmgraph.ops import functional as F``.

Holds MindSpore's older names of some functions as well (``F.tensor_add`` is ``ops.add``).
"""

from __future__ import annotations

import sys
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import NotFoundError

#: Names of MindSpore 1.x that only this module has.
tuple_len = list_len = len


def scalar_to_array(input_x: object) -> Tensor:
    """Returns a number as a 0-d tensor.

    Args:
        input_x: A bool, an int or a float.
    """
    return F.scalar_to_tensor(input_x, None)


def identity(x: object) -> object:
    """Returns what it is given: a tensor as a value of its own, anything else itself.

    Programs that train on one device have it in place of the sum over devices, of all gradients.

    Args:
        x: Any object.
    """
    if isinstance(x, Tensor):
        return F.identity(x)
    return x


def make_range(*limits: int) -> tuple[int, ...]:
    """Returns the numbers of Python's ``range`` of the same arguments.

    Args:
        limits: Start, end and step, of which the end is needed.
    """
    return tuple(range(*limits))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in dir(sys.modules["tvmgraph.ops"]) if not n.startswith("_")]
    if name.startswith("__"):
        raise NotFoundError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules["tvmgraph.ops"], name)


def is_sequence_value_unknown(sequence: object) -> bool:
    """Whether a shape is not known yet; here every function that runs knows its shapes.

    Args:
        sequence: The shape.
    """
    return False


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(dir(sys.modules["tvmgraph.ops"])))
