"""Import paths of MindSpore 1.x and 2.x that have no file here.

Each path stands for the rooms in which its names live. Modules of such paths are registered when
the package is imported and import nothing before one of their names is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tvmgraph.errors import NotFoundError

_TRANSFORMS = ("dataset.vision", "dataset.transforms")

#: Path -> rooms that are searched for its names, in order; all below ``tvmgraph``.
PATHS: Mapping[str, tuple[str, ...]] = {
    "boost": ("amp", "train"),
    "dataset.engine": ("dataset",),
    "dataset.transforms.c_transforms": ("dataset.transforms",),
    "dataset.transforms.py_transforms": ("dataset.transforms",),
    "dataset.transforms.transforms": ("dataset.transforms",),
    "dataset.vision.c_transforms": _TRANSFORMS,
    "dataset.vision.py_transforms": _TRANSFORMS,
    "dataset.vision.transforms": _TRANSFORMS,
    "dataset.vision.utils": _TRANSFORMS,
    "log": ("compat.log",),
    "nn.dynamic_lr": ("optim",),
    "nn.learning_rate_schedule": ("optim",),
    "nn.layer": ("nn",),
    "nn.loss.loss": ("nn",),
    "nn.metrics": ("train",),
    "nn.optim": ("optim",),
    "nn.optim.adam": ("optim",),
    "nn.optim.momentum": ("optim",),
    "nn.optim.optimizer": ("optim", "compat.optimizer"),
    "nn.optim.sgd": ("optim",),
    "nn.wrap.cell_wrapper": ("nn",),
    "nn.wrap.loss_scale": ("nn",),
    "ops.function": ("ops",),
    "train.amp": ("amp",),
    "train.loss_scale_manager": ("amp",),
}


class AliasModule(ModuleType):
    """A module that has the names of other modules.

    Args:
        path: Its path below ``tvmgraph``.
        rooms: Where its names are.
    """

    def __init__(self, path: str, rooms: tuple[str, ...]) -> None:
        super().__init__(f"tvmgraph.{path}", f"MindSpore's ``mindspore.{path}``.")
        self.__spec__ = ModuleSpec(self.__name__, None, is_package=True)
        self.__path__ = []
        self._rooms = rooms

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for room in self._rooms:
            try:
                found = getattr(importlib.import_module(f"tvmgraph.{room}"), name)
            except AttributeError:
                continue
            setattr(self, name, found)
            return found
        raise NotFoundError(f"{self.__name__} has no {name!r}")

    def __dir__(self) -> list[str]:
        rooms = [importlib.import_module(f"tvmgraph.{room}") for room in self._rooms]
        return sorted({name for room in rooms for name in dir(room) if not name.startswith("_")})


def install() -> None:
    """Registers the paths, so that ``import tvmgraph.nn.metrics`` finds them."""
    for path, rooms in PATHS.items():
        sys.modules.setdefault(f"tvmgraph.{path}", AliasModule(path, rooms))


def find(parent: str, name: str) -> ModuleType | None:
    """Returns the module of a path, for packages that are asked for ``parent.name``."""
    path = f"{parent}.{name}".removeprefix("tvmgraph.")
    return sys.modules[f"tvmgraph.{path}"] if path in PATHS else None
