"""Calls every public function with a fixed zoo of wrong values and says what came back.

A program of its own: its memory is limited, and a call that does not end is a finding::

    python -m tests.faults.wrong_arguments ops          # a third of the zoo for every parameter
    python -m tests.faults.wrong_arguments ops --all    # all of it

Every line that it prints is a finding: what was called, the parameter, the value, what came back.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import io
import resource
import signal
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, amp, dataset, mint, nn, ops, train
from tvmgraph.errors import TvmgraphError

_BYTES = 8 << 30  # of memory that may be asked for
_SECONDS = 3.0  # that a call may take

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

ZOO: dict[str, Any] = {
    "None": None, "text": "wrong", "object": object(), "nan": float("nan"), "inf": float("inf"),
    "fraction": 1.5, "negative": -7, "2**31": 2**31, "2**62": 2**62, "2**70": 2**70,
    "objects": np.array([None, "a"], dtype=object), "circle": CIRCLE, "dict": {"a": 1},
    "big-endian": np.arange(6, dtype=">f4").reshape(2, 3), "sizes": (2**40, -3), "texts": ["a"],
    "rank 5": Tensor(np.ones((1, 1, 1, 1, 2), np.float32)), "rank 0": Tensor(np.float32(0.5)),
}  # fmt: skip
_ALWAYS = ("None", "text", "object")
#: What certainly does not fit an annotation, so that accepting it is a finding.
_NEVER = {
    "int": {"None", "text", "object", "nan", "inf", "fraction", "objects", "circle", "dict",
            "texts"},
    "float": {"None", "text", "object", "objects", "circle", "dict", "texts"},
    "bool": {"None", "text", "object", "nan", "inf", "fraction", "negative", "2**31", "2**62",
             "2**70", "objects", "circle", "dict", "texts"},
    "Tensor": {"None", "text", "object", "objects", "circle", "dict", "texts"},
}  # fmt: skip


def _floats(*shape: int) -> Tensor:
    return Tensor(np.linspace(0.1, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape))


_FLAGS = Tensor(np.array([[True, False, True], [True, True, False]]))
_INTS = Tensor(np.array([[0, 1, 1], [1, 0, 1]], np.int32))
_ONES = Tensor(np.array([0, 1, 1], np.int32))
_SQUARE = Tensor((np.eye(3) * 2 + 0.1).astype(np.float32))
#: Tensors (data, indices) of which the first that a function works with are taken.
_FAMILIES = [
    (_floats(2, 3), _INTS), (_SQUARE, _ONES), (_floats(2, 4, 6, 6), _ONES),
    (_floats(2, 3, 4), _INTS), (_floats(3), _ONES), (_INTS, _ONES), (_FLAGS, _FLAGS),
]  # fmt: skip
_BY_NAME: dict[str, Any] = {
    "axis": 0, "dim": 0, "dtype": ms.float32, "fn": ops.square, "shape": (2, 3),
    "size": (2, 3), "output_size": 1, "network": nn.Dense(3, 2), "params": [Parameter([1.0])],
    "optimizer": nn.SGD([Parameter([1.0], name="w")], 0.1), "kernel_size": 1, "reduction": "mean",
    "inputs": _floats(2, 3), "data": np.ones((4, 2), np.float32), "equation": "ij->ji",
    "save_obj": nn.Dense(3, 2), "net": nn.Dense(3, 2), "function": lambda x: x, "v": _floats(2, 3),
    "indices": _INTS, "index": _INTS, "target": _INTS, "labels": _INTS, "condition": _FLAGS,
    "mask": _FLAGS,
}  # fmt: skip


@dataclass
class Target:
    """Something public that can be called.

    Attributes:
        name: What a finding calls it.
        call: The function, constructor or bound method.
    """

    name: str
    call: Callable[..., Any]

    def parameters(self) -> list[inspect.Parameter]:
        """Returns what it takes, without ``**kwargs``."""
        found = inspect.signature(self.call).parameters.values()
        return [p for p in found if p.kind is not p.VAR_KEYWORD]


def _members(module: ModuleType | type, prefix: str) -> Iterator[Target]:
    for name in sorted(dir(module)):
        value = getattr(module, name)
        own = str(getattr(value, "__module__", "")).startswith("tvmgraph.")
        layer = isinstance(value, type) and not issubclass(value, (BaseException, Enum, tuple))
        if not name.startswith("_") and own and (inspect.isfunction(value) or layer):
            yield Target(f"{prefix}.{name}", value)


def _methods(value: Any, prefix: str) -> Iterator[Target]:
    for name in sorted(dir(type(value))):
        if not name.startswith("_") and callable(getattr(value, name)):
            yield Target(f"{prefix}.{name}", getattr(copy.copy(value), name))


def targets(group: str) -> list[Target]:
    """Returns the public functions, constructors or methods of a group."""
    if group == "ops":
        return [t for t in _members(ops, "ops") if inspect.isfunction(t.call)]
    if group == "tensor":
        return [*_methods(_floats(2, 3), "Tensor"), Target("Tensor", Tensor)]
    if group == "nn":
        return [t for t in _members(nn, "nn") if isinstance(t.call, type)]
    rows = dataset.NumpySlicesDataset(np.ones((4, 2), np.float32))
    layer, compiled = nn.Dense(3, 2), ms.jit(lambda x: x)
    return [
        *_members(mint, "mint"), *_members(sys.modules["tvmgraph._front"], "ms"),
        *_members(train, "train"), *_members(dataset, "dataset"), *_members(amp, "amp"),
        *_methods(rows, "Dataset"), Target("Dense()", lambda x: layer(x)),
        Target("jit()", lambda x: compiled(x)),
    ]  # fmt: skip


class _Hang(BaseException):
    """A call took too long."""


def _stop(*_: Any) -> None:
    raise _Hang


def _call(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        return function(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _plausible(p: inspect.Parameter, family: tuple[Tensor, Tensor]) -> Any:
    words = str(p.annotation)
    if p.name in _BY_NAME and "Tensor" not in words:
        return _BY_NAME[p.name]
    if "ind" in p.name or p.name in ("target", "labels", "label"):
        return family[1]
    simple = {"bool": True, "float": 0.5, "int": 1, "Callable": lambda x: x, "str": "mean"}
    if "Tensor" not in words:
        for word, value in simple.items():
            if word in words:
                return value
    return family[0]


def _arguments(target: Target) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments that the function works with, where some are found."""
    first: Any = None
    for family in _FAMILIES:
        args, kwargs = [], {}
        for p in target.parameters():
            if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
                args.append(_plausible(p, family))
            elif p.default is p.empty:
                kwargs[p.name] = _plausible(p, family)
        first = first or (args, kwargs)
        with contextlib.suppress(Exception, _Hang):
            _call(target.call, args, kwargs)
            return args, kwargs
    return first


