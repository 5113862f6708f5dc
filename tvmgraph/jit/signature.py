"""Declared arguments: ``set_inputs``, ``input_signature``, and the sizes that vary in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tvmgraph.core.limits import limits_of, spoken
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import ANY_RANK, Dim
from tvmgraph.dtypes import DType
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TvmgraphError, user_source
from tvmgraph.signatures import python_signature

Axis = tuple[int, int]  # number of the tensor argument, axis


@dataclass
class Signature:
    """What the arguments of a function must be.

    Attributes:
        positional: Specifications in the order of the parameters: a placeholder
            ``Tensor(shape=[None, 3], dtype=...)``, a nested tuple, list or dict of them, or
            ``None`` for an argument that may be anything.
        keywords: Specifications by name.
    """

    positional: tuple[object, ...]
    keywords: dict[str, object] = field(default_factory=dict)

    def axes(
        self, fn: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]
    ) -> dict[Axis, str]:
        """Checks a call and returns the axes that vary, with their names (``""`` without one).

        Args:
            fn: The function, for messages and the names of its parameters.
            args: Positional arguments of the call.
            kwargs: Its keyword arguments.

        Raises:
            ArgumentError: if the number of arguments differs.
            DTypeError: if an argument is no tensor or has another dtype.
            ShapeError: if a tensor has another number of axes or another fixed size, or axes of
                one name differ in size.
        """
        wanted = self._by_parameter(fn)
        given = dict(zip(_labels(fn, len(args)), args)) | kwargs
        walk = _Walk(getattr(fn, "__qualname__", "function"))
        for label, value in given.items():
            walk.visit(value, wanted.get(label), label)
        missing = [n for n in wanted if n not in given]
        if missing:
            raise ArgumentError(
                f"the declared argument {missing[0]!r} is missing", op=walk.name, at=user_source(),
                fix="pass it, or declare the arguments of this call with set_inputs",
            )  # fmt: skip
        return walk.found

    def _by_parameter(self, fn: Callable[..., object]) -> dict[str, object]:
        try:
            python_signature(fn).bind_partial(*self.positional, **self.keywords)
            named = zip(_labels(fn, len(self.positional)), self.positional)
            return dict(named) | self.keywords
        except TypeError as e:
            raise ArgumentError(
                f"the declared inputs do not fit the function: {e}",
                op=getattr(fn, "__qualname__", "function"), at=user_source(),
                got=f"{len(self.positional)} inputs, keywords {list(self.keywords)}",
                fix=f"its signature is {python_signature(fn)}",
            ) from None  # fmt: skip


def _labels(fn: Callable[..., object], count: int) -> list[str]:
    """Names the first arguments by their parameters; those of ``*inputs`` by their position."""
    labels: list[str] = []
    for name, parameter in python_signature(fn).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            labels += [f"{name}[{i}]" for i in range(count - len(labels))]
        labels.append(name)
    return labels[:count]


Container = tuple[object, ...] | list[object] | dict[object, object]


def _items(value: Container) -> dict[object, object]:
    return value if isinstance(value, dict) else dict(enumerate(value))


class _Walk:
    """Visits arguments beside their specifications."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[Axis, str] = {}
        self.sizes: dict[str, tuple[int, str]] = {}
        self._tensors = 0

    def visit(self, value: object, spec: object, label: str) -> None:
        """Checks one argument."""
        if isinstance(value, Tensor):
            if isinstance(spec, Tensor):
                self._check(value, spec, label)
            elif spec is not None:
                self._fail(DTypeError, label, f"{type(spec).__name__}", str(value.aval))
            self._tensors += 1
        elif isinstance(value, (tuple, list, dict)):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            inner = self._inner(value, spec, label)
            for k, v in pairs:
                self.visit(v, inner.get(k), f"{label}[{k!r}]")
        elif isinstance(spec, Tensor):
            self._fail(DTypeError, label, str(_text(spec)), type(value).__name__)

    def _inner(self, value: Container, spec: object, label: str) -> Mapping[object, object]:
        """The specifications of a container's items, by key or number; none where it has none."""
        if spec is None:
            return {}
        if isinstance(spec, (tuple, list, dict)) and _items(spec).keys() == _items(value).keys():
            return _items(spec)
        count = f" of {len(spec)}" if isinstance(spec, (tuple, list, dict)) else ""
        self._fail(DTypeError, label, f"a {type(spec).__name__}{count}",
                   f"a {type(value).__name__} of {len(value)}")  # fmt: skip

    def _check(self, value: Tensor, spec: Tensor, label: str) -> None:
        if value.dtype is not spec.dtype:
            self._fail(DTypeError, label, _text(spec), str(value.aval))
        if spec.aval.shape and spec.aval.shape[0] is ANY_RANK:
            return
        if not value.ndim and all(isinstance(d, Dim) for d in spec.aval.shape):
            return  # as MindSpore takes a number where no size is fixed
        if value.ndim != spec.ndim:
            self._fail(ShapeError, label, _text(spec), str(value.aval))
        for axis, (d, size) in enumerate(zip(spec.aval.shape, value.aval.static_shape)):
            if not isinstance(d, Dim):
                if d != size:
                    self._fail(ShapeError, label, _text(spec), str(value.aval))
                continue
            limits = limits_of(d.text)
            if limits is not None and not limits.hold(size):
                self._fail(ShapeError, label, _text(spec), str(value.aval))
            name = d.text
            if is_unnamed(d):  # with limits it has a name, by which these are found
                name = "" if limits is None else f"any_{self._tensors}_{d.text}"
            self.found[self._tensors, axis] = name
            if name:
                known, first = self.sizes.setdefault(name, (size, label))
                if known != size:
                    raise ShapeError(
                        f"the axes called {spoken(name)!r} differ: {known} in {first!r}, {size} in "
                        f"{label!r}", op=self.name, at=user_source(),
                        fix="make them equal, or give them different names",
                    )  # fmt: skip

    def _fail(self, error: type[TvmgraphError], label: str, wanted: str, got: str) -> NoReturn:
        raise error(
            f"argument {label!r} was declared as {wanted}, but is {got}", op=self.name,
            at=user_source(), fix="pass what set_inputs or input_signature says, or change that",
        )  # fmt: skip


