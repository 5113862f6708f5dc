"""The outline of a function: its own code, in which runs of statements are calls of segments.

CPython runs the outline, so whatever stays in it (``try``, ``with``, ``yield``, a call into a
library) means what it always means. A run of statements that can be compiled becomes

    a, b = segment(x, y)

with the local variables that it reads and those that are read later. Where an exception may be
caught in the same function, or only the call would hold what it is given, the statements stand
beside the call and run if the segment cannot.
"""

from __future__ import annotations

import ast
import copy
import functools
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from tvmgraph.capture.changes import MUTATING
from tvmgraph.capture.source import parameters
from tvmgraph.jit.regions import split
from tvmgraph.jit.regions.flow import (
    KEPT,
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

if TYPE_CHECKING:
    from tvmgraph.jit.regions.program import Program

ENTER, REFUSED, UNBOUND, RESULT = "$enter", "$refused", "$unbound", "$result"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)
_Clause = TypeVar("_Clause", ast.ExceptHandler, ast.match_case)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PYTHON = (
    ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.AsyncFor, ast.Match, ast.Yield,
    ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.Raise, ast.Import,
    ast.ImportFrom, ast.GeneratorExp, *_SCOPES,
)  # fmt: skip
_CHEAP = frozenset({"range", "enumerate", "zip", "reversed", "iter", "len", "isinstance"})


@dataclass(frozen=True)
class Place:
    """Where a block stands.

    Attributes:
        tail: Whether the function ends where the block ends.
        caught: Whether an exception may be caught, or seen on its way, in this function.
    """

    tail: bool = False
    caught: bool = False


