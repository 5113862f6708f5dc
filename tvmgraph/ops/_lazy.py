"""Names of :mod:`tvmgraph.ops` that are found when they are first used.

These are the operator classes, older names of functions, and the gradient functions, which belong
to higher rooms.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from tvmgraph.compat import paths
from tvmgraph.compat.absent import not_found

# older name -> function
ALIASES = {
    "adaptive_avg_pool2d_ext": "adaptive_avg_pool2d", "baddbmm_ext": "baddbmm",
    "einsum_ext": "einsum", "float_power_ext": "float_power", "mse_loss_ext": "mse_loss",
    "floordiv": "floor_div", "floormod": "floor_mod", "gather_d": "gather_elements",
    "isnan_ext": "isnan", "log_matrix_determinant": "slogdet", "make_range": "range",
    "matrix_determinant": "det", "pows": "pow", "reduce_max": "amax",
    "reduce_mean": "mean", "reduce_min": "amin", "tensor_add": "add", "tensor_div": "div",
    "tensor_exp": "exp", "tensor_expm1": "expm1", "tensor_floordiv": "floor_div",
    "tensor_ge": "greater_equal", "tensor_gt": "greater", "tensor_le": "less_equal",
    "tensor_lt": "less", "tensor_mod": "floor_mod", "tensor_mul": "mul", "tensor_pow": "pow",
    "tensor_range": "range", "tensor_slice": "slice", "tensor_sub": "sub",
}  # fmt: skip

# functions that higher rooms provide, found by name when they are used
HIGHER = {
    "tvmgraph.autodiff": (
        "GradOperation", "HookBackward", "InsertGradientOf", "get_grad", "grad", "jacfwd",
        "jacrev", "jvp", "value_and_grad", "vjp", "vmap",
    ),
}  # fmt: skip

_MODULES = ("functional", "operations")


def _ops() -> ModuleType:
    return sys.modules["tvmgraph.ops"]


def _find(name: str) -> Any:
    operations = importlib.import_module("tvmgraph.ops.operations")
    if name in operations.ROWS:
        return getattr(operations, name)
    if name in ALIASES:
        return getattr(_ops(), ALIASES[name])
    for module, names in HIGHER.items():
        if name in names:
            return getattr(importlib.import_module(module), name, None)
    return None


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tvmgraph.ops.{name}")
    found = None if name.startswith("__") else _find(name) or paths.find("tvmgraph.ops", name)
    if found is None:
        raise not_found("tvmgraph.ops", name, __dir__())
    setattr(_ops(), name, found)
    return found


def __dir__() -> list[str]:
    operations = importlib.import_module("tvmgraph.ops.operations")
    higher = [n for names in HIGHER.values() for n in names]
    return sorted({*vars(_ops()), *operations.ROWS, *ALIASES, *higher})
