"""Guards: what a captured function read besides its tensor arguments, and whether it still holds.

While a function is captured, every user frame is observed: the globals its code names, closures,
plain objects passed to it, and every Cell that is called. Their values are noted; a compiled entry
is used only while all of them still hold, so a changed attribute, global or closure recompiles
instead of giving a stale result. Tensors are guarded by identity alone: their elements are read
at every call.
"""

from __future__ import annotations

import argparse
import math
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.state import current_epoch
from tvmgraph.core.tensor import Tensor

Check = Callable[[Any], bool]

_ATOMS = (bool, int, str, bytes, type(None), complex, type(...), dtypes.DType, slice, range)
_OPAQUE = (
    types.ModuleType, type, types.BuiltinFunctionType, types.MethodType, Tensor, property,
    np.dtype, np.generic, types.GeneratorType, weakref.ref,
)  # fmt: skip
# plain data holders of the standard library: their attributes count like a user's own object
_HOLDERS = (types.SimpleNamespace, argparse.Namespace)
_MAX_DEPTH = 5
_BRIEF_ITEMS, _BRIEF_LENGTH = 8, 60  # how much of a value a message shows
_MAX_ITEMS = 4096
_SMALL = 64  # elements of a tensor that are compared one by one, should NumPy code write to them
_CELL_INTERNAL = ("_params", "_cells", "_graph_mode", "_inputs", "_flags")
_LIBRARIES = frozenset(sys.stdlib_module_names) | {
    "tvmgraph", "numpy", "ml_dtypes", "tvm", "tvm_ffi", "pytest", "_pytest", "pluggy", "IPython",
}  # fmt: skip


def is_cell(value: Any) -> bool:
    """Whether a value is a Cell or a class of Cells (which live in a room above this one)."""
    return getattr(type(value) if not isinstance(value, type) else value, "_is_cell", False) is True


