"""The interpreter of user code: an abstract one over the syntax tree.

Python values are real; only tensors are symbolic. Code of this package and of libraries runs
natively on traced tensors, user functions and the ``construct`` of user Cells are interpreted, and
what has no source (or suspends itself) is run natively too.
"""

from __future__ import annotations

import abc
import ast
import builtins
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from tvmgraph import dtypes
from tvmgraph.capture import builtin, logs, memoized, printing
from tvmgraph.capture.branches import Branches
from tvmgraph.capture.changes import changed_by_call
from tvmgraph.capture.checks import LIBRARIES, is_library
from tvmgraph.capture.containers import method_of
from tvmgraph.capture.deciding import settled
from tvmgraph.capture.effects import Effects
from tvmgraph.capture.expressions import Expressions
from tvmgraph.capture.frame import Completion, Frame
from tvmgraph.capture.frame_tracer import is_own
from tvmgraph.capture.function_source import FunctionSource, definition_of, source_of
from tvmgraph.capture.hoist import Hoisted
from tvmgraph.capture.impure import PURE, ImpureCalls
from tvmgraph.capture.loops import Loops
from tvmgraph.capture.native import KEEP, Native, is_package, makes_plainly
from tvmgraph.capture.nested import STANDING, NestedFunction
from tvmgraph.capture.outside import Outside
from tvmgraph.capture.recorder import Recorder
from tvmgraph.capture.settings import CapturedAgain, Settings
from tvmgraph.capture.statements import Statements
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import TracedNumber, may_raise
from tvmgraph.config import context
from tvmgraph.core.explained import speaks_for_users
from tvmgraph.core.op import F
from tvmgraph.core.symbols import FUNCTIONS, Symbol, apply_function, is_number
from tvmgraph.core.tensor import Tensor, tensor
from tvmgraph.core.types import Dim
from tvmgraph.errors import CaptureError, TvmgraphError, user_source
from tvmgraph.signatures import python_signature

# builtins that look at classes and lengths only
_HARMLESS = (isinstance, issubclass, len, type, id, callable, hasattr, range, print, super)
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_MAX_DEPTH = 60  # interpreted calls inside each other


