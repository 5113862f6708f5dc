"""The outline of a function: its own code, in which runs of statements are calls of segments.

CPython runs the outline, so whatever stays in it (``try``, ``with``, ``yield``, a call into a
library) means what it always means. A run of statements that can be compiled becomes

    a, b = segment(x, y)

with the local variables that it reads and those that are read later. If it cannot be compiled for
a call, its statements run in a function that is an outline in its turn, and that alone holds the
variables which it binds anew. Where an exception may be caught in the same function, the statements
themselves stand beside the call.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from tvmgraph.capture.function_source import parameters
from tvmgraph.jit.regions import split
from tvmgraph.jit.regions.flow import (
    LEAVES,
    Flow,
    Names,
    bodies,
    certain,
    every,
    headers,
    reads,
    walk,
    writes,
)
from tvmgraph.jit.regions.nodes import copied, descendants
from tvmgraph.jit.regions.syntax import (
    PYTHON,
    SCOPES,
    Function,
    changed_containers,
    closed_over,
    end_of,
    ends_in_return,
    has_return,
    is_python_only,
    jumps_out,
    lasting_generators,
    may_test_tensors,
    own_targets,
    start_of,
)

if TYPE_CHECKING:
    from tvmgraph.jit.regions.program import Program

#: Begins the names that outlines see of their surroundings. It comes after all letters, so that
#: the variables of the user's functions keep their order in ``__closure__``.
HIDDEN = "\U0010fffd$"
ENTER, REFUSED, UNBOUND = f"{HIDDEN}enter", f"{HIDDEN}refused", f"{HIDDEN}unbound"
RESULT, HANDED = "$result", "$handed"
_Node = TypeVar("_Node", bound=ast.AST)
_Clause = TypeVar("_Clause", ast.ExceptHandler, ast.match_case)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Passed:
    """The variables that go into and out of a run of statements.

    Attributes:
        ins: Those that it takes.
        outs: Those that it returns.
        unsure: Those of them that may have no value then.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    unsure: Names


@dataclass(frozen=True)
class Place:
    """Where a block stands.

    Attributes:
        tail: Whether the function ends where the block ends.
        caught: Whether an exception may be caught, or seen on its way, in this function.
        final: The variables that are read after a ``return``, by the ``finally`` around it.
    """

    tail: bool = False
    caught: bool = False
    final: Names = frozenset()


