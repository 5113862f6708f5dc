"""ONNX models in: a Cell that runs eagerly, compiles, differentiates and exports again."""

from tvmgraph.onnx.converters import supported_operators
from tvmgraph.onnx.model import OnnxCell, load

__all__ = ["OnnxCell", "load", "supported_operators"]
