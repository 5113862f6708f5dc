"""Names of :mod:`tvmgraph.nn` that higher rooms provide, found when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from tvmgraph.compat import paths
from tvmgraph.compat.absent import not_found

#: Modules all of whose names are names of ``nn``, too.
HIGHER = ("tvmgraph.optim", "tvmgraph.train.metrics")
#: Layers with PyTorch's arguments; ``XExt`` is the room's ``X``.
EXTENDED = (
    "AvgPool1dExt", "AvgPool2dExt", "AvgPool3dExt", "Dropout2dExt", "DropoutExt", "EmbeddingExt",
    "L1LossExt", "LayerNormExt", "LogSoftmaxExt", "MaxPool2dExt", "PReLUExt",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in EXTENDED:
        return getattr(importlib.import_module("tvmgraph.mint.nn"), name.removesuffix("Ext"))
    if name == "probability":
        return importlib.import_module("tvmgraph.nn.probability")
    path = paths.find("tvmgraph.nn", name)
    if path is not None:
        return path
    if name.startswith("_"):  # what imports ask for, before the higher rooms can be imported
        raise not_found("tvmgraph.nn", name, vars(sys.modules["tvmgraph.nn"]))
    for module in _higher():
        if name in module.__all__:
            found = getattr(module, name)
            setattr(sys.modules["tvmgraph.nn"], name, found)
            return found
    raise not_found("tvmgraph.nn", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*vars(sys.modules["tvmgraph.nn"]), *EXTENDED,
                   *(n for module in _higher() for n in module.__all__)})  # fmt: skip


def _higher() -> Iterator[ModuleType]:
    """Yields the modules of :data:`HIGHER`, each imported when it is reached."""
    return (importlib.import_module(module) for module in HIGHER)
