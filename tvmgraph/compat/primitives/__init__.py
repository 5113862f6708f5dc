"""The operator classes: ``from tvmgraph.ops import operations as P``.

Every class is one row of ``classes.rows``, built the first time it is named.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from tvmgraph.compat import paths, sparse_functions
from tvmgraph.compat.absent import not_found
from tvmgraph.compat.primitives import (
    elsewhere,
    helpers,
    layers,
    optimizers,
    recurrent,
    sparse_forms,
)
from tvmgraph.compat.primitives.base import (
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    build_class,
    prim_attr_register,
    read_rows,
)
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.distributed import functions
from tvmgraph.ops import compositions_images, compositions_regions, compositions_sequences
from tvmgraph.ops.image import deformable
from tvmgraph.ops.math import incomplete_beta

#: What programs call this module.
PATH = "tvmgraph.ops.operations"
ROWS = read_rows("classes")
_HELPERS = SimpleNamespace()
for _module in (
    elsewhere, helpers, layers, optimizers, recurrent, sparse_forms, compositions_images,
    compositions_regions, compositions_sequences, deformable, incomplete_beta, sparse_functions,
):  # fmt: skip
    vars(_HELPERS).update(vars(_module))

#: Classes that stand elsewhere, as in ``ops``.
_OTHERS = (
    "HistogramSummary", "HookBackward", "ImageSummary", "InsertGradientOf", "Partial", "ReduceOp",
    "ScalarSummary", "TensorSummary",
)  # fmt: skip

__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "prim_attr_register", *ROWS,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _OTHERS:
        return getattr(importlib.import_module("tvmgraph.ops"), name)
    row = ROWS.get(name)
    if row is None:
        path = paths.find(PATH, name)
        if path is not None:
            return path
        raise not_found(PATH, name, ROWS)
    built = build_class(row, PATH, {"H": _HELPERS, "D": functions, "Tensor": Tensor})
    if name == "Print":  # what compiled code does in every call
        built.as_effect = lambda _self, *values: (F.print_, values)  # pyright: ignore[reportAttributeAccessIssue]
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(ROWS))
