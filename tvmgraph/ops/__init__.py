"""The operator table: one row per operator, one file per family, and the functions built on it."""

from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    """Finds operator classes, older names and the gradient functions when they are first used."""
    import importlib

    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    functional = importlib.import_module("tvmgraph.ops.functional")
    operations = importlib.import_module("tvmgraph.ops.operations")
    if name in ("functional", "operations"):
        return functional if name == "functional" else operations
    found = getattr(operations, name) if name in operations.ROWS else functional.find(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from tvmgraph.ops import functional, operations

    higher = [n for names in functional.HIGHER.values() for n in names]
    return sorted({*globals(), *operations.ROWS, *functional.ALIASES, *higher})
from tvmgraph.ops.activation import *  # noqa: F403
from tvmgraph.ops.activation_smooth import *  # noqa: F403
from tvmgraph.ops.assignment import *  # noqa: F403
from tvmgraph.ops.comparison import *  # noqa: F403
from tvmgraph.ops.comparison_logic import *  # noqa: F403
from tvmgraph.ops.composite import *  # noqa: F403
from tvmgraph.ops.conv import *  # noqa: F403
from tvmgraph.ops.conv_functional import *  # noqa: F403
from tvmgraph.ops.conv_weight import *  # noqa: F403
from tvmgraph.ops.creation import *  # noqa: F403
from tvmgraph.ops.creation_ranges import *  # noqa: F403
from tvmgraph.ops.creation_windows import *  # noqa: F403
from tvmgraph.ops.elementwise import *  # noqa: F403
from tvmgraph.ops.elementwise_division import *  # noqa: F403
from tvmgraph.ops.image import *  # noqa: F403
from tvmgraph.ops.indexing import *  # noqa: F403
from tvmgraph.ops.indexing_advanced import *  # noqa: F403
from tvmgraph.ops.indexing_getitem import *  # noqa: F403
from tvmgraph.ops.indexing_select import *  # noqa: F403
from tvmgraph.ops.linalg import *  # noqa: F403
from tvmgraph.ops.linalg_decompose import *  # noqa: F403
from tvmgraph.ops.linalg_products import *  # noqa: F403
from tvmgraph.ops.loss import *  # noqa: F403
from tvmgraph.ops.math import *  # noqa: F403
from tvmgraph.ops.math_power import *  # noqa: F403
from tvmgraph.ops.math_special import *  # noqa: F403
from tvmgraph.ops.math_trigonometric import *  # noqa: F403
from tvmgraph.ops.normalization import *  # noqa: F403
from tvmgraph.ops.pooling import *  # noqa: F403
from tvmgraph.ops.primitive import *  # noqa: F403
from tvmgraph.ops.random import *  # noqa: F403
from tvmgraph.ops.random_dropout import *  # noqa: F403
from tvmgraph.ops.random_sampling import *  # noqa: F403
from tvmgraph.ops.reduction import *  # noqa: F403
from tvmgraph.ops.reduction_basic import *  # noqa: F403
from tvmgraph.ops.reduction_scan import *  # noqa: F403
from tvmgraph.ops.reduction_statistics import *  # noqa: F403
from tvmgraph.ops.shape import *  # noqa: F403
from tvmgraph.ops.shape_axes import *  # noqa: F403
from tvmgraph.ops.shape_blocks import *  # noqa: F403
from tvmgraph.ops.shape_diagonal import *  # noqa: F403
from tvmgraph.ops.shape_join import *  # noqa: F403
from tvmgraph.ops.shape_pad import *  # noqa: F403
from tvmgraph.ops.shape_repeat import *  # noqa: F403
from tvmgraph.ops.sort import *  # noqa: F403
