"""The ``onnx`` package, imported as a whole.

Its C++ part cannot be loaded twice: an import that Ctrl-C breaks off could not be repeated in the
same process, so Ctrl-C waits until the import is over.
"""

from __future__ import annotations

from tvmgraph.interruption import held_back

with held_back():
    import onnx
    from onnx import TensorProto, helper, numpy_helper

__all__ = ["TensorProto", "helper", "numpy_helper", "onnx"]
