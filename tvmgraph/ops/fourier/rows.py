"""Rows of Fourier transforms: SciPy's in eager code; a kernel or products in compiled code.

``kernel`` says which: the pass ``fourier`` sets it where the backend has the kernel.
"""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import along_axis
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.fourier.mixed_radix import DIRECT, fourier_matrix, product, transform
from tvmgraph.ops.fourier.stockham import transform_by_kernel

__all__: list[str] = []

_GIVEN = ("complex", "real", "half")
_NO_ONNX = Reason("ONNX has no complex tensors")
_SIGNAL = np.random.default_rng(0).standard_normal((4, 5, 2))
_HALF = np.fft.rfft(np.random.default_rng(1).standard_normal((2, 24))).astype(np.complex64)
_COMPLEX = (_SIGNAL[..., 0] + 1j * _SIGNAL[..., 1]).astype(np.complex64)


def _scaled(x: np.ndarray, scale: float, kind: type | np.dtype) -> np.ndarray:
    if scale != 1:
        x *= scale
    return np.ascontiguousarray(x, kind)


def _fast(
    name: str, x: np.ndarray, axis: int, norm: str | None = None, size: int | None = None
) -> np.ndarray:
    """Transforms by SciPy, which takes half of NumPy's time."""
    from scipy import fft  # here, as it takes a tenth of a second

    return np.asarray(getattr(fft, name)(x, size, axis, norm))


def _mirrored(half: np.ndarray, n: int, axis: int) -> np.ndarray:
    """All ``n`` elements of a real signal's spectrum, whose second half is the first's conjugate.

    SciPy's ``fft`` of real numbers gives the same bits in twice the time.
    """
    half = np.moveaxis(half, axis, -1)
    known = half.shape[-1]
    whole = np.empty((*half.shape[:-1], n), half.dtype)
    whole[..., :known] = half
    np.conjugate(half[..., n - known : 0 : -1], out=whole[..., known:])
    return np.moveaxis(whole, -1, axis)


def _moved(R: Builder, x: Expr, axis: int, back: int, parts: int) -> Expr:
    """Moves an axis of elements; both of their parts stay last."""
    if axis == back:
        return x
    count = len(R.type(x).shape) - (parts == 2)
    order = [i for i in range(count) if i != axis]
    order.insert(back, axis)
    return R.emit(R.op.permute_dims(x, [*order, *([count] if parts == 2 else [])]))


# ---- to a spectrum ------------------------------------------------------------------------------


def _size(x: TensorType, axis: int) -> int:
    return x.with_shape((x.shape[axis],)).static_shape[0]


