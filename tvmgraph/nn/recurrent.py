"""Recurrent layers over whole sequences: RNN, LSTM, GRU."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from tvmgraph import dtypes
from tvmgraph.common.initializer import Uniform
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.precision import Mixed
from tvmgraph.core.state import state as thread
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, layers, positive, real, reject
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.basic import Dropout
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.recurrent_cells import STEPS, State
from tvmgraph.ops.rnn.sweep import PANEL

#: An input that shuts or opens a gate for good: the sigmoid is exactly 0 or 1, also in float16.
_SHUT = 1e4
_HOLD = {
    "rnn_tanh": (-_SHUT,), "rnn_relu": (-_SHUT,),
    "lstm": (-_SHUT, _SHUT, 0.0, 0.0), "gru": (0.0, _SHUT, 0.0),
}  # fmt: skip


class _Recurrent(Cell):
    """A stack of recurrent layers, one or two directions each."""

    mode: str  # a key of STEPS
    #: What MindSpore calls the Cell that computes a kind, which its printed trees show.
    _INNER: ClassVar[dict[str, str]] = {
        "lstm": "_DynamicLSTMCPUGPU", "gru": "_DynamicGRUCPUGPU", "rnn_tanh": "_DynamicRNNTanh",
        "rnn_relu": "_DynamicRNNRelu",
    }  # fmt: skip

    def __repr__(self) -> str:
        head, _, others = super().__repr__().partition("\n")
        return f"{head}\n  (rnn): {self._INNER[self.mode]}()\n{others}"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.input_size = positive(op, "input_size", input_size)
        self.hidden_size = positive(op, "hidden_size", hidden_size)
        self.num_layers = layers(op, "num_layers", num_layers)
        self.has_bias = boolean(op, "has_bias", has_bias)
        self.batch_first = boolean(op, "batch_first", batch_first)
        self.dropout = float(real(op, "dropout", dropout, 0, 1, "[)"))
        self.bidirectional = boolean(op, "bidirectional", bidirectional)
        self._suffixes = tuple(
            f"l{layer}{way}"
            for layer in range(num_layers)
            for way in (("", "_reverse") if bidirectional else ("",))
        )
        self._build(float_dtype(op, dtype))
        self.dropout_op = Dropout(p=self.dropout)

    def _build(self, dtype: dtypes.DType) -> None:
        """Builds all weights, in MindSpore's order."""
        hidden, op = self.hidden_size, type(self).__name__
        rows = hidden * STEPS[self.mode][1]
        init = Uniform(1 / math.sqrt(hidden))
        ways = 2 if self.bidirectional else 1
        kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        for kind in kinds if self.has_bias else kinds[:2]:
            for i, suffix in enumerate(self._suffixes):
                width = self.input_size if i < ways else hidden * ways
                shape = (rows,) if kind[0] == "b" else (rows, width if kind[-2] == "i" else hidden)
                name = f"{kind}_{suffix}"
                setattr(self, name, new_parameter(op, name, init, shape, dtype))

    def _all(self, kind: str) -> list[Parameter]:
        return [getattr(self, f"{kind}_{suffix}") for suffix in self._suffixes]

    @property
    def w_ih_list(self) -> list[Parameter]:
        """Input weights by layer and direction."""
        return self._all("weight_ih")

    @property
    def w_hh_list(self) -> list[Parameter]:
        """Hidden weights by layer and direction."""
        return self._all("weight_hh")

    @property
    def b_ih_list(self) -> list[Parameter]:
        """Input biases by layer and direction."""
        return self._all("bias_ih") if self.has_bias else []

    @property
    def b_hh_list(self) -> list[Parameter]:
        """Hidden biases by layer and direction."""
        return self._all("bias_hh") if self.has_bias else []

    def construct(
        self,
        x: Tensor,
        hx: Tensor | tuple[Tensor, Tensor] | None = None,
        seq_length: Tensor | None = None,
    ) -> Any:
        self._check_input(x)
        if self.batch_first:
            x = F.transpose(x, (1, 0, 2))
        states = self._initial_state(x, hx)
        seq_length = self._lengths(x, seq_length)
        final: list[State] = []
        ways = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outputs = []
            for way in range(ways):
                index = layer * ways + way
                state = tuple(s[index] for s in states)
                with self._as_one():
                    y, last = self._sweep(x, index, state, seq_length, way == 1)
                outputs.append(y)
                final.append(last)
            x = outputs[0] if ways == 1 else F.concat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = self.dropout_op(x)
        if self.batch_first:
            x = F.transpose(x, (1, 0, 2))
        last = [F.stack(parts, 0) for parts in zip(*final)]
        return x, tuple(last) if len(last) > 1 else last[0]

    def _sweep(
        self, x: Tensor, index: int, state: State, lengths: Tensor | None, backwards: bool
    ) -> tuple[Tensor, State]:
        """Runs one direction of one layer over all steps of ``x`` (time first)."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if self.has_bias else 2]
        weights = (self.compute(getattr(self, f"{k}_{self._suffixes[index]}")) for k in kinds)
        if x.dtype.is_float:  # a network of halves calls with them, whatever its weights are
            weights = (w if w.dtype is x.dtype else F.cast(w, x.dtype) for w in weights)
        w_ih, w_hh, *biases = weights
        b_ih, b_hh = biases or (None, None)
        turned = lengths is not None and backwards
        if turned:  # then the last valid step is the first one, and what is not valid comes last
            x = F.reverse_sequence(x, lengths, 0, 1)
        projected = F.dense(x, w_ih, b_ih)  # all steps in one product
        if x.dtype.is_float:  # mixed precision may have made it another type than the weights
            projected = F.cast(projected, x.dtype)
        valid = None if lengths is None else _valid_steps(x.shape[0], lengths)
        if valid is not None:
            projected = F.where(valid, projected, _holding_gates(self.mode, projected))
        y, last = all_steps(self.mode, projected, w_hh, b_hh, state, backwards and not turned)
        if x.dtype.is_float:
            y, last = F.cast(y, x.dtype), tuple([F.cast(s, x.dtype) for s in last])
        if lengths is None or valid is None:
            return y, last
        last = (_last_valid(y, state[0], lengths), *last[1:])
        y = F.where(valid, y, F.zeros_like(y))
        return (F.reverse_sequence(y, lengths, 0, 1) if turned else y), last

    def _as_one(self) -> AbstractContextManager[None]:
        """To mixed precision an LSTM is one operator, which computes in the type it is given."""
        one = self.mode == "lstm" and isinstance(thread.precision, Mixed)
        return thread.computing_in(None) if one else nullcontext()

    def _check_input(self, x: Tensor) -> None:
        op = type(self).__name__
        if x.ndim != 3:
            order = "(batch, time, size)" if self.batch_first else "(time, batch, size)"
            reject(ShapeError, op, f"the input must have 3 axes {order}, not {x.ndim}",
                   f"x={x.aval}", "add the missing axis with ops.expand_dims")  # fmt: skip
        if x.shape[2] != self.input_size:
            reject(ShapeError, op,
                   f"the last axis must have input_size={self.input_size} elements, "
                   f"not {x.shape[2]}", f"x={x.aval}")  # fmt: skip
        steps = x.shape[1 if self.batch_first else 0]
        if steps < 1:
            rule = "at least one time step is needed"
            if steps == -1:
                rule = "the number of time steps must be known when the graph is built"
            reject(ShapeError, op, rule, f"x={x.aval}")

    def _initial_state(self, x: Tensor, hx: object) -> State:
        """Returns the state tensors of shape (layers * directions, batch, hidden)."""
        op = type(self).__name__
        count = STEPS[self.mode][2]
        shape = (len(self._suffixes), x.shape[1], self.hidden_size)
        if hx is None:
            return tuple(F.zeros(shape, x.dtype) for _ in range(count))
        given = (hx,) if isinstance(hx, Tensor) else hx
        names = "a tuple of two tensors" if count == 2 else "a Tensor"
        if not isinstance(given, (tuple, list)) or len(given) != count:
            reject(DTypeError, op, f"the initial state must be {names}", f"hx={hx!r:.80}")
        for s in given:
            if s.shape != shape:
                reject(ShapeError, op, f"the initial state must have shape {shape}",
                       f"hx={s.aval}, x={x.aval}")  # fmt: skip
        return tuple(given)

    def _lengths(self, x: Tensor, lengths: Tensor | None) -> Tensor | None:
        """Returns how many steps of each sequence are valid: none below 0, all above the last."""
        if lengths is None:
            return None
        if lengths.shape != (x.shape[1],) or not lengths.dtype.is_integer:
            reject(ShapeError, type(self).__name__, f"seq_length must hold {x.shape[1]} integers",
                   f"seq_length={lengths.aval}, x={x.aval}")  # fmt: skip
        lengths = F.cast(lengths, dtypes.int64)
        steps = F.full_like(lengths, x.shape[0])
        return F.minimum(F.maximum(lengths, F.zeros_like(lengths)), steps)


def all_steps(
    mode: str, projected: Tensor, w_hh: Tensor, b_hh: Tensor | None, state: State, backwards: bool
) -> tuple[Tensor, State]:
    """Runs one direction of one layer, given what the inputs contribute to the gates.

    Args:
        mode: ``"rnn_tanh"``, ``"rnn_relu"``, ``"lstm"`` or ``"gru"``.
        projected: Shape (time, batch, gates * units).
        w_hh: Weights of the state, (gates * units, units).
        b_hh: Their biases.
        state: First state, a tuple of (batch, units).
        backwards: Whether to begin at the last step.

    Returns:
        The outputs (time, batch, units), and the last state.
    """
    if _has_sweep(projected):
        bias = F.zeros(w_hh.shape[:1], projected.dtype) if b_hh is None else b_hh
        y, *last = F.recurrent_sweep(
            projected, _panels(w_hh), bias, *state, mode=mode, reverse=backwards
        )
        return y, tuple(last)
    step = STEPS[mode][0]
    inputs = F.unstack(projected, 0)
    outputs: list[object] = [None] * len(inputs)
    for t in reversed(range(len(inputs))) if backwards else range(len(inputs)):
        state = step(inputs[t], F.dense(state[0], w_hh, b_hh), state)
        outputs[t] = state[0]
    return F.stack(outputs, 0), state


def _valid_steps(steps: int, lengths: Tensor) -> Tensor:
    """Returns for every step which sequences are not finished, of shape (steps, batch, 1)."""
    return F.expand_dims(lengths, 1) > F.reshape(F.arange(steps), (steps, 1, 1))


def _holding_gates(mode: str, projected: Tensor) -> Tensor:
    """Returns inputs of the gates for steps after the end of a sequence.

    An LSTM keeps its second state, which is known after the last step only: with closed input gates
    and open forget gates :math:`c' = 1 c + 0 g` is exact, and so is its derivative. The other
    kinds stay bounded, so that no infinity meets the zero cotangents of outputs nobody uses.
    """
    values = _HOLD[mode]
    width = projected.shape[-1] // len(values)
    return F.concat([F.full((width,), value, dtype=projected.dtype) for value in values], 0)


def _last_valid(y: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
    """Returns the output (batch, units) of each sequence's last valid step, ``first`` if none."""
    end = F.reshape(lengths, (1, -1, 1))
    position = F.broadcast_to(F.maximum(end - 1, F.zeros_like(end)), (1, *first.shape))
    found = F.gather_elements(y, 0, position)[0]
    return F.where(end[0] > 0, found, first)


