"""The shortest way from a call to compiled code: a generated Python function.

A call like the one before needs no look-up. Its arguments, the things that the capture read and
the versions of everything else are compared in one expression; what compiled code gets of the
captured tensors is kept until some tensor is written. Anything unusual (another kind of arguments,
a tape, an outer capture, a flag that watches calls) is a *miss*: the caller looks the entry up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any

from tvmgraph.capture import tree
from tvmgraph.config import settings as configuration
from tvmgraph.config.flag_registry import active
from tvmgraph.core import state as versioned
from tvmgraph.core import storage
from tvmgraph.core.lending import may_change
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.forking import CALL_FILE
from tvmgraph.graph.sizes import fixed_type, sizes_of
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.runtime.ownership import share

if TYPE_CHECKING:
    from tvmgraph.core.types import TensorType
    from tvmgraph.jit.entry import Entry
    from tvmgraph.runtime import Executable

MISS = object()
FastCall = Callable[[tuple[Any, ...]], Any]
_BY_VALUE = (int, bool, str, bytes)  # arguments of exactly these classes are compared by value
_MAX_KINDS = 16  # kinds of arguments of one entry that have a function of their own


def versions() -> tuple[int, int]:
    """Returns numbers that change with attributes and tensor types, and with settings."""
    return versioned.current_epoch(), configuration.settings_version


def fast_call(entry: Entry, args: tuple[object, ...], now: tuple[int, int]) -> FastCall | None:
    """Returns the function that serves calls like one that was served, ``None`` if it takes more.

    Args:
        entry: The entry that served the call.
        args: The arguments of the call, all positional.
        now: :func:`versions` before the entry was checked.
    """
    compiled = entry.compiled
    if not isinstance(compiled, CompiledGraph) or compiled.steps is not None:
        return None
    if entry.aliases is not None or (entry.captured.aliasing_matters and entry.refs):
        return None
    if not all(isinstance(a, Tensor) or a is None or type(a) in _BY_VALUE for a in args):
        return None
    kind = tuple([a.aval if isinstance(a, Tensor) else (type(a), a) for a in args])
    if versioned.derived:
        if any(type(a) in versioned.derived for a in args):
            return None
        kind = (*kind, *map(type, args))
    found = entry.fast.get(kind)
    if found is None:
        if len(entry.fast) >= _MAX_KINDS:
            return None
        found = entry.fast[kind] = _Source(entry, compiled, args).function()
    space: dict[str, object] = found.__globals__  # pyright: ignore[reportFunctionMemberAccess]
    space["epoch"], space["version"] = now
    return found


#: Numbers of writes and lendings when captured tensors were looked up, what runs, and its handles.
Ready = tuple[int, int, "Executable", tuple[object, ...]]


class _Source:
    """Writes the function for one entry and one kind of arguments."""

    def __init__(self, entry: Entry, compiled: CompiledGraph, args: tuple[object, ...]) -> None:
        from tvmgraph.runtime import executable  # loads TVM's runtime

        self.runtime = executable
        self.entry, self.compiled = entry, compiled
        self.args = args
        self.space: dict[str, Any] = {
            "MISS": MISS, "state": state, "versioned": versioned, "configuration": configuration,
            "active": active, "storage": storage, "Tensor": Tensor, "new": object.__new__,
            "Parameter": Parameter, "to_ffi": executable.to_ffi,
            "from_ffi": executable.from_ffi, "entry": entry,
            "starmap": starmap, "turn": versioned.turn,
        }  # fmt: skip
        self._known: dict[int, str] = {}

    def name(self, value: object) -> str:
        """Returns the name under which the function knows an object."""
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = f"k{len(self._known)}"
            self.space[found] = value
        return found

    def function(self) -> FastCall:
        """Compiles the function."""
        names = [f"a{i}" for i in range(len(self.args))]
        unpack = f"{', '.join(names)}, = args" if names else "() = args"
        body = self._direct() if self._is_direct() else self._whole()
        lines = [
            "try:",
            f"    {unpack}",
            f"    if not ({' and '.join(self._conditions())}):",
            "        return MISS",
            "except (AttributeError, LookupError, TypeError, ValueError):",
            "    return MISS",
            *body,
        ]
        if self.entry.acts:
            lines = ["with turn:", *_indented(lines)]
        text = self.space["source"] = "\n".join(["def fast(args):", *_indented(lines)])
        exec(compile(text, CALL_FILE, "exec"), self.space)
        self.args = ()  # which live on only as long as the caller wants
        return self.space["fast"]

    def _conditions(self) -> list[str]:
        kinds: list[str] = []
        for i, a in enumerate(self.args):
            if isinstance(a, Tensor):
                kinds.append(f"a{i}.aval is {self.name(a.aval)}")
                if versioned.derived:
                    kinds.append(f"a{i}.__class__ is {self.name(type(a))}")
            elif a is None:
                kinds.append(f"a{i} is None")
            else:
                kinds.append(f"a{i}.__class__ is {type(a).__name__} and a{i} == {a!r}")
        if self.entry.captured.aliasing_matters:  # no tensor may come in several ways
            tensors = [i for i, a in enumerate(self.args) if isinstance(a, Tensor)]
            kinds += [f"a{i} is not a{j}" for i in tensors for j in tensors if i < j]
            kinds += [f"a{i}._base is None" for i in tensors if len(tensors) > 1]
            kinds += [
                f"isinstance(a{i}, Parameter) is {isinstance(self.args[i], Parameter)}"
                for i in tensors
            ]
            held = {id(t) for t, _ in self.entry.held}
            if held:
                kinds += [f"id(a{i}) not in {self.name(held)}" for i in tensors]
        guarded = self.entry.settings.attr_guard
        return [
            *kinds, "versioned.epoch == epoch", "configuration.settings_version == version",
            "not active.watched",
            *(self.entry.captured.guards.conditions(self.name) if guarded else []),
            "state.interpreter is None", "not state.tapes",
        ]  # fmt: skip

    # ---- what is done -----------------------------------------------------------------------

    def _whole(self) -> list[str]:
        """Runs the entry as any call does."""
        leaves = ", ".join([f"a{i}" for i, a in enumerate(self.args) if isinstance(a, Tensor)])
        return [f"return entry.run([{leaves}], (args, {{}}))"]

    def _is_direct(self) -> bool:
        """Whether compiled code takes the tensor arguments in order, then captured tensors."""
        order = self.entry.order
        count = sum(isinstance(a, Tensor) for a in self.args)
        inputs = tuple(range(count))
        tensors = all(isinstance(h, Tensor) for h in order[count:])
        if order[:count] != inputs or not tensors or self.entry.resolve is not None:
            return False
        executable = self.compiled.executable
        if isinstance(executable, FrozenExecutable):
            return executable.keeps(count)
        return True

    def _direct(self) -> list[str]:
        """Calls compiled code and wraps what it returns."""
        tensors = [f"a{i}" for i, a in enumerate(self.args) if isinstance(a, Tensor)]
        executable = self.compiled.executable
        self.on_host = executable.on_host
        if self.on_host:  # what `handle` does, without the call
            given = [f"{a}._ffi or to_ffi({a})" for a in tensors]
        else:
            given = [f"{self.name(executable.handle)}({a})" for a in tensors]
        leaves = f"[{', '.join(tensors)}]"
        if given and self._is_alone(executable, len(tensors)):
            self.space["executable"], looked_up = executable, []
        else:
            looked_up, given = self._ready(executable, leaves), [*given, "*held"]
        lines = [
            *looked_up,
            *self.runtime.call_statements(", ".join(given), self.entry.acts),
            *self._results(leaves),
        ]
        return _as_one(lines, leaves) if self.entry.acts else lines

    def _is_alone(self, executable: Executable | FrozenExecutable, count: int) -> bool:
        """Whether compiled code takes ``count`` arguments and nothing that was captured."""
        fixed = not isinstance(executable, FrozenExecutable) and not self.compiled.overwritten
        return fixed and len(self.entry.order) == count

    def _ready(self, executable: Executable | FrozenExecutable, leaves: str) -> list[str]:
        """Looks captured tensors up again after a write to any tensor."""
        stale = "at != versioned.writes"
        counting: list[str] = []
        if isinstance(executable, FrozenExecutable) or not self.on_host:
            stale += " or lent != storage.lendings"
        if isinstance(executable, FrozenExecutable):
            counting = [f"{self.name(executable)}.calls += 1"]
        self.space["refresh"] = self._refresh
        self.space["ready"] = (-1, -1, None, ())
        return [
            *counting,
            "at, lent, executable, held = ready",
            f"if {stale}:",
            "    held = None",  # the storage of a parameter must not be held twice
            f"    at, lent, executable, held = refresh({leaves})",
        ]

    def _refresh(self, leaves: list[Tensor]) -> Ready:
        """Looks the captured tensors up again."""
        with versioned.turn:
            return self._resolved(leaves)

    def _resolved(self, leaves: list[Tensor]) -> Ready:
        at, lent = versioned.writes, storage.lendings
        self.space["ready"] = (-1, -1, None, ())
        executable = self.compiled.executable
        args: Sequence[Tensor] = [*leaves, *self.entry.order[len(leaves) :]]  # pyright: ignore
        if isinstance(executable, FrozenExecutable):
            executable, args = executable.resolve(args)
        elif self.compiled.overwritten:
            args = executable.for_writing(args, self.compiled.overwritten, consume=True)
        if not self.entry.acts:
            share(args[len(leaves) :])
        handles = tuple([executable.handle(t) for t in args[len(leaves) :]])
        ready = (at, lent, executable, handles)
        if executable.on_host or not any(map(may_change, args[len(leaves) :])):
            self.space["ready"] = ready
        return ready

    def _results(self, leaves: str) -> list[str]:
        """Wraps the results; a bare tensor is returned at once."""
        compiled = self.compiled
        captured = self.entry.captured
        params = [p.value for p in captured.graph.params]
        sizes = sizes_of(params, [a.shape for a in self.args if isinstance(a, Tensor)])
        types = [fixed_type(v.type, sizes) for v in captured.graph.outputs]
        lines: list[str] = []
        for i, kind in enumerate(types):
            lines += self._wrapped(f"t{i}", f"result[{i}]" if len(types) > 1 else "result", kind)
        outputs = f"[{', '.join(f't{i}' for i in range(len(types)))}]"
        bare = captured.result if isinstance(captured.result, tree.Leaf) else None
        if not self.entry.acts and bare is not None and not compiled.constants:
            if bare.kind == "output":
                return [*lines, f"return t{bare.value}"]
            if bare.kind == "view" and bare.value[1].kind in ("argument", "object"):
                own, around, index = bare.value
                tensors = [f"a{i}" for i, a in enumerate(self.args) if isinstance(a, Tensor)]
                given = around.kind == "argument"
                whole = tensors[around.value] if given else self.name(around.value)
                view = f"t{own.value}"
                return [*lines, f"{view}._base = {whole}, {self.name(index)}", f"return {view}"]
        if compiled.constants:
            lines += [f"outputs = {outputs}", f"{self.name(compiled.own_constants)}(outputs)"]
            outputs = "outputs"
        kept = "kept" if self.entry.acts else None
        return [*lines, f"return entry.finish({leaves}, (args, {{}}), {outputs}, {kept})"]

    def _wrapped(self, name: str, value: str, kind: TensorType) -> list[str]:
        known = self.name(kind)
        if not self.on_host:
            wrapped = self.compiled.executable.wrapped
            return [f"{name} = {self.name(wrapped)}({value}, {known})"]
        return self.runtime.wrap_statements(name, value, kind, known)


def _as_one(lines: list[str], leaves: str) -> list[str]:
    """A call, within the turn, whose changes are made as one, as by :meth:`Entry.run`."""
    return [
        "kept = []",
        "try:",
        *_indented(lines),
        "except BaseException:",
        "    while kept:",
        "        try:",
        f"            entry.complete(kept, {leaves}, (args, {{}}))",
        "            break",
        "        except KeyboardInterrupt:",
        "            continue",
        "    raise",
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
