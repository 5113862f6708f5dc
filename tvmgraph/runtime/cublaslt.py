"""Matrix products by NVIDIA's cuBLASLt, called through its C interface.

The library comes with the PyPI package ``nvidia-cublas`` or with CUDA. Compiled code calls it by
name: ``tvmgraph.cublaslt.nt.bias_relu.full`` is a product whose right factor is transposed, with a
bias and a ReLU, in full precision (``tf32`` lets float32 factors be rounded).

cuBLASLt stores matrices by columns, TVM by rows: the product of the exchanged, transposed factors
is computed, which needs no copy.

Source: cublasLt.h of CUDA 12 and 13, from which the numbers below are.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass

import tvm_ffi

from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import allocate, current_handle, keep_error

#: What the names of the functions begin with.
PREFIX = "tvmgraph.cublaslt."
_LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12")
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14}  # cudaDataType
_FULL, _TF32 = 68, 77  # cublasComputeType
#: cublasLtEpilogue; its GELU is the one by tanh.
EPILOGUES = {
    "plain": 1, "relu": 2, "bias": 4, "bias_relu": 6, "gelu": 32, "bias_gelu": 36,
}  # fmt: skip
_TRANSA, _TRANSB, _EPILOGUE, _BIAS, _BIAS_TYPE = 3, 4, 7, 8, 26  # of a product
_BATCH, _STRIDE = 5, 6  # of a matrix
_MAX_WORKSPACE = 1  # of a preference
_WORKSPACE = 32 << 20  # bytes; what NVIDIA advises for Hopper
_P, _I = c_void_p, c_int
_SIGNATURES: dict[str, list[object]] = {
    "cublasLtCreate": [_P],
    "cublasLtMatmulDescCreate": [_P, _I, _I],
    "cublasLtMatmulDescSetAttribute": [_P, _I, _P, c_size_t],
    "cublasLtMatrixLayoutCreate": [_P, _I, c_uint64, c_uint64, c_int64],
    "cublasLtMatrixLayoutSetAttribute": [_P, _I, _P, c_size_t],
    "cublasLtMatmulPreferenceCreate": [_P],
    "cublasLtMatmulPreferenceSetAttribute": [_P, _I, _P, c_size_t],
    "cublasLtMatmulAlgoGetHeuristic": [_P, _P, _P, _P, _P, _P, _P, _I, _P, _P],
    "cublasLtMatmul": [_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, c_size_t, _P],
}


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int),
        ("waves", c_float), ("reserved", c_int * 4),
    ]  # fmt: skip


@dataclass(frozen=True)
class _Plan:
    """A product that is ready to run.

    Attributes:
        handle: The library's context.
        product: Its description.
        layouts: Those of the factors, in the library's order, and of the result.
        algorithm: What the library's heuristic chose.
        workspace: Memory for it.
    """

    handle: c_void_p
    product: c_void_p
    layouts: tuple[c_void_p, c_void_p, c_void_p]
    algorithm: _Heuristic
    workspace: tvm_ffi.Tensor


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the library.

    Raises:
        DeviceError: if it is not installed.
    """
    cuda.runtime()
    for name in _LIBRARIES:
        for place in (name, *(str(folder / name) for folder in cuda.runtime_folders())):
            try:
                found = ctypes.CDLL(place)
            except OSError:
                continue
            for function, arguments in _SIGNATURES.items():
                getattr(found, function).argtypes = arguments
            return found
    raise cuda.fail(
        f"cuBLASLt was not found ({_LIBRARIES[0]})",
        "pip install nvidia-cublas, or leave out library_dispatch",
    )


def is_installed() -> bool:
    """Whether the library can be loaded."""
    try:
        library()
    except DeviceError:
        return False
    return True


def name_of(transpose_a: bool, transpose_b: bool, epilogue: str, tf32: bool) -> str:
    """Returns the name under which compiled code calls a kind of product.

    Args:
        transpose_a: Whether the left matrix is read transposed.
        transpose_b: Whether the right one is.
        epilogue: What is done to the sums: a bias, an activation.
        tf32: Whether float32 operands may be rounded to TF32.
    """
    letters = "nt"[transpose_a] + "nt"[transpose_b]
    return f"{PREFIX}{letters}.{epilogue}.{'tf32' if tf32 else 'full'}"


@functools.cache
def register() -> None:
    """Makes every kind of product known to TVM's runtime; the library is loaded at the first."""
    for ta, tb, epilogue, tf32 in itertools.product(*[(False, True)] * 2, EPILOGUES, (False, True)):
        call = functools.partial(_called, ta, tb, epilogue, tf32)
        tvm_ffi.register_global_func(name_of(ta, tb, epilogue, tf32), call, override=True)


def _called(*args: object) -> None:
    try:
        multiply(*args)
    except Exception as e:
        keep_error(e)
        raise


