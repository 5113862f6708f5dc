"""ONNX's recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn.recurrent import all_steps
from tvmgraph.onnx.table import NodeCall, converter

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Relu": "relu"}
#: Where the gates of a layer of this package are among ONNX's.
_ORDERS = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}
_DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}


@converter("RNN", "GRU", "LSTM")
def _recurrent(
    n: NodeCall, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: object = None,
    h0: Tensor | None = None, c0: Tensor | None = None, peep: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
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
        names = functions[way * each : (way + 1) * each]
        backwards = way == 1 or n.get("direction") == "reverse"
        mode = _mode(n, names) if lengths is None and peep is None else None
        if mode is not None:
            y, state = _all_steps(mode, x, w[way], r[way], bias, start, backwards)
        else:
            chosen = [getattr(F, _FUNCTIONS[f]) for f in names]
            cell = _Cell(n, w[way], r[way], bias, peep[way] if peep is not None else None, chosen)
            y, state = _sweep(cell, x, start, backwards, lengths)
        outputs.append(y)
        finals.append(state)
    y = F.stack(outputs, 1)  # (time, way, batch, hidden)
    last = [F.stack([f[k] for f in finals], 0) for k in range(2 if kind == "LSTM" else 1)]
    if batch_first:
        y = F.transpose(y, (2, 0, 1, 3))
        last = [F.transpose(s, (1, 0, 2)) for s in last]
    return (y, *last)[: n.count]


def _mode(n: NodeCall, functions: Sequence[str]) -> str | None:
    """The kind of recurrent layer of this package that computes the same, if there is one."""
    kind = n.node.op_type
    if n.get("clip") is not None or n.get("input_forget"):
        return None
    if kind == "RNN":
        return {"Tanh": "rnn_tanh", "Relu": "rnn_relu"}.get(functions[0])
    if tuple(functions) != _DEFAULTS[kind] or (kind == "GRU" and not n.get("linear_before_reset")):
        return None
    return kind.lower()


def _all_steps(
    mode: str, x: Tensor, w: Tensor, r: Tensor, b: Tensor, start: list[Tensor], backwards: bool
) -> tuple[Tensor, Sequence[Tensor]]:
    """Runs one direction as a layer of this package, whose gates have another order."""
    order = _ORDERS.get(mode, (0,))

    def arranged(t: Tensor) -> Tensor:
        parts = F.split(t, t.shape[0] // len(order), 0)
        return F.concat([parts[k] for k in order], 0) if len(order) > 1 else t

    half = b.shape[0] // 2
    projected = F.dense(x, arranged(w), arranged(b[:half]))
    count = 2 if mode == "lstm" else 1
    state = tuple(start[:count])
    return all_steps(mode, projected, arranged(r), arranged(b[half:]), state, backwards)


def _start(
    s: Tensor | None, way: int, batch: int, hidden: int, x: Tensor, batch_first: bool
) -> Tensor:
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
        self,
        n: NodeCall,
        w: Tensor,
        r: Tensor,
        b: Tensor,
        peep: Tensor | None,
        functions: Sequence[Callable[[Tensor], Tensor]],
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
