"""Reads MATLAB's files of level 5, in which some sets of data keep their labels."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tvmgraph.errors import ArgumentError, reject

_HEADER, _MATRIX, _COMPRESSED = 128, 14, 15
_CELL, _STRUCT, _SPARSE = 1, 2, 5

#: dtypes of data, by the number of their kind
_DATA = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8",
         12: "<i8", 13: "<u8", 16: "u1", 17: "<u2", 18: "<u4"}  # fmt: skip
Value = np.ndarray | list["Value"] | dict[str, "Value"]


class _Element(NamedTuple):
    kind: int
    body: bytes
    end: int


def read_matlab(op: str, path: Path) -> Mapping[str, Value]:
    """Returns the variables of a file by name.

    Arrays have MATLAB's shapes and the dtypes in which they are stored; cells are lists in
    MATLAB's order (the first axis runs fastest); a structure is a dict, of the first one where
    there are several; sparse arrays are full.

    Args:
        op: Name of the dataset.
        path: The file.

    Raises:
        ArgumentError: if there is no such file, or one of another format.
    """
    if not path.is_file():
        reject(ArgumentError, op, f"there is no file {path}",
               fix="download the files first; this class reads local files only")  # fmt: skip
    raw = path.read_bytes()
    if raw[124:128] != b"\x00\x01IM":
        reject(ArgumentError, op, f"{path} is no MATLAB file of level 5",
               fix="save it in MATLAB with the option -v7")  # fmt: skip
    found, at = {}, _HEADER
    while at < len(raw):
        element = _element(raw, at)
        at = element.end
        if element.kind == _COMPRESSED:
            element = _element(zlib.decompress(element.body), 0)
        if element.kind == _MATRIX:
            name, value = _matrix(element.body)
            found[name] = value
    return found


def _element(raw: bytes, at: int) -> _Element:
    """Returns the element at a place; small ones hold their data in their tag."""
    kind, count = struct.unpack_from("<II", raw, at)
    if kind >> 16:
        return _Element(kind & 0xFFFF, raw[at + 4 : at + 4 + (kind >> 16)], at + 8)
    end = at + 8 + count
    return _Element(kind, raw[at + 8 : end], end if kind == _COMPRESSED else end + -count % 8)


def _array(element: _Element) -> np.ndarray:
    return np.frombuffer(element.body, _DATA[element.kind])


def _matrix(raw: bytes) -> tuple[str, Value]:
    """Returns the name and the value of the matrix in an element's data."""
    flags = _element(raw, 0)
    sizes = _element(raw, flags.end)
    name = _element(raw, sizes.end)
    kind, shape = flags.body[0], tuple(int(n) for n in _array(sizes))
    text = name.body.decode().rstrip("\0")
    if kind == _CELL:
        return text, _matrices(raw, name.end)
    if kind == _STRUCT:
        return text, _structure(raw, name.end)
    if kind == _SPARSE:
        return text, _sparse(raw, name.end, shape)
    return text, _array(_element(raw, name.end)).reshape(shape, order="F")


def _matrices(raw: bytes, at: int) -> list[Value]:
    found = []
    while at < len(raw):
        element = _element(raw, at)
        found.append(_matrix(element.body)[1])
        at = element.end
    return found


def _structure(raw: bytes, at: int) -> dict[str, Value]:
    width = _element(raw, at)
    names = _element(raw, width.end)
    step = int(_array(width)[0])
    parts = [names.body[i : i + step] for i in range(0, len(names.body), step)]
    keys = [part.split(b"\0")[0].decode() for part in parts]
    return dict(zip(keys, _matrices(raw, names.end)))


def _sparse(raw: bytes, at: int, shape: tuple[int, ...]) -> np.ndarray:
    rows = _element(raw, at)
    starts = _element(raw, rows.end)
    values = _array(_element(raw, starts.end))
    ends = _array(starts)
    columns = np.repeat(np.arange(shape[1]), np.diff(ends))
    full = np.zeros(shape, values.dtype)
    count = len(columns)
    full[_array(rows)[:count], columns] = values[:count]
    return full


__all__ = ["read_matlab"]
