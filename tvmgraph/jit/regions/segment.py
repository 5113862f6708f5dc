"""Segments: runs of statements of a function that are compiled on their own."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tvmgraph import dtypes
from tvmgraph.capture import checks
from tvmgraph.capture.changes import MUTATING
from tvmgraph.capture.function_source import definition_of
from tvmgraph.capture.promotion import PLAIN
from tvmgraph.capture.settings import Settings
from tvmgraph.capture.sources import has_references, reference
from tvmgraph.capture.tree import has_tensor_keys
from tvmgraph.config import JitConfig
from tvmgraph.core.state import derived, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, Unserved
from tvmgraph.jit.call_key import key_of
from tvmgraph.jit.fast import MISS
from tvmgraph.jit.function import JitFunction
from tvmgraph.jit.graph_breaks import ENTERED, ObservedException, let_go, node_of
from tvmgraph.jit.regions.flow import KEPT, Names, walk, writes
from tvmgraph.jit.regions.outline import Passed, taking_handed
from tvmgraph.jit.regions.program import Fallback, Program, Refused
from tvmgraph.jit.regions.report import CHANGE, reason
from tvmgraph.jit.regions.tracebacks import runs_statements

_MAX_CAPTURES = 24  # of one segment
_MANY_CAPTURES = 8  # after which arguments that always differ stay in Python
_MANY_UNUSED = 4  # captures that no other call can use, where the function had that before
_MAX_CLOSURES = 8  # functions made from one definition that are compiled
_ATOMS = (type(None), bool, int, float, complex, str, bytes, slice, type(...), dtypes.DType)
_STABLE = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type,
    JitFunction,
)  # fmt: skip
_READS = f"it reads a {{}}{CHANGE}keep values in tensors, numbers and objects of your own"
_NOTICED = "the end of what {} holds is noticed" + CHANGE + "keep values in tensors and numbers"
_FRAMES = frozenset({"locals", "vars", "eval", "exec", "_getframe", "currentframe"})


class Segment(JitFunction):
    """A run of statements as a compiled function of the variables that it reads.

    Args:
        program: The function that it is a part of.
        function: The statements as a function.
        statements: The statements.
        passed: The variables that it takes and returns.
        fallback: What runs if the statements cannot be compiled for a call.
        whole: The function that was refused.
    """

    def __init__(
        self, program: Program, function: types.FunctionType, statements: list[ast.stmt],
        passed: Passed, fallback: Fallback, *, whole: JitFunction,
    ) -> None:  # fmt: skip
        settings = replace(
            whole.settings, mode="region", dynamic=False, identity=program.asks_identity
        )
        super().__init__(function, whole.config, whole.owner, settings)
        self.program, self.statements = program, statements
        self.ins, self.outs, self.fallback = passed.ins, passed.outs, fallback
        self.stopped = ""  # why it is not captured any more
        self.raised = 0
        self._changes = _changed_items(statements)
        self._replaced = writes(*statements)
        self._inner: tuple[int, types.FunctionType] | None = None
        self._before: list[Any] = [None] * len(self.ins)  # the containers and objects of a capture
        self._differs = [0] * len(self.ins)

    def attempt(self, *args: object) -> Any:
        """Runs the statements compiled; returns :class:`Refused` if that cannot be.

        Args:
            args: The variables that the statements read.
        """
        try:
            return self._attempt(args)
        except Unserved as e:
            error = e
        let_go(error, sys.exception())
        return Refused

    def _attempt(self, args: tuple[object, ...]) -> Any:
        if self.fast_call is not None:
            result = self.fast_call(args)
            if result is not MISS:
                return result
        if state.interpreter is not None:
            return state.interpreter.call(self.fn, args, {})
        if self.stopped or not self._takes(args):
            return Refused
        count, handled = len(self.history), sys.exception()
        try:
            result = self._dispatch(args, {})
        except ObservedException as e:
            self.raised += 1
            if self.raised > 1:  # perhaps it would not in Python
                self.program.mark_break(node_of(e.error), reason(e.error), self.statements)
            let_go(e, handled)
            return Refused
        except CaptureError as e:
            self._refused(e)
            let_go(e, handled)
            return Refused
        if len(self.history) != count:
            self._captured(args)
        return result

    def observes_rebinding(self, names: list[str], *values: object) -> bool:
        """Whether code, or a weak reference, notices when some variables get other values.

        Python binds them then, between the statements around that.

        Args:
            names: The variables.
            values: What they hold.
        """
        noticed = [n for n, v in zip(names, values) if checks.is_lifetime_observed(v)]
        if noticed:
            self._mark_breaks_at(frozenset(noticed), _NOTICED.format(noticed[0]), store=True)
        return bool(noticed)

    @runs_statements
    def run_fallback(self, handed: list[object]) -> Any:
        """Runs the statements in fallback segments, or in Python.

        Args:
            handed: The variables that they take; empty when they run, and nobody else need hold
                them: Python lets go of one in the middle of the statements.
        """
        return self._fallback()(handed)

    def _fallback(self) -> types.FunctionType:
        """Returns what runs in place of the segment, as far as is known by now."""
        program, version = self.program, self.program.version
        if self._inner is None or self._inner[0] != version:
            within = [n for s in self.statements for n in ast.walk(s)]
            if any(id(n) in program.python_only for n in within):
                made = program.write(self.fallback.definition, self.fn, handed=True)
            else:
                made = program.define(taking_handed(self.fallback.plain), self.fn)
            self._inner = version, made
        return self._inner[1]

    # ---- learning ---------------------------------------------------------------------------

    def _takes(self, args: tuple[object, ...]) -> bool:
        """Whether arguments can be those of a capture; notes those that never can."""
        containers: set[int] = set()
        strange: set[str] = set()
        for name, value in zip(self.ins, args):
            changes = name in self._changes and isinstance(value, (list, dict))
            if changes or any(not _is_known(v) for v in _leaves(value, containers)):
                strange.add(name)
        if strange:
            kinds = {n: type(v).__name__ for n, v in zip(self.ins, args)}
            for n in strange:
                self._mark_breaks_at(frozenset([n]), _READS.format(kinds[n]), store=False)
        replaced = [(n, v) for n, v in zip(self.ins, args) if n in self._replaced]
        noticed = self.observes_rebinding([n for n, _ in replaced], *[v for _, v in replaced])
        return not (strange or noticed) and -1 not in containers

    def _mark_breaks_at(self, names: Names, why: str, store: bool) -> None:
        if not self.program.mark_breaks_at(names, why, self.statements, store):
            self._stop(why)

    def _refused(self, error: CaptureError) -> None:
        why = reason(error)
        if error.value is not None:
            held = error.names
            found = {n for n in self.outs if n in held and _holds(held[n], error.value[0])}
            self._mark_breaks_at(frozenset(found), why, store=True)
        elif not self.program.mark_break(error.node, why, self.statements):
            self._stop(why)

    def _captured(self, args: tuple[object, ...]) -> None:
        """Looks at what a new capture became."""
        record = self.history[-1]
        self._note_structures(args)
        if not record.operators:
            self._stop("it computes nothing with tensors")
            self.program.mark_tensor_free(self.statements)
        elif len(self.history) == _MANY_CAPTURES:
            self._leave_varying()
        elif len(self.history) >= _MAX_CAPTURES:
            self._stop(f"it was captured {_MAX_CAPTURES} times")

    def _is_left(self, key: object) -> bool:
        return False  # its function is, or it is not

    def _note_structures(self, args: tuple[object, ...]) -> None:
        """Counts how often a container or object differs from that of the capture before."""
        for i, value in enumerate(args):
            if isinstance(value, (Tensor, *_ATOMS)):
                continue
            before = self._before[i]
            if checks.is_mortal(value):  # whose id another one may get
                self._differs[i] += not callable(before) or before() is not value
                self._before[i] = reference(value)
            else:
                self._before[i] = hash(key_of(value, []))  # keys may not compare: tensors
                self._differs[i] += before != self._before[i]

    def _leave_varying(self) -> None:
        """Lets Python read containers and objects that differ, or are looked into elsewhere."""
        names = [n for n, times in zip(self.ins, self._differs) if times > _MANY_CAPTURES // 2]
        if names:
            why = f"{', '.join(names)} differs from call to call{CHANGE}pass tensors"
            self._mark_breaks_at(frozenset(names), why, store=False)
        tables = [n for n in self.ins if n in _looked_up(self.statements) and n not in names]
        if tables:
            why = f"other items of {', '.join(tables)} are read{CHANGE}index a tensor instead"
            self.program.mark_breaks_at(frozenset(tables), why, self.statements, store=False)

    def _most_unused(self) -> int:
        return _MANY_UNUSED if self.program.churns else super()._most_unused()

    def _leave_reads(self, name: str, change: str) -> None:
        self.program.churns = True
        why = f"{change} at every call{CHANGE}pass {name} as an argument"
        self.program.mark_breaks_at_reads(name, why, self.statements)

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.fast_call = None


class Region:
    """A function that runs as its outline.

    Args:
        whole: The function as a whole.
        function: Its Python function.
        first: The object that it is a method of, if any.
    """

    def __init__(self, whole: JitFunction, function: types.FunctionType, first: Any) -> None:
        source = definition_of(function)
        assert source is not None

        def make(*parts: Any) -> Segment:
            return Segment(*parts, whole=whole)

        self.program = Program(function, source, make, lambda f: enter(f, whole))
        self._first = first

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the outline."""
        return self.program.outline()(*self._first, *args, **kwargs)


