"""3 x 3 convolution of NCHWc images by Winograd's method.

Blocking: the patches of the image are transformed one vector of channels at a time, into
``[product][channels][tile][channel]``. A group of tiles and a few vectors of output channels then
take one small matrix product per product of the transform, whose results stay in the second-level
cache, the transform of the sums, and the epilogue. Where the weights are less than the patches, a
work item is a group of tiles with all channels and transforms the patches it needs; else all
workers transform all patches first, and a work item keeps to a few output channels. The groups of a
grouped convolution are independent of each other: a work item keeps to one of them.

Sums of infinities are NaN in transformed form, and huge values overflow earlier than in a plain sum
of products. A work item that finds a sum that is not finite computes its results again, directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.emitter import Vectors, vector_at
from tvmgraph.backend.cpu.kernels.conv.nchwc import match_packed
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile
from tvmgraph.backend.cpu.kernels.gemm.plan import imbalance, step_cycles
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.machine.processor import CpuModel
from tvmgraph.numerics.winograd import Matrices, matrices

#: Rows and vectors of a tile of the products where registers hold more: for shorter code.
_MAX_TILES, _MAX_VECTORS = 28, 4


class _Winograd:
    def __init__(self, contraction: Contraction, maths: Matrices, model: CpuModel) -> None:
        self.contraction = contraction
        (self.transformed,) = contraction.declared
        self.maths = maths
        self.model = model
        self.dtype = contraction.dtype
        self.image = contraction.left.load.source
        batch, blocks, _, _, block = static_shape(self.image) or (0,) * 5
        height, width = (axis.extent for axis in contraction.rows[-2:])
        most = model.lanes_of(dtype_bytes(self.dtype))
        self.size = (height, width)
        self.grid = (batch, -(-height // maths.tile), -(-width // maths.tile))
        self.in_lanes, self.in_block = min(block, most), block
        self.channel_groups = product(axis.extent for axis in contraction.batch)
        self.in_vectors = blocks * block // self.in_lanes // self.channel_groups
        columns = contraction.columns
        self.out_lanes = min(columns[-1].extent, most)
        self.out_vectors = product(a.extent for a in columns) // self.out_lanes
        self.tiles = product(self.grid)
        self.group_tiles, self.vectors = self._plan()
        self.tile_groups = -(-self.tiles // self.group_tiles)

    def __str__(self) -> str:
        return (
            f"size={self.maths.tile}, tiles={self.group_tiles}, vectors={self.vectors}, "
            f"local={self.local}, convolution={self.contraction.convolution}"
        )

    @property
    def local(self) -> bool:
        """Whether every work item transforms the patches it needs, and computes all channels.

        It does where the patches are more than the weights, which then are what stays in the cache,
        and in a grouped convolution.
        """
        return (
            self.channel_groups > 1
            or self.tiles * self.in_vectors > self.in_vectors * self.out_vectors * self.out_lanes
        )

    def _plan(self) -> tuple[int, int]:
        """Tiles, and vectors of output channels, of a register tile."""
        model, best, best_cost = self.model, (1, 1), float("inf")
        for vectors in range(1, _MAX_VECTORS + 1):
            if self.out_vectors % vectors:
                continue
            limit = min((model.registers - 1 - vectors) // vectors, _MAX_TILES, self.tiles)
            for tiles in range(1, limit + 1):
                blocks = self.out_vectors // vectors
                items = -(-self.tiles // tiles) * (self.channel_groups if self.local else blocks)
                cost = -(-self.tiles // tiles) * blocks * (step_cycles(tiles, vectors, model) + 0.1)
                cost /= 1 - imbalance(items, model.threads)
                if cost < best_cost:
                    best, best_cost = (tiles, vectors), cost
        return best

    def write(self) -> None:
        """Writes the loops: transforms shared by all workers, or of a work item's own."""
        blocks = self.out_vectors // self.vectors
        parallel = self.model.threads > 1
        if self.local:
            with emit.parallel(self.channel_groups * self.tile_groups, parallel) as item:
                part, group = emit.unfuse(item, [self.channel_groups, self.tile_groups])
                patches = self._patches(self.group_tiles)
                first = group * self.group_tiles
                count = tirx.min(emit.i64(self.group_tiles), emit.i64(self.tiles) - first)
                with emit.serial(self.in_vectors) as vector, emit.serial(count) as number:
                    place = (part * self.in_vectors, vector)
                    self._transform_patch(patches, first + number, number, place)
                with emit.serial(blocks) as block:
                    vector = part * self.out_vectors + block * self.vectors
                    self._item((patches, emit.i64(0)), vector, first)
            return
        patches = self._patches(self.tile_groups * self.group_tiles)
        with emit.parallel(self.in_vectors * self.tiles, parallel) as item:
            vector, number = emit.unfuse(item, [self.in_vectors, self.tiles])
            self._transform_patch(patches, number, number, (emit.i64(0), vector))
        with emit.parallel(blocks * self.tile_groups, parallel) as item:
            block, group = emit.unfuse(item, [blocks, self.tile_groups])
            first = group * self.group_tiles
            self._item((patches, first), block * self.vectors, first)

    def _patches(self, tiles: int) -> Buffer:
        shape = [self.maths.patch**2, self.in_vectors, tiles, self.in_lanes]
        return emit.workspace(shape, self.dtype)

    # ---- the image --------------------------------------------------------------------------

    def _transform_patch(
        self, patches: Buffer, tile: Expr, slot: Expr, place: tuple[Expr, Expr]
    ) -> None:
        """B^T d B of the patch of one tile and one vector of channels, stored at ``slot``.

        Args:
            patches: Where it is stored.
            tile: The tile.
            slot: Its number among those of ``patches``.
            place: The first vector of channels that ``patches`` holds, and which one after it.
        """
        maths, lanes = self.maths, self.in_lanes
        patch = maths.patch
        image, corner = self._corner(tile)
        per_block = self.in_block // lanes
        first, vector = place
        block, part = emit.unfuse(first + vector, [1, per_block])

        def pixel(row: int, column: Expr) -> Expr:
            at = (corner[0] + row, corner[1] + column)
            return self.image[(image, block, *at, emit.ramp(part * lanes, lanes))]

        half = _registers(patch * patch, lanes, self.dtype)
        with emit.serial(patch) as column:
            read = [pixel(row, column) for row in range(patch)]
            for row, value in enumerate(_apply(maths.input, read, lanes, self.dtype)):
                half.put(column + row * patch, value)
        with emit.serial(patch) as row:
            read = [half.get(row * patch + column) for column in range(patch)]
            for column, value in enumerate(_apply(maths.input, read, lanes, self.dtype)):
                at = [row * patch + column, vector, slot, emit.ramp(0, lanes)]
                emit.store(patches, value, at)

    # ---- products and results ---------------------------------------------------------------

    def _item(self, patches: tuple[Buffer, Expr], vector: Expr, first: Expr) -> None:
        """The results of one group of tiles and of output channels.

        Args:
            patches: The transformed image, and where in it the group starts.
            vector: The first vector of output channels, counted over all groups of channels.
            first: The first tile.
        """
        points, lanes = self.maths.patch**2, self.out_lanes
        tile = Tile(self.group_tiles, self.vectors, lanes, self.dtype)
        sums = emit.workspace([points, tile.size], self.dtype)
        with emit.serial(points) as number:
            total = multiply_tile(
                tile,
                [self.in_vectors, self.in_lanes],
                1,
                lambda row, at: patches[0][(number, at[0], patches[1] + row, at[1])],
                lambda at, v, _: self._weight(number, vector + v, at),
            )
            for at in range(0, tile.size, lanes):
                emit.store(sums, total[emit.ramp(at, lanes)], [number, emit.ramp(at, lanes)])
        check = _registers(1, lanes, self.dtype)
        check.put(0, emit.broadcast(emit.zero(self.dtype), lanes))
        nothing = emit.stack(1, self.dtype)  # in memory, so that x * 0 is not simplified to 0
        emit.store(nothing, emit.zero(self.dtype), [0])
        self._each(first, lambda number, v: self._finish(
            sums, (number, vector + v), (number - first) * self.vectors + v, check, nothing
        ))  # fmt: skip
        bad = emit.stack(1, self.dtype)
        emit.store(bad, emit.zero(self.dtype), [0])
        for lane in range(lanes):
            emit.store(bad, bad[0] + check.buffer[lane], [0])
        emit.only_if(
            tirx.isnan(bad[0]),
            lambda: self._each(first, lambda number, v: self._direct(number, vector + v)),
        )

    def _each(self, first: Expr, body: Callable[[Expr, Expr], None]) -> None:
        """Calls ``body(tile, vector)`` for what exists of a group."""
        count = tirx.min(emit.i64(self.group_tiles), emit.i64(self.tiles) - first)
        with emit.serial(count) as number, emit.serial(self.vectors) as vector:
            body(first + number, vector)

    def _weight(self, number: Expr, vector: Expr, at: Sequence[Expr]) -> Expr:
        block, part = self._block(vector)
        channel = at[0] * self.in_lanes + at[1]
        return self.transformed[(number, block, channel, emit.ramp(part, self.out_lanes))]

    def _block(self, vector: Expr) -> tuple[Expr, Expr]:
        """The block of output channels of a vector, and where in it the vector starts."""
        per_block = self.contraction.columns[-1].extent // self.out_lanes
        block, part = emit.unfuse(vector, [1, per_block])
        return block, part * self.out_lanes

    def _finish(
        self, sums: Buffer, place: tuple[Expr, Expr], at: Expr, check: Vectors, nothing: Buffer
    ) -> None:
        """A^T m A of one tile and one vector of channels, and the epilogue."""
        maths, lanes, dtype = self.maths, self.out_lanes, self.dtype
        patch, size = maths.patch, maths.tile
        half = _registers(size * patch, lanes, dtype)
        with emit.serial(patch) as column:
            read = [
                sums[(column + row * patch, emit.ramp(at * lanes, lanes))] for row in range(patch)
            ]
            for row, value in enumerate(_apply(maths.output, read, lanes, dtype)):
                half.put(column + row * patch, value)
        results = _registers(size * size, lanes, dtype)
        zero = emit.broadcast(nothing[0], lanes)
        with emit.serial(size) as row:
            read = [half.get(row * patch + column) for column in range(patch)]
            for column, value in enumerate(_apply(maths.output, read, lanes, dtype)):
                results.put(row * size + column, value)
        with emit.serial(size * size) as number:
            check.put(0, check.get(0) + results.get(number) * zero)

        def result(row: Expr, column: Expr) -> Callable[[Expr], Expr]:
            return lambda lane: results.buffer[(row * size + column) * lanes + lane]

        self._store(result, *place)

    def _direct(self, tile: Expr, vector: Expr) -> None:
        """The results of a tile as plain sums of products."""
        contraction = self.contraction
        image, corner = self._corner(tile)
        shape = Tile(1, 1, self.out_lanes, self.dtype)
        k_extents = [axis.extent for axis in contraction.reduce]

        def result(row: Expr, column: Expr) -> Callable[[Expr], Expr]:
            place = self._channel(vector) | self._position(
                image, corner[0] + row, corner[1] + column
            )

            def at(taps: Sequence[Expr]) -> Bound:
                return place | {axis.var: tap for axis, tap in zip(contraction.reduce, taps)}

            total = multiply_tile(
                shape, k_extents, 1,
                lambda _, taps: substitute(contraction.left.expr, at(taps)),
                lambda taps, _, lanes: vector_at(contraction.right.load, at(taps), lanes),
            )  # fmt: skip
            return lambda lane: total[lane]

        self._store(result, tile, vector)

    def _store(
        self, result: Callable[[Expr, Expr], Callable[[Expr], Expr]], tile: Expr, vector: Expr
    ) -> None:
        """Runs the epilogue on the results of a tile that exist.

        Args:
            result: Writes what computes the result at a row and column of the tile, and returns
                its elements.
            tile: The tile.
            vector: The vector of output channels.
        """
        size, lanes = self.maths.tile, self.out_lanes
        inner = self.contraction.columns[-1]
        epilogue = Epilogue(self.contraction, [inner])
        channel = self._channel(vector)
        image, corner = self._corner(tile)
        rows, columns = (
            tirx.min(emit.i64(size), extent - start) if extent % size else emit.i64(size)
            for extent, start in zip(self.size, corner)
        )
        with emit.serial(rows) as row, emit.serial(columns) as column:
            bound = self._position(image, corner[0] + row, corner[1] + column) | channel
            epilogue.vector(bound, channel[inner.var], lanes, result(row, column))

    # ---- places -----------------------------------------------------------------------------

    def _corner(self, tile: Expr) -> tuple[Expr, tuple[Expr, Expr]]:
        """The image of a tile, and its first row and column."""
        image, row, column = emit.unfuse(tile, list(self.grid))
        return image, (row * self.maths.tile, column * self.maths.tile)

    def _position(self, image: Expr, row: Expr, column: Expr) -> Bound:
        axes = self.contraction.rows
        values = (image, row, column)[-len(axes) :]
        return {axis.var: value for axis, value in zip(axes, values)}

    def _channel(self, vector: Expr) -> Bound:
        batch, columns = self.contraction.batch, self.contraction.columns
        block, first = self._block(vector)
        outer = (*batch, *columns[:-1])
        values = emit.unfuse(block, [axis.extent for axis in outer])
        return {axis.var: value for axis, value in zip(outer, values)} | {columns[-1].var: first}


