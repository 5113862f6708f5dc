"""Tensors from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F, Reason, primitive, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType, tensor_type

__all__ = ["fill", "ones_like", "zeros_like"]


def _infer_fill(*, shape: tuple[int, ...], value: Any, dtype: dtypes.DType) -> TensorType:
    return tensor_type(shape, dtype)


@primitive(
    infer=_infer_fill,
    eager=lambda *, shape, value, dtype: np.full(shape, value, dtype.numpy),
    lower=lambda R, *, shape, value, dtype: R.op.full(
        R.shape(shape), R.const(value, dtype.name), dtype.name
    ),
    vjp=Reason("a constant depends on no tensor"),
    onnx=lambda O, *, shape, value, dtype: O.const(np.full(shape, value, dtype.numpy)),
    samples=[
        sample(attrs={"shape": (2, 3), "value": 1.5, "dtype": dtypes.float32}),
        sample(attrs={"shape": (), "value": True, "dtype": dtypes.bool_}),
        sample(attrs={"shape": (0, 2), "value": 3, "dtype": dtypes.int64}),
    ],
)
def fill(shape: tuple[int, ...], value: float, dtype: dtypes.DType) -> Tensor:
    """Returns a tensor whose elements are all ``value``."""
    ...


def zeros_like(input: Tensor, dtype: Any = None) -> Tensor:
    """Returns zeros of ``input``'s shape and, unless ``dtype`` is given, its dtype."""
    return F.fill(input.shape, 0, input.dtype if dtype is None else dtypes.dtype_of(dtype))


def ones_like(input: Tensor, dtype: Any = None) -> Tensor:
    """Returns ones of ``input``'s shape and, unless ``dtype`` is given, its dtype."""
    return F.fill(input.shape, 1, input.dtype if dtype is None else dtypes.dtype_of(dtype))
