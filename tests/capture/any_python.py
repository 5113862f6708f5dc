"""Compares random programs of any Python, run with graph breaks, with plain Python.

What is compared after every call: the result, or the exception's type and text; what was printed;
and everything outside that the program may have changed. Every few programs gradients as well.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import linecache
import re
import sys
import traceback
import types
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tvmgraph as ms
from tests.capture.any_features import ANY_HEADER
from tests.capture.any_programs import AnyProgram, changes
from tests.capture.test_fuzz import assert_same, in_numpy
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.jit import churn
from tvmgraph.jit.regions import segment

CALLS = 6
MODES = ("ast", "bytecode")
#: Every which program's tensors are differentiated.
DIFFERENTIATED = 7
#: Every which program's graphs become machine code.
COMPILED_EVERY = 25
_PLAIN = (int, bool, str, bytes, type(None), type(...), complex, type, np.generic)
_MODULE = re.compile(r"<any \d+ \w+>")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_CONFIG = JitConfig(jit_level="O0")


@functools.cache
def _header() -> types.CodeType:
    name = "<any header>"
    linecache.cache[name] = (len(ANY_HEADER), None, [*ANY_HEADER.splitlines(True)], name)
    return compile(ANY_HEADER, name, "exec")


class World:
    """A program's module, and what is outside of its function.

    Args:
        source: The function's definition.
        name: The module's.
    """

    def __init__(self, source: str, name: str) -> None:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self.module = types.ModuleType(name)
        self.names = self.module.__dict__
        sys.modules[name] = self.module
        self.names.update(ops=ops, Tensor=Tensor, np=np)
        exec(_header(), self.names)
        exec(compile(source, name, "exec"), self.names)
        made = self.names["Box"](1, Tensor(np.array([0.5, -2], np.float32)))
        self.names.setdefault("o", made)
        self.names.setdefault("items", [3, 4])

    def close(self) -> None:
        """Forgets the module."""
        sys.modules.pop(self.module.__name__, None)
        linecache.cache.pop(self.module.__name__, None)

    def state(self) -> list[Any]:
        """Returns what can be observed of it."""
        names = ("o", "items", "SCALE", "TABLE", "SEEN", "NETS", "HEAP", "QUEUE", "ARRAY")
        return [*(seen(self.names[n]) for n in names), self.names["Box"].kind,
                self.names["Point"].made, seen(self.names["SLOT"].v)]  # fmt: skip

    def call(self, function: Any, args: Any) -> list[Any]:
        """Returns all that can be seen of a call."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = seen(function(*args, self.names["o"], self.names["items"]))
            except Exception as e:
                result = ["raised", *described(e)]
        return [result, out.getvalue(), self.state(), *map(seen, args)]


def described(error: BaseException) -> list[Any]:
    """Returns the type and text of an exception, and of those that led to it."""
    text = [line for line in str(error).split("\n") if not line.startswith("  at:")]
    cause, context = error.__cause__, error.__context__
    found = [type(error).__name__, *text, error.__suppress_context__]
    for e in (cause, context):
        found.append(None if e is None else described(e))
    return found


def seen(value: Any) -> Any:
    """Returns a value as something that can be compared."""
    if isinstance(value, (Tensor, np.ndarray)):
        kind = "Parameter" if isinstance(value, ms.Parameter) else type(value).__name__
        array = np.asarray(value.asnumpy() if isinstance(value, Tensor) else value)
        return [kind, str(value.dtype), array.copy()]
    if isinstance(value, float):
        return [type(value).__name__, np.float64(value).reshape(1)]
    if isinstance(value, _PLAIN):
        text = _MODULE.sub("<any>", str(value))  # in the text of errors
        return [type(value).__name__, text.split(" object at ")[0]]
    if isinstance(value, dict):
        return [type(value).__name__, *[[seen(k), seen(v)] for k, v in value.items()]]
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *sorted(map(str, value))]
    if hasattr(value, "__iter__") and hasattr(value, "__len__") and not hasattr(value, "v"):
        return [type(value).__name__, *map(seen, value)]
    if isinstance(value, nn.Cell):
        return [type(value).__name__, seen(value.k), seen(value.weight), seen(value.seen)]
    inside = getattr(value, "__dict__", {})
    return [type(value).__name__, [[k, seen(v)] for k, v in inside.items()]]


def _numbers_apart(value: Any) -> Any:
    """Returns what was seen with the numbers in texts as arrays: compiled code rounds its way."""
    if isinstance(value, list):
        return [*map(_numbers_apart, value)]
    if not isinstance(value, str):
        return value
    words = _NUMBER.sub("#", value).replace("]", " ]").split()  # NumPy fills up with spaces
    return [" ".join(words), np.array([*map(float, _NUMBER.findall(value))])]


