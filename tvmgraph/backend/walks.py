"""Walks over expressions of TVM, and the elements of its lists, for who looks at very many.

A network has some thousands of loop nests, and their analyses look at each of their expressions
dozens of times. These are small: of a walk by ``tvm_ffi.structural_walk`` half of the time goes to
finding out what it was called with, and of a loop over one of TVM's lists three quarters do. For
whole functions, TVM's own walks are as good.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tvm_ffi
from tvm_ffi.core import TypeSchema

from tvmgraph.backend.tvm_private import private

T = TypeVar("T")
#: Classes of nodes, and what is called with every node of one of them.
Visit = tuple[type | tuple[type, ...], Callable[..., object]]

_POSTORDER = int(tvm_ffi.WalkOrder.POSTORDER)


def walk(root: object, *visits: Visit) -> None:
    """Calls functions with the nodes of some classes, those that a node holds before itself.

    Args:
        root: An expression, or several.
        *visits: Classes and functions. A node goes to the first that takes its class.
    """
    private("ffi.StructuralWalk")(root, _entries(visits), (), _POSTORDER)


def rewrite(root: object, *visits: Visit) -> Any:
    """Replaces nodes of some classes, those that a node holds before itself.

    Args:
        root: An expression, or several; they are not changed.
        *visits: Classes and functions, which return what stands in the place of a node. A node goes
            to the first that takes its class.

    Returns:
        The new expression; of several, one of TVM's lists.
    """
    return private("ffi.StructuralMap")(root, _entries(visits), (), _POSTORDER)


def elements(array: Sequence[T]) -> list[T]:
    """The elements of one of TVM's lists.

    Args:
        array: The list: indices of a load, extents of a buffer, or the like.
    """
    if not isinstance(array, tvm_ffi.Array):
        return list(array)
    get = private("ffi.ArrayGetItem")
    return [get(array, i) for i in range(len(array))]


def _entries(visits: Sequence[Visit]) -> list[tuple[int, Callable[..., object]]]:
    return [(number, visit) for kinds, visit in visits for number in _numbers(kinds)]


@functools.cache
def _numbers(kinds: type | tuple[type, ...]) -> tuple[int, ...]:
    """TVM's numbers of classes of nodes."""
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    return tuple(TypeSchema.from_annotation(kind).origin_type_index for kind in each)
