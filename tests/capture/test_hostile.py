"""Small programs as an unfriendly user writes them: eager, LAX and PIJit cannot be told apart."""

from __future__ import annotations

import contextlib
import gc
import io
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.capture import (
    hostile_containers,
    hostile_flow,
    hostile_library,
    hostile_native,
    hostile_objects,
    hostile_values,
)
from tests.capture.any_python import MODES, World, described, seen
from tests.capture.test_fuzz import assert_same, in_numpy
from tvmgraph import JitConfig, Tensor, jit

PROGRAMS = {
    **hostile_objects.PROGRAMS, **hostile_flow.PROGRAMS, **hostile_values.PROGRAMS,
    **hostile_native.PROGRAMS, **hostile_containers.PROGRAMS, **hostile_library.PROGRAMS,
}  # fmt: skip
#: Of every call ``x``, ``y`` and ``n``.
CALLS = (
    ((0.5, 1), (2, 0.25), 1), ((-1, 0.5), (1, 1), 1), ((3, 4), (-2, 1), 2),
    ((0.5, 1), (2, 0.25), 1), ((-1, 0.25), (-0.5, 1), 0), ((0.5, 1, 2), (2, 0.25, 1), 1),
    ((0.5, 1), (2, 0.25), 1), ((0.25, 1), (1, 0.25), 2),
)  # fmt: skip
_CONFIG = JitConfig(jit_level="O0")


@pytest.fixture(autouse=True)
def nothing_collected() -> Iterator[None]:
    """Cycles end when the garbage collector runs, which may be at any time."""
    gc.disable()
    yield
    gc.enable()


def lines(error: BaseException, file: str) -> str:
    """Returns the functions and lines of a file that a traceback names, every call once."""
    found: list[tuple[str, int]] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file:
            if found and found[-1][0] == frame.f_code.co_name:  # in pieces
                found.pop()
            found.append((frame.f_code.co_name, line))
    return str(found)


def observed(world: World, function: Any, args: list[Any]) -> list[Any]:
    """Returns all that can be seen of a call, the lines of a traceback included."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = seen(function(*args, world.names["o"], world.names["items"]))
        except Exception as e:
            result = ["raised", *described(e), lines(e, world.module.__name__)]
            e.__traceback__ = None
    return [result, out.getvalue(), world.state(), *map(seen, args)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_programs_equal_plain_python(name: str, mode: str) -> None:
    module, body, edits = PROGRAMS[name]
    source = f"{module}\n\ndef f(x, y, n, o, items):\n{textwrap.indent(body, '    ')}\n"
    plain, pieces = (World(source, f"<any 0 {kind}>") for kind in ("plain", "pieces"))
    function = jit(pieces.names["f"], jit_config=_CONFIG, capture_mode=mode, global_writes="replay")
    try:
        with in_numpy():
            for call, (x, y, n) in enumerate(CALLS):
                results = []
                for world, f in ((plain, plain.names["f"]), (pieces, function)):
                    if 0 < call <= len(edits):
                        exec(edits[call - 1], world.names)
                    given = [Tensor(np.array(v, np.float32)) for v in (x, y)]
                    results.append(observed(world, f, [*given, n]))
                assert_same(results[0], results[1], f"{name}, call {call}\n{source}")
    finally:
        plain.close()
        pieces.close()
