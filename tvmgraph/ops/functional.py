"""All operator functions: ``from tvmgraph.ops import functional as F``.

Holds MindSpore's older names of some functions as well (``F.tensor_add`` is ``ops.add``).
"""

from __future__ import annotations

import sys
from typing import Any

from tvmgraph.errors import NotFoundError

# older name -> function
ALIASES = {
    "floordiv": "floor_div", "floormod": "floor_mod", "gather_d": "gather_elements",
    "isnan_ext": "isnan", "make_range": "range", "pows": "pow", "reduce_max": "amax",
    "reduce_mean": "mean", "reduce_min": "amin", "tensor_add": "add", "tensor_div": "div",
    "tensor_exp": "exp", "tensor_expm1": "expm1", "tensor_floordiv": "floor_div",
    "tensor_ge": "greater_equal", "tensor_gt": "greater", "tensor_le": "less_equal",
    "tensor_lt": "less", "tensor_mod": "floor_mod", "tensor_mul": "mul", "tensor_pow": "pow",
    "tensor_range": "range", "tensor_slice": "slice", "tensor_sub": "sub",
}  # fmt: skip

# functions that higher rooms provide, found by name when they are used
HIGHER = {
    "tvmgraph.autodiff": (
        "GradOperation", "derivative", "get_grad", "grad", "jacfwd", "jacrev", "jet", "jvp",
        "linearize", "value_and_grad", "vjp", "vmap",
    ),
}  # fmt: skip


def find(name: str) -> Any:
    """Returns the function called ``name`` that is not an operator of this package itself.

    Raises:
        NotFoundError: if there is none.
    """
    import importlib

    if name in ALIASES:
        return getattr(sys.modules["tvmgraph.ops"], ALIASES[name])
    for module, names in HIGHER.items():
        if name in names:
            found = getattr(importlib.import_module(module), name, None)
            if found is not None:
                return found
    raise NotFoundError(f"tvmgraph.ops has no {name!r}")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in dir(sys.modules["tvmgraph.ops"]) if not n.startswith("_")]
    if name.startswith("__"):
        raise NotFoundError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(sys.modules["tvmgraph.ops"], name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(dir(sys.modules["tvmgraph.ops"])))
