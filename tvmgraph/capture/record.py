"""Runs a function once with traced tensors and returns the graph with all that surrounds it."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tvmgraph.capture import tree
from tvmgraph.capture.checks import CellLike, is_cell
from tvmgraph.capture.collector import no_collection
from tvmgraph.capture.deciding import Deciding
from tvmgraph.capture.effects import Effect
from tvmgraph.capture.guards import Guards
from tvmgraph.capture.handlers import outside_capture
from tvmgraph.capture.identity import check_returned, chosen_leaves, view_leaves
from tvmgraph.capture.interpreter import Interpreter
from tvmgraph.capture.native_effects import NativeEffects
from tvmgraph.capture.promotion import (
    Promotion,
    Resolver,
    number_paths,
    resolver,
    symbols_for,
    with_numbers,
)
from tvmgraph.capture.recorder import Recorder
from tvmgraph.capture.settings import CapturedAgain, Settings
from tvmgraph.capture.sources import ABSENT, held, reference
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.op import load_table
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.state import derived, state
from tvmgraph.core.symbols import Symbol, SymbolScope, specialise_inside
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType
from tvmgraph.errors import CaptureError, user_source
from tvmgraph.graph import Graph, Value
from tvmgraph.interruption import held_back
from tvmgraph.signatures import python_signature


@dataclass(frozen=True)
class AttributeRef:
    """An attribute whose tensor is read anew at every call, because calls replace it.

    Attributes:
        owner: Returns the object, which is held weakly where it can be.
        name: The attribute.
        label: What it is called in messages.
    """

    owner: Callable[[], object]
    name: str
    label: str

    def read(self) -> Any:
        """Returns what the attribute holds now."""
        owner = self.owner()
        found = getattr(owner, "__dict__", {}).get(self.name, ABSENT)
        return held(owner, self.name) if found is ABSENT else found  # perhaps in a slot


@dataclass(frozen=True)
class Drawn:
    """First values of a Parameter that the function makes, drawn at every call as in eager code.

    Attributes:
        make: Computes them from seed and counter.
        delta: How many random blocks the call draws before.
    """

    make: Callable[[int, int], Tensor]
    delta: int

    def draw(self, state: Tensor) -> Tensor:
        """Returns the values for a call that starts with a state of the random stream.

        Args:
            state: State of the random stream, a tensor.
        """
        seed, offset = state.array
        return self.make(int(seed), int(offset) + self.delta)


Given = tuple[tuple[object, ...], dict[str, object]]  #: positional and keyword arguments
Holder = int | Tensor | AttributeRef | Drawn | None
_NOTHING = Promotion()


@dataclass(frozen=True)
class Captured:
    """A graph and how Python meets it.

    Attributes:
        graph: The graph; its params are the tensor arguments, then what was read by reference.
        holders: For every graph parameter: an argument's number, a Tensor, an
            :class:`AttributeRef`, a :class:`Drawn`, or ``None`` for the random state.
        result: Structure of the function's result (see :mod:`.tree`).
        written: Tensors (or argument numbers) that receive the trailing outputs.
        attributes: Attributes to set after a call: what returns the object, which is held weakly
            where it can be, the name, and the structure of the value.
        random_blocks: Random counter blocks that one call consumes; may be symbolic.
        random_leaf: Then the number among the tensor arguments and computed numbers.
        random_output: Number of the output that holds the random state after the call, where a
            tensor decides how much is drawn.
        effects: What to do to things outside after every call, in order.
        guards: Conditions for using this capture again.
        resolve: Where something is symbolic: tells whether the capture fits a call, and computes
            the numbers that are appended to its tensor arguments.
        promotion: What is symbolic.
        decided: Roots of the symbols whose values decided something.
        conditions: What was decided: comparisons as text, and how they came out.
        least: From which size on a file takes an axis, by root, where that is not 1.
        most: Up to which size, by root, where there is an end.
        computes: Whether there are numbers to compute at every call.
        containers_read: Where containers are changed: what was read and must not be an argument.
        aliasing_matters: Whether it matters which of the tensors it meets are one.
        deciding: The tensor arguments whose elements were taken for constants, if any.
    """

    graph: Graph
    holders: tuple[Holder, ...]
    result: tree.Structure
    written: tuple[int | Tensor, ...]
    attributes: tuple[tuple[Callable[[], object], str, tree.Structure], ...]
    random_blocks: int | Symbol
    guards: Guards
    random_output: int | None = None
    effects: tuple[Effect, ...] = ()
    random_leaf: int | None = None
    resolve: Resolver | None = None
    promotion: Promotion = _NOTHING
    decided: frozenset[str] = frozenset()
    conditions: Mapping[str, bool] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    computes: bool = False
    containers_read: tuple[object, ...] | None = None
    aliasing_matters: bool = False
    deciding: Deciding | None = None


@contextmanager
def _active(recorder: Recorder) -> Iterator[None]:
    """Makes the recorder the interpreter of this thread and observes user frames."""
    load_table()  # an import inside would be observed like code of the user
    outer = state.interpreter, state.tapes, state.scope
    with no_collection(), outside_capture():
        try:
            state.interpreter, state.tapes, state.scope = recorder, (), ()
            recorder.guards.tracer.begin()
            yield
        except BaseException:
            with held_back():
                recorder.roll_back()
                recorder.guards.native_effects.put_back()
            raise
        finally:
            state.interpreter, state.tapes, state.scope = outer  # first: Ctrl-C may come again
            recorder.guards.tracer.end()
            recorder.guards.native_effects = NativeEffects()  # guards live on, the copies need not


def argument_labels(
    fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, object]:
    """Returns the arguments as an ordered dict ``name -> value``, for labelling.

    Args:
        fn: The function.
        args: Its arguments by position.
        kwargs: Its arguments by name.
    """
    try:
        fn = fn.construct if is_cell(fn) else fn  # pyright: ignore[reportFunctionMemberAccess]
        return python_signature(fn).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {f"arg{i}": a for i, a in enumerate(args)} | kwargs


def capture(
    fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object],
    settings: Settings | None = None, promotion: Promotion | None = None, aliased: bool = False,
) -> Captured:  # fmt: skip
    """Captures one call of ``fn``.

    Args:
        fn: The function or Cell.
        args: Positional arguments; tensors inside nested tuples, lists and dicts become inputs.
        kwargs: Keyword arguments.
        settings: How; the defaults interpret user code.
        promotion: Which sizes and numbers are symbolic; none by default.
        aliased: Whether a tensor that is passed twice, or passed and read by the function itself,
            stays one tensor: what is written to it here is seen there.

    Raises:
        Specialise: if the value of something symbolic is needed.
        CaptureError: if the Python code needs the value of a tensor, or returns something that
            is neither a tensor nor a constant.
    """
    settings = settings or Settings()
    while True:
        try:
            return _capture_with(fn, (args, kwargs), settings, promotion, aliased)
        except CapturedAgain as e:
            settings = e.settings


def _capture_with(
    fn: Callable[..., object], given: Given, settings: Settings, promotion: Promotion | None,
    aliased: bool,
) -> Captured:  # fmt: skip
    recorder = Recorder(_graph_name(fn))
    recorder.keeps_identity = aliased
    try:
        return _capture_in(recorder, fn, given, settings, promotion)
    finally:
        recorder.let_go()


def _capture_in(
    recorder: Recorder, fn: Callable[..., object], given: Given, settings: Settings,
    promotion: Promotion | None,
) -> Captured:  # fmt: skip
    if settings.lax and derived:
        _refuse_derived(tree.tensors(given))
    leaves = tree.tensors(given)
    if not promotion:
        captured = _capture(recorder, fn, given, settings, _NOTHING)
        if captured.deciding is None:
            return captured
        resolve = resolver(_NOTHING, SymbolScope({}), (), leaves, given, captured.deciding.same)
        return replace(captured, resolve=resolve)
    recorder.symbols = symbols = promotion.scope(leaves, [n for _, n in number_paths(given)])
    with promotion.in_place(symbols):
        captured = _capture(recorder, fn, given, settings, promotion)
    computed = [(symbol, dtype) for symbol, _, dtype in recorder.computed()]
    same = captured.deciding and captured.deciding.same
    resolve = resolver(promotion, symbols, computed, leaves, given, same)
    return replace(
        captured, resolve=resolve, promotion=promotion, decided=frozenset(symbols.decided),
        conditions=symbols.conditions, computes=bool(computed), least=symbols.least,
        most=symbols.most,
    )  # fmt: skip


def _capture(
    recorder: Recorder,
    fn: Callable[..., object],
    given: Given,
    settings: Settings,
    promotion: Promotion,
) -> Captured:
    recorder.guards.precise = settings.mode != "trace"
    recorder.guards.pure = settings.lax and settings.mode != "trace"
    recorder.guards.add_function(fn)
    leaves = tree.tensors(given)
    traced = _arguments(recorder, fn, given, promotion)
    caller = given
    if promotion.numbers:
        given = with_numbers(given, symbols_for(promotion, given))
    if settings.decide:
        recorder.deciding = Deciding([t.value for t in traced], leaves, settings.decide == "all")
    if recorder.keeps_identity:
        recorder.identify(leaves, traced)
    shown = [recorder.same_as(t, new) for t, new in zip(leaves, traced)]
    args, kwargs = tree.replace(given, iter(shown))
    before = [t.value for t in traced]
    interpreter = Interpreter(recorder, settings)
    if settings.mode != "trace":
        interpreter.effects.add_arguments((args, kwargs))
        interpreter.effects.add_originals(caller, (args, kwargs))
        recorder.call = interpreter.call
    with _active(recorder):
        try:
            captured = _interpret(interpreter, fn, args, kwargs, before)
            interpreter.check_left()
        finally:
            interpreter.let_go()
        recorder.guards.look_again()
        return captured


def _interpret(
    interpreter: Interpreter, fn: Callable[..., object], args: tuple[object, ...],
    kwargs: dict[str, object], before: list[Value],
) -> Captured:  # fmt: skip
    """Executes a call and takes back what it noted: every call will do it."""
    recorder = interpreter.recorder
    try:
        value = recorder.call(fn, args, kwargs)
        interpreter.hoisted.finish(interpreter)
        recorder.guards.tracer.enable(False)  # the user's code is done
        return _finish(recorder, value, before, interpreter)
    except CaptureError as e:
        if interpreter.root is not None:
            e.node = interpreter.blamed or interpreter.root.node
            e.names = interpreter.root.names.copy()
        raise
    finally:
        with held_back():
            interpreter.effects.undo()


def _arguments(
    recorder: Recorder, fn: Callable[..., object], given: Given, promotion: Promotion
) -> list[TracedTensor]:
    """Returns what stands for the tensors among the arguments."""
    labels = tree.labels(argument_labels(fn, *given))
    leaves = tree.tensors(given)
    names = tree.unique([labels.get(id(t), f"arg{i}") for i, t in enumerate(leaves)])
    types = [promotion.type_of(i, t.aval) for i, t in enumerate(leaves)]
    traced = [recorder.argument(t, n) for t, n in zip(types, names)]
    for t, new in zip(leaves, traced):
        new.passed, new._hooks = t if isinstance(t, Parameter) else None, t._hooks
    return traced


def _refuse_derived(leaves: Sequence[Tensor]) -> None:
    """Leaves tensors of a class of the user's to Python: methods may do anything there."""
    for t in leaves:
        if type(t) in derived:
            raise CaptureError(
                f"a {type(t).__name__} is passed, whose class may have methods of its own",
                op="jit", at=user_source(), fix="pass a Tensor",
            )  # fmt: skip


