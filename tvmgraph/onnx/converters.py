"""All converters: importing this module fills the table."""

from tvmgraph.onnx import (
    control,
    elementwise,
    network,
    recurrent,
    reductions,
    shapes,
    signal,
)

__all__ = ["control", "elementwise", "network", "recurrent", "reductions", "shapes", "signal"]
