"""``tvmgraph show``: writes the viewer of a function's graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tvmgraph import Graph
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import example_inputs, find_model
from tvmgraph.debug.dump import write_atomically
from tvmgraph.jit import JitFunction, jit
from tvmgraph.view import Viewer, model_of


def show(target: str, inputs: list[str], output: str, compile_it: bool = True) -> Path:
    """Writes the viewer and returns its path.

    Args:
        target: ``file.py:name``; the name is a function, a Cell, or a Graph.
        inputs: Types such as ``float32[8,3]``; the file's ``example_inputs`` if there are none.
        output: Where to write; ``name.html`` if empty.
        compile_it: Whether to compile and time it too, to show the kernels.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
    """
    found, known, _ = find_model(target)
    name = target.rpartition(":")[2]
    path = Path(output or f"{name}.html")
    file = target.rpartition(":")[0]
    with users_code(file):
        viewer = _viewer(found, known, inputs, compile_it, name)
    write_atomically(path.absolute(), viewer.html([file]))
    return path


def _viewer(
    found: object, known: Sequence[object], inputs: list[str], compile_it: bool, name: str
) -> Viewer:
    if isinstance(found, Graph):
        return Viewer([model_of(found, title="Cell scope")], name)
    args = example_inputs(found, inputs, known) if inputs or known else ()
    function = found if isinstance(found, JitFunction) else jit(found)
    viewer = function.viewer(*args, compile_it=compile_it)
    return Viewer(viewer.models, name)
