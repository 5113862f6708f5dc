"""tvmgraph: write a network as a Cell, debug it eagerly, compile the same code with TVM.

What a MindSpore user types works after changing only the import::

    import tvmgraph as ms
    from tvmgraph import nn, ops, Tensor, jit, JitConfig

The front end (:mod:`tvmgraph._front` lists its names) is imported when the first of its names is
asked for, so that ``import tvmgraph.runtime`` on a machine that only runs compiled modules loads
none of it.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvmgraph import version, wiring
from tvmgraph.compat import paths

if TYPE_CHECKING:
    from tvmgraph._front import *  # noqa: F403
    from tvmgraph.compat import hal as hal
    from tvmgraph.compat import log as log
    from tvmgraph.compat import mint as mint

__version__ = version.PACKAGE

_MODULES = (
    "amp", "boost", "common", "communication", "context", "dataset", "device_context",
    "experimental", "hal", "log", "mint", "models", "nn", "numpy", "onnx", "ops", "parallel",
    "profiler", "runtime", "train",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_names().__all__, *_MODULES]  # what a star import binds
    if name in ("_Function", "_no_grad"):  # private in MindSpore, and used nevertheless
        return getattr(importlib.import_module(f"{__name__}.compat.private"), name)
    if name.startswith("_") and name not in ("_c_expression", "_checkparam", "_extends"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:  # also paths of MindSpore
        found = importlib.import_module(f"{__name__}.{name}")
        if name not in ("export", "jit"):
            globals()[name] = found
        return found
    found = getattr(_names(), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    names = _names()
    return sorted({*names.__all__, *names._LATER, *_MODULES, "__version__"})


def _names() -> ModuleType:
    return importlib.import_module("tvmgraph._front")


class _Package(ModuleType):
    """Keeps two functions apart from the packages of the same name.

    Importing ``tvmgraph.jit`` would otherwise put the package where users expect the decorator.
    """

    @property
    def __version__(self) -> str:
        """The package's version; MindSpore's where the package stands for ``mindspore``.

        Programs that find it under that name choose their branch by it.
        """
        if sys.modules.get("mindspore") is self:
            return importlib.import_module(f"{__name__}.version").__version__
        return vars(self)["__version__"]

    @property
    def jit(self) -> Any:
        """The decorator."""
        return _names().jit

    @jit.setter
    def jit(self, _: ModuleType) -> None:
        """Ignores the package, which importing it assigns."""

    @property
    def export(self) -> Any:
        """The function."""
        return _names().export

    @export.setter
    def export(self, _: ModuleType) -> None:
        """Ignores the package, which importing it assigns."""


sys.modules[__name__].__class__ = _Package
paths.install()
wiring.connect()
