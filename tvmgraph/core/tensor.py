"""Tensor: an array with an interned type; its operators are resolved in the table at call time."""

# pyright: reportPrivateUsage=false
# (functions below make tensors without ``__init__``, which would copy the elements)

from __future__ import annotations

import contextlib
import numbers
from typing import Any, Self

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.compat.elsewhere import INSTEAD, NoAttributeError
from tvmgraph.core.arguments import DTypeLike, is_sequence
from tvmgraph.core.conversion import converted, require_fit
from tvmgraph.core.deferred import Deferred
from tvmgraph.core.notebook import tensor_html
from tvmgraph.core.op import F
from tvmgraph.core.state import bump_epoch, derived, note_write, state, turn
from tvmgraph.core.storage import aligned_copy, aligned_zeros, lend, require_memory
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor_copies import CopyMethods
from tvmgraph.core.tensor_device import DeviceMethods
from tvmgraph.core.tensor_methods import TensorMethods, binary, unary
from tvmgraph.core.tensor_text import tensor_text
from tvmgraph.core.types import ANY_RANK, Dim, TensorType, placeholder_size, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import (
    ArgumentError,
    CaptureError,
    DTypeError,
    ShapeError,
    either,
    reject,
    user_source,
)

_new = object.__new__
_AT_ONCE = contextlib.nullcontext()


