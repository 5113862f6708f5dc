"""``tvmgraph explain``: what of a function is compiled, what Python runs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tvmgraph import JitConfig
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import example_inputs, find_model
from tvmgraph.debug.dump import write_atomically
from tvmgraph.jit import JitFunction, jit
from tvmgraph.nn import Cell
from tvmgraph.signatures import python_signature

CALLS = 3  # until what was split is compiled


def called(
    target: str, inputs: list[str], config: JitConfig | None = None
) -> tuple[JitFunction, Sequence[object]]:
    """Calls a function until it is compiled.

    Args:
        target: ``file.py:name``; the name is a function or a Cell.
        inputs: Types such as ``float32[8,3]``; if there are none, ``example_calls`` of the file,
            a list of tuples of arguments, or its ``example_inputs``, those of one call. If there
            are none of these, either, what the file itself has called is not called again.
        config: Settings of the compiler; those of the function, or the default, if ``None``.

    Returns:
        The jitted function, and the arguments of its last call.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
    """
    found, known, calls = find_model(target)
    missing = not (inputs or known or calls) and _takes_arguments(found)
    if missing and isinstance(found, JitFunction) and (found.history or found.region):
        return found, ()  # the file has called it
    args = example_inputs(found, inputs, known) if inputs or known or missing else ()
    calls = [args] if inputs or not calls else calls
    with users_code(target.rpartition(":")[0]):
        function = found if isinstance(found, JitFunction) else jit(found, jit_config=config)
        for given in calls:
            for _ in range(CALLS):
                function(*given)
    return function, calls[-1]


def _takes_arguments(function: object) -> bool:
    """Whether a call without arguments fails."""
    called = function.construct if isinstance(function, Cell) else function
    if not callable(called):
        return False
    try:
        python_signature(called).bind()
    except TypeError:
        return True
    return False


def explain(target: str, inputs: list[str], draw: str = "") -> JitFunction:
    """Calls a function and returns it, to be asked :meth:`JitFunction.explain`.

    Args:
        target: ``file.py:name``; the name is a function or a Cell.
        inputs: As for :func:`called`.
        draw: Where to write the source with its segments coloured, as SVG; nowhere if empty.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
    """
    function, _ = called(target, inputs)
    if draw:
        write_atomically(Path(draw).absolute(), function.draw().svg)
    return function
