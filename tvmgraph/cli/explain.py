"""``tvmgraph explain``: what of a function is compiled, what Python runs, and why."""

from __future__ import annotations

from pathlib import Path

from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import find_name
from tvmgraph.cli.show import example_arguments
from tvmgraph.debug.dump import write_atomically
from tvmgraph.jit import JitFunction, jit

_CALLS = 3  # until what was split is compiled


def explain(target: str, inputs: list[str], draw: str = "") -> str:
    """Calls a function and returns what :meth:`JitFunction.explain` says of it.

    Args:
        target: ``file.py:name``; the name is a function or a Cell.
        inputs: Types such as ``float32[8,3]``; the module's ``example_inputs`` if there are none.
        draw: Where to write the source with its segments coloured, as SVG; nowhere if empty.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
    """
    module, found = find_name(target)
    with users_code(target.rpartition(":")[0]):
        found = found() if isinstance(found, type) else found  # a Cell without arguments
        function = found if isinstance(found, JitFunction) else jit(found)
        for _ in range(_CALLS):
            function(*example_arguments(module, inputs))
    if draw:
        write_atomically(Path(draw).absolute(), function.draw().svg)
    return function.explain()
