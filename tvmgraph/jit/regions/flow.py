"""Which names are bound before a statement for sure, and which are read after it.

Classic data flow over the syntax tree: bound names go forward, live names backward. Both err to the
safe side: too few are bound, too many live.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from itertools import filterfalse

from tvmgraph.capture.function_source import bound_names
from tvmgraph.jit.regions.nodes import descendants
from tvmgraph.jit.regions.split import is_temporary

Names = frozenset[str]
Flat = Callable[[list[ast.stmt]], list[ast.stmt]]
_NONE: Names = frozenset()
KEPT = 1 << 14  # statements whose names are known; no statement changes, new ones are written
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
# evaluated or not, later or several times
_CONDITIONAL = (
    ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, *_SCOPES,
)  # fmt: skip
LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
Loop = ast.For | ast.AsyncFor | ast.While


def reads(*nodes: ast.AST | None) -> Names:
    """Returns the names that code reads or deletes, functions defined in it included.

    Args:
        nodes: Statements or expressions.
    """
    return _NONE.union(*[_reads(n) for n in nodes if n is not None])


@functools.lru_cache(KEPT)
def _reads(node: ast.AST) -> Names:
    found: set[str] = set()
    for n in descendants(node):
        if isinstance(n, ast.Name):
            if not isinstance(n.ctx, ast.Store):
                found.add(n.id)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            found.add(n.target.id)
    return frozenset(found)


_WRITING = frozenset({"assign", "assign_add", "assign_sub", "set_data", "id"})


def asks_identity(node: ast.AST) -> bool:
    """Whether code compares with ``is``, or writes to items or tensors that may have two names.

    Args:
        node: A function's definition.
    """
    return any(
        (isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
        or (isinstance(n, ast.Compare) and any(map(_compares_identity, n.ops, n.comparators)))
        or (isinstance(n, ast.Attribute) and (n.attr in _WRITING or _is_in_place(n.attr)))
        or (isinstance(n, ast.Name) and n.id in _WRITING)
        for n in descendants(node)
    )


def _compares_identity(operator: ast.cmpop, other: ast.expr) -> bool:
    return isinstance(operator, (ast.Is, ast.IsNot)) and not isinstance(other, ast.Constant)


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.startswith("_")


def writes(*statements: ast.stmt) -> Names:
    """Returns the names that statements bind in their own scope.

    Args:
        *statements: Statements of one scope.
    """
    return _NONE.union(*map(_writes, statements))


@functools.lru_cache(KEPT)
def _writes(statement: ast.stmt) -> Names:
    return frozenset(bound_names(_inside(statement)))


def walk(*statements: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of statements; of functions and classes defined there only the node.

    Args:
        *statements: Syntax trees.
    """
    for s in statements:
        yield from _inside(s)


@functools.lru_cache(KEPT)
def _inside(statement: ast.AST) -> list[ast.AST]:
    return descendants(statement, _SCOPES)


@functools.lru_cache(KEPT)
def bodies(s: ast.stmt) -> list[list[ast.stmt]]:
    """Returns the blocks of a compound statement of the same function.

    Args:
        s: Any statement; one that is not compound, or defines a function or class, has none.
    """
    if isinstance(s, (*_SCOPES,)):
        return []
    found = [getattr(s, f, []) for f in ("body", "orelse", "finalbody")]
    found += [h.body for h in getattr(s, "handlers", [])]
    return [b for b in [*found, *(c.body for c in getattr(s, "cases", []))] if b]


def headers(s: ast.stmt) -> list[ast.AST]:
    """Returns what a statement evaluates itself, outside of its blocks.

    Args:
        s: Any statement; one without blocks is returned itself.
    """
    if isinstance(s, (ast.If, ast.While)):
        return [s.test]
    if isinstance(s, (ast.For, ast.AsyncFor)):
        return [s.iter]
    if isinstance(s, (ast.With, ast.AsyncWith)):
        return list(s.items)
    if isinstance(s, ast.Match):
        return [s.subject, *s.cases]
    return [] if bodies(s) else [s]


def every(statements: list[ast.stmt], flat: Flat) -> Iterator[ast.stmt]:
    """Yields statements and those inside them, without functions and classes defined there.

    Args:
        statements: The statements.
        flat: Replaces statements that were split by what they were split into.
    """
    for s in flat(statements):
        yield s
        for b in bodies(s):
            yield from every(b, flat)


@functools.lru_cache(KEPT)
def certain(node: ast.AST) -> tuple[ast.Name, ...]:
    """Returns the names that are read whenever this is evaluated to its end, in order.

    Args:
        node: An expression or a statement.
    """
    todo, found = [node], []
    while todo:
        n = todo.pop(0)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            found.append(n)
        elif isinstance(n, ast.BoolOp):
            todo.insert(0, n.values[0])
        elif isinstance(n, ast.Compare):
            todo[:0] = [n.left, n.comparators[0]]
        elif isinstance(n, ast.IfExp):
            todo.insert(0, n.test)
        elif not isinstance(n, _CONDITIONAL):
            todo[:0] = ast.iter_child_nodes(n)
    return tuple(found)


