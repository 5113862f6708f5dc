"""Walks and copies of syntax trees: faster than those of ``ast`` and ``copy``.

An outline is written anew whenever more is known, and goes through its statements many times.
"""

from __future__ import annotations

import ast
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


def descendants(node: ast.AST, whole: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """Returns a node and those below it, in no certain order, without contexts such as ``Load``.

    Args:
        node: The node.
        whole: Kinds of nodes below which nothing is looked for.
    """
    todo, found = [node], []
    while todo:
        n = todo.pop()
        found.append(n)
        if whole and isinstance(n, whole):
            continue
        for name in n._fields:
            value = getattr(n, name, None)
            if isinstance(value, list):
                todo += [v for v in value if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                todo.append(value)
    return found


def copied(node: _Node) -> _Node:
    """Returns a copy of a node and of those below it, which may be changed.

    Contexts and operators have nothing to change and are shared.

    Args:
        node: A syntax tree.
    """
    made = node.__class__.__new__(node.__class__)
    attributes = made.__dict__
    for name, value in node.__dict__.items():
        if isinstance(value, list):
            attributes[name] = [copied(v) if isinstance(v, ast.AST) else v for v in value]
        elif isinstance(value, ast.AST) and value.__dict__:
            attributes[name] = copied(value)
        else:
            attributes[name] = value
    return made
