"""ONNX operators that run subgraphs.

Eagerly a branch or loop is decided by values. While a graph is captured, what is known then is
decided then; everything else, and long loops, become ``if_`` and ``while_`` of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.capture import structured
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import CaptureError, DTypeError, LoadError, ShapeError
from tvmgraph.onnx.table import NodeCall, converter, dtype_of, known, to_tensor

_UNROLLED = 16  # iterations; longer loops are loops in the graph too
# (i, state) -> (whether to go on, new state, one row for every stacked output)
Step = Callable[[object, Sequence[object]], tuple[object, list[object], list[object]]]


@converter("If")
def _if(n: NodeCall, condition: Tensor) -> tuple[object, ...]:
    """Runs one branch; records both when the condition is not known."""
    value = known(n.values[0])
    if value is not None:
        branch = "then_branch" if value.reshape(-1)[0] else "else_branch"
        return tuple(n.run_graph(n.attrs[branch], []))

    def side(branch: str) -> list[Tensor]:
        found = [to_tensor(v) for v in n.run_graph(n.attrs[branch], [])]
        if not all(isinstance(v, Tensor) for v in found):
            raise n.unknown("the branches give sequences and the condition is not known")
        return found

    sides = [functools.partial(side, b) for b in ("then_branch", "else_branch")]
    if not structured.can_record():  # vmap: every example may go another way
        pairs = zip(*(run() for run in sides))
        return tuple(F.where(F.reshape(condition, ()), a, b) for a, b in pairs)
    try:
        return structured.branch(condition, *sides)
    except (ShapeError, DTypeError) as e:
        raise n.unknown(f"the branches differ and the condition is not known ({e.message})") from e


# ---- loops --------------------------------------------------------------------------------------


@converter("Loop")
def _loop(n: NodeCall, trips: object, condition: object, *_: object) -> object:
    body = n.attrs["body"]
    carried = list(n.values[2:])
    count = len(carried)

    def step(i: object, state: Sequence[object]) -> tuple[object, list[object], list[object]]:
        going, *rest = n.run_graph(body, [i, np.asarray(True), *state])
        return going, rest[:count], rest[count:]

    limit = n.number(0) if known(n.values[0]) is not None else trips
    going = True if condition is None else condition
    if known(n.values[1]) is not None:
        going = bool(n.number(1))
    state, rows = _run_loop(n, step, carried, limit, going)
    stacked = [
        r if isinstance(r, Tensor) else F.stack(r, 0) if r else _no_rows(n, body, count + 1 + k)
        for k, r in enumerate(rows or [[]] * (len(body.output) - 1 - count))
    ]
    return (*state, *stacked)


def _no_rows(n: NodeCall, body: Any, output: int) -> np.ndarray:
    kind = body.output[output].type.tensor_type
    dims = [d.dim_value for d in kind.shape.dim]
    return np.zeros((0, *dims), dtype_of(kind.elem_type, n.where).numpy)


def _run_loop(
    n: NodeCall, step: Step, state: list[object], limit: Any, going: Any
) -> tuple[list[object], list[Any]]:
    """Runs a loop at once where its end is known, else records it."""
    decided = isinstance(going, bool) and (limit is None or isinstance(limit, int))
    plain = all(isinstance(s, (Tensor, np.ndarray)) for s in state)
    short = limit is not None and decided and limit <= _UNROLLED
    if not structured.can_record() or short or not plain:
        done = _unrolled(n, step, state, limit, going) if decided else None
        if done is not None:
            return done
    if not structured.can_record() or not plain:
        raise n.unknown("the end of the loop depends on values that are not known")
    try:
        return _rolled(n, step, [to_tensor(s) for s in state], limit, going)
    except (ShapeError, DTypeError, LoadError, CaptureError) as e:  # such as a state that grows
        done = _unrolled(n, step, state, limit, going) if decided and limit is not None else None
        if done is None:
            raise n.unknown(f"the loop cannot be part of a graph ({e.message})") from e
        return done


def _unrolled(
    n: NodeCall, step: Step, state: Sequence[object], limit: int | None, going: bool
) -> tuple[list[object], list[list[object]]] | None:
    """Runs the iterations one by one; ``None`` if the end turns out to be unknown."""
    state, rows, i = list(state), [], 0
    while going and (limit is None or i < limit):
        again, state, row = step(np.asarray(i, np.int64), state)
        if known(again) is None:
            return None
        going = bool(known(again).reshape(-1)[0])  # pyright: ignore[reportOptionalMemberAccess]
        rows.append([to_tensor(r) for r in row])
        i += 1
    return state, [list(column) for column in zip(*rows)]


def _rolled(
    n: NodeCall, step: Step, state: list[Tensor], limit: object, going: object
) -> tuple[list[object], list[object]]:
    """Records the loop; stacked outputs are filled row by row."""
    count = len(state)
    first = to_tensor(np.asarray(0, np.int64))
    endless, row_types = _look(step, [first, *state])
    if row_types and not (endless and going is True and isinstance(limit, int)):
        raise n.unknown("the number of rows it stacks is not known before the model runs")
    buffers = [F.zeros((limit, *t.shape), t.dtype) for t in row_types]
    flags = []
    if not (endless and going is True):
        flags = [F.reshape(to_tensor(np.asarray(going) if isinstance(going, bool) else going), ())]
    bound = None if limit is None else F.reshape(_int64(limit), ())

    def test(now: Sequence[Tensor]) -> list[Tensor]:
        wanted = [*now[count + 1 : count + 1 + len(flags)]]
        if bound is not None:
            wanted.append(F.less(now[0], bound))
        if not wanted:
            raise n.fail("the loop never ends")
        return [wanted[0] if len(wanted) == 1 else F.logical_and(*wanted)]

    def body(now: Sequence[Tensor]) -> list[Tensor]:
        again, new, rows = step(now[0], now[1 : count + 1])
        filled = [_put(b, now[0], to_tensor(r)) for b, r in zip(now[count + 1 :], rows)]
        more = [F.reshape(to_tensor(again), ())] if flags else []
        return [F.add(now[0], _int64(1)), *map(to_tensor, new), *more, *filled]

    found = structured.loop([first, *state, *flags, *buffers], test, body)
    assert found is not None
    return list(found[1 : count + 1]), list(found[count + 1 + len(flags) :])


def _look(step: Step, start: Sequence[Tensor]) -> tuple[bool, list[TensorType]]:
    """Records one iteration for nothing: does the loop end itself, and what are its rows?"""
    endless, types = False, []

    def body(now: Sequence[Tensor]) -> list[Tensor]:
        nonlocal endless, types
        again, new, rows = step(now[0], now[1:])
        value = known(again)
        endless = value is not None and bool(value.reshape(-1)[0])
        types = [to_tensor(r).aval for r in rows]
        return [*map(to_tensor, new)]

    structured.record("probe", [s.aval for s in start], body)
    return endless, types


def _int64(value: object) -> Tensor:
    return value if isinstance(value, Tensor) else to_tensor(np.asarray(value, np.int64))


def _put(buffer: Tensor, i: Tensor, row: Tensor) -> Tensor:
    """Returns ``buffer`` with row ``i`` replaced."""
    return F.tensor_scatter_update(buffer, F.reshape(i, (1, 1)), F.expand_dims(row, 0))


# ---- scans --------------------------------------------------------------------------------------


@converter("Scan")
def _scan(n: NodeCall, *_: object) -> object:
    count = n.get("num_scan_inputs")
    values = list(n.values[1:] if n.opset < 9 else n.values)
    if n.opset < 9:
        return _scan_8(n, count, values)
    return _scan_rows(n, count, values, n.get("scan_input_axes"), n.get("scan_output_axes"))


def _scan_8(n: NodeCall, count: int, values: Sequence[object]) -> tuple[Tensor, ...]:
    """The first version had a batch axis in front of everything."""
    batch = to_tensor(values[0]).shape[0]
    results = [
        _scan_rows(n, count, [to_tensor(v)[b] for v in values], None, None) for b in range(batch)
    ]
    return tuple(F.stack([to_tensor(r[k]) for r in results], 0) for k in range(len(results[0])))


def _scan_rows(
    n: NodeCall, count: int, values: list[object], axes: Any, out: Any
) -> tuple[object, ...]:
    body = n.attrs["body"]
    state, inputs = values[: len(values) - count], [to_tensor(v) for v in values[-count:]]
    axes = [a % x.ndim for a, x in zip(axes or (0,) * count, inputs)]
    back = n.get("scan_input_directions" if n.opset >= 9 else "directions") or (0,) * count
    inputs = [F.flip(x, (a,)) if b else x for x, a, b in zip(inputs, axes, back)]

    def step(i: object, now: Sequence[object]) -> tuple[object, list[object], list[object]]:
        at = to_tensor(i)
        results = n.run_graph(body, [*now, *(F.gather(x, at, a) for x, a in zip(inputs, axes))])
        return np.asarray(True), results[: len(state)], results[len(state) :]

    state, rows = _run_loop(n, step, state, inputs[0].shape[axes[0]], True)
    reverse = n.get("scan_output_directions") or (0,) * len(rows)
    stacked = [r if isinstance(r, Tensor) else F.stack(r, 0) for r in rows]
    stacked = [F.flip(r, (0,)) if b else r for r, b in zip(stacked, reverse)]
    stacked = [F.moveaxis(r, 0, a) if a else r for r, a in zip(stacked, out or (0,) * len(rows))]
    return (*state, *stacked)


@converter("SequenceMap")
def _sequence_map(n: NodeCall, first: Sequence[object], *_: object) -> object:
    body = n.attrs["body"]
    rows = []
    for i in range(len(first)):
        given = [v[i] if isinstance(v, list) else v for v in n.values]
        rows.append(n.run_graph(body, given))
    return tuple(list(column) for column in zip(*rows))
