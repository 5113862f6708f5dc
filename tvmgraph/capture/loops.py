"""Loops that a tensor decides about: test and body become regions of one node.

What the loop carries is found by recording the body until nothing new turns up: a variable whose
value the body changes, a tensor it assigns, the random position, and whether it broke or returned.
A Python number is carried as a 0-d tensor that remembers what it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tvmgraph import dtypes
from tvmgraph.capture import tree
from tvmgraph.capture.frame import Completion, Frame, Unset
from tvmgraph.capture.function_source import bound_names, within
from tvmgraph.capture.hoist import recorded_again
from tvmgraph.capture.identity import Carried, may_be, unsettled
from tvmgraph.capture.merge import Side, as_tensor, describe, zeros
from tvmgraph.capture.region import Region
from tvmgraph.capture.snapshot import Snapshot
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.capture.traced_number import NUMBERS, TracedNumber, as_scalar, held
from tvmgraph.core.arguments import literal
from tvmgraph.core.op import F
from tvmgraph.core.random import STATE_TYPE
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)


_MAX_ROUNDS = 12  # every round finds at least one more carried value


@dataclass
class Plan:
    """What a loop carries.

    Attributes:
        names: Carried variables with their initial values, numbers as 0-d tensors.
        tensors: Tensors that the body assigns.
        random: Whether the body draws random numbers.
        flags: Which of "broke" and "returned" a tensor decides about.
        value: An example of what the body returns.
    """

    names: dict[str, Any] = field(default_factory=dict)
    tensors: dict[int, Tensor] = field(default_factory=dict)
    random: bool = False
    flags: set[str] = field(default_factory=set)
    value: object = None


class Loops:
    """The part of the interpreter that records loops."""

    def count(
        self: Interpreter, bounds: tuple[Any, Any, Any], node: ast.For, frame: Frame
    ) -> Completion:
        """Records ``for i in range(start, stop, step)`` whose trip count is not known.

        Args:
            bounds: Start, stop and step; integers or 0-d tensors.
            node: The loop.
            frame: The frame in which that code runs.
        """
        start, stop, step = map(_as_number, bounds)
        if isinstance(held(step), Tensor):
            self.refuse(
                node, frame, "a `range` whose step is a tensor", "make the step a Python number"
            )
        if not isinstance(node.target, ast.Name):
            self.refuse(node, frame, "this loop variable", "use a single name")
        counter, name = (
            f"range:{node.lineno}:{node.col_offset}",
            frame.source.mangle(node.target.id),
        )
        owner = frame.owner(name) or frame
        frame.names[counter] = start
        if name not in owner.names:
            owner.names[name] = start

        def test() -> Any:
            now = frame.names[counter]
            return now < stop if step > 0 else now > stop

        def first() -> None:
            now: Any = frame.names[counter]
            owner.names[name] = now
            frame.names[counter] = _counted(now, step)

        try:
            return self.loop(lambda: self.truth(test()), first, node, frame, [counter])
        finally:
            frame.names.pop(counter, None)

    def loop(
        self: Interpreter, test: Callable[[], Any], first: Callable[[], None] | None,
        node: ast.For | ast.While, frame: Frame, hidden: list[str],
    ) -> Completion:  # fmt: skip
        """Records a loop; ``first`` runs at the start of every iteration.

        Args:
            test: Evaluates whether another iteration follows.
            first: What runs at the start of an iteration; None for nothing.
            node: The loop.
            frame: The frame in which that code runs.
            hidden: Names that only the loop itself uses.
        """
        return recorded_again(
            self, node, frame, lambda: self._loop(test, first, node, frame, hidden)
        )

    def _loop(
        self: Interpreter, test: Callable[[], object], first: Callable[[], None] | None,
        node: ast.For | ast.While, frame: Frame, hidden: list[str],
    ) -> Completion:  # fmt: skip
        if isinstance(node, ast.While) and any(
            isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)
        ):
            self.refuse(node.test, frame, "`:=` in the test of a loop", "assign it in the body")
        nodes = list(within([node]))
        names = [frame.source.mangle(n) for n in sorted(bound_names(nodes))]
        names = [*hidden, *names, *self.hoisted.frame.names]
        recording = _Recording(self, test, first, node, frame, names)
        for _ in range(_MAX_ROUNDS):
            attempt = recording.attempt()
            if recording.learn(attempt):
                continue
            done = recording.emit(attempt)
            return self._after_loop(done, node, frame)
        self.refuse(
            node, frame, "a loop whose variables never settle on one shape and dtype",
            "give every variable its final shape and dtype before the loop",
        )  # fmt: skip

    def _after_loop(
        self: Interpreter, done: Completion, node: ast.For | ast.While, frame: Frame
    ) -> Completion:
        rest = Completion(done.returned, value=done.value)
        if not node.orelse:
            return rest
        flags = [f for f in (done.returned, done.broke) if isinstance(f, Tensor)]
        if not flags:
            return self.block(node.orelse, frame)
        leaving = Completion(done.returned, done.broke, value=done.value)
        return self.skip(
            leaving, lambda: self.block(node.orelse, frame), node, frame, after_loop=True
        )


@dataclass
class _Attempt:
    """One recording of test and body, and what their variables were bound to."""

    test: Side
    body: Side
    tested: dict[str, object]
    bound: dict[str, object]
    regions: tuple[Region, Region]
    before: Snapshot


class _Recording:
    """Records a loop again and again until what it carries is known."""

    def __init__(
        self, interpreter: Interpreter, test: Callable[[], object],
        first: Callable[[], None] | None, node: ast.For | ast.While, frame: Frame, names: list[str],
    ) -> None:  # fmt: skip
        self.i = interpreter
        self.test, self.first, self.node, self.frame = test, first, node, frame
        self.names = list(dict.fromkeys(names))
        self.plan = Plan()
        root = interpreter.root
        self.at = node if root is None or frame is root else root.node
        for n in self.names:
            value = self._owner(n).names.get(n)
            if value is not None and tree.tensors(value):
                self.plan.names[n] = carried(value)

    def _owner(self, name: str) -> Frame:
        hoisted = self.i.hoisted.frame
        return hoisted if name in hoisted.names else self.frame.owner(name) or self.frame

    # ---- recording --------------------------------------------------------------------------

    def attempt(self) -> _Attempt:
        """Records test and body once with the present plan."""
        outer = self.i.recorder.region
        regions = (Region("cond", outer), Region("body", outer))
        snapshot = self.i.snapshot(self.frame)
        tested: dict[str, object] = {}
        bound: dict[str, object] = {}

        def condition() -> Tensor:
            flags = self._bind(regions[0], tested)
            going_on = as_tensor(self.test())
            for f in flags:
                going_on = F.logical_and(going_on, F.logical_not(f))
            return going_on

        def body() -> Completion:
            self._bind(regions[1], bound)
            if self.first is not None:
                self.first()
            return self.i.block(self.node.body, self.frame)

        test = self.i.trace(regions[0], snapshot, condition)
        side = self.i.trace(regions[1], snapshot, body)
        return _Attempt(test, side, tested, bound, regions, snapshot)

    def _bind(self, region: Region, bound: dict[str, object]) -> list[TracedTensor]:
        """Makes parameters of everything carried and binds the variables to them."""
        recorder, plan = self.i.recorder, self.plan

        def parameter(t: Tensor, label: str) -> TracedTensor:
            return TracedTensor(recorder, region.state(t.aval, label))

        for name, value in plan.names.items():
            leaves = [parameter(t, name.partition(":")[0]) for t in tree.tensors(value)]
            bound[name] = self._owner(name).names[name] = shown(value, leaves)
            for t in leaves:
                recorder.moving[id(t)] = t, self._refuse_identity
        states = [(t, region.state(t.aval, "state")) for t in plan.tensors.values()]
        if plan.random:
            region.random, region.blocks = region.state(STATE_TYPE, "random_state"), 0
        flag = tensor_flag()
        flags = [parameter(flag, n) for n in sorted(plan.flags)]
        for t in tree.tensors(plan.value):
            parameter(t, "result")
        for t, state in states:  # after all parameters: it brings in what the tensor was before
            recorder.denote(t, TracedTensor(recorder, state))
        return flags

    # ---- learning ---------------------------------------------------------------------------

    def learn(self, attempt: _Attempt) -> bool:
        """Adds to the plan what the attempt revealed; returns whether there was anything."""
        plan, side = self.plan, attempt.body
        size = self._size()
        if side.changed or attempt.test.changed or side.effects or attempt.test.effects:
            self.i.refuse(
                self.node, self.frame, "changing a list, dict or set in a loop that a tensor ends",
                "write rows of a preallocated tensor: out[i] = value",
            )  # fmt: skip
        self._check_test(attempt)
        again = self._learn_written(attempt)
        for name in self.names:
            again |= self._learn_name(name, attempt)
        for s in (attempt.test, side):
            plan.tensors.update({k: t for k, (t, _) in s.assigned.items()})
            plan.random = plan.random or s.region.random is not None
        done = side.result
        for label, flag in (("broke", done.broke), ("returned", done.returned)):
            if flag is not False:
                plan.flags.add(label)
        if done.value is not None and plan.value is None:
            plan.value = self._example(done.value)
        return again or self._size() != size

    def _written(
        self, side: Side, bound: dict[str, object], attempt: _Attempt
    ) -> list[tuple[Frame, str]]:  # fmt: skip
        """Returns the variables that test or body give another value, with their frames."""
        found = []
        for (frame, before), after in zip(attempt.before.names, side.names):
            for name, value in after.items():
                own = name in bound and self._owner(name) is frame
                start = bound[name] if own else before.get(name, _UNSET)
                if value is not start and not same_number(value, start):
                    found.append((frame, name))
        return found

    def _check_test(self, attempt: _Attempt) -> None:
        """Refuses a test that does more than to decide: only the body says what is carried."""
        test, region = attempt.test, attempt.test.region
        given = {p.value for p in region.builder.params}
        draws = region.blocks or (region.random is not None and region.random not in given)
        assigns = any(now not in given for _, now in test.assigned.values())
        if draws or assigns or self._written(test, attempt.tested, attempt):
            self.i.refuse(
                getattr(self.node, "test", self.node), self.frame,
                "a test that writes variables or tensors, or draws random numbers, in a loop that "
                "a tensor ends", "do it in the body",
            )  # fmt: skip

    def _learn_written(self, attempt: _Attempt) -> bool:
        """Carries what functions that the body calls write to the variables around them."""
        before = len(self.names)
        for frame, name in self._written(attempt.body, attempt.bound, attempt):
            if name not in self.names and self._owner(name) is frame:
                self.names.append(name)
            elif self._owner(name) is not frame:
                self.i.refuse(
                    self.node, self.frame, f"writing {name!r} of another function in a loop that "
                    "a tensor ends", "return the value, and assign it in the loop",
                )  # fmt: skip
        return len(self.names) != before

    def _size(self) -> tuple[object, ...]:
        plan = self.plan
        return (
            len(plan.names),
            len(plan.tensors),
            plan.random,
            len(plan.flags),
            plan.value is None,
        )

    def _example(self, value: object) -> object:
        """Returns zeros in the structure of what the body returns."""
        value = carried(value)
        return tree.replace(value, iter([zeros_like_outside(t) for t in tree.tensors(value)]))

    def _learn_name(self, name: str, attempt: _Attempt) -> bool:
        owner = self._owner(name)
        index = next(i for i, (f, _) in enumerate(attempt.before.names) if f is owner)
        after = attempt.body.names[index].get(name, _UNSET)
        before = attempt.before.names[index][1].get(name, _UNSET)
        if name in self.plan.names:
            return self._settle(name, attempt.bound[name], after)
        if after is before or before is _UNSET or isinstance(before, Unset):
            return False
        if same_number(before, after):
            return False
        start = carried(before)
        if not tree.tensors(start) and not tree.tensors(after):
            self._changes(name, before, after)
        self.plan.names[name] = start
        return True

    def _settle(self, name: str, bound: object, after: object) -> bool:
        """Checks that a carried variable keeps its types; a number may widen once."""
        old = tree.tensors(self.plan.names[name])
        new = tree.tensors(carried(after)) if not isinstance(after, Unset) else []
        if len(old) != len(new) or structure(carried(bound)) != structure(carried(after)):
            self._changes(name, bound, after)
        changed = False
        leaves = []
        for o, n in zip(old, new):
            if self.i.settings.lax and number_of(o) is not number_of(n):
                self._changes(name, bound, after)
            elif o.aval is n.aval:
                leaves.append(o)
            elif isinstance(o, CarriedNumber) and n.shape == () and n.dtype.kind in _WIDER[o.kind]:
                leaves.append(typed(o, n))
                changed = True
            elif not (isinstance(n, CarriedNumber) and fits(n, o)):
                self._changes(name, bound, after)
            else:
                leaves.append(o)
        if changed:
            self.plan.names[name] = tree.replace(self.plan.names[name], iter(leaves))
        return changed

    def _changes(self, name: str, before: object, after: object) -> None:
        self.i.refuse(
            self.node, self.frame,
            f"{name!r} changes from {describe(before)} to {describe(after)} in a loop that a "
            "tensor ends", "keep shape and dtype of what a loop carries", verb="",
        )  # fmt: skip

    # ---- emitting ---------------------------------------------------------------------------

    def emit(self, attempt: _Attempt) -> Completion:
        """Adds the loop node and binds its results."""
        recorder, plan = self.i.recorder, self.plan
        test, body = attempt.regions
        start, final = self._state(attempt)
        recorder_values = []
        with recorder.recording_into(test):
            condition = [recorder.value_of(attempt.test.result)]
        for make in final:
            with recorder.recording_into(body):
                recorder_values.append(recorder.value_of(make()))
        operands = list(dict.fromkeys([*test.imports, *body.imports]))
        graphs = (
            test.close(condition, operands, len(start)),
            body.close(recorder_values, operands, len(start)),
        )
        if not start:
            self.i.refuse(self.node, self.frame, "a loop that changes nothing", "remove it")
        moved = self._moved(attempt)
        given = [TracedTensor(recorder, v) for v in operands]
        outputs = iter(F.while_(*start, *given, cond=graphs[0], body=graphs[1]))
        self._rebind(attempt, outputs, moved)
        for t in plan.tensors.values():
            recorder.denote(t, next(outputs))
        if plan.random:
            recorder.set_position(recorder.value_of(next(outputs)))
        flags = {n: next(outputs) for n in sorted(plan.flags)}
        value = None
        if plan.value is not None:
            value = shown(plan.value, [next(outputs) for _ in tree.tensors(plan.value)])
        return Completion(flags.get("returned", False), flags.get("broke", False), value=value)

    def _refuse_identity(self) -> None:
        """Leaves the loop to Python."""
        self.i.blamed = self.at
        self.i.refuse(
            self.node, self.frame, "comparing with `is`, or writing to, a tensor that may be "
            "another one, which the iterations of a loop decide,",
            "copy the tensor before the loop: x = x.copy()",
        )  # fmt: skip

    def _moved(self, attempt: _Attempt) -> dict[int, list[Tensor]]:
        """Returns the values before the loop of what may be several tensors, with which those are.

        Raises:
            CaptureError: if the body writes to one of them.
        """
        carries: list[Carried] = []
        for name, value in self.plan.names.items():
            owner = self._owner(name)
            names = next(n for (f, _), n in zip(attempt.before.names, attempt.body.names)
                         if f is owner)  # fmt: skip
            parts = value, carried(attempt.bound[name]), carried(names[name])
            carries += [Carried(*c) for c in zip(*map(tree.tensors, parts))
                        if not isinstance(c[0], CarriedNumber)]  # fmt: skip
        region, arguments = attempt.body.region, {*map(id, self.i.recorder.arguments)}
        held = [id(t) for _, n in attempt.before.names for v in n.values() for t in tree.tensors(v)]

        def inside(t: Tensor) -> bool:
            return isinstance(t, TracedTensor) and region.defines(t.value)

        def alone(t: Tensor) -> bool:
            own = isinstance(t, TracedTensor) and t.choice is None and id(t) not in arguments
            return own and self.frame is self.i.root and held.count(id(t)) == 1

        moved = unsettled(carries, inside, alone)
        others = [[*may_be(c.start).values(), *may_be(c.after).values()] for c in moved]
        seen = {id(t) for found in others for t in found if not inside(t)}
        if not region.assigned.keys().isdisjoint(seen | {id(c.bound) for c in moved}):
            self._refuse_identity()
        return {id(c.bound): found for c, found in zip(moved, others)}

    def _rebind(
        self, attempt: _Attempt, outputs: Any, moved: dict[int, list[Tensor]]
    ) -> None:  # fmt: skip
        line, recorder = self.node.lineno, self.i.recorder
        for name, value in self.plan.names.items():
            leaves = [next(outputs) for _ in tree.tensors(value)]
            for new, t in zip(leaves, tree.tensors(carried(attempt.bound[name]))):
                if id(t) in moved:
                    recorder.moving[id(new)] = new, self._refuse_identity
                    for other in (new, *moved[id(t)]):
                        recorder.moved[id(other)] = other, self._refuse_identity
            self._owner(name).names[name] = shown(value, leaves)
        for name in self.names:
            owner = self._owner(name)
            if name not in owner.names:
                owner.names[name] = Unset(
                    f"only the loop at line {line} sets it, which may not run", self.node
                )

    def _state(self, attempt: _Attempt) -> tuple[list[Tensor], list[Callable[[], Tensor]]]:
        """Returns initial values, and functions that give the next ones inside the body."""
        plan, side = self.plan, attempt.body
        recorder = self.i.recorder
        start: list[Tensor] = []
        final: list[Callable[[], Tensor]] = []
        for name in plan.names:
            index = next(
                i for i, (f, _) in enumerate(attempt.before.names) if f is self._owner(name)
            )
            new = tree.tensors(carried(side.names[index][name]))
            for o, n in zip(tree.tensors(plan.names[name]), map(side.final, new)):
                start.append(o)
                final.append(lambda o=o, n=n: as_tensor(n, o.dtype))
        for key, t in plan.tensors.items():
            start.append(t)
            now = side.assigned[key][1] if key in side.assigned else None
            final.append(lambda t=t, now=now: t if now is None else TracedTensor(recorder, now))
        if plan.random:
            start.append(TracedTensor(recorder, recorder.position()))
            final.append(lambda: TracedTensor(recorder, recorder.position()))
        done = side.result
        for n in sorted(plan.flags):
            start.append(tensor_flag())
            flag = getattr(done, n)
            final.append(lambda flag=flag: as_tensor(flag))
        if plan.value is not None:
            values = tree.tensors(carried(done.value)) if done.value is not None else []
            for o, n in zip(tree.tensors(plan.value), values or tree.tensors(plan.value)):
                start.append(o)
                final.append(lambda o=o, n=n: as_tensor(n, o.dtype))
        return start, final


def _as_number(bound: object) -> Any:
    """Returns what a range begins, ends or goes on with; it counts in integers of Python."""
    return TracedNumber(F.cast(bound, dtypes.int64), int) if isinstance(bound, Tensor) else bound


def _counted(now: int | TracedNumber, step: int) -> int | TracedNumber:
    """Returns what comes after a number of a range; it is only seen where the range goes on."""
    if not isinstance(now, TracedNumber):
        return now + step
    return TracedNumber(now.tensor + as_scalar(step, dtypes.int64), int)


_UNSET = object()
_WIDER = {bool: "biuf", int: "iuf", float: "f"}


# ---- what a loop carries ------------------------------------------------------------------------


def carried(value: object) -> object:
    """Returns a value with its numbers as 0-d tensors that remember that they are numbers.

    Args:
        value: Any object.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TracedNumber):
        return value.tensor
    if isinstance(value, Symbol):
        return marked(as_tensor(value), value.kind)
    if type(value) in NUMBERS:
        return CarriedNumber(value, type(value))
    if isinstance(value, dict):
        return type(value)((k, carried(v)) for k, v in value.items())
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(carried(v) for v in value)
    return value


