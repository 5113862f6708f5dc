"""Parts of complex numbers.

TVM has no complex dtype: compiled code gets complex tensors as reals with both parts along a last
axis. What operators are of complex operands say :mod:`.complex_forms`.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE
from tvmgraph.core.types import TensorType
from tvmgraph.core.unfollowed import by_numpy
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import require_tensor
from tvmgraph.ops.common.pointwise import broadcast_load
from tvmgraph.ops.common.rows import sum_to

__all__ = ["angle", "complex", "complex_part", "conj", "imag", "polar", "real"]

_PARTS = ("real", "imag")
_EXAMPLE = np.array([1 + 2j, -3j, 0, -2.5], np.complex64)


def _infer_part(input: TensorType, *, part: str) -> TensorType:
    rules.require_dtype(input, dtypes.COMPLEX)
    if part not in _PARTS:
        raise ArgumentError(f"part must be one of {', '.join(_PARTS)}, not {part!r}")
    return input.with_dtype(_real_dtype(input.dtype))


def _real_dtype(d: dtypes.DType) -> dtypes.DType:
    return dtypes.float64 if d is dtypes.complex128 else dtypes.float32


def _lower_part(R: Builder, x: Expr, *, part: str) -> Expr:
    place = R.tir.IntImm("int64", _PARTS.index(part))

    def kernel(t: Expr) -> Expr:
        def element(*index: Expr) -> Expr:
            return t(*index, place)

        return R.te.compute(t.shape[:-1], element, name=f"{part}_part")

    return R.emit_te(kernel, x)


def _eager_part(x: np.ndarray, *, part: str) -> np.ndarray:
    return getattr(x, part)


def _vjp_part(g: Tensor, y: Tensor, x: Tensor, *, part: str) -> tuple[Tensor]:
    zero = F.zeros_like(g)
    return (F.complex(g, zero) if part == "real" else F.complex(zero, g),)


@primitive(
    infer=_infer_part,
    traits=dataclasses.replace(ELEMENTWISE, alias=True),
    eager=_eager_part,
    lower=_lower_part,
    vjp=_vjp_part,
    onnx=Reason("ONNX has no functions of complex tensors"),
    samples=[
        sample(_EXAMPLE, part="real"),
        sample(_EXAMPLE.astype(np.complex128), part="imag"),
        sample(_EXAMPLE.reshape(2, 2).T, part="imag"),
        sample(np.array(3 + 4j, np.complex64), part="real"),
        sample(_EXAMPLE[:0], part="imag"),
        sample((2,), part="real", raises=DTypeError),
        sample(_EXAMPLE, part="whole", raises=ArgumentError),
    ],
)
def complex_part(input: Tensor, part: str) -> Tensor:
    """Takes the real or imaginary part of complex elements.

    Args:
        input: complex64 or complex128 tensor.
        part: ``"real"`` or ``"imag"``.

    Returns:
        Real tensor of ``input``'s shape.

    Raises:
        DTypeError: if ``input`` is not complex.
        ArgumentError: if there is no such part.

    Example:
        >>> ops.complex_part(ops.complex(Tensor(3.0), Tensor(4.0)), "imag")
        Tensor(shape=[], dtype=Float32, value= 4)
    """
    ...


def _infer_complex(real: TensorType, imag: TensorType) -> TensorType:
    rules.require_dtype(real, (dtypes.float32, dtypes.float64), "real")
    rules.require_same_dtype(real, imag)
    wide = dtypes.complex128 if real.dtype is dtypes.float64 else dtypes.complex64
    return real.with_shape(rules.broadcast_shapes(real.shape, imag.shape)).with_dtype(wide)


def _eager_complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    wide = np.complex128 if real.dtype == np.float64 else np.complex64
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), wide)
    result.real, result.imag = real, imag
    return result


def _lower_complex(R: Builder, real: Expr, imag: Expr) -> Expr:
    shape = R.shape(rules.broadcast_shapes(R.type(real).shape, R.type(imag).shape))

    def kernel(re: Expr, im: Expr) -> Expr:
        def element(*i: Expr) -> Expr:
            return R.tir.Select(i[-1] == 0, broadcast_load(re, i[:-1]), broadcast_load(im, i[:-1]))

        return R.te.compute([*shape, R.tir.IntImm("int64", 2)], element, name="complex")

    return R.emit_te(kernel, real, imag)


@primitive(
    infer=_infer_complex,
    traits=ELEMENTWISE,
    eager=_eager_complex,
    lower=_lower_complex,
    vjp=lambda g, y, re, im: (sum_to(F.real(g), re), sum_to(F.imag(g), im)),
    onnx=Reason("ONNX cannot make complex tensors"),
    samples=[
        sample((3, 4), (4,)),
        sample((), (), dtype="float64"),
        sample((0, 2), (1, 2)),
        sample((2,), (3,), raises=ShapeError),
        sample((2,), (2,), dtype="int32", raises=DTypeError),
    ],
)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    r"""Makes complex numbers from their parts: :math:`z = real + i \cdot imag`.

    Args:
        real: float32 or float64 tensor.
        imag: Tensor of the same dtype; the shapes broadcast.

    Returns:
        complex64 or complex128 tensor of the broadcast shape.

    Raises:
        DTypeError: if the parts are not of one of these dtypes.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.complex(Tensor([1.0]), Tensor([2.0]))
        Tensor(shape=[1], dtype=Complex64, value= [1+2j])
    """
    ...


@fusible
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    r"""Makes complex numbers from magnitude and angle: :math:`z = abs \cdot e^{i \cdot angle}`.

    Args:
        abs: float32 or float64 tensor of magnitudes.
        angle: Tensor of angles in radians; the shapes broadcast.

    Returns:
        complex64 or complex128 tensor of the broadcast shape.

    Example:
        >>> ops.polar(Tensor([1.0, 2.0]), Tensor([0.0, 1.5]))
        Tensor(shape=[2], dtype=Complex64, value= [1+0j, 0.141474+1.99499j])
    """
    return F.complex(abs * F.cos(angle), abs * F.sin(angle))


def _is_complex(x: Tensor) -> bool:
    return x.dtype in dtypes.COMPLEX


def real(input: Tensor) -> Tensor:
    r"""Real part of every element; a real tensor is returned as it is.

    Args:
        input: Tensor of any shape.

    Returns:
        Real tensor of ``input``'s shape.

    Example:
        >>> ops.real(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    return F.complex_part(input, "real") if _is_complex(input) else require_tensor("real", input)


def imag(input: Tensor) -> Tensor:
    r"""Imaginary part of every element; zero for a real tensor.

    Args:
        input: Tensor of any shape.

    Returns:
        Real tensor of ``input``'s shape.

    Example:
        >>> ops.imag(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])
    """
    return F.complex_part(input, "imag") if _is_complex(input) else F.zeros_like(input)


def conj(input: Tensor) -> Tensor:
    r"""Complex conjugate of every element; a real tensor is returned as it is.

    Args:
        input: Tensor of any shape.

    Returns:
        Tensor of ``input``'s type.

    Example:
        >>> ops.conj(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    if not _is_complex(input):
        return require_tensor("conj", input)
    found = by_numpy(np.conjugate, input)
    return F.complex(F.real(input), F.neg(F.imag(input))) if found is None else found


def angle(input: Tensor) -> Tensor:
    r"""Angle of every element in the complex plane: :math:`\operatorname{atan2}(imag, real)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape; of a real element it is 0, or :math:`\pi` where negative.

    Example:
        >>> ops.angle(Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.14159274e+00])
    """
    if _is_complex(input):
        return F.atan2(F.imag(input), F.real(input))
    x = input if input.dtype.is_float else F.cast(input, dtypes.float32)
    return F.where(F.isnan(x), x, F.where(x < 0, math.pi, F.zeros_like(x)))
