"""Executables: a compiled module and the conversion of tensors at its border."""

from tvmgraph.runtime.executable import Executable

__all__ = ["Executable"]