class Outline:
    """Writes the outline of one function.

    Args:
        program: What is known about its statements.
        node: Its definition.
        outer: Local variables of the functions around it.
    """

    def __init__(self, program: Program, node: Function, outer: Names = frozenset()) -> None:
        self.program, self.node = program, node
        inner = [n for n in walk(*node.body) if isinstance(n, (*_SCOPES, ast.Lambda))]
        declared = [n for n in ast.walk(node) if isinstance(n, (ast.Nonlocal, ast.Global))]
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
        written = writes(*every(body, self.program.flat))
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
        """Returns the outline of a block."""
        done: list[ast.stmt] = []
        run: list[ast.stmt] = []
        flat = self.program.flat(statements)
        stuck = -1  # up to here, no rest of the block can be compiled to its end
        for i, s in enumerate(flat):
            if i > stuck:
                reached = self._reached(flat[i:], run, place.tail)
                if reached is None:
                    return [*done, *self.segment(run + flat[i:], place, returns=True)]
                stuck = i + reached
            last = Place(place.tail and i == len(flat) - 1, place.caught)
            for part in self._parts(s, run):
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
                done += [*self.segment(run, place), self.native(part, last), *self._let_go(part)]
                run = []
        return [*done, *self.segment(run, place)]

    def _parts(self, s: ast.stmt, run: list[ast.stmt]) -> list[ast.stmt]:
        """Takes what is computed apart from a test, or from the change of a container."""
        if isinstance(s, (ast.If, ast.For, ast.While)):
            apart = _worth(s) and not self.compilable(s, run)
            return self.program.head_off(s) if apart else [s]
        changed = _changed(s) & self.local
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
                targets |= _own_targets(h)
                found |= (reads(h) & self.local) - bound - targets
        return frozenset(found) - self.shared

    def _bound(self, s: ast.stmt) -> Names:
        return self.flow.bound.get(id(s), frozenset())

    def _fails_first(self, s: ast.stmt, names: Names) -> bool:
        """Whether reading the names is the first thing that a simple statement does."""
        if bodies(s) or isinstance(s, _PYTHON) or names & writes(s):  # `:=` may bind it before
            return False
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else s
        order = certain(value) if value is not None else ()
        calls = [n for n in ast.walk(s) if isinstance(n, ast.Call)]
        for name in names:
            at = [n for n in order if n.id == name]
            if not at or any(_end(c) <= _start(at[0]) for c in calls):
                return False
        return True

    # ---- what can be compiled ---------------------------------------------------------------

    def compilable(self, s: ast.stmt, run: list[ast.stmt], returns: bool = False) -> bool:
        """Whether a statement may be part of a segment after others."""
        program = self.program
        inner = list(every([s], program.flat))
        if any(id(x) in program.native or id(x) in program.parts for x in inner):
            return False
        if _is_native(s) or self._unbound(s) or _closed_over(s) & self.rebound:
            return False
        names = reads(s) | writes(s)
        if names & self.shared or (bodies(s) and writes(s) & self.captured):
            return False
        if _jumps(s, returns):
            return False
        return _changed(s) & self.local <= writes(*run, s)

    def _reached(self, rest: list[ast.stmt], run: list[ast.stmt], tail: bool) -> int | None:
        """Returns which statement of the rest of a block cannot be compiled up to its ``return``.

        Returns:
            Its number; ``None`` if all of the rest can be.
        """
        if not (tail or _ends(rest)) or not any(_has_return(s) for s in rest):
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
        """Returns the call of a segment; statements that compute nothing stay as they are."""
        cold = self.program.cold
        if all(id(s) in cold for s in run):
            return self._as_is(run)
        start, end = 0, len(run)
        while id(run[start]) in cold:
            start += 1
        while not returns and id(run[end - 1]) in cold:
            end -= 1
        head, tail = self._as_is(run[:start]), self._as_is(run[end:])
        live |= reads(*run[end:])
        return [*head, *self._call(run[start:end], place, returns, live), *tail]

    def _call(
        self, run: list[ast.stmt], place: Place, returns: bool, live: Names
    ) -> list[ast.stmt]:
        first, last = run[0], run[-1]
        bound = self._bound(first)
        written = writes(*run) - self.globals
        outs: list[str] = []
        if not returns:
            outs = sorted(written & (self.flow.live.get(id(last), self.captured) | live))
        first_read, sure = self._alone(run)
        ins = sorted((first_read | (frozenset(outs) - sure)) & self.local & bound)
        unsure = frozenset(outs) - sure - bound
        segment = self.program.segment(run, self._as_is, ins, outs, unsure, returns)
        way = ".attempt" if place.caught else ".handed" if any(map(split.is_temporary, ins)) else ""
        call: ast.expr = ast.Call(
            split.name(segment + way, first), [split.name(n, first) for n in ins], []
        )
        if not way:
            return _located(self._unpack(call, outs, unsure, returns), first)
        result = split.name(RESULT, first)
        test = ast.Compare(result, [ast.Is()], [split.name(REFUSED, first)])
        taken = self._unpack(result, outs, unsure, returns)
        if not returns:  # nobody else holds what the segment took and returned
            kept = self.flow.live.get(id(last), self.own) | live
            done = [n for n in ins if split.is_temporary(n) and n not in kept]
            taken += [_emptied(n, first) for n in (*done, *([RESULT] if outs else []))]
        fork = ast.If(test, self._as_is(run), taken)
        return _located([split.assign(RESULT, call, first), fork], first)

    def _as_is(self, run: list[ast.stmt]) -> list[ast.stmt]:
        """Returns statements for Python; what was computed apart for one is let go after it."""
        if not any(map(split.is_temporary, reads(*run))):
            return copy.deepcopy(run)
        return [part for s in self.program.flat(run) for part in self._one_as_is(s)]

    def _one_as_is(self, s: ast.stmt) -> list[ast.stmt]:
        dropping = _Dropping(self._dying(s))
        if not bodies(s):
            return [dropping.visit(copy.deepcopy(s)), *self._let_go(s)]
        fields = dict(ast.iter_fields(s))
        for f in ("test", "iter"):
            if f in fields:
                fields[f] = dropping.visit(copy.deepcopy(fields[f]))
        for f in ("body", "orelse"):
            fields[f] = self._as_is(fields[f])
        return [split.replaced(s, **fields), *self._let_go(s)]

    def _alone(self, run: list[ast.stmt]) -> tuple[Names, Names]:
        """Returns the names that a run may read before it binds them, and those it surely binds."""
        start, end = ast.Pass(), ast.Pass()
        flow = Flow([start, *run, end], frozenset(), frozenset(), self.program.flat)
        return flow.live[id(start)], flow.bound[id(end)] & writes(*run)

    def _unpack(
        self, value: ast.expr, outs: list[str], unsure: Names, returns: bool
    ) -> list[ast.stmt]:
        if returns:
            return [ast.Return(value)]
        if not outs:
            return [ast.Expr(value)]
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in outs]
        target = targets[0] if len(outs) == 1 else ast.Tuple(targets, ast.Store())
        done: list[ast.stmt] = [ast.Assign([target], value)]
        for n in sorted(unsure):
            test = ast.Compare(ast.Name(n, ast.Load()), [ast.Is()], [ast.Name(UNBOUND, ast.Load())])
            done.append(ast.If(test, [ast.Delete([ast.Name(n, ast.Del())])], []))
        return done

    # ---- what only Python can run -----------------------------------------------------------

    def native(self, s: ast.stmt, place: Place) -> ast.stmt:
        """Returns the outline of a statement that stays."""
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
        for f in ("body", "orelse", "finalbody"):
            if fields.get(f):
                fields[f] = self.block(fields[f], inside) or [ast.Pass()]
        for f in ("handlers", "cases"):
            if f in fields:
                fields[f] = [self._clause(c, inside) for c in fields[f]]
        return split.replaced(s, **fields)

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
        return _Entering(dying).visit(copy.deepcopy(node))


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