def record(fn: Callable[..., object], *args: object, **kwargs: object) -> Graph:
    """Records one call of a function or Cell and returns the graph.

    Args:
        fn: The function or Cell.
        args: Its arguments; of tensors shapes and dtypes count, values do not.
        kwargs: Arguments by name.

    Example:
        >>> print(record(lambda x: x * 2, Tensor([1.0])))
        graph fn_lambda_(%0: float32[1] input "x") {
          %1: float32[] = const([2.0])
          %2: float32[1] = mul(%0, %1)  # <doctest tvmgraph.capture.record.record[0]>:1
          return %2
        }
    """
    return capture(fn, args, kwargs).graph


def _graph_name(fn: Callable[..., object]) -> str:
    name = getattr(fn, "__name__", None) or type(fn).__name__
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return name if name[:1].isalpha() else f"fn{name}"


def _finish(
    recorder: Recorder, value: object, before: list[Value], interpreter: Interpreter
) -> Captured:
    outputs: list[Value] = []
    leaves: dict[int, tree.Leaf] = {}
    leaf = _once(lambda x: _result_leaf(recorder, x, before, outputs), leaves)
    if interpreter.settings.mode == "region" and recorder.chosen:  # Python code goes on with them
        leaf = chosen_leaves(recorder, leaf, tree.tensors(value), outputs)

    effects, shown = interpreter.effects, _shown_leaf(leaf)
    _check_results(value, interpreter)
    _keep_parameters(recorder)
    existing = effects.existing if interpreter.settings.lax else lambda v: None
    described = tree.Described(view_leaves(recorder, leaf, tree.tensors(value)), existing)
    result = described(value)
    kept = _kept_leaf(recorder, shown)
    stored = tree.Described(kept, lambda v: existing(v) or effects.reference(v), described)
    attributes = _attribute_effects(recorder, stored)
    done = effects.finish(stored, tree.Described(shown, existing, described))
    attributes = _read_anew(recorder, attributes, leaves)
    if interpreter.last_token is not None:  # keeps the prints alive
        outputs.append(recorder.value_of(interpreter.last_token))
    position = _computed_position(recorder, outputs)
    changed = [(i, t.value) for i, t in enumerate(recorder.arguments) if t.value is not before[i]]
    writes: list[tuple[int | Tensor, Value]] = [*changed, *recorder.written()]
    names = _names(recorder, before, [w for w, _ in writes])
    blocks: int | Symbol = recorder.root.blocks if position is None else 0
    random_leaf = len(before) + recorder.result(blocks) if isinstance(blocks, Symbol) else None
    graph = recorder.root.builder.build([*outputs, *(v for _, v in writes)], names)
    recorder.check_whole(graph)
    aliasing_matters = recorder.aliasing_matters or bool(writes)
    recorder.guards.settle()
    return Captured(
        graph, _holders(recorder, before, attributes), result, tuple(w for w, _ in writes),
        tuple((reference(o), n, s) for o, n, s, _ in attributes), blocks, recorder.guards,
        position, done, random_leaf, containers_read=interpreter.effects.apart(),
        aliasing_matters=aliasing_matters,
        deciding=recorder.deciding if recorder.deciding and recorder.deciding.taken else None,
    )  # fmt: skip


