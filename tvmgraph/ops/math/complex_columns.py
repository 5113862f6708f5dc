"""What NumPy computes of complex operands at once, where eager code has no need of their parts.

Nobody follows the operators of such a call: no capture, tape, listener or GPU. Everybody else gets
the forms of :mod:`.complex_forms`, which say the same by operators on parts.
"""

from __future__ import annotations

import numpy as np

from tvmgraph.core.op import OPS, OfComplex
from tvmgraph.dtypes import DType


def _part(x: np.ndarray) -> type[np.floating]:
    return np.float64 if x.dtype == np.complex128 else np.float32


def _neg(x: np.ndarray) -> np.ndarray:
    """The parts' negative, which NumPy computes ten times as fast as that of pairs."""
    if not x.flags.c_contiguous or not x.ndim:
        return np.negative(x)
    return np.negative(x.view(_part(x))).view(x.dtype)


def _cast(x: np.ndarray, *, dtype: DType) -> np.ndarray:
    return x.astype(dtype.numpy)


def parts_of(x: np.ndarray) -> np.ndarray:
    """Returns complex elements as pairs of reals along a last axis, in the same memory.

    Args:
        x: complex64 or complex128 array.
    """
    return np.ascontiguousarray(x)[..., None].view(_part(x)).reshape(*x.shape, 2)


def _full(*, size: tuple[int, ...], fill_value: complex, dtype: DType) -> np.ndarray:
    return np.full(size, fill_value, dtype.numpy)


def _sum(x: np.ndarray, *, axis: tuple[int, ...], keep_dims: bool) -> np.ndarray:
    return np.add.reduce(x, axis=axis, keepdims=keep_dims)


#: Rows whose NumPy column takes complex elements as any others.
_ANY = (
    "add", "sub", "mul", "abs", "square", "equal", "not_equal", "isfinite", "isnan", "isinf",
    "matmul", "identity", "gradient_barrier", "expand_dims", "reshape", "squeeze", "transpose",
    "broadcast_to", "basic_index", "basic_update", "concat", "diagonal", "flip", "interleave",
    "pad_constant", "pad_index", "place_diagonal", "roll", "split_at", "tile", "tril", "triu",
    "where", "index_get", "gather_along", "running_sum",
)  # fmt: skip


def columns() -> dict[str, OfComplex]:
    """The rows with their NumPy columns of complex operands; the others have but a form."""
    own: dict[str, OfComplex] = {
        "neg": _neg, "cast": _cast, "full": _full, "reduce_sum": _sum,
    }  # fmt: skip
    quiet = np.errstate(all="ignore")
    return {n: OPS[n].eager for n in _ANY} | {n: quiet(f) for n, f in own.items()}
