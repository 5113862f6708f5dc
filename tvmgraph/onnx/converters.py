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

__all__ = [
    "control", "drawing", "elementwise", "network", "recurrent", "reductions", "sampling", "shapes",
    "signal", "training",
]  # fmt: skip
