"""Random bits: the counter-based generator every random operator draws from.

Philox4x32-10 maps a key (the seed) and a counter to four 32-bit words; there is no state but the
counter, so that eager NumPy and compiled loops produce the same bits in any order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import random as stream
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE, Pattern, Traits
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.numerics.philox import INCREMENTS, MULTIPLIERS, ROUNDS, philox
from tvmgraph.ops.common.arguments import bad

__all__ = [
    "bits_to_integers", "bits_to_permutation", "bits_to_uniform", "random_bits",
]  # fmt: skip

_MULTIPLIERS = np.array(MULTIPLIERS, np.uint64).reshape(2, 1)
_LOW = 0xFFFFFFFF
#: Words from which a kernel of their own is worth the call.
_MIN_WRITTEN = 256
_NO_DERIVATIVE = Reason("random bits are integers, which have no derivative")
_NO_ONNX = Reason("ONNX has no counter-based random generator; call eval() before exporting")


@functools.lru_cache(maxsize=16)
def _keys(seed: int) -> np.ndarray:
    """The two words that every round adds, of shape (rounds, 2, 1)."""
    words = tuple(zip((seed, seed >> 32), INCREMENTS))
    rounds = [[[word + r * step & _LOW] for word, step in words] for r in range(ROUNDS)]
    return np.array(rounds, np.uint32)


_CHUNK = 4096  # blocks whose intermediate words stay in the first-level cache
#: Blocks that are computed at a time for small draws, and up to how many of them are one: those of
#: a stream follow each other, and NumPy takes as long over a few blocks as over hundreds.
_AHEAD, _FEW = 2048, 512


def _eager_bits(state: np.ndarray, *, offset: int, count: int) -> np.ndarray:
    seed, first = (int(v) for v in state)
    blocks = -(-count // 4)
    if blocks <= _FEW:
        group, at = divmod(first + offset, _AHEAD)
        words = _group(seed, group)[:, at : at + blocks]
        if at + blocks > _AHEAD:
            words = np.hstack((words, _group(seed, group + 1)[:, : at + blocks - _AHEAD]))
    else:
        words = _words(seed, first + offset, blocks)
    return words.flatten()[:count]


@functools.lru_cache(maxsize=4)
def _group(seed: int, number: int) -> np.ndarray:
    """The words of one of the groups of blocks that the stream of a seed consists of."""
    return _words(seed, number * _AHEAD, _AHEAD)


def _words(seed: int, first: int, blocks: int) -> np.ndarray:
    """The words of blocks from ``first`` on, of shape (4, blocks)."""
    words = np.empty((4, blocks), np.uint32)
    for start in range(0, blocks, _CHUNK):
        stop = min(start + _CHUNK, blocks)
        number = np.arange(start, stop, dtype=np.uint64) + np.uint64(first)
        words[::2, start:stop], words[1::2, start:stop] = _numpy_blocks(number, _keys(seed))
    return words


def _numpy_blocks(number: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The even and the odd words of blocks, in pairs: few calls, since those of NumPy are slow."""
    even, odd = np.zeros((2, 2, number.size), np.uint32)
    even[0], odd[0] = number, number >> np.uint64(32)
    products = np.empty((2, number.size), np.uint64)
    # the words of a product as they lie in memory, those of the other product first
    low, high = np.moveaxis(products.view("<u4").reshape(2, -1, 2)[::-1], -1, 0)
    for key in keys:
        np.multiply(even, _MULTIPLIERS, out=products)
        np.bitwise_xor(high, odd, out=even)
        even ^= key
        odd = low.copy()
    return even, odd


def _random_bits(R: Builder) -> Callable[..., Expr]:
    """Word ``w`` of block ``b`` is element ``w * blocks + b``, so that loops run over blocks.

    The expression computes a block for each of its words, which a kernel of its own need not.
    """

    def word(v: int) -> Expr:
        return R.tir.const(v, "uint32")

    def wide(v: int) -> Expr:
        return R.tir.const(v, "uint64")

    def halves(v: Any) -> tuple[Expr, Expr]:
        # masked first, since TVM does not know that the cast drops the upper half
        low = (v & wide(_LOW)).astype("uint32")
        return (v >> wide(32)).astype("uint32"), low

    def random_bits(s: Expr, count: Expr, blocks: Expr, offset: Expr) -> Expr:
        skipped = wide(offset) if isinstance(offset, int) else offset.astype("uint64")

        def element(i: Expr) -> Expr:
            products: list[tuple[object, object]] = []

            def mul(a: Expr, m: int) -> tuple[Expr, Expr]:
                """Both halves are used: without a name the formula would double every round."""
                products.append((R.tir.Var("product", "uint64"), a.astype("uint64") * wide(m)))
                return halves(products[-1][0])

            block = R.te.indexmod(i, blocks)
            number = block.astype("uint64") + s[1].astype("uint64") + skipped
            high, low = halves(number)
            key_high, key_low = halves(s[0].astype("uint64"))
            words = philox((low, high), (key_low, key_high), mul, word)
            which = R.te.indexdiv(i, blocks)
            first = R.tir.Select(which == 0, words[0], words[1])
            last = R.tir.Select(which == 2, words[2], words[3])
            result = R.tir.Select(which < 2, first, last)
            for product, value in reversed(products):
                result = R.tir.Let(product, value, result)
            return result

        return R.te.compute((R.int64(count),), element, name="random_bits")

    return random_bits


