"""Calls every public function with a fixed zoo of wrong values and says what came back.

A program of its own: its memory is limited, and a call that does not end is a finding::

    python -m tests.faults.wrong_arguments ops          # a third of the zoo for every parameter
    python -m tests.faults.wrong_arguments ops --all    # all of it

Every line that it prints is a finding: what was called, the parameter, the value, what came back.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import functools
import inspect
import io
import itertools
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
from tvmgraph.dataset import text, transforms, vision
from tvmgraph.errors import TvmgraphError
from tvmgraph.experimental import optim

_BYTES = 8 << 30  # of memory that may be asked for
_SECONDS = 3.0  # of processor time that a call may take

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
    "image": np.zeros((4, 4, 3), np.uint8),
    "path": "net.onnx", "dataset_dir": ".", "annotation_file": "a.json",
    "task": "Detection", "save_obj": nn.Dense(3, 2), "net": nn.Dense(3, 2),
    "function": lambda x: x, "v": _floats(2, 3),
    "indices": _INTS, "index": _INTS, "target": _INTS, "labels": _INTS, "condition": _FLAGS,
    "mask": _FLAGS,
}  # fmt: skip
#: What is smaller than the defaults, which take long to make.
_SMALL: dict[str, dict[str, Any]] = {
    "nn.Transformer": {"d_model": 4, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
                       "dim_feedforward": 4},
}  # fmt: skip


#: What is for several processes; what these get wrong is tested with several.
_OF_SEVERAL = ("tvmgraph.compat.mint.distributed", "tvmgraph.compat.comm_func")


@dataclass
class Target:
    """Something public that can be called.

    Attributes:
        name: What a finding calls it.
        call: The function, constructor or bound method.
        like: What has its signature, if it is not the same.
    """

    name: str
    call: Callable[..., Any]
    like: Callable[..., Any] | None = None

    def parameters(self) -> list[inspect.Parameter]:
        """Returns what it takes, without ``**kwargs``."""
        found = inspect.signature(self.like or self.call).parameters.values()
        return [p for p in found if p.kind is not p.VAR_KEYWORD]


def _members(module: ModuleType | type, prefix: str) -> Iterator[Target]:
    for name in sorted(dir(module)):
        value = getattr(module, name)
        home = str(getattr(value, "__module__", ""))
        own = home.startswith("tvmgraph.") and home not in _OF_SEVERAL
        own = own and value is not ms.assert_max_compiles  # it has a target of its own
        layer = isinstance(value, type) and not issubclass(value, (BaseException, Enum, tuple))
        code = getattr(getattr(value, "__init__", None), "__code__", None)
        if layer and code is not None and code.co_filename == "<string>":
            continue  # a record that users are given; no constructor was written
        if not name.startswith("_") and own and (inspect.isfunction(value) or layer):
            yield Target(f"{prefix}.{name}", value)


def entered(limit: int, function: Any = None) -> None:
    """Enters the block of a context manager, which looks at its arguments there."""
    with ms.assert_max_compiles(limit, function):
        pass


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
    if group == "calls":
        return list(_called())
    if group == "more":
        modules = {
            "dataset.vision": vision, "dataset.text": text, "dataset.transforms": transforms,
            "experimental.optim": optim, "lr_scheduler": optim.lr_scheduler,
        }  # fmt: skip
        return [t for prefix, module in modules.items() for t in _members(module, prefix)]
    rows = dataset.NumpySlicesDataset(np.ones((4, 2), np.float32))
    layer, compiled = nn.Dense(3, 2), ms.jit(lambda x: x)
    return [
        *_members(mint, "mint"), *_members(sys.modules["tvmgraph._front"], "ms"),
        *_members(train, "train"), *_members(dataset, "dataset"), *_members(amp, "amp"),
        *_methods(rows, "Dataset"), Target("Dense()", lambda x: layer(x)),
        Target("jit()", lambda x: compiled(x)), Target("assert_max_compiles", entered),
    ]  # fmt: skip


#: Signatures of transformed functions by what the errors call the argument.
_LIKE = {"vjp": lambda v, /: v, "vmap": lambda args, /: args}
_ABSTRACT = ("Cell", "LearningRateSchedule", "LossBase")


def _called() -> Iterator[Target]:
    """Yields what constructors and transformations return, to be called itself."""
    for target in _members(nn, "nn"):
        args, kwargs = _arguments(target) if isinstance(target.call, type) else ([], {})
        with contextlib.suppress(Exception, _Hang):
            made = _call(target.call, args, kwargs)
            if isinstance(made, nn.Cell) and type(made).__name__ not in _ABSTRACT:
                yield Target(f"{target.name}()", made, made.construct)
    x, weights = _floats(2, 3), [Parameter(_floats(2, 3), name="w")]

    def f(input: Tensor, /) -> Tensor:
        return ops.sum(ops.square(input))

    transformed = {
        "grad(f)": ms.grad(f), "value_and_grad(f)": ms.value_and_grad(f),
        "GradOperation()(f)": ops.GradOperation()(f), "vmap(f)": ms.vmap(f),
        "jacrev(f)": ms.jacrev(f), "jacfwd(f)": ms.jacfwd(f), "jit(f)": ms.jit(f),
        "grad(weights)(f)": ms.grad(lambda x: ops.mul(weights[0], x).sum(), None, weights),
        "vjp(f, x)[1]": ms.vjp(f, x)[1], "jit(grad(f))": ms.jit(ms.grad(f)),
    }  # fmt: skip
    for name, call in transformed.items():
        yield Target(name, call, _LIKE.get(name.partition("(")[0], f))
    yield from _methods(ops.GradOperation(), "GradOperation")
    compiled = ms.jit(f)
    compiled(x)
    for target in _methods(compiled, "jit()"):
        yield Target(target.name, getattr(compiled, target.name.partition(".")[2]))


class _Hang(BaseException):
    """A call took too long."""


def _stop(*_: Any) -> None:
    raise _Hang


def _call(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        return function(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


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
    for args, kwargs in itertools.chain(_guessed(target), _shown(target)):
        first = first or (args, kwargs)
        with contextlib.suppress(Exception, _Hang):
            _call(target.call, args, kwargs)
            return args, kwargs
    return first


def _guessed(target: Target) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    for family in _FAMILIES:
        args, kwargs = [], {}
        for p in target.parameters():
            if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY):
                args.append(_plausible(p, family))
            elif p.default is p.empty:
                kwargs[p.name] = _plausible(p, family)
        yield args, _SMALL.get(target.name, {}) | kwargs


def _shown(target: Target) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yields the arguments of the calls in the examples of the documentation."""
    scope = {k: getattr(ms, k) for k in dir(ms)} | {"ms": ms, "np": np, "nn": nn, "ops": ops}
    name = target.name.rpartition(".")[2]
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(target.call) or ""):
        with contextlib.suppress(Exception, _Hang):
            for node in ast.walk(ast.parse(example.source)):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(f".{name}"):
                    given = eval(f"(lambda *a, **k: (a, k))({_inside(node)})", scope)
                    yield _bound(target, *given)
            exec(example.source, scope)


