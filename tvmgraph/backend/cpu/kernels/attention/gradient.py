"""The derivative of attention, softmax(scale Q K^T + mask) V, without the matrix of all weights.

With the weights P, the cotangent G of the result O and d = sum(G O) per query, the derivatives are
dV = P^T G, dS = scale P (G V^T - d), dQ = dS K, dK = dS^T Q (Dao et al. 2022). P is computed again,
block after block, from the largest score and the sum of exponentials that were kept per query.

Blocking: a work item is one head of keys and values, with all heads of the query that share it. It
copies the queries and the cotangent into rows of whole vectors. For every block of keys it goes
through the blocks of queries that see it: the weights and the dS of a pair of blocks stay in the
cache, where five products use them. What is done to queries and keys, and then likewise to
cotangents and values, is the same code run twice. Where there are fewer heads than workers, these
take the blocks of keys of a head in turns, each with a dQ of its own, and the sum of those is taken
last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.attention import Derivative, Operand, Problem
from tvmgraph.backend.cpu.intrinsics import exp_nonpositive
from tvmgraph.backend.cpu.kernels.attention.plan import (
    GradPlan,
    even_tile,
    plan_gradient,
    rounded_up,
)
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile, store_tile, transpose
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.reducer import horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index
from tvmgraph.machine.processor import CpuModel


def emit_attention_gradient(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes query, key, value, perhaps a mask, the result, its statistics and its
            cotangent, and gives the cotangents of query, key and value.
        settings: The attributes of ``ops.attention_gradient`` as JSON.
        model: The processor.
    """
    asked = Derivative.of(func, str(settings))
    plan = plan_gradient(asked.problem, model)
    _Writer(asked.problem, plan, asked.cotangent, asked.results).write()


@dataclass(frozen=True)
class Rows:
    """Rows of whole vectors: element (r, c) is ``buffer[base + r * width + c]``."""

    buffer: Buffer
    width: int
    base: Expr

    def at(self, row: Expr, column: Index) -> Expr:
        """Index of an element.

        Args:
            row: The row, counted from ``base``.
            column: The column.
        """
        return self.base + row * self.width + column

    def from_row(self, row: Expr) -> Rows:
        """The rows from ``row`` on.

        Args:
            row: The row of this matrix that is row 0 of the result.
        """
        return Rows(self.buffer, self.width, self.base + row * self.width)


@dataclass(frozen=True)
class Pair:
    """Two matrices for which the same is done: of queries and keys, of cotangents and values."""

    rows: tuple[Rows, Rows]

    def __getitem__(self, which: Index) -> Rows:
        """One of the matrices; which one may be known only at run time if they are of one size."""
        if isinstance(which, int):
            return self.rows[which]
        first, second = self.rows
        return Rows(first.buffer, first.width, first.base + which * (second.base - first.base))


def matrix_element(rows: Rows) -> Callable[[Expr, Expr], Expr]:
    """Elements of a matrix as it lies there.

    Args:
        rows: The matrix: a buffer with the address of an element by row and column.

    Returns:
        ``(row, k) -> element``.
    """
    return lambda row, k: rows.buffer[rows.at(row, k)]


def transposed_element(rows: Rows) -> Callable[[Expr, Expr], Expr]:
    """Elements of the transpose of a matrix.

    Args:
        rows: The matrix: a buffer with the address of an element by row and column.

    Returns:
        ``(row, k) -> element``, of row ``k`` and column ``row`` there.
    """
    return lambda row, k: rows.buffer[rows.at(k, row)]


@dataclass(frozen=True)
class _Queries:
    """What is kept per query of a work item; queries that do not exist have weights 0.

    Attributes:
        given: Queries and cotangents of the result.
        gradient: Cotangents of the queries.
        top: Largest scores.
        factor: One over the sums of exponentials.
        mean: Sums of G O.
    """

    given: Pair
    gradient: Rows
    top: Buffer
    factor: Buffer
    mean: Buffer


@dataclass(frozen=True)
class _Keys:
    """A block of keys and values.

    Attributes:
        first: The first key.
        given: Keys and values.
        transposed: The same transposed.
        gradient: Cotangents of values and keys, in this order.
    """

    first: Expr
    given: Pair
    transposed: Pair
    gradient: Pair


