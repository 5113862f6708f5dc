"""Models and inputs as they are named on the command line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Tensor
from tvmgraph.errors import ArgumentError, NotFoundError


def find_model(text: str) -> Any:
    """Returns the network that ``model.onnx``, ``model.graph`` or ``file.py:Name`` stands for.

    A class or factory is called without arguments.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
    """
    file, _, name = text.rpartition(":")
    if not file or not file.endswith(".py"):
        return ms.load(text)
    if not Path(file).is_file():
        raise NotFoundError(f"there is no file {file}", op="tvmgraph", fix="check the path")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if found is None:
        raise NotFoundError(f"{file} has no {name!r}", op="tvmgraph", fix="write file.py:Name")
    return found() if isinstance(found, type) else found


def example_inputs(net: Any, texts: list[str]) -> tuple[Tensor, ...]:
    """Builds inputs from ``name:2x3`` and ``name:2x3:int32``; an ONNX model may know its own.

    Raises:
        ArgumentError: if a text cannot be read, or no input is known.
    """
    if texts:
        return tuple(_input(t) for t in texts)
    found = getattr(net, "example_inputs", tuple)()
    if not found:
        raise ArgumentError(
            "no inputs are given, and the model does not fix them", op="tvmgraph",
            fix="add --input x:1x3x224x224 for every input",
        )  # fmt: skip
    return found


def _input(text: str) -> Tensor:
    name, *rest = text.split(":")
    try:
        shape = [int(d) for d in rest[0].split("x")] if rest[0] else []
        if any(d < 0 for d in shape):
            raise ValueError(text)
        kind = ms.dtypes.dtype_of(rest[1] if len(rest) > 1 else "float32")
        return Tensor(np.zeros(shape, kind.numpy))
    except (IndexError, ValueError, TypeError):
        raise ArgumentError(
            f"{text!r} is no input", op="tvmgraph", got=name, fix="write x:1x3x224x224 or x:8:int32"
        ) from None
