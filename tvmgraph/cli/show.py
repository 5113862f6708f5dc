"""``tvmgraph show``: writes the viewer of a function's graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvmgraph import Graph
from tvmgraph.capture import record
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import example_inputs, find_model
from tvmgraph.debug.dump import write_atomically
from tvmgraph.jit import JitFunction, jit
from tvmgraph.view import model_of, viewer_page


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
        models = _models(found, known, inputs, compile_it)
    write_atomically(path.absolute(), viewer_page(models, name, [file]))
    return path


def _models(
    found: Any, known: Sequence[Any], inputs: list[str], compile_it: bool
) -> list[dict[str, Any]]:
    if isinstance(found, Graph):
        return [model_of(found, title="Cell scope")]
    args = example_inputs(found, inputs, known) if inputs or known else ()
    function = found if isinstance(found, JitFunction) else jit(found)
    if not compile_it:
        graph = function.graph(*args) if args else record(function.fn)
        return [model_of(graph, title="Cell scope")]
    profile, graph = function.profile(*args), function.graph()
    after, kernels = function.fused_graph(profile)
    models = [model_of(graph, title="Cell scope")]
    return [*models, model_of(after, kernels, title="kernel")] if kernels else models
