"""All steps of a recurrent layer as one operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.rnn.gradient import numpy_sigmoid, panel_width

__all__ = ["recurrent_sweep"]

#: Units of a panel of weights: the lanes of the widest vectors, whole vectors on all others. Cells
#: cut their weights before a processor is known; kernels take as much of a panel at a time as
#: registers hold (``part_of_panel``).
PANEL = 16
#: Gates and tensors of the state by kind of cell.
_KINDS = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "lstm": (4, 2), "gru": (3, 1)}


def _infer(*inputs: TensorType, mode: str, reverse: bool) -> tuple[TensorType, ...]:
    if mode not in _KINDS:
        raise ArgumentError(f"mode must be one of {', '.join(_KINDS)}", got=repr(mode))
    gates, states = _KINDS[mode]
    if len(inputs) != 3 + states:
        raise ArgumentError(f"{mode} takes {states} tensors of state")
    x, panels, bias = inputs[:3]
    rules.require_dtype(x, (dtypes.float32, dtypes.float64))
    rules.require_same_dtype(*inputs)
    if x.ndim != 3 or any(s.ndim != 2 for s in inputs[3:]):
        raise ShapeError("projected inputs need 3 axes and states 2")
    units = inputs[3].shape[1]
    blocks = -(-units // PANEL)  # pyright: ignore[reportOperatorIssue]
    if x.shape[2] != gates * units or panels.shape != (blocks, units, gates, PANEL):
        raise ShapeError(f"the gates of {units} units and the panels of weights do not fit")
    if bias.shape != (gates * units,) or any(s.shape != (x.shape[1], units) for s in inputs[3:]):
        raise ShapeError("bias or state do not fit the batch and the units")
    y = x.with_shape((*x.shape[:2], units))
    return (y, *inputs[3:])


def _weight(panels: np.ndarray, units: int) -> np.ndarray:
    """The weights (units, gates * units) that a product with the state takes."""
    plain = panels.transpose(1, 2, 0, 3).reshape(units, panels.shape[2], -1)[:, :, :units]
    return plain.reshape(units, -1)


def _numpy_step(
    mode: str, x: np.ndarray, h: np.ndarray, state: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """One step, given what the inputs and the state contribute to the gates."""
    if mode == "lstm":
        i, f, g, o = np.split(x + h, 4, -1)
        c = numpy_sigmoid(f) * state[1] + numpy_sigmoid(i) * np.tanh(g)
        return numpy_sigmoid(o) * np.tanh(c), c
    if mode == "gru":
        x_r, x_z, x_n = np.split(x, 3, -1)
        h_r, h_z, h_n = np.split(h, 3, -1)
        r, z = numpy_sigmoid(x_r + h_r), numpy_sigmoid(x_z + h_z)
        n = np.tanh(x_n + r * h_n)
        return (n + z * (state[0] - n),)
    total = x + h
    return (np.tanh(total) if mode == "rnn_tanh" else np.maximum(total, 0),)


def _eager(*inputs: np.ndarray, mode: str, reverse: bool) -> tuple[np.ndarray, ...]:
    x, panels, bias = inputs[:3]
    state = inputs[3:]
    weight = _weight(panels, state[0].shape[1])
    y = np.empty((*x.shape[:2], state[0].shape[1]), x.dtype)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        state = _numpy_step(mode, x[t], state[0] @ weight + bias, state)
        y[t] = state[0]
    return (y, *state)


def _vjp(
    g: Sequence[Tensor | None], y: Sequence[Tensor], *inputs: Tensor, mode: str, reverse: bool
) -> tuple[Tensor | None, ...]:
    x, panels, bias, *state = inputs
    steps, batch, wide = x.shape
    units = state[0].shape[1]
    weight = _plain(panels, units)
    g = [F.zeros_like(t) if c is None else c for c, t in zip(g, y)]
    first = F.expand_dims(state[0], 0)
    before = F.concat([y[0][1:], first] if reverse else [first, y[0][:-1]], 0)
    hidden = F.matmul(F.reshape(before, (steps * batch, units)), weight) + bias
    hidden = F.reshape(hidden, x.shape)
    more: tuple[object, ...] = ()
    gates = x + hidden
    if mode == "lstm":
        more = (g[2], state[1])
    elif mode == "gru":
        both = 2 * units  # r and z are gates of sums, n takes its two parts apart
        gates = F.concat([gates[..., :both], x[..., both:], hidden[..., both:]], -1)
        more = (before,)
    made, *carried = F.recurrent_gradient(
        gates, _turned_panels(weight), g[0], g[1], *more, mode=mode, reverse=reverse
    )
    by_hidden = made[..., :wide]
    by_x = by_hidden
    if mode == "gru":  # the third part is the state's, the fourth that of the inputs
        by_x = F.concat([made[..., : 2 * units], made[..., wide:]], -1)
    by_first = F.matmul(by_hidden[-1 if reverse else 0], F.transpose(weight, (1, 0)))
    if mode == "gru":
        by_first = by_first + carried.pop()
    flat = F.reshape(by_hidden, (steps * batch, wide))
    by_weight = F.matmul(F.transpose(F.reshape(before, (steps * batch, units)), (1, 0)), flat)
    by_panels = _panels(by_weight, panels.shape)
    return (by_x, by_panels, F.reduce_sum(flat, axis=(0,), keep_dims=False), by_first, *carried)


def _plain(panels: Tensor, units: int) -> Tensor:
    """The weights (units, gates * units) in panels."""
    gates = panels.shape[2]
    plain = F.reshape(F.transpose(panels, (1, 2, 0, 3)), (units, gates, -1))
    return F.reshape(plain[:, :, :units], (units, gates * units))


def _panels(weight: Tensor, shape: Sequence[int]) -> Tensor:
    """Weights (units, gates * units) in panels of a shape."""
    blocks, units, gates, width = shape
    parts = F.reshape(weight, (units, gates, units))
    if blocks * width > units:
        parts = F.pad(parts, (0, blocks * width - units))
    return F.transpose(F.reshape(parts, (units, gates, blocks, width)), (2, 0, 1, 3))


def _turned_panels(weight: Tensor) -> Tensor:
    """Weights (units, gates * units) in the panels that :func:`recurrent_gradient` takes."""
    units, wide = weight.shape
    width = panel_width(units)
    blocks = -(-units // width)
    transposed = F.transpose(weight, (1, 0))
    if blocks * width > units:
        transposed = F.pad(transposed, (0, blocks * width - units))
    return F.transpose(F.reshape(transposed, (wide, blocks, width)), (1, 0, 2))


def _lower(R: Builder, *inputs: Expr, mode: str, reverse: bool) -> Sequence[Expr]:
    types = _infer(*[R.type(x) for x in inputs], mode=mode, reverse=reverse)
    return R.unpack(R.write("recurrent", f"{mode} {int(reverse)}", inputs, types), len(types))


def _onnx(O: OnnxOps, *inputs: OnnxNamed, mode: str, reverse: bool) -> tuple[OnnxNamed, ...]:
    x, panels, bias = inputs[:3]
    state = list(inputs[3:])
    gates, states = _KINDS[mode]
    steps, _, wide = x.type.shape
    units = wide // gates
    transposed = O.Reshape(O.Transpose(panels, perm=[1, 2, 0, 3]), O.const([units, gates, -1]))
    plain = O.Slice(transposed, O.const([0]), O.const([units]), O.const([2]))
    weight = O.Reshape(plain, O.const([units, wide]))
    outputs: list[object] = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        projected = O.Gather(x, O.const(t), axis=0)
        hidden = O.Add(O.MatMul(state[0], weight), bias)
        state = _onnx_step(O, mode, units, projected, hidden, state)
        outputs[t] = O.Unsqueeze(state[0], O.const([0]))
    return (O.Concat(*outputs, axis=0), *state[:states])


def _onnx_step(
    O: OnnxOps, mode: str, units: int, x: OnnxNamed, h: OnnxNamed, state: Sequence[object]
) -> list[OnnxNamed]:
    def part(value: OnnxNamed, gate: int) -> OnnxNamed:
        return O.Slice(value, O.const([gate * units]), O.const([(gate + 1) * units]), O.const([1]))

    def both(gate: int) -> OnnxNamed:
        return O.Add(part(x, gate), part(h, gate))

    if mode == "lstm":
        kept = O.Mul(O.Sigmoid(both(1)), state[1])
        c = O.Add(kept, O.Mul(O.Sigmoid(both(0)), O.Tanh(both(2))))
        return [O.Mul(O.Sigmoid(both(3)), O.Tanh(c)), c]
    if mode == "gru":
        n = O.Tanh(O.Add(part(x, 2), O.Mul(O.Sigmoid(both(0)), part(h, 2))))
        return [O.Add(n, O.Mul(O.Sigmoid(both(1)), O.Sub(state[0], n)))]
    return [O.Tanh(both(0)) if mode == "rnn_tanh" else O.Relu(both(0))]


def _sample(mode: str, steps: int, batch: int, units: int, **more: Any) -> Sample:
    gates, states = _KINDS[mode]
    shapes = [(steps, batch, gates * units), (-(-units // PANEL), units, gates, PANEL),
              (gates * units,)]  # fmt: skip
    attrs = {"mode": mode, "reverse": more.pop("reverse", False)}
    return sample(*shapes, *[(batch, units)] * states, attrs=attrs, low=-1, high=1, **more)


def _batch_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The batch."""
    states = [["b", "."]] * (len(types) - 3)
    inputs = [[".", "b", "."], ["."] * 4, ["."], *states]
    return equation(inputs, [inputs[0], *states])


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, _batch_factors),
    eager=_eager,
    lower=_lower,
    vjp=_vjp,
    onnx=_onnx,
    multi=True,
    samples=[
        _sample("lstm", 3, 2, 5),
        _sample("lstm", 4, 1, 48, grad=False),
        _sample("lstm", 2, 9, 33, reverse=True, grad=False),
        _sample("gru", 3, 2, 17, grad=False),
        _sample("gru", 2, 2, 3, dtype="float64", reverse=True),
        _sample("rnn_tanh", 3, 1, 20, grad=False),
        _sample("rnn_relu", 1, 8, 16, grad=False),
    ],
)
def recurrent_sweep(*inputs: Tensor, mode: str, reverse: bool) -> tuple[Tensor, ...]:
    r"""Runs a recurrent cell over all steps of a sequence, :math:`s_t = cell(x_t, W h_{t-1} + b,
    s_{t-1})`.

    Args:
        *inputs: What the inputs contribute to the gates, (T, N, G H); weights of the state in
            panels (H / 16 rounded up, H, G, 16); their bias (G H,); the first state h and, for an
            LSTM, c, both (N, H). float32 or float64.
        mode: ``"lstm"`` (gates i, f, g, o), ``"gru"`` (r, z, n), ``"rnn_tanh"`` or ``"rnn_relu"``.
        reverse: Whether the steps run from the last to the first.

    Returns:
        Tuple of the outputs (T, N, H) and the last state.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w, b = ops.ones((5, 2, 4)), ops.ones((1, 4, 1, 16)), ops.zeros(4)
        >>> y, h = ops.recurrent_sweep(x, w, b, ops.zeros((2, 4)), mode="rnn_tanh", reverse=False)
        >>> y.shape, h.shape
        ((5, 2, 4), (2, 4))
    """
    ...
