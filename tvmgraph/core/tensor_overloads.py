"""Tensor methods whose arguments differ from the operator function's.

MindSpore gives many methods two spellings (``axis``/``keepdims`` and ``dim``/``keepdim``); both
are accepted. Every method is a composite of operator functions, so it works in every mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, Unknown
from tvmgraph.core.op import F
from tvmgraph.core.tensor_reductions import TensorReductions, aliases
from tvmgraph.errors import DTypeError, ShapeError, reject

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor

R = TypeVar("R")
_axis = aliases(dim="axis")


def sizes_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Accepts ``f(2, 3)``, ``f((2, 3))`` and ``f(Tensor([2, 3]))``.

    Args:
        sizes: What followed the name of the method.
    """
    given: object = sizes[0] if len(sizes) == 1 else None
    if isinstance(given, (tuple, list)):
        return tuple(sizes[0])
    if isinstance(given, TensorOverloads) and len(given.shape) == 1:
        return tuple(sizes[0] if isinstance(given, Unknown) else given.array.tolist())
    return sizes


def _sizes(*names: str, needed: bool = True) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Collects ``f(2, 3)``, ``f((2, 3))`` and ``f(name=(2, 3))`` into one tuple argument."""

    def wrap(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def method(self: object, *args: object, **kwargs: object) -> R:
            for name in [k for k in kwargs if k in names]:
                args = (*args, kwargs.pop(name))
            if needed and not args:
                reject(DTypeError, f"Tensor.{function.__name__}", f"{names[0]} is missing")
            return function(self, sizes_of(args), **kwargs)

        return method

    return wrap


def is_int(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer that is neither a bool nor a tensor.

    Args:
        value: Any object.
    """
    return hasattr(value, "__index__") and not isinstance(value, (bool, TensorOverloads))


