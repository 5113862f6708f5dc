"""Tensor methods that reduce axes, in MindSpore's two spellings.

``axis``/``keepdims`` and ``dim``/``keepdim`` are both accepted. Every method is a composite of
operator functions, so it works in every mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.op import F
from tvmgraph.errors import DTypeError, reject

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor
    from tvmgraph.core.types import TensorType

R = TypeVar("R")


#: Attributes by which this package tells tensors from other objects.
_TELLS_TENSORS = frozenset(("aval", "as_size", "as_tensor", "token"))


class Extremes(NamedTuple):
    """What ``max(dim)`` gives: values and indices, which stand for the values where no tuple can.

    MindSpore gives the pair in PyNative mode and the values in graph mode, where MindYOLO's losses
    ask ``ratios.max(2) < limit``: comparisons of it and attributes of a tensor are the values'.

    Args:
        values: The largest or smallest elements.
        indices: Where they are.
    """

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __lt__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.values < _values(other)

    def __le__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.values <= _values(other)

    def __gt__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.values > _values(other)

    def __ge__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.values >= _values(other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _TELLS_TENSORS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.values, name)


def _values(other: object) -> object:
    return other.values if isinstance(other, Extremes) else other


def aliases(**names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Lets keyword ``alias`` stand for the parameter ``names[alias]``.

    Args:
        **names: The parameter that every alias stands for.
    """

    def wrap(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def method(self: object, *args: object, **kwargs: object) -> R:
            for alias in [k for k in kwargs if k in names] if kwargs else ():
                name = names[alias]
                if name in kwargs:
                    raise DTypeError(
                        f"{alias!r} and {name!r} are the same argument",
                        op=f"Tensor.{function.__name__}", fix=f"pass {name} only",
                    )  # fmt: skip
                kwargs[name] = kwargs.pop(alias)
            return function(self, *args, **kwargs)

        return method

    return wrap


def of_numpy(function: Callable[..., R]) -> Callable[..., R]:
    """Leaves out ``out=None`` and ``dtype=None``, which ``np.mean(tensor)`` and others pass on.

    Args:
        function: A method.
    """

    @functools.wraps(function)
    def method(self: object, *args: object, **kwargs: object) -> R:
        if "out" in kwargs:
            if kwargs.pop("out") is not None:
                reject(DTypeError, f"Tensor.{function.__name__}", "tensors are not written into",
                       "out=...", "assign the result")  # fmt: skip
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


class TensorReductions:
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

        aval: TensorType
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

    @_keepdim_second
    @_reduction
    def sum(
        self,
        axis: AxisLike | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: object = None,
    ) -> Tensor:
        """Sums over ``axis``; see :func:`tvmgraph.ops.sum`. ``initial`` is added to the result.

        Args:
            axis: Axis or axes; ``None`` for all.
            dtype: dtype of sum and result; by default this tensor's, and int64 for integers and
                bools.
            keepdims: Whether reduced axes stay with size 1.
            initial: A number that is added.
        """
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
        """Averages over ``axis``; see :func:`tvmgraph.ops.mean`.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
            dtype: dtype that elements are converted to first.
        """
        return F.mean(self if dtype is None else F.cast(self, dtype), axis, keepdims)

    @_reduction
    def prod(
        self, axis: AxisLike | None = None, keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Multiplies over ``axis``; see :func:`tvmgraph.ops.prod`.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
            dtype: dtype of product and result; by default this tensor's, and int64 for integers and
                bools.
        """
        return F.prod(self, axis, keepdims, dtype)

    @_reduction
    def nansum(
        self,
        axis: AxisLike | None = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Sums over ``axis`` with NaN as zero; see :func:`tvmgraph.ops.nansum`.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
            dtype: dtype of sum and result.
        """
        return F.nansum(self, axis, keepdims, dtype=dtype)

    @_reduction
    def all(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Whether all elements over ``axis`` are true; see :func:`tvmgraph.ops.all`.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
        """
        return F.all(self, axis, keepdims)

    @_reduction
    def any(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Whether any element over ``axis`` is true; see :func:`tvmgraph.ops.any`.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
        """
        return F.any(self, axis, keepdims)

    @_reduction
    def count_nonzero(
        self, axis: AxisLike = (), keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Counts non-zero elements; see :func:`tvmgraph.ops.count_nonzero`.

        Args:
            axis: Axis or axes; ``()`` for all.
            keepdims: Whether reduced axes stay with size 1.
            dtype: dtype of the counts, by default int32.
        """
        return F.count_nonzero(self, axis, keepdims, dtypes.int32 if dtype is None else dtype)

    @_reduction
    def argmax(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Index of the largest element; see :func:`tvmgraph.ops.argmax`.

        Args:
            axis: The axis; ``None`` for the flattened tensor.
            keepdims: Whether the axis stays with size 1, if one is given.
        """
        return F.argmax(self, axis, keepdims)

    @_reduction
    def argmin(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Index of the smallest element; see :func:`tvmgraph.ops.argmin`.

        Args:
            axis: The axis; ``None`` for the flattened tensor.
            keepdims: Whether the axis stays with size 1, if one is given.
        """
        return F.argmin(self, axis, keepdims)

    def _extreme(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor | tuple[Tensor, Tensor]:
        """``max(dim)`` gives values and indices, ``max()`` and ``max(axis=...)`` only values.

        Several axes give only values, however they are named.
        """
        with_indices = "dim" in kwargs or (bool(args) and not {"keepdims", "initial"} & set(kwargs))
        axis, keepdims, initial, where, indices = _extreme_arguments(name, *args, **kwargs)
        one = axis is not None and not isinstance(axis, (tuple, list))
        if (with_indices or indices) and one:
            pair = getattr(F, name)(self, axis, keepdims, initial=initial, where=where)
            return Extremes(*pair)
        return getattr(F, f"a{name}")(self, axis, keepdims, initial=initial, where=where)

    @of_numpy
    def max(self, *args: object, **kwargs: object) -> Any:
        """Largest element over an axis.

        ``max()`` and ``max(axis=..., keepdims=False, *, initial=None, where=True)`` return the
        values, ``max(dim, keepdim=False)`` and ``max(axis=..., return_indices=True)`` also their
        indices; see :func:`tvmgraph.ops.max` and :func:`tvmgraph.ops.amax`.

        Args:
            *args: The axis, and whether it stays with size 1.
            **kwargs: The arguments of one of the forms by name.
        """
        return self._extreme("max", args, kwargs)

    @of_numpy
    def min(self, *args: object, **kwargs: object) -> Any:
        """Smallest element over an axis; the argument forms are those of :meth:`max`.

        Args:
            *args: The axis, and whether it stays with size 1.
            **kwargs: The arguments of one of the forms by name.
        """
        return self._extreme("min", args, kwargs)

    def argmax_with_value(
        self, axis: int | None = 0, keep_dims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Returns the largest elements along ``axis``, and their indices.

        Args:
            axis: The axis; ``None`` for the flattened tensor.
            keep_dims: Whether the axis stays with size 1.
        """
        return F.max(self) if axis is None else F.max(self, axis, keep_dims)

    def argmin_with_value(
        self, axis: int | None = 0, keep_dims: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Returns the smallest elements along ``axis``, and their indices.

        Args:
            axis: The axis; ``None`` for the flattened tensor.
            keep_dims: Whether the axis stays with size 1.
        """
        return F.min(self) if axis is None else F.min(self, axis, keep_dims)

    def _moment(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        if "correction" in kwargs or "dim" in kwargs:  # that form divides by n - 1 by default
            kwargs.setdefault("correction", 1)
        return _moment_call(self, name, *args, **kwargs)

    @of_numpy
    def std(self, *args: object, **kwargs: object) -> Tensor:
        """Standard deviation; ``std(axis=None, ddof=0, keepdims=False)`` (see
        :func:`tvmgraph.ops.std`) or ``std(dim=None, *, correction=1, keepdim=False)``.

        Args:
            *args: The arguments of one of the two forms.
            **kwargs: The same by name.
        """
        return self._moment("std", args, kwargs)

    @of_numpy
    def var(self, *args: object, **kwargs: object) -> Tensor:
        """Variance; the argument forms are those of :meth:`std`.

        Args:
            *args: The arguments of one of the two forms.
            **kwargs: The same by name.
        """
        return self._moment("var", args, kwargs)

    @_reduction
    def median(self, axis: AxisLike = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
        """Lower median along ``axis`` and its index; see :func:`tvmgraph.ops.median`.

        Args:
            axis: The axis.
            keepdims: Whether it stays with size 1.
        """
        return F.median(self, axis, keepdims)

    def ptp(self, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
        """Largest minus smallest element over ``axis``.

        Args:
            axis: Axis or axes; ``None`` for all.
            keepdims: Whether reduced axes stay with size 1.
        """
        return F.amax(self, axis, keepdims) - F.amin(self, axis, keepdims)

    @_axis
    def cumsum(self, axis: AxisLike | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """Running sum along ``axis`` (of all elements when None); see
        :func:`tvmgraph.ops.cumsum`. Integers narrower than int32 are summed in int32.

        Args:
            axis: The axis.
            dtype: dtype of the sums.
        """
        if dtype is None and not self.dtype.is_float and self.dtype.itemsize < 4:
            dtype = dtypes.int32
        return F.cumsum(F.ravel(self), 0, dtype) if axis is None else F.cumsum(self, axis, dtype)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Sum of a diagonal, int64 for integers; see :func:`tvmgraph.ops.trace`.

        Args:
            offset: Which diagonal: that many columns to the right of the main one.
            axis1: First axis of the planes.
            axis2: Second axis of the planes.
            dtype: dtype of sum and result.
        """
        dtype = dtypes.int64 if dtype is None and self.dtype.is_integer else dtype
        x = self if dtype is None else F.cast(self, dtype)
        if (offset, axis1, axis2, self.ndim) == (0, 0, 1, 2):
            return F.trace(x)
        return F.sum(F.diagonal(x, offset, axis1, axis2), -1)


def _extreme_arguments(
    name: str,
    /,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    keep_dims: bool = False,
    initial: object = None,
    where: object = True,
    return_indices: bool = False,
) -> tuple[AxisLike | None, bool, object, object, bool]:
    if isinstance(initial, TensorReductions) or where is None or type(return_indices) is not bool:
        reject(DTypeError, f"Tensor.{name}",
               "initial must be a number, where a bool or Tensor, return_indices a bool",
               f"{initial=!r:.40}, {where=!r:.40}, {return_indices=!r:.40}")  # fmt: skip
    where = None if where is True else where
    kept = keepdims or keepdim or keep_dims
    return (dim if axis is None else axis), kept, initial, where, return_indices


def _moment_call(
    self: TensorReductions, name: str, axis: AxisLike | None = None, ddof: object = 0,
    keepdims: bool = False, *,
    dim: AxisLike | None = None, correction: object = None, keepdim: bool = False,
) -> Tensor:  # fmt: skip
    ddof = ddof if correction is None else correction
    self = F.cast(self, dtypes.float32) if self.dtype.kind in "biu" else self
    return getattr(F, name)(self, dim if axis is None else axis, ddof, keepdims or keepdim)
