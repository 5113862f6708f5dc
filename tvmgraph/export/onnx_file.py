"""ONNX files: whole programs with options, written atomically and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tvmgraph import partial
from tvmgraph.core.onnx_library import onnx
from tvmgraph.errors import ArgumentError, reject, warn_user
from tvmgraph.export.capture import Program, unwrapped
from tvmgraph.export.onnx import OPSET, ExternalData, to_onnx
from tvmgraph.export.variable import given_inputs, variable_program
from tvmgraph.graph import simplify as passes
from tvmgraph.nn import Cell

OLDEST_OPSET = 17
_EXTERNAL_BYTES = 1 << 30  # protobuf messages end at 2 GiB; half of it leaves room for all else


def save_onnx(
    path: Path,
    net: object,
    args: tuple[object, ...],
    *,
    opset: int = OPSET,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    training: bool = False,
    external_data_bytes: int = _EXTERNAL_BYTES,
) -> None:
    """Captures a network and writes it as ONNX.

    Args:
        path: Where to write.
        net: What to capture.
        args: Example arguments.
        opset: Version of the standard operators, 17 or newer.
        dynamic: Names of variable axes by argument name and axis.
        training: Whether to capture in training mode.
        external_data_bytes: Weights above this total go into ``<name>.data`` beside the file.

    Raises:
        ExportError: if an operator has no ONNX form in this opset.
    """
    external = None
    if _weight_bytes(net) > external_data_bytes:
        external = ExternalData(path.name + ".data")
    args = given_inputs(net, args)
    _write(path, onnx_model(net, args, opset, dynamic, training, external), external)


def _weight_bytes(net: object) -> int:
    cell = getattr(net, "owner", None) or unwrapped(net)
    params = cell.get_parameters() if isinstance(cell, Cell) else ()
    return sum(p.array.nbytes for p in params)


def onnx_model(
    net: object,
    args: tuple[object, ...],
    opset: int = OPSET,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    training: bool = False,
    external: ExternalData | None = None,
) -> onnx.ModelProto:
    """Captures a network and returns it as an ONNX model.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        args: Example inputs.
        opset: Opset of the model, from ``OLDEST_OPSET`` to the newest that the package ``onnx``
            knows.
        dynamic: Names of the axes whose sizes vary, by axis and by name of the input.
        training: Whether the network is captured as it trains.
        external: Where the weights go; by default into the model.

    Raises:
        ArgumentError: if the opset is not offered.
    """
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        reject(ArgumentError, "export", f"opset {opset} is not offered",
               fix=f"use {OLDEST_OPSET} to {newest}")  # fmt: skip
    program, names = variable_program(net, args, dynamic, training, describes=True)
    _warn_of_limits(program, names)
    program = program.without_state()
    graph = passes.simplify(program.graph)
    return to_onnx(graph, program.parameters, opset, external, names)


def _warn_of_limits(program: Program, names: Mapping[str, str]) -> None:
    """Warns of axes for some sizes of which the code does something else than the file."""
    for root in sorted({*program.least, *program.most}):
        limits = [
            f"at {word} {given[root]}"
            for word, given in (("least", program.least), ("most", program.most)) if root in given
        ]  # fmt: skip
        warn_user(
            f"export: the file computes sizes of {' and '.join(limits)} of {names[root]} only: the "
            "code decides by others; export once more for them, with examples of that size"
        )


def _write(path: Path, model: onnx.ModelProto, external: ExternalData | None) -> None:
    """Writes and checks a model; an interrupted write leaves no half file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with partial.workspace(path.parent) as folder:
        onnx.save_model(model, folder / path.name)
        if external is not None:
            external.write(folder)
            onnx.checker.check_model(str(folder / path.name))
            os.replace(folder / external.location, path.parent / external.location)
        os.replace(folder / path.name, path)
