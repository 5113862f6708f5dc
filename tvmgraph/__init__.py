"""tvmgraph: write a network as a Cell, debug it eagerly, compile the same code with TVM.

What a MindSpore user types works after changing only the import::

    import tvmgraph as ms
    from tvmgraph import nn, ops, Tensor, jit, JitConfig
"""

import importlib
from typing import Any

from tvmgraph.autodiff import GradOperation, grad, value_and_grad
from tvmgraph.capture import record
from tvmgraph.common import dtype
from tvmgraph.common.dtype import dtype_to_nptype, dtype_to_pytype, pytype_to_dtype
from tvmgraph.config import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    JitConfig,
    get_context,
    reset_context,
    set_context,
)
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.random import (
    Generator,
    default_generator,
    get_rng_state,
    get_seed,
    set_rng_state,
    set_seed,
)
from tvmgraph.core.tensor import Tensor, tensor
from tvmgraph.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tvmgraph.graph import Graph
from tvmgraph.jit import jit, jit_class, ms_function

__version__ = "0.1.0"

manual_seed = set_seed
from_numpy = Tensor.from_numpy
from_dlpack = Tensor.from_dlpack

_LAZY_MODULES = ("common", "context", "nn", "ops")


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a Tensor (or Parameter)."""
    return isinstance(value, Tensor)


def set_device(device_target: str, device_id: int = 0) -> None:
    """Chooses the device; the same as ``set_context(device_target=..., device_id=...)``."""
    set_context(device_target=device_target, device_id=device_id)


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:  # keeps `import tvmgraph` quick
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "Generator", "GradOperation",
    "Graph", "JitConfig", "Parameter", "ParameterTuple", "Tensor", "bfloat16", "bool_", "common",
    "complex64", "complex128", "context", "default_generator", "dtype", "dtype_to_nptype",
    "dtype_to_pytype", "float16", "float32", "float64", "from_dlpack", "from_numpy",
    "get_context", "get_rng_state", "get_seed", "grad", "int8", "int16", "int32", "int64", 
    "is_tensor", "jit", "jit_class", "manual_seed", "ms_function", "nn", "ops", "pytype_to_dtype",
    "record", "reset_context", "set_context", "set_device", "set_rng_state", "set_seed", "tensor",
    "uint8", "uint16", "uint32", "uint64", "value_and_grad",
]  # fmt: skip
