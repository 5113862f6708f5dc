"""Networks out of the process: ONNX files, compiled modules, graph files."""

from tvmgraph.export.api import export, formats
from tvmgraph.export.onnx import to_onnx

__all__ = ["export", "formats", "to_onnx"]
