"""Recurrent layers over whole sequences, and their cells for one time step: RNN, LSTM, GRU."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from tvmgraph import dtypes
from tvmgraph.common.initializer import Uniform
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.precision import Mixed
from tvmgraph.core.state import state as thread
from tvmgraph.core.symbols import described
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, layers, positive, real, reject
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.basic import Dropout, check_last_axis
from tvmgraph.nn.cell import Cell
from tvmgraph.ops.rnn.sweep import PANEL

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]

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
    known = isinstance(wide, int) and (isinstance(steps, int) or described())  # the batch may vary
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


# ---- cells --------------------------------------------------------------------------------------


class RNNCellBase(Cell):
    """The parameters of one step of a recurrent layer, for steps of one's own.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        has_bias: Whether there are biases.
        num_chunks: How many gates the weights hold, one below the other.
        dtype: Dtype of the parameters.
    """

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool, num_chunks: int,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:  # fmt: skip
        super().__init__()
        op = type(self).__name__
        self.input_size = positive(op, "input_size", input_size)
        self.hidden_size = positive(op, "hidden_size", hidden_size)
        self.has_bias = boolean(op, "has_bias", has_bias)
        kind = float_dtype(op, dtype)
        rows = hidden_size * num_chunks
        init = Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = new_parameter(op, "weight_ih", init, (rows, input_size), kind)
        self.weight_hh = new_parameter(op, "weight_hh", init, (rows, hidden_size), kind)
        self.bias_ih = self.bias_hh = None
        if has_bias:
            self.bias_ih = new_parameter(op, "bias_ih", init, (rows,), kind)
            self.bias_hh = new_parameter(op, "bias_hh", init, (rows,), kind)


class _RecurrentCell(RNNCellBase):
    """One step of a recurrent layer."""

    mode: str  # a key of STEPS

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, has_bias, STEPS[self.mode][1], dtype)

    def _step(self, x: Tensor, state: State) -> State:
        op = type(self).__name__
        check_last_axis(op, x, self.input_size, "input_size")
        for s in state:
            if s.shape != (*x.shape[:-1], self.hidden_size):
                reject(ShapeError, op,
                       f"the state must have shape {(*x.shape[:-1], self.hidden_size)}",
                       f"hx={s.aval}, x={x.aval}")  # fmt: skip
        b_ih = None if self.bias_ih is None else self.compute(self.bias_ih)
        b_hh = None if self.bias_hh is None else self.compute(self.bias_hh)
        projected = F.dense(x, self.compute(self.weight_ih), b_ih)
        hidden = F.dense(state[0], self.compute(self.weight_hh), b_hh)
        return STEPS[self.mode][0](projected, hidden, state)


class RNNCell(_RecurrentCell):
    r"""One Elman step: :math:`h' = activation(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})`.

    Args:
        input_size: Size of the input.
        hidden_size: Size of the state.
        has_bias: Whether there are biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, input\_size)`.
        - **hx** (Tensor) - Shape :math:`(N, hidden\_size)`.

    Outputs:
        Tensor of shape :math:`(N, hidden\_size)`.

    Raises:
        ArgumentError: if a size is not positive or ``nonlinearity`` unknown.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> nn.RNNCell(3, 4)(ops.ones((2, 3)), ops.zeros((2, 4))).shape
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        # before the weights are built, whose sizes follow from it
        self.mode = "rnn_" + choice("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = nonlinearity

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        return self._step(x, (hx,))[0]


class LSTMCell(_RecurrentCell):
    r"""One step of an LSTM, with the gates in the order i, f, g, o.

    Args:
        input_size: Size of the input.
        hidden_size: Size of the state.
        has_bias: Whether there are biases.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, input\_size)`.
        - **hx** (tuple) - :math:`h` and :math:`c`, both :math:`(N, hidden\_size)`.

    Outputs:
        Tuple of the new :math:`h` and :math:`c`.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> h = c = ops.zeros((2, 4))
        >>> nn.LSTMCell(3, 4)(ops.ones((2, 3)), (h, c))[0].shape
        (2, 4)
    """

    mode = "lstm"

    def construct(self, x: Tensor, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            reject(DTypeError, "LSTMCell", "the state must be a tuple (h, c)", f"hx={hx!r:.80}")
        h, c = self._step(x, (hx[0], hx[1]))
        return h, c


class GRUCell(_RecurrentCell):
    r"""One step of a GRU, with the gates in the order r, z, n.

    Args:
        input_size: Size of the input.
        hidden_size: Size of the state.
        has_bias: Whether there are biases.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, input\_size)`.
        - **hx** (Tensor) - Shape :math:`(N, hidden\_size)`.

    Outputs:
        Tensor of shape :math:`(N, hidden\_size)`.

    Raises:
        ArgumentError: if a size is not positive.
        ShapeError: if the input or the state does not fit.

    Example:
        >>> nn.GRUCell(3, 4)(ops.ones((2, 3)), ops.zeros((2, 4))).shape
        (2, 4)
    """

    mode = "gru"

    def construct(self, x: Tensor, hx: Tensor) -> Tensor:
        return self._step(x, (hx,))[0]


def _stepper(mode: str) -> Callable[..., Tensor | State]:
    """Returns one step of a recurrent layer as the function that zoos import from MindSpore."""

    def step(
        inputs: Tensor, hidden: Tensor | State, w_ih: Tensor, w_hh: Tensor,
        b_ih: Tensor | None, b_hh: Tensor | None,
    ) -> Tensor | State:  # fmt: skip
        state: State = (hidden,) if isinstance(hidden, Tensor) else hidden
        given = F.dense(inputs, w_ih, b_ih), F.dense(state[0], w_hh, b_hh)
        found = STEPS[mode][0](*given, state)
        return found if mode == "lstm" else found[0]

    return step


_lstm_cell, _gru_cell = _stepper("lstm"), _stepper("gru")
_rnn_tanh_cell, _rnn_relu_cell = _stepper("rnn_tanh"), _stepper("rnn_relu")


# ---- one step of every kind of recurrent cell, on projected inputs -------------------------------

State = tuple[Tensor, ...]
# (input projection, hidden projection, state) -> new state; its first entry is the output
Step = Callable[[Tensor, Tensor, State], State]


def tanh_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`h' = \tanh(x + h)`.

    Args:
        x: Projected input, of shape (N, hidden).
        h: Projected state, of shape (N, hidden).
        state: The states before the step.
    """
    return (F.tanh(x + h),)


def relu_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`h' = \max(x + h, 0)`.

    Args:
        x: Projected input, of shape (N, hidden).
        h: Projected state, of shape (N, hidden).
        state: The states before the step.
    """
    return (F.relu(x + h),)


