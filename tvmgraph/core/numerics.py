"""The watch for NaN and infinities: which operator made them, of what.

An operator is to blame if its result holds a NaN and none of its operands does, or an infinity and
its operands are finite. Infinities that a program asks for, such as the ``-inf`` of an attention
mask, arrive as operands or attributes and are let through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import ml_dtypes
import numpy as np

from tvmgraph.core.op import Op
from tvmgraph.errors import NumericsError


def is_finite(arrays: Iterable[object]) -> bool:
    """Whether no array holds a NaN or an infinity.

    Args:
        arrays: Arrays and numbers; those that are not floating-point are finite.
    """
    return all(bool(np.isfinite(a).all()) for a in map(np.asarray, arrays) if _is_float(a))


def check(
    op: Op, inputs: Sequence[np.ndarray], attrs: Mapping[str, object], results: Sequence[object]
) -> None:
    """Looks at one application of an operator.

    Args:
        op: The row.
        inputs: Its operands.
        attrs: Its attributes.
        results: What it gave.

    Raises:
        NumericsError: naming the first bad element, and what the operands are there.
    """
    if is_finite(results) or not (inputs or op.tensors):
        return
    operands = [a for a in map(np.asarray, inputs) if _is_float(a)]
    for result in map(np.asarray, results):
        if not _is_float(result):
            continue
        bad, what = np.isnan(result), "NaN"
        known = any(bool(np.isnan(a).any()) for a in operands)
        if known or not bad.any():
            bad, what = np.isinf(result), "an infinity"
            known = not is_finite(operands) or any(map(_is_infinite, attrs.values()))
        if not known and bad.any():
            raise _error(op, inputs, attrs, bad, what)


def _error(
    op: Op, inputs: Sequence[np.ndarray], attrs: Mapping[str, object], bad: np.ndarray, what: str
) -> NumericsError:
    place = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    where = f", the first at {list(place)}" if place else ""
    names = [f"{op.tensors[0]}[{i}]" for i in range(len(inputs))] if op.variadic else op.tensors
    parts = [f"{n}={_describe(np.asarray(a), place, bad.shape)}" for n, a in zip(names, inputs)]
    parts += [f"{k}={v!r}" for k, v in attrs.items()]
    return NumericsError(
        f"the result holds {what}: {int(bad.sum())} of {bad.size} elements{where}",
        op=f"ops.{op.name}", got=", ".join(parts),
        fix="keep the operands in the operator's domain, or add an epsilon or a clamp before it",
    )  # fmt: skip


def _describe(array: np.ndarray, place: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Type and range of an operand, and its element that belongs to a place of the result."""
    text = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    if array.size == 1:
        return f"{text} {array.reshape(-1)[0]!s}"
    if not array.size or array.dtype.kind not in "iufV":
        return text
    text += f" from {np.nanmin(array)!s} to {np.nanmax(array)!s}"
    try:
        there = np.broadcast_to(array, shape)[place]
    except ValueError:  # not an operand that is read element by element
        return text
    return f"{text}, there {there!s}"


def _is_float(array: object) -> bool:
    dtype = np.asarray(array).dtype
    return dtype.kind in "fc" or dtype == ml_dtypes.bfloat16


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)
