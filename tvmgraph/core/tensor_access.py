"""Tensor methods that read and write by index, and the in-place ones that need their own code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import is_tuple
from tvmgraph.core.in_place import write_at
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.taken import Place, finish_chain, place_in
from tvmgraph.core.tensor_overloads import TensorOverloads, is_int
from tvmgraph.core.tensor_reductions import aliases
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, reject

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor


def _is_basic(index: object) -> bool:
    """Whether an index is made of integers, slices, None and ... alone."""
    if type(index) in (int, slice) or index is None or index is ...:
        return True
    return is_tuple(index) and all(map(_is_basic, index))


class TensorAccess(TensorOverloads):
    """Mixin of :class:`~tvmgraph.core.tensor.Tensor`."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Tensor itself adds
        item: Callable[..., Any]

    def __getitem__(self, index: object) -> Tensor:
        found = F.getitem(self, index)
        if found is not self:
            found._base = (self, index) if _is_basic(index) else place_in(self, index)
        return found

    def __setitem__(self, index: object, value: object) -> None:
        base = getattr(self, "_base", None)
        if not write_at(self, index, value):  # pyright: ignore[reportArgumentType]
            view = F.getitem(*base) if isinstance(base, tuple) else None
            with state.computing_in(None):  # elements are stored, not computed with
                self.rebind(F.setitem(self if view is None else view, index, value))
        if isinstance(base, Place) and state.interpreter is None:  # else it sees the whole chain
            finish_chain(getrefcount(self), self, value)

    def _write_through(self) -> None:
        """Writes a change on into the tensor that this one is a view of."""
        base = getattr(self, "_base", None)
        if base is not None and not isinstance(base, Place):
            whole, place = base
            whole[place] = self

    def __bool__(self) -> bool:
        if self.size != 1:
            reject(ShapeError, "bool(Tensor)",
                   f"the truth value of {self.size} elements is ambiguous", str(self.aval),
                   "use .any() or .all()")  # fmt: skip
        return bool(self.host().item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not (self.dtype.is_integer or self.dtype is dtypes.bool_):
            raise DTypeError("only an integer tensor can be an index", got=str(self.aval))
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise DTypeError("a 0-d tensor has no length", op="len(Tensor)")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise DTypeError("a 0-d tensor cannot be iterated", op="iter")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: object) -> bool:
        return bool(np.any(self.host() == np.asarray(value)))

    def gather(self, *args: object, **kwargs: object) -> Tensor:
        """``gather(input_indices, axis, batch_dims=0)`` takes slices
        (:func:`tvmgraph.ops.gather`); ``gather(dim, index)`` takes elements
        (:func:`tvmgraph.ops.gather_elements`).

        Args:
            *args: The arguments of one of the two forms.
            **kwargs: The same by name.
        """
        if {"dim", "index"} & set(kwargs) or (args and is_int(args[0])):
            return F.gather_elements(self, *args, **kwargs)
        return F.gather(self, *args, **kwargs)

    @aliases(dim="axis")
    def index_select(self, axis: int, index: object) -> Tensor:
        """Takes slices along ``axis``; see :func:`tvmgraph.ops.index_select`.

        Args:
            axis: The axis.
            index: Which slices: int32 or int64 of shape :math:`(n)`.
        """
        return F.index_select(self, axis, index)

    def take(self, indices: object = None, axis: int | None = None, mode: str = "clip", *,
             index: object = None) -> Tensor:  # fmt: skip
        """Takes elements of the flattened tensor, or slices along ``axis``.

        Args:
            indices: Integer tensor.
            axis: Axis, or None for the flattened tensor.
            mode: What happens to indices outside the axis: "clip", "wrap" or "raise".
            index: With this spelling, :func:`tvmgraph.ops.take`.

        Raises:
            ArgumentError: if ``mode`` is none of the three.
        """
        if index is not None:
            return F.take(self, index)
        x, axis = (F.reshape(self, (-1,)), 0) if axis is None else (self, axis)
        size = x.shape[axis]
        if mode == "clip":
            indices = F.clip(indices, 0, size - 1)
        elif mode == "wrap":
            indices = F.floor_mod(indices, size)
        elif mode != "raise":
            reject(ArgumentError, "Tensor.take",
                   f"mode must be 'clip', 'wrap' or 'raise', not {mode!r}")  # fmt: skip
        return F.gather(x, indices, axis)

    @aliases(dim="condition", axis="condition", index="y")
    def select(self, condition: object, y: Any) -> Tensor:
        """``select(condition, y)`` is ``where(condition, self, y)``; ``select(dim, index)`` takes
        one slice.

        Args:
            condition: Where to keep this tensor, a bool tensor; or the axis, an int or a
                tensor without axes that holds one.
            y: What is taken elsewhere, a tensor or number; or the index of the slice.

        Raises:
            DTypeError: if the index of a slice is no int.
            AxisError: if there is no such axis.
        """
        if isinstance(condition, TensorAccess) and condition.dtype.is_integer:
            condition = int(condition) if condition.ndim == 0 else condition
        if is_int(condition):
            if isinstance(y, float) or getattr(y, "ndim", 0):  # "where" wants a tensor first
                reject(DTypeError, "Tensor.select",
                       f"with an axis, index must be an int, not {y!r:.60}")  # fmt: skip
            axis = rules.normalize_axis(condition, self.ndim)
            return F.getitem(self, (*(slice(None),) * axis, int(y)))
        return F.where(condition, self, y)

    def where(self, condition: object, y: object) -> Tensor:
        """This tensor where ``condition`` holds, else ``y``; see :func:`tvmgraph.ops.where`.

        Args:
            condition: A bool tensor that broadcasts with this one.
            y: A tensor or number that broadcasts, too.
        """
        return F.where(condition, self, y)

    def choose(self, choices: Iterable[object], mode: str = "clip") -> Tensor:
        """Takes element i of ``choices[self[i]]``.

        Args:
            choices: Sequence of tensors or lists that broadcast with this tensor.
            mode: What happens to indices outside the choices: "clip", "wrap" or "raise".
        """
        from tvmgraph.core.tensor import Tensor

        parts = [c if isinstance(c, TensorOverloads) else Tensor(c) for c in choices]
        shape = rules.broadcast_shapes(self.shape, *[p.shape for p in parts])
        table = F.reshape(F.stack([F.broadcast_to(p, shape) for p in parts]), (len(parts), -1))
        which = F.reshape(F.broadcast_to(F.cast(self, dtypes.int64), shape), (-1,))
        count = math.prod(shape)
        if mode == "wrap":
            which = F.floor_mod(which, len(parts))
        elif mode == "clip":
            which = F.clip(which, 0, len(parts) - 1)
        picked = F.gather_elements(table, 0, F.reshape(which, (1, count)))
        return F.reshape(picked, shape)

    def scatter(self, *args: object, **kwargs: object) -> Tensor:
        """Writes ``src`` at ``index`` along an axis: ``scatter(axis, index, src)``; see
        :func:`tvmgraph.ops.scatter`.

        Args:
            *args: ``axis``, ``index`` (integers of ``src``'s shape) and ``src``, a tensor or
                number.
            **kwargs: The same by name, and ``reduce``: ``"add"`` or ``"multiply"`` what is there.

        Raises:
            ArgumentError: if ``reduce`` is anything else.
        """
        return _scatter(self, *args, **kwargs)

    def scatter_add(self, *args: object, **kwargs: object) -> Tensor:
        """``scatter_add(indices, updates)`` adds to slices
        (:func:`tvmgraph.ops.tensor_scatter_add`); ``scatter_add(dim, index, src)`` adds elements
        (:func:`tvmgraph.ops.tensor_scatter_elements`).

        Args:
            *args: The arguments of one of the two forms.
            **kwargs: The same by name.
        """
        if len(args) + len(kwargs) == 2:
            return F.tensor_scatter_add(self, *args, **kwargs)
        return _scatter(self, *args, reduce="add", **kwargs)

    def index_add(self, *args: Any, **kwargs: Any) -> Tensor:
        """Adds slices: ``index_add(indices, y, axis)`` or
        ``index_add(dim, index, source, *, alpha=1)``.

        Args:
            *args: The arguments of one of the two forms: ``indices`` or ``index`` of shape
                :math:`(n)`, and ``y`` or ``source`` with :math:`n` slices along the axis.
            **kwargs: The same by name; ``alpha`` is a factor of what is added.
        """
        if not ({"dim", "source"} & set(kwargs) or (args and is_int(args[0]))):
            return _index_add_slices(self, *args, **kwargs)
        return _index_add(self, *args, **kwargs)

    def index(self, indices: Sequence[object]) -> Tensor:
        """Returns ``self[tuple(indices)]``.

        Args:
            indices: An index per axis, for the first axes.
        """
        return self[tuple(indices)]

    def index_put(
        self, indices: Sequence[Tensor], values: object, accumulate: bool = False
    ) -> Tensor:
        """Writes (or adds) ``values`` at ``(indices[0][i], indices[1][i], ...)``.

        Args:
            indices: Integer tensors, one per leading axis; they broadcast.
            values: Tensor that broadcasts to the indexed part.
            accumulate: Whether values are added instead of written.
        """
        if not accumulate:
            return F.setitem(self, tuple(indices), values)
        shape = rules.broadcast_shapes(*[i.shape for i in indices])
        where = F.stack([F.broadcast_to(i, shape) for i in indices], -1)
        values = F.broadcast_to(values, (*shape, *self.shape[len(indices) :]))
        return F.tensor_scatter_add(self, where, values)

    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> tuple[Tensor, ...] | Tensor:
        """Distinct elements; their number depends on the values, so this never compiles.

        Args:
            sorted: Whether they come in ascending order instead of that of first occurrence.
            return_inverse: Whether to return, for every element, its position among them.
            return_counts: Whether to return how often each occurs.
            dim: Only None, which looks at all elements, is supported.

        Raises:
            ArgumentError: if ``dim`` is given.
        """
        if dim is not None:
            reject(ArgumentError, "Tensor.unique", "dim must be None", f"dim={dim}",
                   "use unique_consecutive(dim=...) on sorted slices")  # fmt: skip
        distinct, inverse = F.unique(F.reshape(self, (-1,)))
        if sorted:
            order = F.argsort(distinct)
            distinct = F.gather(distinct, order, 0)
            inverse = F.gather(F.argsort(order), inverse, 0)
        results = [distinct]
        if return_inverse:
            results.append(F.reshape(F.cast(inverse, dtypes.int64), self.shape))
        if return_counts:
            ones = F.ones(inverse.shape, dtypes.int64)
            results.append(F.unsorted_segment_sum(ones, inverse, distinct.shape[0]))
        return tuple(results) if len(results) > 1 else distinct

    # ---- writing ----------------------------------------------------------------------------

    def fill_diagonal(self, fill_value: object, wrap: bool = False) -> Tensor:
        """This tensor with ``fill_value`` where all indices are equal.

        Args:
            fill_value: Number to write.
            wrap: Whether the diagonal of a tall matrix starts again below its end.
        """
        from tvmgraph.core.tensor import tensor_from_numpy

        mask = np.zeros(self.shape, np.bool_)
        np.fill_diagonal(mask, True, wrap)
        return F.masked_fill(self, tensor_from_numpy(mask), fill_value)

    def index_copy(self, dim: int, index: object, tensor: object) -> Tensor:
        """This tensor with the slices of ``tensor`` written at ``index`` along ``dim``.

        Args:
            dim: The axis.
            index: Where each slice goes: integers of shape :math:`(n)`.
            tensor: This shape with :math:`n` slices along ``dim``.
        """
        return F.setitem(self, _along(self, dim, index), tensor)

    def index_copy_(self, dim: int, index: object, tensor: object) -> Self:
        """Writes the slices of ``tensor`` at ``index`` along ``dim``.

        Args:
            dim: The axis.
            index: Where each slice goes: integers of shape :math:`(n)`.
            tensor: This shape with :math:`n` slices along ``dim``.
        """
        self[_along(self, dim, index)] = tensor
        return self

    def index_put_(
        self, indices: Sequence[Tensor], values: object, accumulate: bool = False
    ) -> Self:
        """Writes (or adds) ``values`` as :meth:`index_put` does, in this tensor.

        Args:
            indices: Index tensors, one per axis, for the first axes.
            values: A tensor or number that broadcasts to the indexed part.
            accumulate: Whether to add.
        """
        if accumulate:
            return self.rebind(self.index_put(indices, values, True))
        self[tuple(indices)] = values
        return self


