"""``print`` as a node of the graph, where a tensor decides whether something is printed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph.capture import tree
from tvmgraph.capture.frame import Frame
from tvmgraph.capture.merge import as_tensor, number_type
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor

if TYPE_CHECKING:
    from tvmgraph.capture.protocol import Interpreting


#: What prints, by name.
FUNCTIONS = {"print": print, "print_": F.print_}


def emit(
    interpreter: Interpreting, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
    node: ast.AST, frame: Frame,
) -> None:  # fmt: skip
    """Adds a node that prints.

    Its token goes from print to print like a tensor that is assigned, through branches and loops.

    Args:
        interpreter: The interpreter of the capture.
        function: ``print``, or what prints like it.
        args: Its arguments by position.
        kwargs: Its arguments by name.
        node: The code that does it, for messages.
        frame: The frame in which that code runs.
    """
    in_lines = function is not print
    separator, end = kwargs.get("sep"), kwargs.get("end")
    separator = separator if separator is not None else "\n" if in_lines else " "
    end = "\n" if end is None else end
    if set(kwargs) - {"sep", "end", "flush"}:
        interpreter.refuse(
            node, frame, "print(file=...) in a function where a tensor decides about a print",
            "print to standard output, or return what is to be printed",
        )  # fmt: skip
    words: list[str | None] = []
    shown: list[object] = []
    for i, value in enumerate(args):
        words += [separator] if i else []
        if isinstance(value, Parameter):  # its text names it, without elements
            words.append(str(value))
        elif interpreter.is_symbolic(value) or isinstance(value, Symbol):
            words.append(None)
            shown.append(value)
        elif any(map(interpreter.is_symbolic, tree.tensors(value))):
            interpreter.refuse(
                node, frame, "printing a container of tensors where a tensor decides about a print",
                "print its tensors one by one",
            )  # fmt: skip
        else:
            words.append(str(value))
    kinds = [number_type(v) or (Tensor if in_lines else None) for v in shown]
    token = interpreter.token()
    new = F.host_print(
        token, *map(as_tensor, shown), words=tuple(words), end=end,
        numbers=tuple("" if k is None else k.__name__ for k in kinds),
    )  # fmt: skip
    interpreter.recorder.denote(token, new)


def first_token() -> Tensor:
    """Returns the token for the first print."""
    return Tensor(np.array(0, np.int64))
