"""The examples in the layers' documentation run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph import common as common_package

MODULES = [
    f"{package.__name__}.{m.name}"
    for package in (nn, common_package)
    for m in pkgutil.iter_modules(package.__path__)
]
NAMES = {"np": np, "ms": ms, "nn": nn, "ops": ops, "Tensor": Tensor}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    failed = doctest.testmod(module, extraglobs=NAMES).failed
    assert failed == 0


def test_every_layer_has_an_example() -> None:
    missing = [n for n in nn.__all__ if ">>>" not in (getattr(nn, n).__doc__ or "")]
    assert missing == ["GraphCell"]
