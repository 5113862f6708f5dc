"""Questions about statements that their syntax answers."""

from __future__ import annotations

import ast
import functools

from tvmgraph.capture.changes import MUTATING
from tvmgraph.capture.function_source import parameters
from tvmgraph.jit.regions.flow import KEPT, Names, reads, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: What has variables of its own.
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: What only Python can run.
PYTHON = (
    ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.AsyncFor, ast.Match, ast.Yield,
    ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.Raise, ast.Import,
    ast.ImportFrom, ast.GeneratorExp, *SCOPES,
)  # fmt: skip
_TAKING = frozenset({
    "all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple",
})  # fmt: skip
_CHEAP = frozenset({"range", "enumerate", "zip", "reversed", "iter", "len", "isinstance"})


def may_test_tensors(s: ast.If | ast.For | ast.While) -> bool:
    """Whether what decides about a statement may be computed with tensors.

    Args:
        s: A branch or loop.
    """
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
def is_python_only(s: ast.stmt) -> bool:
    """Whether there is something in a statement that only Python can run.

    Args:
        s: Any statement.
    """
    return any(isinstance(n, PYTHON) or getattr(n, "is_async", 0) for n in walk(s))


@functools.lru_cache(KEPT)
def changed_containers(s: ast.stmt) -> Names:
    """Returns the variables whose containers a statement changes by calling a method.

    Args:
        s: Any statement.
    """
    found: set[str] = set()
    for n in walk(s):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            owner = n.func.value
            if isinstance(owner, ast.Name) and n.func.attr in MUTATING:
                found.add(owner.id)
    return frozenset(found)


@functools.lru_cache(KEPT)
def closed_over(s: ast.stmt) -> Names:
    """Returns the variables that lambdas read when they are called: Python must share them.

    Args:
        s: Any statement.
    """
    found: set[str] = set()
    for n in walk(s):
        if isinstance(n, ast.Lambda):
            found |= reads(n.body) - {p.arg for p in parameters(n)}
    return frozenset(found)


@functools.lru_cache(KEPT)
def own_targets(node: ast.AST) -> Names:
    """Returns the variables of comprehensions and lambdas in an expression.

    Args:
        node: A syntax tree.
    """
    found: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.comprehension):
            found |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        elif isinstance(n, ast.Lambda):
            found |= {a.arg for a in parameters(n)}
    return frozenset(found)


def lasting_generators(definition: Function) -> list[ast.GeneratorExp]:
    """Returns the generator expressions that see what their variables become.

    What takes all items of one at once leaves it no time for that.

    Args:
        definition: The function that they stand in.
    """
    nodes = list(walk(*definition.body))
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    taken = {id(a) for n in calls if getattr(n.func, "id", "") in _TAKING for a in n.args}
    return [n for n in nodes if isinstance(n, ast.GeneratorExp) and id(n) not in taken]


def jumps_out(s: ast.stmt, returns: bool, inside: bool = False) -> bool:
    """Whether a statement leaves the block that it stands in other than at its end.

    Args:
        s: The statement.
        returns: Whether a ``return`` is allowed.
        inside: Whether a loop of the block is around it, which ``break`` then leaves.
    """
    if isinstance(s, ast.Return):
        return not returns
    if isinstance(s, (ast.Break, ast.Continue)):
        return not inside
    loop = isinstance(s, (ast.For, ast.While))
    body = any(jumps_out(x, returns, inside or loop) for x in getattr(s, "body", []))
    return body or any(jumps_out(x, returns, inside) for x in getattr(s, "orelse", []))


@functools.lru_cache(KEPT)
def has_return(s: ast.stmt) -> bool:
    """Whether a ``return`` of the same function stands in a statement.

    Args:
        s: Any statement.
    """
    return any(isinstance(n, ast.Return) for n in walk(s))


def ends_in_return(block: list[ast.stmt]) -> bool:
    """Whether a block surely ends in ``return``.

    Args:
        block: Statements; none end in ``return`` if there are none.
    """
    s = block[-1] if block else None
    if isinstance(s, ast.If):
        return ends_in_return(s.body) and ends_in_return(s.orelse)
    return isinstance(s, ast.Return)


def start_of(node: ast.expr) -> tuple[int, int]:
    """Returns line and column at which an expression begins.

    Args:
        node: An expression of parsed code.
    """
    return node.lineno, node.col_offset


def end_of(node: ast.expr) -> tuple[int, int]:
    """Returns line and column at which an expression ends.

    Args:
        node: An expression of parsed code.
    """
    return node.end_lineno or 0, node.end_col_offset or 0