def _registers(count: int, lanes: int, dtype: str) -> Vectors:
    return Vectors(emit.stack(count * lanes, dtype), lanes)


def _apply(matrix: np.ndarray, vectors: Sequence[Expr], lanes: int, dtype: str) -> list[Expr]:
    """The products of a matrix with a column of vectors.

    Rows that differ in the signs of every second entry, and columns likewise, belong to points
    that differ in sign; what they have in common is computed once.
    """
    rows, columns = matrix.shape
    if rows < columns:  # sums and differences of the vectors that belong to such points
        return _apply_paired_columns(matrix, vectors, lanes, dtype)
    results: list[Expr] = [linear(matrix[0], vectors, lanes, dtype)]
    for row in range(1, rows - 1, 2):
        even, odd = matrix[row].copy(), matrix[row].copy()
        even[1::2], odd[::2] = 0, 0
        common = _registers(2, lanes, dtype)
        common.put(0, linear(even, vectors, lanes, dtype))
        common.put(1, linear(odd, vectors, lanes, dtype))
        results += [common.get(0) + common.get(1), common.get(0) - common.get(1)]
    return [*results, linear(matrix[-1], vectors, lanes, dtype)]


def _apply_paired_columns(
    matrix: np.ndarray, vectors: Sequence[Expr], lanes: int, dtype: str
) -> list[Expr]:
    rows, columns = matrix.shape
    pairs = range(1, columns - 1, 2)
    both = _registers(2 * len(pairs), lanes, dtype)
    for slot, column in enumerate(pairs):
        both.put(2 * slot, vectors[column] + vectors[column + 1])
        both.put(2 * slot + 1, vectors[column] - vectors[column + 1])
    results: list[Expr] = []
    for row in range(rows):
        parts = [both.get(2 * slot + row % 2) for slot in range(len(pairs))]
        factors = [matrix[row, 0], *(matrix[row, column] for column in pairs), matrix[row, -1]]
        results.append(linear(factors, [vectors[0], *parts, vectors[-1]], lanes, dtype))
    return results


def linear(factors: Sequence[float], vectors: Sequence[Expr], lanes: int, dtype: str) -> Expr:
    """The sum of vectors times constants.

    Args:
        factors: The constants; 0 and 1 cost nothing.
        vectors: As many vectors.
        lanes: Elements of a vector.
        dtype: Their type.
    """
    total: Expr | None = None
    for factor, vector in zip(factors, vectors):
        if factor == 0:
            continue
        scale = emit.broadcast(tirx.const(float(factor), dtype), lanes)
        term = vector if factor == 1 else vector * scale
        total = term if total is None else total + term
    assert total is not None
    return total


def _match(nest: Nest, model: CpuModel) -> Contraction | Refused:
    found = match_packed(nest, model)
    if isinstance(found, Refused):
        return found
    if found.convolution is None or not found.convolution.winograd:
        return Refused("its weight is not transformed")
    return found


def _plan(contraction: Contraction, model: CpuModel) -> _Winograd:
    assert contraction.convolution is not None
    return _Winograd(contraction, matrices(contraction.convolution.winograd), model)


KERNEL = Kernel(
    "conv_winograd", _match, lambda _found, plan, _writer: plan.write(),
    "3 x 3 convolution of an NCHWc image", _plan,
)  # fmt: skip