def multiply(
    ta: bool,
    tb: bool,
    epilogue: str,
    tf32: bool,
    a: tvm_ffi.Tensor,
    b: tvm_ffi.Tensor,
    *rest: tvm_ffi.Tensor,
) -> None:
    """Computes ``activation(a @ b + bias)`` on this thread's stream.

    Args:
        ta: Whether the last two axes of ``a`` are exchanged.
        tb: Whether those of ``b`` are.
        epilogue: One of ``EPILOGUES``.
        tf32: Whether factors of float32 may be rounded to tf32.
        a: (..., M, K), on the GPU.
        b: (K, N), or with the leading axes of ``a``.
        rest: The bias (N), if the epilogue has one, then the result (..., M, N).

    Raises:
        DeviceError: if the library is missing or refuses.
    """
    *bias, out = rest
    index = a.device.index
    plan = _plan(index, _problem(a, b, ta, tb), (ta, tb), epilogue, tf32)
    if bias:
        _set(library().cublasLtMatmulDescSetAttribute, plan.product, _BIAS, c_void_p(_at(bias[0])))
    one, zero = c_float(1.0), c_float(0.0)
    left, right, result = plan.layouts
    _check("cublasLtMatmul", library().cublasLtMatmul(
        plan.handle, plan.product, byref(one), _at(b), left, _at(a), right, byref(zero),
        _at(out), result, _at(out), result, byref(plan.algorithm), _at(plan.workspace),
        _WORKSPACE, current_handle(index),
    ))  # fmt: skip


def _at(tensor: tvm_ffi.Tensor) -> int:
    return tensor.data_ptr()


def _problem(
    a: tvm_ffi.Tensor, b: tvm_ffi.Tensor, ta: bool, tb: bool
) -> tuple[str, int, int, int, int]:
    """dtype, batch, M, N and K; leading axes are rows where all share one right factor."""
    m, k = tuple(a.shape)[-2:][:: -1 if ta else 1]
    n = b.shape[-2 if tb else -1]
    batch = 1
    for extent in tuple(a.shape)[:-2]:
        batch *= extent
    return (str(a.dtype), 1, batch * m, n, k) if b.ndim == 2 else (str(a.dtype), batch, m, n, k)


@functools.lru_cache(4096)
def _plan(
    index: int, problem: tuple[str, int, int, int, int], transposes: tuple[bool, bool],
    epilogue: str, tf32: bool,
) -> _Plan:  # fmt: skip
    dtype, batch, m, n, k = problem
    kind, real = _TYPES[dtype], _TYPES["float32"]
    product = _made("cublasLtMatmulDescCreate", _TF32 if tf32 else _FULL, real)
    put: Callable[..., int] = library().cublasLtMatmulDescSetAttribute
    _set(put, product, _TRANSA, c_int32(transposes[1]))
    _set(put, product, _TRANSB, c_int32(transposes[0]))
    _set(put, product, _EPILOGUE, c_int32(EPILOGUES[epilogue]))
    handle, workspace = _context(index)
    if epilogue.startswith("bias"):
        _set(put, product, _BIAS_TYPE, c_int32(kind))
        _set(put, product, _BIAS, c_void_p(_at(workspace)))  # the heuristic asks for some address
    left = _layout(kind, (k, n) if transposes[1] else (n, k), batch)
    right = _layout(kind, (m, k) if transposes[0] else (k, m), batch)
    layouts = left, right, _layout(kind, (n, m), batch)
    algorithm = _algorithm(handle, product, layouts, f"{dtype} {batch}x{m}x{n}x{k}")
    return _Plan(handle, product, layouts, algorithm, workspace)


def _layout(kind: int, shape: tuple[int, int], batch: int) -> c_void_p:
    """A matrix of the library: rows of it lie side by side."""
    rows, columns = shape
    made = _made("cublasLtMatrixLayoutCreate", kind, rows, columns, rows)
    if batch > 1:
        put = library().cublasLtMatrixLayoutSetAttribute
        _set(put, made, _BATCH, c_int32(batch))
        _set(put, made, _STRIDE, c_int64(rows * columns))
    return made


@functools.cache
def _context(index: int) -> tuple[c_void_p, tvm_ffi.Tensor]:
    cuda.select(index)
    return _made("cublasLtCreate"), allocate((_WORKSPACE,), "uint8", index)


def _algorithm(
    handle: c_void_p, product: c_void_p, layouts: tuple[c_void_p, ...], text: str
) -> _Heuristic:
    preference = _made("cublasLtMatmulPreferenceCreate")
    put = library().cublasLtMatmulPreferenceSetAttribute
    _set(put, preference, _MAX_WORKSPACE, c_size_t(_WORKSPACE))
    found, count = _Heuristic(), c_int()
    left, right, result = layouts
    status = library().cublasLtMatmulAlgoGetHeuristic(
        handle, product, left, right, result, result, preference, 1, byref(found), byref(count)
    )
    if status == 0 and count.value == 0:
        raise _refusal("cublasLtMatmulAlgoGetHeuristic knows no algorithm", text)
    _check("cublasLtMatmulAlgoGetHeuristic", status, text)
    return found


def _made(function: str, *args: object) -> c_void_p:
    made = c_void_p()
    _check(function, getattr(library(), function)(byref(made), *args))
    return made


def _set(function: Callable[..., int], what: c_void_p, attribute: int, value: object) -> None:
    _check("an attribute", function(what, attribute, byref(value), ctypes.sizeof(value)))


def _check(function: str, status: int, text: str | None = None) -> None:
    if status:
        raise _refusal(f"{function} failed in cuBLASLt (status {status})", text)


def _refusal(message: str, text: str | None = None) -> DeviceError:
    return cuda.fail(message, "leave out library_dispatch; generated kernels do the same", text)
