"""Names of :mod:`tvmgraph.ops` that are found when they are first used.

These are the operator classes, older names of functions, and the gradient functions, which belong
to higher rooms.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tvmgraph.compat import paths
from tvmgraph.compat.absent import not_found

# older name -> function
ALIASES = {
    "adaptive_avg_pool2d_ext": "adaptive_avg_pool2d", "baddbmm_ext": "baddbmm",
    "einsum_ext": "einsum", "float_power_ext": "float_power", "mse_loss_ext": "mse_loss",
    "floormod": "floor_mod", "isnan_ext": "isnan", "make_range": "range", "pows": "pow",
    "reduce_max": "amax", "reduce_mean": "mean", "reduce_min": "amin", "tensor_range": "range",
    "tensor_slice": "slice",
}  # fmt: skip

# functions that higher rooms provide, found by name when they are used
HIGHER = {
    "tvmgraph.autodiff": (
        "GradOperation", "HookBackward", "InsertGradientOf", "get_grad", "grad", "jacfwd",
        "jacrev", "jvp", "value_and_grad", "vjp", "vmap",
    ),
    "tvmgraph.core.tensor": ("Tensor",),
    "tvmgraph.distributed.api": ("reshard",),
    "tvmgraph.compat.mint.distributed": (
        "ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_uneven",
        "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "all_to_all_v_c",
        "barrier", "batch_isend_irecv", "recv_object_list", "reduce_scatter_tensor_uneven",
        "send_object_list",
        "broadcast_object_list", "destroy_process_group", "gather_into_tensor", "gather_object",
        "get_global_rank", "get_group_rank", "get_process_group_ranks", "init_process_group",
        "irecv", "isend", "new_group", "recv", "reduce_scatter", "reduce_scatter_tensor",
        "scatter_object_list", "scatter_tensor", "send",
    ),
    "tvmgraph.compat.composite": (
        "HyperMap", "Map", "MultitypeFuncGraph", "Partial", "partial",
    ),
    "tvmgraph.train.summary": (
        "HistogramSummary", "ImageSummary", "ScalarSummary", "TensorSummary",
    ),
    "tvmgraph.compat.primitives.base": (
        "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_arg_register",
        "prim_attr_register",
    ),
}  # fmt: skip


def _ops() -> ModuleType:
    return sys.modules["tvmgraph.ops"]


def _sparse() -> dict[str, Callable[..., object]]:
    return importlib.import_module("tvmgraph.compat.sparse_functions").FUNCTIONS


def _find(name: str) -> object:
    operations = importlib.import_module("tvmgraph.compat.primitives")
    if name in operations.ROWS:
        return getattr(operations, name)
    if name in ALIASES:
        return getattr(_ops(), ALIASES[name])
    if name in _sparse():
        return _sparse()[name]
    for module, names in HIGHER.items():
        if name in names:
            return getattr(importlib.import_module(module), name, None)
    return None


def __getattr__(name: str) -> Any:
    if name == "__all__":  # what a star import binds
        return [n for n in (*vars(_ops()), *ALIASES, *_higher()) if not n.startswith("_")]
    found = None if name.startswith("__") else _find(name) or paths.find("tvmgraph.ops", name)
    if found is None:
        raise not_found("tvmgraph.ops", name, __dir__())
    setattr(_ops(), name, found)
    return found


def __dir__() -> list[str]:
    operations = importlib.import_module("tvmgraph.compat.primitives")
    return sorted({*vars(_ops()), *operations.ROWS, *ALIASES, *_higher()})


def _higher() -> list[str]:
    return [*(n for names in HIGHER.values() for n in names), *_sparse()]
