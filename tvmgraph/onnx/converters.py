"""All converters: importing this module fills the table."""

from tvmgraph.onnx import (
    control,
    drawing,
    elementwise,
    network,
    recurrent,
    reductions,
    sampling,
    shapes,
    signal,
    training,
)
from tvmgraph.onnx.table import CONVERTERS

__all__ = [
    "control", "drawing", "elementwise", "network", "recurrent", "reductions", "sampling", "shapes",
    "signal", "supported_operators", "training",
]  # fmt: skip


def supported_operators() -> list[str]:
    """Returns the ONNX operators that are converted directly."""
    return sorted(CONVERTERS)
