"""All steps of a recurrent layer as one operator, and their derivative as another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.errors import ArgumentError, ShapeError

__all__ = ["recurrent_gradient", "recurrent_sweep"]

#: Units of a panel of weights: the lanes of the widest vectors, whole vectors on all others. Cells
#: cut their weights before a processor is known; kernels take as much of a panel at a time as
#: registers hold (``tile_of_panel``).
PANEL = 16
#: Gates and tensors of the state by kind of cell.
_KINDS = {"rnn_tanh": (1, 1), "rnn_relu": (1, 1), "lstm": (4, 2), "gru": (3, 1)}


def _infer(
    *inputs: TensorType, mode: str, reverse: bool, keep_gates: bool
) -> tuple[TensorType, ...]:
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
    if not keep_gates:
        return (y, *inputs[3:])
    parts = 4 if mode == "gru" else gates
    return (y, *inputs[3:], x.with_shape((*x.shape[:2], parts * units)))


def _weight(panels: np.ndarray, units: int) -> np.ndarray:
    """The weights (units, gates * units) that a product with the state takes."""
    plain = panels.transpose(1, 2, 0, 3).reshape(units, panels.shape[2], -1)[:, :, :units]
    return plain.reshape(units, -1)


def _numpy_gates(mode: str, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The gates of a step, given what the inputs and the state contribute to them."""
    if mode != "gru":
        return x + h
    n = x.shape[-1] // 3 * 2
    return np.concatenate([x[..., :n] + h[..., :n], x[..., n:], h[..., n:]], -1)


