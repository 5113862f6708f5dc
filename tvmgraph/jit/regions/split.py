"""Splits a statement into single operations (administrative normal form).

The operations keep Python's order of evaluation, so that the one which only plain Python can run is
a statement of its own and the others stay in compiled code.
"""

from __future__ import annotations

import ast
import itertools
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_LETTER = "ǂ"  # of no alphabet that programs are written in, but an identifier
_numbers = itertools.count()
_SIMPLE = (ast.Constant, ast.Name)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Slice, ast.Starred, ast.Dict)
_LOADS = (ast.Attribute, ast.Subscript)
# what binds names or suspends the function while it is evaluated keeps its statement whole
_WHOLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def temporary() -> str:
    """Returns a name that no source spells."""
    return f"{_LETTER}{next(_numbers)}"


def is_temporary(name: str) -> bool:
    """Whether a name was made by :func:`temporary`.

    Args:
        name: Name of a variable.
    """
    return name[0] == _LETTER


def name(text: str, like: ast.AST) -> ast.Name:
    """Returns an expression that reads a name.

    Args:
        text: The name.
        like: The node whose line and column it gets.
    """
    return ast.copy_location(ast.Name(text, ast.Load()), like)


def assign(target: str, value: ast.expr, like: ast.stmt | ast.expr | None = None) -> ast.Assign:
    """Returns the statement ``target = value``.

    Args:
        target: The variable.
        value: The expression.
        like: The node whose line and column it gets; that of ``value`` by default.
    """
    like = like or value
    store = ast.copy_location(ast.Name(target, ast.Store()), like)
    return ast.copy_location(ast.Assign([store], value, lineno=like.lineno), like)


def truth(test: ast.expr) -> ast.expr:
    """Returns a test to be stored, whose value is asked for its truth afterwards.

    ``if a and b`` asks ``a`` once, which may have a ``__bool__`` of its own; ``t = a and b`` and
    ``if t`` would ask it again where it is false. So the operands become ``not not a``.

    Args:
        test: The test of an ``if`` or ``while``.
    """
    if isinstance(test, ast.BoolOp):
        return replaced(test, values=[_asked(v) for v in test.values])
    return test


def _asked(value: ast.expr) -> ast.expr:
    if isinstance(value, ast.BoolOp):
        return truth(value)
    for _ in range(2):
        value = ast.copy_location(ast.UnaryOp(ast.Not(), value), value)
    return value


def split(statement: ast.stmt) -> list[ast.stmt]:
    """Returns statements that do the same; the statement alone if it cannot be split.

    Args:
        statement: A simple statement.
    """
    if any(isinstance(n, _WHOLE) for n in ast.walk(statement)):
        return [statement]
    splitter = _Splitter()
    last = splitter.statement(statement)
    if last is not None:
        splitter.done.append(ast.copy_location(last, statement))
    return splitter.done if len(splitter.done) > 1 else [statement]


