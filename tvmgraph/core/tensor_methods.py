"""The method forms of the operators, as tables.

A plain method *is* the operator function: ``Tensor.abs`` is ``ops.abs``, looked up at first use so
that importing the package loads no operator. An in-place method computes the method of its name
without the underscore and stores the result. Methods whose arguments differ from the function's
are written out in :mod:`.tensor_reductions`, :mod:`.tensor_overloads` and :mod:`.tensor_access`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike, ReflectedError
from tvmgraph.core.in_place import compute_over, fill
from tvmgraph.core.op import F
from tvmgraph.core.state import state
from tvmgraph.core.tensor_access import TensorAccess
from tvmgraph.core.tensor_overloads import sizes_of
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor

# methods that take exactly the arguments of the function of the same name
PLAIN = """
abs absolute acos acosh addbmm addcdiv addcmul addmm addmv addr adjoint amax amin aminmax angle
approximate_equal arccos arccosh arcsin arcsinh arctan arctan2 arctanh argwhere asin asinh atan
atan2 atanh baddbmm bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor bmm ceil cholesky cholesky_inverse cholesky_solve clamp clip
col2im conj copysign cos cosh cov cross cummax cummin cumprod deg2rad det diagflat
diagonal_scatter diff digamma div divide dot dsplit eigvals eq equal erf erfc erfinv exp
expand_dims expm1 fills flip fliplr flipud floor floor_divide fmax fmin fmod fold frac
gather_elements gather_nd gcd ge geqrf ger greater greater_equal gt hardshrink heaviside histc
hsplit hypot i0 igamma igammac imag index_fill inner inplace_update inv inverse invert is_complex
is_floating_point isfinite isinf isnan isneginf isposinf isreal kthvalue lcm ldexp le lerp less
less_equal lgamma log log10 log1p log2 log_matrix_determinant logaddexp logaddexp2 logcumsumexp
logdet logical_and logical_not logical_or logical_xor logit logsumexp lstsq lt lu_solve
masked_fill masked_scatter masked_select matmul matrix_determinant matrix_power maximum minimum mm
move_to moveaxis movedim
msort mul multinomial mvlgamma nan_to_num nanmean nanmedian nanquantile
narrow ne neg negative nextafter nonzero norm not_equal orgqr ormqr outer positive pow quantile
rad2deg random_categorical ravel real reciprocal renorm reverse rot90 rsqrt
select_scatter sgn sigmoid sign signbit sin sinc sinh slice_scatter slogdet soft_shrink softmax
sqrt square svd swapaxes swapdims t tan tanh tensor_split top_k topk triangular_solve
tril triu true_divide trunc type_as unbind unfold unique_consecutive unique_with_pad
unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum unsqueeze
view_as vsplit xdivy xlogy
""".split()  # noqa: SIM905  (one word each)

# methods that are a function of another name
RENAMED = {
    "detach": "stop_gradient",
    "scatter_div": "tensor_scatter_div",
    "scatter_max": "tensor_scatter_max",
    "scatter_min": "tensor_scatter_min",
    "scatter_mul": "tensor_scatter_mul",
    "scatter_sub": "tensor_scatter_sub",
    "to_coo": "dense_to_sparse_coo",
    "to_csr": "dense_to_sparse_csr",
}

# name_() stores the result of name()
IN_PLACE = """
abs add addmm ceil clamp clip cos div divide erfinv exp exponential fill_diagonal floor
floor_divide index_add index_fill log masked_fill masked_scatter mul neg pow
reciprocal remainder round rsqrt scatter scatter_add sigmoid sign sin sqrt square sub tanh trunc
""".split()  # noqa: SIM905  (one word each)

CASTS = {
    "bfloat16": dtypes.bfloat16, "bool": dtypes.bool_, "byte": dtypes.uint8,
    "double": dtypes.float64, "float": dtypes.float32, "half": dtypes.float16,
    "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16,
}  # fmt: skip

# what NumPy calls these, which differs from what a bare Python number becomes
_NUMPY_NAMES: dict[object, dtypes.DType] = {
    float: dtypes.float64, "float": dtypes.float64, "int": dtypes.int64, "single": dtypes.float32,
    "byte": dtypes.int8, "ubyte": dtypes.uint8, "short": dtypes.int16, "ushort": dtypes.uint16,
    "intc": dtypes.int32, "uintc": dtypes.uint32, "intp": dtypes.int64, "uintp": dtypes.uint64,
    "long": dtypes.int64, "uint": dtypes.uint64,
}  # fmt: skip


def binary(name: str, reflected: bool = False) -> Callable[[Tensor, object], Tensor]:
    """Builds a binary operator method that calls the table's function ``name``.

    Args:
        name: Name of the function.
        reflected: Whether the tensor is its second operand.
    """
    function: Callable[[object, object], Tensor] | None = None

    def find() -> Callable[[object, object], Tensor]:  # at the first call
        nonlocal function
        function = getattr(F, name)
        assert function is not None
        return function

    def call(self: Tensor, other: object) -> Tensor:
        try:
            return (function or find())(self, other)
        except ReflectedError:
            return NotImplemented

    def call_reflected(self: Tensor, other: object) -> Tensor:
        return (function or find())(other, self)

    return call_reflected if reflected else call


def unary(name: str) -> Callable[[Tensor], Tensor]:
    """Builds a unary operator method that calls the table's function ``name``.

    Args:
        name: Name of the function.
    """

    def call(self: Tensor) -> Tensor:
        return getattr(F, name)(self)

    return call


class _Forward:
    """Becomes the operator function ``target`` the first time the method is used."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        try:
            function = getattr(F, self.target)
        except NotFoundError as e:
            raise NotFoundError(f"'Tensor' object has no attribute {self.name!r}") from e
        setattr(self.owner, self.name, function)
        return function if instance is None else function.__get__(instance, owner)