@dataclass(frozen=True)
class _Writer:
    problem: Problem
    plan: GradPlan
    cotangent: Operand
    results: tuple[Operand, Operand, Operand]

    # Extents

    @property
    def _padded_queries(self) -> Index:
        """Queries of a head, rounded up to whole blocks."""
        return rounded_up(self.problem.queries, self.plan.queries) * self.plan.queries

    @property
    def _fills_blocks(self) -> bool:
        """Whether the last block of keys is certainly as long as the others."""
        return isinstance(self.problem.keys, int) and self.problem.keys % self.plan.keys == 0

    @property
    def _share(self) -> int:
        """Heads of the query per head of keys."""
        return self.problem.query.fixed("N") // self.problem.key.fixed("N")

    def _padded(self, operand: Operand) -> int:
        return -(-operand.fixed("D") // self.plan.lanes) * self.plan.lanes

    @property
    def _widths(self) -> tuple[int, int]:
        """Padded elements of a query or key, and of a value."""
        return self._padded(self.problem.query), self._padded(self.problem.value)

    def _both(self, body: Callable[[Index], None]) -> None:
        """Does the same for both matrices of a twin."""
        if self._widths[0] == self._widths[1]:
            with emit.serial(2) as which:
                body(which)
            return
        body(0)
        body(1)

    def _new_rows(self, count: Index, width: int) -> Rows:
        return Rows(emit.workspace([count * width], self.problem.dtype), width, emit.i64(0))

    def _new_pair(self, counts: tuple[Index, Index], widths: tuple[int, int]) -> Pair:
        sizes = [count * width for count, width in zip(counts, widths)]
        buffer = emit.workspace([sizes[0] + sizes[1]], self.problem.dtype)
        starts = (emit.i64(0), emit.index(sizes[0]))
        return Pair((Rows(buffer, widths[0], starts[0]), Rows(buffer, widths[1], starts[1])))

    def write(self) -> None:
        """Writes the loop over heads, and the sum of the workers' shares."""
        plan, heads = self.plan, self.problem.key.fixed("N")
        rows = self._share * self._padded_queries
        extents = [self.problem.query.extent("B"), heads, plan.groups]
        items = extents[0] * heads * plan.groups
        shared = None
        if plan.groups > 1:
            shared = self._new_rows(items * rows, self._padded(self.problem.query))
        with emit.parallel(items, plan.parallel) as item:
            batch, head, group = emit.unfuse(item, extents)
            gradient = (
                self._new_rows(rows, self._padded(self.problem.query))
                if shared is None
                else shared.from_row(item * rows)
            )
            queries = self._packed_queries(batch, head, gradient)
            self._all_keys(batch, head, group, queries)
            if shared is None:
                self._store_queries(batch, head, [gradient])
        if shared is not None:
            with emit.parallel(extents[0] * heads, plan.parallel) as item:
                batch, head = emit.unfuse(item, extents[:2])
                partials = [
                    shared.from_row((item * plan.groups + group) * rows)
                    for group in range(plan.groups)
                ]
                self._store_queries(batch, head, partials)

    # Rows of vectors

    def _copy(
        self, to: Rows, rows: Index, exists: Index, element: Callable[[Expr, Expr], Expr],
        size: int,
    ) -> None:  # fmt: skip
        """Fills rows with elements; what lies beyond the last row or column is 0."""
        lanes, dtype = self.plan.lanes, self.problem.dtype
        zero = emit.broadcast(emit.zero(dtype), lanes)
        whole = size // lanes
        with emit.serial(rows) as row:

            def present() -> None:
                if whole:
                    with emit.serial(whole) as v, emit.lanes_loop(lanes) as lane:
                        column = v * lanes + lane
                        emit.store(to.buffer, element(row, column), [to.at(row, column)])
                if size % lanes:
                    emit.store(to.buffer, zero, [emit.ramp(to.at(row, whole * lanes), lanes)])
                    with emit.serial(size % lanes) as rest:
                        column = rest + whole * lanes
                        emit.store(to.buffer, element(row, column), [to.at(row, column)])

            def absent() -> None:
                with emit.serial(to.width // lanes) as v:
                    emit.store(to.buffer, zero, [emit.ramp(to.at(row, v * lanes), lanes)])

            if isinstance(exists, int) and isinstance(rows, int) and exists >= rows:
                present()
            else:
                emit.when(row < exists, present, absent)

    def _clear(self, rows: Rows, count: Index) -> None:
        lanes = self.plan.lanes
        with emit.serial(count * (rows.width // lanes)) as v:
            emit.clear(rows.buffer, rows.base + v * lanes, lanes)

    def _transpose(self, rows: Rows, count: int, transposed: Rows) -> None:
        """The transpose, in squares of ``lanes`` rows and columns."""
        lanes, dtype = self.plan.lanes, self.problem.dtype
        with emit.serial(count // lanes) as i, emit.serial(rows.width // lanes) as j:
            square = emit.stack(lanes * lanes, dtype)
            for step in range(lanes):
                place = emit.ramp(rows.at(i * lanes + step, j * lanes), lanes)
                emit.store(square, rows.buffer[place], [emit.ramp(step * lanes, lanes)])
            columns = transpose(square, lanes, dtype)
            for step in range(lanes):
                place = emit.ramp(transposed.at(j * lanes + step, i * lanes), lanes)
                emit.store(transposed.buffer, columns[emit.ramp(step * lanes, lanes)], [place])

    def _wide(self, operand: Operand, batch: Expr, head: Expr, row: Expr, column: Expr) -> Expr:
        element = operand.buffer[operand.at(batch, head, row, column)]
        return tirx.Cast(self.problem.dtype, element)

    # Queries

    def _packed_queries(self, batch: Expr, head: Expr, gradient: Rows) -> _Queries:
        """Copies queries and cotangents, and sums G O per query."""
        problem, dtype, share = self.problem, self.problem.dtype, self._share
        length, rows = self.problem.queries, self._share * self._padded_queries
        given = self._new_pair((rows, rows), self._widths)
        row_statistics = [emit.workspace([rows], dtype) for _ in range(3)]
        self._clear(gradient, rows)
        statistics = problem.statistics
        assert statistics is not None
        with emit.serial(share) as member:
            own, first = head * share + member, member * self._padded_queries
            for operand, to in zip((problem.query, self.cotangent), given.rows):
                self._copy(
                    to.from_row(first), self._padded_queries, length,
                    lambda row, column, operand=operand, own=own: self._wide(
                        operand, batch, own, row, column
                    ),
                    operand.fixed("D"),
                )  # fmt: skip
            with emit.serial(self._padded_queries) as row:
                for buffer in row_statistics:
                    emit.store(buffer, emit.zero(dtype), [first + row])
            with emit.serial(length) as row:
                for place, buffer in enumerate(row_statistics[:2]):
                    emit.store(buffer, statistics[batch, own, row, emit.i64(place)], [first + row])
                self._sum_product(
                    lambda column, row=row, own=own: (
                        self._wide(problem.out, batch, own, row, column)
                        * self._wide(self.cotangent, batch, own, row, column)
                    ),
                    problem.out.fixed("D"), row_statistics[2], first + row,
                )  # fmt: skip
        return _Queries(given, gradient, *row_statistics)

    def _sum_product(
        self, term: Callable[[Expr], Expr], size: int, to: Buffer, place: Expr
    ) -> None:
        """Stores the sum of ``term(column)`` over the columns."""
        lanes, dtype = self.plan.lanes, self.problem.dtype
        whole = size // lanes * lanes
        total, rest = emit.stack(lanes, dtype), emit.stack(1, dtype)
        emit.clear(total, 0, lanes)
        if whole:
            with emit.serial(whole // lanes) as v, emit.lanes_loop(lanes) as lane:
                emit.store(total, total[lane] + term(v * lanes + lane), [lane])
        emit.store(rest, horizontal(lambda a, b: a + b, total, lanes, lanes, dtype), [0])
        if size > whole:
            with emit.serial(size - whole) as column:
                emit.store(rest, rest[0] + term(column + whole), [0])
        emit.store(to, rest[0], [place])

    def _store_queries(self, batch: Expr, head: Expr, partials: list[Rows]) -> None:
        with emit.serial(self._share) as member:
            first = member * self._padded_queries
            rows = [partial.from_row(first) for partial in partials]
            self._store(self.results[0], batch, head * self._share + member, emit.i64(0),
                        self.problem.queries, rows)  # fmt: skip

    def _store(
        self, result: Operand, batch: Expr, head: Expr, first: Expr, count: Index,
        partials: list[Rows],
    ) -> None:  # fmt: skip
        """Stores the sum of ``partials`` in the rows from ``first`` on of a result."""
        size, lanes = result.fixed("D"), self.plan.lanes
        dtype = str(result.buffer.dtype)

        def element(row: Expr, column: Expr) -> None:
            total = partials[0].buffer[partials[0].at(row, column)]
            for partial in partials[1:]:
                total = total + partial.buffer[partial.at(row, column)]
            place = result.at(batch, head, first + row, column)
            emit.store(result.buffer, tirx.Cast(dtype, total), place)

        with emit.serial(count) as row:
            if size // lanes:
                with emit.serial(size // lanes) as v, emit.lanes_loop(lanes) as lane:
                    element(row, v * lanes + lane)
            if size % lanes:
                with emit.serial(size % lanes) as rest:
                    element(row, rest + size // lanes * lanes)

    # Keys

    def _all_keys(self, batch: Expr, head: Expr, group: Expr, queries: _Queries) -> None:
        """Goes through the blocks of keys of a worker."""
        plan, problem = self.plan, self.problem
        length, blocks = emit.index(self.problem.keys), rounded_up(self.problem.keys, plan.keys)
        both, (key, value) = (plan.keys, plan.keys), self._widths
        given = self._new_pair(both, (key, value))
        transposed = self._new_pair((key, value), both)
        gradients = self._new_pair(both, (value, key))
        turns = tirx.floordiv(blocks + (plan.groups - 1) - group, emit.i64(plan.groups))
        with emit.serial(turns) as turn:
            first = (group + turn * plan.groups) * plan.keys
            count = tirx.min(length - first, emit.i64(plan.keys))
            for operand, to in zip((problem.key, problem.value), given.rows):
                self._copy(
                    to, plan.keys, plan.keys if self._fills_blocks else count,
                    lambda row, column, operand=operand: self._wide(
                        operand, batch, head, first + row, column
                    ),
                    operand.fixed("D"),
                )  # fmt: skip
            self._both(lambda which: self._transpose(given[which], plan.keys, transposed[which]))
            self._both(lambda which: self._clear(gradients[which], plan.keys))
            block = _Keys(first, given, transposed, gradients)
            self._all_queries(batch, head, queries, block)
            for result, gradient in zip(self.results[:0:-1], gradients.rows):
                self._store(result, batch, head, first, count, [gradient])

    def _all_queries(self, batch: Expr, head: Expr, queries: _Queries, keys: _Keys) -> None:
        """Goes through the blocks of queries that see a block of keys."""
        plan = self.plan
        blocks = emit.index(rounded_up(self.problem.queries, plan.queries))
        unseen: Expr = emit.i64(0)
        if self.problem.diagonal is not None:  # query i sees the keys up to i + diagonal
            reach = tirx.max(keys.first - self.problem.diagonal, emit.i64(0))
            unseen = tirx.min(tirx.floordiv(reach, emit.i64(plan.queries)), blocks)
        scores = self._new_pair((plan.queries, plan.queries), (plan.keys, plan.keys))
        with emit.serial(self._share) as member, emit.serial(blocks - unseen) as number:
            row = (number + unseen) * plan.queries
            start = member * self._padded_queries + row
            self._pair(batch, head * self._share + member, row, start, queries, keys, scores)

    def _pair(
        self, batch: Expr, head: Expr, row: Expr, start: Expr, queries: _Queries, keys: _Keys,
        scores: Pair,
    ) -> None:  # fmt: skip
        """Adds what a block of queries (``row`` and following) and one of keys contribute."""
        plan, (weights, slopes) = self.plan, scores.rows
        head_dims = [operand.fixed("D") for operand in (self.problem.query, self.problem.value)]
        longest = max(head_dims)  # where one is shorter, zeros follow

        def score(which: Index) -> None:
            given, steps = queries.given[which].from_row(start), longest
            if isinstance(which, int):
                steps = head_dims[which]
            self._multiply(
                scores[which], plan.queries, steps, matrix_element(given), keys.transposed[which],
                add=False,
            )  # fmt: skip

        def gradient(which: Index) -> None:
            given = queries.given[1 - which].from_row(start)
            left = transposed_element(scores[which])
            self._multiply(keys.gradient[which], plan.keys, plan.queries, left, given)

        self._both(score)
        with emit.serial(plan.queries) as line:
            self._weigh(batch, head, row + line, start + line, queries, keys,
                        weights.from_row(line), slopes.from_row(line))  # fmt: skip
        self._both(gradient)
        to, left = queries.gradient.from_row(start), matrix_element(slopes)
        self._multiply(to, plan.queries, plan.keys, left, keys.given[0])

    def _weigh(
        self, batch: Expr, head: Expr, row: Expr, place: Expr, queries: _Queries, keys: _Keys,
        weights: Rows, slopes: Rows,
    ) -> None:  # fmt: skip
        """Turns the products of a query into its weights and their slopes."""
        problem, plan, dtype = self.problem, self.plan, self.problem.dtype
        lanes, zero = plan.lanes, emit.zero(self.problem.dtype)
        row_statistics = emit.stack(3, dtype)
        for number, buffer in enumerate((queries.top, queries.factor, queries.mean)):
            emit.store(row_statistics, buffer[place], [number])
        existing = tirx.min(row, emit.index(self.problem.queries) - 1)
        scale, weight = tirx.const(problem.scale, dtype), emit.stack(lanes, dtype)
        with emit.serial(plan.keys // lanes) as v, emit.lanes_loop(lanes) as lane:
            at = v * lanes + lane
            column = keys.first + at
            known = tirx.min(column, emit.index(self.problem.keys) - 1)
            score = weights.buffer[weights.base + at] * scale
            score = problem.masked(score, batch, head, existing, known)
            value = exp_nonpositive(score - row_statistics[0]) * row_statistics[1]
            visible = self._visible(row, column)
            if visible is not None:
                value = tirx.Select(visible, value, zero)
            emit.store(weight, value, [lane])
            slope = (slopes.buffer[slopes.base + at] - row_statistics[2]) * weight[lane] * scale
            if problem.fill is not None:
                hidden = problem.mask_at(batch, head, existing, known)
                slope = tirx.Select(hidden, zero, slope)
            if visible is not None:
                slope = tirx.Select(visible, slope, zero)
            emit.store(weights.buffer, weight[lane], [weights.base + at])
            emit.store(slopes.buffer, slope, [slopes.base + at])

    def _visible(self, row: Expr, column: Expr) -> Expr | None:
        """Whether a key exists and is not above the diagonal; None if that is certain."""
        problem = self.problem
        exists = None if self._fills_blocks else column < self.problem.keys
        if problem.diagonal is None:
            return exists
        below = column <= row + problem.diagonal
        return below if exists is None else tirx.And(below, exists)

    # Products

    def _multiply(
        self, to: Rows, rows: int, k_size: int, left: Callable[[Expr, Expr], Expr], right: Rows,
        add: bool = True,
    ) -> None:  # fmt: skip
        """``to`` (+)= left right, with rows of ``right`` as long as those of ``to``."""
        plan, total = self.plan, to.width // self.plan.lanes
        panels = -(-total // plan.vectors)
        width = -(-total // panels)
        height = even_tile(rows, width, plan)

        def tile(row: Expr, height: int, column: Expr, vectors: int) -> None:
            shape = Tile(height, vectors, plan.lanes, self.problem.dtype, adjacent=True)

            def place(r: int, v: int, lanes: int) -> Expr:
                return emit.ramp(to.at(row + r, column + v * plan.lanes), lanes)

            sums = multiply_tile(
                shape, [k_size], shape.unroll,
                lambda r, k: left(row + r, k[0]),
                lambda k, v, lanes: right.buffer[
                    emit.ramp(right.at(k[0], column + v * plan.lanes), lanes)
                ],
                (lambda r, *strip: to.buffer[place(r, *strip)]) if add else None,
            )  # fmt: skip
            store_tile(shape, sums, to.buffer, place)

        tiles = -(-rows // height)
        with emit.serial(panels) as panel, emit.serial(tiles) as number:
            column = panel * (width * plan.lanes)
            emit.peel_last(
                (panel, panels, width, total),
                lambda vectors: emit.peel_last(
                    (number, tiles, height, rows),
                    lambda count: tile(number * height, count, column, vectors),
                ),
            )