class _Splitter:
    """Takes expressions apart.

    Attributes:
        done: The statements so far.
    """

    def __init__(self) -> None:
        self.done: list[ast.stmt] = []

    def statement(self, s: ast.stmt) -> ast.stmt | None:
        """Splits what a statement evaluates and returns what is left of it."""
        if isinstance(s, ast.Assign):
            return ast.Assign(s.targets, self.value(s.value, s.targets), lineno=s.lineno)
        if isinstance(s, ast.AnnAssign) and s.value is not None:
            value = self.value(s.value, [s.target])
            return ast.AnnAssign(s.target, s.annotation, value, s.simple)
        if isinstance(s, ast.Return) and s.value is not None:
            return ast.Return(self.atom(s.value))
        if isinstance(s, ast.Expr):
            return ast.Expr(self.operation(s.value))
        if isinstance(s, ast.AugAssign):
            return self._augmented(s)
        return s

    def value(self, node: ast.expr, targets: list[ast.expr]) -> ast.expr:
        """Returns the operation that names are bound to; other targets get a finished value."""
        return (self.operation if all(map(_plain, targets)) else self.atom)(node)

    def _augmented(self, s: ast.AugAssign) -> ast.stmt:
        """``o.a += v`` loads, computes, adds and stores, in this order."""
        if isinstance(s.target, ast.Name):
            return ast.AugAssign(s.target, s.op, self.atom(s.value))
        place = self._flattened(s.target)
        load = replaced(place, ctx=ast.Load())
        temp = temporary()
        self.done.append(assign(temp, load))
        store = ast.copy_location(ast.Name(temp, ast.Store()), s.target)
        added = ast.AugAssign(store, s.op, self.atom(s.value))
        self.done.append(ast.copy_location(added, s))
        return ast.Assign([place], name(temp, s), lineno=s.lineno)

    def atom(self, node: ast.expr) -> ast.expr:
        """Returns an expression without effects that has the value of ``node``."""
        if isinstance(node, _SIMPLE):
            return node
        if isinstance(node, _DISPLAYS):
            return self._flattened(node)
        operation = self.operation(node)
        if isinstance(operation, _SIMPLE):
            return operation
        temp = temporary()
        self.done.append(assign(temp, operation))
        return name(temp, node)

    def operation(self, node: ast.expr) -> ast.expr:
        """Returns a single operation on atoms that has the value of ``node``."""
        if isinstance(node, ast.IfExp):
            return self._choice(node.test, node.body, node.orelse, node)
        if isinstance(node, ast.BoolOp):
            return self._short(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return replaced(node, operand=self.atom(truth(node.operand)))
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return node
        known = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr, *_LOADS, *_DISPLAYS)
        return self._flattened(node) if isinstance(node, known) else node

    def _call(self, node: ast.Call) -> ast.Call:
        function = node.func
        if isinstance(function, ast.Attribute):  # a method is looked up and called
            function = replaced(function, value=self._owner(function.value))
        else:
            function = self.atom(function)
        args = [self.atom(a) for a in node.args]
        keywords = [replaced(k, value=self.atom(k.value)) for k in node.keywords]
        return ast.copy_location(ast.Call(function, args, keywords), node)

    def _owner(self, node: ast.expr) -> ast.expr:
        """A path of attributes, such as ``self.net``, is looked up with the method."""
        if isinstance(node, ast.Attribute) and _is_path(node):
            return node
        return self.atom(node)

    def _flattened(self, node: ast.expr) -> ast.expr:
        """Returns a node of which everything that is evaluated is an atom."""
        if isinstance(node, ast.FormattedValue):
            spec = None if node.format_spec is None else self._flattened(node.format_spec)
            return replaced(node, value=self.atom(node.value), format_spec=spec)
        if isinstance(node, ast.JoinedStr):
            if len([v for v in node.values if isinstance(v, ast.FormattedValue)]) > 1:
                return node  # every part is formatted before the next one is computed
            return replaced(node, values=[self._flattened_value(v) for v in node.values])
        if isinstance(node, ast.Dict):
            return self._dict(node)
        changes: dict[str, object] = {}
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                changes[field] = self.atom(value)
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                changes[field] = [self.atom(v) for v in value]
        return replaced(node, **changes)

    def _flattened_value(self, node: ast.expr) -> ast.expr:
        return self._flattened(node) if isinstance(node, ast.FormattedValue) else node

    def _dict(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for key, value in zip(node.keys, node.values):
            keys.append(None if key is None else self.atom(key))
            values.append(self.atom(value))
        return replaced(node, keys=keys, values=values)

    def _choice(self, test: ast.expr, then: ast.expr, orelse: ast.expr, node: ast.expr) -> ast.expr:
        temp = temporary()
        sides = [_inner(temp, then), _inner(temp, orelse)]
        self.done.append(ast.copy_location(ast.If(self.atom(truth(test)), *sides), node))
        return name(temp, node)

    def _short(self, node: ast.BoolOp) -> ast.expr:
        """``a and b`` is ``t = a`` and, if t, ``t = b``."""
        temp = temporary()
        self.done.append(assign(temp, self.operation(node.values[0])))
        block = self.done
        for value in node.values[1:]:
            test: ast.expr = name(temp, value)
            if isinstance(node.op, ast.Or):
                test = ast.copy_location(ast.UnaryOp(ast.Not(), test), value)
            inner = _inner(temp, value)
            block.append(ast.copy_location(ast.If(test, inner, []), value))
            block = inner
        return name(temp, node)


def _inner(temp: str, value: ast.expr) -> list[ast.stmt]:
    return split(assign(temp, value))


def _plain(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_plain, target.elts))
    return isinstance(target, ast.Name)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def replaced(node: _Node, **fields: object) -> _Node:
    """Returns a copy of a node with other fields.

    Args:
        node: The node, which stays as it is.
        fields: The new values of some of its fields.
    """
    made = type(node)(**{**dict(ast.iter_fields(node)), **fields})
    return ast.copy_location(made, node)
