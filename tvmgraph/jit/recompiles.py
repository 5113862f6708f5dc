"""Saying why a function was compiled, and forbidding that it happens too often."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph import forking
from tvmgraph.capture.containers import items_in
from tvmgraph.capture.record import argument_labels
from tvmgraph.config.flag_registry import active
from tvmgraph.core.arguments import literal
from tvmgraph.core.tensor import Tensor
from tvmgraph.debug import recorder
from tvmgraph.errors import ArgumentError, CompileError, user_source

if TYPE_CHECKING:
    from tvmgraph.jit.function import CompileRecord, JitFunction

_LONG = 60  # characters of a value that are shown


def describe_call(
    fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, str]:
    """Describes every argument of a call by name: what the key of a compiled function sees.

    Args:
        fn: The function, whose parameters give the names.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        ``{"x": "float32[2,3]", "options.scale": "2.0"}``.
    """
    found: dict[str, str] = {}
    for name, value in argument_labels(fn, args, kwargs).items():
        _describe(name, value, found)
    return found


def _describe(name: str, value: object, found: dict[str, str]) -> None:
    if isinstance(value, Tensor):
        found[name] = str(value.aval)
    elif isinstance(value, dict):
        for k, v in value.items():
            _describe(f"{name}.{k}", v, found)
    elif isinstance(value, (tuple, list)):
        for i, v in enumerate(items_in(value)):
            _describe(f"{name}[{i}]", v, found)
    elif isinstance(value, np.ndarray):
        found[name] = f"array {value.dtype}{list(value.shape)}"
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        found[name] = literal(value)[:_LONG]
    else:
        found[name] = f"{type(value).__name__} at {id(value):#x}"


def why_new(
    fn: Callable[..., object], before: dict[str, str] | None, args: tuple[object, ...],
    kwargs: dict[str, object],
) -> str:  # fmt: skip
    """Returns why no compiled entry has the key of this call.

    Args:
        fn: The function.
        before: The described arguments of the newest capture.
        args: Positional arguments of this call.
        kwargs: Its keyword arguments.
    """
    if before is None:
        return "first call"
    now = describe_call(fn, args, kwargs)
    changed = [
        f"argument {name!r}: {before.get(name, 'absent')} -> {now.get(name, 'absent')}"
        for name in dict.fromkeys((*before, *now))
        if before.get(name) != now.get(name)
    ]
    return "; ".join(changed) or "an argument with equal elements has another structure"


def explain_record(number: int, record: CompileRecord) -> list[str]:
    """Returns the lines of :meth:`JitFunction.explain` for one capture.

    Args:
        number: Which capture of the function it is, from 1.
        record: What is known of it.
    """
    compiled = "an equal graph was there" if record.cached else (
        f"compile {record.compile_seconds * 1e3:.1f} ms"
    )  # fmt: skip
    lines = [
        f"  {number}. {record.why} [{record.signature}]: "
        f"capture {record.capture_seconds * 1e3:.1f} ms, {compiled}, "
        f"{record.operators} operators -> {record.kernels} kernels"
    ]
    if record.varying:
        lines.append(f"     symbolic: {record.varying}")
    if record.phases:
        split = ", ".join(f"{name} {spent * 1e3:.1f}" for name, spent in record.phases)
        lines.append(f"     phases (ms): {split}")
    if record.passes:
        lines.append(f"     passes: {record.passes}")
    if record.path:
        lines.append(f"     exec_mode: {record.path}")
        lines.append(f"     compiled for: {record.target}")
    if record.disk and not record.cached:
        known = f"; {record.reused} kernels were there" if record.reused else ""
        lines.append(f"     disk cache: {record.disk}{known}")
    return lines


# ---- counting -----------------------------------------------------------------------------------

_lock = forking.lock()
_listeners: list[list[tuple[JitFunction, CompileRecord]]] = []


def noted(function: JitFunction, record: CompileRecord) -> None:
    """Tells whoever listens about one capture; prints it with TVMGRAPH_DEBUG=1.

    Args:
        function: What was captured.
        record: What is known of the capture.
    """
    with _lock:
        for heard in _listeners:
            heard.append((function, record))
    heard = recorder.current()
    if heard is not None:
        _record(heard, function, record)
    if active.debug >= 1:
        name = getattr(function.fn, "__qualname__", "function")
        number = len(function.history)
        print("\n".join([f"[tvmgraph] {name}", *explain_record(number, record)]), file=sys.stderr)


def _record(heard: recorder.Recorder, function: JitFunction, record: CompileRecord) -> None:
    """Notes a compile and its phases, which have just ended, as events one after the other."""
    total = record.capture_seconds + record.compile_seconds
    start = time.perf_counter() - total
    name = getattr(function.fn, "__qualname__", "function")
    heard.add(name, recorder.COMPILE, start, total, why=record.why, signature=record.signature)
    for phase, spent in (("capture", record.capture_seconds), *record.phases):
        heard.add(phase, recorder.PHASE, start, spent)
        start += spent


@contextmanager
def assert_max_compiles(limit: int, function: object = None) -> Iterator[None]:
    """Fails if the block compiles more than ``limit`` times, saying why each time.

    Args:
        limit: How many captures are allowed.
        function: Count only those of this jitted function; all functions by default.

    Raises:
        CompileError: at the end of the block.
        ArgumentError: if an argument cannot be what it stands for.

    Example:
        >>> f = ms.jit(lambda x: x + 1)
        >>> with ms.assert_max_compiles(1):
        ...     f(Tensor([1.0])), f(Tensor([2.0]))
        (Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00]), Tensor(shape=[1],
         dtype=Float32, value= [ 3.00000000e+00]))
    """
    at = user_source()
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise ArgumentError(f"limit must be an int of at least 0, not {limit!r}",
                            op="assert_max_compiles", at=at)  # fmt: skip
    if function is not None and not hasattr(function, "compile_count"):
        raise ArgumentError(
            f"function: {type(function).__name__} is never compiled", op="assert_max_compiles",
            at=at, fix="pass what ms.jit returned",
        )  # fmt: skip
    heard: list[tuple[JitFunction, CompileRecord]] = []
    with _lock:
        _listeners.append(heard)
    try:
        yield
    finally:
        with _lock:
            _listeners[:] = [entry for entry in _listeners if entry is not heard]
    counted = [(f, r) for f, r in heard if function is None or f is function]
    if len(counted) > limit:
        lines = [
            line
            for i, (f, r) in enumerate(counted, 1)
            for line in [f"{getattr(f.fn, '__qualname__', 'function')}: {r.why} [{r.signature}]"]
        ]
        raise CompileError(
            f"{len(counted)} compiles, at most {limit} were expected", op="assert_max_compiles",
            got="; ".join(lines), at=at,
            fix="pass tensors instead of changing Python values, and keep shapes equal",
        )  # fmt: skip
