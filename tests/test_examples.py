"""The examples in the documentation of the package run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Parameter, Tensor, dataset, mint, nn, ops
from tvmgraph.dataset import text, transforms, vision

NAMES = {
    "np": np, "ms": ms, "nn": nn, "ops": ops, "mint": mint, "dataset": dataset, "text": text,
    "transforms": transforms, "vision": vision, "Tensor": Tensor, "Parameter": Parameter,
    "JitConfig": JitConfig, "mindrecord": importlib.import_module("tvmgraph.mindrecord"),
}  # fmt: skip
ROOMS = sorted(
    f"tvmgraph.{part.name}"
    for part in pkgutil.iter_modules(ms.__path__)
    if part.name not in ("__main__", "backend", "cli", "compiler", "lowering")  # need a compiler
)
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class Checker(doctest.OutputChecker):
    """Numbers may differ as those of processors do."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        pairs = [[float(n) for n in NUMBER.findall(text)] for text in (want, got)]
        if len(pairs[0]) == len(pairs[1]) and all(
            math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(*pairs)
        ):
            want, got = (NUMBER.sub("#", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def modules(room: str) -> list[str]:
    """The modules of a room, itself among them."""
    path = getattr(importlib.import_module(room), "__path__", ())
    return [room, *(m.name for m in pkgutil.walk_packages(path, f"{room}."))]


@pytest.mark.parametrize("room", ROOMS)
def test_examples(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(Checker(), optionflags=FLAGS)
    for name in modules(room):
        for test in finder.find(importlib.import_module(name), extraglobs=NAMES):
            if test.examples and "._body_" not in test.name:  # what a guarded function calls
                runner.run(test)
                ms.reset_context()
    assert runner.summarize(verbose=False).failed == 0


def test_every_layer_has_an_example() -> None:
    missing = [n for n in nn.__all__ if ">>>" not in (getattr(nn, n).__doc__ or "")]
    assert missing == ["GraphCell"]