def _shown_leaf(leaf: Callable[[object], tree.Leaf]) -> Callable[[object], tree.Leaf]:
    """Returns what describes a leaf that is printed: nobody keeps it, whatever it is."""

    def shown(x: object) -> tree.Leaf:
        if isinstance(x, (Tensor, Symbol)):
            return leaf(x)
        specialise_inside(x)
        return tree.Leaf("constant", x)

    return shown


def _kept_leaf(
    recorder: Recorder, shown: Callable[[object], tree.Leaf]
) -> Callable[[object], tree.Leaf]:
    """Returns what describes a leaf that is stored outside: an object made here would be shared."""

    def kept(x: object) -> tree.Leaf:
        made = not (isinstance(x, (Tensor, Symbol)) or _is_constant(recorder, x))
        if made and recorder.interprets:
            raise recorder.guards.refused or CaptureError(
                f"a {type(x).__name__} that a compiled function makes is stored outside of it",
                op="jit", at=user_source(),
                fix="assign it to an attribute of a Cell, or make it outside",
            )  # fmt: skip
        return shown(x)

    return kept


def _names(recorder: Recorder, before: list[Value], written: list[int | Tensor]) -> list[str]:
    """Returns the names of tensors that are written, arguments by number."""
    labels = {p.value: p.label for p in recorder.root.builder.params}
    originals = {id(t): labels[v] for t, v in recorder.captured}
    return [labels[before[w]] if isinstance(w, int) else originals[id(w)] for w in written]