class Interpreter(Expressions, Statements, Branches, Loops, Outside, Native):
    """Executes user code for one capture.

    Args:
        recorder: Receives the operators.
        settings: What the user chose.

    Attributes:
        depth: How many branches and loops of the graph enclose what is being executed.
        effects: Side effects on things outside.
        current: The frame that is being executed.
        root: The outermost one.
        blamed: The statement to blame for a refusal, if it is not the one that is executed.
        hoisted: Places outside that are variables of the capture.
        impure: Deals with functions whose results differ from call to call.
        overlay: Globals written by the captured code.
        reads_only: Whether it is being found out if code does anything but compute.
    """

    def __init__(self, recorder: Recorder, settings: Settings) -> None:
        self.recorder = recorder
        self.settings = settings
        self.depth = 0
        self.ending = 0  # the depth of the innermost side of a branch
        self.raises = False  # whether a node of the graph may raise
        self.reads_only = False
        self.effects = Effects(self)
        self.hoisted = Hoisted()
        self.impure = ImpureCalls(self)
        self.overlay: dict[tuple[int, str], object] = {}
        self._calls = 0
        self.current: Frame | None = None
        self.root: Frame | None = None
        self.blamed: ast.AST | None = None
        self._token: Tensor | None = None

    def let_go(self) -> None:
        """Forgets the call when it is over, whose arguments Python may let go of."""
        if self.recorder.lasting:
            return
        if self.root is not None:
            self.root.names.clear()
        vars(self).clear()  # it is part of cycles

    # ---- calls ------------------------------------------------------------------------------

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Calls a Python function: interprets user code, runs everything else natively.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        if isinstance(function, functools.partial):
            self.recorder.guards.add_object(function)
            return self.call(
                function.func, (*function.args, *args), {**function.keywords, **kwargs}
            )
        jitted = getattr(type(function), "_is_jit", False)
        if jitted:
            return self.call(function.fn, args, kwargs)
        result = self.impure.call(function, args, kwargs)
        if result is not PURE:
            return result
        if isinstance(function, types.MethodType):
            inner = function.__func__
            if isinstance(inner, types.FunctionType):
                return self.call(inner, (function.__self__, *args), kwargs)
        if memoized.wrapped(function) is not None:
            return memoized.call(self, function, args, kwargs)
        memoized.check_method(self, function)
        source = self._interpretable(function)
        if source is None:
            self._refuse_generator(function)
            self._refuse_end(function)
            if makes_plainly(function):
                return self.make(function, args, kwargs)
            own = None if isinstance(function, type) else vars(type(function)).get("__call__")
            if isinstance(own, types.FunctionType) and self._interpretable(own) is not None:
                self.recorder.guards.add_read(type(function), "__call__")
                return self.call(own, (function, *args), kwargs)
            self._hand_out(function, args, kwargs)
            if self.recorder.guards.add_registry(function):
                for value in (*args, *kwargs.values()):
                    if isinstance(value, Symbol):  # whose class decides
                        value.specialise()
            try:
                return self.run_unchanging(function, args, kwargs)
            except CaptureError as e:
                self._explain_source(function, e)
                raise
        return self._run(function, source, args, kwargs)

    def _explain_source(self, function: Any, error: CaptureError) -> None:
        """Says that code which cannot be read was the reason for a refusal."""
        if self._is_read(function) and definition_of(function) is None:
            name = function.__name__
            raise CaptureError(
                f"{name} has no source text, so it runs once with symbolic tensors and cannot use "
                "the value of one", op="jit", at=user_source(),
                fix="write it to a file; code typed into Python or given to exec() has no source",
            ) from error  # fmt: skip

    def _refuse_generator(self, function: Any) -> None:
        """A generator or coroutine is a graph break: Python sees what it does and when."""
        suspends = self._is_read(function) and function.__code__.co_flags & _SUSPENDS
        if self.settings.lax and suspends and self.current is not None:
            self.refuse_here("calling a generator")

    def _refuse_end(self, kind: object) -> None:
        """Objects whose end runs code are a graph break: Python makes and ends them."""
        if self.settings.lax and isinstance(kind, type) and not is_library(kind.__module__):
            end = inspect.getattr_static(kind, "__del__", None)
            if self.current is not None and isinstance(end, types.FunctionType):
                self.refuse_here("an object with __del__")

    def _run_natively(
        self, function: Any, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        tracer = self.recorder.guards.tracer
        before = tracer.enable(not is_own(function, args, kwargs))
        try:
            return function(*args, **kwargs)
        finally:
            tracer.enable(before)

    def _hand_out(
        self, function: object, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """Guards all of an object that goes to code which is not interpreted."""
        if is_package(function) or any(function is h for h in _HARMLESS):
            return
        if self.reads_only and getattr(builtins, getattr(function, "__name__", ""), None) is None:
            raise CaptureError("code that cannot be read is called", op="jit", at=user_source())
        self.check_raw_write(function, args)
        self.refuse_change(function, args)
        owner = getattr(function, "__self__", None)
        self.impure.look_into(function)
        self.impure.hand_out(owner, *args, *kwargs.values(), called=function)
        for value in (function, owner, *args, *kwargs.values()):
            self.recorder.guards.add_object(value)
            self.recorder.guards.native_effects.keep(value)

    def refuse_change(self, function: object, args: tuple[object, ...]) -> None:
        """Leaves to Python, with a graph break, a change outside by code that cannot be read.

        A whole graph, which is used once then, must not leave what it computes there.

        Args:
            function: What makes the change.
            args: Its arguments by position.
        """
        what = changed_by_call(function, args, self.effects.is_outside)
        if what and (self.settings.lax or self.computes(args)):
            self.refuse_here(f"changing {what}", "" if self.settings.lax else KEEP)

    def _value_from(
        self, function: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """What ``bool(x)``, ``x.item()`` and ``Tensor(x)`` give; None for other calls."""
        if function is Tensor or function is tensor:
            return builtin.tensor_from(*args, **kwargs)
        if function is bool and len(args) == 1:
            return self.number_of(self.truth(args[0]))
        owner = getattr(function, "__self__", None)
        is_item = getattr(function, "__func__", None) is TracedTensor.item
        if is_item and isinstance(owner, TracedTensor) and not (args or kwargs):
            return builtin.number_in(self, owner)
        return None

    def invoke(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.AST,
        frame: Frame,
    ) -> object:  # fmt: skip
        """Calls something that interpreted code names.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        if function is print or function is F.print_:
            return self.effects.print(function, args, kwargs, node, frame)
        if logs.is_call(function):
            return self.effects.log(function, args, kwargs, node, frame)
        effect = getattr(type(function), "as_effect", None)
        if effect is not None:  # an operator class that only does something outside
            does, given = effect(function, *args, **kwargs)
            self.effects.seen(getattr(does, "__self__", None))
            return self.invoke(does, given, {}, node, frame)
        known = method_of(function, args)
        if known is not None:
            owner, implementation = known
            given = args[1:] if implementation is function else args
            name = implementation.__name__
            return self.effects.call(owner, name, given, kwargs, node, frame, implementation)
        if isinstance(function, type) and issubclass(function, type) and len(args) == 3:
            self.refuse(node, frame, "making a class", "define the class at module level")
        traced = len(args) == 1 and isinstance(args[0], STANDING)
        if function is type and traced:
            return args[0].shown_type
        if function is id and traced:
            self.refuse(node, frame, "the id of a tensor or function", "compare with `is`")
        self._guard_look(function, args)
        found = self._value_from(function, args, kwargs)
        if found is not None:
            return found
        if function is getattr and len(args) >= 2 and isinstance(args[1], str):
            return self.attribute(args[0], args[1], *args[2:])
        if function is setattr and len(args) == 3:
            return self.set_attribute(*args, node, frame)
        is_builtin = isinstance(function, (type, types.BuiltinFunctionType))
        if is_builtin and not kwargs and function in builtin.FUNCTIONS:
            found = builtin.call(self, function, args, node, frame)
            if found is not None:
                return found
        if is_builtin and args and not kwargs and function in _ON_SYMBOLS:
            found = _ON_SYMBOLS[function](*args)
            if found is not None:
                return found
        return self.call(function, args, kwargs)

    def _guard_look(self, function: object, args: tuple[object, ...]) -> None:
        """Guards what some builtins find out about an object."""
        if function is len and args:
            self.impure.look_into(args[0])
        elif function in (isinstance, issubclass, type) and args:
            self.recorder.guards.add_kind(args[0])
            self._guard_classes(*args)
        elif function is hasattr and len(args) == 2 and isinstance(args[1], str):
            self.recorder.guards.add_read(args[0], args[1])

    def _guard_classes(self, value: object, kinds: object = ()) -> None:
        """Guards what a class inherits from, and the classes registered with an abstract one."""
        own = value if isinstance(value, type) else type(value)
        guards = self.recorder.guards
        guards.add_bases(own)
        abstract = isinstance(kinds, abc.ABCMeta) or (
            isinstance(kinds, tuple) and any(isinstance(k, abc.ABCMeta) for k in kinds)
        )
        if abstract and not is_library(own.__module__):
            token = abc.get_cache_token
            guards.add_result("abc", "the classes registered with abstract ones", token, token())

    def _interpretable(self, function: Any) -> FunctionSource | None:
        if not self._is_read(function):
            return None
        tracer = self.recorder.guards.tracer
        was_on = tracer.enable(False)  # parsing calls a thousand functions
        try:
            return source_of(function)
        finally:
            tracer.enable(was_on)

    def _is_read(self, function: object) -> bool:
        """Whether a function is one of the user, whose source counts."""
        if not isinstance(function, types.FunctionType):
            return False
        if hasattr(function, "is_captured"):  # one of this package that tensors decide about
            return True
        # the module of its code: functools.wraps copies `__module__` from the wrapped function
        module = str(function.__globals__.get("__name__")).partition(".")[0]
        path = function.__code__.co_filename
        return not (module in LIBRARIES or "site-packages" in path or "dist-packages" in path)

    def _run(
        self, function: Any, source: FunctionSource, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> object:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        frame = Frame(source, function.__globals__, cells=cells)  # pyright: ignore[reportArgumentType]
        frame.names.update(_bind(python_signature(function), args, kwargs))
        frame.given = (*frame.names.values(),)
        self.effects.seen((function.__defaults__, *(function.__kwdefaults__ or {}).values()))
        self.recorder.guards.add_call(function)
        return self._body(frame)

    def run_nested(self, function: NestedFunction, args: tuple[Any, ...], kwargs: Any) -> object:
        """Calls a function that is defined inside interpreted code.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        outer = function.frame
        frame = Frame(function.source, outer.globals, parent=outer)
        frame.names.update(_bind(function.__signature__, args, kwargs))
        frame.given = (*frame.names.values(),)
        return self._body(frame)

    def _body(self, frame: Frame) -> object:
        limit = min(_MAX_DEPTH, context.max_call_depth)
        if self._calls >= limit:
            self._refuse_depth(frame, f"recursion deeper than {limit} calls")
        self._calls += 1
        self.root = self.root or frame
        outer, self.current = self.current, frame
        frame.caller = outer
        was_on = self.recorder.guards.tracer.enable(True)
        try:
            done = self.block(frame.source.body, frame)
        except TvmgraphError:
            raise
        except RecursionError:
            self._refuse_depth(frame, "recursion this deep")
        except Exception as e:
            at = frame.source.location(frame.node or frame.source.node)
            e.add_note(f"  while compiling {frame.source.name}, at {at}")
            raise
        finally:
            self._calls -= 1
            self.current = outer
            self.recorder.guards.tracer.enable(was_on)
        return self._result(done, frame)

    def _refuse_depth(self, frame: Frame, what: str) -> NoReturn:
        """Refuses a recursion, unless small tensors of the call may say when it ends."""
        if self.settings.decide == "all" and not self.settings.settles:
            raise CapturedAgain(replace(self.settings, settles=True))
        fix = "make the recursion end by a Python value, or write a loop"
        self.refuse(frame.source.node, frame, what, fix)

    def _result(self, done: Completion, frame: Frame) -> object:
        if done.returned is False:
            return None
        if done.returned is True or done.gone:
            assert done.value is not None
            return done.value[0]
        self.refuse(
            frame.source.node, frame,
            "a function that returns a value on some paths and reaches its end on others",
            "return tensors of the same shape and dtype on every path",
        )  # fmt: skip

    def parent_class(self, frame: Frame) -> object:
        """Returns what ``super()`` means.

        Args:
            frame: The frame in which that code runs.
        """
        for f in frame.chain():
            cell = f.cells.get("__class__")
            if cell is not None:
                first = next(iter(f.names.values()))
                return super(cell.cell_contents, first)
        raise RuntimeError("super(): no arguments")

    def token(self) -> Tensor:
        """Returns the tensor that orders the prints of the graph."""
        if self._token is None:
            with self.recorder.recording_into(self.recorder.root):
                self._token = printing.first_token()
        return self._token

    @property
    def last_token(self) -> Tensor | None:
        """The token of the last print, if the graph prints."""
        return self._token

    # ---- values -----------------------------------------------------------------------------

    def truth(self, value: Any) -> Tensor | bool:
        """Returns a Python bool, or a ``bool[]`` tensor for a traced tensor.

        Args:
            value: What is tested.
        """
        value = self.recorder.size_as_tensor(value)
        self.impure.look_into(value)
        if self.settings.settles and isinstance(value, TracedTensor):
            known = settled(value, by_operator=False)
            if known is not None:
                return bool(known)
        return self._scalar(value) if self.is_symbolic(value) else bool(value)

    def number_of(self, truth: object) -> object:
        """Marks a ``bool[]`` tensor as standing for a Python bool.

        Args:
            truth: What :meth:`truth` returned.
        """
        if not isinstance(truth, Tensor):
            return truth
        return TracedNumber(self.recorder.snapshot(truth), bool)

    def _scalar(self, value: Tensor) -> Tensor:
        if value.size != 1:
            Tensor.__bool__(value)  # raises eager's error
        flat = F.reshape(value, ()) if value.shape else value
        return F.cast(flat, dtypes.bool_)

    def is_symbolic(self, value: object) -> bool:
        """Whether a value is a tensor whose elements differ from call to call.

        Args:
            value: Any object.
        """
        if isinstance(value, (TracedTensor, TracedNumber)):
            return True
        return isinstance(value, Tensor) and not self.recorder.is_constant(value)

    def operate(self, operation: Callable[[Any, Any], Any], left: object, right: object) -> object:
        """Applies a binary operator; sizes of values may be what the graph computes with.

        Args:
            operation: The operator of two values.
            left: The left operand.
            right: The right operand.
        """
        found = builtin.arithmetic(self, operation, left, right)
        if found is not None:
            return found
        self.impure.look_into(left, right)
        if isinstance(left, str):
            self.impure.show(right)
        if self.settings.lax and may_raise(operation, left, right) and self.current is not None:
            self.refuse(
                self.current.node or self.current.source.node, self.current,
                "a division or power of numbers that a tensor decides, which raises for some,",
                "compute with tensors",
            )  # fmt: skip
        return operation(left, right)

    def iterate(self, value: Any, node: ast.AST, frame: Frame) -> Iterator[object]:
        """Iterates over the items of something.

        Args:
            value: What is iterated over.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        frame.node = node
        self.impure.look_into(value)
        self.impure.hand_out(value)
        for item in iter(value):
            yield self.effects.item(value, item)

    # ---- errors -----------------------------------------------------------------------------

    def wide(self) -> Callable[[], NoReturn]:
        """Returns what refuses the integer that is computed now: it may not fit 64 bits."""
        frame, root = self.current, self.root
        node = frame and (frame.node or frame.source.node)
        blamed = root.node if root is not None else None
        what = "an integer that a tensor decides, and that may need more than 64 bits,"
        fix = "make it a Tensor of int64, which wraps, or keep it small: `n % m`, `min(n, m)`"

        def refuse() -> NoReturn:
            self.blamed = blamed
            if frame is None or node is None:
                self.refuse_here(what, fix)
            self.refuse(node, frame, what, fix)

        return refuse

    def line(self) -> str:
        """Returns ``file.py:line`` of what is executed, also where that calls a library."""
        frame = self.current
        if frame is None:
            return ""
        return frame.source.location(frame.node or frame.source.node)

    def refuse(
        self, node: ast.AST, frame: Frame, what: str, fix: str = "",
        verb: str = "is not supported", kind: type[CaptureError] = CaptureError,
    ) -> NoReturn:  # fmt: skip
        """Raises the error for something that cannot be part of a graph.

        Args:
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
            what: What cannot be part of a graph.
            fix: What the user may do.
            verb: What follows ``what`` in the message.
            kind: Class of the error.

        Raises:
            CaptureError: always.
        """
        at, text = frame.source.describe(node)
        shown = "".join(f"\n         {line}" for line in text.splitlines())
        where = "" if not verb else f" {verb} in a static graph"
        raise kind(
            f"{what}{where}", op=frame.source.name, at=at + shown,
            fix=fix or "do it outside of the compiled function",
        )  # fmt: skip

    def refuse_here(self, what: str, fix: str = "", verb: str = "is not supported") -> NoReturn:
        """Refuses what the running code does; the captured function itself may be no code of ours.

        Args:
            what: What cannot be part of a graph.
            fix: What the user may do.
            verb: What follows ``what`` in the message.

        Raises:
            CaptureError: always.
        """
        frame = self.current
        if frame is not None:
            self.refuse(frame.node or frame.source.node, frame, what, fix, verb)
        where = f" {verb} in a static graph" if verb else ""
        raise CaptureError(
            what + where, op="jit", at=user_source(),
            fix=fix or "do it outside of the compiled function",
        )  # fmt: skip


def _length(value: object, *_: object) -> object:
    """The length of a traced tensor, which need not be a number."""
    return value.shape[0] if isinstance(value, TracedTensor) and value.shape else None


def _is_instance(value: Any, kinds: Any, *_: object) -> bool | None:
    """What stands for something during a capture is an instance of its type."""
    if isinstance(value, STANDING):
        return issubclass(value.shown_type, kinds)
    return isinstance(value.kind(1), kinds) if isinstance(value, Symbol) else None


def _through(name: str) -> Callable[..., object]:
    """Python functions of numbers keep symbols."""

    def call(*args: object) -> Any:
        if name in ("int", "float") and len(args) == 1 and isinstance(args[0], TracedNumber):
            return args[0].converted(int if name == "int" else float)
        whole = name == "int" and len(args) == 1 and isinstance(args[0], Dim)
        if whole:
            return args[0]
        symbolic = all(map(is_number, args)) and any(isinstance(a, Symbol) for a in args)
        return apply_function(name, *args) if symbolic else None

    return call


_ON_SYMBOLS: dict[object, Callable[..., object]] = {
    len: _length, isinstance: _is_instance, **{f: _through(n) for n, f in FUNCTIONS.items()},
}  # fmt: skip


def _bind(
    signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, Any]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


speaks_for_users(Interpreter._run_natively)