def _same_float(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


def expect(value: Any, depth: int = 0) -> Check:
    """Returns a predicate that tells whether another value counts as the same."""
    kind = type(value)
    if kind is float:
        return lambda v: v.__class__ is float and _same_float(v, value)
    if isinstance(value, _ATOMS):
        return lambda v: v is value or (v.__class__ is kind and v == value)
    if isinstance(value, np.ndarray):
        return _expect_array(value.copy())
    if depth < _MAX_DEPTH and isinstance(value, (list, tuple)) and len(value) <= _MAX_ITEMS:
        return _expect_sequence(value, depth)
    if depth < _MAX_DEPTH and isinstance(value, dict) and len(value) <= _MAX_ITEMS:
        return _expect_dict(value, depth)
    if isinstance(value, (set, frozenset)):
        kept = frozenset(value)
        return lambda v: v.__class__ is kind and v == kept
    if isinstance(value, deque) and depth < _MAX_DEPTH:
        inner = _expect_sequence(list(value), depth)
        return lambda v: v.__class__ is kind and inner(list(v))
    if isinstance(value, types.FunctionType) and depth < _MAX_DEPTH and not _is_fixed(value):
        return _expect_function(value, depth)
    if _is_plain_object(value) and depth < _MAX_DEPTH:
        inner = _expect_dict(_attributes(value), depth)
        return lambda v: v is value and inner(_attributes(v))
    return lambda v: v is value


def _is_plain_object(value: Any) -> bool:
    """Whether an object is a user's instance whose attributes count."""
    if isinstance(value, _HOLDERS):
        return True
    if isinstance(value, (*_OPAQUE, types.FunctionType)) or is_cell(value):
        return False
    module = getattr(type(value), "__module__", "") or ""
    has_attributes = hasattr(value, "__dict__") or hasattr(type(value), "__slots__")
    return has_attributes and module.partition(".")[0] not in _LIBRARIES


def _attributes(value: Any) -> dict[str, Any]:
    """Returns the attributes of a plain object, those in slots included."""
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                found[name] = getattr(value, name)
    return found


def _expect_array(copy: np.ndarray) -> Check:
    def same(v: Any) -> bool:
        return (
            isinstance(v, np.ndarray) and v.dtype == copy.dtype and v.shape == copy.shape
            and v.tobytes() == copy.tobytes()
        )  # fmt: skip

    return same


def _expect_sequence(value: Any, depth: int) -> Check:
    kind, checks = type(value), [expect(v, depth + 1) for v in value]
    count = len(checks)

    def same(v: Any) -> bool:
        return v.__class__ is kind and len(v) == count and all(c(x) for c, x in zip(checks, v))

    return same


def _expect_dict(value: dict[Any, Any], depth: int) -> Check:
    kind, checks = type(value), {k: expect(v, depth + 1) for k, v in value.items()}

    def same(v: Any) -> bool:
        return (
            v.__class__ is kind and v.keys() == checks.keys()
            and all(c(v[k]) for k, c in checks.items())
        )  # fmt: skip

    return same


def _expect_function(value: types.FunctionType, depth: int) -> Check:
    """Expects the same code, defaults and closure."""
    code = value.__code__
    checks = [expect(_contents(c), depth + 1) for c in value.__closure__ or ()]
    defaults = expect((value.__defaults__, value.__kwdefaults__), depth + 1)

    def same(v: Any) -> bool:
        return (
            v is value
            and v.__code__ is code
            and defaults((v.__defaults__, v.__kwdefaults__))
            and all(c(_contents(x)) for c, x in zip(checks, v.__closure__ or ()))
        )

    return same


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_mutable(value: Any) -> bool:
    """Whether a value can change without an attribute being assigned."""
    if isinstance(value, (list, dict, set, deque, np.ndarray)):
        return True
    if isinstance(value, tuple):
        return any(_is_mutable(v) for v in value)
    return _is_plain_object(value)


class Guards:
    """All conditions under which a captured function may be reused."""

    def __init__(self) -> None:
        self._cells: dict[int, tuple[weakref.ref[Any], _CellState]] = {}
        self._always: dict[Any, tuple[str, Callable[[], Any], Check]] = {}
        self._before: dict[Any, str] = {}  # what guarded values were, for messages
        self._codes: set[Any] = set()
        self._epoch = -1

    # ---- noting -----------------------------------------------------------------------------

    def add_cell(self, cell: Any) -> None:
        """Guards the attributes of a Cell and of every Cell below it."""
        if id(cell) in self._cells:
            return
        self._cells[id(cell)] = (weakref.ref(cell), _CellState(cell))
        for name, value in cell.__dict__.items():
            if name not in _CELL_INTERNAL and _is_mutable(value):
                self._add(
                    ("attribute", id(cell), name), f"{type(cell).__name__}.{name}",
                    _attribute_reader(cell, name), value,
                )  # fmt: skip
        self._add_class_data(type(cell))
        for child in cell._cells.values():
            if child is not None:
                self.add_cell(child)

    def _add_class_data(self, cls: type) -> None:
        for base in cls.__mro__:
            if base.__module__.partition(".")[0] in _LIBRARIES:
                continue
            for name, value in vars(base).items():
                if not name.startswith("__") and isinstance(value, (*_ATOMS, float, list, dict)):
                    key = ("class", base, name)
                    self._add(key, f"{base.__name__}.{name}", _attribute_reader(base, name), value)

    def add_function(self, function: Any) -> None:
        """Guards the Cell that the captured function is bound to, and its closure."""
        self._note_cells(getattr(function, "__self__", None))
        function = getattr(function, "__func__", function)
        if isinstance(function, types.FunctionType):
            self._add(("function", id(function)), function.__name__, lambda: function, function)
        for name, cell in zip(
            getattr(getattr(function, "__code__", None), "co_freevars", ()),
            getattr(function, "__closure__", None) or (),
        ):
            value = _contents(cell)
            self._note_cells(value)
            key = ("closure", id(cell))
            self._add(key, f"closure variable {name!r}", lambda c=cell: _contents(c), value)

    def add_frame(self, frame: types.FrameType) -> None:
        """Guards the globals that a user frame's code names and the objects passed to it."""
        code, space = frame.f_code, frame.f_globals
        if (space.get("__name__") or "").partition(".")[0] in _LIBRARIES:
            return
        for name in code.co_varnames[: code.co_argcount]:
            value = frame.f_locals.get(name)
            if _is_plain_object(value):
                self._add(("object", id(value)), f"object {name!r}", lambda v=value: v, value)
        if (code, id(space)) in self._codes:
            return
        self._codes.add((code, id(space)))
        for name in code.co_names:
            if name in space:
                self._add_global(space, name, code)

    def add_call(self, function: Any, values: dict[str, Any]) -> None:
        """Guards what an interpreted function may read: globals, closure, objects passed to it."""
        self.add_function(function)
        for name, value in values.items():
            if _is_plain_object(value):
                self._add(("object", id(value)), f"object {name!r}", lambda v=value: v, value)
        code, space = function.__code__, function.__globals__
        if (code, id(space)) not in self._codes:
            self._codes.add((code, id(space)))
            for name in sorted(_names_of(code)):
                if name in space:
                    self._add_global(space, name, code)

    def add_read(self, owner: Any, name: str) -> None:
        """Guards an attribute of a plain object that interpreted code reads."""
        if _is_plain_object(owner) and name in getattr(owner, "__dict__", ()):
            key, label = ("read", id(owner), name), f"{type(owner).__name__}.{name}"
            self._add(key, label, lambda: vars(owner).get(name), vars(owner)[name])

    def _add_global(self, space: dict[str, Any], name: str, code: types.CodeType) -> None:
        value = space[name]
        self._note_cells(value)
        self._add(("global", id(space), name), f"global {name!r}", lambda: space.get(name), value)
        holder = isinstance(value, (types.ModuleType, type))
        root = getattr(value, "__module__", None) or getattr(value, "__name__", "")
        if holder and root.partition(".")[0] not in _LIBRARIES and not is_cell(value):
            for attr in code.co_names:
                if attr in vars(value) and not callable(vars(value)[attr]):
                    key = ("member", id(value), attr)
                    label = f"{name}.{attr}"
                    self._add(key, label, _attribute_reader(value, attr), vars(value)[attr])

    def _note_cells(self, value: Any) -> None:
        if is_cell(value) and not isinstance(value, type):
            self.add_cell(value)
        elif isinstance(value, (list, tuple)):
            for v in value:
                self._note_cells(v)

    def _add(self, key: Any, label: str, read: Callable[[], Any], value: Any) -> None:
        if key not in self._always:
            self._always[key] = (label, read, expect(value))
            self._before[key] = brief(value)

    def add_value(self, tensor: Tensor) -> None:
        """Guards the elements of a tensor that Python code looked at."""
        array = tensor.array
        small = expect(array) if array.size <= _SMALL else lambda _: True
        token = tensor.token

        def same(t: Any) -> bool:
            return t.token is token and small(t.array)

        label = f"the value of {getattr(tensor, 'name', 'a tensor')}"
        self._always.setdefault(("value", id(tensor)), (label, lambda: tensor, same))

    def allow_any_tensor(self, cell: Any, name: str) -> None:
        """Stops guarding which tensor an attribute holds: the function itself replaces it."""
        if id(cell) in self._cells:
            self._cells[id(cell)][1].plain[name] = lambda v: isinstance(v, Tensor)

    # ---- checking ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Drops guards that can never fail; called once when the capture is over."""
        self._always = {
            k: g for k, g in self._always.items() if not (k[0] == "global" and _is_fixed(g[1]()))
        }

    def failure(self) -> str | None:
        """Returns what changed, or ``None`` while everything holds."""
        for key, (label, read, same) in self._always.items():
            if not same(read()):
                return changed(label, self._before.get(key, ""), brief(read()))
        epoch = current_epoch()
        if epoch == self._epoch:  # no Cell was written to since the last look
            return None
        for ref, before in self._cells.values():
            cell = ref()
            if cell is None:  # made during the capture; nobody can change it any more
                continue
            name = before.difference(cell)
            if name is not None:
                now = brief(cell.__dict__[name]) if name in cell.__dict__ else ""
                return changed(f"{type(cell).__name__}.{name}", before.texts.get(name, ""), now)
        self._epoch = epoch
        return None


def brief(value: Any) -> str:
    """Returns plain data as short text for a message; ``""`` for anything else."""
    if isinstance(value, (*_ATOMS, float)):
        text = repr(value)
    elif isinstance(value, (list, tuple)) and len(value) <= _BRIEF_ITEMS:
        parts = [brief(v) for v in value]
        text = f"[{', '.join(parts)}]" if all(parts) else ""
    else:
        return ""
    return text if len(text) <= _BRIEF_LENGTH else f"{text[:_BRIEF_LENGTH]}..."


def changed(label: str, before: str, now: str) -> str:
    """Returns ``label changed: before -> now``, as far as the values can be shown."""
    values = f": {before or 'something else'} -> {now or 'something else'}"
    return f"{label} changed" + (values if before != now else "")


def _is_fixed(value: Any) -> bool:
    """Whether a global is a library module or function, which nobody rebinds in practice."""
    root = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    if not isinstance(root, str):
        return False
    kinds = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
    return isinstance(value, kinds) and root.partition(".")[0] in _LIBRARIES


def _attribute_reader(owner: Any, name: str) -> Callable[[], Any]:
    ref = weakref.ref(owner)

    def read() -> Any:
        return vars(ref()).get(name) if ref() is not None else None

    return read


def _names_of(code: types.CodeType) -> set[str]:
    """Returns the global names of a function and of those defined in it."""
    names = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names |= _names_of(c)
    return names


class _CellState:
    """What a Cell looked like: its parameters, sub-cells, flags and plain attributes."""

    def __init__(self, cell: Any) -> None:
        self.params = {k: id(v) for k, v in cell._params.items()}
        self.cells = {k: id(v) for k, v in cell._cells.items()}
        self.flags = _expect_dict(dict(cell._flags), 1)
        self.plain = {
            k: expect(v, 1)
            for k, v in cell.__dict__.items()
            if k not in _CELL_INTERNAL and not k.startswith("_jit_bound_")
        }
        self.texts = {k: brief(cell.__dict__[k]) for k in self.plain}

    def difference(self, cell: Any) -> str | None:
        """Returns the name of something that differs, or ``None``."""
        now = cell.__dict__
        for name, same in self.plain.items():
            if name not in now or not same(now[name]):
                return name
        if not self.flags(cell._flags):
            return "a flag"
        for table, before in ((cell._params, self.params), (cell._cells, self.cells)):
            if {k: id(v) for k, v in table.items()} != before:
                names = set(table) ^ set(before) or {
                    k for k, v in table.items() if id(v) != before[k]
                }
                return sorted(names)[0]
        return None