class CarriedNumber(Tensor):
    """The initial value of a carried number."""

    __slots__ = ("kind",)

    def __init__(self, value: object, kind: type) -> None:
        super().__init__(as_tensor(value, NUMBERS[kind]))
        self.kind = kind


def same_number(a: object, b: object) -> bool:
    """Whether two values are one number.

    Args:
        a: A value.
        b: Another one.
    """
    if isinstance(a, TracedNumber) or isinstance(b, TracedNumber):
        return a is b
    if isinstance(a, Symbol):
        return isinstance(b, Symbol) and a.text == b.text
    return type(a) is type(b) and type(a) in NUMBERS and literal(a) == literal(b)


def marked(tensor: Tensor, number: type | None) -> Tensor:
    """Notes that a loop carries a 0-d tensor for a Python number.

    Args:
        tensor: A 0-d tensor.
        number: The class of the number that it stands for; None for none.
    """
    if isinstance(tensor, TracedTensor):
        tensor.number = number
    return tensor


def number_of(tensor: Tensor) -> type | None:
    """Returns the class of the number for which a loop carries a tensor, if it does that.

    Args:
        tensor: A tensor of the capture, or of the outside.
    """
    if isinstance(tensor, CarriedNumber):
        return tensor.kind
    return tensor.number if isinstance(tensor, TracedTensor) else None


