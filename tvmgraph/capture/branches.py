"""Branches that a tensor decides about: both sides become regions of one node."""

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)
from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from tvmgraph.capture.checks import is_function
from tvmgraph.capture.containers import Container, refill
from tvmgraph.capture.frame import Chosen, Completion, Frame, Unset
from tvmgraph.capture.hoist import Hoist, recorded_again
from tvmgraph.capture.identity import Choice
from tvmgraph.capture.merge import Merger, Mismatch, Plan, Side, as_tensor
from tvmgraph.capture.nested import NestedFunction
from tvmgraph.capture.region import Region
from tvmgraph.capture.settings import CapturedAgain
from tvmgraph.capture.snapshot import Snapshot
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, either

if TYPE_CHECKING:
    from tvmgraph.capture.effects import Noted
    from tvmgraph.capture.interpreter import Interpreter

_MISSING = object()


class ConditionalRaise(BaseException):
    """A side of a branch ends by raising an exception.

    Args:
        error: The exception.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


T = TypeVar("T")


class Branches:
    """The part of the interpreter that records branches."""

    def snapshot(self: Interpreter, frame: Frame) -> Snapshot:
        """Remembers everything that code running in a frame may change.

        Args:
            frame: The frame.
        """
        return Snapshot(frame, self.hoisted.frame)

    def trace(
        self: Interpreter, region: Region, snapshot: Snapshot, run: Callable[[], T]
    ) -> Side[T]:
        """Records ``run`` into a region and takes its effects back.

        Args:
            region: Where nodes go meanwhile.
            snapshot: What is put back afterwards.
            run: What is recorded.
        """
        tapes, state.tapes = state.tapes, ()
        mark, native_effects = self.effects.mark(), self.recorder.guards.native_effects
        for _, known in snapshot.names:
            native_effects.keep(*known.values())
        moment = native_effects.moment()
        self.depth += 1
        self.impure.kept.append(snapshot.iterators)
        try:
            with self.recorder.recording_into(region):
                result = run()
        finally:
            self.depth -= 1
            self.impure.kept.pop()
            state.tapes = tapes
            names, changed = snapshot.now()
            effects = self.effects.take_back(mark)
            native = native_effects.rewind(moment, self.effects.is_outside)
            snapshot.restore()
            assigned = self.recorder.leave(region)
        if native is not None and self.current is not None:
            frame = self.current
            self.refuse(
                frame.node or frame.source.node, frame,
                f"changing a {type(native).__name__} by code that runs natively where a tensor "
                "decides whether it happens", "do it outside of the branch or loop",
            )  # fmt: skip
        return Side(self.recorder, region, result, names, changed, assigned, effects)

    def probe(self: Interpreter, run: Callable[[], Completion], frame: Frame) -> Completion | None:
        """Runs something without any effect; returns how it ended, or ``None`` if it cannot.

        Args:
            run: What is run.
            frame: The frame in which that code runs.
        """
        region = Region("probe", self.recorder.region)
        mark = len(self.recorder.region.builder.nodes)
        node = frame.node or frame.source.node
        try:
            return recorded_again(
                self, node, frame, lambda: self.trace(region, self.snapshot(frame), run).result
            )
        except CaptureError:
            return None
        finally:
            del self.recorder.region.builder.nodes[mark:]

    def is_pure(self: Interpreter, run: Callable[[], object]) -> bool:
        """Whether running something only computes: what it reads is guarded, and it writes nothing.

        It is recorded and forgotten. Calls of code that cannot be read count as writes, and are
        not made.

        Args:
            run: What is run.
        """
        region, nodes = Region("probe", self.recorder.region), self.recorder.region.builder.nodes
        mark, outer = len(nodes), self.reads_only
        self.reads_only = True
        try:
            side = self.trace(region, self.snapshot(self.current or self.hoisted.frame), run)
        except (Exception, Hoist, CapturedAgain):
            return False
        finally:
            self.reads_only = outer
            del nodes[mark:]
        return not (side.effects or side.changed or side.assigned)

    def choose(
        self: Interpreter, condition: Tensor, then: Callable[[], Any], orelse: Callable[[], object],
        node: ast.AST, frame: Frame,
    ) -> object:  # fmt: skip
        """Evaluates one of two expressions.

        Args:
            condition: Tensor ``bool[]``.
            then: Evaluates the one expression.
            orelse: Evaluates the other one.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        done = self.fork(
            condition, lambda: Completion(value=(then(),)), lambda: Completion(value=(orelse(),)),
            node, frame,
        )  # fmt: skip
        assert done.value is not None
        return done.value[0]

    def fork(
        self: Interpreter, condition: Tensor, then: Callable[[], Completion],
        orelse: Callable[[], Completion], node: ast.AST, frame: Frame,
    ) -> Completion:  # fmt: skip
        """Records both branches and merges everything they leave behind.

        Args:
            condition: Tensor ``bool[]``.
            then: Executes the one branch.
            orelse: Executes the other one.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        return recorded_again(
            self, node, frame, lambda: self._fork(condition, then, orelse, node, frame)
        )

    def _fork(
        self: Interpreter, condition: Tensor, then: Callable[[], Completion],
        orelse: Callable[[], Completion], node: ast.AST, frame: Frame,
    ) -> Completion:  # fmt: skip
        snapshot = self.snapshot(frame)
        outer = self.recorder.region
        truth, other = condition, orelse
        try:
            a = self.trace(Region("then", outer), snapshot, self._ending(then, node, frame))
            truth, other = F.logical_not(condition), then
            b = self.trace(Region("orelse", outer), snapshot, self._ending(orelse, node, frame))
        except ConditionalRaise as raised:
            self._raise_where(truth, raised.error)
            return other()
        frame.node = node
        merger = Merger(
            self.recorder, a, b, snapshot.contents, condition,
            lambda: self.refuse(
                node, frame, "comparing with `is`, or writing to, a tensor that is of another size "
                "on each side of a branch", "copy it on both sides: x = x.copy()",
            ), self.settings.lax,
        )  # fmt: skip
        plans = _Plans(self, merger, (a, b), snapshot, node, frame, condition)
        finish = plans.everything()
        outputs = self._emit_if(condition, a.region, b.region, merger)
        return finish(outputs)

    def _ending(
        self: Interpreter, run: Callable[[], T], node: ast.AST, frame: Frame
    ) -> Callable[[], T]:
        """Returns what runs a side of a branch, which may end by raising if it did nothing else."""

        def side() -> T:
            outer, self.ending = self.ending, self.depth
            mark = self.effects.mark()
            try:
                return run()
            except ConditionalRaise:
                if self.effects.mark() > mark or self.recorder.region.assigned:
                    self.refuse(
                        node, frame, "an effect before a `raise` that a tensor decides about",
                        "raise first, or return a flag and raise outside",
                    )  # fmt: skip
                raise
            finally:
                self.ending = outer

        return side

    def leave(self: Interpreter, error: object, node: ast.AST, frame: Frame) -> NoReturn:
        """Ends the side of a branch that raises an exception.

        Args:
            error: The exception, or its class.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        error = error() if isinstance(error, type) else error
        kind = type(error)
        plain = vars(builtins).get(kind.__name__) is kind
        if plain and isinstance(error, Exception) and error.args in ((), (str(error),)):
            raise ConditionalRaise(error)
        self.refuse(
            node, frame, "raising more than a text where a tensor decides",
            "raise an exception of Python with one text, or return a flag and raise outside",
        )  # fmt: skip

    def _raise_where(self: Interpreter, truth: Tensor, error: BaseException) -> None:
        """Adds a node that raises; the token orders it among prints."""
        token, self.raises = self.token(), True
        kind = type(error).__name__
        self.recorder.denote(token, F.host_raise(token, truth, kind=kind, message=str(error)))

    def _emit_if(
        self: Interpreter, condition: Tensor, a: Region, b: Region, merger: Merger
    ) -> list[Tensor]:
        if not merger.outputs[0]:
            return []
        operands = list(dict.fromkeys([*a.imports, *b.imports]))
        graphs = [r.close(o, operands) for r, o in zip((a, b), merger.outputs)]
        given = [TracedTensor(self.recorder, v) for v in operands]
        found = F.if_(condition, *given, then=graphs[0], orelse=graphs[1])
        outputs: list[TracedTensor] = list(found)
        for t, i in merger.decided:
            if t.choice is not None:
                t.choice = replace(t.choice, condition=outputs[i])
        for i, pair in merger.pairs.items():
            self.recorder.chose(outputs[i], Choice(condition, *pair))
        return [*outputs]


