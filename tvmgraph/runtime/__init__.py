"""Running compiled code: executables of this process, and compiled modules from files.

``load`` needs NumPy, tvm-ffi and TVM's runtime library only; the front end and TVM's compiler are
not imported.
"""

from typing import TYPE_CHECKING, Any

from tvmgraph.runtime.module import Module, load

if TYPE_CHECKING:
    from tvmgraph.runtime.executable import Executable

__all__ = ["Executable", "Module", "load"]


def __getattr__(name: str) -> Any:
    if name == "Executable":  # its tensors are the front end's
        from tvmgraph.runtime.executable import Executable

        return Executable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
