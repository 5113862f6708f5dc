"""``vmap``: runs a function on every element of an axis at once.

Inside, a tensor stands for one element; the interpreter applies every operator to the whole axis,
which it keeps in front. Elementwise rows, reductions, products and the rows that only name axes
have a rule; any other row is applied element by element and the results are stacked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from tvmgraph.autodiff.grad import tensors_in
from tvmgraph.capture import tree
from tvmgraph.capture.traced import TracedTensor
from tvmgraph.core import random, rules
from tvmgraph.core.dispatch import apply, describe
from tvmgraph.core.explained import explained
from tvmgraph.core.op import F, Op
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import ArgumentError, CaptureError, DTypeError, ShapeError, either, reject
from tvmgraph.interruption import noticed

R = TypeVar("R")


class BatchedTensor(TracedTensor):
    """Stands for one element of a batch.

    Attributes:
        value: All elements, with the batch as first axis.
        recorder: The interpreter it belongs to.
    """

    __slots__ = ()

    def __init__(self, owner: Batcher, whole: Tensor) -> None:
        self.recorder = owner  # pyright: ignore[reportAttributeAccessIssue]
        self.value = whole  # pyright: ignore[reportAttributeAccessIssue]
        self.number = self.choice = None
        self.passed = None
        self.aval: TensorType = tensor_type(whole.shape[1:], whole.dtype)
        self._ffi = None

    @property
    def whole(self) -> Tensor:
        """All elements."""
        return self.value  # pyright: ignore[reportReturnType]

    @property
    def token(self) -> object:
        """Identity of the value it denotes now."""
        return self.whole.token

    def __hash__(self) -> int:
        alone = getattr(self.recorder, "interpreter", None) is None
        return object.__hash__(self) if alone else super().__hash__()

    def snapshot(self) -> TracedTensor:
        """Returns a tensor that keeps denoting the current value."""
        return self.recorder.snapshot(self)  # pyright: ignore[reportReturnType]

    def __deepcopy__(self, memo: dict[int, object]) -> TracedTensor:
        return self.snapshot()

    def __str__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, one of a vmap batch)"

    __repr__ = __str__


class Batcher:
    """The interpreter inside :func:`vmap`; it works for the interpreter and tapes around it.

    Args:
        size: Length of the batch.
    """

    #: No argument counts as a constant, see :mod:`tvmgraph.capture.deciding`.
    deciding = None

    def __init__(self, size: int) -> None:
        self.size = size
        self.interpreter, self.tapes = state.interpreter, state.tapes
        self.symbols = None if self.interpreter is None else self.interpreter.symbols
        self.sizes = {} if self.interpreter is None else self.interpreter.sizes

    def known(self, tensor: Tensor) -> None:
        """Nothing: what stands for every element of a batch has no value of its own.

        Args:
            tensor: A tensor of the batch.
        """

    def around(self) -> AbstractContextManager[None]:
        """Makes the interpreter and tapes around this one active."""
        return state.interpreting(self.interpreter, self.tapes)

    def active(self) -> AbstractContextManager[None]:
        """Makes this interpreter active, with tapes of its own."""
        return state.interpreting(self)

    def is_mine(self, tensor: Tensor) -> bool:
        """Whether a tensor stands for an element of this batch.

        Args:
            tensor: Any tensor.
        """
        return isinstance(tensor, BatchedTensor) and tensor.recorder is self  # pyright: ignore

    def run(
        self,
        op: Op,
        args: tuple[Tensor, ...],
        attrs: dict[str, object],
        types: tuple[TensorType, ...],
    ) -> tuple[Tensor, ...]:
        """Applies one row to the whole batch.

        Args:
            op: The row.
            args: Its operands; those of this batch stand for one element.
            attrs: Its attributes.
            types: What it returns for one element, of which there is one tensor each.
        """
        batched = [self.is_mine(a) for a in args]
        inner = [a.whole if b else a for a, b in zip(args, batched)]  # pyright: ignore
        with self.around():
            if not any(batched):
                result = apply(op, tuple(inner), attrs)
                return result if op.multi else (result,)
            rule = find_rule(op)
            found = rule(op, inner, batched, dict(attrs), self.size) if rule else None
            if found is None:
                found = self._one_by_one(op, inner, batched, attrs)
        return tuple([BatchedTensor(self, t) for t in found])

    def _one_by_one(
        self, op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, object]
    ) -> list[Tensor]:
        rows: list[tuple[Tensor, ...]] = []
        for i in range(self.size):
            result = apply(op, tuple(a[i] if b else a for a, b in zip(args, batched)), attrs)
            rows.append(result if op.multi else (result,))
        shapes = {tuple(t.shape for t in row) for row in rows}
        if len(shapes) > 1:
            reject(ShapeError, f"ops.{op.name}", "the result has another shape for another element",
                   ", ".join(map(str, sorted(shapes))), "call it outside vmap")  # fmt: skip
        return [F.stack(list(column), 0) for column in zip(*rows)]

    def spread(self, tensor: Tensor) -> Tensor:
        """Returns all elements of a tensor, which may be the same for the whole batch.

        Args:
            tensor: Any tensor.

        Returns:
            Tensor with the batch as its first axis.
        """
        if self.is_mine(tensor):
            return tensor.whole  # pyright: ignore[reportAttributeAccessIssue]
        with self.around():
            return F.broadcast_to(tensor, (self.size, *tensor.shape))

    def assign(self, target: Tensor, new: Tensor) -> None:
        """Makes ``target`` denote ``new``'s elements.

        Args:
            target: What is assigned to.
            new: Its new value, of the same type.

        Raises:
            CaptureError: if only ``new`` differs from element to element.
        """
        if self.is_mine(target):
            target.value = self.spread(new)  # pyright: ignore[reportAttributeAccessIssue]
            return
        if self.is_mine(new):
            reject(CaptureError, "vmap",
                   "every element of the batch would write another value to one tensor",
                   fix="return the value instead")  # fmt: skip
        with self.around():
            target.rebind(new)

    def number(self, value: object, dtype: DType) -> Tensor:
        """Returns a number that differs from call to call, which the whole batch shares.

        Args:
            value: A symbolic number.
            dtype: dtype of the result.

        Returns:
            Tensor without axes.
        """
        assert self.interpreter is not None  # else there are none
        with self.around():
            return self.interpreter.number(value, dtype)

    def having(self, roots: frozenset[str]) -> list[Tensor]:
        """Returns tensors that have some sizes.

        Args:
            roots: Names of symbolic sizes.
        """
        having: Callable[..., list[Tensor]] = getattr(self.interpreter, "having")  # noqa: B009
        return having(roots)

    def call(
        self, function: Callable[..., R], args: Iterable[object], kwargs: Mapping[str, object]
    ) -> R:
        """Calls a Python function; an interpreter around this one reads it.

        Args:
            function: A function of the user.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
        """
        if self.interpreter is not None:
            return self.interpreter.call(function, args, kwargs)
        return function(*args, **kwargs)

    def is_pure(self, run: Callable[[], object]) -> bool:
        """Whether running something only computes.

        Args:
            run: What would be run, called without arguments.
        """
        return self.interpreter is None or self.interpreter.is_pure(run)

    def read(self, tensor: Tensor) -> None:
        """Notes that Python code looks at the elements of a tensor.

        Args:
            tensor: The tensor.
        """
        if self.interpreter is not None:
            self.interpreter.read(tensor)

    def created(self, tensor: Tensor) -> None:
        """Notes a tensor that was built from host data.

        Args:
            tensor: The new tensor.
        """
        if self.interpreter is not None:
            self.interpreter.created(tensor)

    def draw(self, blocks: int) -> tuple[Tensor, int]:
        """Reserves random numbers; all elements of the batch see the same ones.

        Args:
            blocks: Philox blocks, each of four 32-bit words.
        """
        with self.around():
            return random.draw(blocks)

    def first_values(self, blocks: int, type: TensorType, make: Callable[..., Tensor]) -> Tensor:
        """Draws the first values of a Parameter, which all elements of the batch share.

        Args:
            blocks: Philox blocks that they take.
            type: Type of the Parameter.
            make: Computes them from seed and counter.
        """
        with self.around():
            return random.first_values(blocks, type, make)

    def has_elements(self, tensor: Tensor) -> bool:
        """Whether the elements of a tensor are known.

        Args:
            tensor: Any tensor.
        """
        return self.interpreter is None or self.interpreter.has_elements(tensor)

    def starts_as(self, parameter: Tensor, value: Tensor) -> None:
        """Notes what a new Parameter denotes.

        Args:
            parameter: The new Parameter.
            value: What it denotes.
        """
        if self.interpreter is not None:
            self.interpreter.starts_as(parameter, value)

    def enter_cell(self, cell: object, scope: tuple[str, ...]) -> str:
        """Notes that a Cell is called.

        Args:
            cell: The Cell.
            scope: Names of the Cells around it, outermost first.

        Returns:
            Its name there.
        """
        if self.interpreter is not None:
            return self.interpreter.enter_cell(cell, scope)
        return type(cell).__name__

    def made_cell(self, cell: object) -> None:
        """Notes that a Cell comes into being.

        Args:
            cell: The Cell.
        """
        if self.interpreter is not None:
            self.interpreter.made_cell(cell)

    def before_attribute(self, cell: object, name: str) -> None:
        """Notes that an attribute of a Cell is about to be written.

        Args:
            cell: The Cell.
            name: Name of the attribute.
        """
        if self.interpreter is not None:
            self.interpreter.before_attribute(cell, name)

    def before_change(self, owner: object) -> None:
        """Notes that the members or settings of a Cell or Parameter are about to change.

        Args:
            owner: The Cell or Parameter.
        """
        if self.interpreter is not None:
            self.interpreter.before_change(owner)

    def snapshot(self, tensor: Tensor) -> Tensor:
        """Returns a tensor that keeps denoting the current value.

        Args:
            tensor: Any tensor.
        """
        with self.around():
            if self.is_mine(tensor):
                return BatchedTensor(self, tensor.whole.snapshot())  # pyright: ignore
            return tensor.snapshot()


def vmap(
    fn: Callable[..., object], in_axes: object = 0, out_axes: object = 0
) -> Callable[..., Any]:
    """Returns a function that applies ``fn`` to every element of an axis.

    Args:
        fn: Function or Cell; or a CellList, whose members take one element each. The
            arguments keep what it assigns to their elements.
        in_axes: The axis of every argument; None for an argument that all elements share. One
            value counts for all arguments; a tuple has one entry per argument, and an entry may
            be nested like the argument.
        out_axes: Where the axis goes in the results, in the same way.

    Returns:
        A function of the same arguments with one more axis.

    Raises:
        ArgumentError: if no argument has an axis, or a structure does not fit.
        ShapeError: if the axes have different lengths or an axis does not exist.

    Note:
        Random operators draw the same numbers for all elements.

    Example:
        >>> ms.vmap(lambda a, b: (a * b).sum())(ops.ones((3, 2)), ops.ones((3, 2))).shape
        (3,)
    """
    if not callable(fn):
        raise DTypeError(f"fn must be callable, not {type(fn).__name__}", op="vmap")

    if hasattr(fn, "each_model"):
        return functools.partial(_ensemble, fn, in_axes, out_axes)

    @functools.wraps(fn, updated=())
    def run(*args: object, **kwargs: object) -> object:
        try:
            axes, leaves = _axes(in_axes, args), tensors_in(args)
        except RecursionError as e:
            raise explained(e, "vmap", {"args": args})  # noqa: B904
        size = _batch_size(leaves, axes)
        batcher = Batcher(size)
        moved = [t if a is None else F.moveaxis(t, a, 0) if a else t for t, a in zip(leaves, axes)]
        inner = [t if a is None else BatchedTensor(batcher, t) for t, a in zip(moved, axes)]
        with noticed(), batcher.active():
            value = batcher.call(fn, tree.replace(args, iter(inner)), kwargs)
        _write_back(leaves, axes, moved, inner)
        value = _filled(out_axes, value)
        results = tensors_in(value)
        places = _spread_axes(out_axes, value, "out_axes")
        whole = [
            batcher.spread(t) if a is not None else _shared(batcher, t)
            for t, a in zip(results, places)
        ]
        done = (_with_axis(t, a) if a else t for t, a in zip(whole, places))
        return tree.replace(value, done)

    return run


def _with_axis(result: Tensor, axis: int) -> Tensor:
    """Returns a result whose first axis, the mapped one, stands where out_axes says."""
    if not -result.ndim <= axis < result.ndim:
        reject(
            _NoAxis, "vmap", f"axis {axis} of out_axes is outside a tensor of {result.ndim} axes"
        )
    return F.moveaxis(result, 0, axis)


def _write_back(
    leaves: list[Tensor], axes: list[int | None], given: list[Tensor], inner: list[Tensor]
) -> None:
    """Gives tensors whose elements the function has assigned their new values."""
    for leaf, axis, old, t in zip(leaves, axes, given, inner):
        if axis is not None and isinstance(t, BatchedTensor) and t.whole is not old:
            leaf.rebind(F.moveaxis(t.whole, 0, axis) if axis else t.whole)


#: What is wrong with axes, and with what they are long: MindSpore raises RuntimeErrors.
_Axes, _Lengths, _NoAxis = (
    either(kind, RuntimeError) for kind in (ArgumentError, ShapeError, rules.AxisError)
)


def _ensemble(models: Any, in_axes: object, out_axes: object, *args: object) -> object:
    """Runs every model of a CellList on its own element and stacks the results."""
    models, leaves = models.each_model(), tensors_in(args)
    counts = sorted({sum(1 for _ in model.get_parameters()) for model in models})
    if len(counts) > 1:
        raise ArgumentError(f"every model has as many parameters, not {counts}", op="vmap")
    axes = _spread_axes(in_axes, args, "in_axes")
    for t, a in zip(leaves, axes):
        if a is not None and t.shape[a] != len(models):
            reject(_Lengths, "vmap",
                   f"{len(models)} models need as many elements on axis {a}, not {t.shape[a]}",
                   f"args=({', '.join(map(describe, args))})")  # fmt: skip
    parts = [[t] * len(models) if a is None else F.unbind(t, a) for t, a in zip(leaves, axes)]
    values = [
        model(*tree.replace(args, iter([p[i] for p in parts]))) for i, model in enumerate(models)
    ]
    places = _spread_axes(out_axes, values[0], "out_axes")
    found = zip(*map(tensors_in, values))
    return tree.replace(values[0], iter([F.stack(v, a or 0) for v, a in zip(found, places)]))


def _shared(batcher: Batcher, tensor: Tensor) -> Tensor:
    if batcher.is_mine(tensor):
        reject(_Axes, "vmap",
               "a result that differs between elements cannot have out_axes=None")  # fmt: skip
    return tensor


def _spread_axes(axes: object, value: object, name: str) -> list[int | None]:
    """Gives every tensor of a structure its axis."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tensors_in(value))
    items = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, Tensor) and isinstance(axes, (tuple, list)) and len(axes) == 1:
        return list(axes)  # MindSpore's way of writing the axis of a single result
    if not isinstance(axes, (tuple, list)) or not isinstance(items, (tuple, list)):
        raise _Axes(f"{name} does not fit the structure", op="vmap", got=f"{name}={axes!r}")
    if len(axes) != len(items):
        reject(_Axes, "vmap",
               f"{name} must have one entry per value ({len(items)}), not {len(axes)}")  # fmt: skip
    return [a for axis, v in zip(axes, items) for a in _spread_axes(axis, v, name)]


