"""Models, inputs and settings as they are named on the command line."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor
from tvmgraph.cli.guard import users_code
from tvmgraph.errors import ArgumentError, ConfigError, NotFoundError


def load_source(file: str) -> Any:
    """Runs a Python file as a module; files beside it can be imported.

    Raises:
        NotFoundError: if there is no such file.
        ArgumentError: if it raises an exception, with its line.
    """
    path = Path(file)
    if not path.is_file():
        raise NotFoundError(f"there is no file {file}", op="tvmgraph", fix="check the path")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{file} is no Python file", op="tvmgraph", fix="give a file.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    with users_code(file):
        spec.loader.exec_module(module)
    return module


def find_name(text: str) -> tuple[Any, Any]:
    """Returns the module and the object that ``file.py:Name`` stands for.

    Raises:
        ArgumentError: if the text has another form.
        NotFoundError: if the file, or the name in it, does not exist.
    """
    file, _, name = text.rpartition(":")
    if not file or not name:
        raise ArgumentError(f"{text!r} is not file.py:name", op="tvmgraph", fix="name an object")
    module = load_source(file)
    found = getattr(module, name, None)
    if found is None:
        public = [n for n in vars(module) if not n.startswith("_")]
        raise NotFoundError(
            f"{file} has no {name!r}", op="tvmgraph", fix=f"it has {', '.join(public) or 'nothing'}"
        )
    return module, found


def find_model(text: str) -> Any:
    """Returns the network that ``model.onnx``, ``model.graph`` or ``file.py:Name`` stands for.

    A class or factory is called without arguments.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the object is no network.
    """
    file = text.rpartition(":")[0]
    if not file.endswith(".py"):
        return ms.load(text)
    _, found = find_name(text)
    if isinstance(found, type):
        with users_code(file):
            found = found()
    if not callable(found):
        raise ArgumentError(
            f"{text} is a {type(found).__name__}, no network", op="tvmgraph",
            fix="name a Cell, a class of one, or a function of tensors",
        )  # fmt: skip
    return found


def example_inputs(net: Any, texts: list[str]) -> tuple[Tensor, ...]:
    """Builds inputs from ``name:2x3`` and ``name:2x3:int32``; an ONNX model may know its own.

    Raises:
        ArgumentError: if a text cannot be read, or no input is known.
    """
    if texts:
        return tuple(_in_order(net, [_input(t) for t in texts]))
    found = getattr(net, "example_inputs", tuple)()
    if not found:
        raise ArgumentError(
            "no inputs are given, and the model does not fix them", op="tvmgraph",
            fix="add --input x:1x3x224x224 for every input",
        )  # fmt: skip
    return found


def _in_order(net: Any, given: list[tuple[str, Tensor]]) -> list[Tensor]:
    """Sorts inputs by the names that an imported model gives them."""
    wanted = getattr(net, "input_names", None)
    if wanted is None:
        return [t for _, t in given]
    by_name = dict(given)
    if sorted(by_name) != sorted(wanted):
        raise ArgumentError(
            "the inputs are not those of the model", op="tvmgraph", got=", ".join(by_name),
            fix=f"the model has {', '.join(wanted)}",
        )  # fmt: skip
    return [by_name[n] for n in wanted]


def _input(text: str) -> tuple[str, Tensor]:
    name, *rest = text.split(":")
    try:
        shape, kind = rest if len(rest) == 2 else (*rest, "float32")
        sizes = [_size(d) for d in shape.split("x")] if shape else []
        fixed = [d for d in sizes if isinstance(d, int)]
        if len(fixed) < len(sizes):
            return name, Tensor(shape=sizes, dtype=ms.dtypes.dtype_of(kind))
        return name, Tensor(np.zeros(fixed, ms.dtypes.dtype_of(kind).numpy))
    except (ValueError, TypeError, MemoryError):
        raise ArgumentError(
            f"{text!r} is no input", op="tvmgraph", got=name,
            fix="write x:1x3x224x224 or x:8:int32; ? or a name stands for a size that varies",
        ) from None  # fmt: skip


def _size(text: str) -> int | str | None:
    """Reads one size: a number, ``?`` for any, or a name."""
    if text == "?":
        return None
    if text.isidentifier():
        return text
    if int(text) < 0:
        raise ValueError(text)
    return int(text)


def find_config(text: str) -> JitConfig:
    """Returns the settings that a preset's name, or ``file.toml:name``, stands for.

    Raises:
        NotFoundError: if there is no such file.
        ConfigError: if there is no such preset, or its keys or values are unknown.
    """
    file, _, name = text.rpartition(":")
    if not text:
        return JitConfig()
    if not file:
        return JitConfig.preset(name)
    if not Path(file).is_file():
        raise NotFoundError(f"there is no file {file}", op="tvmgraph", fix="check the path")
    try:
        return JitConfig.preset(name, file)
    except (tomllib.TOMLDecodeError, TypeError, UnicodeDecodeError) as e:
        raise ConfigError(f"{file} is no preset file ({e})", op="tvmgraph",
                          fix="write a table [name] of jit_level = ...") from None  # fmt: skip
