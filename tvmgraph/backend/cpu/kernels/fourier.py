"""Fast Fourier transforms: Stockham's algorithm, whose passes sort as they go.

A transform of :math:`n = r_1 r_2 \\dots` elements takes a pass per radix. A pass of radix r turns
stretches of ``s`` neighbours, s the product of the radices before, into stretches of ``r s``:

.. math:: y_{q + s (r p + k)} = w^{p k} \\sum_j e^{\\pm 2 \\pi i j k / r} x_{q + s (p + m j)}

for :math:`q < s` and :math:`p < m = n / (r s)`, with a root of unity w of order ``r m``.
Butterflies are held in registers, real and imaginary parts in vectors of their own. The lanes of a
vector are neighbours in a stretch, whose roots are the same; in the first pass, where s is 1, they
are values of p, and results are transposed in registers. Where the axis is not the last one,
elements beside each other belong to transforms of their own: the first stretch has as many.

Sources: Stockham, "High-speed convolution and correlation", 1966; Van Loan, "Computational
frameworks for the fast Fourier transform", 1992, sections 1.7 and 2.4.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import kept, transpose
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.point import Bound, vectors
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, scalar_of
from tvmgraph.machine.processor import CpuModel

#: Below this many elements a kernel stays on the calling thread.
_MIN_PARALLEL = 8 * 1024

#: A vector of real and one of imaginary parts; None are all 0.
_Complex = tuple[Expr, Expr | None]


@dataclass(frozen=True)
class _At:
    """A butterfly: its p, and its q as a block of neighbours and a place among them."""

    p: Expr
    block: Expr
    place: Expr
    lanes: int


#: Reads an element of a butterfly, given its number.
_Read = Callable[[_At, int], _Complex]
#: Writes the results of a butterfly.
_Write = Callable[[_At, Sequence[_Complex]], None]


def emit_fourier(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes a tensor, twiddles as :func:`tvmgraph.ops.fourier.stockham.twiddles` orders
            them, and the first elements of the result. Parts of complex elements lie along a last
            axis. A tensor of fewer elements than the transform has is half a spectrum; the other
            half is conjugate.
        settings: The axis, parts of given elements and of results (a single one is the real one),
            the sign of the exponent, the factor of the results, and the radices.
        model: The processor.
    """
    axis, given_parts, parts, sign, scale, *radices = str(settings).split()
    source, table, target = func.params
    given = _extents(source, int(axis), int(given_parts))
    wanted = _extents(target, int(axis), int(parts))
    dtype = str(source.dtype)
    transform = _Transform(
        emit.flat(source), emit.flat(table), emit.flat(target), given, wanted, int(sign),
        float(scale), [int(radix) for radix in radices], model.lanes_of(dtype_bytes(dtype)), dtype,
    )  # fmt: skip
    outer, size, inner, _ = given
    threads = model.threads if outer * size * inner >= _MIN_PARALLEL else 1
    loops = [Split(outer, 1), Split(inner, 1 if inner == 1 else transform.lanes)]

    def item(_bound: Bound, ranges: list[Range]) -> None:
        (row, _), (first, width) = ranges
        transform.write(row, first, width)

    write_items(loops, threads > 1, item)


def _extents(buffer: Buffer, axis: int, parts: int) -> tuple[int, int, int, int]:
    """Returns outer and own elements of an axis, inner ones, and the parts of each."""
    shape = static_shape(buffer) or ()
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :]) // parts, parts


@dataclass(frozen=True)
class _Pass:
    """A pass.

    Attributes:
        radix: Elements of a butterfly.
        stretch: Neighbours whose roots are the same, s.
        steps: How many roots there are, m.
        roots: Where they start in the table.
        lanes: Of its vectors.
        along: Whether lanes are values of p; s is 1 then.
        block: Neighbours that vectors must not leave.
    """

    radix: int
    stretch: int
    steps: int
    roots: int
    lanes: int
    along: bool
    block: int

    def source(self, at: _At, number: int) -> Expr:
        """Where an element is read."""
        return at.block * self.block + at.place + self.stretch * (at.p + self.steps * number)

    def target(self, at: _At, number: int) -> Expr:
        """Where a result belongs."""
        return at.block * self.block + at.place + self.stretch * (at.p * self.radix + number)