def _filled(axes: object, value: object) -> object:
    """Makes tensors of the numbers in a result that get an axis: all their elements are equal."""
    if isinstance(value, (bool, int, float)):
        return value if axes is None else Tensor(value)
    if type(value) not in (tuple, list, dict):
        return value
    items = list(value.values()) if isinstance(value, dict) else list(cast("list[object]", value))
    fits = isinstance(axes, (tuple, list)) and len(axes) == len(items)
    each = list(cast("list[object]", axes)) if fits else [axes] * len(items)
    done = [_filled(a, x) for a, x in zip(each, items)]
    if isinstance(value, dict):
        return dict(zip(value, done))
    return tuple(done) if isinstance(value, tuple) else done


def _axes(in_axes: object, args: tuple[object, ...]) -> list[int | None]:
    found = _spread_axes(in_axes, args, "in_axes")
    if all(a is None for a in found):
        reject(_Axes, "vmap", "at least one argument needs an axis",
               f"in_axes={in_axes}, args=({', '.join(map(describe, args))})",
               "pass a Tensor, whose elements along in_axes are the batch")  # fmt: skip
    return found


def _batch_size(leaves: list[Tensor], axes: list[int | None]) -> int:
    sizes = set()
    for t, a in zip(leaves, axes):
        if a is None:
            continue
        if not -t.ndim <= a < t.ndim:
            reject(_Lengths, "vmap", f"axis {a} is outside a tensor of shape {t.shape}",
                   f"args={', '.join(str(leaf.aval) for leaf in leaves)}")  # fmt: skip
        sizes.add(t.shape[a])
    if len(sizes) != 1 or sizes == {0}:
        raise _Lengths("the axes must have one common length above 0", op="vmap",
                         got=f"lengths {sorted(sizes)}")  # fmt: skip
    return sizes.pop()


