"""What calls of one compiled function have in common: the kinds of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.checks import identified, own_attributes
from tvmgraph.capture.containers import items_in, pairs
from tvmgraph.capture.promotion import MutableFloat, MutableInt
from tvmgraph.core import state as versioned
from tvmgraph.core.arguments import literal
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor


def key_of(value: Any, leaves: list[Tensor]) -> object:
    """Returns the hashable kind of an argument and collects its tensors.

    A tensor counts by its type and whether it is a Parameter, a number or string by its value, a
    list, tuple or dict by its items and attributes, an array by its elements, a set, deque or
    buffer by identity and contents, any other object by identity.

    Args:
        value: An argument, or a container of arguments.
        leaves: Gets the tensors, in order.
    """
    if isinstance(value, Tensor):
        leaves.append(value)
        if versioned.hooked and value._hooks:
            return ("hooked", value.aval)
        if versioned.derived and type(value) in versioned.derived:
            return (type(value), value.aval)
        return (Parameter, value.aval) if isinstance(value, Parameter) else value.aval
    kind = value.__class__
    if kind is tuple or kind is list:
        return (kind, tuple([key_of(v, leaves) for v in value]))
    if kind is float:
        return (kind, repr(value))  # tells -0.0 from 0.0 and finds NaN again
    if value is None or kind in (int, bool, str, bytes, complex) or isinstance(value, dtypes.DType):
        return (kind, value)
    if kind is dict:
        return (kind, tuple([(_told_apart(k), key_of(v, leaves)) for k, v in value.items()]))
    if isinstance(value, dict):
        items = tuple([(_told_apart(k), key_of(v, leaves)) for k, v in pairs(value)])
        return (kind, items, own_attributes(value))
    if isinstance(value, (tuple, list)):
        return (kind, tuple([key_of(v, leaves) for v in items_in(value)]), own_attributes(value))
    if isinstance(value, np.ndarray):
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if kind is MutableInt or kind is MutableFloat:
        return (kind, literal(value))
    return identified(value)


def _told_apart(key: object) -> object:
    """Returns what tells a key of a dict from keys that are equal: 1, True and 1.0."""
    return key if key.__class__ is str else (key.__class__, key)