def _once(
    describe: Callable[[object], tree.Leaf], tensors: dict[int, tree.Leaf]
) -> Callable[..., tree.Leaf]:
    """Describes a tensor that is a result twice as one tensor."""

    def leaf(x: object) -> tree.Leaf:
        if not isinstance(x, Tensor):
            return describe(x)
        if id(x) not in tensors:
            tensors[id(x)] = describe(x)
        return tensors[id(x)]

    return leaf


def _keep_parameters(recorder: Recorder) -> None:
    """Keeps the Parameters that came into being and outlive the call.

    Those of Cells that the function makes for itself start anew at every call.
    """
    made = recorder.guards.made
    inner = {id(p) for cell in made.values() for p in cell._params.values()}
    for p in recorder.made():
        if id(p) not in inner:
            recorder.keep(p)
    for kept in _kept_cells(recorder):
        for p in kept._params.values():
            recorder.keep(p)


def _kept_cells(recorder: Recorder) -> list[CellLike]:
    """Returns the Cells that came into being and outlive the call, in Cells from outside."""
    made, found = recorder.guards.made, list[CellLike]()
    todo: list[CellLike | None] = []
    for cell, name, _ in recorder.attributes():
        if is_cell(cell) and id(cell) not in made:
            todo.append(cell._cells.get(name))
    while todo:
        cell = todo.pop(0)
        if cell is not None:
            found.append(cell)
            todo += cell._cells.values()
    return found


def _computed_position(recorder: Recorder, outputs: list[Value]) -> int | None:
    """Makes the random state an output where a branch or loop computed it."""
    if recorder.root.random in (None, recorder.random_state):
        return None
    outputs.append(recorder.position())
    return len(outputs) - 1