def lstm_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`c' = f c + i g,\; h' = o \tanh(c')` with the gates in the order i, f, g, o.

    Args:
        x: Projected input, of shape (N, 4 * hidden).
        h: Projected state, of shape (N, 4 * hidden).
        state: :math:`h` and :math:`c` before the step, of shape (N, hidden).
    """
    i, f, g, o = F.split(x + h, state[0].shape[-1], axis=-1)
    c = F.sigmoid(f) * state[1] + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def gru_step(x: Tensor, h: Tensor, state: State) -> State:
    r""":math:`n = \tanh(x_n + r h_n),\; h' = (1 - z) n + z h`; the gates are r, z, n in order.

    Args:
        x: Projected input, of shape (N, 3 * hidden).
        h: Projected state, of shape (N, 3 * hidden).
        state: :math:`h` before the step, of shape (N, hidden).
    """
    size = state[0].shape[-1]
    x_r, x_z, x_n = F.split(x, size, axis=-1)
    h_r, h_z, h_n = F.split(h, size, axis=-1)
    r, z = F.sigmoid(x_r + h_r), F.sigmoid(x_z + h_z)
    n = F.tanh(x_n + r * h_n)
    return (n + z * (state[0] - n),)


STEPS: dict[str, tuple[Step, int, int]] = {  # mode: step, gates, tensors of the state
    "rnn_tanh": (tanh_step, 1, 1),
    "rnn_relu": (relu_step, 1, 1),
    "lstm": (lstm_step, 4, 2),
    "gru": (gru_step, 3, 1),
}
