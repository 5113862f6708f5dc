"""Exports whose inputs have axes of variable size: what was declared, and examples of it.

Axes vary where an example input is a placeholder, ``Tensor(shape=["batch", 3])``, and where the
option ``dynamic={"x": {0: "batch"}}`` says so; axes of one name have equal sizes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvmgraph.capture import tree
from tvmgraph.capture.promotion import Promotion
from tvmgraph.capture.record import argument_labels
from tvmgraph.core.sizes import Dim
from tvmgraph.core.symbols import Specialise
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError, ExportError, TvmgraphError, reject
from tvmgraph.export.capture import Program, capture_program, unwrapped

Dynamic = Mapping[str, Mapping[int, str]]
# sizes of examples: large enough for most windows, and hardly a size of anything else
_EXAMPLES = (37, 41, 43, 47, 53, 59, 61, 67)
# of images: large enough for 32 pixels to become one, and several to be left
_IMAGES = (131, 137, 139, 149, 151, 157, 163, 167)
_SPATIAL = 2  # the first axis that an image may have


@dataclass(frozen=True)
class VariableInputs:
    """Example arguments, and which of their axes vary.

    Attributes:
        args: Tensors with elements.
        axes: Names by label of the input and axis.
        promotion: The same as symbols of a capture.
        names: The user's name of every symbol.
    """

    args: tuple[object, ...]
    axes: dict[str, dict[int, str]]
    promotion: Promotion
    names: dict[str, str]

    def named(self, text: str) -> str:
        """Says the user's names of symbols.

        Args:
            text: An expression of symbols.
        """
        return re.sub(r"\bs\d+\b", lambda symbol: self.names.get(symbol[0], symbol[0]), text)


def given_inputs(net: object, args: tuple[object, ...]) -> tuple[object, ...]:
    """Returns the example inputs, those of ``set_inputs`` if there are none.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        args: Example inputs, possibly none.
    """
    cell = getattr(net, "owner", None) or net
    declared = getattr(cell, "__dict__", {}).get("_inputs", ((), {}))[0]
    return args or tuple(declared)


def variable_inputs(
    net: object, args: tuple[object, ...], dynamic: Dynamic | None = None, images: bool = False
) -> VariableInputs | None:
    """Finds the axes that vary, or returns None if all sizes are fixed.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        args: Example inputs; axes whose sizes are names, as in ``Tensor(shape=["batch", 3])``,
            vary.
        dynamic: Names of more axes that vary, by axis and by name of the input.
        images: Whether examples are as large as images.

    Raises:
        ArgumentError: if an input or axis does not exist.
    """
    leaves = tree.tensors(args)
    labels = _labels(net, args, leaves)
    axes = _named_axes(labels, leaves, dynamic or {})
    if not axes:
        return None
    names: dict[str, str] = {}  # the symbol of every name
    sizes: dict[tuple[int, int], str] = {}
    for i, label in enumerate(labels):
        for axis, name in axes.get(label, {}).items():
            sizes[i, axis] = names.setdefault(name, f"s{len(names)}")
    if len(names) > len(_EXAMPLES):
        raise ArgumentError(f"at most {len(_EXAMPLES)} sizes may vary, not {len(names)}",
                            op="export")  # fmt: skip
    values = dict(zip(names.values(), _EXAMPLES))
    if images:
        large = dict(zip(names.values(), _IMAGES))
        values |= {n: large[n] for (_, axis), n in sizes.items() if axis >= _SPATIAL}
    examples = [
        _example(t, {a: values[n] for (j, a), n in sizes.items() if j == i})
        for i, t in enumerate(leaves)
    ]
    made = tree.replace(args, iter(examples))
    return VariableInputs(
        made, axes, Promotion(sizes, ships=True), {s: n for n, s in names.items()}
    )


def variable_program(
    net: object, args: tuple[object, ...], dynamic: Dynamic | None, training: bool,
    describes: bool = False,
) -> tuple[Program, dict[str, str]]:  # fmt: skip
    """Captures a network; returns the user's names of its symbolic sizes as well.

    Args:
        net: A Cell, a function of tensors, or what ``jit`` returned.
        args: Example inputs, as for :func:`variable_inputs`.
        dynamic: See there.
        training: Whether the code runs in training mode.
        describes: Whether the program is only written down, see :class:`Promotion`.

    Raises:
        ExportError: if the code needs the value of a size that shall vary.
    """
    variable = variable_inputs(net, args, dynamic)
    if variable is None:
        return capture_program(net, args, training=training), {}
    try:
        return _symbolic(net, variable, training, describes)
    except TvmgraphError:
        images = variable_inputs(net, args, dynamic, images=True) if describes else None
        if images is not None and any(a >= _SPATIAL for _, a in images.promotion.sizes):
            with contextlib.suppress(TvmgraphError):  # small ones may have shrunk to nothing
                return _symbolic(net, images, training, describes)
        raise


def _symbolic(
    net: object, variable: VariableInputs, training: bool, describes: bool
) -> tuple[Program, dict[str, str]]:
    """Captures a network for all sizes; see :func:`variable_program`."""
    promotion = replace(variable.promotion, describes=describes)
    try:
        program = capture_program(net, variable.args, training=training, promotion=promotion)
    except Specialise as e:
        raise _depends(variable, e.roots, f", which is needed at {e.at}") from None
    if program.decided:
        outcomes = program.conditions.items()
        asked = ", ".join(text if holds else f"not {text}" for text, holds in outcomes)
        raise _depends(variable, program.decided, f": {variable.named(asked)}")
    return program, variable.names


def _depends(variable: VariableInputs, roots: Iterable[str], why: str) -> ExportError:
    sizes = ", ".join(sorted(variable.named(root) for root in roots))
    return ExportError(
        f"the code depends on the value of {sizes}{why}", op="export", got=str(variable.axes),
        fix="export once for every size of it, or write the code without looking at the size",
    )  # fmt: skip


def _labels(net: object, args: tuple[object, ...], leaves: list[Tensor]) -> list[str]:
    fn = unwrapped(net)
    found = tree.labels(argument_labels(fn, args, {}))
    own = tree.unique([found.get(id(t), f"arg{i}") for i, t in enumerate(leaves)])
    names = getattr(fn, "input_names", None)
    return list(names) if names is not None and len(names) == len(leaves) else own


def _named_axes(
    labels: list[str], leaves: list[Tensor], dynamic: Dynamic
) -> dict[str, dict[int, str]]:
    axes: dict[str, dict[int, str]] = {}
    for label, t in zip(labels, leaves):
        for axis, d in enumerate(t.aval.shape):
            if isinstance(d, Dim):
                unnamed = d.text.startswith("any_")
                axes.setdefault(label, {})[axis] = f"{label}_{axis}" if unnamed else d.text
    for label, axis, name, _ in given_axes(labels, leaves, dynamic):
        axes.setdefault(label, {})[axis] = name
    return axes


def given_axes(
    labels: Sequence[str], inputs: Sequence[object], dynamic: Dynamic
) -> Iterator[tuple[str, int, str, Tensor]]:
    """Yields input, axis, name and example of every axis that a caller names.

    Args:
        labels: Names of the inputs.
        inputs: An example for each.
        dynamic: What was given.

    Raises:
        ArgumentError: if there is no such input or axis.
    """
    for label, axes in dynamic.items():
        if label not in labels:
            reject(ArgumentError, "export", f"there is no input {label!r}",
                   f"dynamic={dict(dynamic)}", f"the inputs are {', '.join(labels)}")  # fmt: skip
        tensor = inputs[labels.index(label)]
        for axis, name in axes.items():
            if not isinstance(tensor, Tensor) or not 0 <= axis < tensor.ndim:
                raise ArgumentError(
                    f"input {label!r} has no axis {axis}", op="export",
                    got=f"{label}={getattr(tensor, 'type', tensor)}", fix="count axes from 0",
                )  # fmt: skip
            yield label, axis, name, tensor


def _example(t: Tensor, sizes: dict[int, int]) -> Tensor:
    if not sizes:
        return t
    shape = [sizes.get(a, d) for a, d in enumerate(t.aval.shape)]
    return tensor_from_numpy(np.zeros(shape, t.dtype.numpy))  # pyright: ignore[reportArgumentType]
