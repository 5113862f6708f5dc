"""All converters: importing this module fills the table."""

from tvmgraph.onnx import (  # noqa: F401
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


def supported_operators() -> list[str]:
    """Returns the ONNX operators that are converted directly."""
    return sorted(CONVERTERS)