def region_of(whole: JitFunction) -> Region | None:
    """Returns what runs a function with graph breaks, ``None`` if it must run as a whole.

    Args:
        whole: A jitted function that cannot be one graph.
    """
    function, first = whole.fn, ()
    if isinstance(function, types.MethodType):
        function, first = function.__func__, (function.__self__,)
    if not isinstance(function, types.FunctionType) or _is_own(function):
        return None  # a transform of this package: its tape is not to be cut up
    source = definition_of(function)
    if source is None:
        return None
    return None if _inspects_frames(source.node) else Region(whole, function, first)


@functools.lru_cache(KEPT)
def _inspects_frames(definition: ast.AST) -> bool:
    """Whether code asks for the variables, or the callers, of a function that runs."""
    return any(
        (isinstance(n, ast.Name) and n.id in _FRAMES)
        or (isinstance(n, ast.Attribute) and n.attr in _FRAMES)
        or (isinstance(n, ast.Call) and not n.args and getattr(n.func, "id", "") == "dir")
        for n in ast.walk(definition)
    )


_closures_of: dict[types.CodeType, int] = {}


def reset_closure_counts() -> None:
    """Forgets how many functions were made from each definition; for long runs of tests."""
    _closures_of.clear()


def enter(function: Any, caller: JitFunction) -> Any:
    """Returns the compiled form of a function of the user that plain Python calls.

    Args:
        function: What is called; anything but a function of the user is returned as it is.
        caller: The function with graph breaks that calls it.
    """
    kind = type(function)
    if kind is types.MethodType:
        inner = enter(function.__func__, caller)
        return (
            function if inner is function.__func__ else types.MethodType(inner, function.__self__)
        )
    if kind is not types.FunctionType or state.interpreter is not None or _is_own(function):
        return function
    code, known = function.__dict__.get(ENTERED, (None, {}))
    if code is not function.__code__:  # functools.wraps copies attributes
        known = {}
        function.__dict__[ENTERED] = function.__code__, known
    config = caller._config()
    if id(config) not in known:
        known[id(config)] = config, _compiled(function, config, caller.settings)
    return known[id(config)][1] or function


