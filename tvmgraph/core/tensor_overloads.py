"""Tensor methods whose arguments differ from the operator function's.

MindSpore gives many methods two spellings (``axis``/``keepdims`` and ``dim``/``keepdim``); both
are accepted. Every method is a composite of operator functions, so it works in every mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.op import F
from tvmgraph.errors import DTypeError, ShapeError, user_source

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.core.types import TensorType

R = TypeVar("R")


def aliases(**names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Lets keyword ``alias`` stand for the parameter ``names[alias]``."""

    def wrap(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def method(self: object, *args: object, **kwargs: object) -> R:
            for alias in [k for k in kwargs if k in names] if kwargs else ():
                name = names[alias]
                if name in kwargs:
                    raise DTypeError(
                        f"{alias!r} and {name!r} are the same argument",
                        op=f"Tensor.{function.__name__}", at=user_source(), fix=f"pass {name} only",
                    )  # fmt: skip
                kwargs[name] = kwargs.pop(alias)
            return function(self, *args, **kwargs)

        return method

    return wrap


def of_numpy(function: Callable[..., R]) -> Callable[..., R]:
    """Leaves out ``out=None`` and ``dtype=None``, which ``np.mean(tensor)`` and others pass on."""

    @functools.wraps(function)
    def method(self: object, *args: object, **kwargs: object) -> R:
        if "out" in kwargs:
            if kwargs.pop("out") is not None:
                raise DTypeError(
                    "tensors are not written into", op=f"Tensor.{function.__name__}",
                    got="out=...", at=user_source(), fix="assign the result",
                )  # fmt: skip
            if kwargs.get("dtype", 0) is None:
                del kwargs["dtype"]
        return function(self, *args, **kwargs)

    return method


def _reduction(function: Callable[..., R]) -> Callable[..., R]:
    return of_numpy(aliases(dim="axis", keepdim="keepdims", keep_dims="keepdims")(function))


def _keepdim_second(function: Callable[..., R]) -> Callable[..., R]:
    """Accepts ``f(dim, keepdim, dtype=...)``, where the second argument is otherwise the dtype."""

    @functools.wraps(function)
    def method(self: object, *args: object, **kwargs: object) -> R:
        if len(args) == 2 and isinstance(args[1], bool):
            args, kwargs["keepdims"] = args[:1], args[1]
        return function(self, *args, **kwargs)

    return method


_axis = aliases(dim="axis")


def sizes_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Accepts ``f(2, 3)``, ``f((2, 3))`` and ``f(Tensor([2, 3]))``."""
    given: object = sizes[0] if len(sizes) == 1 else None
    if isinstance(given, (tuple, list)):
        return tuple(sizes[0])
    if isinstance(given, TensorOverloads) and len(given.shape) == 1:
        return tuple(given.array.tolist())
    return sizes


def _sizes(*names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Collects ``f(2, 3)``, ``f((2, 3))`` and ``f(name=(2, 3))`` into one tuple argument."""

    def wrap(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def method(self: object, *args: object, **kwargs: object) -> R:
            for name in [k for k in kwargs if k in names]:
                args = (*args, kwargs.pop(name))
            return function(self, sizes_of(args), **kwargs)

        return method

    return wrap


def is_int(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer that is neither a bool nor a tensor."""
    return hasattr(value, "__index__") and not isinstance(value, (bool, TensorOverloads))


class TensorOverloads:
    """Mixin of :class:`~tvmgraph.core.tensor.Tensor`."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Tensor defines

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def dtype(self) -> dtypes.DType: ...

        type: TensorType
        array: np.ndarray

        def asnumpy(self) -> np.ndarray: ...
        @staticmethod
        def from_numpy(array: np.ndarray) -> Tensor: ...
        def __getitem__(self, index: object) -> Tensor: ...
        def host(self) -> np.ndarray: ...
        def rebind(self, new: Tensor) -> Self: ...
        def snapshot(self) -> Tensor: ...
        @property
        def device(self) -> str: ...
        def placed(self, name: str) -> Tensor | Self: ...

    # ---- reductions -------------------------------------------------------------------------

    @_keepdim_second
    @_reduction
    def sum(
        self,
        axis: AxisLike | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: object = None,
    ) -> Tensor:
        """Sums over ``axis``; see :func:`tvmgraph.ops.sum`. ``initial`` is added to the result."""
        y = F.sum(self, axis, keepdims, dtype=dtype)
        if initial is None:
            return y
        return y + initial if dtype is None else F.cast(y + initial, dtype)

    @_reduction
    def mean(
        self,
        axis: AxisLike | None = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Averages over ``axis``; see :func:`tvmgraph.ops.mean`."""
        return F.mean(self if dtype is None else F.cast(self, dtype), axis, keepdims)

    @_reduction
    def prod(
        self, axis: AxisLike | None = None, keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Multiplies over ``axis``; see :func:`tvmgraph.ops.prod`."""
        return F.prod(self, axis, keepdims, dtype)

    @_reduction
    def nansum(
        self,
        axis: AxisLike | None = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Sums over ``axis`` with NaN as zero; see :func:`tvmgraph.ops.nansum`."""
        return F.nansum(self, axis, keepdims, dtype=dtype)

    @_reduction
    def all(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Whether all elements over ``axis`` are true; see :func:`tvmgraph.ops.all`."""
        return F.all(self, axis, keepdims)

    @_reduction
    def any(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Whether any element over ``axis`` is true; see :func:`tvmgraph.ops.any`."""
        return F.any(self, axis, keepdims)

    @_reduction
    def count_nonzero(
        self, axis: AxisLike = (), keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Counts non-zero elements; see :func:`tvmgraph.ops.count_nonzero`."""
        return F.count_nonzero(self, axis, keepdims, dtypes.int32 if dtype is None else dtype)

    @_reduction
    def argmax(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Index of the largest element; see :func:`tvmgraph.ops.argmax`."""
        return F.argmax(self, axis, keepdims)

    @_reduction
    def argmin(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Index of the smallest element; see :func:`tvmgraph.ops.argmin`."""
        return F.argmin(self, axis, keepdims)

    def _extreme(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor | tuple[Tensor, Tensor]:
        """``max(dim)`` gives values and indices, ``max()`` and ``max(axis=...)`` only values.

        Several axes give only values, however they are named.
        """
        with_indices = "dim" in kwargs or (bool(args) and not {"keepdims", "initial"} & set(kwargs))
        axis, keepdims, initial, where, indices = _extreme_arguments(*args, **kwargs)
        one = axis is not None and not isinstance(axis, (tuple, list))
        if (with_indices or indices) and one:
            return getattr(F, name)(self, axis, keepdims, initial=initial, where=where)
        return getattr(F, f"a{name}")(self, axis, keepdims, initial=initial, where=where)

    @of_numpy
    def max(self, *args: object, **kwargs: object) -> Any:
        """Largest element over an axis.

        ``max()`` and ``max(axis=..., keepdims=False, *, initial=None, where=None)`` return the
        values, ``max(dim, keepdim=False)`` and ``max(axis=..., return_indices=True)`` also their
        indices; see :func:`tvmgraph.ops.max` and :func:`tvmgraph.ops.amax`.
        """
        return self._extreme("max", args, kwargs)

    @of_numpy
    def min(self, *args: object, **kwargs: object) -> Any:
        """Smallest element over an axis; the argument forms are those of :meth:`max`."""
        return self._extreme("min", args, kwargs)

    def argmax_with_value(
        self, axis: int | None = 0, keep_dims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Returns the largest elements along ``axis``, and their indices."""
        return F.max(self) if axis is None else F.max(self, axis, keep_dims)

    def argmin_with_value(
        self, axis: int | None = 0, keep_dims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Returns the smallest elements along ``axis``, and their indices."""
        return F.min(self) if axis is None else F.min(self, axis, keep_dims)

    def _moment(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        if "correction" in kwargs or "dim" in kwargs:  # that form divides by n - 1 by default
            kwargs.setdefault("correction", 1)
        return _moment_call(self, name, *args, **kwargs)

    @of_numpy
    def std(self, *args: object, **kwargs: object) -> Tensor:
        """Standard deviation; ``std(axis=None, ddof=0, keepdims=False)`` (see
        :func:`tvmgraph.ops.std`) or ``std(dim=None, *, correction=1, keepdim=False)``.
        """
        return self._moment("std", args, kwargs)

    @of_numpy
    def var(self, *args: object, **kwargs: object) -> Tensor:
        """Variance; the argument forms are those of :meth:`std`."""
        return self._moment("var", args, kwargs)

    @_reduction
    def median(self, axis: AxisLike = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
        """Lower median along ``axis`` and its index; see :func:`tvmgraph.ops.median`."""
        return F.median(self, axis, keepdims)

    def ptp(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Largest minus smallest element over ``axis``."""
        return F.amax(self, axis, keepdims) - F.amin(self, axis, keepdims)

    @_axis
    def cumsum(self, axis: AxisLike | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """Running sum along ``axis`` (of all elements when None); see
        :func:`tvmgraph.ops.cumsum`. Integers narrower than int32 are summed in int32.
        """
        if dtype is None and not self.dtype.is_float and self.dtype.itemsize < 4:
            dtype = dtypes.int32
        return F.cumsum(F.ravel(self), 0, dtype) if axis is None else F.cumsum(self, axis, dtype)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Sum of a diagonal, int64 for integers; see :func:`tvmgraph.ops.trace`."""
        dtype = dtypes.int64 if dtype is None and self.dtype.is_integer else dtype
        x = self if dtype is None else F.cast(self, dtype)
        if (offset, axis1, axis2, self.ndim) == (0, 0, 1, 2):
            return F.trace(x)
        return F.sum(F.diagonal(x, offset, axis1, axis2), -1)

    # ---- order ------------------------------------------------------------------------------

    @_axis
    def sort(
        self, axis: int = -1, descending: bool = False, stable: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Sorts along ``axis`` and also returns the indices; see :func:`tvmgraph.ops.sort`.

        The order of equal elements is always kept, whatever ``stable`` says.
        """
        return F.sort(self, axis, descending)

    @_axis
    def argsort(self, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """Indices that sort along ``axis``; see :func:`tvmgraph.ops.argsort`."""
        return F.argsort(self, axis, descending)

    def searchsorted(self, v: object, side: str = "left", sorter: object = None) -> Tensor:
        """Positions at which ``v`` fits into the sorted tensor (int32); see
        :func:`tvmgraph.ops.searchsorted`.
        """
        v = v if isinstance(v, TensorOverloads) else F.scalar_to_tensor(v, self.dtype)
        return F.searchsorted(self, v, side=side, sorter=sorter, out_int32=True)

    # ---- shape ------------------------------------------------------------------------------

    @_sizes("shape")
    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        """The same elements in another shape: ``reshape(2, 3)`` or ``reshape((2, 3))``."""
        return F.reshape(self, shape)

    def view(self, *shape: object, dtype: dtypes.DType | None = None) -> Tensor:
        """The same elements in another shape; storage is never shared observably.

        A dtype instead of a shape reads the bytes of the last axis as its elements.

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
            raise ShapeError(
                f"the last axis does not hold whole elements of {dtype.name}", op="Tensor.view",
                got=f"input={self.type}", at=user_source(), fix="convert the numbers with astype",
            )  # fmt: skip
        return self.from_numpy(np.ascontiguousarray(old).view(kind).copy())

    def reshape_as(self, other: Tensor) -> Tensor:
        """The same elements in the shape of ``other``."""
        return F.reshape(self, other.shape)

    @_sizes("new_shape", "sizes")
    def resize(self, new_shape: tuple[int, ...]) -> Tensor:
        """The first elements in a new shape, padded with zeros at the end when it is larger."""
        size, flat = math.prod(new_shape), F.reshape(self, (-1,))
        if size > self.size:
            flat = F.concat((flat, F.zeros((size - self.size,), self.dtype)))
        return F.reshape(flat[:size], new_shape)

    def transpose(self, *axes: object, **dims: object) -> Tensor:
        """Permutes the axes, or swaps two of them: ``transpose(dim0, dim1)``.

        Without arguments the axes are reversed; one tuple or ``ndim`` integers give the order;
        two integers are swapped.
        """
        if dims:
            return F.swapaxes(self, *axes, **{k.replace("dim", "axis"): v for k, v in dims.items()})
        if len(axes) == 2 and is_int(axes[0]):
            return F.swapaxes(self, *axes)
        order = sizes_of(axes) if axes and axes[0] is not None else range(self.ndim)[::-1]
        return F.transpose(self, tuple(order))

    @_sizes("axis", "dims")
    def permute(self, axis: tuple[object, ...]) -> Tensor:
        """Permutes the axes: ``permute(1, 0)`` or ``permute((1, 0))``."""
        return F.permute(self, axis)

    def squeeze(
        self, *dims: object, dim: AxisLike | None = None, axis: AxisLike | None = None
    ) -> Tensor:
        """Removes axes of size 1; see :func:`tvmgraph.ops.squeeze`."""
        if not dims:
            return F.squeeze(self, axis if dim is None else dim)
        return F.squeeze(self, dims[0] if len(dims) == 1 else tuple(dims))

    def flatten(
        self, order: str | int = "C", *more: int, start_dim: int = 0, end_dim: int = -1
    ) -> Tensor:
        """Merges axes: ``flatten(start_dim=0, end_dim=-1)``; ``order`` "F" reads columns first."""
        if is_int(order):
            order, start_dim, end_dim = "C", order, more[0] if more else end_dim
        return F.flatten(self, order, start_dim=start_dim, end_dim=end_dim)

    @_sizes("size")
    def expand(self, size: tuple[object, ...]) -> Tensor:
        """Repeats axes of size 1 to reach ``size``; -1 keeps an axis."""
        return F.broadcast_to(self, size)

    @_sizes("shape")
    def broadcast_to(self, shape: tuple[object, ...]) -> Tensor:
        """Repeats axes of size 1 to reach ``shape``; see :func:`tvmgraph.ops.broadcast_to`."""
        return F.broadcast_to(self, shape)

    @aliases(x="other")
    def expand_as(self, other: Tensor) -> Tensor:
        """Repeats axes of size 1 to reach the shape of ``other``."""
        return F.broadcast_to(self, other.shape)

    @_sizes("size")
    def sum_to_size(self, size: tuple[int, ...]) -> Tensor:
        """Sums over the axes along which ``size`` would be broadcast to this shape.

        Raises:
            ShapeError: if ``size`` does not broadcast to the tensor's shape.
        """
        shape = tuple(int(s) for s in size)
        fits = len(shape) <= self.ndim and all(
            d in (1, full) for d, full in zip(shape[::-1], self.shape[::-1])
        )
        if not fits:
            raise ShapeError(
                f"{list(shape)} does not broadcast to {list(self.shape)}",
                op="Tensor.sum_to_size", got=f"size={shape}", at=user_source(),
            )  # fmt: skip
        lead = self.ndim - len(shape)
        axes = (*range(lead), *(lead + i for i, d in enumerate(shape) if d != self.shape[lead + i]))
        return F.reshape(F.sum(self, axes, True) if axes else self, shape)

    @_sizes("dims", "reps")
    def tile(self, dims: tuple[object, ...]) -> Tensor:
        """Repeats the whole tensor; see :func:`tvmgraph.ops.tile`."""
        return F.tile(self, dims)

    @_sizes("repeats")
    def repeat(self, repeats: tuple[object, ...]) -> Tensor:
        """Repeats the whole tensor along every axis (``repeats`` covers all axes).

        Raises:
            ShapeError: if there are fewer repeats than axes.
        """
        if len(repeats) < self.ndim:
            raise ShapeError(
                f"{len(repeats)} repeats for {self.ndim} axes", op="Tensor.repeat",
                got=f"shape={self.shape}, repeats={repeats}", at=user_source(),
                fix="give one number per axis, or use repeat_interleave for one axis",
            )  # fmt: skip
        return F.tile(self, repeats)

    @_axis
    def repeat_interleave(
        self, repeats: object, axis: AxisLike | None = None, *, output_size: object = None
    ) -> Tensor:
        """Repeats every element; see :func:`tvmgraph.ops.repeat_interleave`."""
        return F.repeat_interleave(self, repeats, axis)

    @_axis
    def chunk(self, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
        """Cuts into ``chunks`` parts; see :func:`tvmgraph.ops.chunk`."""
        return F.chunk(self, chunks, axis)

    @aliases(dim="axis", split_size="split_size_or_sections")
    def split(self, split_size_or_sections: object, axis: int = 0) -> tuple[Tensor, ...]:
        """Cuts into parts of the given sizes; see :func:`tvmgraph.ops.split`."""
        return F.split(self, split_size_or_sections, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """The diagonal of a plane; see :func:`tvmgraph.ops.diagonal`."""
        return F.diagonal(self, offset, axis1, axis2)

    def roll(self, shifts: object, dims: AxisLike | None = None) -> Tensor:
        """Moves elements around cyclically; see :func:`tvmgraph.ops.roll`."""
        return F.roll(self, shifts, dims)

    # ---- arithmetic -------------------------------------------------------------------------

    def add(self, other: object, *, alpha: object = 1) -> Tensor:
        """Adds ``alpha * other``; see :func:`tvmgraph.ops.add`."""
        return F.add(self, other if alpha == 1 else F.mul(other, alpha))

    @aliases(y="other")
    def sub(self, other: object, *, alpha: object = 1) -> Tensor:
        """Subtracts ``alpha * other``; see :func:`tvmgraph.ops.sub`."""
        return F.sub(self, other if alpha == 1 else F.mul(other, alpha))

    def subtract(self, other: object, alpha: object = 1) -> Tensor:
        """Subtracts ``alpha * other``; see :func:`tvmgraph.ops.sub`."""
        return self.sub(other, alpha=alpha)

    @aliases(divisor="other")
    def remainder(self, other: object) -> Tensor:
        """Remainder with the sign of the divisor; see :func:`tvmgraph.ops.remainder`."""
        return F.remainder(self, other)

    @aliases(x2="other")
    def isclose(self, other: object, rtol: float = 1e-5, atol: float = 1e-8,
                equal_nan: bool = False) -> Tensor:  # fmt: skip
        """Whether elements are nearly equal; see :func:`tvmgraph.ops.isclose`."""
        return F.isclose(self, other, rtol, atol, equal_nan)

    def allclose(self, other: object, rtol: float = 1e-5, atol: float = 1e-8,
                 equal_nan: bool = False) -> bool:  # fmt: skip
        """Whether all elements are nearly equal."""
        return bool(F.all(F.isclose(self, other, rtol, atol, equal_nan)))

    def round(self, decimals: int = 0) -> Tensor:
        """Rounds half to even; see :func:`tvmgraph.ops.round`."""
        return F.round(self, decimals=decimals)

    def qr(self, some: bool = True) -> tuple[Tensor, Tensor]:
        """QR decomposition, reduced when ``some``; see :func:`tvmgraph.ops.qr`."""
        return F.qr(self, "reduced" if some else "complete")

    def diag(self, diagonal: int = 0) -> Tensor:
        """Puts the elements on a diagonal; see :func:`tvmgraph.ops.diag`.

        With ``diagonal`` other than 0: a vector goes to that diagonal of a matrix, and of a
        matrix that diagonal is taken.
        """
        if diagonal == 0:
            return F.diag(self)
        return F.diagonal(self, diagonal) if self.ndim == 2 else F.diag_embed(self, diagonal)


def _extreme_arguments(
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    keep_dims: bool = False,
    initial: object = None,
    where: object = None,
    return_indices: bool = False,
) -> tuple[AxisLike | None, bool, object, object, bool]:
    where = None if where is True else where
    kept = keepdims or keepdim or keep_dims
    return (dim if axis is None else axis), kept, initial, where, return_indices


def _moment_call(
    self: TensorOverloads, name: str, axis: AxisLike | None = None, ddof: object = 0,
    keepdims: bool = False, *,
    dim: AxisLike | None = None, correction: object = None, keepdim: bool = False,
) -> Tensor:  # fmt: skip
    ddof = ddof if correction is None else correction
    self = F.cast(self, dtypes.float32) if self.dtype.kind in "biu" else self
    return getattr(F, name)(self, dim if axis is None else axis, ddof, keepdims or keepdim)
