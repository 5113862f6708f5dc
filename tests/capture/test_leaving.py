"""What leaves compiled code, and what that changes outside, is what plain Python gives."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import io
import itertools
import linecache
import operator
import types
import weakref
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.capture import leaving
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops

INPUTS = (([1.0, 2.0], 1), ([-1.0, 0.5], 2), ([3.0, 4.0], 2), ([0.0, 1.0], 3))
MODULES = (collections, copy, functools, itertools, operator, types, weakref, np, ms, nn, ops)
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_MAPPINGS = (dict, types.MappingProxyType, collections.UserDict, collections.ChainMap)


def programs() -> dict[str, str]:
    """Returns the functions' bodies: everything is put somewhere twice, in turn everywhere."""
    places = list(leaving.PLACES.items())
    found = {}
    for i, (made, value) in enumerate(leaving.MADE.items()):
        for place, code in (places[i % len(places)], places[(i + 3) % len(places)]):
            found[f"{made}, {place}"] = code.format(value)
    return found | leaving.BODIES


def define(name: str, body: str) -> Any:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    source = f"def f(x, y, n):\n    z = x * 2\n{lines}\n"
    file = f"<leaving {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = {m.__name__.rpartition(".")[2]: m for m in MODULES}
    space = {**module, **vars(leaving), "np": np, "ms": ms, "Parameter": Parameter}
    space["__name__"] = "leaving_programs"
    exec(compile(source, file, "exec"), space)
    return space["f"]


def shown(value: Any, seen: dict[Any, Any], depth: int = 0) -> Any:
    """Describes a value: elements, classes, and which tensors are one."""
    if depth > 6:
        return "..."
    each = functools.partial(shown, seen=seen, depth=depth + 1)
    if isinstance(value, Tensor):
        number = seen.setdefault(id(value), (len(seen), value))[0]
        return number, str(value.dtype), np.round(value.asnumpy().astype(float), 4).tolist()
    if isinstance(value, (tuple, list, collections.deque, *_VIEWS)):
        return [type(value).__name__, *map(each, value)]
    if isinstance(value, (set, frozenset)):  # in no order
        return [type(value).__name__, *sorted(str(shown(v, {}, depth + 1)) for v in value)]
    if isinstance(value, _MAPPINGS):
        return [type(value).__name__, *[(each(k), each(v)) for k, v in value.items()]]
    if isinstance(value, (int, float, str, bytes, type(None))):
        return value
    if isinstance(value, (np.ndarray, slice)):
        return str(value) if isinstance(value, np.ndarray) else each(
            (value.start, value.stop, value.step)
        )  # fmt: skip
    if isinstance(value, nn.Cell):
        flags = [value.__dict__.get(k) for k in ("k", "k2", "training", "_to_float")]
        return type(value).__name__, list(value._cells), list(value._params), each(flags)
    return type(value).__name__, [each(v) for v in held(value)]


def held(value: Any) -> list[Any]:
    """Returns what an object of any other class holds."""
    if isinstance(value, weakref.ref):
        return [value()]
    if isinstance(value, types.FunctionType):
        cells = [c.cell_contents for c in value.__closure__ or ()]
        return [value.__name__, cells, value.__defaults__]
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        own = value.__self__
        return [value.__name__, None if isinstance(own, types.ModuleType) else own]
    if isinstance(value, BaseException):
        return [value.args]
    if hasattr(value, "__next__"):
        return list(itertools.islice(value, 5))
    if isinstance(value, type):
        return [vars(value).get("t")]
    slots = getattr(type(value), "__slots__", ())
    return [*getattr(value, "__dict__", {}).values(), *[getattr(value, s, None) for s in slots]]


def observe(function: Any) -> list[Any]:
    """Calls a function in a new world; returns results, what was printed, and the world."""
    world = vars(leaving.WORLD)
    world.clear()
    world.update(leaving.world())
    found = []
    for values, n in INPUTS:
        out, seen = io.StringIO(), dict[Any, Any]()
        with contextlib.redirect_stdout(out):
            try:
                x = Tensor(np.array(values, np.float32))
                result = shown(function(x, x + 1, n), seen)
            except Exception as e:
                result = type(e).__name__, str(e).splitlines()[:1]
        outside = {k: shown(v, seen) for k, v in world.items() if k not in leaving.QUEUES}
        found.append((result, out.getvalue(), outside))
    return found


@pytest.mark.parametrize("name", programs())
@pytest.mark.filterwarnings("ignore")
def test_everything_is_as_in_python(name: str) -> None:
    function = define(name, programs()[name])
    expected = observe(function)
    found = observe(jit(function, jit_config=JitConfig(jit_level="O0")))
    for call, (a, b) in enumerate(zip(expected, found)):
        assert a == b, f"call {call}"


def test_strict_code_says_that_a_tensor_is_no_key() -> None:
    def keyed(x: Tensor) -> Any:
        return {x: 1}

    with pytest.raises(ms.errors.CaptureError, match="a tensor as a key of a dict"):
        jit(keyed, fullgraph=True)(Tensor([1.0]))
