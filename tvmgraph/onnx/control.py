"""ONNX operators that run subgraphs, and the recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.table import NodeCall, converter, known, to_tensor


@converter("If")
def _if(n: NodeCall, condition: Any) -> Any:
    """Runs one branch, or both when the condition is not known, and picks elements then."""
    value = known(n.values[0])
    if value is not None:
        branch = "then_branch" if value.reshape(-1)[0] else "else_branch"
        return tuple(n.run_graph(n.attrs[branch], []))
    then = n.run_graph(n.attrs["then_branch"], [])
    other = n.run_graph(n.attrs["else_branch"], [])
    chosen = []
    for a, b in zip(map(to_tensor, then), map(to_tensor, other)):
        if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.shape != b.shape:
            raise n.fail("the branches give different shapes and the condition is not known",
                         "run the model eagerly")  # fmt: skip
        chosen.append(F.where(condition, a, b))
    return tuple(chosen)


@converter("Loop")
def _loop(n: NodeCall, trips: Any, condition: Any, *state: Any) -> Any:
    body = n.attrs["body"]
    limit = n.number(0) if n.has(0) else None
    going = bool(n.number(1, True))
    carried = list(n.values[2:])
    rows: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    i = 0
    while going and (limit is None or i < limit):
        results = n.run_graph(body, [np.asarray(i, np.int64), np.asarray(True), *carried])
        again = known(results[0])
        if again is None:
            raise n.fail("the end of the loop depends on values that are not known",
                         "run the model eagerly")  # fmt: skip
        going = bool(again.reshape(-1)[0])
        carried = results[1 : 1 + len(carried)]
        for row, value in zip(rows, results[1 + len(carried) :]):
            row.append(to_tensor(value))
        i += 1
    stacked = [F.stack(r, 0) if r else _no_rows(n, body, k) for k, r in enumerate(rows)]
    return (*carried, *stacked)


def _no_rows(n: NodeCall, body: Any, k: int) -> Any:
    from tvmgraph.onnx.table import dtype_of

    info = body.output[len(body.output) - (len(body.output) - 1 - len(n.values[2:])) + k]
    kind = info.type.tensor_type
    dims = [d.dim_value for d in kind.shape.dim]
    return np.zeros((0, *dims), dtype_of(kind.elem_type, n.where).numpy)


@converter("Scan")
def _scan(n: NodeCall, *_: Any) -> Any:
    body = n.attrs["body"]
    count = n.get("num_scan_inputs")
    values = list(n.values[1:] if n.opset < 9 else n.values)
    if n.opset < 9:
        return _scan_8(n, body, count, values)
    return _scan_rows(n, body, count, values, n.get("scan_input_axes"), n.get("scan_output_axes"))


def _scan_8(n: NodeCall, body: Any, count: int, values: list[Any]) -> Any:
    """The first version had a batch axis in front of everything."""
    batch = to_tensor(values[0]).shape[0]
    results = [
        _scan_rows(n, body, count, [to_tensor(v)[b] for v in values], None, None)
        for b in range(batch)
    ]
    return tuple(F.stack([to_tensor(r[k]) for r in results], 0) for k in range(len(results[0])))


def _scan_rows(n: NodeCall, body: Any, count: int, values: list[Any], axes: Any, out: Any) -> Any:
    state, inputs = values[: len(values) - count], [to_tensor(v) for v in values[-count:]]
    axes = [a % x.ndim for a, x in zip(axes or (0,) * count, inputs)]
    back = n.get("scan_input_directions" if n.opset >= 9 else "directions") or (0,) * count
    steps = inputs[0].shape[axes[0]]
    parts = [F.unstack(F.flip(x, (a,)) if b else x, a) for x, a, b in zip(inputs, axes, back)]
    rows: list[list[Any]] = [[] for _ in range(len(body.output) - len(state))]
    for i in range(steps):
        results = n.run_graph(body, [*state, *(p[i] for p in parts)])
        state = results[: len(state)]
        for row, value in zip(rows, results[len(state) :]):
            row.append(to_tensor(value))
    out = out or (0,) * len(rows)
    reverse = n.get("scan_output_directions") or (0,) * len(rows)
    rows = [r[::-1] if b else r for r, b in zip(rows, reverse)]
    stacked = [F.stack(r, a % (r[0].ndim + 1)) for r, a in zip(rows, out)]
    return (*state, *stacked)


@converter("SequenceMap")
def _sequence_map(n: NodeCall, first: Any, *_: Any) -> Any:
    body = n.attrs["body"]
    rows = []
    for i in range(len(first)):
        given = [v[i] if isinstance(v, list) else v for v in n.values]
        rows.append(n.run_graph(body, given))
    return tuple(list(column) for column in zip(*rows))


@converter("Optional")
def _optional(n: NodeCall, x: Any = None) -> Any:
    return x


@converter("OptionalHasElement")
def _optional_has_element(n: NodeCall, x: Any = None) -> Any:
    return np.asarray(n.has(0))


@converter("OptionalGetElement")
def _optional_get_element(n: NodeCall, x: Any) -> Any:
    return x


# ---- recurrent layers ---------------------------------------------------------------------------

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Relu": "relu"}
_DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@converter("RNN", "GRU", "LSTM")
def _recurrent(
    n: NodeCall, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Any = None,
    h0: Tensor | None = None, c0: Tensor | None = None, peep: Tensor | None = None,
) -> Any:  # fmt: skip
    kind, hidden = n.node.op_type, r.shape[-1]
    batch_first = n.get("layout", 0)
    x = F.transpose(x, (1, 0, 2)) if batch_first else x
    batch = x.shape[1]
    ways = w.shape[0]
    functions = n.get("activations") or _DEFAULTS[kind] * ways
    functions = [f.decode() if isinstance(f, bytes) else f for f in functions]
    if any(f not in _FUNCTIONS for f in functions):
        raise n.fail(f"activations {', '.join(functions)} are not supported")
    each = len(functions) // ways
    outputs, finals = [], []
    for way in range(ways):
        start = [_start(s, way, batch, hidden, x, batch_first) for s in (h0, c0)]
        bias = b[way] if b is not None else F.zeros((2 * _GATES[kind] * hidden,), x.dtype)
        chosen = [getattr(F, _FUNCTIONS[f]) for f in functions[way * each : (way + 1) * each]]
        cell = _Cell(n, w[way], r[way], bias, peep[way] if peep is not None else None, chosen)
        backwards = way == 1 or n.get("direction") == "reverse"
        y, state = _sweep(cell, x, start, backwards, lengths)
        outputs.append(y)
        finals.append(state)
    y = F.stack(outputs, 1)  # (time, way, batch, hidden)
    last = [F.stack([f[k] for f in finals], 0) for k in range(2 if kind == "LSTM" else 1)]
    if batch_first:
        y = F.transpose(y, (2, 0, 1, 3))
        last = [F.transpose(s, (1, 0, 2)) for s in last]
    return (y, *last)[: n.count]


def _start(s: Any, way: int, batch: int, hidden: int, x: Tensor, batch_first: Any) -> Tensor:
    if s is None:
        return F.zeros((batch, hidden), x.dtype)
    return (F.transpose(s, (1, 0, 2)) if batch_first else s)[way]


def _sweep(cell: _Cell, x: Tensor, start: list[Tensor], backwards: bool, lengths: Any) -> Any:
    state, outputs = start, [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backwards else range(x.shape[0]):
        new = cell.step(x[t], *state)
        if lengths is not None:
            valid = F.reshape(lengths > t, (-1, 1))
            outputs[t] = F.where(valid, new[0], F.zeros_like(new[0]))
            state = [F.where(valid, a, b) for a, b in zip(new, state)]
        else:
            outputs[t], state = new[0], new  # pyright: ignore[reportArgumentType, reportCallIssue]
    return F.stack(outputs, 0), state


class _Cell:
    """One direction of a recurrent layer."""

    def __init__(
        self, n: NodeCall, w: Tensor, r: Tensor, b: Tensor, peep: Any, functions: Any
    ) -> None:
        self.n, self.functions, self.peep = n, functions, peep
        self.w, self.r = F.transpose(w, (1, 0)), F.transpose(r, (1, 0))
        half = b.shape[0] // 2
        self.wb, self.rb = b[:half], b[half:]
        self.hidden = r.shape[-1]

    def gate(self, y: Tensor, k: int) -> Tensor:
        """Cuts one gate out of the joined ones."""
        return y[:, k * self.hidden : (k + 1) * self.hidden]

    def clipped(self, y: Tensor) -> Tensor:
        """Limits what goes into an activation, where the node asks for it."""
        limit = self.n.get("clip")
        return y if limit is None else F.minimum(F.maximum(y, -limit), limit)

    def step(self, x: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        """Returns the new state."""
        return getattr(self, self.n.node.op_type.lower())(x, h, c)

    def rnn(self, x: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        """A step of RNN."""
        y = F.matmul(x, self.w) + F.matmul(h, self.r) + self.wb + self.rb
        return [self.functions[0](self.clipped(y)), c]

    def lstm(self, x: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        """A step of LSTM; gates i, o, f, c."""
        y = F.matmul(x, self.w) + F.matmul(h, self.r) + self.wb + self.rb
        i, o, f, g = (self.gate(y, k) for k in range(4))
        pi, po, pf = F.split(self.peep, self.hidden, 0) if self.peep is not None else (0, 0, 0)
        first, second, third = self.functions
        if self.peep is not None:
            i, f = i + pi * c, f + pf * c
        i = first(self.clipped(i))
        f = 1 - i if self.n.get("input_forget") else first(self.clipped(f))
        new = f * c + i * second(self.clipped(g))
        o = first(self.clipped(o + po * new if self.peep is not None else o))
        return [o * third(new), new]

    def gru(self, x: Tensor, h: Tensor, c: Tensor) -> list[Tensor]:
        """A step of GRU; gates z, r, h."""
        y = F.matmul(x, self.w) + self.wb
        first, second = self.functions
        a = F.matmul(h, self.r[:, : 2 * self.hidden]) + self.rb[: 2 * self.hidden]
        z = first(self.clipped(self.gate(y, 0) + self.gate(a, 0)))
        r = first(self.clipped(self.gate(y, 1) + self.gate(a, 1)))
        weights, bias = self.r[:, 2 * self.hidden :], self.rb[2 * self.hidden :]
        if self.n.get("linear_before_reset"):
            inner = r * (F.matmul(h, weights) + bias)
        else:
            inner = F.matmul(r * h, weights) + bias
        new = second(self.clipped(self.gate(y, 2) + inner))
        return [(1 - z) * new + z * h, c]
