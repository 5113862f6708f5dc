"""Graphs out of the process: ONNX."""

from tvmgraph.export.onnx import to_onnx

__all__ = ["to_onnx"]
