"""The text of a tensor, laid out as MindSpore's."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes

_EDGE = 3  # items shown at either end of a shortened axis
_LONGEST = 2 * _EDGE  # an axis of a matrix is shown in full up to here
_LONGEST_VECTOR = 1000
_PER_LINE = {"i": 24, "u": 24, "b": 12, "f": 12, "c": 12}
_SCIENTIFIC = {"float16": (11, 4), "float32": (15, 8), "float64": (15, 8)}  # width, digits


def tensor_text(array: np.ndarray) -> str:
    """Returns the elements as ``repr`` shows them (what follows ``value=``).

    Args:
        array: The elements; bfloat16 is allowed.
    """
    dtype = dtypes.dtype_of(array.dtype)
    if array.ndim == 0:
        return " " + _plain(array.item(), dtype)
    if array.size == 0:
        return " " if array.ndim == 1 else "\n"
    longest = _LONGEST_VECTOR if array.ndim == 1 else _LONGEST
    texts = _formatted(_edges(array, longest), dtype)
    if array.ndim == 1:
        return " " + _vector(texts, array.shape[0], _PER_LINE[dtype.kind])
    return "\n" + _nested(texts, array.shape, 1)


def _plain(value: float | complex | np.generic, dtype: dtypes.DType) -> str:
    if dtype.kind == "f":
        return f"{value:g}"
    if dtype.kind == "c":
        return f"{value.real:g}{value.imag:+g}j"
    return str(value)


def _edges(array: np.ndarray, longest: int) -> np.ndarray:
    """Returns only the items that will be shown."""
    for axis, size in enumerate(array.shape):
        if size > longest:
            shown = [*range(_EDGE), *range(size - _EDGE, size)]
            array = np.take(array, shown, axis)
    return array


def _formatted(array: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    """Formats every element, aligned to one width."""
    if dtype.name in _SCIENTIFIC:
        width, digits = _SCIENTIFIC[dtype.name]
        texts = [f"{v:{width}.{digits}e}" for v in array.ravel().tolist()]
    else:
        wide = array.astype(np.float32) if dtype is dtypes.bfloat16 else array
        texts = [_plain(v, dtype) for v in wide.ravel().tolist()]
    width = {"c": 0, "b": len("False")}.get(dtype.kind, max(map(len, texts)))
    return np.array([t.rjust(width) for t in texts], object).reshape(array.shape)


def _row(texts: list[str], size: int) -> str:
    if size == len(texts):
        return ", ".join(texts)
    return f"{', '.join(texts[:_EDGE])} ... {', '.join(texts[_EDGE:])}"


def _vector(texts: np.ndarray, size: int, per_line: int) -> str:
    if size != len(texts) or size <= per_line:
        return f"[{_row(list(texts), size)}]"
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, size, per_line)]
    return "[" + ", \n ".join(lines) + "]"


def _nested(texts: np.ndarray, shape: tuple[int, ...], depth: int) -> str:
    if texts.ndim == 1:
        return f"[{_row(list(texts), shape[0])}]"
    rows = [_nested(t, shape[1:], depth + 1) for t in texts]
    gap = "\n" + " " * depth
    if shape[0] == len(rows):
        return "[" + f",{gap}".join(rows) + "]"
    head, tail = f",{gap}".join(rows[:_EDGE]), f",{gap}".join(rows[_EDGE:])
    return f"[{head},{gap}...{gap}{tail}]"
