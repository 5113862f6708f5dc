"""The syntax tree of a Python function, found by file and line."""

from __future__ import annotations

import ast
import linecache
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field

from tvmgraph import forking
from tvmgraph.errors import file_name

Function = ast.FunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """What the interpreter needs to know about one function definition.

    Attributes:
        node: Its definition.
        file: File that holds it.
        name: Its name.
        class_name: The class it is defined in, which mangles ``__private`` names.
        assigned: Names that are local because the body binds them.
        outer: Names declared ``nonlocal``.
        globals: Names declared ``global``.
        suspends: Whether it is a generator or a coroutine.
    """

    node: Function
    file: str
    name: str
    class_name: str = ""
    assigned: frozenset[str] = frozenset()
    outer: frozenset[str] = frozenset()
    globals: frozenset[str] = frozenset()
    suspends: bool = False

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; a lambda is one ``return``."""
        if isinstance(self.node, ast.FunctionDef):
            return self.node.body
        result = ast.Return(self.node.body)
        return [ast.copy_location(result, self.node.body)]

    def mangle(self, name: str) -> str:
        """Applies Python's rule for ``__private`` names inside a class.

        Args:
            name: Name of a variable.
        """
        if self.class_name and name.startswith("__") and not name.endswith("__"):
            return f"_{self.class_name.lstrip('_')}{name}"
        return name

    def location(self, node: ast.AST) -> str:
        """Returns ``file:line`` of a node.

        Args:
            node: A node of the function's syntax tree.
        """
        line = getattr(node, "lineno", getattr(self.node, "lineno", 0))
        return f"{file_name(self.file)}:{line}"

    def describe(self, node: ast.AST) -> tuple[str, str]:
        """Returns ``file:line`` of a node, and its source line with carets below.

        Args:
            node: A node of the function's syntax tree.
        """
        line = getattr(node, "lineno", getattr(self.node, "lineno", 0))
        text = linecache.getline(self.file, line).rstrip()
        at = self.location(node)
        if not text:
            return at, ""
        start = getattr(node, "col_offset", 0)
        same = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", len(text)) if same else len(text)
        shift = len(text) - len(text.lstrip())
        carets = " " * (start - shift) + "^" * max(1, min(end, len(text)) - start)
        return at, f"{text.strip()}\n{carets}"


@dataclass
class _File:
    """All function definitions of one file by first line."""

    lines: list[str]
    functions: dict[int, list[Function]] = field(default_factory=dict)


_MOST_FILES = 128  # that stay parsed
_files: dict[str, _File] = {}  # the one that was asked for last comes last


class _Sources:
    """The source of every code object that is alive; code of equal functions is equal, too."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[weakref.ref[types.CodeType], FunctionSource | None]
        ] = {}  # fmt: skip

    def get(self, code: types.CodeType) -> FunctionSource | None:
        """Returns the source of code.

        Raises:
            KeyError: if it was not looked for.
        """
        return self._known[id(code)][1]

    def put(self, code: types.CodeType, source: FunctionSource | None) -> FunctionSource | None:
        """Keeps the source of code as long as that lives, and returns it."""
        key = id(code)

        def forget(_: object) -> None:
            known.pop(key, None)

        known = self._known
        known[key] = weakref.ref(code, forget), source
        return source

    def __len__(self) -> int:
        return len(self._known)


_known = _Sources()
_lock = forking.lock()


def source_of(function: types.FunctionType) -> FunctionSource | None:
    """Returns the source of a function, or ``None`` when there is none that can be interpreted.

    Code made by ``exec``, generators, coroutines and definitions that cannot be found again in
    their file have none.

    Args:
        function: What is called, or looked at.
    """
    found = definition_of(function)
    return None if found is None or found.suspends else found


def definition_of(function: types.FunctionType) -> FunctionSource | None:
    """Returns the source of a function that may be a generator, or ``None`` if there is none.

    Args:
        function: What is called, or looked at.
    """
    try:
        return _known.get(function.__code__)
    except KeyError:
        with _lock:
            return _known.put(function.__code__, _find(function))