class Tensor(TensorMethods, CopyMethods, DeviceMethods):
    """An n-dimensional array of one dtype.

    Args:
        input_data: A NumPy array, (nested) list, number or Tensor; copied.
        dtype: Element type; by default NumPy's own, int64 for Python integers, float32 for Python
            floats and bool for Python bools.
        shape: With ``init``: the shape to fill. With ``dtype`` alone: a placeholder for
            :meth:`Cell.set_inputs`, ``jit(input_signature=...)`` and ``export``; its entries are
            ``None`` (or -1) where a size varies, a name where sizes vary but are equal, or a
            :class:`Symbol` that says more about a size.
        init: An initializer that fills the new tensor.
        device: ``"CPU"`` (the default) or ``"GPU"``, where the elements are put at once.

    Raises:
        DTypeError: if the data cannot be converted to ``dtype``.
        ShapeError: if a nested list is ragged.

    Example:
        >>> Tensor([[1.0, 2.0]]).shape
        (1, 2)
    """

    __slots__ = {  # the texts are what help() shows
        "__dict__": "Attributes that users set.",
        "__weakref__": "Weak references.",
        "_base": "The tensor this one was taken out of by index, and the index; or the Place.",
        "_device": "The elements on a GPU, once they were needed there.",
        "_ffi": "What compiled code sees of the storage, once it was asked for.",
        "_hooks": "What ``register_hook`` put here, once it did.",
        "_token": "Identity of the value denoted now.",
        "array": "The elements as a NumPy array, not to be written to.",
        "aval": "The interned shape, dtype and device (the abstract value).",
    }
    #: What compiled code sees of storage that this tensor alone refers to; parameters only.
    _exclusive: Any = None
    __array_priority__ = 1000.0  # so that ndarray + Tensor reaches Tensor.__radd__

    array: np.ndarray
    aval: TensorType

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("tvmgraph."):
            derived.add(cls)
            bump_epoch()  # calls that were not to look at classes begin to

    def __init__(
        self,
        input_data: object = None,
        dtype: DTypeLike | None = None,
        shape: object = None,
        init: object = None,
        internal: bool = False,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        self._ffi = self._token = None
        if input_data is None and (shape is not None or dtype is not None):
            self._init_from_shape(dtype, shape, init)
            self._settle(device)
            return
        if input_data is None:
            reject(either(ArgumentError, TypeError), "Tensor",
                   "Tensor() needs input_data, or shape and dtype")  # fmt: skip
        if isinstance(input_data, Tensor):
            input_data = input_data.host()
        self._bind(to_array(input_data, dtype))
        self._settle(device)
        if state.interpreter is not None:
            state.interpreter.created(self)

    def _init_from_shape(self, dtype: DTypeLike | None, shape: Any, init: object) -> None:
        dtype = dtypes.dtype_of(dtype if dtype is not None else dtypes.float32)
        if shape is None:  # a placeholder of any number of axes
            self.aval = tensor_type((ANY_RANK,), dtype)
            return
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        if init is None:
            named = [placeholder_size(d, i) for i, d in enumerate(dims)]
            self.aval = tensor_type(named, dtype)
            if self.aval.is_static:
                require_memory([self.aval])
                self._bind(aligned_zeros(self.aval.static_shape, dtype.numpy))
            return
        self._bind(first_elements(self, hooks.initializer(init, dims, dtype)))

    def _bind(self, array: np.ndarray) -> None:
        """Points the tensor at new storage (the old array is never written to)."""
        self.array = array
        self.aval = tensor_type(array.shape, array.dtype)
        self._forget()

    def _forget(self) -> None:
        """Drops what the storage was known by: its elements are about to be others."""
        self._ffi = self._token = self._device = None

    def _replace(self, array: np.ndarray) -> None:
        """Points a tensor that may be known to compiled code at storage of another type."""
        self._bind(array)
        bump_epoch()
        note_write()

    def __getattr__(self, name: str) -> Any:
        """Views what compiled code returned when somebody looks at the elements."""
        if name in ("_device", "_hooks", "_base"):  # slots that most tensors never fill
            return None
        if name == "array" and self._ffi is not None:
            with _AT_ONCE if self.__class__ is Tensor else turn:  # others may be written to now
                self.array = array = elements_of(self._ffi, self.aval.dtype)
            return array
        if name == "array" and self._device is not None:
            found = self._device.numpy()
            if isinstance(self._device, Deferred):
                self.array, self._device = found, None
            return found
        if name == "array" and state.interpreter is None and not self.aval.is_static:
            raise either(ArgumentError, AttributeError)(
                f"the placeholder {self.aval} has no elements", at=user_source(),
                fix="call with a tensor of numbers; placeholders are for compile() and export()",
            )  # fmt: skip
        if name in INSTEAD["Tensor"]:
            raise NoAttributeError(self, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
        )

    @property
    def token(self) -> object:
        """Identity of the value the tensor denotes now; every in-place change gives a new one.

        It is no property of the storage: moving the elements to aligned memory keeps it.
        """
        if self._token is None:
            self._token = object()
        return self._token

    def snapshot(self) -> Tensor:
        """Returns a plain tensor that denotes the current value, sharing its storage."""
        if state.interpreter is not None:
            return state.interpreter.snapshot(self)
        t = _new(Tensor)
        token = self._token
        if token is None:
            token = self._token = object()
        t.aval, t._token = self.aval, token
        t._view(self)
        return t

    def _share(self, other: Tensor) -> None:
        """Takes over another tensor's storage; what nobody looked at stays unseen."""
        if not self._view(other):
            _forget_array(self)

    def _view(self, other: Tensor) -> bool:
        """Refers to another tensor's storage; returns whether somebody looked at its elements."""
        self._ffi = other._ffi
        self._device = other._device
        if other._exclusive is not None:
            other._exclusive = None
        try:
            self.array = stored_array(other)
        except AttributeError:
            if self._ffi is None and self._device is None:
                raise
            return False
        return True

    def host(self) -> np.ndarray:
        """Returns the storage for Python code to look at; a capture notes that it did."""
        if state.interpreter is not None:
            state.interpreter.read(self)
        return self.array

    # ---- what it is -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of every axis; -1 where it is symbolic, -2 alone where the axes are, too."""
        t = self.aval.shape
        if self.aval.is_static:
            return t  # pyright: ignore[reportReturnType]
        return (-2,) if t[0] is ANY_RANK else tuple(-1 if isinstance(d, Dim) else d for d in t)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes to step along every axis."""
        return self.array.strides

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The tensor with its axes reversed."""
        return F.transpose(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The tensor with its last two axes swapped."""
        return F.swapaxes(self, -1, -2)

    # ---- conversion -------------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """Returns the elements as a NumPy array that shares memory where it can.

        Elements on a GPU are copied, after everything that computes them.
        """
        held = self._device
        if held is not None and state.interpreter is None and not isinstance(held, Deferred):
            return held.numpy(implicit=False) if self.on_gpu else self.array.copy()
        array = self.host()
        if not (array.flags.c_contiguous and array.flags.writeable):
            self.array = array = aligned_copy(array)
            self._ffi = None
            note_write()
        if self.__class__ is not Tensor:  # compiled code keeps values derived from Parameters
            lend(array)
        return array

    numpy = asnumpy

    def item(self, *index: int) -> Any:
        """Returns one element as a Python number (the only one when no index is given).

        Args:
            *index: One index per axis, or one into the flattened tensor.

        Raises:
            ShapeError: if no index is given and there is not exactly one element.
        """
        if not index and self.size != 1:
            reject(ShapeError, "Tensor.item", f"item() needs exactly one element, not {self.size}",
                   str(self.aval), "index it first")  # fmt: skip
        return self.host().item(*index)

    def tolist(self) -> Any:
        """Returns the elements as (nested) Python lists."""
        return self.host().tolist()

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """Builds a tensor from a NumPy array, sharing memory when it is aligned.

        Args:
            array: The elements.

        Raises:
            DTypeError: if it is no NumPy array.
        """
        _require_array(array)
        tensor = tensor_from_numpy(array)
        lend(tensor.array)
        return tensor

    def __array__(
        self, dtype: np.dtype | type | None = None, copy: bool | None = None
    ) -> np.ndarray:
        array = self.asnumpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    # ---- printing ---------------------------------------------------------------------------

    def __str__(self) -> str:
        array = self.host()
        return str(array.astype(np.float32) if self.dtype is dtypes.bfloat16 else array)

    def __repr__(self) -> str:
        head = f"Tensor(shape={list(self.shape)}, dtype={self.dtype}"
        array = getattr(self, "array", None)
        return f"{head})" if array is None else f"{head}, value={tensor_text(array)})"

    def _repr_html_(self) -> str:
        return tensor_html(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    __hash__ = object.__hash__

    # ---- changing in place ------------------------------------------------------------------

    def rebind(self, new: Tensor) -> Self:
        """Makes this tensor denote ``new``'s elements: the meaning of every in-place operation.

        Storage is never written to, so recorded values keep what they had. A tensor that was
        taken by index out of another one changes that one, too.

        Args:
            new: Tensor of this shape and dtype.

        Raises:
            ShapeError: if the shape differs.
            DTypeError: if the dtype differs.
        """
        if new.aval is not self.aval:
            wrong = ShapeError if new.shape != self.shape else DTypeError
            raise wrong(
                "an in-place operation must keep shape and dtype",
                got=f"old={self.aval}, new={new.aval}", at=user_source(),
            )  # fmt: skip
        if state.interpreter is not None:
            state.interpreter.assign(self, new)
        else:
            self._share(new)
            self._token = new.token
            note_write()
        self._write_through()
        return self

    def set_data(self, data: object, slice_shape: bool = False) -> Self:
        """Replaces the elements by those of ``data`` (same shape and dtype unless sliced).

        Args:
            data: Tensor, array or number.
            slice_shape: Whether another shape is accepted.

        Raises:
            DTypeError: if ``data`` is no numbers, or a float where the tensor holds whole ones.
            ShapeError: if the shapes differ.
        """
        if data is None or isinstance(data, str):
            reject(DTypeError, f"{type(self).__name__}.set_data",
                   f"a tensor or numbers are needed, not {type(data).__name__}")  # fmt: skip
        if isinstance(data, float) and self.dtype.numpy.kind in "iu":
            reject(DTypeError, f"{type(self).__name__}.set_data",
                   f"a {type(self).__name__} of {self.dtype.name} cannot take a fraction",
                   f"old={self.aval}, new={data}", "convert it: int(...)")  # fmt: skip
        new = data if isinstance(data, Tensor) else Tensor(data, self.dtype)
        if new.aval is self.aval:
            return self.rebind(new)
        if new.dtype is not self.dtype and new.shape == self.shape:
            return self.rebind(F.cast(new, self.dtype))
        if not slice_shape:
            reject(ShapeError, f"{type(self).__name__}.set_data",
                   "the new data must have the tensor's shape", f"old={self.aval}, new={new.aval}",
                   "pass slice_shape=True to change the shape")  # fmt: skip
        self._replace(new.array)
        return self

    def assign_value(self, value: object) -> Self:
        """Takes the elements, shape and dtype of ``value``.

        Args:
            value: A tensor, array, number or nested sequence.
        """
        new = value if isinstance(value, Tensor) else Tensor(value, self.dtype)
        if new.aval is self.aval:
            return self.rebind(new)
        self._replace(new.array)
        return self

    set_ = assign_value

    def set_dtype(self, dtype: DTypeLike) -> DType:
        """Converts this tensor to another dtype in place and returns the dtype.

        Args:
            dtype: The new dtype.

        Raises:
            CaptureError: inside a compiled function, whose tensors keep their types.
        """
        if state.interpreter is not None:
            raise CaptureError("a tensor keeps its dtype in a compiled function", op="set_dtype",
                               fix="use astype")  # fmt: skip
        self._replace(F.cast(self, dtypes.dtype_of(dtype)).array)
        return self.dtype

    # ---- operators --------------------------------------------------------------------------

    __add__, __radd__ = binary("add"), binary("add", True)
    __sub__, __rsub__ = binary("sub"), binary("sub", True)
    __mul__, __rmul__ = binary("mul"), binary("mul", True)
    __truediv__, __rtruediv__ = binary("div"), binary("div", True)
    __floordiv__, __rfloordiv__ = binary("floor_div"), binary("floor_div", True)
    __mod__, __rmod__ = binary("floor_mod"), binary("floor_mod", True)
    __pow__, __rpow__ = binary("pow"), binary("pow", True)
    __matmul__, __rmatmul__ = binary("matmul"), binary("matmul", True)
    __and__, __rand__ = binary("operator_and"), binary("operator_and", True)
    __or__, __ror__ = binary("operator_or"), binary("operator_or", True)
    __xor__, __rxor__ = binary("operator_xor"), binary("operator_xor", True)
    __lshift__ = binary("bitwise_left_shift")
    __rshift__ = binary("bitwise_right_shift")
    __lt__, __le__ = binary("less"), binary("less_equal")
    __gt__, __ge__ = binary("greater"), binary("greater_equal")
    __neg__, __abs__, __invert__ = unary("neg"), unary("abs"), unary("logical_not")

    def __pos__(self) -> Tensor:
        return self

    def __eq__(self, other: object) -> Any:
        return F.equal(self, other) if _is_operand(other) else False

    def __ne__(self, other: object) -> Any:
        return F.not_equal(self, other) if _is_operand(other) else True

    def __round__(self, ndigits: int = 0) -> Tensor:
        return F.round(self, decimals=ndigits)


def _is_operand(value: object) -> bool:
    """Whether elements are compared with it; a tensor is never equal to anything else."""
    return isinstance(value, (Tensor, np.ndarray, Symbol)) or dtypes.is_number(value)


_slot: Any = Tensor.__dict__["array"]
#: A tensor's array; it does not view what compiled code returned.
stored_array = _slot.__get__


def has_array(tensor: Tensor) -> bool:
    """Whether somebody looked at the elements since compiled code returned them.

    Args:
        tensor: Any tensor.
    """
    try:
        stored_array(tensor)
    except AttributeError:
        return False
    return True


def _forget_array(tensor: Tensor) -> None:
    with contextlib.suppress(AttributeError):
        _slot.__delete__(tensor)


def renew(tensor: Tensor) -> None:
    """Makes the value a new one: nothing that was computed from the one before fits it.

    Args:
        tensor: The tensor whose elements changed.
    """
    tensor._token = None


def elements_of(handle: Any, dtype: DType) -> np.ndarray:
    """Returns the elements of what compiled code holds, without a copy.

    Args:
        handle: A tensor of TVM's; of complex elements it has pairs, along a last axis.
        dtype: Of the elements; not bfloat16.
    """
    array = np.from_dlpack(handle)
    return array.view(dtype.numpy)[..., 0] if dtype in dtypes.COMPLEX else array


def deferred_tensor(elements: Deferred, type: TensorType) -> Tensor:
    """Returns a tensor whose elements are computed when somebody looks at them.

    Args:
        elements: Computes the elements.
        type: Shape and dtype of the tensor.
    """
    tensor = _new(Tensor)
    tensor.aval, tensor._device = type, elements
    tensor._ffi = tensor._token = None
    return tensor


def tensor_from_numpy(array: Any, type: TensorType | None = None) -> Tensor:
    """Wraps a NumPy array without copying it.

    Args:
        array: The elements (a NumPy scalar counts as a 0-d array).
        type: The type when the caller knows it, which saves a look-up.
    """
    if array.__class__ is not np.ndarray:
        array = np.asarray(array)
    t = _new(Tensor)
    t.array = array
    t._ffi = t._token = t._device = None
    if type is None:
        type = tensor_type(array.shape, array.dtype)
        if state.interpreter is not None:  # host data that enters a graph is a constant
            state.interpreter.created(t)
    t.aval = type
    return t


def _require_array(array: object) -> None:
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"array must be a NumPy array, not {type(array).__name__}",
                         op="Tensor.from_numpy")  # fmt: skip


def to_array(data: object, dtype: DTypeLike | None = None) -> np.ndarray:
    """Converts user data to an aligned array with the default dtypes of :class:`Tensor`.

    Args:
        data: An array, number, or nested sequence of them.
        dtype: dtype of the array; by default float32 for Python's floats, else that of ``data``.

    Raises:
        DTypeError: if the elements are neither numbers nor bools.
        ArgumentError: if an integer in Python code does not fit ``dtype``.
    """
    wanted = None if dtype is None else dtypes.dtype_of(dtype)
    by_hand = not isinstance(data, np.ndarray)
    if not by_hand:
        source = data
    else:
        source = _array_of_python(data)
        if wanted is None and source.dtype == np.float64 and not isinstance(data, np.generic):
            wanted = dtypes.float32
    if wanted is None:
        wanted = dtypes.dtype_of(source.dtype)
    if source.dtype.kind not in "biufcV":
        reject(DTypeError, "Tensor",
               f"elements of dtype {source.dtype} cannot be stored in a Tensor",
               fix="pass numbers or bools")  # fmt: skip
    if wanted.numpy == source.dtype:
        return aligned_copy(source)
    if by_hand and wanted.is_integer and not isinstance(data, np.generic):
        require_fit(source, wanted, data)
    return aligned_copy(converted(source, wanted))


def _array_of_python(data: object) -> np.ndarray:
    """Converts numbers, lists and tuples (which may hold tensors) to an array."""
    if is_sequence(data):
        data = _plain(data)
    elif not isinstance(data, (numbers.Number, np.generic)) and not hasattr(data, "__array__"):
        raise DTypeError(
            f"input_data must be a Tensor, array, list, tuple or number, not {type(data).__name__}",
            op="Tensor",
        )
    try:
        array = np.asarray(data)
    except ValueError as e:
        raise either(ShapeError, TypeError)(
            "the rows of a nested list differ in length", op="Tensor",
            fix="pad the rows to one length",
        ) from e  # fmt: skip
    if array.dtype == object and all(isinstance(n, int) for n in array.flat):
        reject(either(DTypeError, RuntimeError), "Tensor",
               "an integer needs more than 64 bits", repr(data)[:80])  # fmt: skip
    if array.dtype.kind in "OSU":
        reject(DTypeError, "Tensor", "the list holds something that is not a number",
               repr(data)[:80])  # fmt: skip
    return array


def _plain(data: object) -> object:
    if isinstance(data, Tensor):
        return data.array
    return [_plain(d) for d in data] if is_sequence(data) else data


def tensor(
    input_data: object = None,
    dtype: DTypeLike | None = None,
    shape: object = None,
    init: object = None,
    const_arg: bool = False,
    device: str | None = None,
) -> Tensor:
    """Builds a :class:`Tensor`; the function form of the class.

    Args:
        input_data: A number, nested lists, an array or a tensor.
        dtype: The type of the elements; that of ``input_data`` by default.
        shape: Sizes, without ``input_data``; ``None`` for one that varies (see ``set_inputs``).
        init: What the elements of a tensor with ``shape`` are.
        const_arg: Kept for MindSpore programs.
        device: Where the elements are; that of the context by default.
    """
    return Tensor(input_data, dtype, shape, init, const_arg=const_arg, device=device)


def first_elements(new: Tensor, value: Tensor) -> np.ndarray:
    """Returns the elements that a tensor starts with, which is new, and says so to a capture.

    Args:
        new: The tensor.
        value: What it denotes first; zeros stand for elements that are not known yet.
    """
    if state.interpreter is None:
        return value.host()
    state.interpreter.created(new)
    known = state.interpreter.has_elements(value)
    elements = value.host() if known else np.zeros(value.aval.static_shape, value.dtype.numpy)
    state.interpreter.starts_as(new, value)
    return elements