def is_unnamed(d: Dim) -> bool:
    """Whether a size was given as ``None``, which is equal to no other.

    Args:
        d: A symbolic size of a placeholder.
    """
    return d.text.startswith("any_")


def _text(spec: Tensor) -> str:
    dims = [spoken(d.text) if isinstance(d, Dim) else str(d) for d in spec.aval.shape]
    return f"{spec.dtype.name}[{','.join(dims)}]"


def signature_of(value: object) -> Signature | None:
    """Returns the ``input_signature`` of jit from a placeholder, or a tuple or list of them.

    Args:
        value: What the user passed.

    Raises:
        DTypeError: if it is something else.
    """
    if value is None:
        return None
    if not isinstance(value, (tuple, list, Tensor)):
        raise DTypeError(
            f"input_signature must be a placeholder or a tuple of them, not {type(value).__name__}",
            op="jit", got=f"input_signature={value!r}"[:80], at=user_source(),
            fix="use placeholders such as Tensor(shape=[None, 3], dtype=ms.float32)",
        )  # fmt: skip
    items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    check_specs(items, "jit(input_signature=...)")
    return Signature(items)


def check_specs(items: tuple[object, ...], op: str) -> None:
    """Raises DTypeError unless all items can declare an argument.

    Args:
        items: What stands for the arguments.
        op: Who asks, for the message.
    """
    for value in items:
        if not _is_spec(value):
            raise DTypeError(
                f"an argument cannot be declared by a {type(value).__name__}", op=op,
                got=f"{value!r:.80}", at=user_source(),
                fix="use placeholders such as Tensor(shape=[None, 3], dtype=ms.float32)",
            )  # fmt: skip


def _is_spec(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_spec, value))
    if isinstance(value, dict):
        return all(map(_is_spec, value.values()))
    return value is None or isinstance(value, (Tensor, bool, int, float, str, DType))
