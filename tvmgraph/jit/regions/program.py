"""What is known about a function that is not one graph, and the functions made from it."""

from __future__ import annotations
import __future__

import ast
import functools
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvmgraph import forking
from tvmgraph.capture.function_source import FunctionSource, describe, register
from tvmgraph.jit.regions import split
from tvmgraph.jit.regions.flow import Names, asks_identity, bodies, headers
from tvmgraph.jit.regions.outline import (
    ENTER,
    HIDDEN,
    REFUSED,
    UNBOUND,
    Function,
    Outline,
    Passed,
    taking_handed,
)

if TYPE_CHECKING:
    from tvmgraph.jit.regions.segment import Segment

#: Makes a segment: its function, statements, arguments and results, and how it runs with graph
#: breaks.
Maker = Callable[
    ["Program", types.FunctionType, list[ast.stmt], Passed, "Fallback"], "Segment"
]  # fmt: skip


@dataclass(frozen=True)
class Fallback:
    """The statements of a segment as functions of a list of the variables that they take.

    Attributes:
        definition: A function that returns what is needed after them.
        plain: The same as Python runs it if none of the statements is known to be for Python only.
    """

    definition: ast.FunctionDef
    plain: ast.FunctionDef


class Unbound:
    """What a segment returns for a variable that has no value."""


class Refused:
    """What a segment returns that did nothing, because it cannot be compiled for a call."""