def _has_sweep(projected: Tensor) -> bool:
    """Whether one operator runs all steps."""
    steps, _, wide = projected.aval.shape
    known = isinstance(steps, int) and isinstance(wide, int)  # the batch may vary
    return known and projected.dtype in (dtypes.float32, dtypes.float64)


def _panels(weight: Tensor) -> Tensor:
    """Cuts the weights of the state (gates * units, units) into panels of 16 units, all gates."""
    units = weight.shape[1]
    blocks = -(-units // PANEL)
    gates = F.reshape(weight, (-1, units, units))
    if units % PANEL:
        gates = F.pad(gates, (0, 0, 0, blocks * PANEL - units))
    return F.transpose(F.reshape(gates, (-1, blocks, PANEL, units)), (1, 3, 0, 2))


class RNN(_Recurrent):
    r"""Elman network: :math:`h_t = activation(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})`.

    Args:
        input_size: Size of an input step.
        hidden_size: Size of the state.
        num_layers: Layers on top of each other.
        has_bias: Whether there are biases.
        batch_first: Whether the input is (batch, time, size).
        dropout: Probability of zeros between layers in training.
        bidirectional: Whether a second pass runs from the end.
        dtype: Type of the parameters.
        nonlinearity: ``"tanh"`` or ``"relu"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(T, N, input\_size)`.
        - **hx** (Tensor) - First states :math:`(layers \cdot directions, N, hidden)`; zeros by
          default.
        - **seq_length** (Tensor) - Integers of shape :math:`(N,)`: the steps of every sequence.

    Outputs:
        Tuple of the outputs :math:`(T, N, directions \cdot hidden)` and the last states.

    Raises:
        ArgumentError: if a size is not positive, or an argument out of range.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> nn.RNN(3, 4)(ops.ones((5, 2, 3)))[0].shape
        (5, 2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        has_bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike = dtypes.float32,
        *,
        nonlinearity: str = "tanh",
    ) -> None:
        # before the weights are built, whose sizes follow from it
        self.mode = "rnn_" + choice("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, num_layers, has_bias, batch_first, dropout,
                         bidirectional, dtype)  # fmt: skip
        self.nonlinearity = nonlinearity


class LSTM(_Recurrent):
    r"""Long short-term memory: :math:`c_t = f c_{t-1} + i g,\; h_t = o \tanh(c_t)`.

    The gates are :math:`i, f, o = \sigma(\cdot)` and :math:`g = \tanh(\cdot)` of
    :math:`W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh}`, stacked in the order i, f, g, o.

    Args:
        input_size: Size of an input step.
        hidden_size: Size of the state.
        num_layers: Layers on top of each other.
        has_bias: Whether there are biases.
        batch_first: Whether the input is (batch, time, size).
        dropout: Probability of zeros between layers in training.
        bidirectional: Whether a second pass runs from the end.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(T, N, input\_size)`.
        - **hx** (tuple) - First :math:`h` and :math:`c`, both
          :math:`(layers \cdot directions, N, hidden)`; zeros by default.
        - **seq_length** (Tensor) - Integers of shape :math:`(N,)`: the steps of every sequence.

    Outputs:
        Tuple of the outputs :math:`(T, N, directions \cdot hidden)` and the pair of last states.

    Raises:
        ArgumentError: if a size is not positive, or an argument out of range.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> y, (h, c) = nn.LSTM(3, 4)(ops.ones((5, 2, 3)))
        >>> y.shape, h.shape, c.shape
        ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    """

    mode = "lstm"


class GRU(_Recurrent):
    r"""Gated recurrent unit: :math:`h_t = (1 - z) n + z h_{t-1}`.

    The gates are :math:`r, z = \sigma(\cdot)` and
    :math:`n = \tanh(W_{in} x_t + b_{in} + r (W_{hn} h_{t-1} + b_{hn}))`, in the order r, z, n.

    Args:
        input_size: Size of an input step.
        hidden_size: Size of the state.
        num_layers: Layers on top of each other.
        has_bias: Whether there are biases.
        batch_first: Whether the input is (batch, time, size).
        dropout: Probability of zeros between layers in training.
        bidirectional: Whether a second pass runs from the end.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(T, N, input\_size)`.
        - **hx** (Tensor) - First states :math:`(layers \cdot directions, N, hidden)`; zeros by
          default.
        - **seq_length** (Tensor) - Integers of shape :math:`(N,)`: the steps of every sequence.

    Outputs:
        Tuple of the outputs :math:`(T, N, directions \cdot hidden)` and the last states.

    Raises:
        ArgumentError: if a size is not positive, or an argument out of range.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> nn.GRU(3, 4)(ops.ones((5, 2, 3)))[0].shape
        (5, 2, 4)
    """

    mode = "gru"


__all__ = ["GRU", "LSTM", "RNN"]