def _emptied(name: str, like: ast.stmt) -> ast.stmt:
    """Returns a statement after which a variable holds nothing."""
    return split.assign(name, ast.copy_location(ast.Constant(None), like), like)


def _located(statements: list[ast.stmt], like: ast.AST) -> list[ast.stmt]:
    """Gives statements that were written here the place of the code that they stand for."""
    return [_at(s, like) for s in statements]


def _at(node: _Node, like: ast.AST) -> _Node:
    for n in ast.walk(node):
        if "lineno" in n._attributes and not hasattr(n, "lineno"):
            ast.copy_location(n, like)
    return node


def _worth(s: ast.If | ast.For | ast.While) -> bool:
    """Whether what decides about a statement may be computed with tensors."""
    test = s.iter if isinstance(s, ast.For) else s.test
    if isinstance(s, ast.While) and s.orelse:
        return False
    if isinstance(s, ast.For) and isinstance(test, ast.Call):
        f = test.func
        if isinstance(f, ast.Name) and f.id in _CHEAP:
            return False
    kinds = (ast.Call, ast.BinOp, ast.Compare)
    return any(isinstance(n, kinds) for n in ast.walk(test))


@functools.lru_cache(KEPT)
def _is_native(s: ast.stmt) -> bool:
    """Whether there is something in a statement that only Python can run."""
    return any(isinstance(n, _PYTHON) or getattr(n, "is_async", 0) for n in walk(s))


@functools.lru_cache(KEPT)
def _changed(s: ast.stmt) -> Names:
    """Returns the variables whose containers a statement changes by calling a method."""
    found: set[str] = set()
    for n in walk(s):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            owner = n.func.value
            if isinstance(owner, ast.Name) and n.func.attr in MUTATING:
                found.add(owner.id)
    return frozenset(found)


@functools.lru_cache(KEPT)
def _closed_over(s: ast.stmt) -> Names:
    """Returns the variables that lambdas read when they are called: Python must share them."""
    found: set[str] = set()
    for n in walk(s):
        if isinstance(n, ast.Lambda):
            found |= reads(n.body) - {p.arg for p in parameters(n)}
    return frozenset(found)


@functools.lru_cache(KEPT)
def _own_targets(node: ast.AST) -> Names:
    """Returns the variables of comprehensions and lambdas in an expression."""
    found: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.comprehension):
            found |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        elif isinstance(n, ast.Lambda):
            found |= {a.arg for a in parameters(n)}
    return frozenset(found)


def _jumps(s: ast.stmt, returns: bool, inside: bool = False) -> bool:
    """Whether a statement leaves the block that it stands in other than at its end."""
    if isinstance(s, ast.Return):
        return not returns
    if isinstance(s, (ast.Break, ast.Continue)):
        return not inside
    loop = isinstance(s, (ast.For, ast.While))
    body = any(_jumps(x, returns, inside or loop) for x in getattr(s, "body", []))
    return body or any(_jumps(x, returns, inside) for x in getattr(s, "orelse", []))


@functools.lru_cache(KEPT)
def _has_return(s: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) for n in walk(s))


def _ends(block: list[ast.stmt]) -> bool:
    """Whether a block surely ends in ``return``."""
    s = block[-1] if block else None
    if isinstance(s, ast.If):
        return _ends(s.body) and _ends(s.orelse)
    return isinstance(s, ast.Return)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0