def _along(self: TensorAccess, dim: int, index: object) -> tuple[object, ...]:
    """Returns the index of slices at ``index`` along an axis."""
    return (*(slice(None),) * rules.normalize_axis(dim, self.ndim, "dim"), index)


@aliases(dim="axis", value="src")
def _scatter(
    self: TensorAccess, axis: int, index: object, src: object, *, reduce: str | None = None
) -> Tensor:
    if not isinstance(src, TensorOverloads):
        src = F.full_like(index, src, dtype=self.dtype)
    if reduce is None:
        return F.scatter(self, axis, index, src)
    if reduce not in ("add", "multiply"):
        reject(ArgumentError, "Tensor.scatter",
               f"reduce must be 'add' or 'multiply', not {reduce!r}")  # fmt: skip
    how = "add" if reduce == "add" else "mul"
    return F.tensor_scatter_elements(self, index, src, axis, how)


def _index_add(
    self: TensorAccess, dim: int, index: object, source: Any, *, alpha: object = 1
) -> Tensor:
    axis = rules.normalize_axis(dim, self.ndim, "dim")
    source = source if alpha == 1 else source * alpha
    moved = F.moveaxis(self, axis, 0)
    where = F.expand_dims(index, -1)
    added = F.tensor_scatter_add(moved, where, F.moveaxis(source, axis, 0))
    return F.moveaxis(added, 0, axis)


def _index_add_slices(
    self: TensorAccess, indices: object, y: object, axis: int, use_lock: bool = True,
    check_index_bound: bool = True,
) -> Tensor:  # fmt: skip
    return _index_add(self, axis, indices, y)