# ---- how rows of the table act on a whole batch: the rules of ``vmap``, by the row's trait -------
# A rule is ``(op, tensors, batched, attrs, size) -> results or None``; ``batched`` tells which
# tensors carry the batch as their first axis, and None asks for the general way.

Rule = Callable[[Op, list[Tensor], list[bool], dict[str, Any], int], list[Tensor] | None]


def _apply(op: Op, args: list[Tensor], attrs: dict[str, Any]) -> list[Tensor]:
    result = apply(op, tuple(args), attrs)
    return list(result) if op.multi else [result]


def _aligned(args: list[Tensor], batched: list[bool], rank: int) -> list[Tensor]:
    """Inserts axes after the batch so that all elements have ``rank`` axes."""
    result = []
    for a, b in zip(args, batched):
        missing = rank - (a.ndim - 1)
        if b and missing:
            a = F.reshape(a, (a.shape[0], *(1,) * missing, *a.shape[1:]))
        result.append(a)
    return result


def _elementwise(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    rank = max(a.ndim - b for a, b in zip(args, batched))
    return _apply(op, _aligned(args, batched, rank), attrs)


def _spread(args: list[Tensor], batched: list[bool], size: int) -> list[Tensor]:
    return [a if b else F.broadcast_to(a, (size, *a.shape)) for a, b in zip(args, batched)]


def _shifted(key: str, attrs: Mapping[str, object]) -> dict[str, Any] | None:
    value = attrs[key]
    if isinstance(value, int):
        return {**attrs, key: value + 1} if value >= 0 else None
    if isinstance(value, tuple) and all(isinstance(v, int) and v >= 0 for v in value):
        return {**attrs, key: tuple(v + 1 for v in value)}
    return None


def _matrices(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor] | None:
    """A row that works on the last two axes and broadcasts those before."""
    ranks = [a.ndim - b for a, b in zip(args, batched)]
    if min(ranks) < 2:
        return None
    return _apply(op, _aligned(args, batched, max(ranks)), attrs)


def _sized(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    """A row that is told the sizes of its result; those of a repeated operand align at the end."""
    sizes = attrs[op.traits.sized]
    if op.traits.pattern is Pattern.BROADCAST:
        args = _aligned(args, batched, len(sizes))
    return _apply(op, args, {op.traits.sized: (size, *sizes)})


def _permutation(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor]:
    return _apply(op, args, {"dims": (0, *(d + 1 for d in attrs["dims"]))})


def _images(
    op: Op, args: list[Tensor], batched: list[bool], attrs: dict[str, Any], size: int
) -> list[Tensor] | None:
    """A row whose first axis is already a batch of images, with weights shared."""
    x = args[0]
    if not batched[0] or any(batched[1:]) or x.ndim < 3:
        return None
    merged = F.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    results = _apply(op, [merged, *args[1:]], attrs)
    return [F.reshape(r, (*x.shape[:2], *r.shape[1:])) for r in results]


def _by_axis(
    op: Op, args: list[Tensor], batched: list[bool], attrs: Mapping[str, object], size: int
) -> list[Tensor] | None:
    """A row that names axes in an attribute and leaves all others alone."""
    if any(a.ndim == b for a, b in zip(args, batched)):
        return None  # a 0-d element has no axis to name
    moved = _shifted("axis" if "axis" in attrs else "dims", attrs)
    return None if moved is None else _apply(op, _spread(args, batched, size), moved)


_RULES: dict[Batch, Rule] = {
    Batch.ELEMENTWISE: _elementwise,
    Batch.MATRICES: _matrices,
    Batch.AXIS: _by_axis,
    Batch.PERMUTATION: _permutation,
    Batch.SIZED: _sized,
    Batch.IMAGES: _images,
}


def find_rule(op: Op) -> Rule | None:
    """Returns the rule of a row, or None where it is applied element by element.

    Args:
        op: The row, whose traits say how it is batched.
    """
    return _RULES[op.traits.batch] if op.traits.batch else None
