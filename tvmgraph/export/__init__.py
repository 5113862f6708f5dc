"""Networks out of the process: ONNX files, compiled modules, graph files."""

from typing import TYPE_CHECKING

from tvmgraph.export.api import export, formats

if TYPE_CHECKING:
    from tvmgraph.export.onnx import to_onnx

__all__ = ["export", "formats", "to_onnx"]


def __getattr__(name: str) -> object:
    """Imports the ONNX library when somebody wants it: the other formats need none of it."""
    if name == "to_onnx":
        from tvmgraph.export.onnx import to_onnx

        return to_onnx
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
