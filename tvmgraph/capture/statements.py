"""Executes statements; Python-valued control flow runs, tensor-valued becomes regions."""

# pyright: reportGeneralTypeIssues=false
# (a part of Interpreter: `self` is the whole of it)
from __future__ import annotations

import ast
import builtins
import copy
import itertools
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tvmgraph.capture.changes import CHANGEABLE
from tvmgraph.capture.checks import is_iterator
from tvmgraph.capture.expressions import IN_PLACE
from tvmgraph.capture.frame import Completion, Frame
from tvmgraph.capture.function_source import within
from tvmgraph.capture.traced_number import held, positions
from tvmgraph.core.op import F
from tvmgraph.core.taken import store_back
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import interprets
from tvmgraph.interruption import raise_noticed

if TYPE_CHECKING:
    from tvmgraph.capture.interpreter import Interpreter

_MAX_UNROLLED = 100_000  # iterations of a Python-valued `while`
_WORTH_A_LOOP = 4  # iterations left from which a tensor-dependent exit makes a graph loop
_REFUSED = {
    "Try": ("`try`", "check the values before, or catch the exception around the compiled call"),
    "TryStar": ("`try`", "catch the exceptions around the compiled call"),
    "With": ("`with`", "enter the context around the compiled call"),
    "AsyncFor": ("`async for`", "use a plain for loop"),
    "AsyncWith": ("`async with`", "enter the context around the compiled call"),
    "AsyncFunctionDef": ("`async def`", "define a plain function"),
    "ClassDef": ("a class definition", "define the class at module level"),
    "Match": ("`match`", "write it as if/elif/else"),
    "TypeAlias": ("a type alias", "declare the type at module level"),
}
NEXT = Completion()


class _Bounds(NamedTuple):
    """The numbers of a ``range`` of tensors; tuples of the program are iterated over."""

    start: object
    stop: Any
    step: Any