def _lower_bits(R: Builder, state: Expr, *, offset: int, count: int) -> Expr:
    blocks = -(-count // 4)
    fixed = isinstance(count, int) and isinstance(offset, int) and count >= _MIN_WRITTEN
    written_as = ("random_bits", str(offset)) if fixed else None
    sizes = map(R.extent, (count, blocks, offset))
    return R.emit_te(_random_bits(R), state, *sizes, written_as=written_as)


def _infer_bits(state: TensorType, *, offset: int, count: int) -> TensorType:
    if state.shape != (2,) or state.dtype is not dtypes.int64:
        raise ShapeError("state must be an int64 tensor of seed and counter")
    if count < 0 or offset < 0:
        raise ArgumentError(f"count and offset must not be negative ({count} and {offset})")
    return tensor_type((count,), dtypes.uint32, state.device)


@primitive(
    infer=_infer_bits,
    traits=Traits(Pattern.OPAQUE, Reason("a number depends on its place in the stream")),
    eager=_eager_bits,
    lower=_lower_bits,
    vjp=_NO_DERIVATIVE,
    onnx=_NO_ONNX,
    samples=[
        sample(np.array([0, 0]), offset=0, count=4),
        sample(np.array([12345, 7]), offset=3, count=17),
        sample(np.array([2**62 + 5, 2**33 - 2]), offset=1, count=1001),
        sample(np.array([1, 0]), offset=0, count=0),
        sample(np.array([1]), offset=0, count=1, raises=ShapeError),
        sample(np.array([1, 2]), offset=-1, count=1, raises=ArgumentError),
    ],
)
def random_bits(state: Tensor, offset: int, count: int) -> Tensor:
    """Returns ``count`` random 32-bit words of the Philox4x32-10 generator.

    Args:
        state: int64 tensor of the seed and the number of the first block.
        offset: Blocks to skip after that.
        count: Number of words; four come from one block.

    Returns:
        uint32 tensor of shape ``(count,)``.

    Reference:
        Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """
    ...


# ---- bits to numbers ----------------------------------------------------------------------------


def _infer_uniform(bits: TensorType, *, dtype: dtypes.DType) -> TensorType:
    rules.require_dtype(bits, (dtypes.uint32,), "bits")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(f"uniform numbers are float32 or float64, not {dtype.name}")
    if dtype is dtypes.float32:
        return bits.with_dtype(dtype)
    if bits.ndim != 2 or bits.shape[0] != 2:
        raise ShapeError("float64 numbers need bits of shape (2, n)")
    return tensor_type((bits.shape[1],), dtype, bits.device)


def _eager_uniform(bits: np.ndarray, *, dtype: dtypes.DType) -> np.ndarray:
    if dtype is dtypes.float32:
        return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    high = (bits[0] >> np.uint32(5)).astype(np.float64)
    return (high * 2.0**26 + (bits[1] >> np.uint32(6)).astype(np.float64)) * 2.0**-53


def _lower_uniform(R: Builder, bits: Expr, *, dtype: dtypes.DType) -> Expr:
    def shifted(v: Expr, by: int) -> Expr:
        # through a signed integer, for which there is a vector instruction
        return (v >> R.tir.const(by, "uint32")).astype("int32").astype(dtype.name)

    def uniform(b: Expr) -> Any:
        scale = R.tir.const(2.0**-24, "float32")
        return R.te.compute(b.shape, lambda *i: shifted(b(*i), 8) * scale, name="uniform")

    def uniform_double(b: Expr) -> Expr:
        scale, unit = (R.tir.const(v, "float64") for v in (2.0**26, 2.0**-53))
        return R.te.compute(
            (b.shape[1],), lambda i: (shifted(b[0, i], 5) * scale + shifted(b[1, i], 6)) * unit,
            name="uniform",
        )  # fmt: skip

    return R.emit_te(uniform if dtype is dtypes.float32 else uniform_double, bits)


_WORDS = np.array([0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)


def _uniform_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """Every number; two rows of bits make one float64."""
    return ". n -> n" if attrs["dtype"] is dtypes.float64 else "... -> ..."


@primitive(
    infer=_infer_uniform,
    traits=Traits(Pattern.OPAQUE, _uniform_factors),
    eager=_eager_uniform,
    lower=_lower_uniform,
    vjp=_NO_DERIVATIVE,
    onnx=_NO_ONNX,
    samples=[
        sample(_WORDS, attrs={"dtype": dtypes.float32}),
        sample(_WORDS[:6].reshape(3, 2), attrs={"dtype": dtypes.float32}),
        sample(_WORDS[:6].reshape(2, 3), attrs={"dtype": dtypes.float64}),
        sample((0,), dtype="uint32", attrs={"dtype": dtypes.float32}),
        sample(_WORDS, attrs={"dtype": dtypes.float16}, raises=DTypeError),
        sample((3,), dtype="int32", attrs={"dtype": dtypes.float32}, raises=DTypeError),
    ],
)
def bits_to_uniform(bits: Tensor, dtype: dtypes.DType) -> Tensor:
    r"""Turns random words into multiples of :math:`2^{-24}` (float64: :math:`2^{-53}`) in [0, 1).

    Args:
        bits: uint32 tensor; for float64 of shape ``(2, n)``.
        dtype: float32 or float64.

    Returns:
        One number per word (float64: per column).
    """
    ...


def _infer_integers(bits: TensorType, *, low: int, high: int, dtype: dtypes.DType) -> TensorType:
    rules.require_dtype(bits, (dtypes.uint32,), "bits")
    if high <= low:
        raise ArgumentError(f"low ({low}) must be less than high ({high})")
    if high - low > 2**32:
        raise ArgumentError(f"the range [{low}, {high}) is wider than 2**32")
    return bits.with_dtype(dtype)


def _eager_integers(bits: np.ndarray, *, low: int, high: int, dtype: dtypes.DType) -> np.ndarray:
    scaled = (bits.astype(np.uint64) * np.uint64(high - low)) >> np.uint64(32)
    return (scaled.astype(np.int64) + np.int64(low)).astype(dtype.numpy)


def _lower_integers(R: Builder, bits: Expr, *, low: int, high: int, dtype: dtypes.DType) -> Expr:
    def integers(b: Expr) -> Any:
        def element(*index: Expr) -> Expr:
            product = b(*index).astype("uint64") * R.tir.const(high - low, "uint64")
            scaled = (product >> R.tir.const(32, "uint64")).astype("int64")
            return (scaled + R.tir.const(low, "int64")).astype(dtype.name)

        return R.te.compute(b.shape, element, name="randint")

    return R.emit_te(integers, bits)


@primitive(
    infer=_infer_integers,
    traits=ELEMENTWISE,
    eager=_eager_integers,
    lower=_lower_integers,
    vjp=_NO_DERIVATIVE,
    onnx=_NO_ONNX,
    samples=[
        sample(_WORDS, attrs={"low": 0, "high": 10, "dtype": dtypes.int64}),
        sample(_WORDS, attrs={"low": -5, "high": 5, "dtype": dtypes.int32}),
        sample(_WORDS, attrs={"low": -(2**31), "high": 2**31, "dtype": dtypes.int64}),
        sample((0,), dtype="uint32", attrs={"low": 0, "high": 1, "dtype": dtypes.int8}),
        sample(_WORDS, attrs={"low": 3, "high": 3, "dtype": dtypes.int64}, raises=ArgumentError),
    ],
)
def bits_to_integers(bits: Tensor, low: int, high: int, dtype: dtypes.DType) -> Tensor:
    r"""Turns random words into integers: :math:`low + \lfloor bits (high - low) / 2^{32} \rfloor`.

    Args:
        bits: uint32 tensor.
        low: Smallest integer.
        high: One more than the largest integer; the range spans at most :math:`2^{32}`.
        dtype: Element type of the result.

    Returns:
        Tensor of ``bits``' shape.
    """
    ...


def _infer_permutation(bits: TensorType, *, dtype: dtypes.DType) -> TensorType:
    rules.require_dtype(bits, (dtypes.uint32,), "bits")
    rules.require_ndim(bits, 1, "bits")
    return bits.with_dtype(dtype)


def _lower_permutation(R: Builder, bits: Expr, *, dtype: dtypes.DType) -> Expr:
    """Sorts the random words, equal ones in their order."""

    def keys(b: Expr) -> Expr:
        def element(i: Expr) -> Expr:
            moved = b[i] ^ R.tir.const(2**31, "uint32")  # unsigned order as that of signed integers
            return R.tir.reinterpret("int32", moved)

        return R.te.compute(b.shape, element, name="keys")

    order = R.emit(R.op.argsort(R.emit_te(keys, bits), axis=0, dtype="int32"))
    return R.op.astype(order, dtype.name)


@primitive(
    infer=_infer_permutation,
    traits=Traits(Pattern.OPAQUE, Reason("every number is compared with all others")),
    eager=lambda bits, *, dtype: np.argsort(bits, kind="stable").astype(dtype.numpy),
    lower=_lower_permutation,
    vjp=_NO_DERIVATIVE,
    onnx=_NO_ONNX,
    samples=[
        sample((17,), dtype="uint32", low=0, high=2**32 - 1, attrs={"dtype": dtypes.int64}),
        sample((50,), dtype="uint32", low=0, high=3, attrs={"dtype": dtypes.int32}),
        sample((1,), dtype="uint32", low=0, high=3, attrs={"dtype": dtypes.int64}),
        sample((0,), dtype="uint32", low=0, high=3, attrs={"dtype": dtypes.int64}),
        sample((2, 2), dtype="uint32", low=0, high=3, attrs={"dtype": dtypes.int64},
               raises=ShapeError),
    ],
)  # fmt: skip
def bits_to_permutation(bits: Tensor, dtype: dtypes.DType) -> Tensor:
    """Turns random words into a random permutation: the order that sorts them.

    Args:
        bits: uint32 tensor of shape ``(n,)``.
        dtype: Element type of the result.

    Returns:
        The integers below ``n`` in random order.
    """
    ...


# ---- drawing ------------------------------------------------------------------------------------


def draw_bits(count: int | Dim, seed: object, op: str) -> Tensor:
    """Draws random words from the global stream, or from a stream of their own.

    Args:
        count: Number of words.
        seed: ``None`` for the global stream, a Generator for another; an int gives the same words
            at every call.
        op: Name of the calling function, for errors.

    Raises:
        DTypeError: if ``seed`` is not an int.
        ArgumentError: if ``seed`` is negative.
    """
    if seed is None or isinstance(seed, stream.Generator):
        state, offset = (seed or stream.default_generator).draw(-(-count // 4))
        return F.random_bits(state, offset, count)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise bad(DTypeError, f"seed must be an int, not {type(seed).__name__}", op,
                  f"seed={seed!r}")  # fmt: skip
    if not 0 <= seed < 1 << 63:
        raise bad(ArgumentError, "seed must be in [0, 2**63)", op, f"seed={seed}")
    return F.random_bits(Tensor(np.array([seed, 0], np.int64)), 0, count)


def draw_uniform(
    shape: Shape, seed: object, op: str, dtype: dtypes.DType = dtypes.float32
) -> Tensor:
    """Draws uniform numbers in [0, 1); half precision is rounded from float32.

    Args:
        shape: Shape of the result.
        seed: ``None`` for the global stream, a Generator for another; an int gives the same numbers
            every time.
        op: Name of the calling function, for errors.
        dtype: A floating-point dtype.
    """
    words: Any = math.prod(shape) * (2 if dtype is dtypes.float64 else 1)
    return uniform_of(draw_bits(words, seed, op), shape, dtype)


def uniform_of(bits: Tensor, shape: Shape, dtype: dtypes.DType = dtypes.float32) -> Tensor:
    """Returns random words as what :func:`draw_uniform` draws.

    Args:
        bits: Random words, one per element, or two of float64.
        shape: Shape of the result.
        dtype: A floating-point dtype.
    """
    if dtype is dtypes.float64:
        bits = F.reshape(bits, (2, bits.shape[0] // 2))
        return F.reshape(F.bits_to_uniform(bits, dtype), shape)
    u = F.reshape(F.bits_to_uniform(bits, dtypes.float32), shape)
    return u if dtype is dtypes.float32 else F.cast(u, dtype)


def draw_normal(
    shape: tuple[int, ...], seed: object, op: str, dtype: dtypes.DType = dtypes.float32
) -> Tensor:
    """Draws standard normal numbers by the Box-Muller transform.

    Args:
        shape: Shape of the result.
        seed: ``None`` for the global stream, a Generator for another; an int gives the same numbers
            every time.
        op: Name of the calling function, for errors.
        dtype: A floating-point dtype.
    """
    words = -(-math.prod(shape) // 2) * (4 if dtype is dtypes.float64 else 2)
    return _normal_of(draw_bits(words, seed, op), shape, dtype)


@fusible
def _normal_of(bits: Tensor, shape: tuple[int, ...], dtype: dtypes.DType) -> Tensor:
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    count = math.prod(shape)
    half = -(-count // 2)
    first, second = F.split_at(uniform_of(bits, (2 * half,), wide), (half,), 0)
    radius = F.sqrt(F.log(1 - first) * -2.0)  # 1 - u lies in (0, 1]
    angle = second * (2.0 * math.pi)
    z = F.concat((radius * F.cos(angle), radius * F.sin(angle)), 0)
    if 2 * half != count:
        z = F.split_at(z, (count,), 0)[0]
    z = F.reshape(z, shape)
    return z if dtype is wide else F.cast(z, dtype)
