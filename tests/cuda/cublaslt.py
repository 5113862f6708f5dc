"""A stand-in for cuBLASLt that computes with NumPy what it is told through its C interface."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import ml_dtypes
import numpy as np

from tvmgraph.runtime import cublaslt

_TYPES = {0: np.float32, 2: np.float16, 14: ml_dtypes.bfloat16}


class Library:
    """Has the functions of the library, as C functions; objects are numbered.

    Attributes:
        calls: What every product was: its attributes and layouts.
        status: What products return, 0 for success.
        algorithms: How many algorithms the heuristic knows.
    """

    def __init__(self) -> None:
        self._objects: dict[int, dict[Any, Any]] = {}
        self._numbers = itertools.count(1)
        self.calls: list[dict[str, Any]] = []
        self.status, self.algorithms = 0, 1
        for name, arguments in cublaslt._SIGNATURES.items():
            kind = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
            setattr(self, name, kind(self._method(name)))

    def _method(self, name: str) -> Any:
        kinds = {"MatmulDesc": self._product, "MatrixLayout": self._layout}
        what = name.removeprefix("cublasLt")
        if what.endswith("SetAttribute"):
            return self._put
        if what == "Matmul":
            return self._multiply
        if what == "MatmulAlgoGetHeuristic":
            return self._choose
        return kinds.get(what.removesuffix("Create"), self._new)

    def _new(self, place: int, **facts: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = facts
        ctypes.c_void_p.from_address(place).value = number
        return 0

    def _put(self, what: int, attribute: int, place: int, size: int) -> int:
        self._objects[what][attribute] = int.from_bytes(ctypes.string_at(place, size), "little")
        return 0

    def _product(self, place: int, compute: int, scale: int) -> int:
        return self._new(place, compute=compute, scale=scale)

    def _layout(self, place: int, kind: int, rows: int, columns: int, lead: int) -> int:
        return self._new(place, kind=kind, shape=(rows, columns), lead=lead)

    def _choose(self, *arguments: Any) -> int:
        product, preference, count = (arguments[i] for i in (1, 6, 9))
        assert self._objects[preference][1] == 32 << 20
        facts = self._objects[product]
        assert facts[7] & 4 == 0 or facts[8], "a bias needs an address"
        ctypes.c_int.from_address(count).value = self.algorithms
        return 0

    def _matrix(self, place: int, layout: int) -> np.ndarray:
        """The matrices of a layout, (batch, rows, columns), as a view of memory."""
        facts = self._objects[layout]
        (rows, columns), batch = facts["shape"], facts.get(5, 1)
        dtype = np.dtype(_TYPES[facts["kind"]])
        step = facts.get(6, rows * columns)
        size = ((batch - 1) * step + facts["lead"] * columns) * dtype.itemsize
        raw = np.frombuffer((ctypes.c_char * size).from_address(place), dtype)
        strides = [s * dtype.itemsize for s in (step, 1, facts["lead"])]
        return np.lib.stride_tricks.as_strided(raw, (batch, rows, columns), strides)

    def _multiply(self, *arguments: Any) -> int:
        (_, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
         _algorithm, workspace, size, _stream) = arguments  # fmt: skip
        facts = self._objects[description]
        self.calls.append(facts)
        if self.status:
            return self.status
        assert (c, c_layout) == (d, d_layout) and workspace and size == 32 << 20
        numbers = [ctypes.c_float.from_address(p).value for p in (alpha, beta)]
        assert numbers == [1.0, 0.0]
        left, right = (
            self._matrix(p, layout).astype(np.float32).transpose(0, *((2, 1) if turned else (1, 2)))
            for p, layout, turned in ((a, a_layout, facts.get(3)), (b, b_layout, facts.get(4)))
        )
        result, epilogue = left @ right, facts[7]
        if epilogue & 4:
            dtype = np.dtype(_TYPES[facts[26]])
            rows = result.shape[1]
            bias = (ctypes.c_char * (rows * dtype.itemsize)).from_address(facts[8])
            result = result + np.frombuffer(bias, dtype).astype(np.float32)[None, :, None]
        if epilogue & 2:
            result = np.maximum(result, 0)
        if epilogue & 32:
            inner = np.sqrt(2 / np.pi) * (result + 0.044715 * result**3)
            result = result / 2 * (1 + np.tanh(inner))
        self._matrix(d, d_layout)[...] = result
        return 0