def _numpy_step(
    mode: str, gates: np.ndarray, state: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """One step, given its gates."""
    if mode == "lstm":
        i, f, g, o = np.split(gates, 4, -1)
        c = numpy_sigmoid(f) * state[1] + numpy_sigmoid(i) * np.tanh(g)
        return numpy_sigmoid(o) * np.tanh(c), c
    if mode == "gru":
        r, z, x_n, h_n = np.split(gates, 4, -1)
        n = np.tanh(x_n + numpy_sigmoid(r) * h_n)
        return (n + numpy_sigmoid(z) * (state[0] - n),)
    return (np.tanh(gates) if mode == "rnn_tanh" else np.maximum(gates, 0),)


def _eager(
    *inputs: np.ndarray, mode: str, reverse: bool, keep_gates: bool
) -> tuple[np.ndarray, ...]:
    x, panels, bias = inputs[:3]
    state = inputs[3:]
    weight = _weight(panels, state[0].shape[1])
    y = np.empty((*x.shape[:2], state[0].shape[1]), x.dtype)
    kept: dict[int, np.ndarray] = {}
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        kept[t] = _numpy_gates(mode, x[t], state[0] @ weight + bias)
        state = _numpy_step(mode, kept[t], state)
        y[t] = state[0]
    return (y, *state, np.stack([kept[t] for t in range(len(x))])) if keep_gates else (y, *state)


def _vjp(
    g: Sequence[Tensor | None],
    y: Sequence[Tensor],
    *inputs: Tensor,
    mode: str,
    reverse: bool,
    keep_gates: bool,
) -> tuple[Tensor | None, ...]:
    """A tape has asked for the gates."""
    x, panels, _, *state = inputs
    wide, units = x.shape[2], state[0].shape[1]
    weight = _plain(panels, units)
    back = F.transpose(weight, (1, 0))
    slopes = [F.zeros_like(t) if c is None else c for c, t in zip(g[:-1], y)]
    own = None if g[-1] is None else [_without(g[-1], number, mode, units) for number in (2, 3)]
    if own is not None:  # a second derivative: the gates are computed of what is before them
        slopes[0] = slopes[0] + _from_gates(own[0], back, reverse)
    first = F.expand_dims(state[0], 0)
    before = F.concat([y[0][1:], first] if reverse else [first, y[0][:-1]], 0)
    more = {"lstm": (slopes[-1], state[-1]), "gru": (before,)}.get(mode, ())
    made, *carried = F.recurrent_gradient(
        y[-1], _turned_panels(weight), *slopes[:2], *more, mode=mode, reverse=reverse
    )
    by_hidden, by_x = _without(made, 3, mode, units), _without(made, 2, mode, units)
    if own is not None:
        by_hidden, by_x = by_hidden + own[0], by_x + own[1]
    by_first = F.matmul(by_hidden[-1 if reverse else 0], back)
    if mode == "gru":
        by_first = by_first + carried.pop()
    flat = F.reshape(by_hidden, (-1, wide))
    by_weight = F.matmul(F.transpose(F.reshape(before, (-1, units)), (1, 0)), flat)
    by_panels = _panels(by_weight, panels.shape)
    return (by_x, by_panels, F.reduce_sum(flat, axis=(0,), keep_dims=False), by_first, *carried)


def _without(parts: Tensor, number: int, mode: str, units: int) -> Tensor:
    """Leaves out one of the four parts of a GRU, whose n takes two of them apart.

    Of the gates the third is the inputs' and the fourth the state's, of the cotangents that
    :func:`recurrent_gradient` returns the third is the state's and the fourth the inputs'.
    """
    if mode != "gru":
        return parts
    if number == 3:
        return parts[..., : 3 * units]
    return F.concat([parts[..., : 2 * units], parts[..., 3 * units :]], -1)


def _from_gates(by_hidden: Tensor, back: Tensor, reverse: bool) -> Tensor:
    """What the outputs get of cotangents of the gates of the steps after them."""
    given = F.matmul(by_hidden, back)
    nothing = F.zeros_like(given[:1])
    return F.concat([nothing, given[:-1]] if reverse else [given[1:], nothing], 0)


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


def _lower(R: Builder, *inputs: Expr, mode: str, reverse: bool, keep_gates: bool) -> Sequence[Expr]:
    types = _infer(*map(R.type, inputs), mode=mode, reverse=reverse, keep_gates=keep_gates)
    made = R.write("recurrent", f"{mode} {int(reverse)}", inputs, types, symbolic=True)
    return R.unpack(made, len(types))


def _onnx(
    O: OnnxOps, *inputs: OnnxNamed, mode: str, reverse: bool, keep_gates: bool
) -> tuple[OnnxNamed, ...]:
    x, panels, bias = inputs[:3]
    state = list(inputs[3:])
    gates, states = _KINDS[mode]
    steps, _, wide = x.type.shape
    units = wide // gates
    transposed = O.Reshape(O.Transpose(panels, perm=[1, 2, 0, 3]), O.const([units, gates, -1]))
    plain = O.Slice(transposed, O.const([0]), O.const([units]), O.const([2]))
    weight = O.Reshape(plain, O.const([units, wide]))

    def step(x: OnnxNamed, state: Sequence[object]) -> tuple[Sequence[OnnxNamed], list[OnnxNamed]]:
        parts = _onnx_gates(O, mode, units, x, O.Add(O.MatMul(state[0], weight), bias))
        return parts, _onnx_step(O, mode, parts, state)

    if isinstance(steps, Dim):
        return _onnx_scan(O, step, x, state, reverse, keep_gates)
    outputs: list[object] = [None] * steps
    kept: list[object] = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        projected = O.Gather(x, O.const(t), axis=0)
        parts, state = step(projected, state)
        outputs[t] = O.Unsqueeze(state[0], O.const([0]))
        if keep_gates:
            kept[t] = O.Unsqueeze(O.Concat(*parts, axis=-1), O.const([0]))
    more = [O.Concat(*kept, axis=0)] if keep_gates else []
    return (O.Concat(*outputs, axis=0), *state[:states], *more)


#: From the inputs of a step and the state to the gates and the next state.
_OnnxStep = Callable[[OnnxNamed, Sequence[object]], tuple[Sequence[OnnxNamed], Sequence[OnnxNamed]]]


def _onnx_scan(
    O: OnnxOps, step: _OnnxStep, x: OnnxNamed, state: Sequence[OnnxNamed], reverse: bool,
    keep_gates: bool,
) -> tuple[OnnxNamed, ...]:  # fmt: skip
    """Steps whose number is not known: ONNX's loop over them."""
    kinds = [s.type for s in state]

    def body(*given: OnnxNamed) -> list[OnnxNamed]:
        *before, now = given
        parts, after = step(now, before)
        kept = [O.Concat(*parts, axis=-1)] if keep_gates else []
        rows, units = kinds[0].shape
        types = [*kinds, kinds[0], kinds[0].with_shape((rows, len(parts) * units))]
        made = [*after, O.Identity(after[0]), *kept]
        for v, t in zip(made, types):
            v.type = t
        return made

    inner = O.subgraph("step", [*kinds, x.type.with_shape(x.type.shape[1:])], body)
    count, back = len(kinds) + 1 + keep_gates, [int(reverse)]
    found = O.Scan(
        *state, x, body=inner, num_scan_inputs=1, outputs=count, scan_input_directions=back,
        scan_output_directions=back * (1 + keep_gates),
    )  # fmt: skip
    last, (y, *gates) = found[: len(kinds)], found[len(kinds) :]
    return (y, *last, *gates)


def _onnx_gates(
    O: OnnxOps, mode: str, units: int, x: OnnxNamed, h: OnnxNamed
) -> Sequence[OnnxNamed]:
    def part(value: OnnxNamed, gate: int) -> OnnxNamed:
        return O.Slice(value, O.const([gate * units]), O.const([(gate + 1) * units]), O.const([1]))

    if mode == "gru":
        return [*(O.Add(part(x, k), part(h, k)) for k in range(2)), part(x, 2), part(h, 2)]
    return [O.Add(part(x, k), part(h, k)) for k in range(_KINDS[mode][0])]


def _onnx_step(
    O: OnnxOps, mode: str, gates: Sequence[OnnxNamed], state: Sequence[object]
) -> list[OnnxNamed]:
    if mode == "lstm":
        i, f, g, o = gates
        c = O.Add(O.Mul(O.Sigmoid(f), state[1]), O.Mul(O.Sigmoid(i), O.Tanh(g)))
        return [O.Mul(O.Sigmoid(o), O.Tanh(c)), c]
    if mode == "gru":
        r, z, x_n, h_n = gates
        n = O.Tanh(O.Add(x_n, O.Mul(O.Sigmoid(r), h_n)))
        return [O.Add(n, O.Mul(O.Sigmoid(z), O.Sub(state[0], n)))]
    return [O.Tanh(gates[0]) if mode == "rnn_tanh" else O.Relu(gates[0])]


def _sample(mode: str, steps: int, batch: int, units: int, **more: Any) -> Sample:
    gates, states = _KINDS[mode]
    shapes = [(steps, batch, gates * units), (-(-units // PANEL), units, gates, PANEL),
              (gates * units,)]  # fmt: skip
    attrs = {
        "mode": mode,
        "reverse": more.pop("reverse", False),
        "keep_gates": more.pop("keep_gates", False),
    }
    return sample(*shapes, *[(batch, units)] * states, attrs=attrs, low=-1, high=1, **more)


def _batch_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The batch."""
    states = [["b", "."]] * (len(types) - 3)
    inputs = [[".", "b", "."], ["."] * 4, ["."], *states]
    return equation(inputs, [inputs[0], *states, *[inputs[0]] * bool(attrs["keep_gates"])])


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, _batch_factors, keeps="keep_gates"),
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
        _sample("lstm", 3, 2, 5, keep_gates=True),
        _sample("lstm", 2, 7, 21, reverse=True, keep_gates=True, grad=False),
        _sample("gru", 3, 2, 3, reverse=True, keep_gates=True),
        _sample("gru", 2, 5, 33, keep_gates=True, grad=False),
        _sample("rnn_tanh", 3, 1, 4, keep_gates=True),
    ],
)
def recurrent_sweep(
    *inputs: Tensor, mode: str, reverse: bool, keep_gates: bool = False
) -> tuple[Tensor, ...]:
    r"""Runs a recurrent cell over all steps of a sequence, :math:`s_t = cell(x_t, W h_{t-1} + b,
    s_{t-1})`.

    Args:
        *inputs: What the inputs contribute to the gates, (T, N, G H); weights of the state in
            panels (H / 16 rounded up, H, G, 16); their bias (G H,); the first state h and, for an
            LSTM, c, both (N, H). float32 or float64.
        mode: ``"lstm"`` (gates i, f, g, o), ``"gru"`` (r, z, n), ``"rnn_tanh"`` or ``"rnn_relu"``.
        reverse: Whether the steps run from the last to the first.
        keep_gates: Whether to return also what went into the gates, as
            :func:`recurrent_gradient` takes it.

    Returns:
        Tuple of the outputs (T, N, H), the last state and, where they are kept, the gates.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, w, b = ops.ones((5, 2, 4)), ops.ones((1, 4, 1, 16)), ops.zeros(4)
        >>> y, h = ops.recurrent_sweep(x, w, b, ops.zeros((2, 4)), mode="rnn_tanh", reverse=False)
        >>> y.shape, h.shape
        ((5, 2, 4), (2, 4))
    """
    ...


# ---- the derivative -----------------------------------------------------------------------------


#: Lanes of the widest vectors: panels of weights are whole vectors wide, at most four.
_LANES, _VECTORS = 16, 4


@dataclass(frozen=True)
class _Kind:
    """A kind of cell.

    Attributes:
        parts: Tensors of (T, N, H) that the gates are given as, and their cotangents.
        weighted: How many of them the weights of the state contribute to.
        more: Operands after the cotangent of the last state.
    """

    parts: int
    weighted: int
    more: int = 0


_CELLS = {
    "rnn_tanh": _Kind(1, 1), "rnn_relu": _Kind(1, 1), "lstm": _Kind(4, 4, 2), "gru": _Kind(4, 3, 1),
}  # fmt: skip


def panel_width(units: int) -> int:
    """Units of a panel of weights: as wide as registers allow without much padding.

    Args:
        units: Units of the layer.
    """
    widths = [_LANES * v for v in range(_VECTORS, 0, -1)]
    return min(widths, key=lambda width: -(-units // width) * width)


def _infer_gradient(*inputs: TensorType, mode: str, reverse: bool) -> tuple[TensorType, ...]:
    if mode not in _CELLS:
        raise ArgumentError(f"mode must be one of {', '.join(_CELLS)}", got=repr(mode))
    kind = _CELLS[mode]
    if len(inputs) != 4 + kind.more:
        raise ArgumentError(f"{mode} takes {4 + kind.more} tensors")
    gates, panels, outputs, last, *more = inputs
    rules.require_dtype(gates, (dtypes.float32, dtypes.float64))
    rules.require_same_dtype(*inputs)
    if outputs.ndim != 3 or panels.ndim != 3:
        raise ShapeError("cotangents of the outputs and panels of weights need 3 axes")
    steps, batch, units = outputs.shape
    width = panels.shape[2]
    blocks = -(-units // width)  # pyright: ignore[reportOperatorIssue]
    if gates.shape != (steps, batch, kind.parts * units):
        raise ShapeError(f"the gates of {units} units do not fit")
    if panels.shape != (blocks, kind.weighted * units, width):
        raise ShapeError("the panels of weights do not fit")
    states = [last] if mode == "gru" else [last, *more]
    if any(s.shape != (batch, units) for s in states):
        raise ShapeError("states and their cotangents must be (batch, units)")
    if mode == "gru" and more[0].shape != outputs.shape:
        raise ShapeError("the states before the steps must be as many as the outputs")
    return (gates, last) if kind.more else (gates,)


@dataclass(frozen=True)
class _Library:
    """What the formulas need of NumPy, or of the operators."""

    sigmoid: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    positive: Callable[[Any], Any]
    join: Callable[[Sequence[Any]], Any]
    stack: Callable[[Sequence[Any]], Any]


def numpy_sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function, without overflow.

    Args:
        x: Floating-point array.
    """
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


_NUMPY = _Library(
    numpy_sigmoid, np.tanh, lambda x: (x > 0).astype(x.dtype),
    lambda parts: np.concatenate(parts, -1), np.stack,
)  # fmt: skip


def _operators() -> _Library:
    return _Library(
        F.sigmoid, F.tanh, lambda x: F.cast(x > 0, x.dtype),
        lambda parts: F.concat(list(parts), -1), lambda parts: F.stack(list(parts), 0),
    )  # fmt: skip


def _parts(gates: Any, units: int) -> list[object]:
    return [gates[..., k : k + units] for k in range(0, gates.shape[-1], units)]


def _cells(lib: _Library, gates: Any, first: Any, order: Sequence[int]) -> dict[int, object]:
    """The second state of an LSTM after every step; -1 is the first one."""
    found = {-1: first}
    state, units = first, first.shape[-1]
    for t in order:
        i, f, g, _ = _parts(gates[t], units)
        state = lib.sigmoid(f) * state + lib.sigmoid(i) * lib.tanh(g)
        found[t] = state
    return found


def _step(
    lib: _Library, mode: str, gates: object, slope: Tensor, more: tuple[object, ...]
) -> tuple[list[Any], Any]:
    """Cotangents of the gates of a step, and what goes to the step before without weights."""
    parts = _parts(gates, slope.shape[-1])
    if mode == "lstm":
        carried, cell, before = more
        i, f, o = (lib.sigmoid(parts[k]) for k in (0, 1, 3))
        g, out = lib.tanh(parts[2]), lib.tanh(cell)
        inner = carried + slope * o * (1 - out * out)
        found = [inner * g * i * (1 - i), inner * before * f * (1 - f), inner * i * (1 - g * g)]
        return [*found, slope * out * o * (1 - o)], inner * f
    if mode == "gru":
        r, z = lib.sigmoid(parts[0]), lib.sigmoid(parts[1])
        n = lib.tanh(parts[2] + r * parts[3])
        new = slope * (1 - z) * (1 - n * n)
        update = slope * (more[0] - n) * z * (1 - z)
        return [new * parts[3] * r * (1 - r), update, new * r, new], slope * z
    y = lib.tanh(parts[0]) if mode == "rnn_tanh" else None
    return [slope * (lib.positive(parts[0]) if y is None else 1 - y * y)], None


def _all_steps(lib: _Library, inputs: Sequence[Any], mode: str, reverse: bool) -> tuple[Any, ...]:
    gates, panels, outputs, slope, *more = inputs
    steps, _, units = outputs.shape
    depth = panels.shape[1]
    weight = panels.transpose(1, 0, 2).reshape(depth, -1)[:, :units]
    order = range(steps)[::-1] if reverse else range(steps)
    cells = _cells(lib, gates, more[1], order) if mode == "lstm" else {}
    carried = more[0] if mode == "lstm" else None
    found: list[object] = [None] * steps
    for number in reversed(range(steps)):
        t, before = order[number], order[number - 1] if number else -1
        slope = slope + outputs[t]
        own: tuple[Any, ...] = ()
        if mode == "lstm":
            own = (carried, cells[t], cells[before])
        elif mode == "gru":
            own = (more[0][t],)
        parts, carried = _step(lib, mode, gates[t], slope, own)
        slope = lib.join(parts[: depth // units]) @ weight
        if mode == "gru":
            slope = slope + carried
        found[t] = lib.join(parts)
    made = (lib.stack(found),)
    return made if carried is None else (*made, carried)


def _vjp_gradient(
    g: Sequence[Tensor | None], y: Sequence[Tensor], *inputs: Tensor, mode: str, reverse: bool
) -> tuple[Tensor | None, ...]:
    _, pull_back = hooks.vjp(lambda *xs: _all_steps(_operators(), xs, mode, reverse), *inputs)
    cotangents = [F.zeros_like(t) if c is None else c for c, t in zip(g, y)]
    return pull_back(*cotangents)


def _lower_gradient(R: Builder, *inputs: Expr, mode: str, reverse: bool) -> Sequence[Expr]:
    types = _infer_gradient(*[R.type(x) for x in inputs], mode=mode, reverse=reverse)
    made = R.write("recurrent_gradient", f"{mode} {int(reverse)}", inputs, types, symbolic=True)
    return R.unpack(made, len(types))


def _gradient_sample(mode: str, steps: int, batch: int, units: int, **more: Any) -> Sample:
    kind, width = _CELLS[mode], panel_width(units)
    state, every = (batch, units), (steps, batch, units)
    gates, panels = kind.parts * units, (-(-units // width), kind.weighted * units, width)
    shapes: list[Any] = [(steps, batch, gates), panels, every, state]
    shapes += {"lstm": [state, state], "gru": [every]}.get(mode, [])
    attrs = {"mode": mode, "reverse": more.pop("reverse", False)}
    return sample(*shapes, attrs=attrs, low=-1, high=1, **more)


def _gradient_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The batch."""
    words = [[".", "b", "."] if t.ndim == 3 else ["b", "."] for t in types]
    words[1] = ["."] * 3
    carried = [["b", "."]] if attrs["mode"] in ("lstm", "gru") else []
    return equation(words, [words[0], *carried])


@primitive(
    infer=_infer_gradient,
    traits=Traits(Pattern.OPAQUE, _gradient_factors),
    eager=lambda *inputs, mode, reverse: _all_steps(_NUMPY, inputs, mode, reverse),
    lower=_lower_gradient,
    vjp=_vjp_gradient,
    onnx=Reason("a derivative; networks are exported without it"),
    multi=True,
    samples=[
        _gradient_sample("lstm", 3, 2, 5),
        _gradient_sample("lstm", 4, 1, 48, grad=False),
        _gradient_sample("lstm", 2, 9, 33, reverse=True, grad=False),
        _gradient_sample("gru", 3, 2, 3),
        _gradient_sample("gru", 2, 17, 70, grad=False),
        _gradient_sample("gru", 2, 2, 3, dtype="float64", reverse=True),
        _gradient_sample("rnn_tanh", 3, 1, 20, grad=False),
        _gradient_sample("rnn_relu", 1, 8, 16, grad=False),
    ],
)
def recurrent_gradient(*inputs: Tensor, mode: str, reverse: bool) -> tuple[Tensor, ...]:
    r"""The derivative of :func:`recurrent_sweep` by what goes into the gates of every step,
    :math:`\bar a_t = (\bar y_t + W^T \bar a_{t+1}) \, \partial cell / \partial a_t`.

    Args:
        *inputs: What goes into the gates, (T, N, G H): the sums of what inputs and state
            contribute, for a GRU those of r and z, then both contributions to n; weights of the
            state in panels (blocks, G H, width) of the units they belong to; cotangents of the
            outputs (T, N, H) and of the last state (N, H). For an LSTM also the cotangent of the
            last c and the first c, (N, H); for a GRU the states before the steps, (T, N, H).
        mode: ``"lstm"`` (gates i, f, g, o), ``"gru"`` (r, z, n), ``"rnn_tanh"`` or ``"rnn_relu"``.
        reverse: Whether the steps ran from the last to the first.

    Returns:
        Tuple of the cotangents of what went into the gates and, for an LSTM, the cotangent of the
        first c; for a GRU, what the first state gets without the weights.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> gates, w, g = ops.zeros((5, 2, 4)), ops.ones((1, 4, 16)), ops.ones((5, 2, 4))
        >>> last = ops.zeros((2, 4))
        >>> ops.recurrent_gradient(gates, w, g, last, mode="rnn_tanh", reverse=False)[0].shape
        (5, 2, 4)
    """
    ...