class Outline:
    """Writes the outline of one function.

    Args:
        program: What is known about its statements.
        node: Its definition.
        outer: Local variables of the functions around it.
    """

    def __init__(self, program: Program, node: Function, outer: Names = frozenset()) -> None:
        self.program, self.node = program, node
        inner = [n for n in walk(*node.body) if isinstance(n, (*SCOPES, ast.Lambda))]
        inner += lasting_generators(node)
        declared = [n for n in descendants(node) if isinstance(n, (ast.Nonlocal, ast.Global))]
        own = [n for n in walk(*node.body) if isinstance(n, ast.Global)]
        self.globals = frozenset(x for n in own for x in n.names)
        shared = {x for n in declared if isinstance(n, ast.Nonlocal) for x in n.names}
        self.captured = reads(*inner)
        types = frozenset(p.name for p in getattr(node, "type_params", ()))
        self.params = params = types.union(p.arg for p in parameters(node))  # pyright: ignore
        every_write = writes(*every(node.body, program.flat))
        self.shared = frozenset(shared) | {"super", "__class__"}
        self.own = (params | every_write) - self.globals
        self.local = self.own | outer
        self.captured &= self.own
        self.rebound = self._rebound()
        self.flow = Flow(node.body, params | (outer - self.own), self.captured, program.flat)

    def _rebound(self) -> Names:
        """Returns the variables that may get another value after a lambda was made."""
        count = Counter(self.params)
        for s in every(self.node.body, self.program.flat):
            count.update(writes(s))
            if isinstance(s, (ast.For, ast.AsyncFor, ast.While)):
                count.update(writes(s))
        return frozenset(n for n, times in count.items() if times > 1)

    def function(self) -> Function:
        """Returns the definition of the outline."""
        text = 0 if ast.get_docstring(self.node, clean=False) is None else 1
        doc, rest = self.node.body[:text], self.node.body[text:]
        body = self.block(rest, Place(tail=not self._suspends()))
        return split.replaced(self.node, body=[*doc, *self._declared(body), *body] or [ast.Pass()])

    def _declared(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Keeps names local that only segments write: they are annotated, which runs nothing."""
        written = writes(*body)
        lost = (reads(*body) & self.own) - self.params - written - self.shared
        return [
            _at(ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant(None), None, 1), self.node)
            for n in sorted(lost)
        ]  # fmt: skip

    def _suspends(self) -> bool:
        kinds = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
        return any(isinstance(n, kinds) for n in walk(*self.node.body)) or isinstance(
            self.node, ast.AsyncFunctionDef
        )

    # ---- blocks -----------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt], place: Place) -> list[ast.stmt]:
        """Returns the outline of a block.

        Args:
            statements: Those of the block.
            place: Where it stands.
        """
        done: list[ast.stmt] = []
        run: list[ast.stmt] = []
        flat = self.program.flat(statements)
        stuck = -1  # up to here, no rest of the block can be compiled to its end
        for i, s in enumerate(flat):
            if i > stuck:
                reached = self._reached(flat[i:], run, place)
                if reached is None:
                    return [*done, *self.segment(run + flat[i:], place, returns=True)]
                stuck = i + reached
            last = replace(place, tail=place.tail and i == len(flat) - 1)
            for part in self._split(s, run):
                missing = self._unbound(part)
                if missing and self._fails_first(part, missing):
                    done += self.segment(run, place)
                    run = []
                    done += [_at(ast.Expr(split.name(n, part)), part) for n in sorted(missing)]
                    self._assume(part, missing)
                if self.compilable(part, run):
                    run.append(part)
                    if writes(part) & self.captured:  # functions defined inside see it
                        done, run = [*done, *self.segment(run, place)], []
                    continue
                done += [*self.segment(run, place), self.in_python(part, last), *self._let_go(part)]
                run = []
        return [*done, *self.segment(run, place)]

    def _split(self, s: ast.stmt, run: list[ast.stmt]) -> list[ast.stmt]:
        """Takes what is computed apart from a test, or from the change of a container."""
        if isinstance(s, (ast.If, ast.For, ast.While)):
            apart = may_test_tensors(s) and not self.compilable(s, run)
            return self.program.hoist_condition(s) if apart else [s]
        changed = changed_containers(s) & self.local
        if not changed or bodies(s) or changed <= writes(*run):
            return [s]
        return self.program.split_off(s)

    def _assume(self, s: ast.stmt, names: Names) -> None:
        for inner in every([s], self.program.flat):
            self.flow.bound[id(inner)] = self.flow.bound.get(id(inner), frozenset()) | names

    def _unbound(self, s: ast.stmt) -> Names:
        """Returns the local names that a statement reads and that may have no value then."""
        found: set[str] = set()
        for inner in every([s], self.program.flat):
            bound = self._bound(inner)
            targets: Names = frozenset()
            for h in headers(inner):
                targets |= own_targets(h)
                found |= (reads(h) & self.local) - bound - targets
        return frozenset(found) - self.shared

    def _bound(self, s: ast.stmt) -> Names:
        return self.flow.bound.get(id(s), frozenset())

    def _fails_first(self, s: ast.stmt, names: Names) -> bool:
        """Whether reading the names is the first thing that a simple statement does."""
        if bodies(s) or isinstance(s, PYTHON) or names & writes(s):  # `:=` may bind it before
            return False
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else s
        order = certain(value) if value is not None else ()
        calls = [n for n in descendants(s) if isinstance(n, ast.Call)]
        for name in names:
            at = [n for n in order if n.id == name]
            if not at or any(end_of(c) <= start_of(at[0]) for c in calls):
                return False
        return True

    # ---- what can be compiled ---------------------------------------------------------------

    def compilable(self, s: ast.stmt, run: list[ast.stmt], returns: bool = False) -> bool:
        """Whether a statement may be part of a segment after others.

        Args:
            s: The statement.
            run: What stands before it in the segment.
            returns: Whether the segment may return from the function.
        """
        program = self.program
        inner = list(every([s], program.flat))
        if any(id(x) in program.python_only or id(x) in program.parts for x in inner):
            return False
        if is_python_only(s) or self._unbound(s) or closed_over(s) & self.rebound:
            return False
        names = reads(s) | writes(s)
        if names & self.shared or (bodies(s) and writes(s) & self.captured):
            return False
        if jumps_out(s, returns):
            return False
        return changed_containers(s) & self.local <= writes(*run, s)

    def _reached(self, rest: list[ast.stmt], run: list[ast.stmt], place: Place) -> int | None:
        """Returns which statement of the rest of a block cannot be compiled up to its ``return``.

        Returns:
            Its number; ``None`` if all of the rest can be.
        """
        if not (place.tail or ends_in_return(rest)) or not any(has_return(s) for s in rest):
            return len(rest)
        if place.final & writes(*every([*run, *rest], self.program.flat)):
            return len(rest)
        before = list(run)
        for i, s in enumerate(rest):
            if not self.compilable(s, before, returns=True) or writes(s) & self.captured:
                return i
            before.append(s)
        return None

    # ---- segments ---------------------------------------------------------------------------

    def segment(
        self, run: list[ast.stmt], place: Place, returns: bool = False, live: Names = frozenset()
    ) -> list[ast.stmt]:
        """Returns the call of a segment; statements that compute nothing stay as they are.

        Args:
            run: The statements that are compiled as one.
            place: Where their block stands.
            returns: Whether they return from the function.
            live: Variables that are read behind them.
        """
        tensor_free = self.program.tensor_free
        if all(id(s) in tensor_free for s in run):
            return self._as_is(run)
        start, end = 0, len(run)
        while id(run[start]) in tensor_free:
            start += 1
        while not returns and id(run[end - 1]) in tensor_free:
            end -= 1
        head, tail = self._as_is(run[:start]), self._as_is(run[end:])
        live |= reads(*run[end:])
        return [*head, *self._call(run[start:end], place, returns, live), *tail]

    def _call(
        self, run: list[ast.stmt], place: Place, returns: bool, live: Names
    ) -> list[ast.stmt]:
        first, last = run[0], run[-1]
        written = writes(*run) - self.globals
        outs: list[str] = []
        if not returns:
            outs = sorted(written & (self.flow.live.get(id(last), self.captured) | live))
        first_read, sure = self._alone(run)
        # what a simple last statement binds anew, Python holds until then
        early = written if returns else sure & writes(*(run if bodies(last) else run[:-1]))
        filled = [] if place.caught else self._filled(early - first_read - self.captured, first)
        bound = self._bound(first)
        segment = self._taken(run, outs, first_read, sure)
        # Python keeps what is not read any more until the function ends
        own = frozenset(n for n in written - self.captured if not split.is_temporary(n))
        lasting = frozenset() if returns else own - frozenset(outs)
        kept = sorted(frozenset(outs) | (lasting & (sure | bound)))
        replaced = written - self.captured
        broken = self._taken(run, kept, first_read | replaced, sure)
        name = self.program.segment(run, self._as_is, segment, broken, returns)
        result = split.name(RESULT, first)
        call = _call(f"{name}.attempt", segment.ins, first)
        unread = (replaced & frozenset(broken.ins)) - frozenset(segment.ins)
        if unread:
            observed = _call(f"{name}.observes_rebinding", sorted(unread), first)
            call = ast.IfExp(observed, split.name(REFUSED, first), call)
        test = ast.Compare(result, [ast.Is()], [split.name(REFUSED, first)])
        taken = self._unpack(result, segment, returns)
        live |= self.flow.live.get(id(last), self.own)
        done = frozenset(n for n in broken.ins if split.is_temporary(n) and n not in live)
        if not returns:  # nobody else holds what the segment took and returned
            gone = sorted(done | (lasting & sure))  # bound, for whoever asks for it
            taken += [_emptied(n, first) for n in (*gone, *([RESULT] if outs else []))]
        if place.caught:
            refused = self._as_is(run)
        else:
            refused = self._run_broken(name, broken, replaced | done, returns, first)
        fork = ast.If(test, refused, taken)
        return _located([*filled, split.assign(RESULT, call, first), fork], first)

    def _filled(self, names: Names, first: ast.stmt) -> list[ast.stmt]:
        """Binds the variables that may be unbound before a run; nobody reads what they get.

        A run with graph breaks then lets go of what they hold when Python would.
        """
        unsure = (names & self.flow.maybe.get(id(first), frozenset())) - self._bound(first)
        self._assume(first, unsure)
        error = ast.Name("NameError", ast.Load())
        return [
            ast.Try(
                [ast.Expr(split.name(n, first))],
                [ast.ExceptHandler(error, None, [_emptied(n, first)])], [], [],
            )
            for n in sorted(unsure)
        ]  # fmt: skip

    def _taken(self, run: list[ast.stmt], outs: list[str], read: Names, sure: Names) -> Passed:
        """Returns what goes into a run of statements, and out of it.

        Args:
            run: The statements.
            outs: The variables that are needed after it.
            read: Those that it may read before it binds them.
            sure: Those that it surely binds.
        """
        bound = self._bound(run[0])
        ins = sorted((read | (frozenset(outs) - sure)) & self.local & bound)
        return Passed((*ins,), (*outs,), frozenset(outs) - sure - bound)

    def _run_broken(
        self, segment: str, passed: Passed, gone: Names, returns: bool, like: ast.stmt
    ) -> list[ast.stmt]:
        """Hands variables over to a function that runs a segment with graph breaks.

        What it binds anew is not held here meanwhile: Python would let go of it there.
        """
        values: list[ast.expr] = [split.name(n, like) for n in passed.ins]
        done: list[ast.stmt] = [split.assign(HANDED, ast.List(values, ast.Load()), like)]
        done += [_emptied(n, like) for n in passed.ins if n in gone]
        call = _call(f"{segment}.broken", [HANDED], like)
        return [*done, *self._unpack(call, passed, returns)]

    def _as_is(self, run: list[ast.stmt]) -> list[ast.stmt]:
        """Returns statements for Python; what was computed apart for one is let go after it."""
        if not any(map(split.is_temporary, reads(*run))):
            return [*map(copied, run)]
        return [part for s in self.program.flat(run) for part in self._one_as_is(s)]

    def _one_as_is(self, s: ast.stmt) -> list[ast.stmt]:
        dropping = _Dropping(self._dying(s))
        if not bodies(s):
            return [dropping.visit(copied(s)), *self._let_go(s)]
        fields = dict(ast.iter_fields(s))
        for f in ("test", "iter"):
            if f in fields:
                fields[f] = dropping.visit(copied(fields[f]))
        for f in ("body", "orelse"):
            fields[f] = self._as_is(fields[f])
        return [split.replaced(s, **fields), *self._let_go(s)]

    def _alone(self, run: list[ast.stmt]) -> tuple[Names, Names]:
        """Returns the names that a run may read before it binds them, and those it surely binds."""
        start, end = ast.Pass(), ast.Pass()
        flow = Flow([start, *run, end], frozenset(), frozenset(), self.program.flat)
        return flow.live[id(start)], flow.bound[id(end)] & writes(*run)

    def _unpack(self, value: ast.expr, passed: Passed, returns: bool) -> list[ast.stmt]:
        outs = passed.outs
        if returns:
            return [ast.Return(value)]
        if not outs:
            return [ast.Expr(value)]
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in outs]
        target = targets[0] if len(outs) == 1 else ast.Tuple(targets, ast.Store())
        done: list[ast.stmt] = [ast.Assign([target], value)]
        for n in sorted(passed.unsure):
            test = ast.Compare(ast.Name(n, ast.Load()), [ast.Is()], [ast.Name(UNBOUND, ast.Load())])
            done.append(ast.If(test, [ast.Delete([ast.Name(n, ast.Del())])], []))
        return done

    # ---- what only Python can run -----------------------------------------------------------

    def in_python(self, s: ast.stmt, place: Place) -> ast.stmt:
        """Returns the outline of a statement that stays.

        Args:
            s: The statement.
            place: Where its block stands.
        """
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return Outline(self.program, s, self.local).function()
        dying = self._dying(s)
        if isinstance(s, ast.ClassDef) or not bodies(s):
            return self._entering(s, dying)
        inside = place if isinstance(s, (ast.If, ast.Match)) else replace(place, tail=False)
        fields = dict(ast.iter_fields(s))
        for f in ("test", "iter", "subject", "items"):
            if isinstance(fields.get(f), ast.AST):
                fields[f] = self._entering(fields[f], dying)
            elif f in fields:
                fields[f] = [self._entering(x, dying) for x in fields[f]]
        if isinstance(s, (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)):
            inside = replace(inside, caught=True)
        after = fields.get("finalbody")
        if after:
            fields["finalbody"] = self.block(after, inside) or [ast.Pass()]
            inside = replace(inside, final=inside.final | self._read_finally(after))
        for f in ("body", "orelse"):
            if fields.get(f):
                fields[f] = self.block(fields[f], inside) or [ast.Pass()]
        for f in ("handlers", "cases"):
            if f in fields:
                fields[f] = [self._clause(c, inside) for c in fields[f]]
        return split.replaced(s, **fields)

    def _read_finally(self, block: list[ast.stmt]) -> Names:
        """Returns what may be read from a ``finally`` on, which need not let a ``return`` pass."""
        leaves = any(isinstance(n, (ast.Break, ast.Continue)) for n in walk(*block))
        return self.own if leaves else reads(*block)

    def _let_go(self, s: ast.stmt) -> list[ast.stmt]:
        """Drops what was computed apart for a statement, as Python drops it: a generator closes."""
        done = [] if isinstance(s, LEAVES) else sorted(self._dying(s))
        return [_emptied(n, s) for n in done]

    def _dying(self, s: ast.stmt) -> Names:
        """Returns what was computed apart for a statement and is not read after it."""
        done = reads(*headers(s)) - self.flow.live.get(id(s), self.own)
        return frozenset(filter(split.is_temporary, done))

    def _clause(self, clause: _Clause, place: Place) -> _Clause:
        return split.replaced(clause, body=self.block(clause.body, place))

    def _entering(self, node: _Node, dying: Names) -> _Node:
        """Lets functions of the user that Python calls be compiled in their turn."""
        return _Entering(dying).visit(copied(node))


class _Dropping(ast.NodeTransformer):
    def __init__(self, dying: Names) -> None:
        self.dying = dying

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.dying or not isinstance(node.ctx, ast.Load):
            return node
        # reads a variable for the last time: Python would have it on its stack alone
        empty = ast.NamedExpr(ast.Name(node.id, ast.Store()), ast.Constant(None))
        taken = ast.Subscript(ast.List([node, empty], ast.Load()), ast.Constant(0), ast.Load())
        return _at(taken, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        dying = self.dying
        if isinstance(node, _COMPREHENSIONS):  # no place for an assignment
            self.dying = frozenset()
        found = super().generic_visit(node)
        self.dying = dying
        return found

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


class _Entering(_Dropping):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in ("super", "print")):
            node.func = _at(ast.Call(split.name(ENTER, node.func), [node.func], []), node.func)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


def taking_handed(definition: Function) -> Function:
    """Returns a function that takes its arguments out of a list, so that it alone holds them.

    Args:
        definition: A function without defaults or keyword arguments.

    Returns:
        The same with the one parameter :data:`HANDED`, a list that it empties first.
    """
    like = definition.body[0]
    names = [ast.Name(p.arg, ast.Store()) for p in definition.args.args]
    clear = ast.Attribute(ast.Name(HANDED, ast.Load()), "clear", ast.Load())
    head: list[ast.stmt] = [ast.Expr(ast.Call(clear, [], []))]
    if names:
        head.insert(0, ast.Assign([ast.List([*names], ast.Store())], split.name(HANDED, like)))
    arguments = ast.arguments([], [ast.arg(HANDED)], None, [], [], None, [])
    body = [*_located(head, like), *definition.body]
    return split.replaced(definition, args=_at(arguments, like), body=body)


def _call(function: str, names: Iterable[str], like: ast.stmt) -> ast.expr:
    return ast.Call(split.name(function, like), [split.name(n, like) for n in names], [])


def _emptied(name: str, like: ast.stmt) -> ast.stmt:
    """Returns a statement after which a variable holds nothing."""
    return split.assign(name, ast.copy_location(ast.Constant(None), like), like)


def _located(statements: list[ast.stmt], like: ast.AST) -> list[ast.stmt]:
    """Gives statements that were written here the place of the code that they stand for."""
    return [_at(s, like) for s in statements]


def _at(node: _Node, like: ast.AST) -> _Node:
    for n in descendants(node):
        if "lineno" in n._attributes and not hasattr(n, "lineno"):
            ast.copy_location(n, like)
    return node