class TensorOverloads(TensorReductions):
    """Mixin of :class:`~tvmgraph.core.tensor.Tensor`."""

    __slots__ = ()

    # ---- order ------------------------------------------------------------------------------

    @_axis
    def sort(
        self, axis: int = -1, descending: bool = False, stable: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Sorts along ``axis`` and also returns the indices; see :func:`tvmgraph.ops.sort`.

        The order of equal elements is always kept, whatever ``stable`` says.

        Args:
            axis: The axis.
            descending: Whether the largest element comes first.
            stable: Kept for MindSpore programs.
        """
        return F.sort(self, axis, descending)

    @_axis
    def argsort(self, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """Indices that sort along ``axis``; see :func:`tvmgraph.ops.argsort`.

        Args:
            axis: The axis.
            descending: Whether the largest element comes first.
            stable: Kept for MindSpore programs; the order of equal elements is always kept.
        """
        return F.argsort(self, axis, descending)

    def searchsorted(self, v: object, side: str = "left", sorter: object = None) -> Tensor:
        """Positions at which ``v`` fits into the sorted tensor (int32); see
        :func:`tvmgraph.ops.searchsorted`.

        Args:
            v: Values, a tensor or number.
            side: ``"left"`` for the first fitting position, ``"right"`` for the last.
            sorter: Indices that sort this tensor, if it is not sorted.
        """
        v = v if isinstance(v, TensorOverloads) else F.scalar_to_tensor(v, self.dtype)
        return F.searchsorted(self, v, side=side, sorter=sorter, out_int32=True)

    # ---- shape ------------------------------------------------------------------------------

    @_sizes("shape")
    def reshape(self, shape: tuple[object, ...] | Tensor) -> Tensor:
        """The same elements in another shape: ``reshape(2, 3)`` or ``reshape((2, 3))``.

        Args:
            shape: The shape; one size may be -1.
        """
        return F.reshape(self, shape)

    def view(self, *shape: object, dtype: dtypes.DType | None = None) -> Tensor:
        """The same elements in another shape; storage is never shared observably.

        A dtype instead of a shape reads the bytes of the last axis as its elements.

        Args:
            *shape: The shape, or a dtype.
            dtype: The dtype, by name.

        Raises:
            ShapeError: if these bytes are not a whole number of them.
        """
        if len(shape) == 1 and isinstance(shape[0], dtypes.DType):
            dtype, shape = shape[0], ()
        if dtype is None:
            return F.reshape(self, sizes_of(shape))
        kind = dtype.numpy
        old = self.asnumpy()
        if not old.ndim or old.shape[-1] * old.itemsize % kind.itemsize:
            reject(ShapeError, "Tensor.view",
                   f"the last axis does not hold whole elements of {dtype.name}",
                   f"input={self.aval}", "convert the numbers with astype")  # fmt: skip
        return self.from_numpy(np.ascontiguousarray(old).view(kind).copy())

    def reshape_as(self, other: Tensor) -> Tensor:
        """The same elements in the shape of ``other``.

        Args:
            other: Tensor with as many elements.
        """
        return F.reshape(self, other.shape)

    @_sizes("new_shape", "sizes", needed=False)
    def resize(self, new_shape: tuple[int, ...]) -> Tensor:
        """The first elements in a new shape, padded with zeros at the end when it is larger.

        Args:
            new_shape: The shape.
        """
        size, flat = math.prod(new_shape), F.reshape(self, (-1,))
        if size > self.size:
            flat = F.concat((flat, F.zeros((size - self.size,), self.dtype)))
        return F.reshape(flat[:size], new_shape)

    def transpose(self, *axes: object, **dims: object) -> Tensor:
        """Permutes the axes, or swaps two of them: ``transpose(dim0, dim1)``.

        Without arguments the axes are reversed; one tuple or ``ndim`` integers give the order;
        two integers are swapped.

        Args:
            *axes: The order of the axes, or the two axes.
            **dims: ``dim0`` and ``dim1``, or ``axis0`` and ``axis1``: the two axes.
        """
        if dims:
            return F.swapaxes(self, *axes, **{k.replace("dim", "axis"): v for k, v in dims.items()})
        if len(axes) == 2 and is_int(axes[0]):
            return F.swapaxes(self, *axes)
        order = sizes_of(axes) if axes and axes[0] is not None else range(self.ndim)[::-1]
        return F.transpose(self, tuple(order))

    @_sizes("axis", "dims", needed=False)
    def permute(self, axis: tuple[object, ...]) -> Tensor:
        """Permutes the axes: ``permute(1, 0)`` or ``permute((1, 0))``.

        Args:
            axis: The order of the axes.
        """
        return F.permute(self, axis)

    def squeeze(
        self, *dims: object, dim: AxisLike | None = None, axis: AxisLike | None = None
    ) -> Tensor:
        """Removes axes of size 1; see :func:`tvmgraph.ops.squeeze`.

        Args:
            *dims: The axes; none for all of size 1.
            dim: The axis or axes, by name.
            axis: The same.
        """
        if not dims:
            return F.squeeze(self, axis if dim is None else dim)
        return F.squeeze(self, dims[0] if len(dims) == 1 else tuple(dims))

    def flatten(
        self, order: str | int = "C", *more: int, start_dim: int = 0, end_dim: int = -1
    ) -> Tensor:
        """Merges axes: ``flatten(start_dim=0, end_dim=-1)``; ``order`` "F" reads columns first.

        Args:
            order: ``"C"`` or ``"F"``; or ``start_dim``, an int.
            *more: ``end_dim``, after ``start_dim``.
            start_dim: The first axis to merge.
            end_dim: The last one.
        """
        if is_int(order):
            order, start_dim, end_dim = "C", order, more[0] if more else end_dim
        return F.flatten(self, order, start_dim=start_dim, end_dim=end_dim)

    @_sizes("size")
    def expand(self, size: tuple[object, ...] | Tensor) -> Tensor:
        """Repeats axes of size 1 to reach ``size``; -1 keeps an axis.

        Args:
            size: The shape.
        """
        return F.broadcast_to(self, size)

    @_sizes("shape")
    def broadcast_to(self, shape: tuple[object, ...] | Tensor) -> Tensor:
        """Repeats axes of size 1 to reach ``shape``; see :func:`tvmgraph.ops.broadcast_to`.

        Args:
            shape: The shape; -1 keeps an axis.
        """
        return F.broadcast_to(self, shape)

    @aliases(x="other")
    def expand_as(self, other: Tensor) -> Tensor:
        """Repeats axes of size 1 to reach the shape of ``other``.

        Args:
            other: Tensor whose shape is reached.
        """
        return F.broadcast_to(self, other.shape)

    @_sizes("size", needed=False)
    def sum_to_size(self, size: tuple[int, ...]) -> Tensor:
        """Sums over the axes along which ``size`` would be broadcast to this shape.

        Args:
            size: The shape.

        Raises:
            ShapeError: if ``size`` does not broadcast to the tensor's shape.
        """
        shape = tuple(int(s) for s in size)
        fits = len(shape) <= self.ndim and all(
            d in (1, full) for d, full in zip(shape[::-1], self.shape[::-1])
        )
        if not fits:
            raise ShapeError(
                f"{list(shape)} does not broadcast to {list(self.shape)}", op="Tensor.sum_to_size",
                got=f"size={shape}",
            )  # fmt: skip
        lead = self.ndim - len(shape)
        axes = (*range(lead), *(lead + i for i, d in enumerate(shape) if d != self.shape[lead + i]))
        return F.reshape(F.sum(self, axes, True) if axes else self, shape)

    @_sizes("dims", "reps")
    def tile(self, dims: tuple[object, ...] | Tensor) -> Tensor:
        """Repeats the whole tensor; see :func:`tvmgraph.ops.tile`.

        Args:
            dims: How often, per axis; missing ones at the front are 1.
        """
        return F.tile(self, dims)

    @_sizes("repeats")
    def repeat(self, repeats: tuple[object, ...], *, axis: int | None = None) -> Tensor:
        """Repeats the whole tensor along every axis (``repeats`` covers all axes).

        Args:
            repeats: How often, per axis; more numbers than axes add axes at the front.
            axis: Repeats every element along this axis instead, ``repeats`` times or as often as
                ``repeats`` says per slice, as programs for MindSpore before 2.5 mean it.

        Raises:
            ShapeError: if there are fewer repeats than axes.
        """
        if axis is not None:
            return F.repeat_interleave(self, repeats[0] if len(repeats) == 1 else [*repeats], axis)
        if len(repeats) < self.ndim:
            reject(ShapeError, "Tensor.repeat", f"{len(repeats)} repeats for {self.ndim} axes",
                   f"shape={self.shape}, repeats={repeats}",
                   "give one number per axis, or use repeat_interleave for one axis")  # fmt: skip
        return F.tile(self, repeats)

    @_axis
    def repeat_interleave(
        self, repeats: object, axis: AxisLike | None = None, *, output_size: object = None
    ) -> Tensor:
        """Repeats every element; see :func:`tvmgraph.ops.repeat_interleave`.

        Args:
            repeats: How often, a number or one per slice along ``axis``.
            axis: The axis; ``None`` for the flattened tensor.
            output_size: Kept for MindSpore programs; the size is computed.
        """
        return F.repeat_interleave(self, repeats, axis)

    @_axis
    def chunk(self, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
        """Cuts into ``chunks`` parts; see :func:`tvmgraph.ops.chunk`.

        Args:
            chunks: How many parts, at most.
            axis: The axis.
        """
        return F.chunk(self, chunks, axis)

    @aliases(dim="axis", split_size="split_size_or_sections")
    def split(self, split_size_or_sections: object, axis: int = 0) -> tuple[Tensor, ...]:
        """Cuts into parts of the given sizes; see :func:`tvmgraph.ops.split`.

        Args:
            split_size_or_sections: Size of every part but the last, or a sequence of sizes.
            axis: The axis.
        """
        return F.split(self, split_size_or_sections, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """The diagonal of a plane; see :func:`tvmgraph.ops.diagonal`.

        Args:
            offset: Which diagonal: that many columns to the right of the main one.
            axis1: First axis of the planes.
            axis2: Second axis of the planes.
        """
        return F.diagonal(self, offset, axis1, axis2)

    def roll(self, shifts: object, dims: AxisLike | None = None) -> Tensor:
        """Moves elements around cyclically; see :func:`tvmgraph.ops.roll`.

        Args:
            shifts: How many places, a number or one per axis.
            dims: Axis or axes; ``None`` for the flattened tensor.
        """
        return F.roll(self, shifts, dims)

    # ---- arithmetic -------------------------------------------------------------------------

    def add(self, other: object, *, alpha: object = 1) -> Tensor:
        """Adds ``alpha * other``; see :func:`tvmgraph.ops.add`.

        Args:
            other: A tensor or number that broadcasts with this one.
            alpha: Factor of ``other``.
        """
        return F.add(self, other if alpha == 1 else F.mul(other, alpha))

    @aliases(y="other")
    def sub(self, other: object, *, alpha: object = 1) -> Tensor:
        """Subtracts ``alpha * other``; see :func:`tvmgraph.ops.sub`.

        Args:
            other: A tensor or number that broadcasts with this one.
            alpha: Factor of ``other``.
        """
        return F.sub(self, other if alpha == 1 else F.mul(other, alpha))

    def subtract(self, other: object, alpha: object = 1) -> Tensor:
        """Subtracts ``alpha * other``; see :func:`tvmgraph.ops.sub`.

        Args:
            other: A tensor or number that broadcasts with this one.
            alpha: Factor of ``other``.
        """
        return self.sub(other, alpha=alpha)

    @aliases(divisor="other")
    def remainder(self, other: object) -> Tensor:
        """Remainder with the sign of the divisor; see :func:`tvmgraph.ops.remainder`.

        Args:
            other: The divisor, a tensor or number that broadcasts with this tensor.
        """
        return F.remainder(self, other)

    @aliases(x2="other")
    def isclose(self, other: object, rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> Tensor:  # fmt: skip
        r"""Whether elements are nearly equal: :math:`|self - other| \le atol + rtol |other|`; see
        :func:`tvmgraph.ops.isclose`.

        Args:
            other: A tensor or number that broadcasts with this one.
            rtol: Relative tolerance.
            atol: Absolute tolerance.
            equal_nan: Whether NaN equals NaN.
        """
        return F.isclose(self, other, rtol, atol, equal_nan)

    def allclose(self, other: object, rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:  # fmt: skip
        """Whether all elements are nearly equal.

        Args:
            other: A tensor or number that broadcasts with this one.
            rtol: Relative tolerance.
            atol: Absolute tolerance.
            equal_nan: Whether NaN equals NaN.
        """
        return bool(F.all(F.isclose(self, other, rtol, atol, equal_nan)))

    def round(self, decimals: int = 0) -> Tensor:
        """Rounds half to even; see :func:`tvmgraph.ops.round`.

        Args:
            decimals: Digits after the point; negative ones round to tens, hundreds and so on.
        """
        return F.round(self, decimals=decimals)

    def qr(self, some: bool = True) -> tuple[Tensor, Tensor]:
        """QR decomposition, reduced when ``some``; see :func:`tvmgraph.ops.qr`.

        Args:
            some: Whether the factors are reduced.
        """
        return F.qr(self, "reduced" if some else "complete")

    def diag(self, diagonal: int = 0) -> Tensor:
        """Puts the elements on a diagonal; see :func:`tvmgraph.ops.diag`.

        With ``diagonal`` other than 0: a vector goes to that diagonal of a matrix, and of a
        matrix that diagonal is taken.

        Args:
            diagonal: Which diagonal: that many columns to the right of the main one.
        """
        if diagonal == 0:
            return F.diag(self)
        return F.diagonal(self, diagonal) if self.ndim == 2 else F.diag_embed(self, diagonal)
