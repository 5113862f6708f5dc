"""ONNX models in."""