def _is_own(function: types.FunctionType) -> bool:
    return str(function.__globals__.get("__name__")).startswith("tvmgraph.")


def _compiled(
    function: types.FunctionType, config: JitConfig, settings: Settings
) -> JitFunction | None:
    code = function.__code__
    module = str(function.__globals__.get("__name__")).partition(".")[0]
    path = code.co_filename
    own = module in checks.LIBRARIES or "site-packages" in path or "dist-packages" in path
    source = definition_of(function)
    if own or "$" in "".join(code.co_freevars) or source is None or _inspects_frames(source.node):
        return None
    _closures_of[code] = _closures_of.get(code, 0) + 1
    if _closures_of[code] > _MAX_CLOSURES or inspect.iscoroutinefunction(function):
        return None
    own = Settings("region", global_writes=settings.global_writes)
    return JitFunction(function, config, None, own)


# ---- arguments ----------------------------------------------------------------------------------


def _leaves(value: Any, containers: set[int]) -> Iterator[object]:
    """Yields what is in nested containers; adds -1 to their ids if one comes twice."""
    kind = PLAIN.get(type(value), type(value))
    if kind in (list, dict) and value:
        containers.add(-1 if id(value) in containers else id(value))
        if -1 in containers:
            return
    if kind is dict:
        if has_tensor_keys(value):
            yield _UNKNOWN
        for v in value.values():
            yield from _leaves(v, containers)
    elif kind in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        for v in value:
            yield from _leaves(v, containers)
    else:
        yield value


_UNKNOWN = object()


def _is_known(value: object) -> bool:
    """Whether a capture takes a value as a constant, or reads it attribute by attribute."""
    if isinstance(value, Tensor):
        return type(value) not in derived
    if isinstance(value, (*_ATOMS, *_STABLE)) or checks.is_cell(value):
        return True
    module = type(value).__module__.partition(".")[0]
    own = module == "tvmgraph" or (module not in checks.LIBRARIES and hasattr(value, "__dict__"))
    return own and not checks.ends_by_itself(value) and not has_references(value)


def _holds(value: object, wanted: object) -> bool:
    if isinstance(value, (tuple, list)):
        return value is wanted or any(_holds(v, wanted) for v in value)
    if isinstance(value, dict):
        return value is wanted or any(_holds(v, wanted) for v in value.values())
    return value is wanted


def _looked_up(statements: list[ast.stmt]) -> Names:
    """Returns the variables of which statements read items at places that differ, as of a table."""
    read = [n for n in walk(*statements) if isinstance(n, ast.Subscript)]
    return frozenset(
        n.value.id for n in read
        if isinstance(n.value, ast.Name) and isinstance(n.ctx, ast.Load)
        and not isinstance(n.slice, (ast.Constant, ast.Slice))
    )  # fmt: skip


def _changed_items(statements: list[ast.stmt]) -> Names:
    """Returns the variables whose items or containers statements may change."""
    found: set[str] = set()
    for n in walk(*statements):
        if (isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)) or (
            isinstance(n, ast.Attribute) and n.attr in MUTATING
        ):
            owner = n.value
        else:
            continue
        while isinstance(owner, (ast.Subscript, ast.Attribute)):
            owner = owner.value
        if isinstance(owner, ast.Name):
            found.add(owner.id)
    return frozenset(found)