class Flow:
    """The data flow of one function.

    Args:
        body: Its statements.
        params: Its parameters and whatever else is always bound.
        captured: Names that functions defined inside read.
        flat: Replaces statements by what they were split into.

    Attributes:
        bound: The names that are bound before a statement, by its ``id``.
        maybe: Those and the names that may be bound before it.
        live: The names that may be read after it.
    """

    def __init__(self, body: list[ast.stmt], params: Names, captured: Names, flat: Flat) -> None:
        self.bound: dict[int, Names] = {}
        self.maybe: dict[int, Names] = {}
        self.live: dict[int, Names] = {}
        self._flat = flat
        nodes = list(walk(*body))
        gone = {
            t.id for n in nodes if isinstance(n, ast.Delete) for t in n.targets
            if isinstance(t, ast.Name)
        }  # fmt: skip
        gone |= {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
        self._unsure = frozenset(gone)  # deleted somewhere
        self._forward(body, params - self._unsure, params)
        self._backward(body, captured, _NONE, captured)

    # ---- bound names ------------------------------------------------------------------------

    def _forward(self, block: list[ast.stmt], bound: Names | None, maybe: Names) -> Names | None:
        """Returns what is bound after a block, ``None`` where its end is not reached.

        Args:
            block: Statements.
            bound: What is bound before them.
            maybe: That and what may be bound before them.
        """
        for s in self._flat(block):
            before = _NONE if bound is None else bound
            self.bound[id(s)], self.maybe[id(s)] = before, maybe
            after = self._after(s, before, maybe)
            bound = None if bound is None or after is None else after - self._unsure
            maybe |= writes(s)
        return bound

    def _after(self, s: ast.stmt, bound: Names, maybe: Names) -> Names | None:
        sure = {n.id for h in headers(s) if not isinstance(s, _SCOPES) for n in certain(h)}
        if isinstance(s, (ast.With, ast.AsyncWith, ast.Match)):
            sure = set()
        bound = bound | (frozenset(sure) - self._unsure)
        if isinstance(s, ast.If):
            ends = [self._forward(b, bound, maybe) for b in (s.body, s.orelse)]
            return _joined(*ends)
        if isinstance(s, (ast.For, ast.AsyncFor, ast.While)):
            first = bound if isinstance(s, ast.While) else bound | _targets(s.target)
            maybe |= writes(s)
            self._forward(s.body, first, maybe)
            self._forward(s.orelse, bound, maybe)
            return bound
        if isinstance(s, (ast.With, ast.AsyncWith)):
            items = [i.optional_vars for i in s.items if i.optional_vars is not None]
            self._forward(s.body, bound.union(*map(_targets, items)), maybe)
            return bound
        if isinstance(s, (ast.Try, ast.TryStar)):
            return self._after_try(s, bound, maybe)
        if isinstance(s, ast.Match):
            return _joined(bound, *[self._forward(c.body, bound, maybe) for c in s.cases])
        if isinstance(s, LEAVES):
            return None
        return bound | _bound_for_sure(s)

    def _after_try(self, s: ast.Try | ast.TryStar, bound: Names, maybe: Names) -> Names | None:
        done = self._forward(s.body, bound, maybe)
        tried = maybe | writes(*s.body)
        done = self._forward(s.orelse, _NONE if done is None else done, tried) if s.orelse else done
        ends = [done, *[self._forward(h.body, bound, tried) for h in s.handlers]]
        self._forward(s.finalbody, bound, maybe | writes(s))
        return _joined(*ends)

    # ---- live names -------------------------------------------------------------------------

    def _backward(self, block: list[ast.stmt], out: Names, jump: Names, caught: Names) -> Names:
        """Returns what is live before a block.

        Args:
            block: Statements.
            out: What is live after them.
            jump: What is live where ``break`` and ``continue`` lead.
            caught: What is live where an exception leads.
        """
        for s in reversed(self._flat(block)):
            self.live[id(s)] = out | caught
            out = self._before(s, out, jump, caught) | caught
        return out

    def _before(self, s: ast.stmt, out: Names, jump: Names, caught: Names) -> Names:
        blocks = bodies(s)
        if isinstance(s, (ast.Return, ast.Raise)):
            return reads(s)
        if isinstance(s, (ast.Break, ast.Continue)):
            return jump
        if not blocks:
            return (out - _bound_for_sure(s)) | reads(s)
        if isinstance(s, ast.If):
            ends = [self._backward(b, out, jump, caught) for b in (s.body, s.orelse)]
            return ends[0] | ends[1] | reads(s.test)
        if isinstance(s, (ast.For, ast.AsyncFor, ast.While)):
            return self._before_loop(s, out, caught)
        inner = [x for b in blocks for x in every(b, self._flat)]
        # an exception may lead anywhere, but not between the parts of one statement
        again = out | jump | frozenset(filterfalse(is_temporary, reads(*inner, *headers(s))))
        for b in blocks:
            self._backward(b, again, jump, caught | again)
        return again

    def _before_loop(self, s: Loop, out: Names, caught: Names) -> Names:
        head = out | reads(*headers(s)) | self._backward(s.orelse, out, out, caught)
        while True:
            start = self._backward(s.body, head, head, caught)
            again = head | (start - _targets(s.target) if not isinstance(s, ast.While) else start)
            if again == head:
                return head
            head = again


def _joined(*ends: Names | None) -> Names | None:
    reached = [e for e in ends if e is not None]
    return frozenset.intersection(*reached) if reached else None


def _targets(target: ast.expr) -> Names:
    return frozenset(
        n.id
        for n in descendants(target)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )


def _bound_for_sure(s: ast.stmt) -> Names:
    """Returns the names that a simple statement binds if it ends."""
    if isinstance(s, ast.Assign):
        return _NONE.union(*map(_targets, s.targets))
    if isinstance(s, ast.AugAssign) or (isinstance(s, ast.AnnAssign) and s.value is not None):
        return _targets(s.target)
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return frozenset([s.name])
    return writes(s) if isinstance(s, (ast.Import, ast.ImportFrom)) else _NONE