def _inside(call: ast.Call) -> str:
    return ", ".join(map(ast.unparse, [*call.args, *call.keywords]))


def _bound(
    target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Names the arguments of a call, except those that have no name."""
    signature = inspect.signature(target.like or target.call)
    bound = signature.bind(*args, **kwargs).arguments
    unnamed: list[Any] = []
    for p in target.parameters():
        if p.kind is p.VAR_POSITIONAL:
            unnamed += bound.pop(p.name, ())
        elif p.kind is p.POSITIONAL_ONLY and p.name in bound:
            unnamed.append(bound.pop(p.name))
    return unnamed, bound


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
        named = p.name in text or (p.kind is p.VAR_POSITIONAL and "input" in text)
        return "" if named else f"no name: {text!r}"
    except _Hang:
        return "hangs"
    except (
        OSError,
        ImportError,
        EOFError,
    ) as e:  # files (another call makes a folder) and libraries that are not there
        absent = isinstance(e, (FileNotFoundError, IsADirectoryError))
        return "" if absent else f"{type(e).__name__}: {e}"
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return _accepted(p, value)


def findings(group: str, everything: bool = False) -> Iterator[str]:
    """Yields a line for every wrong argument that is answered wrongly."""
    for target in targets(group):
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
    """Prints the findings of the groups that the command line names."""
    import tvmgraph.lowering  # noqa: F401 - may not be broken off, nor PyTorch, which it imports

    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    out = sys.stdout
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        for group in sys.argv[1:]:
            for line in findings(group, "--all" in sys.argv) if group != "--all" else ():
                print(line.replace("\n", " | "), file=out, flush=True)


if __name__ == "__main__":
    main()
