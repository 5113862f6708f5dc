"""Recurrent cells: one time step."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvmgraph import dtypes
from tvmgraph.common.initializer import Uniform
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, positive, reject
from tvmgraph.nn._parameters import new_parameter
from tvmgraph.nn.basic import check_last_axis
from tvmgraph.nn.cell import Cell


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


__all__ = ["GRUCell", "LSTMCell", "RNNCell"]
