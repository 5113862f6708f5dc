"""What all transforms of data sets refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from inspect import CO_VARARGS
from types import FunctionType

from tvmgraph.errors import DTypeError, either, reject


def of_one_value(namespace: Mapping[str, object]) -> None:
    """Lets transforms that take one value refuse others as MindSpore's pipeline does.

    Args:
        namespace: The ``globals()`` of a module of transforms.
    """
    classes = {c for v in namespace.values() if isinstance(v, type) for c in v.__mro__}
    for cls in classes:
        call = vars(cls).get("__call__")
        if not isinstance(call, FunctionType) or not cls.__module__.startswith("tvmgraph.dataset."):
            continue
        if call.__code__.co_argcount == 2 and not call.__code__.co_flags & CO_VARARGS:
            cls.__call__ = _of_one(call)


def _of_one(call: Callable[[object, object], object]) -> Callable[..., object]:
    @functools.wraps(call)
    def checked(self: object, *values: object) -> object:
        if len(values) != 1:
            reject(either(DTypeError, RuntimeError), type(self).__name__,
                   f"it takes one value, not {len(values)}")  # fmt: skip
        return call(self, values[0])

    return checked