def derivatives(function: Any, args: Any, world: World) -> list[Any]:
    """Returns the gradients of the sum of all tensors that a function returns."""

    def total(x: Tensor, y: Tensor) -> Any:
        found = [x.sum() * 0]
        _tensors(function(x, y, *args[2:], world.names["o"], world.names["items"]), found)
        return sum(found)

    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [seen(g) for g in ms.grad(total, (0, 1))(*args[:2])]
        except Exception as e:
            return ["raised", type(e).__name__]


def _tensors(value: Any, found: list[Any]) -> None:
    if isinstance(value, Tensor):
        if "float" in str(value.dtype).lower():
            found.append(value.astype(ms.float32).sum())
    elif isinstance(value, (tuple, list, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            _tensors(v, found)


def compare(
    source: str, seed: int, edits: list[Any], mode: str, compiled: bool = False
) -> Any:  # fmt: skip
    """Compares one function, called several times, in two worlds.

    Args:
        source: Its definition.
        seed: Seed of its arguments.
        edits: What happens to the outside between the calls.
        mode: How it is captured.
        compiled: Whether its graphs run as machine code, not in NumPy.

    Returns:
        The compiled function.

    Raises:
        AssertionError: if anything differs; the message holds the program.
    """
    plain, pieces = (World(source, f"<any {seed} {k}>") for k in ("plain", "pieces"))
    try:
        function = jit(pieces.names["f"], jit_config=_CONFIG, capture_mode=mode,
                       global_writes="replay")  # fmt: skip
        rng = np.random.default_rng(seed)
        for call, edit in zip(range(CALLS), ["pass", *edits]):
            for world in (plain, pieces):
                exec(edit, world.names)
            wide = 3 if call == CALLS - 1 and seed % 4 == 0 else 2
            given = (np.round(rng.uniform(-2, 2, (2, wide)) * 4) / 4).astype(np.float32)
            n = (1, 1, 2, 1, 1, 0)[call]
            results = [
                world.call(f, (*[Tensor(v) for v in given], n))
                for world, f in ((plain, plain.names["f"]), (pieces, function))
            ]
            where = f"program {seed}, {mode}, call {call}, between calls {edits}\n{source}"
            assert_same(*map(_numbers_apart, results) if compiled else results, where)
            if seed % DIFFERENTIATED == 0 and call in (1, 3):
                found = [
                    derivatives(f, [*[Tensor(v) for v in given], n], world)
                    for world, f in ((plain, plain.names["f"]), (pieces, function))
                ]
                assert_same(found[0], found[1], "gradients of " + where)
                before, after = plain.state(), pieces.state()
                if compiled:
                    before, after = _numbers_apart(before), _numbers_apart(after)
                assert_same(before, after, "state after gradients of " + where)
        return function
    finally:
        plain.close()
        pieces.close()


def run(seed: int) -> Any:
    """Compares the program of a seed; returns its compiled function."""
    program = AnyProgram(seed)
    source = program.source()
    compiled = seed % COMPILED_EVERY == 0
    with contextlib.nullcontext() if compiled else in_numpy():
        return compare(source, seed, changes(program), MODES[seed // 2 % 2], compiled)


@dataclass
class Found:
    """What a number of programs showed.

    Attributes:
        programs: How many were compared.
        broken: How many ran with graph breaks.
        operators: How many operators their segments have.
        differences: What differs, by seed.
    """

    programs: int = 0
    broken: int = 0
    operators: int = 0
    differences: dict[int, str] = field(default_factory=dict)


def run_many(seeds: Iterable[int]) -> Found:
    """Compares the programs of some seeds; nearly all graphs run in NumPy, some are compiled."""
    found = Found()
    gc.disable()  # in a capture nothing is collected; afterwards it would be, every time
    try:
        for seed in seeds:
            segment.reset_closure_counts()
            churn.forget_definitions()
            _run_one(seed, found)
    finally:
        gc.enable()
        gc.collect()
    return found


def _run_one(seed: int, found: Found) -> None:
    found.programs += 1
    try:
        function = run(seed)
    except AssertionError as e:
        found.differences[seed] = str(e)
    except Exception:
        found.differences[seed] = f"program {seed}: {traceback.format_exc()}"
    else:
        if function.region is not None and function.refused:
            found.broken += 1
            made = [s for _, s in function.region.program.segments.values() if s.history]
            found.operators += sum(s.history[-1].operators for s in made)