class Program:
    """The statements of one function: which are compiled, and which only Python can run.

    Args:
        function: The function.
        source: Its source.
        make: Makes segments.
        enter: What calls in the outline go through.

    Attributes:
        python_only: ``id`` of the statements that only Python can run.
        tensor_free: Those that compute nothing with tensors.
        parts: What a statement was split into.
        why: For every statement in :attr:`python_only` the reason.
        version: Grows with what is known.
        segments: The segments that were made.
        used: The names of those that the newest outline calls.
        asks_identity: Whether it matters to it which of its variables are one tensor.
        churns: Whether something that it reads differs from call to call.
    """

    def __init__(
        self, function: types.FunctionType, source: FunctionSource, make: Maker,
        enter: Callable[[object], object],
    ) -> None:  # fmt: skip
        self.function, self.source = function, source
        node = source.node
        if isinstance(node, ast.Lambda):
            made = ast.FunctionDef(function.__code__.co_name, node.args, source.body, [])
            node = ast.copy_location(made, node)
        self.node: Function = node
        self.asks_identity = asks_identity(node)
        self.python_only: set[int] = set()
        self.tensor_free: set[int] = set()
        self.parts: dict[int, list[ast.stmt]] = {}
        self.why: dict[int, tuple[ast.AST, str]] = {}
        self.version = 0
        self.segments: dict[object, tuple[str, Segment]] = {}
        self._kept: list[ast.AST] = []  # whose ids are known
        self._make = make
        self._lock = forking.rlock()
        self.space: dict[str, object] = {ENTER: enter, REFUSED: Refused, UNBOUND: Unbound}
        self.used: set[str] = set()
        self.churns = False
        self._made: tuple[int, types.FunctionType] | None = None

    # ---- statements -------------------------------------------------------------------------

    def flat(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Returns statements, those that were split as their parts.

        Args:
            statements: Statements of the function.
        """
        done: list[ast.stmt] = []
        for s in statements:
            parts = self.parts.get(id(s))
            done += [s] if parts is None else self.flat(parts)
        return done

    def split_off(self, s: ast.stmt) -> list[ast.stmt]:
        """Splits a statement, of which the last operation stays in Python.

        Args:
            s: A simple statement.
        """
        parts = split.split(s)
        if parts != [s]:
            self._replace(s, parts)
        self._keep_in_python(parts[-1], "")
        return parts

    def hoist_condition(self, s: ast.If | ast.For | ast.While) -> list[ast.stmt]:
        """Makes what decides about a statement a statement of its own.

        Args:
            s: The statement, whose test or iterable is evaluated ahead of it.
        """
        temp = split.temporary()
        field = "iter" if isinstance(s, ast.For) else "test"
        value = getattr(s, field)
        made = split.assign(temp, value if field == "iter" else split.truth(value))
        read = split.name(temp, made)
        if isinstance(s, ast.While):
            test = ast.copy_location(ast.UnaryOp(ast.Not(), read), made)
            leave = ast.If(test, [ast.copy_location(ast.Break(), made)], [])
            body = [made, ast.copy_location(leave, made), *s.body]
            always = ast.copy_location(ast.Constant(True), made)
            parts: list[ast.stmt] = [split.replaced(s, test=always, body=body)]
        else:
            parts = [made, split.replaced(s, **{field: read})]
        self._replace(s, parts)
        self._keep_in_python(parts[-1], "")
        return parts

    def _replace(self, s: ast.stmt, parts: list[ast.stmt]) -> None:
        self._kept.append(s)
        self.parts[id(s)] = parts
        self.python_only.discard(id(s))
        self.version += 1

    def _keep_in_python(self, s: ast.stmt, why: str) -> bool:
        if id(s) in self.python_only:
            return False
        self._kept.append(s)
        self.python_only.add(id(s))
        self.version += 1
        if why:
            self.why[id(s)] = s, why
        return True

    # ---- what is learned --------------------------------------------------------------------

    def mark_break(self, node: ast.AST | None, why: str, inside: Iterable[ast.stmt] = ()) -> bool:
        """Notes that only Python can evaluate a node; returns whether this was not known.

        Args:
            node: An expression or a statement.
            why: The reason.
            inside: Where it is, if not anywhere in the function.
        """
        with self._lock:
            found = self._statement_of(node, list(inside) or self.node.body)
            return found is not None and self._mark_break(found, node, why)

    def _mark_break(self, s: ast.stmt, node: object, why: str) -> bool:
        ends_early = isinstance(s, ast.While) and s.orelse
        if isinstance(s, (ast.If, ast.For, ast.While)) and node is not s and not ends_early:
            parts = self.hoist_condition(s)
            # a test of `and` and `or` is there no longer: what asks its operands now stands for it
            made = parts[0].body[0] if isinstance(parts[0], ast.While) else parts[0]
            return self._mark_break(self._statement_of(node, parts) or made, node, why)
        if bodies(s) or id(s) in self.python_only:
            return self._keep_in_python(s, why)
        parts = split.split(s)
        if parts == [s]:
            return self._keep_in_python(s, why)
        self._replace(s, parts)
        return self._keep_in_python(self._statement_of(node, parts) or parts[-1], why)

    def _statement_of(self, node: object, block: list[ast.stmt]) -> ast.stmt | None:
        """Returns the innermost statement of a block that a node belongs to."""
        for s in self.flat(block):
            if s is node or any(n is node for h in headers(s) for n in ast.walk(h)):
                return self._inner(s, node) or s
            for b in bodies(s):
                found = self._statement_of(node, b)
                if found is not None:
                    return found
        return None

    def _inner(self, s: ast.stmt, node: object) -> ast.stmt | None:
        """Returns the statement of a function defined by ``s`` that a node belongs to."""
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)) and s is not node:
            return self._statement_of(node, s.body)
        return None

    def mark_breaks_at(self, names: Names, why: str, inside: list[ast.stmt], store: bool) -> bool:
        """Notes that Python must read, or bind, some variables.

        Args:
            names: The variables.
            why: The reason.
            inside: Where they are.
            store: Whether Python must bind them, instead of reading them.
        """
        return self._mark_breaks_where(
            lambda n: isinstance(n, ast.Name) and n.id in names
            and isinstance(n.ctx, ast.Store) is store, why, inside,
        )  # fmt: skip

    def mark_breaks_at_reads(self, name: str, why: str, inside: Iterable[ast.stmt] = ()) -> bool:
        """Notes that Python must read a variable or attribute; returns whether there was any.

        Args:
            name: The variable or attribute.
            why: The reason.
            inside: Where it is, if not anywhere in the function.
        """
        return self._mark_breaks_where(
            lambda n: isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)
            and name == (n.id if isinstance(n, ast.Name) else n.attr), why, inside,
        )  # fmt: skip

    def _mark_breaks_where(
        self, is_meant: Callable[[ast.AST], bool], why: str, inside: Iterable[ast.stmt]
    ) -> bool:
        """Blames what is meant in some statements; without any in the whole function."""
        nodes = [n for s in list(inside) or self.node.body for n in ast.walk(s) if is_meant(n)]
        return any([self.mark_break(n, why, inside) for n in nodes])

    def mark_tensor_free(self, statements: list[ast.stmt]) -> None:
        """Notes that statements compute nothing with tensors.

        Args:
            statements: Statements of the function.
        """
        with self._lock:
            self._kept.extend(statements)
            self.tensor_free.update(map(id, statements))
            self.version += 1

    # ---- functions --------------------------------------------------------------------------

    def outline(self) -> types.FunctionType:
        """Returns the outline of the function, written anew when more is known."""
        function = self.function
        with self._lock:
            if self._made is None or self._made[0] != self.version:
                self.used.clear()
                made = self.write(self.node, function)
                self._made = self.version, made
            made = self._made[1]
        if made.__defaults__ is not function.__defaults__:
            made.__defaults__ = function.__defaults__
        return made

    def write(
        self, node: Function, like: types.FunctionType, handed: bool = False
    ) -> types.FunctionType:
        """Returns the outline of a definition as a function.

        Args:
            node: The definition.
            like: The function it stands for.
            handed: Whether its arguments come in a list, which it empties.
        """
        with self._lock:
            before, written = -1, node
            while self.version != before:
                before, written = self.version, Outline(self, node).function()
            return self.define(taking_handed(written) if handed else written, like)

    def segment(
        self, run: list[ast.stmt], as_is: Callable[[list[ast.stmt]], list[ast.stmt]],
        passed: Passed, broken: Passed, returns: bool,
    ) -> str:  # fmt: skip
        """Returns the name of the segment that runs statements.

        Args:
            run: The statements.
            as_is: Says what Python runs in their place.
            passed: What goes in and out of the compiled ones.
            broken: What goes in and out if they run with graph breaks.
            returns: Whether the function ends with them.
        """
        key = (tuple(map(id, run)), passed, broken, returns)
        if key not in self.segments:
            name = f"{HIDDEN}s{len(self.segments)}"
            title = f"{self.source.name} (s{len(self.segments)})"
            plain = as_is(run)
            read, unchanged = [self._definition(title, passed, b) for b in (run, plain)]
            function = self.define(unchanged, self.function)
            source = describe(read, self.source.file, self.source.name, self.source.class_name)
            register(function, source)
            fallback = Fallback(*[self._definition(title, broken, b) for b in (run, plain)])
            made = self._make(self, function, run, passed, fallback)
            self._kept.extend(run)
            self.segments[key] = name, made
            self.space[f"{name}.attempt"] = made.attempt
            self.space[f"{name}.broken"] = made.run_fallback
            unread = sorted(frozenset(broken.ins) - frozenset(passed.ins))
            observes = functools.partial(made.observes_rebinding, unread)
            self.space[f"{name}.observes_rebinding"] = observes
        self.used.add(self.segments[key][0])
        return self.segments[key][0]

    def _definition(self, title: str, passed: Passed, run: list[ast.stmt]) -> ast.FunctionDef:
        """Makes a function of some statements."""
        first, last = run[0], run[-1]
        head = [split.assign(n, split.name(UNBOUND, first), first) for n in sorted(passed.unsure)]
        body: list[ast.stmt] = [*head, *run]
        if passed.outs:
            values: list[ast.expr] = [split.name(n, first) for n in passed.outs]
            value = values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())
            body.append(ast.copy_location(ast.Return(ast.copy_location(value, last)), last))
        shared = sorted(self.source.globals)
        if shared:
            body = [ast.copy_location(ast.Global(shared), first), *body]
        params = [ast.copy_location(ast.arg(n), first) for n in passed.ins]
        arguments = ast.arguments([], params, None, [], [], None, [])
        return ast.copy_location(ast.FunctionDef(title, arguments, body, []), first)

    def define(self, node: Function, like: types.FunctionType) -> types.FunctionType:
        """Compiles a definition into a function with the globals and closure of another.

        Args:
            node: The definition.
            like: The function it stands for, and is called like.
        """
        args = split.replaced(
            node.args, defaults=[], kw_defaults=[None] * len(node.args.kwonlyargs),
            vararg=_bare(node.args.vararg), kwarg=_bare(node.args.kwarg),
            **{f: [_bare(a) for a in getattr(node.args, f)] for f in _PARAMETERS},
        )  # fmt: skip
        inner = split.replaced(node, decorator_list=[], returns=None, args=args, type_params=[])
        body: list[ast.stmt] = [inner]
        if self.source.class_name:  # for the names that it mangles
            made = ast.ClassDef(self.source.class_name, [], [], body, [])
            body = [ast.copy_location(made, node)]
        free = like.__code__.co_freevars
        space = self.space.copy()  # other threads may add to it
        params = [ast.copy_location(ast.arg(n), node) for n in dict.fromkeys((*space, *free))]
        bound = [n for n in (node.name, self.source.class_name) if n and n not in free]
        if bound:  # they are no variables here
            body.insert(0, ast.copy_location(ast.Global(bound), node))
        factory = ast.FunctionDef(
            "$factory", ast.arguments([], params, None, [], [], None, []), body, []
        )
        module = ast.Module([ast.copy_location(factory, node)], [])
        # a statement stands in several functions, and here in several places
        code = _code_in(compile(module, like.__code__.co_filename, "exec", dont_inherit=True,
                                flags=like.__code__.co_flags & _FUTURE), node.name)  # fmt: skip
        shown = like.__code__
        code = _requalified(code, code.co_qualname, shown.co_qualname)
        code = code.replace(co_name=shown.co_name)
        cells = dict(zip(free, like.__closure__ or ()))
        cells |= {n: types.CellType(v) for n, v in space.items()}
        closure = tuple([cells[n] for n in code.co_freevars])
        function = types.FunctionType(
            code, like.__globals__, like.__name__, like.__defaults__, closure
        )
        function.__kwdefaults__ = like.__kwdefaults__
        function.__qualname__ = like.__qualname__
        return function


_FUTURE = __future__.annotations.compiler_flag


_PARAMETERS = ("posonlyargs", "args", "kwonlyargs")


def _bare(parameter: ast.arg | None) -> ast.arg | None:
    """Returns a parameter without its annotation."""
    return parameter and split.replaced(parameter, annotation=None)


def _requalified(code: types.CodeType, before: str, now: str) -> types.CodeType:
    """Renames a definition: what it defines has its name in front."""
    name = now + code.co_qualname.removeprefix(before)
    inner = tuple(
        _requalified(c, before, now) if isinstance(c, types.CodeType) else c for c in code.co_consts
    )
    return code.replace(co_qualname=name, co_consts=inner)


def _code_in(code: types.CodeType, name: str) -> types.CodeType:
    """Finds the code of a definition in that of the module around it."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            if constant.co_name[0] == "$" or constant.co_freevars or constant.co_consts:
                found = _code_in(constant, name)
                if found is not None:
                    return found
    return None  # pyright: ignore[reportReturnType]
