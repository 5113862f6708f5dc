"""The derivative of all steps of a recurrent layer as one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph import dtypes, hooks
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, ShapeError

__all__ = ["recurrent_gradient"]

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


_KINDS = {
    "rnn_tanh": _Kind(1, 1), "rnn_relu": _Kind(1, 1), "lstm": _Kind(4, 4, 2), "gru": _Kind(4, 3, 1),
}  # fmt: skip


def panel_width(units: int) -> int:
    """Units of a panel of weights: as wide as registers allow without much padding.

    Args:
        units: Units of the layer.
    """
    widths = [_LANES * v for v in range(_VECTORS, 0, -1)]
    return min(widths, key=lambda width: -(-units // width) * width)


def _infer(*inputs: TensorType, mode: str, reverse: bool) -> tuple[TensorType, ...]:
    if mode not in _KINDS:
        raise ArgumentError(f"mode must be one of {', '.join(_KINDS)}", got=repr(mode))
    kind = _KINDS[mode]
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


def _vjp(
    g: Sequence[Tensor | None], y: Sequence[Tensor], *inputs: Tensor, mode: str, reverse: bool
) -> tuple[Tensor | None, ...]:
    _, pull_back = hooks.vjp(lambda *xs: _all_steps(_operators(), xs, mode, reverse), *inputs)
    cotangents = [F.zeros_like(t) if c is None else c for c, t in zip(g, y)]
    return pull_back(*cotangents)


def _lower(R: Builder, *inputs: Expr, mode: str, reverse: bool) -> Sequence[Expr]:
    types = _infer(*[R.type(x) for x in inputs], mode=mode, reverse=reverse)
    made = R.write("recurrent_gradient", f"{mode} {int(reverse)}", inputs, types, symbolic=True)
    return R.unpack(made, len(types))


def _sample(mode: str, steps: int, batch: int, units: int, **more: Any) -> Sample:
    kind, width = _KINDS[mode], panel_width(units)
    state, every = (batch, units), (steps, batch, units)
    gates, panels = kind.parts * units, (-(-units // width), kind.weighted * units, width)
    shapes: list[Any] = [(steps, batch, gates), panels, every, state]
    shapes += {"lstm": [state, state], "gru": [every]}.get(mode, [])
    attrs = {"mode": mode, "reverse": more.pop("reverse", False)}
    return sample(*shapes, attrs=attrs, low=-1, high=1, **more)


def _batch_factors(types: Sequence[TensorType], attrs: Mapping[str, object]) -> str:
    """The batch."""
    words = [[".", "b", "."] if t.ndim == 3 else ["b", "."] for t in types]
    words[1] = ["."] * 3
    carried = [["b", "."]] if attrs["mode"] in ("lstm", "gru") else []
    return equation(words, [words[0], *carried])


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, _batch_factors),
    eager=lambda *inputs, mode, reverse: _all_steps(_NUMPY, inputs, mode, reverse),
    lower=_lower,
    vjp=_vjp,
    onnx=Reason("a derivative; networks are exported without it"),
    multi=True,
    samples=[
        _sample("lstm", 3, 2, 5),
        _sample("lstm", 4, 1, 48, grad=False),
        _sample("lstm", 2, 9, 33, reverse=True, grad=False),
        _sample("gru", 3, 2, 3),
        _sample("gru", 2, 17, 70, grad=False),
        _sample("gru", 2, 2, 3, dtype="float64", reverse=True),
        _sample("rnn_tanh", 3, 1, 20, grad=False),
        _sample("rnn_relu", 1, 8, 16, grad=False),
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
