"""The operator classes: ``from tvmgraph.ops import operations as P``.

Every class is one row of :mod:`.operations_rows` or :mod:`.operations_rows_nn`, built the first
time it is named.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tvmgraph.compat import paths
from tvmgraph.compat.absent import not_found
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops import (
    operations_helpers,
    operations_helpers_loop,
    operations_helpers_more,
    operations_helpers_nn,
    operations_helpers_optim,
)
from tvmgraph.ops.operations_rows import MATH_ROWS
from tvmgraph.ops.operations_rows_more import MORE_ROWS
from tvmgraph.ops.operations_rows_nn import NN_ROWS
from tvmgraph.ops.primitive import (
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    build_class,
    parse_rows,
    prim_attr_register,
)

ROWS = parse_rows(MATH_ROWS + NN_ROWS + MORE_ROWS)
_HELPERS = SimpleNamespace()
for _module in (
    operations_helpers, operations_helpers_loop, operations_helpers_nn, operations_helpers_optim,
    operations_helpers_more,
):  # fmt: skip
    vars(_HELPERS).update(vars(_module))

__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "prim_attr_register", *ROWS,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    row = ROWS.get(name)
    if row is None:
        path = paths.find(__name__, name)
        if path is not None:
            return path
        raise not_found(__name__, name, ROWS)
    built = build_class(row, __name__, {"H": _HELPERS, "Tensor": Tensor})
    globals()[name] = built
    return built


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(ROWS))