def _find(function: types.FunctionType) -> FunctionSource | None:
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return None
    file = _files.pop(code.co_filename, None)
    if file is None or file.lines != lines:
        file = _index(lines)
    _files[code.co_filename] = file
    if len(_files) > _MOST_FILES:
        del _files[next(iter(_files))]
    fitting = [n for n in file.functions.get(code.co_firstlineno, ()) if _fits(n, code)]
    if len(fitting) > 1 and isinstance(fitting[0], ast.Lambda):  # the innermost that holds it all
        fitting = sorted(fitting, key=lambda n: _start(n.body), reverse=True)[:1]  # pyright: ignore
    if len(fitting) != 1:
        return None
    parts = function.__qualname__.split(".")
    owner = parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""
    return describe(fitting[0], code.co_filename, code.co_name, owner)


def describe(node: Function, file: str, name: str, class_name: str) -> FunctionSource:
    """Collects the names that a definition binds and declares.

    Args:
        node: The definition.
        file: Its file.
        name: Qualified name of the function.
        class_name: Name of the class that it stands in, ``""`` without one.
    """
    inner = list(_own(node))
    outer = {n for s in inner if isinstance(s, ast.Nonlocal) for n in s.names}
    shared = {n for s in inner if isinstance(s, ast.Global) for n in s.names}
    bound = {p.arg for p in parameters(node)} | bound_names(inner)
    local = bound - outer - shared
    return FunctionSource(
        node, file, name, class_name, frozenset(local), frozenset(outer), frozenset(shared),
        any(isinstance(n, _SUSPENDING) for n in inner),
    )  # fmt: skip


def parameters(node: Function) -> list[ast.arg]:
    """Returns all parameters of a definition.

    Args:
        node: The definition.
    """
    a = node.args
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *extra]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a body, not those of functions and classes defined in it."""
    body = node.body if isinstance(node, (ast.FunctionDef, ast.Lambda)) else [node]
    todo: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while todo:
        n = todo.pop()
        yield n
        if not isinstance(n, _SCOPES):
            todo.extend(ast.iter_child_nodes(n))


def within(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of statements, not those of functions and classes defined in them.

    Args:
        statements: The statements.
    """
    for s in statements:
        yield from _own(s)


def bound_names(nodes: list[ast.AST]) -> set[str]:
    """Returns the names that these nodes bind (targets of comprehensions are their own).

    Args:
        nodes: The nodes.
    """
    inner: set[int] = set()
    for n in nodes:
        if isinstance(n, _COMPREHENSIONS):
            for g in n.generators:
                inner.update(id(x) for x in ast.walk(g.target))
    names: set[str] = set()
    for n in nodes:
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and id(n) not in inner:
            names.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(n.name)
        elif isinstance(n, ast.alias):
            names.add((n.asname or n.name).partition(".")[0])
        elif isinstance(n, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and n.name:
            names.add(n.name)
        elif isinstance(n, ast.MatchMapping) and n.rest:
            names.add(n.rest)
    return names


def _index(lines: list[str]) -> _File:
    file = _File(lines)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # IPython magics and the like
        return file
    for n in ast.walk(tree):
        if isinstance(n, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(n, "decorator_list", [])
            first = min([n.lineno, *(d.lineno for d in decorators)])
            file.functions.setdefault(first, []).append(n)
    return file


def _fits(node: Function, code: types.CodeType) -> bool:
    """Whether a definition is the one that a code object was compiled from."""
    if isinstance(node, ast.FunctionDef):
        return node.name == code.co_name
    if code.co_name != "<lambda>":
        return False
    names = tuple(p.arg for p in parameters(node))
    own = set(code.co_varnames[: len(names)]) == set(names)
    start, end = _start(node.body), (node.body.end_lineno, node.body.end_col_offset)
    places = [(p[0], p[2], p[1], p[3]) for p in code.co_positions() if None not in p]
    inside = all(start <= p[:2] and p[2:] <= end for p in places if p[:2] != p[2:])  # pyright: ignore
    return own and inside


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def register(function: types.FunctionType, source: FunctionSource) -> None:
    """Makes :func:`source_of` return a source for a function that was written by a program.

    Args:
        function: What is called, or looked at.
        source: Its source.
    """
    _known.put(function.__code__, source)
