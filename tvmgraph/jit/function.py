"""JitFunction: a Python function with a cache of compiled entries."""

from __future__ import annotations

import copy
import functools
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmgraph import forking, hooks
from tvmgraph.capture import tree
from tvmgraph.capture.checks import MortalKeys
from tvmgraph.capture.identity import Aliases, aliases_of
from tvmgraph.capture.promotion import Promotion
from tvmgraph.capture.record import Captured, capture
from tvmgraph.capture.settings import Settings
from tvmgraph.config import JitConfig, effective_jit_config
from tvmgraph.config.flag_registry import active
from tvmgraph.core import state as versioned
from tvmgraph.core.explained import explained
from tvmgraph.core.state import Precision, state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import (
    CaptureError,
    CompileError,
    DTypeError,
    LeavesGraph,
    Unserved,
    user_source,
)
from tvmgraph.graph import Graph, check
from tvmgraph.interruption import noticed
from tvmgraph.jit import graph_breaks, recompiles
from tvmgraph.jit.call_key import key_of
from tvmgraph.jit.churn import Churn, kinds_of
from tvmgraph.jit.compiled import CompiledGraph
from tvmgraph.jit.dynamic import RecentCall, Varying, recent_call
from tvmgraph.jit.entry import Entry, entries_decide
from tvmgraph.jit.fast import MISS, FastCall, fast_call, versions
from tvmgraph.jit.graph_breaks import Aliased, Left, ObservedException
from tvmgraph.jit.introspection import Inspectable
from tvmgraph.jit.recompiles import describe_call, why_new
from tvmgraph.jit.signature import Signature
from tvmgraph.jit.tiered import TieredGraph
from tvmgraph.machine.processor import described_target
from tvmgraph.signatures import python_signature

if TYPE_CHECKING:
    from tvmgraph.jit.regions.segment import Region

_MAX_ENTRIES = 16  # captures kept per kind of arguments
_MAX_RAISES = 3  # captures in a row of one kind of arguments in which the code raised
_MAX_UNUSED = 12  # captures in a row that no other call could use
_ANY = object()  # stands for every kind of arguments
_MAX_KEYS = 1024  # kinds of arguments; the least recently used is forgotten


@dataclass(frozen=True)
class CompileRecord:
    """One capture of a jitted function, for :meth:`JitFunction.explain`.

    Attributes:
        why: What was new about the call.
        signature: Types of the tensor arguments.
        capture_seconds: Time to run the Python code and build the graph.
        compile_seconds: Time from graph to machine code; 0 when an equal graph was there.
        operators: Operators of the graph.
        kernels: Kernels generated.
        phases: Wall time of the compile by phase.
        path: How the graph runs, and why (``exec_mode``).
        cached: Whether an equal graph was compiled before.
        disk: What the cache on disk did: loaded or kept the executable, or why not.
        varying: What became symbolic, so that its next value does not compile again.
        passes: The passes that could have been left out.
        target: The processor or GPU that it was compiled for.
        reused: Kernels whose machine code other graphs had left on disk.
    """

    why: str
    signature: str
    capture_seconds: float
    compile_seconds: float
    operators: int
    kernels: int
    phases: tuple[tuple[str, float], ...] = ()
    path: str = ""
    cached: bool = False
    disk: str = ""
    varying: str = ""
    passes: str = ""
    target: str = ""
    reused: int = 0