@dataclass(frozen=True)
class _Transform:
    source: Buffer
    table: Buffer
    target: Buffer
    given: tuple[int, ...]
    wanted: tuple[int, ...]
    sign: int
    scale: float
    radices: Sequence[int]
    lanes: int
    dtype: str

    @property
    def size(self) -> int:
        """Elements of a transform."""
        return product(self.radices)

    @property
    def is_last_axis(self) -> bool:
        """Whether the elements of a transform lie beside each other."""
        return self.given[2] == 1

    def write(self, row: Expr, first: Expr, width: int) -> None:
        """Transforms ``width`` neighbours of a row, from the ``first`` on."""
        scratch = [_Scratch(self.size * width, self.dtype) for _ in range(2)]
        passes = self._passes(width)
        read = self._reader(passes[0], row, first)
        if self.given[1] < self.size:
            self._complete(read, width, scratch[1])
            read = scratch[1].reader(passes[0])
        for number, (step, following) in enumerate(itertools.pairwise(passes)):
            into = scratch[number % 2]
            self._run(step, read, into.transposed(step) if step.along else into.writer(step))
            read = into.reader(following)
        self._run(passes[-1], read, self._writer(passes[-1], row, first))

    def _passes(self, width: int) -> list[_Pass]:
        found: list[_Pass] = []
        stretch, roots = width, 0
        for number, radix in enumerate(self.radices):
            steps = self.size * width // (radix * stretch)
            along = number == 0 and self.is_last_axis
            lanes = min(self.lanes, radix) if along else self.lanes
            block = stretch if self.is_last_axis else width
            found.append(_Pass(radix, stretch, steps, roots, lanes, along, block))
            roots += 2 * steps * (radix - 1)
            stretch *= radix
        return found

    def _run(self, step: _Pass, read: _Read, write: _Write) -> None:
        """Writes the loops of a pass."""

        def butterfly(at: _At) -> None:
            elements = [_kept(read(at, number), at.lanes) for number in range(step.radix)]
            results = _butterfly(elements, self.sign, at.lanes)
            if step.steps > 1:
                roots = [self._root(step, at, number) for number in range(1, step.radix)]
                rotated = [_kept(_times(x, w), at.lanes) for x, w in zip(results[1:], roots)]
                results = [results[0], *rotated]
            write(at, results)

        zero = emit.i64(0)
        if step.along:
            vectors(zero, step.steps, step.lanes, lambda p, n, _: butterfly(_At(p, zero, zero, n)))
            return
        with emit.serial(step.steps) as p, emit.serial(step.stretch // step.block) as block:
            vectors(zero, step.block, step.lanes, lambda at, n, _: butterfly(_At(p, block, at, n)))

    def _root(self, step: _Pass, at: _At, number: int) -> _Complex:
        before = number - 1
        if step.along:
            start = at.p + (step.roots + 2 * before * step.steps)
            real, imag = (
                self.table[emit.ramp(start + part * step.steps, at.lanes)] for part in (0, 1)
            )
            return real, imag
        start = at.p * (2 * (step.radix - 1)) + (step.roots + 2 * before)
        real, imag = (emit.broadcast(self.table[start + part], at.lanes) for part in (0, 1))
        return real, imag

    def _reader(self, step: _Pass, row: Expr, first: Expr) -> _Read:
        """Reads the tensor, whose elements are numbered as the first pass does."""
        _, count, inner, parts = self.given

        def read(at: _At, number: int) -> _Complex:
            element = row * count + (at.p + step.steps * number)
            start = (element * inner + (first + at.place)) * parts
            if parts == 1:
                return self.source[emit.ramp(start, at.lanes)], None
            if at.lanes == 1:
                return self.source[start], self.source[start + 1]
            pairs = kept(self.source[emit.ramp(start, 2 * at.lanes)], 2 * at.lanes, self.dtype)
            real, imag = (emit.shuffle([pairs], range(part, 2 * at.lanes, 2)) for part in (0, 1))
            return real, imag

        return read

    def _complete(self, read: _Read, width: int, scratch: _Scratch) -> None:
        """Copies half a spectrum, and adds the other half: conjugate, in reverse order."""
        zero, lanes = emit.i64(0), self.lanes

        def copy(at: _At, is_mirrored: bool = True) -> None:
            real, imag = _both(_kept(read(at, 0), at.lanes))
            scratch.store(at.p * width + at.place, (real, imag), at.lanes)
            if not is_mirrored:
                return
            mirror = self.size - at.p
            if self.is_last_axis:
                mirror = mirror - (at.lanes - 1)
                real, imag = (_reversed(part, at.lanes) for part in (real, imag))
            scratch.store(mirror * width + at.place, (real, -imag), at.lanes)

        if self.is_last_axis:
            copy(_At(zero, zero, zero, 1), False)
            rest = self.given[1] - 1
            vectors(emit.i64(1), rest, lanes, lambda p, n, _: copy(_At(p, zero, zero, n)))
            return
        vectors(zero, width, lanes, lambda at, n, _: copy(_At(zero, zero, at, n), False))
        with emit.serial(self.given[1] - 1) as before:
            vectors(zero, width, lanes, lambda at, n, _: copy(_At(before + 1, zero, at, n)))

    def _writer(self, step: _Pass, row: Expr, first: Expr) -> _Write:
        """Writes the result, whose elements the last pass puts in order."""
        _, count, inner, _ = self.wanted
        share = self.size // step.radix  # elements that a result of the butterfly is for

        def write(at: _At, results: Sequence[_Complex]) -> None:
            for number, x in enumerate(results[: -(-count // share)]):
                element = (at.place if self.is_last_axis else at.block) + number * share
                place = 0 if self.is_last_axis else first + at.place
                start = (row * count + element) * inner + place
                if (number + 1) * share <= count:
                    self._put(x, start, at.lanes)
                else:
                    self._put_before(count - element, x, start, at.lanes)

        return write

    def _put_before(self, left: Expr, x: _Complex, start: Expr, lanes: int) -> None:
        """Writes elements, or those of the last vector that the result still has."""
        whole = lanes if self.is_last_axis else 1
        emit.only_if(left >= whole, functools.partial(self._put, x, start, lanes))
        for lane in range(whole if whole > 1 else 0):
            fits = tirx.all(left > lane, left < whole)
            emit.only_if(fits, functools.partial(self._put, _lane(x, lane), start + lane, 1))

    def _put(self, x: _Complex, start: Expr, lanes: int) -> None:
        parts = _both(x)[: self.wanted[3]]
        if self.scale != 1:
            factor = emit.broadcast(tirx.const(self.scale, self.dtype), lanes)
            parts = [part * factor for part in parts]
        if len(parts) == 1:
            emit.store(self.target, parts[0], [emit.ramp(start, lanes)])
        elif lanes == 1:
            for number, part in enumerate(parts):
                emit.store(self.target, part, [2 * start + number])
        else:
            order = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
            pairs = emit.shuffle(parts, order)
            emit.store(self.target, pairs, [emit.ramp(2 * start, 2 * lanes)])


class _Scratch:
    """Complex elements between passes: all real parts, then all imaginary ones."""

    def __init__(self, size: int, dtype: str) -> None:
        self._buffer, self._half, self._dtype = emit.workspace([2 * size], dtype), size, dtype

    def reader(self, step: _Pass) -> _Read:
        """Reads elements of a pass."""

        def read(at: _At, number: int) -> _Complex:
            start = step.source(at, number)
            real, imag = (
                self._buffer[emit.ramp(start + part * self._half, at.lanes)] for part in (0, 1)
            )
            return real, imag

        return read

    def writer(self, step: _Pass) -> _Write:
        """Writes results of a pass."""

        def write(at: _At, results: Sequence[_Complex]) -> None:
            for number, x in enumerate(results):
                self.store(step.target(at, number), x, at.lanes)

        return write

    def transposed(self, step: _Pass) -> _Write:
        """Writes results whose lanes are values of p, for which they lie beside each other."""

        def write(at: _At, results: Sequence[_Complex]) -> None:
            for part, columns in enumerate(zip(*map(_both, results))):
                for number, row in enumerate(self._transposed(columns, at.lanes)):
                    start = at.p * step.radix + (number * at.lanes + part * self._half)
                    emit.store(self._buffer, row, [emit.ramp(start, at.lanes)])

        return write

    def store(self, start: Expr, x: _Complex, lanes: int) -> None:
        """Stores elements beside each other."""
        for part, value in enumerate(_both(x)):
            emit.store(self._buffer, value, [emit.ramp(start + part * self._half, lanes)])

    def _transposed(self, columns: Sequence[Expr], lanes: int) -> Sequence[Expr]:
        count = len(columns)
        if lanes == 1:
            return columns
        if lanes != count or lanes & (lanes - 1):
            order = [column * lanes + lane for lane in range(lanes) for column in range(count)]
            parts = [order[at * lanes : (at + 1) * lanes] for at in range(count)]
            return [emit.shuffle(columns, part) for part in parts]
        square = emit.stack(lanes * lanes, self._dtype)
        for number, column in enumerate(columns):
            emit.store(square, column, [emit.ramp(number * lanes, lanes)])
        square = transpose(square, lanes, self._dtype)
        return [square[emit.ramp(number * lanes, lanes)] for number in range(lanes)]


# ---- complex arithmetic ---------------------------------------------------------------------


def _butterfly(x: Sequence[_Complex], sign: int, lanes: int) -> list[_Complex]:
    """The transform of a few elements in registers."""
    count = len(x)
    if count == 1:
        return list(x)
    if count % 2:
        return _odd_butterfly(x, sign, lanes)
    even, odd = (_butterfly(x[start::2], sign, lanes) for start in (0, 1))
    rotated = [_kept(_rotated(v, sign * k / count), lanes) if k else v for k, v in enumerate(odd)]
    sums = [_kept(_add(a, b), lanes) for a, b in zip(even, rotated)]
    return sums + [_kept(_add(a, b, -1), lanes) for a, b in zip(even, rotated)]


def _odd_butterfly(x: Sequence[_Complex], sign: int, lanes: int) -> list[_Complex]:
    """That of a prime: the cosine takes sums of elements j and r - j, the sine differences."""
    count, half = len(x), len(x) // 2 + 1
    sums = [_kept(_add(x[j], x[-j]), lanes) for j in range(1, half)]
    gaps = [_kept(_rotated(_add(x[j], x[-j], -1), 0.25 * sign), lanes) for j in range(1, half)]
    first = x[0]
    for v in sums:
        first = _add(first, v)
    results = {0: _kept(first, lanes)}
    for k in range(1, half):
        even, odd = x[0], None
        for j, (total, gap) in enumerate(zip(sums, gaps), 1):
            angle = 2 * math.pi * (j * k % count) / count
            even = _add(even, _scaled(total, math.cos(angle)))
            share = _scaled(gap, math.sin(angle))
            odd = share if odd is None else _add(odd, share)
        assert odd is not None
        even, odd = _kept(even, lanes), _kept(odd, lanes)
        results[k], results[count - k] = _add(even, odd), _add(even, odd, -1)
    return [_kept(results[k], lanes) for k in range(count)]


def _kept(x: _Complex, lanes: int) -> _Complex:
    """Elements that are read more than once."""
    real, imag = (None if v is None else kept(v, lanes, scalar_of(v)) for v in x)
    assert real is not None
    return real, imag


def _both(x: _Complex) -> list[Expr]:
    real, imag = x
    return [real, emit.number_like(0, real) if imag is None else imag]


def _add(a: _Complex, b: _Complex, sign: int = 1) -> _Complex:
    """a + b, or a - b."""
    real = a[0] + b[0] if sign > 0 else a[0] - b[0]
    if b[1] is None:
        return real, a[1]
    if a[1] is None:
        return real, b[1] if sign > 0 else -b[1]
    return real, a[1] + b[1] if sign > 0 else a[1] - b[1]


def _scaled(x: _Complex, factor: float) -> _Complex:
    real, imag = (None if v is None else v * emit.number_like(factor, v) for v in x)
    assert real is not None
    return real, imag


def _times(x: _Complex, y: _Complex) -> _Complex:
    (a, b), (c, d) = x, y
    assert d is not None
    return (a * c, a * d) if b is None else (a * c - b * d, a * d + b * c)


def _rotated(x: _Complex, turns: float) -> _Complex:
    """An element times e^(2 pi i turns)."""
    real, imag = x
    if abs(turns) == 0.25:
        turned = real if turns > 0 else -real
        if imag is None:
            return emit.number_like(0, real), turned
        return (-imag if turns > 0 else imag), turned
    angle = 2 * math.pi * turns
    return _times(
        x, (emit.number_like(math.cos(angle), real), emit.number_like(math.sin(angle), real))
    )


def _lane(x: _Complex, lane: int) -> _Complex:
    real, imag = (None if v is None else emit.shuffle([v], [lane]) for v in x)
    assert real is not None
    return real, imag


def _reversed(x: Expr, lanes: int) -> Expr:
    return x if lanes == 1 else emit.shuffle([x], range(lanes)[::-1])
