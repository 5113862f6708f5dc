"""``tvmgraph show``: writes the viewer of a function's graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import Graph, Tensor
from tvmgraph.capture import record
from tvmgraph.cli.guard import users_code
from tvmgraph.cli.model_argument import find_name
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.debug.dump import write_atomically
from tvmgraph.errors import ArgumentError
from tvmgraph.jit import JitFunction, jit
from tvmgraph.view import model_of, viewer_page


def show(target: str, inputs: list[str], output: str, compile_it: bool = True) -> Path:
    """Writes the viewer and returns its path.

    Args:
        target: ``file.py:name``; the name is a function, a Cell, or a Graph.
        inputs: Types such as ``float32[8,3]``; the module's ``example_inputs`` if there are none.
        output: Where to write; ``name.html`` if empty.
        compile_it: Whether to compile and time it too, to show the kernels.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the target or an input cannot be read.
    """
    module, found = find_name(target)
    name = target.rpartition(":")[2]
    path = Path(output or f"{name}.html")
    file = target.rpartition(":")[0]
    with users_code(file):
        models = _models(found, module, inputs, compile_it)
    write_atomically(path.absolute(), viewer_page(models, name, [file]))
    return path


def _models(found: Any, module: Any, inputs: list[str], compile_it: bool) -> list[dict[str, Any]]:
    found = found() if isinstance(found, type) else found  # a Cell without arguments
    if isinstance(found, Graph):
        return [model_of(found, title="Cell scope")]
    args = example_arguments(module, inputs)
    function = found if isinstance(found, JitFunction) else jit(found)
    if not compile_it:
        graph = function.graph(*args) if args else record(function.fn)
        return [model_of(graph, title="Cell scope")]
    profile, graph = function.profile(*args), function.graph()
    after, kernels = function.fused_graph(profile)
    models = [model_of(graph, title="Cell scope")]
    return [*models, model_of(after, kernels, title="kernel")] if kernels else models


def example_arguments(module: Any, inputs: list[str]) -> list[Any]:
    """Returns tensors of some types, or what the module names ``example_inputs``."""
    if not inputs:
        given = getattr(module, "example_inputs", ())
        given = given() if callable(given) else given
        return list(given) if isinstance(given, (tuple, list)) else [given]
    return [_example(_parse(text)) for text in inputs]


def _parse(text: str) -> TensorType:
    dtype, bracket, rest = text.partition("[")
    dims = rest.removesuffix("]").split(",") if rest.strip("]") else []
    if not bracket or not rest.endswith("]") or not all(d.strip().isdigit() for d in dims):
        raise ArgumentError(
            f"{text!r} is no tensor type", op="tvmgraph show", fix="write it like float32[8,3]"
        )
    return tensor_type([int(d) for d in dims], dtype)


def _example(kind: TensorType) -> Tensor:
    rng = np.random.default_rng(0)
    if kind.dtype.is_float:
        return Tensor(rng.normal(size=kind.static_shape).astype(kind.dtype.numpy))
    return Tensor(np.zeros(kind.static_shape, kind.dtype.numpy))