@dataclass(slots=True)
class _Call:
    """A call that is not like the one before.

    Attributes:
        args: Positional arguments.
        kwargs: Arguments by name.
        config: The settings of now.
        leaves: The tensors among the arguments.
        kind: What calls of its kind have in common.
        aliases: Which arguments are the same tensor, see :meth:`JitFunction._aliases`.
    """

    args: tuple[object, ...]
    kwargs: dict[str, object]
    config: JitConfig
    leaves: list[Tensor]
    kind: object
    aliases: object = None

    @property
    def given(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """All arguments, as entries take them."""
        return self.args, self.kwargs

    @property
    def key(self) -> object:
        """The key of its entries."""
        return self.kind if self.aliases is None else (self.kind, self.aliases)


class JitFunction(Inspectable):
    """What :func:`jit` returns for a function.

    Args:
        fn: The Python function.
        config: Its own JitConfig, or ``None`` to follow the Cell's and the context's.
        owner: The Cell whose configuration counts, if any.
        settings: How it is captured.

    Attributes:
        evicted: How many captures were forgotten to make room for newer ones.
    """

    def __init__(
        self,
        fn: Callable[..., object],
        config: JitConfig | None = None,
        owner: object = None,
        settings: Settings | None = None,
    ) -> None:
        self.fn = fn
        self.settings = settings or Settings()
        self.config = config
        self.owner = owner
        self.entries: MortalKeys[list[Entry]] = MortalKeys()
        self.history: list[CompileRecord] = []
        self.evicted = 0
        self.unused = 0  # captures in a row that served one call each, since what is read changed
        self._newest: weakref.ref[Entry] | None = None
        self._raises: dict[object, int] = {}  # by kind of arguments, since the last capture
        self.churned: CaptureError | None = None  # why it is not captured any more
        self.churn = Churn()  # by arguments, and of short-lived functions
        self._quick: object = None  # key of what the quick call may serve
        self.varying = Varying()
        self._recent: RecentCall | None = None  # of a capture that takes numbers
        self._aliasing_matters = False  # whether it matters to some capture which tensors are one
        self._methods: weakref.WeakKeyDictionary[object, JitFunction] = weakref.WeakKeyDictionary()
        self._owned: set[int] = set()  # ids of tensors that such entries hold
        self.refused: dict[object, CaptureError] = {}  # kinds of calls that run with graph breaks
        self.raising: dict[object, CaptureError] = {}  # those that are left to plain Python
        self.fast_call: FastCall | None = None  # serves a call like the one before
        self.newest: dict[str, str] | None = None  # the arguments of the newest capture, described
        self._lock = forking.rlock()
        self._forms: dict[Precision | None, JitFunction] = {}  # others, by precision
        functools.update_wrapper(self, fn, updated=())

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if isinstance(instance, type) or not hasattr(instance, "__dict__"):
            return self._bound_weakly(instance, owner)
        name = f"_jit_bound_{self.fn.__name__}"
        bound = instance.__dict__.get(name)
        if bound is None or bound.definition is not self:
            method = self.fn.__get__(instance, owner)
            bound = JitFunction(method, self.config, instance, self.settings)
            bound.definition = self
            bound.signature = self.signature
            instance.__dict__[name] = bound  # not through Cell.__setattr__: no attribute changed
        return bound

    region: Region | None = None  # what runs it with graph breaks
    refused_at = -1  # the version of the settings then
    definition: JitFunction | None = None
    precision: Precision | None = None  # of the calls that it serves, see ThreadState
    signature: Signature | None = None  # of ``input_signature``; that of a Cell is looked up

    def _bound_weakly(self, instance: object, owner: type | None) -> object:
        """Returns the method of a class, or of an object that has no room for it."""
        try:
            found = self._methods.get(instance)
        except TypeError:  # neither room nor weak references
            return types.MethodType(self, instance)
        if found is None:
            method = self.fn.__get__(instance, owner)
            found = self._methods[instance] = JitFunction(method, self.config, None, self.settings)
        return found

    def __repr__(self) -> str:
        name = getattr(self.fn, "__qualname__", "function")
        return f"<jit {name}: compiled {len(self.history)} time(s)>"

    _is_jit = True  # lets the interpreter see through it

    def __deepcopy__(self, memo: dict[int, object]) -> JitFunction:
        """Copies the Cell it belongs to as well; compiled code is not copied."""
        twin = memo[id(self)] = JitFunction.__new__(JitFunction)
        fn, owner = copy.deepcopy(self.fn, memo), copy.deepcopy(self.owner, memo)
        twin.__init__(fn, self.config, owner, self.settings)
        twin.signature = copy.deepcopy(self.signature, memo)
        return twin

    def __reduce__(self) -> str | tuple[object, ...]:
        found: object = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):  # pyright: ignore[reportAttributeAccessIssue]
            found = getattr(found, part, None)
        if found is self:  # a decorated function of a module pickles by name, as functions do
            return self.__qualname__  # pyright: ignore[reportAttributeAccessIssue]
        made = (self.fn, self.config, self.owner, self.settings)
        return (JitFunction, made, {"signature": self.signature})

    # ---- calling ----------------------------------------------------------------------------

    def _in_precision(self) -> JitFunction:
        """Returns the one of this function that serves calls in the precision of now."""
        wanted = state.precision
        found = self._forms.get(wanted)
        if found is None:
            found = self._forms[wanted] = JitFunction(
                self.fn, self.config, self.owner, self.settings
            )
            found.precision, found.signature, found._forms = wanted, self.signature, {None: self}
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the compiled function, compiling it first for a new kind of arguments."""
        if state.precision is not self.precision:
            return self._in_precision()(*args, **kwargs)
        if self.fast_call is not None and not kwargs:
            try:
                result = self.fast_call(args)
            except Unserved as e:
                return graph_breaks.run_once(self, args, kwargs, e)
            if result is not MISS:
                return result
        if self.region is not None and graph_breaks.always_breaks(self):
            return graph_breaks.run_with_breaks(self, args, kwargs)
        error: BaseException | None = None
        handled = sys.exception()
        try:
            result = MISS
            while result is MISS:  # another call wrote what this one was captured with
                result = self._dispatch(args, kwargs)
            return result
        except RecursionError as e:
            given = python_signature(self.fn).bind_partial(*args, **kwargs).arguments
            raise explained(e, "jit", given)  # noqa: B904
        except (ObservedException, Unserved, Left) as e:
            error = e.error if isinstance(e, ObservedException) else e
        except CaptureError as e:
            if not graph_breaks.may_break(self, e):
                raise
            graph_breaks.let_go(e, handled)
        if error is None:
            return graph_breaks.run_with_breaks(self, args, kwargs)
        if isinstance(error, (Unserved, Left)):
            return graph_breaks.run_once(self, args, kwargs, error)
        return graph_breaks.run_plain(self, args, kwargs, error)

    def _dispatch(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Serves a call that is not like the one before."""
        if state.interpreter is not None:  # part of an outer capture
            return state.interpreter.call(self.fn, args, kwargs)
        result = self._run_recent(args, kwargs)
        if result is not MISS:
            return result
        now, why = versions(), ""
        call = self._described(args, kwargs)
        aliases = call.aliases = self._aliases(call.leaves)
        key = call.key
        for entry in self.entries.get(key, ()):
            with entry.alone:
                failure = entry.failure(call.config) or entry.aliasing(call.given)
                if failure is None:
                    result = self._reuse(entry, call, now)
                    if result is not MISS:
                        self._use(key, entry)
                        return result
                    failure = entry.misfit()
            why = why or failure  # the newest entry is the nearest one
        if aliases is not None and self._aliasing_matters:
            why = why or f"one tensor comes in several ways: {aliases[0]}"
            acted = versioned.acted
            return self._first_run(self._compile_aliased(call, why), call, acted)
        return self._serve_new(call, why)

    def _described(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Call:
        leaves: list[Tensor] = []
        kind = key_of(args, leaves)
        if kwargs:
            kind = (kind, key_of(kwargs, leaves))
        return _Call(args, kwargs, self._config(), leaves, kind)

    def _serve_new(self, call: _Call, why: str) -> object:
        """Serves a call that no entry of its key fits; remembers why it cannot be captured."""
        key = call.key
        if self.churned is not None:
            raise self.churned
        if graph_breaks.still_refused(self, key):
            raise self.refused[key]
        if self._is_left(key):
            raise Left
        try:
            result = self._serve(call, why)
            self._raises.clear()
            return result
        except ObservedException as e:
            self._note_raise(key, e.error)
            raise
        except CaptureError as e:
            if graph_breaks.may_break(self, e):
                self.refused[key] = e  # what it holds is let go of where it is handled
                if not isinstance(e, LeavesGraph):
                    graph_breaks.learn(self, e.node, e)
            raise

    def _is_left(self, key: object) -> bool:
        """Whether a call that no entry fits is left to plain Python."""
        if key in self.raising or _ANY in self.raising:
            return True
        new = not self.entries and not self.history and not self.refused
        return new and graph_breaks.is_lax(self) and self.churn.waits(self.fn)

    def _note_raise(self, key: object, error: BaseException) -> None:
        """Leaves calls to Python whose code raises whenever it is captured.

        Args:
            key: The kind of arguments.
            error: What the code raised.
        """
        self._raises[key] = self._raises.get(key, 0) + 1
        often = sum(self._raises.values()) >= _MAX_UNUSED
        if not (often or self._raises[key] >= _MAX_RAISES) or not graph_breaks.is_lax(self):
            return
        why = CaptureError(f"it raises {type(error).__name__} again and again", op="jit")
        if len(graph_breaks.nodes_of(error)) > 1:  # tracebacks would show pieces of both functions
            self.raising[_ANY if often else key] = why
            self._raises.clear()
            return
        graph_breaks.learn(self, graph_breaks.node_of(error), error)
        self.refused[key], self.churned = why, why if often else self.churned

    def _run_recent(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Runs the capture that served the call before; ``MISS`` if it does not fit."""
        recent = self._recent
        if recent is None or kwargs or versioned.hooked or versioned.derived:
            return MISS
        with recent.entry.alone:
            entry, numbers, leaves = recent.match(args, self._config())
            if entry is None:
                return MISS
            self.churn.reuse()
            return entry.run([*leaves, *numbers], (args, {}))

    def _reuse(self, entry: Entry, call: _Call, now: tuple[int, int]) -> object:
        """Runs an entry whose guards hold; ``MISS`` if its symbols do not fit the call."""
        if not entry.told:
            self._warn_of_unseen(entry)
        numbers = () if entry.resolve is None else entry.resolve(call.leaves, call.given)
        if numbers is None:
            return MISS
        self.churn.reuse()
        if entry.resolve is not None:
            return entry.run([*call.leaves, *numbers], call.given)
        result = entry.run(call.leaves, call.given)
        if not call.kwargs and not versioned.hooked:
            self.fast_call = fast_call(entry, call.args, now)
        return result

    def _aliases(self, leaves: list[Tensor]) -> Aliases | None:
        """Returns which arguments are the same tensor, or one that the function reads itself."""
        if len(leaves) < 2 and not self._owned:
            return None
        return aliases_of(leaves, self._owned)

    @noticed()
    def _compile_aliased(self, call: _Call, why: str) -> Entry:
        """Captures a call in which one tensor comes in several ways."""
        self._check_arity(call)
        with self._lock:
            start = time.perf_counter()
            captured = self._capture(call)
            if captured.aliasing_matters:
                captured = self._capture(call, aliased=True)
            entry = Entry(captured, call.config, call.given, self.settings)
            entry.aliases = self._aliases(call.leaves)
            self._note(why, entry, call, time.perf_counter() - start)
            self._keep((call.kind, entry.aliases), entry)
            return entry

    def _warn_of_unseen(self, entry: Entry) -> None:
        """Names the first change that a function without guards does not see."""
        found = entry.unseen()
        if found is not None:
            name = getattr(self.fn, "__qualname__", "function")
            warnings.warn(
                f"{user_source()}: {found}, which {name} does not see: {self.settings.alias} "
                "compiles once per kind of arguments. Use jit, which would see it.",
                stacklevel=3,
            )

    def _serve(self, call: _Call, why: str) -> object:
        """Serves a call whose key is new: by a capture for calls of its kind, or by a new one."""
        acted = versioned.acted
        entry = self._varying_entry(call)
        if entry is None:
            self._check_churn(call)
            why = why or why_new(self.fn, self.newest, call.args, call.kwargs)
            entry = self._compile(call, why)
        if entry.aliases is None:
            self._keep(call.key, entry)
        self._recent = recent_call(entry, call.args, call.kwargs)
        return self._first_run(entry, call, acted)

    def _check_churn(self, call: _Call) -> None:
        """Counts captures that no other call can use: what it reads, or is given, differs."""
        newest = self._newest and self._newest()
        change = newest.captured.guards.change(ask=False) if newest is not None else None
        kinds = kinds_of(self.fn, call.args, call.kwargs)
        if change is None and (name := self.churn.refilled(kinds)) is not None:
            change = name, f"what the argument {name!r} holds changed"
        reused = self.churn.take_reuse()
        self.unused = self.unused + 1 if change is not None and not reused else 0
        if not graph_breaks.is_lax(self):
            return
        if change is not None and self.unused >= self._most_unused():
            self.unused = 0
            self._leave_reads(*change)
        name = self.churn.argument(kinds, reused)
        if name is not None:
            self._leave_reads(name, f"argument {name!r} differs from call to call")

    def _most_unused(self) -> int:
        """Returns how many captures in a row may be of no use to other calls."""
        return _MAX_UNUSED

    def _leave_reads(self, name: str, change: str) -> None:
        """Leaves to Python to read a variable or attribute that differs from call to call.

        Raises:
            CaptureError: so that the function runs with graph breaks.
        """
        self.entries.clear()
        self.churned = graph_breaks.churn(self, name, change)
        raise self.churned

    def _first_run(self, entry: Entry, call: _Call, acted: int) -> object:
        """Runs an entry that was found or captured since ``acted`` calls had written.

        Returns:
            ``MISS`` if another call has meanwhile written what its guards look at.
        """
        with entry.alone:
            if entry.acts and versioned.acted != acted and entry.failure(call.config) is not None:
                return MISS
            resolve = entry.captured.resolve
            numbers = resolve(call.leaves, call.given) if resolve is not None else ()
            if numbers is None and versioned.acted != acted:
                return MISS
            return entry.run([*call.leaves, *(numbers or ())], call.given)

    def _varying_entry(self, call: _Call) -> Entry | None:
        """Returns a capture with symbols that fits a call."""
        found = self.varying.find(call.leaves, call.args, call.kwargs, call.config)
        return None if found is None or found[0].aliasing(call.given) else found[0]

    def _keep(self, key: object, entry: Entry) -> None:
        """Remembers an entry for a key, unless numbers would give every call a key of its own."""
        if entry.captured.promotion.numbers:
            return
        self.entries.forget_with(entry.given(), key)
        with self._lock:
            kept = [entry, *(e for e in self.entries.pop(key, ()) if e is not entry)]
            self.evicted += len(kept[_MAX_ENTRIES:])
            self.entries[key] = kept[:_MAX_ENTRIES]
            while len(self.entries) > _MAX_KEYS:
                oldest = next(k for k in self.entries if k != self._quick)
                self.evicted += len(self.entries.pop(oldest))

    def _use(self, key: object, entry: Entry) -> None:
        """Notes that an entry was used: the least recently used one is the first to be forgotten.

        A key moves only where room gets scarce: for a moment other threads do not find it.
        """
        self._quick = key
        kept = self.entries.get(key, [])
        crowded = len(self.entries) > _MAX_KEYS // 2
        if entry in kept and (kept[0] is not entry or crowded):
            with self._lock:
                others = [e for e in self.entries.get(key, ()) if e is not entry]
                if crowded:
                    self.entries.pop(key, None)
                self.entries[key] = [entry, *others]

    def _config(self) -> JitConfig:
        return effective_jit_config(self.config, getattr(self.owner, "jit_config", None))

    @noticed()
    def _compile(self, call: _Call, why: str) -> Entry:
        """Captures and compiles one more entry."""
        args, kwargs = call.given
        with self._lock:
            for entry in self.entries.get(call.key, ()):  # another thread may have been faster
                fits = entry.failure(call.config) is None and entry.resolve is None
                if fits and not entry.aliasing(call.given):
                    return entry
            found = self._varying_entry(call)
            if found is not None:
                return found
            self._check_arity(call)
            declared = self._declared(call)
            seconds = 0.0

            def make(promotion: Promotion | None) -> Entry:
                nonlocal seconds
                start = time.perf_counter()
                captured = self._capture(call, promotion)
                seconds = time.perf_counter() - start
                if captured.aliasing_matters:
                    self._own(captured)
                    if self._aliases(call.leaves) is not None:
                        raise Aliased
                if active.check or call.config.debug_level == "DEBUG":
                    check(captured.graph)
                return Entry(captured, call.config, call.given, self.settings)

            before = [*self.entries.get(call.key, ()), *self.varying.entries(args, kwargs)]
            slots = [s for e in before for s in e.captured.guards.varying()]
            try:
                entry, promoted = self.varying.capture(
                    args, kwargs, slots, make, declared, bool(self.settings.dynamic)
                )
            except Aliased:
                return self._compile_aliased(call, why)
            self.newest = describe_call(self.fn, args, kwargs)
            self._newest = weakref.ref(entry)
            self.churn.captured(entry.captured.graph, kinds_of(self.fn, args, kwargs), seconds)
            self._note(why, entry, call, seconds, promoted)
            self._keep(call.key, entry)
            return entry

    def _own(self, captured: Captured) -> None:
        """Notes which tensors a function reads itself, for it matters if they are passed, too."""
        self._aliasing_matters = True
        self._owned.update(id(t) for t in captured.holders if isinstance(t, Tensor))

    def _declared(self, call: _Call) -> dict[tuple[int, int], str] | None:
        """Checks a call against what was declared; returns the axes that vary then."""
        signature = self.signature
        if signature is None and self.owner is not None:
            inputs, keywords = vars(self.owner).get("_inputs", ((), {}))
            signature = Signature(inputs, keywords) if inputs or keywords else None
        return None if signature is None else signature.axes(self.fn, *call.given)

    def _capture(
        self, call: _Call, promotion: Promotion | None = None, aliased: bool = False
    ) -> Captured:
        try:
            settings = self.settings
            if graph_breaks.is_lax(self):
                settings = replace(settings, lax=True)
            known = [*self.entries.get(call.key, ()), *self.varying.entries(*call.given)]
            settings = replace(settings, decide=entries_decide(known, settings.lax))
            return capture(self.fn, *call.given, settings, promotion, aliased)
        except CaptureError:
            raise
        except (Exception, SystemExit) as e:
            if promotion:  # perhaps only a symbol is in the way
                raise
            raise ObservedException(e) from e

    def _check_arity(self, call: _Call) -> None:
        if self.settings.mode == "region":  # called by Python, which has an error of its own
            return
        try:
            signature = python_signature(self.fn)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*call.args, **call.kwargs)
        except TypeError as e:
            raise DTypeError(
                f"{e}", op=getattr(self.fn, "__qualname__", "jit"), at=user_source(),
                got=f"{len(call.args)} positional arguments, keywords {list(call.kwargs)}",
                fix=f"its signature is {signature}",
            ) from None  # fmt: skip

    # ---- looking inside ---------------------------------------------------------------------

    def compile(self, *args: object, **kwargs: object) -> JitFunction:
        """Compiles for these arguments without running, and returns the function.

        Args:
            args: Arguments as of a call; of tensors shapes and dtypes count, values do not.
            kwargs: Arguments by name.
        """
        try:
            self._compile(self._described(args, kwargs), "compile() was called")
        except ObservedException as e:
            raise e.error from None
        return self

    def graph(self, *args: object, **kwargs: object) -> Graph:
        """Returns the graph of a call with these arguments, or of the newest compiled call.

        Args:
            args: Arguments as of a call; without any, those of the newest compiled call.
            kwargs: Arguments by name.
        """
        if args or kwargs:
            return capture(self.fn, args, kwargs, self.settings).graph
        for entries in reversed(self.entries.values()):
            return entries[0].captured.graph
        broken = graph_breaks.programs(self)
        raise CompileError(
            "it is no single graph: it runs with graph breaks" if broken else
            "nothing was compiled yet", op="graph()", at=user_source(),
            fix="draw() and explain() show its segments" if broken else
            "call the function first, or pass example arguments to graph(...)",
        )  # fmt: skip

    def export(
        self, path: object, *inputs: object, file_format: str = "", **options: object
    ) -> Path:
        """Writes the function to a file; see :func:`tvmgraph.export`.

        Args:
            path: Where to write; its suffix chooses the format unless ``file_format`` does.
            inputs: Example arguments; those of the newest compiled call by default.
            file_format: Name of the format.
            options: Settings of the format.

        Raises:
            CompileError: without inputs, if nothing was compiled yet.
        """
        if not inputs:
            self.graph()  # raises when there is no call to repeat
            entries = next(reversed(self.entries.values()))
            inputs, _ = entries[0].given()
        kind = file_format or hooks.format_of(path)
        return hooks.export(self, *inputs, file_name=path, file_format=kind, **options)

    def _note(
        self, why: str, entry: Entry, call: _Call, capture_seconds: float, promoted: str = ""
    ) -> None:
        signature = ", ".join(str(t.aval) for t in tree.tensors(call.given))

        def recorded(compiled: object) -> CompileRecord:
            stats = getattr(compiled, "stats", None)
            return CompileRecord(
                why, signature, capture_seconds, stats.seconds if stats else 0.0,
                len(entry.captured.graph.nodes), stats.kernels if stats else 0,
                stats.phases if stats else (), str(getattr(compiled, "path", "")),
                bool(stats and stats.cached), stats.disk if stats else "", promoted,
                stats.passes if stats else "",
                described_target(entry.config.target), stats.reused if stats else 0,
            )  # fmt: skip

        place, first = len(self.history), entry.compiled
        self.history.append(recorded(first))
        recompiles.noted(self, self.history[-1])
        if isinstance(first, TieredGraph):

            def taken(compiled: CompiledGraph) -> None:
                after = f"{compiled.path}, after {first.calls} call(s) in eager operators"
                self.history[place] = replace(recorded(compiled), path=after)

            first.then(taken)
