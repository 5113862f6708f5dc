"""MindSpore's ``mindspore.numpy``: NumPy's functions over tensors, eagerly and in graphs.

Arrays are :class:`tvmgraph.Tensor`; numbers and (nested) lists are taken where arrays are. Python's
integers and floats become int32 and float32. Most functions are rows of :mod:`.rows`; the others
are in :mod:`.creation`, :mod:`.arrays` and :mod:`.values`; :mod:`.fft` transforms.
"""

from __future__ import annotations

import math
from typing import Any

from tvmgraph import dtypes as _dtypes
from tvmgraph.compat.paths import look
from tvmgraph.numpy import arrays as _arrays
from tvmgraph.numpy import creation as _creation
from tvmgraph.numpy import fft as _fft
from tvmgraph.numpy import helpers as _helpers
from tvmgraph.numpy import rows as _rows
from tvmgraph.numpy import values as _values

_ROWS = {name: (parameters, expression) for name, parameters, expression in _rows.rows()}
_WRITTEN = (_arrays, _creation, _values)
_CONSTANTS: dict[str, object] = {
    "bool_": _dtypes.bool_, "float_": _dtypes.float32, "int_": _dtypes.int32, "pi": math.pi,
    "e": math.e, "euler_gamma": 0.5772156649015329, "inf": math.inf, "nan": math.nan,
    "newaxis": None, "fft": _fft,
    **{n: getattr(_dtypes, n) for n in ("float16", "float32", "float64", "int8", "int16", "int32",
                                        "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip

__all__ = sorted({*_ROWS, *_CONSTANTS, *(n for m in _WRITTEN for n in m.__all__)})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        return look("tvmgraph.numpy", name, __all__)
    found = _found(name)
    globals()[name] = found
    return found


def _found(name: str) -> object:
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name in _ROWS:
        scope = {"H": _helpers, "float32": _dtypes.float32}
        return _rows.build(name, *_ROWS[name], scope)
    return next(getattr(module, name) for module in _WRITTEN if name in module.__all__)


def __dir__() -> list[str]:
    return list(__all__)