def _holders(
    recorder: Recorder, before: list[Value], attributes: list[_Effect]
) -> tuple[Holder, ...]:
    by_value: dict[Value | None, Holder] = {v: i for i, v in enumerate(before)}
    replaced = {
        id(old): AttributeRef(reference(o), name, f"{type(o).__name__}.{name}")
        for o, name, _, old in attributes
    }
    by_value.update((v, replaced.get(id(t), t)) for t, v in recorder.captured)
    by_value.update((v, len(before) + i) for i, (_, v, _) in enumerate(recorder.computed()))
    by_value.update((v, Drawn(make, delta)) for v, make, delta in recorder.drawn)
    return tuple(by_value.get(p.value) for p in recorder.root.builder.params)


def _check_results(results: object, interpreter: Interpreter) -> None:
    """Leaves to Python, with a graph break, what it goes on with and asks too much of.

    Views of dicts, which it may change; and tensors of a loop that may be others, if it asks that.
    """
    if interpreter.settings.mode != "region":
        return
    if interpreter.settings.identity:
        check_returned(interpreter.recorder, tree.tensors(results))
    for x in results if isinstance(results, tuple) else (results,):
        if isinstance(x, tree.VIEWS):
            error = CaptureError(f"a {type(x).__name__} is a view", op="jit", at=user_source())
            error.value = (x,)
            raise error


def _result_leaf(
    recorder: Recorder, x: Any, before: list[Value], outputs: list[Value]
) -> tree.Leaf:
    """Describes one leaf of the result."""
    if isinstance(x, Tensor):
        value = recorder.value_of(x)
        if any(t is x for t, _ in recorder.captured):  # the caller gets what was read
            return tree.Leaf("object", x)
        passed = recorder.same_as(x, x)  # it may be read in another way, too
        for i, argument in enumerate(recorder.arguments):
            if argument is passed:
                return tree.Leaf("argument", i)
        outputs.append(value)
        return tree.Leaf("output", len(outputs) - 1)
    if isinstance(x, Symbol) and recorder.is_bound(x):
        outputs.append(recorder.value_of(recorder.size_as_tensor(x)))
        return tree.Leaf("number", len(outputs) - 1)
    if isinstance(x, Symbol):
        return tree.Leaf("argument", len(before) + recorder.result(x))
    specialise_inside(x)
    if _is_constant(recorder, x):
        return tree.Leaf("constant", x)
    error = CaptureError(
        f"a compiled function cannot return a {type(x).__name__}", op="jit", at=user_source(),
        fix="return tensors, numbers, strings, None, or tuples, lists and dicts of them",
    )  # fmt: skip
    error.value = (x,)
    raise error


_DATA = (
    type(None), bool, int, float, complex, str, bytes, np.generic, DType, range, type(...),
)  # fmt: skip


def _is_constant(recorder: Recorder, x: object) -> bool:
    """Whether a value does not change, or existed before the call because of what it is."""
    if isinstance(x, _DATA):
        return True
    if is_cell(x):
        return id(x) not in recorder.guards.made
    return isinstance(x, (types.ModuleType, types.BuiltinFunctionType, type)) and not isinstance(
        getattr(x, "__self__", None), (list, dict, set, Tensor)
    )


_Effect = tuple[object, str, tree.Structure, object]


def _attribute_effects(recorder: Recorder, describe: tree.Described) -> list[_Effect]:
    """Describes attributes that were written and must be set after every call."""
    effects: list[_Effect] = []
    gone = recorder.guards.made.keys() - set(map(id, _kept_cells(recorder)))
    for owner, name, before in recorder.attributes():
        if id(owner) in gone:  # nobody sees it after the call
            continue
        value = held(owner, name)
        if value is ABSENT:  # it became a Parameter or a Cell, once and for all
            continue
        if recorder.interprets or any(isinstance(t, TracedTensor) for t in tree.tensors(value)):
            effects.append((owner, name, describe(value), before))
            recorder.restore(owner, name, before)  # the call itself will set it
    return effects


def _read_anew(
    recorder: Recorder, effects: list[_Effect], leaves: Mapping[int, tree.Leaf]
) -> list[_Effect]:
    """Returns written attributes with the tensors of which the attribute is read at every call.

    Which one it held is no guard then. It is one where the tensor was read elsewhere as well, or is
    returned or kept itself: that is this very tensor.

    Args:
        recorder: The capture.
        effects: What :func:`_attribute_effects` returned.
        leaves: What the results and what is stored are, by the ``id`` of the tensor.
    """
    any_tensor = recorder.guards.allow_any_tensor

    def anew(owner: object, name: str, before: object) -> bool:
        found = leaves.get(id(before))
        leaves_call = found is not None and found.kind == "object"
        return isinstance(before, Tensor) and not leaves_call and any_tensor(owner, name, before)

    return [(o, n, s, b if anew(o, n, b) else None) for o, n, s, b in effects]
