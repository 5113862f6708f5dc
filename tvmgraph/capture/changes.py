"""Which code changes what is outside of it, found out without running it.

A function that runs with graph breaks is captured several times, and what was refused runs again in
Python. Code that is not interpreted would change things every time, so with graph breaks it is
refused before it does: Python runs it, once.
"""

from __future__ import annotations

import array
import bisect
import collections
import dis
import functools
import heapq
import operator
import types
from collections.abc import Callable

import numpy as np

MUTATING = frozenset({
    "__delitem__", "__iadd__", "__iand__", "__imul__", "__ior__", "__isub__", "__ixor__",
    "__setitem__", "add", "append", "clear", "difference_update", "discard",
    "extend", "insert", "intersection_update", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "symmetric_difference_update", "update",
})  # fmt: skip
#: Methods of other objects than list, dict and set.
_CHANGING = MUTATING | {
    "add_note", "appendleft", "extendleft", "fill", "frombytes", "fromlist",
    "itemset", "move_to_end", "popleft", "put", "resize", "rotate", "setfield", "subtract", "write",
}  # fmt: skip
#: What such methods belong to.
CHANGEABLE = (
    list, dict, set, collections.deque, bytearray, memoryview, array.array, np.ndarray,
    BaseException,
)  # fmt: skip
_FUNCTIONS = frozenset((
    heapq.heapify, heapq.heappop, heapq.heappush, heapq.heappushpop, heapq.heapreplace,
    bisect.insort, bisect.insort_left, bisect.insort_right, operator.delitem, operator.iadd,
    operator.iconcat, operator.setitem, setattr, delattr, np.copyto, np.fill_diagonal, np.place,
    np.put,
))  # fmt: skip
_MADE_BY = frozenset(("__init__", "__post_init__", "__new__"))
_WRITES = {
    "STORE_GLOBAL": "the global {!r}", "DELETE_GLOBAL": "the global {!r}",
    "STORE_ATTR": "the attribute {!r}", "DELETE_ATTR": "the attribute {!r}",
    "STORE_SUBSCR": "an item", "DELETE_SUBSCR": "an item", "STORE_SLICE": "an item",
}  # fmt: skip


def changed_by_call(
    function: object, args: tuple[object, ...], is_outside: Callable[[object], bool]
) -> str:
    """Returns what a call of a function that cannot be read changes; nothing if it changes nothing.

    Args:
        function: The function, or the bound method of an object of C.
        args: Its arguments.
        is_outside: Whether a container existed before the capture.
    """
    changed = [*_changed_by(function, args[:1])]
    for given in args:  # what the function may call
        if given is print:
            return "what was printed"
        changed += _changed_by(given, args)
    found = [type(v).__name__ for v in changed if isinstance(v, CHANGEABLE) and is_outside(v)]
    return f"a {found[0]} from outside" if found else ""


def _changed_by(function: object, args: tuple[object, ...]) -> tuple[object, ...]:
    if not callable(function):
        return ()
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(owner, CHANGEABLE) and name in _CHANGING:
        return (owner,)
    return args if _takes_what_it_changes(function, name) else ()


def _takes_what_it_changes(function: object, name: str) -> bool:
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return name in _CHANGING
    return type(function).__hash__ is not None and function in _FUNCTIONS


def changed_by_code(frame: types.FrameType) -> str:
    """Returns what the code of a frame may change outside of it; nothing if it changes nothing.

    Args:
        frame: The frame.
    """
    found, space = _changes(frame.f_code), frame.f_globals
    for what, owner in found:
        if owner is None or not isinstance(space.get(owner), types.ModuleType):
            return what
    return ""


@functools.lru_cache(maxsize=4096)
def _changes(code: types.CodeType) -> tuple[tuple[str, str | None], ...]:
    """Returns what code changes, and the global whose method does it."""
    found: list[tuple[str, str | None]] = []
    owner, read = None, None  # the global, and the variable, that was loaded last
    for step in dis.get_instructions(code):
        name, kind = step.argval, step.opname
        own = code.co_name in _MADE_BY and read is not None and read == code.co_varnames[:1][0]
        if kind in _WRITES and not (kind == "STORE_ATTR" and own):
            found.append((_WRITES[kind].format(name), None))
        elif kind == "STORE_DEREF" and name in code.co_freevars:
            found.append((f"the variable {name!r} of the function around it", None))
        elif kind in ("LOAD_ATTR", "LOAD_METHOD") and name in _CHANGING:
            found.append((f"something with {name}()", owner))
        elif kind in ("LOAD_GLOBAL", "LOAD_NAME") and name in ("print", "setattr", "delattr"):
            found.append((f"something with {name}()", None))
        owner = name if kind in ("LOAD_GLOBAL", "LOAD_NAME") else None
        read = None
        if kind.startswith("LOAD_FAST"):
            read = name[-1] if isinstance(name, tuple) else name
        elif kind.endswith("LOAD_FAST"):  # STORE_FAST_LOAD_FAST
            read = name[-1]
    return tuple(found)