def _in_place(name: str) -> Callable[..., TensorMethods]:
    def method(self: TensorMethods, *args: object, **kwargs: object) -> TensorMethods:
        if not kwargs and compute_over(self, name, args):  # pyright: ignore[reportArgumentType]
            return self
        return self._store(getattr(self, name)(*args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Stores the result of :meth:`{name}` in this tensor and returns it."
    return method


def _cast(name: str, dtype: dtypes.DType) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return self.snapshot() if self.dtype is dtype else F.cast(self, dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Converts to {dtype.name}; see :func:`tvmgraph.ops.cast`."
    return method


class TensorMethods(TensorAccess):
    """Mixin of :class:`~tvmgraph.core.tensor.Tensor`: every method that is an operator."""

    __slots__ = ()

    def _store(self, new: Tensor) -> Self:
        """Stores ``new``, rounding it to this dtype where that loses no kind of number."""
        ranks = "biufc"
        if new.dtype is not self.dtype and (
            ranks.index(new.dtype.kind.replace("u", "i")) <= ranks.index(self.dtype.kind)
        ):
            new = F.cast(new, self.dtype)
        return self.rebind(new)

    # ---- what it is -------------------------------------------------------------------------

    def dim(self) -> int:
        """Returns the number of axes."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """Returns the number of elements."""
        return self.size

    nelement = numel

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self.dtype.kind in "ifc"

    def is_pinned(self) -> bool:
        """Whether the elements lie in host memory locked for a device: never."""
        return False

    def is_shared(self) -> bool:
        """Whether the elements lie in memory that processes share: never."""
        return False

    @property
    def is_meta(self) -> bool:
        """Whether it has a shape and no elements, which no tensor here is."""
        return False

    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        # a value of a graph has no layout yet; the compiler lays it out in order
        return state.interpreter is not None or bool(self.array.flags.c_contiguous)

    def stride(self, dim: int | None = None) -> int | list[int]:
        """Elements to step along every axis, or along ``dim``.

        Args:
            dim: The axis; ``None`` for all.
        """
        if state.interpreter is not None:
            steps = [math.prod(self.shape[i + 1 :]) for i in range(self.ndim)]
        else:
            steps = [s // self.dtype.itemsize for s in self.array.strides]
        return steps if dim is None else steps[dim]

    def storage_offset(self) -> int:
        """Position of the first element in the storage; tensors share no storage, so 0."""
        return 0

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self.array.ctypes.data)

    def get_bytes(self) -> bytes:
        """Returns the elements as bytes."""
        return self.array.tobytes()

    @property
    def init(self) -> None:
        """The pending initializer; always None, values are set at once."""
        return None

    @property
    def has_init(self) -> bool:
        """Whether initialisation is pending; always false."""
        return False

    @property
    def data(self) -> Self:
        """The tensor itself."""
        return self

    @property
    def H(self) -> Tensor:  # noqa: N802
        """The conjugate transpose of a matrix."""
        return F.conj(F.swapaxes(self, -1, -2))

    mH = H  # noqa: N815

    # ---- functions whose arguments have other names or defaults ------------------------------

    def float_power(self, other: object) -> Tensor:
        """Power computed in float64; see :func:`tvmgraph.ops.float_power`.

        Args:
            other: The exponent, a tensor or a number.
        """
        return F.float_power(self, other)

    def multiply(self, value: object) -> Tensor:
        """Product, elementwise; see :func:`tvmgraph.ops.mul`.

        Args:
            value: A tensor or a number.
        """
        return F.mul(self, value)

    def reverse_sequence(self, seq_lengths: Tensor, seq_dim: int = 0, batch_dim: int = 0) -> Tensor:
        """Reverses the beginnings of sequences; see :func:`tvmgraph.ops.reverse_sequence`.

        Args:
            seq_lengths: How many elements of every sequence are reversed.
            seq_dim: Axis of the sequences.
            batch_dim: Axis of the batch.
        """
        return F.reverse_sequence(self, seq_lengths, seq_dim, batch_dim)

    # ---- copies and conversion --------------------------------------------------------------

    def copy(self) -> Tensor:
        """Returns a tensor with the same elements; gradients flow through it."""
        if state.interpreter is not None or state.tapes:
            return F.identity(self)
        return self.snapshot().__copy__()

    def clone(self) -> Tensor:
        """Returns a tensor with the same elements; see :meth:`copy`."""
        return self.copy()

    def contiguous(self) -> Tensor | Self:
        """Returns the tensor with its elements in row-major order."""
        return self if self.is_contiguous() else self.copy()

    def value(self) -> Tensor:
        """Returns a tensor that keeps the current elements."""
        return self.snapshot()

    def init_data(self, *_: object, **__: object) -> Self:
        """Returns the tensor, which is always initialised; for MindSpore programs.

        Args:
            *_: Left aside, as the keyword arguments are.
        """
        return self

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Tensor | Self:
        """Converts to ``dtype``: a dtype, a name such as "float32", a NumPy or Python type.

        ``float`` and ``int`` mean float64 and int64, as in NumPy.

        Args:
            dtype: The new dtype.
            copy: Whether to copy even when nothing changes.
        """
        key = dtype.lower() if isinstance(dtype, str) else dtype
        known = isinstance(key, (str, type)) and _NUMPY_NAMES.get(key)
        return self.to(known or dtypes.dtype_of(dtype), copy=copy)

    def type(self, dtype: DTypeLike | None = None) -> str | Tensor | Self:
        """Returns the dtype's name such as ``"Float32"``, or the tensor converted to ``dtype``.

        Args:
            dtype: The new dtype, as in :meth:`astype`.
        """
        return str(self.dtype) if dtype is None else self.astype(dtype)

    def to(self, *args: Any, device: str | None = None, dtype: DTypeLike | None = None,
           other: TensorMethods | None = None, non_blocking: bool = False,
           copy: bool = False) -> Tensor | Self:  # fmt: skip
        """Converts dtype and device: ``to(dtype)``, ``to(device, dtype)`` or ``to(other)``.

        Args:
            args: dtype, device name or tensor, in any of the three forms.
            device: ``"CPU"``, ``"GPU"`` or ``"GPU:<number>"``.
            dtype: New dtype.
            other: Tensor whose dtype (and device) to take.
            non_blocking: Kept for MindSpore programs; conversion is always finished on return.
            copy: Whether to copy even when nothing changes.

        Raises:
            DeviceError: if there is no such device.
        """
        for a in args:
            if isinstance(a, TensorMethods):
                other = a
            elif isinstance(a, str) and not _names_dtype(a):
                device = a
            elif a is not None:
                dtype = a
        if other is not None:
            dtype, device = other.dtype, other.device if device is None else device
        moved = self if device is None else self.placed(device)
        dtype = self.dtype if dtype is None else dtypes.dtype_of(dtype)
        if dtype is not self.dtype:
            return F.cast(moved, dtype)
        return moved.copy() if copy and moved is self else moved

    # ---- new tensors ------------------------------------------------------------------------

    def fill(self, value: object) -> Tensor:
        """Returns a tensor of this shape and dtype whose elements are ``value``.

        Args:
            value: A number, or a tensor of one element.
        """
        return F.full_like(self, value, dtype=self.dtype)

    def new_zeros(self, size: object, *more: object, dtype: DTypeLike | None = None) -> Tensor:
        """Returns zeros of shape ``size`` and this dtype unless ``dtype`` is given.

        Args:
            size: The shape, or the size of the first axis.
            *more: Sizes of further axes; the last one may be the dtype.
            dtype: The dtype.
        """
        more, dtype = _split_dtype(more, dtype)
        return F.zeros(_shape(size, more), self.dtype if dtype is None else dtype)

    def new_ones(self, size: object, *more: object, dtype: DTypeLike | None = None) -> Tensor:
        """Returns ones of shape ``size`` and this dtype unless ``dtype`` is given.

        Args:
            size: The shape, or the size of the first axis.
            *more: Sizes of further axes; the last one may be the dtype.
            dtype: The dtype.
        """
        more, dtype = _split_dtype(more, dtype)
        return F.ones(_shape(size, more), self.dtype if dtype is None else dtype)

    def new_full(
        self, size: object, fill_value: object, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Returns ``fill_value`` in shape ``size``, in this dtype unless ``dtype`` is given.

        Args:
            size: The shape.
            fill_value: A number, or a tensor of one element.
            dtype: The dtype.
        """
        return F.full(_shape(size, ()), fill_value, dtype=self.dtype if dtype is None else dtype)

    def new_empty(
        self, size: object, *, dtype: DTypeLike | None = None, device: str | None = None
    ) -> Tensor:
        """Returns a tensor of shape ``size``; its elements are zero.

        Args:
            size: The shape.
            dtype: The dtype; by default this tensor's.
            device: ``"CPU"``, ``"GPU"`` or ``"GPU:<number>"``; by default the host.

        Raises:
            DeviceError: if there is no such device.
        """
        made = self.new_zeros(size, dtype=dtype)
        return made if device is None else made.placed(device)

    # ---- random numbers ---------------------------------------------------------------------

    def bernoulli(self, *, generator: object = None) -> Tensor:
        """Draws 1 with the probability that each element gives; see
        :func:`tvmgraph.ops.bernoulli`.

        Args:
            generator: Where the numbers come from; by default the global stream.
        """
        return F.bernoulli(self, self, generator)

    def uniform(self, from_: float = 0.0, to: float = 1.0, generator: object = None) -> Tensor:
        """Draws uniform numbers in ``[from_, to)``, in this shape and dtype.

        Args:
            from_: The lower end.
            to: The upper end, excluded.
            generator: Where the numbers come from; by default the global stream.
        """
        return F.rand_like(self, generator) * (to - from_) + from_

    def normal_(self, mean: float = 0, std: float = 1, *, generator: object = None) -> Self:
        """Fills with normal numbers of the given mean and standard deviation.

        Args:
            mean: The mean.
            std: The standard deviation.
            generator: Where the numbers come from; by default the global stream.
        """
        return self._store(F.randn_like(self, generator) * std + mean)

    def uniform_(self, from_: float = 0, to: float = 1, *, generator: object = None) -> Self:
        """Fills with uniform numbers in ``[from_, to)``.

        Args:
            from_: The lower end.
            to: The upper end, excluded.
            generator: Where the numbers come from; by default the global stream.
        """
        return self._store(self.uniform(from_, to, generator))

    def random_(self, from_: int = 0, to: int | None = None, *, generator: object = None) -> Self:
        """Fills with uniform integers in ``[from_, to)``.

        Args:
            from_: The lower end.
            to: The upper end, excluded; by default the largest number up to which the dtype holds
                every integer, at most :math:`2^{62}`.
            generator: Where the numbers come from; by default the global stream.
        """
        if to is None:
            info = np.finfo(self.dtype.numpy) if self.dtype.is_float else np.iinfo(self.dtype.numpy)
            to = 2 ** min(info.nmant + 1, 62) if self.dtype.is_float else min(int(info.max), 2**62)  # pyright: ignore
        return self._store(F.cast(F.randint(from_, to, self.shape, generator), self.dtype))

    def exponential(self, lambd: float = 1, *, generator: object = None) -> Tensor:
        r"""Draws numbers of the exponential distribution: :math:`p(x) = \lambda e^{-\lambda x}`.

        Args:
            lambd: The rate :math:`\lambda > 0`.
            generator: Where the numbers come from; by default the global stream.
        """
        return F.neg(F.log1p(F.neg(F.rand_like(self, generator)))) / lambd

    def bernoulli_(self, p: object = 0.5, *, generator: object = None) -> Self:
        """Fills with 1 where a draw of probability ``p`` succeeds, else 0.

        Args:
            p: Probability in :math:`[0, 1]`, a number or a tensor that broadcasts to this shape.
            generator: Where the numbers come from; by default the global stream.
        """
        return self._store(F.cast(F.bernoulli(self, p, generator), self.dtype))

    def cauchy(self, median: float = 0.0, sigma: float = 1.0) -> Tensor:
        """Draws numbers of the Cauchy distribution, in this shape and dtype.

        Args:
            median: Median of the distribution.
            sigma: Half of its width at half of its height.
        """
        computed = self.dtype if self.dtype.is_float else dtypes.float32
        drawn = F.tan((F.rand_like(self, dtype=computed) - 0.5) * np.pi) * sigma + median
        return F.cast(drawn, self.dtype)

    def log_normal(self, mean: float = 1.0, std: float = 2.0) -> Tensor:
        """Draws numbers whose logarithm is normal, in this shape and dtype.

        Args:
            mean: Mean of the logarithms.
            std: Their standard deviation.
        """
        return F.exp(F.randn_like(self, dtype=self.dtype) * std + mean)

    # ---- in place ---------------------------------------------------------------------------

    def zero_(self) -> Self:
        """Fills with zeros."""
        return self.fill_(0)

    def fill_(self, value: object) -> Self:
        """Fills with a number, or a tensor of one element.

        Args:
            value: The number, or a tensor of one element.
        """
        return self if fill(self, value) else self._store(self.fill(value))  # pyright: ignore

    def copy_(self, src: object, non_blocking: bool = False) -> Self:
        """Stores the elements of ``src``, which is broadcast and converted to this dtype.

        Args:
            src: A tensor or number that broadcasts to this shape.
            non_blocking: Kept for MindSpore programs; the copy is always finished on return.
        """
        return self.rebind(F.cast(F.broadcast_to(src, self.shape), self.dtype))

    def put_(self, index: object, source: object, accumulate: bool = False) -> Self:
        """Writes (or adds) ``source`` at positions of the flattened tensor.

        Args:
            index: Positions, integers of any shape; negative ones count from the end.
            source: As many elements as ``index`` has.
            accumulate: Whether to add.
        """
        flat = F.reshape(self, (-1,))
        values = F.reshape(source, (-1,))
        new = flat.index_put((F.reshape(index, (-1,)),), values, accumulate)
        return self._store(F.reshape(new, self.shape))

    def itemset(self, *args: Any) -> Tensor:
        """Returns the tensor with one element replaced: ``itemset(index, value)``.

        Args:
            *args: One index per axis, one into the flattened tensor, or none if there is one
                element; then the value.

        Raises:
            ArgumentError: if no value is given.
        """
        if not args:
            raise ArgumentError("itemset() needs a value", op="Tensor.itemset")
        *index, value = args
        if not index:
            return F.reshape(F.full_like(self, value), self.shape)
        place: int | Sequence[int] = index[0]
        if not isinstance(place, tuple):
            place = [int(i) for i in np.unravel_index(place, self.shape)]
        return F.setitem(self, tuple(map(int, place)), value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether training updates a Parameter; other tensors have no such state.

        Args:
            requires_grad: Whether training updates it.

        Raises:
            DTypeError: if this is not a Parameter.
        """
        if not hasattr(self, "requires_grad"):
            raise DTypeError("only a Parameter has requires_grad", op="Tensor.requires_grad_")
        self.requires_grad = requires_grad
        return self


def _shape(size: object, more: tuple[object, ...]) -> tuple[int, ...]:
    return sizes_of((size, *more))


def _split_dtype(
    more: tuple[object, ...], dtype: DTypeLike | None
) -> tuple[tuple[object, ...], DTypeLike | None]:
    """Takes a dtype that was given by position out of what follows a size."""
    if dtype is None and len(more) == 1 and isinstance(more[0], dtypes.DType):
        return (), more[0]
    return more, dtype


def _names_dtype(name: str) -> bool:
    try:
        dtypes.dtype_of(name)
    except DTypeError:
        return False
    return True


def _attach() -> None:
    rows: dict[str, object] = {name: _Forward(name) for name in PLAIN}
    rows |= {name: _Forward(target) for name, target in RENAMED.items()}
    rows |= {f"{name}_": _in_place(name) for name in IN_PLACE}
    rows |= {name: _cast(name, dtype) for name, dtype in CASTS.items()}
    for name, row in rows.items():
        setattr(TensorMethods, name, row)
        if isinstance(row, _Forward):
            row.__set_name__(TensorMethods, name)


_attach()
