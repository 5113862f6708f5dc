"""ONNX models in: a Cell that runs eagerly, compiles, differentiates and exports again."""

from tvmgraph.onnx.model import OnnxCell, load
from tvmgraph.onnx.table import supported_operators

__all__ = ["OnnxCell", "load", "supported_operators"]