def _infer_spectrum(
    input: TensorType, *, axis: int, inverse: bool, of: str, scale: float, kernel: bool = False
) -> TensorType:
    rules.require_dtype(input, (dtypes.float32, dtypes.float64, *dtypes.COMPLEX))
    n = _size(input, axis)
    if n == 0:
        raise ArgumentError("the axis of a transform must have elements")
    if of not in _GIVEN:
        raise ArgumentError(f"of must be one of {', '.join(_GIVEN)}, not {of!r}")
    if (of == "complex") != (input.dtype in dtypes.COMPLEX):
        raise DTypeError(f"{input.dtype.name} elements are not {of}")
    wide = input.dtype in (dtypes.float64, dtypes.complex128)
    shape = (*input.shape[:axis], n // 2 + 1 if of == "half" else n, *input.shape[axis + 1 :])
    return input.with_shape(shape).with_dtype(dtypes.complex128 if wide else dtypes.complex64)


def _eager_spectrum(
    x: np.ndarray, *, axis: int, inverse: bool, of: str, scale: float, kernel: bool = False
) -> np.ndarray:
    kind = np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64
    if of == "complex":
        # "forward" leaves the inverse as it is
        found = _fast("ifft" if inverse else "fft", x, axis, "forward" if inverse else None)
        return _scaled(found, scale, kind)
    found = _fast("rfft", x, axis)
    if of == "real":
        found = _mirrored(found, x.shape[axis], axis)
    return _scaled(np.conj(found, out=found) if inverse else found, scale, kind)


def _lower_spectrum(
    R: Builder, x: Expr, *, axis: int, inverse: bool, of: str, scale: float, kernel: bool = False
) -> Expr:
    given, sign = 2 if of == "complex" else 1, 1 if inverse else -1
    kind = R.type(x)
    n, last = _size(kind, axis), len(kind.shape) - given
    if kernel:
        count = n // 2 + 1 if of == "half" else n
        found = transform_by_kernel(R, x, axis, n, sign, scale, given, count, 2)
        if found is not None:
            return found
    y = transform(R, _moved(R, x, axis, last, given), n, sign, given, 2, kernel)
    if scale != 1:
        y = R.emit(R.op.multiply(y, R.const(scale, kind.dtype.name)))
    if of == "half":
        y = R.emit(R.op.strided_slice(y, [last], [0], [n // 2 + 1]))
    return _moved(R, y, last, axis, 2)


def _vjp_spectrum(
    g: Tensor, y: Tensor, x: Tensor, *, axis: int, inverse: bool, of: str, scale: float,
    kernel: bool = False,
) -> tuple[Tensor]:  # fmt: skip
    if of == "half":
        missing = x.shape[axis] - g.shape[axis]
        pads = tuple((0, missing if i == axis else 0) for i in range(g.ndim))
        g = F.complex(F.pad_constant(F.real(g), pads, 0.0), F.pad_constant(F.imag(g), pads, 0.0))
    found = F.spectrum(g, axis=axis, inverse=not inverse, of="complex", scale=scale)
    return (found if of == "complex" else F.real(found),)


@primitive(
    infer=_infer_spectrum,
    traits=along_axis(),
    eager=_eager_spectrum,
    lower=_lower_spectrum,
    vjp=_vjp_spectrum,
    onnx=_NO_ONNX,
    samples=[
        sample(_COMPLEX, axis=1, inverse=False, of="complex", scale=1.0),
        sample(_COMPLEX, axis=0, inverse=True, of="complex", scale=0.5),
        sample((3, 6, 2), axis=1, inverse=False, of="real", scale=1.0),
        sample((3, 7), axis=1, inverse=False, of="half", scale=1.0),
        sample((6,), axis=0, inverse=True, of="half", scale=2.0, dtype="float64"),
        sample((2, 24), axis=1, inverse=False, of="half", scale=1.0),
        sample(_HALF.T.repeat(2, 0)[:20], axis=0, inverse=True, of="complex", scale=0.1),
        sample((0, 4), axis=1, inverse=False, of="half", scale=1.0),
        sample((3, 0), axis=1, inverse=False, of="real", scale=1.0, raises=ArgumentError),
        sample(_COMPLEX, axis=1, inverse=False, of="half", scale=1.0, raises=DTypeError),
        sample((3, 2), axis=1, inverse=False, of="two", scale=1.0, raises=ArgumentError),
    ],
)
def spectrum(
    input: Tensor, axis: int, inverse: bool, of: str, scale: float, kernel: bool = False
) -> Tensor:
    r"""Discrete Fourier transform: :math:`X_k = scale \sum_j x_j e^{\mp 2 \pi i jk/n}`.

    Args:
        input: Real or complex tensor.
        axis: Non-negative axis.
        inverse: Whether the exponent is positive.
        of: ``"complex"`` or ``"real"``, as the elements are, or ``"half"`` for the first
            :math:`\lfloor n/2 \rfloor + 1` elements of the spectrum of real ones.
        scale: Factor.
        kernel: Whether compiled code has the kernel.

    Returns:
        Complex tensor.

    Raises:
        ArgumentError: if the axis has no elements, or ``of`` is none of the words.
        DTypeError: if ``input`` is not float32, float64 or complex, or not what ``of`` says.
    """
    ...


# ---- from half a spectrum -----------------------------------------------------------------------


def _infer_signal(
    input: TensorType, *, axis: int, size: int, scale: float, kernel: bool = False
) -> TensorType:
    rules.require_dtype(input, dtypes.COMPLEX)
    if _size(input, axis) != size // 2 + 1 or size < 1:
        raise ArgumentError(f"half a spectrum of {size} elements has {size // 2 + 1}")
    real = dtypes.float64 if input.dtype is dtypes.complex128 else dtypes.float32
    return input.with_shape((*input.shape[:axis], size, *input.shape[axis + 1 :])).with_dtype(real)


def _weights(size: int) -> np.ndarray:
    """How often an element of half a spectrum of ``size`` elements stands in the whole."""
    weight = np.full(size // 2 + 1, 2.0)
    weight[0] = 1
    if size % 2 == 0:
        weight[-1] = 1
    return weight


def _eager_signal(
    x: np.ndarray, *, axis: int, size: int, scale: float, kernel: bool = False
) -> np.ndarray:
    kind = np.float64 if x.dtype == np.complex128 else np.float32
    return _scaled(_fast("irfft", x, axis, "forward", size), scale, kind)


def _lower_signal(
    R: Builder, x: Expr, *, axis: int, size: int, scale: float, kernel: bool = False
) -> Expr:
    kind = R.type(x)
    if kernel:
        found = transform_by_kernel(R, x, axis, size, 1, scale, 2, size, 1)
        if found is not None:
            return found
    last = len(kind.shape) - 2
    half = _moved(R, x, axis, last, 2)
    if size <= DIRECT:
        weight = scale * _weights(size)[:, None]
        y = product(R, half, fourier_matrix(size // 2 + 1, size, size) * weight, 2, 1)
        return _moved(R, y, last, axis, 1)
    # The second half has the conjugates of the first, in reverse order.
    mirrored = R.emit(R.op.flip(half, last))
    rest = R.emit(R.op.strided_slice(mirrored, [last], [1 - size % 2], [size // 2]))
    conjugate = R.const(np.array([1.0, -1.0], kind.dtype.numpy), kind.dtype.name)
    whole = R.emit(R.op.concat([half, R.emit(R.op.multiply(rest, conjugate))], last))
    y = transform(R, whole, size, 1, 2, 1, kernel)
    if scale != 1:
        y = R.emit(R.op.multiply(y, R.const(scale, kind.dtype.name)))
    return _moved(R, y, last, axis, 1)


def _vjp_signal(
    g: Tensor, y: Tensor, x: Tensor, *, axis: int, size: int, scale: float, kernel: bool = False
) -> tuple[Tensor]:
    shape = [1] * g.ndim
    shape[axis] = size // 2 + 1
    weight = Tensor(_weights(size).reshape(shape).astype(g.dtype.numpy))
    found = F.spectrum(g, axis=axis, inverse=False, of="half", scale=scale)
    return (F.complex(F.real(found) * weight, F.imag(found) * weight),)


@primitive(
    infer=_infer_signal,
    traits=along_axis(),
    eager=_eager_signal,
    lower=_lower_signal,
    vjp=_vjp_signal,
    onnx=_NO_ONNX,
    samples=[
        sample(_COMPLEX, axis=1, size=8, scale=1.0),
        sample(_COMPLEX, axis=1, size=9, scale=0.5),
        sample(_HALF, axis=1, size=24, scale=0.1),
        sample(_COMPLEX.astype(np.complex128), axis=0, size=6, scale=1.0),
        sample(_COMPLEX[:0], axis=1, size=9, scale=1.0),
        sample(_COMPLEX, axis=1, size=7, scale=1.0, raises=ArgumentError),
        sample((3, 5), axis=1, size=8, scale=1.0, raises=DTypeError),
    ],
)
def signal_of_half(
    input: Tensor, axis: int, size: int, scale: float, kernel: bool = False
) -> Tensor:
    r"""Real elements whose spectrum is given by its first half; the inverse transform.

    Args:
        input: Complex tensor with :math:`\lfloor size/2 \rfloor + 1` elements along the axis.
        axis: Non-negative axis.
        size: Elements along the axis of the result.
        scale: Factor.
        kernel: Whether compiled code has the kernel.

    Returns:
        Real tensor.

    Raises:
        ArgumentError: if ``size`` does not fit the axis.
        DTypeError: if ``input`` is not complex.
    """
    ...
