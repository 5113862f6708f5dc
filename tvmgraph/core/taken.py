"""Chains of subscripts on the left of ``=``: ``x[rows][:, 0] = 1.0`` changes ``x``.

What an index of tensors, lists or masks takes out of a tensor is a copy, which a statement that
names it changes alone. Where nothing names it the change could be seen nowhere, and MindSpore,
in graph mode as in PyNative mode, makes it in the tensor that the chain begins with.
"""

from __future__ import annotations

import weakref
from sys import getrefcount
from typing import Protocol

_DEEPEST = 4  # subscripts of one statement; a loop of x = x[index] must not keep every index


class Indexed(Protocol):
    """What a tensor is here; see :class:`~tvmgraph.core.tensor.Tensor`."""

    def __getitem__(self, index: object, /) -> Indexed: ...

    def __setitem__(self, index: object, value: object, /) -> None: ...


class Place:
    """Where a tensor was taken out of: nothing here keeps the larger tensor alive.

    Args:
        whole: The larger tensor.
        at: The index.
        before: Where the larger tensor was itself taken out of.
    """

    __slots__ = ("at", "before", "depth", "whole")

    def __init__(self, whole: Indexed, at: object, before: Place | None = None) -> None:
        self.whole, self.at, self.before = weakref.ref(whole), at, before
        #: How many indices lead here.
        self.depth = 1 if before is None else before.depth + 1


def place_in(whole: Indexed, index: object) -> Place:
    """Returns where an index of tensors, lists or masks takes elements out of a tensor.

    Args:
        whole: The tensor.
        index: The index.
    """
    base = getattr(whole, "_base", None)
    if base is not None and not isinstance(base, Place):  # of a view, which keeps its tensor alive
        base = place_in(*base)
    return Place(whole, index, base if base is None or base.depth < _DEEPEST else None)


def store_back(part: Indexed) -> None:
    """Writes a part that nothing names on into the tensor that its chain of indices begins with.

    Args:
        part: What was changed.
    """
    place = getattr(part, "_base", None)
    if not isinstance(place, Place):
        return
    whole = place.whole()
    if whole is not None:  # named, so that the chain begins here
        whole[place.at] = part
    elif place.before is not None:
        whole = _again(place.before)
        if whole is not None:
            whole[place.at] = part
            store_back(whole)


def _again(place: Place) -> Indexed | None:
    """Takes out what a chain of subscripts had in its middle, where its beginning still is."""
    whole = place.whole()
    if whole is None and place.before is not None:
        whole = _again(place.before)
    return None if whole is None else whole[place.at]


def finish_chain(count: int, part: Indexed, value: object) -> None:
    """Writes a part on if no variable or object refers to it, as of a chain's.

    Args:
        count: How many refer to it, as its ``__setitem__`` sees it.
        part: The tensor.
        value: What the item became; that of ``x[rows][0] += 1`` refers to the part.
    """
    base = getattr(value, "_base", None)
    if count == _UNNAMED[0] + (isinstance(base, tuple) and base[0] is part):
        store_back(part)


class _Counted:
    """Finds out how many refer to an object of a chain, which Python's version decides."""

    def __setitem__(self, index: object, value: object) -> None:
        _UNNAMED.append(getrefcount(self))


_UNNAMED: list[int] = []
_Counted()[0] = None