class Statements:
    """The part of the interpreter that executes statements."""

    def block(self: Interpreter, statements: list[ast.stmt], frame: Frame) -> Completion:
        """Executes statements in order.

        Args:
            statements: The statements.
            frame: The frame in which that code runs.
        """
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            if isinstance(s, ast.If):
                done, consumed = self._run_if(s, rest, frame)
                if consumed:
                    return done
            else:
                done = self.execute(s, frame)
            if done.normal:
                continue
            if done.left or not rest:
                return done
            return self.skip(done, lambda rest=rest: self.block(rest, frame), s, frame)
        return NEXT

    def execute(self: Interpreter, statement: ast.stmt, frame: Frame) -> Completion:
        """Executes one statement.

        Args:
            statement: The statement.
            frame: The frame in which that code runs.
        """
        raise_noticed()
        frame.node = statement
        method = getattr(self, "_" + type(statement).__name__, None)
        if method is None:
            kind = type(statement).__name__
            what, fix = _REFUSED.get(kind, (f"a {kind} statement", ""))
            self.refuse(statement, frame, what, fix)
        return method(statement, frame) or NEXT

    def _Pass(self: Interpreter, node: ast.Pass, frame: Frame) -> None:
        pass

    _Global = _Nonlocal = _Pass

    def _Expr(self: Interpreter, node: ast.Expr, frame: Frame) -> None:
        self.evaluate(node.value, frame)

    def _Return(self: Interpreter, node: ast.Return, frame: Frame) -> Completion:
        value = None if node.value is None else self.evaluate(node.value, frame)
        return Completion(returned=True, value=(value,))

    def _Break(self: Interpreter, node: ast.Break, frame: Frame) -> Completion:
        return Completion(broke=True)

    def _Continue(self: Interpreter, node: ast.Continue, frame: Frame) -> Completion:
        return Completion(continued=True)

    def _Assert(self: Interpreter, node: ast.Assert, frame: Frame) -> Completion | None:
        truth = self.condition(node.test, frame)

        def failed() -> Completion:
            message = [] if node.msg is None else [self.evaluate(node.msg, frame)]
            error = AssertionError(*message)
            if isinstance(truth, Tensor):
                self.leave(error, node, frame)
            raise error

        if isinstance(truth, Tensor):
            if self.settings.lax:
                self.refuse(
                    node, frame, "an `assert` on a tensor's value",
                    "assert on shapes or Python values, or check the result outside",
                )  # fmt: skip
            return self.fork(truth, lambda: NEXT, failed, node, frame)
        return None if truth else failed()

    def _Raise(self: Interpreter, node: ast.Raise, frame: Frame) -> NoReturn:
        inside = not self.settings.lax and self.depth and self.ending == self.depth
        if not inside and (self.depth or self.raises):
            self.refuse(
                node, frame, "a `raise` that a tensor decides about",
                "return a flag as a tensor and raise outside",
            )  # fmt: skip
        if node.exc is None:
            self.refuse(node, frame, "a `raise` without an exception", "name the exception")
        error = self.evaluate(node.exc, frame)
        if inside:
            self.leave(error, node, frame)
        kind = error if isinstance(error, type) else type(error)
        if self.settings.lax and not issubclass(kind, Exception):
            self.refuse(node, frame, f"raising {kind.__name__}")
        cause = None if node.cause is None else self.evaluate(node.cause, frame)
        frame.node = node
        raise error from cause

    def _Import(self: Interpreter, node: ast.Import, frame: Frame) -> None:
        for a in node.names:
            module = builtins.__import__(a.name, frame.globals, None, [], 0)
            if a.asname:
                for part in a.name.split(".")[1:]:
                    module = getattr(module, part)
            self.store(a.asname or a.name.partition(".")[0], module, frame)

    def _ImportFrom(self: Interpreter, node: ast.ImportFrom, frame: Frame) -> None:
        names = [a.name for a in node.names]
        module = builtins.__import__(node.module or "", frame.globals, None, names, node.level)
        for a in node.names:
            self.store(a.asname or a.name, getattr(module, a.name), frame)

    def _FunctionDef(self: Interpreter, node: ast.FunctionDef, frame: Frame) -> None:
        function = self.nested(node, node.name, frame)
        for d in reversed(node.decorator_list):
            decorator = self.evaluate(d, frame)
            function = self.invoke(decorator, (function,), {}, node, frame)
        self.store(node.name, function, frame)

    def _Delete(self: Interpreter, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            self._delete(target, node, frame)

    def _delete(self: Interpreter, target: ast.expr, node: ast.Delete, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            self.load(target.id, frame)
            owner = frame.owner(target.id)
            if owner is None:
                self.refuse(node, frame, f"deleting the global name {target.id!r}")
            del owner.names[target.id]
        elif isinstance(target, ast.Subscript):
            owner, key = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
            self.effects.call(owner, "__delitem__", (key,), {}, node, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            if self.effects.existed(owner):
                self.refuse(node, frame, "deleting an attribute", "set it to None")
            delattr(owner, frame.source.mangle(target.attr))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for inner in target.elts:
                self._delete(inner, node, frame)

    # ---- assignment -------------------------------------------------------------------------

    def _Assign(self: Interpreter, node: ast.Assign, frame: Frame) -> None:
        named = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.IfExp) and named:
            value = self.either(node.value, frame, named)
        else:
            value = self.evaluate(node.value, frame)
        for t in node.targets:
            frame.node = node
            self.assign(t, value, frame)

    def _AnnAssign(self: Interpreter, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, frame), frame)

    def _AugAssign(self: Interpreter, node: ast.AugAssign, frame: Frame) -> None:
        t = node.target
        if isinstance(t, ast.Name):
            before = self._Name(ast.copy_location(ast.Name(t.id, ast.Load()), t), frame)
            self.store(t.id, self._combined(node, before, frame), frame)
            return
        owner, part = self._owner(t.value, frame)
        if isinstance(t, ast.Attribute):
            name = frame.source.mangle(t.attr)
            new = self._combined(node, self.attribute(owner, name), frame)
            self.set_attribute(owner, name, new, node, frame)
            return
        key = self.evaluate(t.slice, frame)
        new = self._combined(node, self.item(owner, key, node, frame), frame)
        self._set_item(owner, key, new, node, frame)
        if part is not None:
            store_back(part)

    def _owner(self: Interpreter, node: ast.expr, frame: Frame) -> tuple[object, Tensor | None]:
        """Evaluates what gets an item, and returns it again if it was taken out of a tensor."""
        if not isinstance(node, ast.Subscript):
            return self.evaluate(node, frame), None
        whole, index = self.evaluate(node.value, frame), self.evaluate(node.slice, frame)
        owner = self.taken_out(whole, index, node, frame)
        if isinstance(whole, Tensor) and isinstance(owner, Tensor):
            return owner, owner
        return owner, None

    def _combined(self: Interpreter, node: ast.AugAssign, before: object, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        frame.node = node
        if isinstance(before, list) and isinstance(node.op, (ast.Add, ast.Mult)):
            method = "__iadd__" if isinstance(node.op, ast.Add) else "__imul__"
            return self.effects.call(before, method, (value,), {}, node, frame)
        if isinstance(before, (set, dict)):
            self.refuse(
                node, frame, "an in-place operator on a set or dict", "use its update method"
            )
        if isinstance(before, CHANGEABLE) and self.effects.is_outside(before):
            what = f"an in-place operator on a {type(before).__name__} from outside"
            self.refuse(node, frame, what, "assign a new value")
        self.recorder.guards.native_effects.keep(before)
        in_place = IN_PLACE[type(node.op)]
        own = getattr(type(before), f"__{in_place.__name__}__", None)
        if isinstance(own, FunctionType):
            result = self.call(own, (before, value), {})
            if result is not NotImplemented:
                return result
        return self.operate(in_place, before, value)

    def assign(self: Interpreter, target: ast.expr, value: object, frame: Frame) -> None:
        """Binds the target of an assignment, a loop or a comprehension.

        Args:
            target: The target.
            value: What it is bound to.
            frame: The frame in which that code runs.
        """
        if isinstance(target, ast.Name):
            self.store(target.id, value, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            name = frame.source.mangle(target.attr)
            self.set_attribute(owner, name, value, target, frame)
        elif isinstance(target, ast.Subscript):
            owner, part = self._owner(target.value, frame)
            key = self.evaluate(target.slice, frame)
            frame.node = target
            self._set_item(owner, key, value, target, frame)
            if part is not None:
                store_back(part)
        else:
            self.refuse(target, frame, "this assignment target")

    def _set_item(
        self: Interpreter, owner: object, key: object, value: object, node: ast.AST, frame: Frame
    ) -> None:
        """Stores an item; one that a tensor chooses in strict code may be any of a list."""
        number = self.place_in(owner, key)
        if number is None or not isinstance(owner, list):
            key = positions(owner, key)
            self.effects.call(owner, "__setitem__", (key, value), {}, node, frame)
            return
        for i in range(len(owner)):
            kept = self.subscript(owner, i)
            new = self.choose(number == i, lambda: value, lambda v=kept: v, node, frame)
            self.effects.call(owner, "__setitem__", (i, new), {}, node, frame)

    def _unpack(self: Interpreter, target: ast.Tuple | ast.List, value: Any, frame: Frame) -> None:
        self.impure.look_into(value)
        targets = target.elts
        starred = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
        # Python takes one item more than there are targets: there may be no end of them
        items = list(itertools.islice(iter(value), None if starred else len(targets) + 1))
        if starred:
            i = starred[0]
            after = len(targets) - i - 1
            if len(items) < len(targets) - 1:
                raise ValueError(
                    f"not enough values to unpack (expected at least {len(targets) - 1}, "
                    f"got {len(items)})"
                )
            end = len(items) - after
            items = [*items[:i], items[i:end], *items[end:]]
        elif len(items) > len(targets):
            raise ValueError(f"too many values to unpack (expected {len(targets)})")
        elif len(items) < len(targets):
            raise ValueError(
                f"not enough values to unpack (expected {len(targets)}, got {len(items)})"
            )
        for t, x in zip(targets, items):
            self.assign(t.value if isinstance(t, ast.Starred) else t, x, frame)

    # ---- branches and loops -----------------------------------------------------------------

    def _run_if(
        self: Interpreter, node: ast.If, rest: list[ast.stmt], frame: Frame
    ) -> tuple[Completion, bool]:
        """Executes an ``if``; says whether the statements after it were executed as well."""
        frame.node = node
        truth = self.condition(node.test, frame)
        frame.node = node
        if not isinstance(truth, Tensor):
            return self.block(node.body if truth else node.orelse, frame), False
        ends = terminates(node.body), terminates(node.orelse)
        # "if c: return a" and the rest become If(c){a}{rest}, which needs no flags
        joined = bool(rest) and ends[0] != ends[1]
        bodies = [
            b if not joined or end else [*b, *rest]
            for b, end in zip((node.body, node.orelse), ends)
        ]
        then, orelse = (lambda b=b: self.block(b, frame) for b in bodies)
        return self.fork(truth, then, orelse, node, frame), joined

    def _If(self: Interpreter, node: ast.If, frame: Frame) -> Completion:
        return self._run_if(node, [], frame)[0]

    def _While(self: Interpreter, node: ast.While, frame: Frame) -> Completion:
        def test() -> Any:
            return self.condition(node.test, frame)

        exits = may_leave(node.body)
        for _ in range(_MAX_UNROLLED):
            truth = test()
            symbolic = isinstance(truth, Tensor)
            if symbolic or (truth and exits and self._leaves_by_tensor(node.body, None, frame)):
                return self.loop(test, None, node, frame, [])
            if not truth:
                return self.block(node.orelse, frame)
            done = self.block(node.body, frame)
            if done.returned is not False:
                return done
            if done.broke is True:
                return NEXT
        self.refuse(
            node, frame, f"a `while` that did not end after {_MAX_UNROLLED} iterations",
            "let a tensor decide when it ends, or move the loop outside",
        )  # fmt: skip

    def _leaves_by_tensor(
        self: Interpreter, body: list[ast.stmt], first: Callable[[], None] | None, frame: Frame
    ) -> bool:
        """Tries one iteration and tells whether a tensor decides about leaving the loop."""

        def attempt() -> Completion:
            if first is not None:
                first()
            return self.block(body, frame)

        done = self.probe(attempt, frame)
        return done is not None and any(isinstance(f, Tensor) for f in (done.returned, done.broke))

    def _For(self: Interpreter, node: ast.For, frame: Frame) -> Completion:
        source = self._range(node.iter, frame)
        if isinstance(source, _Bounds):
            return self.count(source, node, frame)
        items = self.iterate(source, node.iter, frame)
        if isinstance(source, range) and len(source) > _WORTH_A_LOOP and may_leave(node.body):
            first = source[0]
            if isinstance(node.target, ast.Name) and self._leaves_by_tensor(
                node.body, lambda: self.assign(node.target, first, frame), frame
            ):
                return self.count((source.start, source.stop, source.step), node, frame)
        return self._unrolled(node, source, items, frame)

    def _unrolled(
        self: Interpreter, node: ast.For, source: object, items: Iterator[object], frame: Frame
    ) -> Completion:
        """Executes a loop over the items of something that are left."""
        for item in items:
            frame.node = node
            self.assign(node.target, item, frame)
            done = self.block(node.body, frame)
            if done.returned is True:
                return done
            if done.broke is True:
                return NEXT
            if done.returned is False and done.broke is False:
                continue
            if done.gone and done.continued is False:  # no iteration follows
                return Completion(done.returned, value=done.value)
            if is_iterator(source) and not isinstance(node.iter, (ast.Call, ast.GeneratorExp)):
                self.refuse(
                    node, frame, "a loop over an iterator that a tensor ends",
                    "iterate over a list: somebody else may take the items that are left",
                )  # fmt: skip
            leaving = Completion(done.returned, done.broke, value=done.value)
            (items,) = itertools.tee(items, 1)  # the rest may be recorded again

            def rest(items: Iterator[object] = items) -> Completion:
                return self._unrolled(node, source, copy.copy(items), frame)

            return self.skip(leaving, rest, node, frame, after_loop=True)
        return self.block(node.orelse, frame)

    def _range(self: Interpreter, node: ast.expr, frame: Frame) -> Any:
        """Evaluates what a loop iterates over; ``range`` of tensors gives its three numbers."""
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
        if not named or self.evaluate(node.func, frame) is not range:  # pyright: ignore[reportAttributeAccessIssue]
            return self.evaluate(node, frame)
        args = self.elements(node.args, frame)  # pyright: ignore[reportAttributeAccessIssue]
        if any(isinstance(held(a), Tensor) for a in args):
            return _Bounds(*(0, *args, 1) if len(args) == 1 else (*args, 1)[:3])
        return range(*args)

    def skip(
        self: Interpreter,
        done: Completion,
        rest: Callable[[], Completion],
        node: ast.AST,
        frame: Frame,
        after_loop: bool = False,
    ) -> Completion:
        """Executes what follows only where a tensor did not decide to leave before.

        Args:
            done: How what came before ended.
            rest: Executes what follows.
            node: The statement that decided.
            frame: The frame.
            after_loop: Whether what came before is a loop: its ``break`` ends with it, and those
                of ``rest``, which may be its ``else``, belong to the loop around it.
        """
        flags = [f for f in done.flags() if isinstance(f, Tensor)]
        left = flags[0]
        for f in flags[1:]:
            left = F.logical_or(left, f)
        certain = done
        if len(flags) == 1:  # inside the branch that has left, the flag is known
            known = [True if isinstance(f, Tensor) else f for f in done.flags()]
            certain = Completion(*known, value=done.value)
        if after_loop:
            certain = Completion(certain.returned, value=certain.value)
        return self.fork(left, lambda: certain, rest, node, frame)


def terminates(statements: list[ast.stmt]) -> bool:
    """Whether a block surely ends with return, break or continue.

    Args:
        statements: The statements of the block.
    """
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return terminates(last.body) and terminates(last.orelse)
    return isinstance(last, (ast.Return, ast.Break, ast.Continue))


def may_leave(statements: list[ast.stmt]) -> bool:
    """Whether a loop body holds a break or return.

    Args:
        statements: The statements of the block.
    """
    return any(isinstance(n, (ast.Break, ast.Return)) for n in within(statements))


def _locate(frame: FrameType) -> str:
    inner: Frame = frame.f_locals["frame"]
    return inner.source.location(inner.node or inner.source.node)


interprets(Statements.execute.__code__, _locate)  # pyright: ignore[reportAttributeAccessIssue]
interprets(Statements._run_if.__code__, _locate)  # pyright: ignore[reportAttributeAccessIssue]