class _Plans:
    """How everything that two branches leave behind is merged."""

    def __init__(
        self, interpreter: Interpreter, merger: Merger, sides: tuple[Side, Side],
        snapshot: Snapshot, node: ast.AST, frame: Frame, condition: Tensor,
    ) -> None:  # fmt: skip
        self.interpreter, self.condition = interpreter, condition
        self.merger = merger
        self.sides = sides
        self.snapshot = snapshot
        self.node = node
        self.frame = frame
        self.ends: tuple[Completion, Completion] = (sides[0].result, sides[1].result)
        returned = [d.returned is True for d in self.ends]
        # after a side that returned for sure, only the other side's local variables matter
        self.only = returned.index(False) if returned.count(True) == 1 else None

    def everything(self) -> Callable[[list[Tensor]], Completion]:
        """Plans all merges; the result is applied to the node's results."""
        names = [self._names(i, f) for i, (f, _) in enumerate(self.snapshot.names)]
        containers = self._containers()
        assigned = self._assigned()
        effects = self._effects()
        position = self._position()
        completion = self._completion()

        def finish(outputs: list[Tensor]) -> Completion:
            for (f, _), plans in zip(self.snapshot.names, names):
                f.names = {k: p(outputs) for k, p in plans.items()}
            for container, plan in containers:
                refill(container, plan(outputs))
            for noted, plan in effects:
                args, kwargs = plan(outputs)
                self.interpreter.effects.again(noted, args, kwargs, self.node, self.frame)
            recorder = self.interpreter.recorder
            for tensor, plan in assigned:
                recorder.denote(tensor, plan(outputs))
            if position is not None:
                recorder.set_position(recorder.value_of(position(outputs)))
            return completion(outputs)

        return finish

    def _names(self, i: int, frame: Frame) -> dict[str, Plan]:
        a, b = (s.names[i] for s in self.sides)
        plans: dict[str, Plan] = {}
        for name in dict.fromkeys([*a, *b]):
            line = getattr(self.node, "lineno", 0)
            if self.only is not None and frame is self.frame:
                value = (a, b)[self.only].get(name, _MISSING)
                if value is not _MISSING:
                    plans[name] = self.merger.keep(value, self.only)
                continue
            one_sided = Unset(f"only one side of the branch at line {line} sets it", self.node)
            pair = [x.get(name, one_sided) for x in (a, b)]
            try:
                plans[name] = self.merger.merge(*pair)
            except Mismatch as e:
                own = any(isinstance(x, Unset) for x in pair)
                why = str(e) if own else f"it is {e} of the branch at line {line}"
                if all(is_function(x) or isinstance(x, Chosen) for x in pair):
                    plans[name] = self._chosen(why, *pair)
                    continue
                unset = Unset(why, self.node, UnboundLocalError if own else TypeError)
                plans[name] = lambda outs, unset=unset: unset
        return plans

    def _chosen(self, why: str, a: object, b: object) -> Plan:
        """Returns how to build the choice between functions that the two sides left."""
        then, orelse = self._outside(a, 0), self._outside(b, 1)
        return lambda outs: Chosen(why, self.node, self.condition, then(outs), orelse(outs))

    def _outside(self, function: object, side: int) -> Plan:
        """Returns how to build what one side left; the branch returns by what that was chosen."""
        if not isinstance(function, Chosen):
            return lambda outs: function
        other = Tensor(np.zeros(function.condition.shape, np.bool_))
        pair = (other, function.condition) if side else (function.condition, other)
        truth = self.merger.merge(*pair)
        then, orelse = (self._outside(f, side) for f in (function.then, function.orelse))
        return lambda outs: Chosen(
            function.why, function.node, truth(outs), then(outs), orelse(outs)
        )

    def _containers(self) -> list[tuple[Container, Plan]]:
        plans = []
        a, b = self.sides
        outliving = self._outliving() if a.changed or b.changed else set()
        for key in dict.fromkeys([*a.changed, *b.changed]):
            container, before = self.snapshot.contents[key]
            if self.interpreter.effects.is_outside(container):
                continue  # what was done to it is repeated
            pair = [s.changed.get(key, before) for s in self.sides]
            if self.only is not None and key not in outliving:
                plans.append((container, self.merger.keep(pair[self.only], self.only)))
                continue
            plans.append((container, self._merge(pair, f"a {type(container).__name__} becomes")))
        return plans

    def _outliving(self) -> set[int]:
        """Returns the ids of the containers that are seen after the function has returned."""
        todo: list[object] = [*self.frame.given, *[d.value for d in self.ends]]
        for i, (f, _) in enumerate(self.snapshot.names):
            if f is not self.frame:
                todo += [s.names[i] for s in self.sides]
        seen: dict[int, object] = {}  # holds them: no id comes again
        while todo:
            value = todo.pop()
            if isinstance(value, NestedFunction):
                value = [f.names for f in value.frame.chain()]
            if id(value) in seen or not isinstance(value, (list, dict, set, tuple)):
                continue
            seen[id(value)] = value
            for x in (value, *[s.contents(value) for s in self.sides]):
                todo += x.values() if isinstance(x, dict) else x
        return set(seen)

    def _effects(self) -> list[tuple[Noted, Plan]]:
        """Merges what both sides did to containers of the outside, if it is the same."""
        a, b = (s.effects for s in self.sides)
        if self.only is not None and (a or b):
            self._refuse_effect((a or b)[0])
        done = [[(id(e.owner), e.method, e.function) for e in side] for side in (a, b)]
        if done[0] != done[1]:
            self._refuse_effect((a or b)[0])
        plans = []
        for x, y in zip(a, b):
            what = f"what {x.describe()} gets is"
            plans.append((x, self._merge([(x.args, x.kwargs), (y.args, y.kwargs)], what)))
        return plans

    def _refuse_effect(self, effect: Noted) -> NoReturn:
        self.interpreter.refuse(
            effect.node, effect.frame,
            f"{effect.describe()} where a tensor decides whether it happens",
            "do it on both sides, or outside of the branch with a value that both sides give",
        )  # fmt: skip

    def _merge(self, pair: Sequence[object], what: str) -> Plan:
        try:
            return self.merger.merge(*pair)
        except Mismatch as e:
            kind = either(CaptureError, TypeError)
            self.interpreter.refuse(self.node, self.frame, f"{what} {e}", e.fix, "", kind)

    def _assigned(self) -> list[tuple[Tensor, Plan]]:
        plans = []
        a, b = self.sides
        for key in dict.fromkeys([*a.assigned, *b.assigned]):
            tensor = (a.assigned.get(key) or b.assigned[key])[0]
            values = []
            for side in self.sides:
                with self.interpreter.recorder.recording_into(side.region):
                    own = side.assigned.get(key)
                    region = side.region
                    recorder = self.interpreter.recorder
                    values.append(region.localise(own[1]) if own else recorder.value_of(tensor))
            plans.append((tensor, self.merger.add_values(*values)))
        return plans

    def _position(self) -> Plan | None:
        if all(s.region.random is None for s in self.sides):
            return None
        values = []
        for side in self.sides:
            with self.interpreter.recorder.recording_into(side.region):
                values.append(self.interpreter.recorder.position())
        return self.merger.add_values(*values)

    def _completion(self) -> Callable[[list[Tensor]], Completion]:
        flags = [self._flag(x, y) for x, y in zip(*(d.flags() for d in self.ends))]
        gone = all(d.left for d in self.ends)
        value = self._value()
        return lambda outs: Completion(*[p(outs) for p in flags], value=value(outs), gone=gone)

    def _flag(self, a: object, b: object) -> Plan:
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and a is b:
            return lambda outs: a
        pair = []
        for region, x in zip(self.merger.regions, (a, b)):
            with self.interpreter.recorder.recording_into(region):
                pair.append(as_tensor(x))
        return self.merger.add(*pair)

    def _value(self) -> Plan:
        pair = [d.value for d in self.ends]
        if pair[0] is None and pair[1] is None:
            return lambda outs: None
        if pair[0] is None or pair[1] is None:
            side = 1 if pair[0] is None else 0
            return self.merger.keep(pair[side], side)
        expression = isinstance(self.node, ast.expr)
        what = "this expression is" if expression else "the result of the branch is"
        return self._merge(pair, what)
