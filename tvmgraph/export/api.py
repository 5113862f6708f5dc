"""``export``: one call that writes a network to a file."""

from __future__ import annotations

import importlib
import os
import zipfile
from pathlib import Path
from typing import Any

from tvmgraph import hooks
from tvmgraph.errors import ArgumentError, reject, user_source, warn_user
from tvmgraph.interruption import noticed

#: Of every format, its suffix, and module and function of what writes a network, captured with
#: example inputs, to a path; keywords are options of the format.
_WRITERS = {
    "ONNX": (".onnx", "onnx_file", "save_onnx"),
    "TVM": (".tvm", "module", "save_module"),
    "GRAPH": (".graph", "graph_file", "save_graph"),
    "MINDIR": (".mindir", "graph_file", "save_graph"),
}


def formats() -> tuple[str, ...]:
    """Returns the values that ``file_format`` may have."""
    return tuple(_WRITERS)


def format_of(path: str | os.PathLike[str]) -> str:
    """Returns the format whose suffix a path has.

    Args:
        path: Path of a file, which need not exist.

    Raises:
        ArgumentError: if no format has it.
    """
    suffixes = {suffix: name for name, (suffix, *_) in _WRITERS.items()}
    found = suffixes.get(Path(path).suffix)
    if found is None:
        raise ArgumentError(f"{Path(path).name!r} has the suffix of no format",
                            got=f"path={str(path)!r}", at=user_source(),
                            fix=f"end the name in one of {', '.join(suffixes)}")  # fmt: skip
    return found


@noticed()
def export(
    net: object,
    *inputs: object,
    file_name: str | os.PathLike[str],
    file_format: str = "ONNX",
    **options: object,
) -> Path:
    """Writes a network to one file.

    The network is captured once with the example inputs, with all cells in inference mode.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        inputs: Example arguments of any shapes :math:`(d_1, \\ldots, d_n)`; shapes and dtypes
            count, values do not. Placeholders such as ``Tensor(shape=["batch", 3])`` have axes of
            variable size (``None``, or one name for equal sizes). Without any, those of
            ``set_inputs``.
        file_name: Where to write; the suffix of the format is added when it is missing.
        file_format: ``"ONNX"``, see :func:`formats`.
        options: Settings of the format. ``ONNX``: ``opset`` (17 or newer), ``dynamic`` (names of
            axes whose size may change, ``{"x": {0: "batch"}}``), ``training``,
            ``external_data_bytes`` (weights above this total go into a second file). ``TVM``:
            ``target`` (a name from ``configs/targets.toml``), ``jit_level``, ``linker`` (for
            another architecture), ``frozen`` (weights become part of the code), ``training``,
            ``dynamic``.
            ``GRAPH`` and ``MINDIR``, which is written as a graph file of that name: ``training``.

    Returns:
        The path that was written.

    Raises:
        ArgumentError: for an unknown format or option.
        ExportError: naming the line of an operator the format cannot hold.

    Example:
        >>> ms.export(nn.ReLU(), Tensor([1.0, -1.0]), file_name="relu", file_format="ONNX").name
        'relu.onnx'
    """
    kind = str(file_format).upper()
    if kind not in _WRITERS:
        reject(ArgumentError, "export", f"unknown file_format {file_format!r}",
               fix=f"use one of {', '.join(map(repr, _WRITERS))}")  # fmt: skip
    suffix, module, writer = _WRITERS[kind]
    if "\0" in os.fspath(file_name):
        reject(ArgumentError, "export", f"file_name={file_name!r} cannot be the name of a file",
               fix="leave out the character of number 0")  # fmt: skip
    path = Path(file_name)
    if path.suffix != suffix:
        path = path.with_name(path.name + suffix)
    if kind == "MINDIR":
        warn_user(
            f"{path.name} is a graph file of this package, which MindSpore does not read: there is "
            'no writer of MindSpore\'s format; file_format="ONNX" is read by other programs'
        )
    write = getattr(importlib.import_module(f"tvmgraph.export.{module}"), writer)
    try:
        write(path, net, inputs, **options)
    except TypeError as e:
        if "unexpected keyword argument" not in str(e):
            raise
        raise ArgumentError(
            f"file_format={kind!r} has no such option: {e}", op="export", got=", ".join(options),
            fix="see help(tvmgraph.export)",
        ) from None  # fmt: skip
    return path


def load(
    path: str | os.PathLike[str],
    public_key: str | os.PathLike[str] | None = None,
    **options: object,
) -> Any:
    """Loads a file that :func:`export` wrote, or a MINDIR file of MindSpore.

    Args:
        path: A ``.graph``, ``.onnx``, ``.tvm`` or ``.mindir`` file.
        public_key: A PEM file with the Ed25519 key that must have signed a ``.tvm`` file.
        options: ``dec_key`` and ``dec_mode`` of MindSpore programs are refused: encrypted files
            are not read.

    Returns:
        A Cell that computes what the file holds, or (``.tvm``) a compiled
        :class:`tvmgraph.runtime.Module`. ``nn.GraphCell`` takes the Cell, too.

    Raises:
        ArgumentError: if the suffix is unknown, or files of its kind are not signed.
        LoadError: if the file is damaged, or has operators that are not supported.
    """
    kind = format_of(path)
    if options:
        reject(ArgumentError, "load",
               f"there is no option {', '.join(options)}; encrypted files are not read", str(path),
               "export the file without enc_key")  # fmt: skip
    if kind == "TVM":
        from tvmgraph.runtime import load as load_module

        return load_module(path, public_key=public_key)
    if public_key is not None:
        reject(ArgumentError, "load", "only compiled modules are signed", str(path),
               'export with file_format="TVM" and sign=..., or leave public_key out')  # fmt: skip
    if kind == "MINDIR" and not zipfile.is_zipfile(path):
        return hooks.load_mindir(Path(path))
    if kind in ("GRAPH", "MINDIR"):
        from tvmgraph.export.graph_file import load_graph

        return load_graph(path)
    from tvmgraph.onnx.model import load as load_onnx

    return load_onnx(path)
