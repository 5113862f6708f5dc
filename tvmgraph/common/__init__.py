"""MindSpore's ``common`` import paths: dtypes, tensors, parameters, initializers."""

from __future__ import annotations

from tvmgraph.common import dtype, initializer, seed
from tvmgraph.common.dtype import dtype_to_nptype, dtype_to_pytype, pytype_to_dtype
from tvmgraph.common.mutable import mutable
from tvmgraph.common.seed import get_seed, set_seed
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor

__all__ = [
    "Parameter", "ParameterTuple", "Tensor", "dtype", "dtype_to_nptype", "dtype_to_pytype",
    "get_seed", "initializer", "mutable", "pytype_to_dtype", "seed", "set_seed",
]  # fmt: skip