def shown(value: object, tensors: Iterable[Tensor]) -> Any:
    """Returns what variables hold for a carried value: its numbers are numbers again.

    Args:
        value: The carried value.
        tensors: What comes instead of its tensors; numbers where those of ``value`` are.
    """
    pairs = zip(tree.tensors(value), tensors)
    kinds = ((t, number_of(old)) for old, t in pairs)
    return tree.replace(value, iter([t if k is None else TracedNumber(t, k) for t, k in kinds]))


def zeros_like_outside(t: Tensor) -> Tensor:
    """Returns zeros of a type, still marked where they stand for a number.

    Args:
        t: A tensor of the outside of the loop.
    """
    if isinstance(t, CarriedNumber):
        return CarriedNumber(t.kind(0), t.kind)
    return marked(zeros(t.aval), number_of(t))


def typed(o: CarriedNumber, n: Tensor) -> Tensor:
    """Returns an initial number in the type that an iteration makes of it.

    Args:
        o: The initial number.
        n: What an iteration makes of it.
    """
    kind = number_of(n)
    if kind is not None:
        return CarriedNumber(o.item(), kind)
    return F.cast(Tensor(o), n.dtype)


def fits(n: CarriedNumber, o: Tensor) -> bool:
    """Whether a number can be carried as a tensor of the type of ``o``.

    Args:
        n: The number.
        o: The tensor.
    """
    return o.shape == () and o.dtype.kind in {bool: "b", int: "iuf", float: "f"}[n.kind]


def structure(value: object) -> object:
    """Returns the structure of nested containers.

    Args:
        value: Lists, tuples and dicts, in one another.
    """
    if isinstance(value, Tensor):
        return Tensor
    if isinstance(value, dict):
        return (dict, [(k, structure(v)) for k, v in value.items()])
    if isinstance(value, (tuple, list)):
        return (type(value), [structure(v) for v in value])
    return literal(value)


def tensor_flag() -> Tensor:
    """Returns a false flag."""
    return as_tensor(False)
