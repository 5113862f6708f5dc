"""Calls whose results, and gradients, are compared with what MindSpore gave.

A call is an expression over :func:`inputs` and the packages ``np`` (``mindspore.numpy``), ``ops``,
``nn`` and ``ms``. One that begins with ``!`` depends on values and stays out of compiled batches.
``record_values.py`` writes what MindSpore gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy

#: Inputs by which a call is differentiated: the first one that it names.
FLOATS = ("x", "v", "s", "p", "img", "vol")


def inputs(tensor: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns the tensors by the names that the calls use."""
    rng = numpy.random.default_rng(5)

    def normal(*shape: int) -> Any:
        return tensor(rng.standard_normal(shape).astype(numpy.float32))

    found = {
        "x": normal(2, 3), "y": normal(2, 3), "v": normal(5), "s": normal(3, 3) * 2,
        "img": normal(2, 3, 6, 6), "vol": normal(1, 2, 5, 6, 6), "c3": normal(2, 3, 4),
        "i": tensor(numpy.array([[3, 1, 2], [7, 5, 4]], numpy.int32)),
        "n": tensor(numpy.array([1, 5, 2, 5, 3], numpy.int32)),
        "b": tensor(numpy.array([[True, False, True], [False, False, True]])),
        "h": tensor(numpy.array([1, 0], numpy.int32)),
        "p": tensor(rng.uniform(0.1, 0.9, (2, 3)).astype(numpy.float32)),
        "w": tensor(numpy.array([0.5, 2, 1], numpy.float32)),
        "holes": tensor(numpy.array([[1, numpy.nan, 3], [4, 5, numpy.nan]], numpy.float32)),
    }  # fmt: skip
    found |= {k: tensor((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype("complex64"))
        for k, s in {"cx": (2, 3), "cy": (2, 3), "cs": (3, 3)}.items()}  # fmt: skip
    return found | {"T": tensor, "numpy": numpy}


def differentiated(call: str) -> str | None:
    """Returns the name of the input by which a call is differentiated."""
    used = set(re.findall(r"\w+", call))
    return None if call[0] == "!" else next((f for f in FLOATS if f in used), None)


def calls(text: str) -> list[str]:
    """Splits a table of calls, one per line."""
    return [c.strip() for c in text.splitlines() if c.strip()]