#: Targets that the walk leaves out, and why.
LEFT_OUT = {
    **{
        f"nn.{name}": "made when it is first asked for: its constructor has no handler yet"
        for name in (
            "AvgPool1dExt",
            "AvgPool2dExt",
            "AvgPool3dExt",
            "Dropout2dExt",
            "DropoutExt",
            "MaxPool2dExt",
        )
    },
    "Dataset.indices": "how stages find columns; its first argument is the stage",
    "Tensor.cuda": "imports torch to look for a device, which a limited memory interrupts",
    "dataset.BatchInfo": "holds what the pipeline writes into it; users only read it",
    "ms.assert_max_compiles": "a context manager: it looks at its arguments where the block begins",
}


def _chosen(name: str, everything: bool) -> list[str]:
    start = zlib.crc32(name.encode()) % 3
    rest = [v for v in ZOO if v not in _ALWAYS]
    return list(ZOO) if everything else [*_ALWAYS, *rest[start::3]]


def _with(
    target: Target, args: list[Any], kwargs: dict[str, Any], p: inspect.Parameter, value: str
) -> tuple[list[Any], dict[str, Any]]:
    """Replaces one argument; those before ``*args`` are passed by position."""
    before = [q.name for q in target.parameters() if q.kind is q.POSITIONAL_OR_KEYWORD]
    starred = any(q.kind is q.VAR_POSITIONAL for q in target.parameters())
    if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
        given, named = [ZOO[value]], dict(kwargs)
    else:
        given, named = list(args), {**kwargs, p.name: ZOO[value]}
    if starred:
        given = [named.pop(n) for n in before if n in named] + given
    return given, named


def _accepted(p: inspect.Parameter, value: str) -> str:
    words = {w.strip() for w in str(p.annotation).split("|")}
    if (value == "None" and p.default is None) or not words <= _NEVER.keys():
        return ""
    return "accepted" if all(value in _NEVER[w] for w in words) else ""


def _finding(call: Callable[[], Any], p: inspect.Parameter, value: str) -> str:
    """Returns what is wrong with how a wrong argument is answered."""
    try:
        call()
    except TvmgraphError as e:
        text = str(e)
        if "wrong_arguments.py" not in (e.at or ""):
            return f"no line: {text!r}"
        return "" if p.name in text else f"no name: {text!r}"
    except _Hang:
        return "hangs"
    except (OSError, ImportError, EOFError) as e:  # files and libraries that are not there
        return "" if isinstance(e, FileNotFoundError) else f"{type(e).__name__}: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return _accepted(p, value)


def findings(group: str, everything: bool = False) -> Iterator[str]:
    """Yields a line for every wrong argument that is answered wrongly."""
    for target in [t for t in targets(group) if t.name not in LEFT_OUT]:
        args, kwargs = _arguments(target)
        for p in target.parameters():
            for value in _chosen(target.name + p.name, everything):
                if ZOO[value] is p.default:
                    continue
                call = functools.partial(_call, target.call, *_with(target, args, kwargs, p, value))
                answer = _finding(call, p, value)
                if answer:
                    yield f"{target.name}({p.name}={value}): {answer[:300]}"
        ms.reset_context()


def main() -> None:
    """Prints the findings of the group that the command line names."""
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    out = sys.stdout
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        for line in findings(sys.argv[1], "--all" in sys.argv):
            print(line.replace("\n", " | "), file=out)


if __name__ == "__main__":
    main()
