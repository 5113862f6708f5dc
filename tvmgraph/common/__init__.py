"""MindSpore's ``common`` import paths: dtypes, tensors, parameters, initializers."""

from __future__ import annotations

import importlib
from typing import Any

from tvmgraph.common import dtype, initializer, np_dtype, seed
from tvmgraph.common.dtype import dtype_to_nptype, dtype_to_pytype, pytype_to_dtype
from tvmgraph.common.mutable import mutable
from tvmgraph.common.seed import get_seed, set_seed
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor


def __getattr__(name: str) -> Any:
    # everything else that MindSpore has here is a name of the package too
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = "compat.private" if name == "_Function" else "_front"
    return getattr(importlib.import_module(f"tvmgraph.{room}"), name)


__all__ = [
    "Parameter", "ParameterTuple", "Tensor", "dtype", "dtype_to_nptype", "dtype_to_pytype",
    "get_seed", "initializer", "mutable", "np_dtype", "pytype_to_dtype", "seed", "set_seed",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
