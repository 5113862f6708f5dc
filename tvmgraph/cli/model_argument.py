"""Models, inputs and settings as they are named on the command line."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

import tvmgraph as ms
from tvmgraph import Graph, JitConfig, Tensor
from tvmgraph.cli.guard import users_code
from tvmgraph.compat.elsewhere import did_you_mean
from tvmgraph.errors import ArgumentError, ConfigError, NotFoundError, reject


def load_source(file: str) -> ModuleType:
    """Runs a Python file as a module; files beside it can be imported.

    Args:
        file: Path of the file.

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


def find_name(text: str) -> tuple[ModuleType, object]:
    """Returns the module and the object that ``file.py:Name`` stands for.

    Args:
        text: The argument.

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
        meant = f"{near} " if (near := did_you_mean(name, public)) else ""
        reject(NotFoundError, "tvmgraph", f"{file} has no {name!r}",
               fix=f"{meant}it has {', '.join(public) or 'nothing'}")  # fmt: skip
    return module, found


class Found(NamedTuple):
    """A network, and what its file knows of its arguments.

    Attributes:
        net: The network.
        inputs: Arguments of one call: ``example_inputs`` of the file, tensors or a function that
            returns them; none where there are none.
        calls: Arguments of several calls, a list of tuples: ``example_calls`` of the file.
    """

    net: object
    inputs: tuple[object, ...] = ()
    calls: tuple[tuple[object, ...], ...] = ()


def find_model(text: str) -> Found:
    """Returns what ``model.onnx``, ``model.graph`` or ``file.py:Name`` stands for.

    A class or factory is called without arguments.

    Args:
        text: The argument.

    Raises:
        NotFoundError: if the file, or the name in it, does not exist.
        ArgumentError: if the object is no network.
    """
    file = text.rpartition(":")[0]
    if not file.endswith(".py") and Path(text).suffix not in ("", ".py"):
        net = ms.load(text)
        return Found(net, tuple(getattr(net, "example_inputs", tuple)()))
    module, found = find_name(text)
    with users_code(file):
        if isinstance(found, type):
            found = found()
        given = getattr(module, "example_inputs", ())
        given = given() if callable(given) else given
        calls = tuple(tuple(args) for args in getattr(module, "example_calls", ()))
    if not callable(found) and not isinstance(found, Graph):
        reject(ArgumentError, "tvmgraph", f"{text} is a {type(found).__name__}, no network",
               fix="name a Cell, a class of one, or a function of tensors")  # fmt: skip
    return Found(found, tuple(given) if isinstance(given, (tuple, list)) else (given,), calls)


def example_inputs(
    net: object, texts: list[str], known: Sequence[object] = ()
) -> tuple[object, ...]:
    """Builds arguments from what the command line says, see :func:`parse_input`.

    Args:
        net: The network, which may know the names of its inputs.
        texts: One per argument.
        known: What is taken if there are no texts.

    Raises:
        ArgumentError: if a text cannot be read, or no input is known.
    """
    if texts:
        return tuple(_in_order(net, [parse_input(t) for t in texts]))
    if not known:
        raise ArgumentError(
            "no inputs are given, and the model does not fix them", op="tvmgraph",
            fix="add --input 1x3x224x224 for every input, or example_inputs = [...] to the file",
        )  # fmt: skip
    return tuple(known)


def _in_order(net: object, given: list[tuple[str, Tensor]]) -> list[Tensor]:
    """Sorts inputs by the names that an imported model gives them."""
    wanted = getattr(net, "input_names", None)
    if wanted is None or not any(name for name, _ in given):
        return [t for _, t in given]
    by_name = dict(given)
    if sorted(by_name) != sorted(wanted):
        reject(ArgumentError, "tvmgraph", "the inputs are not those of the model",
               ", ".join(by_name), f"the model has {', '.join(wanted)}")  # fmt: skip
    return [by_name[n] for n in wanted]


def parse_input(text: str) -> tuple[str, Tensor]:
    """Reads an argument: ``8x3``, ``x:8x3``, ``x:8x3:int32``, ``float32[8,3]``, ``x:int32[8]``.

    Args:
        text: The argument.

    Returns:
        Its name, empty if it has none, and a tensor: normal numbers, zeros of a dtype that is no
        float (they may be indices), a placeholder where a size is ``?`` or a name.

    Raises:
        ArgumentError: if the text has another form.
    """
    try:
        name, kind, sizes = _parts(text)
        fixed = [d for d in sizes if isinstance(d, int)]
        if len(fixed) < len(sizes):
            return name, Tensor(shape=sizes, dtype=kind)
        if kind.is_float:
            values = np.random.default_rng(0).standard_normal(fixed).astype(kind.numpy)
            return name, Tensor(values)
        return name, Tensor(np.zeros(fixed, kind.numpy))
    except (ValueError, TypeError, MemoryError):
        raise ArgumentError(
            f"{text!r} is no input", op="tvmgraph",
            fix="write it like float32[8,3], 8x3 or x:8x3:int32; ? or a name is a size that varies",
        ) from None  # fmt: skip


def _parts(text: str) -> tuple[str, ms.dtypes.DType, list[int | str | None]]:
    name, _, rest = text.rpartition(":")
    if rest.endswith("]"):
        kind, bracket, sizes = rest[:-1].partition("[")
        words = sizes.split(",") if sizes else []
        if not bracket or ":" in name:
            raise ValueError(text)
    else:
        fields = text.split(":")
        if len(fields) == 1 or (len(fields) == 2 and text[0] in "0123456789?"):
            fields = ["", *fields]
        name, shape, kind = fields if len(fields) == 3 else (*fields, "float32")
        words = shape.split("x") if shape else []
    return name, ms.dtypes.dtype_of(kind), [_size(word.strip()) for word in words]


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

    Args:
        text: The argument.

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
